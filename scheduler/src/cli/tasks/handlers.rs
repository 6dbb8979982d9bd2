//! A word about handlers that no executor has: their runs wait, and a typing mistake looks the same.

use crate::cli::client::Client;
use crate::cli::node::ApiRequest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Executors of an app that are looked at.
const EXECUTORS_MAX: usize = 1_000;

/// Warns of those of these tasks (`tenant`, `app`, `handler`) whose handler no online executor of the app has. Nothing is
/// said to callers that may not see executors.
pub async fn warn(client: &Client, tasks: impl IntoIterator<Item = &Value>) -> anyhow::Result<()> {
    let mut wanted: BTreeMap<[&str; 2], BTreeSet<&str>> = BTreeMap::new();
    for task in tasks {
        if let [Some(tenant), Some(app), Some(handler)] = ["tenant", "app", "handler"].map(|field| task[field].as_str())
        {
            wanted.entry([tenant, app]).or_default().insert(handler);
        }
    }
    for ([tenant, app], handlers) in wanted {
        let ask = ApiRequest::get(["executors"]).with("tenant", Some(tenant)).with("app", Some(app));
        let Ok((executors, _)) = client.node.list(&ask, Some("after"), EXECUTORS_MAX).await else { continue };
        let known: BTreeSet<&str> = executors
            .iter()
            .filter_map(|executor| executor["handlers"].as_array())
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let missing: Vec<&str> = handlers.difference(&known).copied().collect();
        if !missing.is_empty() {
            let names = missing.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            eprintln!(
                "carillon: no online executor of {tenant}/{app} has the handler {names}; runs wait until one registers it"
            );
        }
    }
    Ok(())
}
