//! `carillon tasks export`.

use super::document::{Document, Format};
use crate::cli::client::{Client, Output, print};
use crate::cli::node::ApiRequest;
use crate::domain::task::file::{Entry, TASKS_MAX, VERSION};
use anyhow::{Context, anyhow};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The arguments of `carillon tasks export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Only tasks of this tenant.
    #[arg(long)]
    pub tenant: Option<String>,
    /// Only tasks of this app.
    #[arg(long)]
    pub app: Option<String>,
    /// Format to write; by default that of the file's name, otherwise toml (--output json: json).
    #[arg(long)]
    pub format: Option<Format>,
    /// File to write; standard output by default.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Page {
    version: i64,
    task: Vec<Map<String, Value>>,
    next: Option<String>,
}

/// Writes the tasks of a cluster, a tenant or an app.
pub async fn run(client: &Client, args: &ExportArgs) -> anyhow::Result<()> {
    let standard = if client.output == Output::Json { Format::Json } else { Format::Toml };
    let format = args.format.or_else(|| args.file.as_deref().and_then(Format::of)).unwrap_or(standard);
    let mut tasks = fetch(client, args).await?;
    tasks.sort_by_cached_key(|task| ["tenant", "app", "name"].map(|field| text(task, field)));
    let top = top(args, &mut tasks);
    let file = write(&top, &tasks, format)
        .map_err(|error| anyhow!("the tasks cannot be written as {}: {error}", format.name()))?;
    match &args.file {
        None => print(&file)?,
        Some(path) => {
            std::fs::write(path, file).with_context(|| format!("{} cannot be written", path.display()))?;
            eprintln!("{} tasks written to {}", tasks.len(), path.display());
        }
    }
    if tasks.len() > TASKS_MAX {
        eprintln!(
            "carillon: the file has {} tasks, and `apply` accepts at most {TASKS_MAX}: export app by app (--tenant, --app)",
            tasks.len()
        );
    }
    Ok(())
}

async fn fetch(client: &Client, args: &ExportArgs) -> anyhow::Result<Vec<Map<String, Value>>> {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let ask = ApiRequest::get(["tasks", "export"])
            .with("tenant", args.tenant.as_deref())
            .with("app", args.app.as_deref());
        let answer = client.node.answer(ask.with("after", after)).await?;
        let page: Page = serde_json::from_value(answer).context("the node's answer cannot be understood")?;
        if page.version != VERSION {
            return Err(anyhow!(
                "the node writes task files of version {}; use the command of the node's release",
                page.version
            ));
        }
        tasks.extend(page.task);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(tasks),
        }
    }
}

/// The part above the tasks: a tenant or app that was asked for is not repeated in each task.
fn top<'a>(args: &ExportArgs, tasks: &mut [Map<String, Value>]) -> Vec<(&'a str, Value)> {
    let mut top = vec![("version", Value::from(VERSION))];
    for (field, asked) in [("tenant", &args.tenant), ("app", &args.app)] {
        if let Some(value) = asked {
            top.push((field, value.as_str().into()));
            for task in &mut *tasks {
                task.remove(field);
            }
        }
    }
    top
}

/// The file, parsed again and compared: no text is lost or altered.
fn write(top: &[(&str, Value)], tasks: &[Map<String, Value>], format: Format) -> Result<String, String> {
    let file = Document::render(top, tasks, &Entry::field_names(), format)?;
    let read = Document::parse(&file, format)?.fields;
    let mut expected: Map<String, Value> =
        top.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    expected.insert("task".to_owned(), tasks.iter().cloned().map(Value::Object).collect());
    if read == expected {
        Ok(file)
    } else {
        Err("the written file does not read back the same; try another --format".to_owned())
    }
}

fn text(task: &Map<String, Value>, field: &str) -> String {
    task.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}
