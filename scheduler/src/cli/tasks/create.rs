//! `carillon tasks create`.

use crate::cli::client::Client;
use crate::cli::find;
use crate::cli::node::ApiRequest;
use anyhow::Context;
use clap::Args;
use serde_json::{Map, Value};

/// A task to create.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// tenant/app/name.
    task: String,
    /// The handler that it calls; the task's name by default.
    #[arg(long)]
    handler: Option<String>,
    /// When it fires, as a Quartz cron expression: "0 0 3 * * ?".
    #[arg(long)]
    cron: Option<String>,
    /// The zone of --cron: Europe/Berlin; UTC by default.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Its parameters.
    #[arg(long)]
    params: Option<String>,
    /// Any other field of a task: `max_retries=2`, `tags=["gpu"]`. The value is JSON; anything else is taken as text.
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = field, verbatim_doc_comment)]
    fields: Vec<(String, Value)>,
    /// Start it: it fires from now on.
    #[arg(long)]
    start: bool,
}

impl CreateArgs {
    /// Creates it.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { task, handler, cron, time_zone, params, fields, start } = self;
        let [tenant, app, name] =
            find::parts(&task).with_context(|| format!("`{task}` does not name a task; write tenant/app/name"))?;
        let named = [
            ("tenant", Some(tenant.to_owned())),
            ("app", Some(app.to_owned())),
            ("name", Some(name.to_owned())),
            ("handler", Some(handler.unwrap_or_else(|| name.to_owned()))),
            ("cron", cron),
            ("time_zone", time_zone),
            ("params", params),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
        let mut body: Map<String, Value> = fields.into_iter().chain(named).collect();
        if start {
            body.insert("started".to_owned(), true.into());
        }
        let answer = client.node.ask(&ApiRequest::post(["tasks"]).body(Value::Object(body))).await?;
        let answer = answer.map_err(|refusal| {
            let fields = refusal.errors.iter().map(|error| format!("\n  {}: {}", error.field, error.message));
            let message = format!("task `{task}` is refused: {}{}", refusal.detail, fields.collect::<String>());
            refusal.in_words(message)
        })?;
        let state = if start { "created and started" } else { "created; `carillon tasks start` starts it" };
        client.says(&answer, &format!("task `{task}` {state}"))
    }
}

/// `field=value`; a value that is not JSON is text.
fn field(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not FIELD=VALUE"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.trim().to_owned(), value))
}
