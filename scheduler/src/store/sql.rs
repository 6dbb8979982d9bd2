//! Words that several statements share.
//!
//! `+l.status`, `+l.tenant_id` keep SQLite from starting a batch at an index of states or tenants, which would read
//! the whole document once per row of the table; the way in is always the batch's own keys.

use super::dialect::Kind;
use crate::domain::Status;
use crate::domain::silence::SILENCE_MS;

pub const INIT: i16 = Status::Init as i16;
pub const QUEUED: i16 = Status::Queued as i16;
pub const DISPATCHED: i16 = Status::Dispatched as i16;
pub const RETRY: i16 = Status::Retry as i16;
pub const SUCCEEDED: i16 = Status::Succeeded as i16;
pub const FAILED: i16 = Status::Failed as i16;
pub const CANCELLED: i16 = Status::Cancelled as i16;

/// Reasons that [`Reason::is_given_up`](crate::domain::Reason::is_given_up).
pub const GIVEN_UP: &str = "'task_edited', 'task_stopped', 'task_paused'";
/// Reasons that [`Reason::is_revocation`](crate::domain::Reason::is_revocation).
pub const REVOCATIONS: &str = "'task_edited', 'task_stopped', 'task_paused', 'task_deleted'";
pub const EXPIRED: i16 = Status::Expired as i16;

/// Rows in one statement at most; larger batches are cut by the callers.
pub const BATCH_MAX: usize = 1_000;

/// A batch of ids.
pub const ID: &[(&str, Kind)] = &[("id", Kind::Big)];

/// A batch of runs, each with the version that was read.
pub const ID_VERSION: &[(&str, Kind)] = &[("id", Kind::Big), ("version", Kind::Big)];

/// The index of task logs by phase and due time.
pub const PHASE_INDEX: &str = "task_log_phase";
/// The phase of what is to be claimed: INIT and RETRY.
pub const WAITING: i16 = 0;
/// The phase of what a node or an executor has: QUEUED and DISPATCHED.
pub const HELD: i16 = 1;

/// The phase of runs of this status; `None` where they have none.
pub fn phase_of(status: Status) -> Option<i16> {
    match status {
        Status::Init | Status::Retry => Some(WAITING),
        Status::Queued | Status::Dispatched => Some(HELD),
        Status::Succeeded => None,
        bad => Some(bad as i16),
    }
}

/// Whether the database has heard of the node `{node}` lately. One that was restored from a backup gives nothing to nodes that have
/// not noticed that yet, and takes no new runs from them; they notice with their next heartbeat. A cluster that never had nodes has
/// nothing that may have run.
pub(super) fn is_known(node: usize) -> String {
    format!(
        "(EXISTS (SELECT 1 FROM node m WHERE m.id = {{{node}}} AND m.heartbeat_at >= {{now}} - {SILENCE_MS}) \
         OR NOT EXISTS (SELECT 1 FROM node))"
    )
}
