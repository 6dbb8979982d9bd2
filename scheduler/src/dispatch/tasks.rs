//! Definitions of the tasks whose runs pass through this node.

use crate::domain::{Run, Task, TaskId};
use crate::store::{PlanStore, Result};
use dashmap::DashMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Definitions kept at most; when full, the cache starts again.
const TASKS_MAX: usize = 50_000;

/// A bounded cache. An entry is good for fresh runs of its own revision or an earlier one; a run
/// that is newer, or that was dispatched before, makes it read again.
pub struct TaskCache<S: ?Sized> {
    store: Arc<S>,
    known: DashMap<TaskId, Arc<Task>>,
}

/// The definitions of some runs' tasks.
#[derive(Debug, Default)]
pub struct Definitions {
    found: HashMap<TaskId, Arc<Task>>,
    unreadable: HashSet<TaskId>,
}

impl Definitions {
    /// The task's, if it can be read.
    pub fn get(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.found.get(&id)
    }

    /// Whether the task is there, but this release cannot read it: its runs wait. A task that is neither this nor found
    /// was deleted.
    pub fn is_unreadable(&self, id: TaskId) -> bool {
        self.unreadable.contains(&id)
    }
}

impl<S: PlanStore + ?Sized> TaskCache<S> {
    /// Empty.
    pub fn new(store: Arc<S>) -> Self {
        Self { store, known: DashMap::new() }
    }

    /// The definitions of these runs' tasks, one statement for all that are missing.
    pub async fn of(&self, runs: &[Run]) -> Result<Definitions> {
        let mut found = HashMap::new();
        let mut unreadable = HashSet::new();
        let mut missing = Vec::new();
        // A run that was dispatched before may have outlived its definition: the stop or edit could
        // not cancel it then. A fresh one cannot: its row was cancelled with the edit.
        let repeated: HashSet<TaskId> = runs.iter().filter(|run| run.attempt > 0).map(|run| run.task_id).collect();
        for run in runs {
            if found.contains_key(&run.task_id) || missing.contains(&run.task_id) {
                continue;
            }
            let usable = |task: &Arc<Task>| !repeated.contains(&run.task_id) && task.revision >= run.revision;
            match self.known.get(&run.task_id).filter(|task| usable(task)) {
                Some(task) => drop(found.insert(run.task_id, Arc::clone(&task))),
                None => missing.push(run.task_id),
            }
        }
        if !missing.is_empty() {
            if self.known.len() + missing.len() > TASKS_MAX {
                self.known.clear();
            }
            let read = self.store.find_tasks(&missing).await?;
            unreadable.extend(read.unreadable);
            for task in read.tasks {
                let task = Arc::new(task);
                self.known.insert(task.id, Arc::clone(&task));
                found.insert(task.id, task);
            }
        }
        Ok(Definitions { found, unreadable })
    }
}
