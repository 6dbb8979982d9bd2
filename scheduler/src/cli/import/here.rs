//! What is there already, as far as an import has to know it.

use crate::cli::node::{ApiRequest, Node};
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Most tasks of a tenant that are looked at.
const TASKS_MAX: usize = 100_000;

/// A tenant's things.
#[derive(Debug, Default)]
pub struct Tenant {
    /// Its id; none for one that is not there.
    pub id: Option<String>,
    /// Ids of its apps by their names.
    pub apps: BTreeMap<String, String>,
    /// Names of those whose tasks may be scripts.
    pub script_apps: HashSet<String>,
    /// Its tasks by their ids.
    pub tasks: HashMap<String, Task>,
    /// Ids of imported tasks by their origins.
    pub origins: HashMap<String, String>,
    /// Numbers of imported tasks by their ids.
    pub numbers: HashMap<String, i64>,
}

/// A task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Task {
    /// Name of its app.
    pub app: String,
    /// Its name.
    pub name: String,
    /// It is started, or paused: a person is at it.
    pub is_used: bool,
    /// It is started.
    pub is_started: bool,
    /// Its runs are a script.
    pub is_script: bool,
    /// Nothing fires before this instant, epoch ms; 0 is none.
    pub valid_from: i64,
}

impl Tenant {
    /// What is there of the tenant of that name.
    pub async fn read(node: &Node, name: &str) -> anyhow::Result<Self> {
        let tenant = match node.ask(&ApiRequest::get(["tenants", name])).await? {
            Ok(tenant) => tenant,
            Err(refusal) if refusal.status == 404 => return Ok(Self::default()),
            Err(refusal) => bail!("tenant `{name}` cannot be read: {}", refusal.detail),
        };
        let of_tenant = |path: &'static str| ApiRequest::get([path]).with("tenant", Some(name));
        let apps = whole(node, &of_tenant("apps")).await?;
        let tasks = whole(node, &of_tenant("tasks")).await?;
        let mut here = Self { id: Some(text(&tenant, "id")?), ..Self::default() };
        for app in &apps {
            here.apps.insert(text(app, "name")?, text(app, "id")?);
            if app["scripts"] == true {
                here.script_apps.insert(text(app, "name")?);
            }
        }
        for task in &tasks {
            let known = Task {
                app: text(task, "app")?,
                name: text(task, "name")?,
                is_used: task["state"] != "stopped",
                is_started: task["started"] == true,
                is_script: task["script"].as_i64().unwrap_or(0) != 0,
                valid_from: task["valid_from"].as_i64().unwrap_or(0),
            };
            here.tasks.insert(text(task, "id")?, known);
        }
        here.read_origins(node, name).await?;
        Ok(here)
    }

    /// Reads the origins again.
    pub async fn read_origins(&mut self, node: &Node, name: &str) -> anyhow::Result<()> {
        for origin in whole(node, &ApiRequest::get(["tenants", name, "origins"])).await? {
            let task = text(&origin, "task")?;
            if let Some(number) = origin["number"].as_i64() {
                self.numbers.insert(task.clone(), number);
            }
            self.origins.insert(text(&origin, "origin")?, task);
        }
        Ok(())
    }
}

async fn whole(node: &Node, ask: &ApiRequest) -> anyhow::Result<Vec<Value>> {
    let (items, is_more) = node.list(ask, Some("after"), TASKS_MAX).await?;
    if is_more {
        bail!("there are more than {TASKS_MAX} of a kind in the tenant, which an import does not look through");
    }
    Ok(items)
}

/// A text of the node's answer.
pub fn text(value: &Value, field: &str) -> anyhow::Result<String> {
    value[field].as_str().map(str::to_owned).context("the node's answer cannot be understood")
}
