//! What the rows themselves forget, kept for those who judge a story afterwards. All times are true times, ms, where nothing
//! else is said.

use carillon::domain::task::TaskSpec;
use carillon::domain::{AppId, ExecutorId, LogId, NodeId, Reason, Status, TaskId, TenantId};
use std::collections::BTreeMap;

/// A task got a definition.
#[derive(Debug, Clone)]
pub struct Redefinition {
    /// Task.
    pub task: TaskId,
    /// Its revision from now on.
    pub revision: i64,
    /// Whether it fires.
    pub started: bool,
    /// The definition.
    pub spec: TaskSpec,
    /// From when on, by the clock of the node that did it, ms.
    pub from: i64,
    /// True time of the commit, ms.
    pub at: i64,
}

/// A dispatch, as it was when it happened.
#[derive(Debug, Clone, Copy)]
pub struct DispatchMark {
    /// Revision of the row.
    pub revision: i64,
    /// To whom.
    pub executor_id: ExecutorId,
    /// True time, ms.
    pub at: i64,
}

/// The last claim of a run before its first dispatch.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// When, by the clock of the node that claimed it, ms.
    pub at: i64,
    /// When it was due then, ms.
    pub due_time: i64,
    /// What its row said until then.
    pub reason: Reason,
}

/// The end of an attempt, as the database saw it.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Where the row went.
    pub to: Status,
    /// Why.
    pub reason: Reason,
    /// True time, ms.
    pub at: i64,
}

/// The end of a run was followed up.
#[derive(Debug, Clone, Copy)]
pub struct Follow {
    /// When.
    pub at: i64,
    /// How many of [`State::changes`](super::State::changes) had been made by then: of two commits in one millisecond the
    /// time does not tell which came first.
    pub changes: usize,
}

/// Whose runs at once are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounded {
    /// An app's.
    App(AppId),
    /// A tenant's.
    Tenant(TenantId),
}

/// An app or a tenant got another bound of runs at once.
#[derive(Debug, Clone, Copy)]
pub struct Rebound {
    /// Which.
    pub of: Bounded,
    /// As many at once; 0: as many as there are.
    pub most: i32,
    /// Version of the rules with it.
    pub version: i64,
    /// When.
    pub at: i64,
}

/// A node joined the cluster, or left it in good order.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// Which.
    pub node: NodeId,
    /// Whether it is there from now on.
    pub is_there: bool,
    /// When.
    pub at: i64,
}

/// A run was queued.
#[derive(Debug, Clone, Copy)]
pub struct Stay {
    /// With whom.
    pub node: NodeId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Since when.
    pub from: i64,
    /// Until when.
    pub to: i64,
}

/// A queued run had a permit.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// Which.
    pub log: LogId,
    /// Since when.
    pub from: i64,
    /// Until it was dispatched, or the permit counted no more.
    pub to: i64,
}

/// Every permit that a queued run had.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    all: Vec<Grant>,
    /// Places of those that go on.
    open: BTreeMap<LogId, usize>,
}

impl Grants {
    /// All of them, in the order of their beginnings.
    #[must_use]
    pub fn all(&self) -> &[Grant] {
        &self.all
    }

    pub(super) fn begin(&mut self, log: LogId, from: i64) {
        self.end(log, from);
        self.open.insert(log, self.all.len());
        self.all.push(Grant { log, from, to: i64::MAX });
    }

    pub(super) fn end(&mut self, log: LogId, at: i64) {
        if let Some(place) = self.open.remove(&log) {
            self.all[place].to = at;
        }
    }
}

/// Every stay in a queue.
#[derive(Debug, Clone, Default)]
pub struct Stays {
    all: Vec<Stay>,
    /// Places of those that go on.
    open: BTreeMap<LogId, usize>,
}

impl Stays {
    /// All of them, in the order of their beginnings.
    #[must_use]
    pub fn all(&self) -> &[Stay] {
        &self.all
    }

    pub(super) fn begin(&mut self, log: LogId, node: NodeId, tenant: TenantId, from: i64) {
        self.open.insert(log, self.all.len());
        self.all.push(Stay { node, tenant, from, to: i64::MAX });
    }

    pub(super) fn end(&mut self, log: LogId, at: i64) {
        if let Some(place) = self.open.remove(&log) {
            self.all[place].to = at;
        }
    }
}
