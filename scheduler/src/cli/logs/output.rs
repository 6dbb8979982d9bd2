//! Log output of a run.

use crate::cli::client::{Client, Output, json, print};
use crate::cli::node::ApiRequest;
use crate::cli::table::escaped;
use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::Value;
use std::io::IsTerminal as _;
use std::time::Duration;

/// Polling interval for a run that has not ended.
const EVERY: Duration = Duration::from_secs(1);

/// What to read.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// The run's id.
    log: String,
    /// Which attempt, from 1; the latest by default.
    #[arg(long)]
    attempt: Option<i32>,
    /// Follow until nothing more will come (with --output json: one page per line).
    #[arg(long, short)]
    follow: bool,
}

impl OutputArgs {
    /// Reads it.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let mut reader = Reader::new(&self.log, self.attempt);
        let mut pages = Vec::new();
        loop {
            let page = reader.page(client).await?.map_err(|detail| anyhow!(detail))?;
            let (is_more, is_final) = (page["more"] == true, page["final"] == true);
            let is_over = !is_more && (is_final || !self.follow);
            match client.output {
                Output::Json if !self.follow => pages.push(page),
                _ => reader.show(client, &page)?,
            }
            if is_over {
                break;
            }
            if !is_more {
                tokio::time::sleep(EVERY).await;
            }
        }
        if client.output == Output::Json && !self.follow {
            return print(&json(&Value::Array(pages))?);
        }
        reader.end_line(client)?;
        if let Some(why) = reader.why_nothing {
            bail!("{why}");
        }
        Ok(())
    }
}

/// Reads output and remembers its position.
pub struct Reader {
    log: String,
    attempt: Option<i32>,
    offset: u64,
    is_final: bool,
    is_amid_line: bool,
    has_text: bool,
    /// Why there was no text at all.
    why_nothing: Option<String>,
}

impl Reader {
    /// From the beginning.
    pub fn new(log: &str, attempt: Option<i32>) -> Self {
        let log = log.to_owned();
        Self { log, attempt, offset: 0, is_final: false, is_amid_line: false, has_text: false, why_nothing: None }
    }

    /// The next page; the inner error is the node's refusal.
    async fn page(&mut self, client: &Client) -> anyhow::Result<Result<Value, String>> {
        let ask = ApiRequest::get(["task-logs", &self.log, "output"]);
        let ask = ask.with("attempt", self.attempt).with("offset", Some(self.offset));
        let page = match client.node.ask(&ask).await? {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal.detail)),
        };
        self.offset = page["next"].as_u64().unwrap_or(self.offset);
        self.has_text |= page["text"].as_str().is_some_and(|text| !text.is_empty());
        let detail = page["detail"].as_str().filter(|detail| !detail.is_empty() && !self.has_text);
        self.why_nothing = detail.map(str::to_owned);
        Ok(Ok(page))
    }

    /// Shows the available output of the run's latest attempt; returns whether nothing more will come.
    pub async fn read_on(&mut self, client: &Client, latest: Option<i32>) -> anyhow::Result<bool> {
        let Some(latest) = latest.filter(|attempt| *attempt > 0) else { return Ok(true) };
        // The output of an attempt is read to its end before that of the next.
        if self.attempt.is_none() || (self.is_final && self.attempt != Some(latest)) {
            (self.attempt, self.offset, self.is_final) = (Some(latest), 0, false);
        }
        loop {
            // The node offers no output, or the caller may not read it: only the state is shown.
            let Ok(page) = self.page(client).await.unwrap_or_else(|error| Err(error.to_string())) else {
                return Ok(true);
            };
            self.show(client, &page)?;
            if page["more"] != true {
                self.is_final = page["final"] == true;
                return Ok(self.is_final && self.attempt == Some(latest));
            }
        }
    }

    fn show(&mut self, client: &Client, page: &Value) -> anyhow::Result<()> {
        let text = page["text"].as_str().unwrap_or_default();
        if text.is_empty() {
            return Ok(());
        }
        if client.output == Output::Json {
            return print(&format!("{page}\n"));
        }
        self.is_amid_line = !text.ends_with('\n');
        if !std::io::stdout().is_terminal() {
            return print(text);
        }
        // A terminal would interpret some of it as commands.
        print(&text.split_inclusive('\n').map(escaped_line).collect::<String>())
    }

    /// Ends the line, so that further text begins on a new one.
    pub fn end_line(&mut self, client: &Client) -> anyhow::Result<()> {
        if std::mem::take(&mut self.is_amid_line) && client.output == Output::Table {
            return print("\n");
        }
        Ok(())
    }
}

fn escaped_line(line: &str) -> String {
    let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
    text.split('\t').map(escaped).collect::<Vec<_>>().join("\t") + end
}
