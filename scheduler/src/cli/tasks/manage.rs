//! `carillon tasks list`, `show`, `start`, `stop`, `pause`, `delete`, `preview`.

use crate::cli::client::{Client, ListLimit};
use crate::cli::node::ApiRequest;
use crate::cli::table::{Column, field, made, text};
use crate::cli::{find, instant};
use clap::{Args, Subcommand};
use serde_json::Value;

const COLUMNS: &[Column] = &[
    field("TENANT", "tenant"),
    field("APP", "app"),
    field("NAME", "name"),
    field("STATE", "state"),
    made("SCHEDULE", schedule),
    field("NEXT", "next_fire_at"),
    field("HANDLER", "handler"),
    field("ID", "id"),
];

const PREVIEW: &[Column] = &[
    made("FIRES", |line| if line["kind"] == "fires" { text("fire_time", &line["fire_time"]) } else { "-".to_owned() }),
    made("SKIPPED", |line| match line["kind"].as_str() {
        Some("skipped") => format!("{} ({})", text("fire_time", &line["fire_time"]), text("", &line["reason"])),
        _ => "-".to_owned(),
    }),
    field("DUE", "due_time"),
    field("NOTE", "note"),
];

/// The task.
#[derive(Debug, Args)]
pub struct Which {
    /// Its id, or tenant/app/name.
    task: String,
}

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub enum Manage {
    /// List tasks.
    List {
        /// Only in this tenant.
        #[arg(long)]
        tenant: Option<String>,
        /// Only in this app.
        #[arg(long)]
        app: Option<String>,
        /// Only with this name.
        #[arg(long)]
        name: Option<String>,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show a task with all its fields.
    Show(Which),
    /// Start a task: it fires from now on.
    Start(Which),
    /// Stop a task: it no longer fires, and runs that were written ahead are revoked.
    Stop(Which),
    /// Pause a task, with a reason.
    Pause {
        /// Which.
        #[command(flatten)]
        which: Which,
        /// Why.
        #[arg(long)]
        note: String,
    },
    /// Cancel one future fire of a task, even if its run is not written yet.
    Skip {
        /// Which.
        #[command(flatten)]
        which: Which,
        /// The instant of the fire, as `preview` shows it.
        #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
        at: i64,
        /// Why.
        #[arg(long)]
        note: Option<String>,
    },
    /// Restore a cancelled fire.
    Restore {
        /// Which.
        #[command(flatten)]
        which: Which,
        /// The instant of the fire.
        #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
        at: i64,
    },
    /// Delete a task.
    Delete(Which),
    /// Show when a task will fire, and which instants it skips.
    Preview {
        /// Which.
        #[command(flatten)]
        which: Which,
        /// How many fires.
        #[arg(long, value_name = "COUNT", default_value_t = 10)]
        count: u32,
        /// After this time; now by default.
        #[arg(long, value_name = "TIME", value_parser = instant::parse, allow_hyphen_values = true)]
        after: Option<i64>,
    },
}

impl Manage {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { tenant, app, name, most } => {
                let ask = ApiRequest::get(["tasks"]).with("tenant", tenant).with("app", app).with("name", name);
                client.pages(ask, "after", &most, COLUMNS).await
            }
            Self::Show(which) => client.show(ApiRequest::get(["tasks", &which.id(client).await?])).await,
            Self::Start(which) => {
                change(client, ApiRequest::post(["tasks", &which.id(client).await?, "start"]), &which, "is started")
                    .await
            }
            Self::Stop(which) => {
                change(client, ApiRequest::post(["tasks", &which.id(client).await?, "stop"]), &which, "is stopped")
                    .await
            }
            Self::Pause { which, note } => {
                let ask = ApiRequest::post(["tasks", &which.id(client).await?, "pause"]);
                change(client, ask.fields([("note", Some(note.into()))]), &which, "is paused").await
            }
            Self::Skip { which, at, note } => {
                let ask = ApiRequest::post(["tasks", &which.id(client).await?, "skip"]);
                let ask = ask.fields([("fire_time", Some(at.into())), ("note", note.map(Into::into))]);
                change(client, ask, &which, "will not fire then").await
            }
            Self::Restore { which, at } => {
                let ask = ApiRequest::post(["tasks", &which.id(client).await?, "restore"]);
                change(client, ask.fields([("fire_time", Some(at.into()))]), &which, "will fire then").await
            }
            Self::Delete(which) => {
                change(client, ApiRequest::delete(["tasks", &which.id(client).await?]), &which, "deleted").await
            }
            Self::Preview { which, count, after } => {
                let ask = ApiRequest::get(["tasks", &which.id(client).await?, "preview"]);
                let ask = ask.with("count", Some(count)).with("after", after);
                client.whole(ask, &ListLimit { limit: u32::MAX }, PREVIEW).await
            }
        }
    }
}

impl Which {
    async fn id(&self, client: &Client) -> anyhow::Result<String> {
        find::task(&client.node, &self.task).await
    }
}

/// Changes a task.
async fn change(client: &Client, ask: ApiRequest, which: &Which, says: &str) -> anyhow::Result<()> {
    let answer = client.node.answer(ask).await?;
    tell(client, &answer, &which.task, says)
}

/// Says what a change did, and names the runs that it does not reach.
pub(super) fn tell(client: &Client, answer: &Value, task: &str, says: &str) -> anyhow::Result<()> {
    client.says(answer, &format!("task `{task}` {says}"))?;
    for (field, what) in [
        ("running", "continues with the old definition: run"),
        ("unreachable", "may still start, its executor is unreachable: run"),
    ] {
        if answer[field].as_array().is_some_and(|runs| !runs.is_empty()) {
            eprintln!("carillon: {what} {}", text(field, &answer[field]));
        }
    }
    Ok(())
}

fn schedule(task: &Value) -> String {
    let value = |name: &str| text(name, &task[name]);
    match task["schedule"].as_str().unwrap_or_default() {
        "cron" => format!("{} {}", value("cron"), value("time_zone")),
        "once" => format!("once at {}", text("fire_at", &task["fire_at"])),
        kind @ ("fixed_rate" | "fixed_delay") => format!("{kind} {} ms", value("interval_ms")),
        kind => kind.to_owned(),
    }
}
