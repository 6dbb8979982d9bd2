//! Definitions of the tasks whose runs pass through this node.

use crate::domain::recent::Recent;
use crate::domain::{Run, Task, TaskId};
use crate::store::{PlanStore, Result};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory for definitions, bytes (about 50,000 of usual size): those of runs that come up again soon.
const TASKS_BYTES_MAX: usize = 96 << 20;

/// A bounded cache. An entry is good for fresh runs of its own revision. A run of another one, or one that was dispatched
/// before, makes it read again: also an earlier one, since the database may have lost the edit (a standby without the last
/// commits, a backup).
pub struct TaskCache<S: ?Sized> {
    store: Arc<S>,
    known: Mutex<Recent<TaskId, Arc<Task>>>,
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
        Self { store, known: Mutex::new(Recent::new(TASKS_BYTES_MAX)) }
    }

    /// The definitions of these runs' tasks, one statement for all that are missing.
    pub async fn of(&self, runs: &[Run]) -> Result<Definitions> {
        let (mut found, missing) = self.known_of(runs);
        let mut unreadable = HashSet::new();
        if !missing.is_empty() {
            let read = self.store.find_tasks(&missing).await?;
            unreadable.extend(read.unreadable);
            let mut known = self.lock();
            for task in read.tasks {
                let task = Arc::new(task);
                known.insert(task.id, Arc::clone(&task), task.weight_bytes());
                found.insert(task.id, task);
            }
        }
        Ok(Definitions { found, unreadable })
    }

    /// Those that are known, and the tasks of the others, each once.
    fn known_of(&self, runs: &[Run]) -> (HashMap<TaskId, Arc<Task>>, Vec<TaskId>) {
        // In the order of the tasks, so that the same runs ask the same.
        let mut needed: BTreeMap<TaskId, Option<i64>> = BTreeMap::new();
        for run in runs {
            // A run that was dispatched before may have outlived its definition: the stop or edit could
            // not cancel it then. A fresh one cannot: its row was cancelled with the edit.
            let revision = (run.attempt == 0).then_some(run.revision);
            let wanted = needed.entry(run.task_id).or_insert(revision);
            *wanted = wanted.filter(|wanted| Some(*wanted) == revision);
        }
        let (mut found, mut missing) = (HashMap::new(), Vec::new());
        let mut known = self.lock();
        for (id, revision) in needed {
            match known.get(id).filter(|task| Some(task.revision) == revision) {
                Some(task) => drop(found.insert(id, task)),
                None => missing.push(id),
            }
        }
        (found, missing)
    }

    fn lock(&self) -> MutexGuard<'_, Recent<TaskId, Arc<Task>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
