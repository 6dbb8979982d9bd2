//! `carillon tasks create` and `edit`.

use super::{handlers, manage};
use crate::cli::client::{Client, IfMatch};
use crate::cli::find;
use crate::cli::node::{ApiRequest, Refusal};
use crate::domain::task::TaskWarning;
use anyhow::{Context, ensure};
use clap::Args;
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Fields of a task.
#[derive(Debug, Args)]
struct FieldArgs {
    /// The handler that it calls.
    #[arg(long)]
    handler: Option<String>,
    /// When it fires, as a Quartz cron expression: "0 0 3 * * ?".
    #[arg(long)]
    cron: Option<String>,
    /// The zone of --cron: Europe/Berlin.
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Its parameters.
    #[arg(long)]
    params: Option<String>,
    /// Any other field of a task: `max_retries=2`, `tags=["gpu"]`. The value is JSON; anything else is taken as text.
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = field, verbatim_doc_comment)]
    fields: Vec<(String, Value)>,
}

/// A task to create.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// tenant/app/name. The handler has the task's name by default, the zone is the node's `schedulers.time_zone`.
    task: String,
    /// Its fields; the others have their defaults.
    #[command(flatten)]
    fields: FieldArgs,
    /// Start it: it fires from now on.
    #[arg(long)]
    start: bool,
}

/// A task to edit.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// Its id, or tenant/app/name.
    task: String,
    /// The fields to change; the others stay as they are.
    #[command(flatten)]
    fields: FieldArgs,
    /// What the edit relies on.
    #[command(flatten)]
    unless: IfMatch,
}

impl FieldArgs {
    fn body(self) -> Map<String, Value> {
        let Self { handler, cron, time_zone, params, fields } = self;
        let named = [("handler", handler), ("cron", cron), ("time_zone", time_zone), ("params", params)];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
        fields.into_iter().chain(named).collect()
    }
}

impl CreateArgs {
    /// Creates it.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { task, fields, start } = self;
        let [tenant, app, name] =
            find::parts(&task).with_context(|| format!("`{task}` does not name a task; write tenant/app/name"))?;
        let mut body = fields.body();
        body.entry("handler").or_insert_with(|| name.into());
        body.extend(
            [("tenant", tenant), ("app", app), ("name", name)].map(|(field, text)| (field.to_owned(), text.into())),
        );
        if start {
            body.insert("started".to_owned(), true.into());
        }
        let answer = client.node.ask(&ApiRequest::post(["tasks"]).body(Value::Object(body))).await?;
        let answer = answer.map_err(|refusal| refused(&task, refusal))?;
        let state = if start { "created and started" } else { "created; `carillon tasks start` starts it" };
        client.says(&answer, &format!("task `{task}` {state}"))?;
        warn(&answer);
        handlers::warn(client, [&answer]).await
    }
}

impl EditArgs {
    /// Changes the fields that are named.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { task, fields, unless } = self;
        let body = fields.body();
        ensure!(!body.is_empty(), "nothing to change; name a field: --cron, --handler, --set max_retries=2");
        let id = find::task(&client.node, &task).await?;
        let ask = ApiRequest::patch(["tasks", &id]).if_match(unless.revision);
        let answer = client.node.ask(&ask.body(Value::Object(body))).await?;
        let answer = answer.map_err(|refusal| refused(&task, refusal))?;
        manage::tell(client, &answer, &task, "changed")?;
        warn(&answer["task"]);
        handlers::warn(client, [&answer["task"]]).await
    }
}

/// Says what the node finds odd about a task; a newer node may know more.
fn warn(task: &Value) {
    let warnings = task["warnings"].as_array().into_iter().flatten();
    for warning in warnings.filter_map(|word| TaskWarning::deserialize(word).ok()) {
        eprintln!("carillon: {}", warning.message());
    }
}

fn refused(task: &str, refusal: Refusal) -> anyhow::Error {
    let fields = refusal.errors.iter().map(|error| format!("\n  {}: {}", error.field, error.message));
    let message = format!("task `{task}` is refused: {}{}", refusal.detail, fields.collect::<String>());
    refusal.in_words(message)
}

/// `field=value`; a value that is not JSON is text.
fn field(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not FIELD=VALUE"))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    Ok((name.trim().to_owned(), value))
}
