//! How the runs of one task affect each other, as plain data.
//!
//! Every task with a run in the table has an entry in a vector, found by its id when a run is
//! accepted. Starting and ending a run then only counts; the data of tasks that take *turns* is
//! kept apart, so that a task whose runs are all concurrent never touches it.

use crate::ready::Ticket;
use crate::run::Run;
use carillon_protocol::RunKey;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Index of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskAt(u32);

struct Task {
    id: i64,
    /// Runs in the table, in whatever state.
    runs: u32,
    /// Started, not ended.
    running: u32,
    turns: Option<Box<Turns>>,
}

/// Whose turn it is.
#[derive(Default)]
struct Turns {
    /// The exclusive run that has started.
    running: Option<Arc<Run>>,
    /// The exclusive run whose turn is next: it waits for a slot only.
    next: Option<Ticket>,
    /// Due, waiting for their turn.
    waiting: BTreeSet<Ticket>,
}

/// The tasks of all runs in the table.
#[derive(Default)]
pub(crate) struct Tasks {
    by_id: HashMap<i64, TaskAt>,
    places: Vec<Task>,
    free: Vec<TaskAt>,
}

impl Tasks {
    /// Tasks with a run in the table; and places of tasks that nobody finds any more.
    #[cfg(feature = "simulation")]
    pub(crate) fn sizes(&self) -> [(&'static str, usize); 2] {
        let lost = (self.places.len() - self.free.len()).abs_diff(self.by_id.len());
        [("tasks", self.by_id.len()), ("lost places of tasks", lost)]
    }

    /// Counts a run in.
    pub(crate) fn enter(&mut self, id: i64, exclusive: bool) -> TaskAt {
        let at = match self.by_id.get(&id) {
            Some(at) => *at,
            None => self.place(id),
        };
        let task = self.at(at);
        task.runs += 1;
        if exclusive && task.turns.is_none() {
            task.turns = Some(Box::default());
        }
        at
    }

    fn place(&mut self, id: i64) -> TaskAt {
        let task = Task { id, runs: 0, running: 0, turns: None };
        let at = if let Some(at) = self.free.pop() {
            *self.at(at) = task;
            at
        } else {
            self.places.push(task);
            TaskAt(self.places.len() as u32 - 1)
        };
        self.by_id.insert(id, at);
        at
    }

    /// Counts a run out; the last one frees the entry.
    pub(crate) fn leave(&mut self, at: TaskAt) {
        let task = self.at(at);
        task.runs -= 1;
        if task.runs == 0 {
            task.turns = None;
            let id = task.id;
            self.by_id.remove(&id);
            self.free.push(at);
        }
    }

    /// A run has started; `exclusive` when it takes turns.
    pub(crate) fn started(&mut self, at: TaskAt, exclusive: Option<&Arc<Run>>) {
        let task = self.at(at);
        task.running += 1;
        if let (Some(run), Some(turns)) = (exclusive, &mut task.turns) {
            turns.running = Some(Arc::clone(run));
        }
    }

    /// A started run has ended.
    pub(crate) fn ended(&mut self, at: TaskAt, key: RunKey) {
        let task = self.at(at);
        task.running -= 1;
        if let Some(turns) = &mut task.turns
            && turns.running.as_ref().is_some_and(|run| run.key() == key)
        {
            turns.running = None;
        }
    }

    pub(crate) fn id(&self, at: TaskAt) -> i64 {
        self.places[at.0 as usize].id
    }

    /// Started, not ended.
    pub(crate) fn running(&self, at: TaskAt) -> usize {
        self.places[at.0 as usize].running as usize
    }

    /// The exclusive run that has started.
    pub(crate) fn running_exclusively(&self, at: TaskAt) -> Option<&Arc<Run>> {
        self.turns(at)?.running.as_ref()
    }

    pub(crate) fn find(&self, id: i64) -> Option<TaskAt> {
        self.by_id.get(&id).copied()
    }

    /// Due runs that wait for their turn, or have it and wait for a slot; in their order.
    pub(crate) fn waiting(&self, at: TaskAt) -> impl Iterator<Item = Ticket> {
        self.turns(at).into_iter().flat_map(|turns| turns.next.iter().chain(&turns.waiting)).copied()
    }

    /// Lets a run wait for its turn; before one that is due later and has not started yet.
    pub(crate) fn wait(&mut self, at: TaskAt, ticket: Ticket) {
        if let Some(turns) = &mut self.at(at).turns
            && turns.next != Some(ticket)
        {
            turns.waiting.insert(ticket);
            if turns.next.is_some_and(|next| ticket < next) {
                turns.waiting.extend(turns.next.take());
            }
        }
    }

    /// Takes a run out of the order.
    pub(crate) fn give_up(&mut self, at: TaskAt, ticket: Ticket) {
        if let Some(turns) = &mut self.at(at).turns {
            turns.waiting.remove(&ticket);
            if turns.next == Some(ticket) {
                turns.next = None;
            }
        }
    }

    /// The run whose turn it has become: nothing runs and no other is about to.
    pub(crate) fn call_next(&mut self, at: TaskAt) -> Option<Ticket> {
        let task = self.at(at);
        let turns = task.turns.as_mut().filter(|turns| task.running == 0 && turns.next.is_none())?;
        turns.next = turns.waiting.pop_first();
        turns.next
    }

    /// Uses up a turn. Returns whether it was this run's.
    pub(crate) fn take_turn(&mut self, at: TaskAt, ticket: Ticket) -> bool {
        self.at(at).turns.as_mut().is_some_and(|turns| turns.next.take_if(|next| *next == ticket).is_some())
    }

    fn turns(&self, at: TaskAt) -> Option<&Turns> {
        self.places[at.0 as usize].turns.as_deref()
    }

    fn at(&mut self, at: TaskAt) -> &mut Task {
        &mut self.places[at.0 as usize]
    }
}
