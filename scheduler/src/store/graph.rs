//! The neighbours of a task: what it follows, what follows it.

use super::dialect::Kind;

use super::links::known_outcome;
use super::row::{Column, Read, column, from_row};
use super::statement::Sql;
use super::values::list;
use super::{Activity, Result, SqlStore, TaskState};
use crate::domain::task::ParentOutcome;
use crate::domain::{AccessScope, AppId, Status, TaskId, TenantId};
use sea_orm::QueryResult;
use std::collections::{BTreeMap, BTreeSet};

const ACTION: &str = "read the graph of a task";

/// Links away from the task, each way.
const LEVELS: usize = 3;

/// Tasks in a graph.
pub const GRAPH_TASKS_MAX: usize = 100;

/// Links that one level reads.
const LINKS_MAX: usize = 500;

/// A task in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphTask {
    /// Id.
    pub id: TaskId,
    /// Its tenant.
    pub tenant_id: TenantId,
    /// Its app.
    pub app_id: AppId,
    /// Its name.
    pub name: String,
    /// Tenant's name.
    pub tenant: String,
    /// App's name.
    pub app: String,
    /// Whether it fires by itself.
    pub state: TaskState,
    /// The run that was due last: its state, and when it ended (ms, or 0).
    pub last: Option<(Status, i64)>,
}

/// Whose end starts what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphLink {
    /// The parent.
    pub from: TaskId,
    /// The child.
    pub to: TaskId,
}

/// A task and its neighbours.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Tasks within reach, by id.
    pub tasks: BTreeMap<TaskId, GraphTask>,
    /// Parents out of reach, of which nothing is told.
    pub unseen: BTreeSet<TaskId>,
    /// By their ends, and the outcome of the parent that they wait for.
    pub links: BTreeMap<GraphLink, ParentOutcome>,
    /// Whether that is all.
    pub is_complete: bool,
}

/// Links of one level.
struct Links {
    known: Vec<(GraphLink, ParentOutcome)>,
    /// Whether there are no more.
    is_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Parents,
    Children,
}

impl SqlStore {
    /// The neighbours of a task of this tenant within reach, up to three links each way and 100 tasks, as of `now`
    /// (ms). Nothing when the task itself is out of reach.
    pub async fn task_graph(&self, access_scope: &AccessScope, task: TaskId, now: i64) -> Result<Option<Graph>> {
        let mut graph = Graph { is_complete: true, ..Graph::default() };
        let Some(of) =
            self.graph_tasks(&[task], now).await?.into_iter().find(|of| access_scope.has(of.tenant_id, of.app_id))
        else {
            return Ok(None);
        };
        let tenant_id = of.tenant_id;
        graph.tasks.insert(task, of);
        for way in [Direction::Parents, Direction::Children] {
            let mut edge: BTreeSet<TaskId> = [task].into();
            for _ in 0..LEVELS {
                edge = self.walk(&mut graph, way, &edge, (access_scope, tenant_id, now)).await?;
            }
            // What is still there to walk on from may have further neighbours.
            let beyond = self.links(way, &edge, tenant_id).await?;
            graph.is_complete &= beyond.known.iter().all(|(link, _)| graph.links.contains_key(link));
        }
        Ok(Some(graph))
    }

    /// Takes one more level into the graph; the tasks that are new.
    async fn walk(
        &self,
        graph: &mut Graph,
        way: Direction,
        edge: &BTreeSet<TaskId>,
        (access_scope, tenant_id, now): (&AccessScope, TenantId, i64),
    ) -> Result<BTreeSet<TaskId>> {
        let Links { known: links, is_all } = self.links(way, edge, tenant_id).await?;
        graph.is_complete &= is_all;
        let further = |link: &GraphLink| if way == Direction::Parents { link.from } else { link.to };
        let is_new = |id: &TaskId| !graph.tasks.contains_key(id) && !graph.unseen.contains(id);
        let new: BTreeSet<TaskId> = links.iter().map(|(link, _)| further(link)).filter(is_new).collect();
        let room = GRAPH_TASKS_MAX.saturating_sub(graph.tasks.len() + graph.unseen.len());
        graph.is_complete &= new.len() <= room;
        let new: Vec<TaskId> = new.into_iter().take(room).collect();
        let mut found = BTreeSet::new();
        for task in self.graph_tasks(&new, now).await? {
            if access_scope.has(task.tenant_id, task.app_id) {
                found.insert(task.id);
                graph.tasks.insert(task.id, task);
            } else if way == Direction::Parents {
                graph.unseen.insert(task.id);
            }
        }
        for (link, on) in links {
            let id = further(&link);
            if graph.tasks.contains_key(&id) || graph.unseen.contains(&id) {
                graph.links.insert(link, on);
            }
        }
        Ok(found)
    }

    /// Links of a tenant that lead on from these tasks.
    async fn links(&self, way: Direction, from: &BTreeSet<TaskId>, tenant_id: TenantId) -> Result<Links> {
        if from.is_empty() {
            return Ok(Links { known: Vec::new(), is_all: true });
        }
        let batch = self.backend.rows(1, &[("id", Kind::Big)]);
        let near = if way == Direction::Parents { "child_id" } else { "parent_id" };
        let text = format!(
            "SELECT p.parent_id, p.child_id, p.on_outcome FROM {batch} JOIN task_parent p ON p.{near} = v.n_id WHERE \
             p.tenant_id = {{2}} ORDER BY p.id LIMIT {LINKS_MAX}"
        );
        let from = list(ACTION, from.iter())?;
        let found: Vec<(TaskId, TaskId, String)> =
            self.query(ACTION, &Sql::new(self.backend, &text), [from.into(), tenant_id.into()]).await?;
        let is_all = found.len() < LINKS_MAX;
        // What a later release wrote is not shown.
        let known = found.into_iter().filter_map(|(from, to, on)| Some((GraphLink { from, to }, known_outcome(on)?)));
        Ok(Links { known: known.collect(), is_all })
    }

    async fn graph_tasks(&self, ids: &[TaskId], now: i64) -> Result<Vec<GraphTask>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.backend.rows(1, &[("id", Kind::Big)]);
        // The last run by the index of a task's fires, in its order whole, whatever became of it.
        let text = format!(
            "SELECT t.id, t.tenant_id, t.app_id, t.name, n.name AS tenant, a.name AS app, t.started, t.pause_note, l.status, \
             l.finished_at FROM {batch} JOIN task t ON t.id = v.n_id JOIN tenant n ON n.id = t.tenant_id JOIN app a ON \
             a.id = t.app_id LEFT JOIN task_log l ON l.id = (SELECT x.id FROM task_log x WHERE x.task_id = t.id AND \
             x.fire_time <= {{2}} AND x.parent_id = 0 ORDER BY x.task_id DESC, x.fire_time DESC, x.shard_index DESC LIMIT 1)"
        );
        let ids = list(ACTION, ids.iter())?;
        self.query(ACTION, &Sql::new(self.backend, &text), [ids.into(), now.into()]).await
    }
}

from_row!(GraphTask { id, tenant_id, app_id, name, tenant, app, state = state, last = last });

fn state(row: &QueryResult) -> Read<TaskState> {
    Ok(Activity { started: column(row, "started")?, pause_note: column(row, "pause_note")? }.state())
}

/// The last run's end, if there was one.
fn last(row: &QueryResult) -> Read<Option<(Status, i64)>> {
    let finished_at = i64::read(row, "finished_at")?.unwrap_or(0);
    Ok(Status::read(row, "status")?.map(|status| (status, finished_at)))
}
