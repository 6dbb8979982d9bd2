//! An xxl-job and what was imported of it, side by side: what a switch has to know of both.

use super::args::SwitchArgs;
use super::here::{Task, Tenant};
use super::plan::{Planned, id_of, parents, plan};
use crate::cli::node::Node;
use crate::domain::import::ImportDocument;
use crate::domain::xxljob::{ForeignJob, ImportOptions, document};
use crate::store::foreign::ForeignDatabase;
use anyhow::bail;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Both of them.
pub struct Both {
    /// The other one's database.
    pub database: ForeignDatabase,
    /// Ids of the groups that are meant.
    pub groups: Vec<i64>,
    /// Their jobs with the tasks that were imported of them, by the jobs' ids.
    pub pairs: BTreeMap<i64, Pair>,
}

/// A job and its task.
#[derive(Debug)]
pub struct Pair {
    /// The job.
    pub job: ForeignJob,
    /// The task, as an import would have it now.
    pub planned: Planned,
    /// The task as it is; none that was not imported yet.
    pub task: Option<Task>,
}

impl Both {
    /// Reads both.
    pub async fn read(node: &Node, args: &SwitchArgs) -> anyhow::Result<Self> {
        let options = |groups: &[String]| ImportOptions {
            source: args.name.clone(),
            tenant: args.tenant.clone(),
            zone: args.source.time_zone,
            groups: groups.to_vec(),
            // Whether they came, the tasks here say.
            with_scripts: true,
        };
        let mut database = args.source.connect().await?;
        let read = args.source.xxl_job(&mut database).await?;
        let (whole, meant) = (document(&read, &options(&[]))?, document(&read, &options(&args.groups))?);
        let meant: HashSet<&str> = meant.tasks.iter().map(|task| task.origin.as_str()).collect();
        refuse_split(&whole, &meant)?;
        let here = BTreeMap::from([(args.tenant.clone(), Tenant::read(node, &args.tenant).await?)]);
        let mut jobs: HashMap<i64, ForeignJob> = read.jobs.into_iter().map(|job| (job.id, job)).collect();
        let tasks = here.get(&args.tenant).map(|here| &here.tasks);
        let pairs = plan(&whole, &here, &HashSet::new()).into_iter().filter(|one| meant.contains(one.origin.as_str()));
        let pairs = pairs.filter_map(|planned| {
            let job = jobs.remove(&id_of(&planned.origin))?;
            let task = planned.id.as_ref().and_then(|id| tasks?.get(id)).cloned();
            Some((job.id, Pair { job, planned, task }))
        });
        let pairs = pairs.collect();
        let is_meant = |name: &String| args.groups.is_empty() || args.groups.contains(name);
        let groups = read.groups.iter().filter(|group| is_meant(&group.app_name)).map(|group| group.id).collect();
        Ok(Self { database, groups, pairs })
    }
}

/// A job that follows another one runs where that one does: a link must not have one end here and one there.
fn refuse_split(whole: &ImportDocument, meant: &HashSet<&str>) -> anyhow::Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let origins: HashMap<(String, String), &str> = whole
        .tasks
        .iter()
        .map(|task| ((text(&task.task["app"]), text(&task.task["name"])), task.origin.as_str()))
        .collect();
    let mut split = BTreeSet::new();
    for task in &whole.tasks {
        let app = text(&task.task["app"]);
        for (of, name) in parents(&task.task) {
            let Some(origin) = origins.get(&(of.to_owned(), name.to_owned())) else { continue };
            if meant.contains(origin) != meant.contains(task.origin.as_str()) {
                split.insert(format!("{app} and {of}"));
            }
        }
    }
    if split.is_empty() {
        return Ok(());
    }
    let split = split.into_iter().collect::<Vec<_>>().join("; ");
    bail!("jobs of one group follow jobs of another ({split}): name these groups together (--group)")
}
