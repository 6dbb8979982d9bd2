//! Parents of tasks.

use super::refuse;
use super::rows::{Link, State};
use carillon::domain::links::cycle;
use carillon::domain::task::TaskSpec;
use carillon::domain::{LogId, TaskId};
use carillon::store::{Result, StoreErrorKind};

const ACTION: &str = "set the parents of a task";

impl State {
    /// Makes the task's parents those of its definition.
    pub(super) fn set_parents(&mut self, child: TaskId, spec: &TaskSpec) -> Result<()> {
        self.links.retain(|link| link.child != child);
        for (at, link) in spec.parents.iter().enumerate() {
            let Some(parent) = self.find_parent(child, &link.task) else {
                let detail = format!("parents[{at}].task: there is no task `{}`", link.task);
                return refuse(StoreErrorKind::Invalid, ACTION, detail);
            };
            self.links.push(Link { child, parent, on: link.on });
            self.watch_open_runs(parent);
        }
        Ok(())
    }

    /// Refuses a graph in which the task would follow itself.
    pub(super) fn refuse_cycle(&self, child: TaskId) -> Result<()> {
        let links: Vec<(TaskId, TaskId)> = self.links.iter().map(|link| (link.child, link.parent)).collect();
        let Some(way) = cycle(&links, child) else { return Ok(()) };
        let way: Vec<&str> = way.iter().map(|id| self.tasks[id].view.spec.name.as_str()).collect();
        let detail = format!("parents: a task cannot follow itself: {}", way.join(" after "));
        refuse(StoreErrorKind::Invalid, ACTION, detail)
    }

    fn find_parent(&self, child: TaskId, named: &str) -> Option<TaskId> {
        let child = &self.tasks[&child].view;
        let (app, name) = named.split_once('/').unwrap_or((&child.app, named));
        let mut tasks = self.tasks.values().map(|row| &row.view);
        let found = tasks.find(|task| task.tenant == child.tenant && task.app == app && task.spec.name == name);
        found.map(|task| task.id)
    }

    /// Runs of a new parent that were written before it was one count, too.
    fn watch_open_runs(&mut self, parent: TaskId) {
        let open = self.logs.values().map(|row| &row.run);
        let open =
            open.filter(|run| run.task_id == parent && run.parent_id == LogId::NONE && !run.status.is_terminal());
        for log in open.map(|run| run.id).collect::<Vec<_>>() {
            self.watch(log);
        }
    }
}
