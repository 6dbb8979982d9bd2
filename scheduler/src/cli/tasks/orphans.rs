//! Tasks that are not in a task file, of the apps that are.

use crate::cli::client::Client;
use crate::cli::node::ApiRequest;
use crate::cli::table::escaped;
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Most tasks of one app that are read.
const TASKS_MAX: usize = 100_000;

/// A task that is not in the file.
#[derive(Debug)]
pub struct Orphan {
    id: String,
    place: String,
    revision: Option<i64>,
}

impl Orphan {
    /// Those other than the tasks in `answer`, the response to an apply, of their apps and of the one that the `file` names for
    /// all its tasks, even if it has none left.
    pub async fn all(client: &Client, file: &Value, answer: &Value) -> anyhow::Result<Vec<Self>> {
        let tasks = answer["tasks"].as_array().context("the node's answer cannot be understood")?;
        if tasks.is_empty() && answer["elsewhere"].as_u64().is_some_and(|elsewhere| elsewhere > 0) {
            // The file is for other clusters alone, and says nothing about this one.
            return Ok(Vec::new());
        }
        let mut apps: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        if !word(file, "tenant").is_empty() && !word(file, "app").is_empty() {
            apps.entry((word(file, "tenant"), word(file, "app"))).or_default();
        }
        for task in tasks {
            apps.entry((word(task, "tenant"), word(task, "app"))).or_default().insert(word(task, "name"));
        }
        let mut orphans = Vec::new();
        for ((tenant, app), named) in apps {
            let ask = ApiRequest::get(["tasks"]).with("tenant", Some(tenant)).with("app", Some(app));
            let (found, _) = client.node.list(&ask, Some("after"), TASKS_MAX).await?;
            orphans.extend(found.iter().filter(|task| !named.contains(word(task, "name"))).map(|task| Self {
                id: word(task, "id").to_owned(),
                place: format!("{tenant}/{app}/{}", word(task, "name")),
                revision: task["revision"].as_i64(),
            }));
        }
        Ok(orphans)
    }

    /// Deletes it, unless it has changed since it was listed.
    pub async fn delete(&self, client: &Client) -> anyhow::Result<()> {
        let ask = ApiRequest::delete(["tasks", &self.id]).if_match(self.revision);
        let deleted = client.node.answer(ask).await;
        deleted.map(drop).with_context(|| {
            format!("the file is applied, but task `{}` and those after it are not deleted; run it again", self.place)
        })
    }

    /// A line about it; `end` says what becomes of it.
    pub fn line(&self, end: &str) -> String {
        format!("- {}  {end}\n", escaped(&self.place))
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        json!({ "id": self.id, "task": self.place })
    }
}

fn word<'a>(task: &'a Value, name: &str) -> &'a str {
    task[name].as_str().unwrap_or_default()
}
