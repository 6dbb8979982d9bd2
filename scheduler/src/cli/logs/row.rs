//! Columns of a run.

use crate::cli::node::{ApiRequest, Node};
use serde_json::Value;
use std::collections::HashMap;

/// Most tasks whose names are looked up; the others stay ids.
const NAMES_MAX: usize = 100;

/// How late the run started, ms; unknown for a run that is due again.
pub(super) fn late(log: &Value) -> String {
    if ["init", "queued", "retry"].contains(&log["status"].as_str().unwrap_or_default()) {
        return "-".to_owned();
    }
    between(log, "due_time", "started_at")
}

/// ms from one instant of a run to a later one.
pub(super) fn between(log: &Value, from: &str, to: &str) -> String {
    match (log[from].as_i64(), log[to].as_i64()) {
        (Some(from), Some(to)) => format!("{} ms", (to - from).max(0)),
        _ => "-".to_owned(),
    }
}

/// Names of tasks by their ids; a run knows only the id.
#[derive(Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    /// Adds the task's name to each run.
    pub(super) async fn put(&mut self, node: &Node, logs: &mut [Value]) -> anyhow::Result<()> {
        for log in logs {
            let id = log["task"].as_str().unwrap_or_default().to_owned();
            if !self.0.contains_key(&id) && self.0.len() < NAMES_MAX {
                let found = node.ask(&ApiRequest::get(["tasks", &id])).await.ok().and_then(Result::ok);
                let name = found.map(|task| {
                    let part = |name: &str| task[name].as_str().unwrap_or_default().to_owned();
                    format!("{}/{}/{}", part("tenant"), part("app"), part("name"))
                });
                // Deleted, or not visible to the caller.
                self.0.insert(id.clone(), name.unwrap_or_else(|| id.clone()));
            }
            log["task_name"] = self.0.get(&id).cloned().unwrap_or(id).into();
        }
        Ok(())
    }
}
