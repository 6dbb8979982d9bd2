//! Attempts that ended and did not end their run: the log tells of the last one only.
//!
//! They are written in the transaction of the step that ends them, after it, so that only what the
//! step moved is kept; a batch without such a step sends nothing for them.

use super::dialect::{Dialect, Kind};

use super::row::from_row;
use super::sql::{DISPATCHED, RETRY};
use super::sql_store::Transaction;
use super::statement::Sql;
use super::values::to_json;
use super::{Result, SqlStore};
use crate::domain::{ExecutorId, LogId, NodeId, Reason, Status, TenantId};

/// Attempts kept of one run; older ones make room.
pub const ATTEMPTS_KEPT_MAX: i32 = 100;

/// Longest message that is kept, characters.
pub const MESSAGE_CHARS_MAX: usize = 1_000;

/// An attempt that is over, as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAttempt {
    /// Its number.
    pub number: i32,
    /// Who had it.
    pub executor_id: ExecutorId,
    /// Where that listened; empty when its row was gone.
    pub address: String,
    /// Node that dispatched it.
    pub node_id: NodeId,
    /// When it should have started, ms.
    pub due_time: i64,
    /// When it was dispatched, ms.
    pub dispatched_at: i64,
    /// When the handler was entered, ms; 0 when unknown or never.
    pub started_at: i64,
    /// When the handler ended, ms; 0 when unknown or never.
    pub finished_at: i64,
    /// What the run became by it: RETRY, or CANCELLED where a new definition took the run over.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// What is kept of a message, characters counted.
#[must_use]
pub fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARS_MAX).collect()
}

/// Ended by a guarded step (`Transition`).
const ENDED: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("version", Kind::Big),
    ("attempt", Kind::Int),
    ("due_time", Kind::Big),
    ("reason", Kind::Text),
    ("message", Kind::Text),
];

/// Refused, so that another executor gets the run (`RunDispatch`).
const REFUSED: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("version", Kind::Big),
    ("attempt", Kind::Int),
    ("executor_id", Kind::Big),
    ("dispatched_at", Kind::Big),
];

const LAST_KEPT: &[(&str, Kind)] = &[("id", Kind::Big), ("attempt", Kind::Int)];

const INSERT: &str = "INSERT INTO task_log_attempt (log_id, attempt, executor_id, address, node_id, due_time, \
     dispatched_at, started_at, finished_at, status, reason, message)";

const EXECUTOR: &str = "LEFT JOIN executor e ON e.id =";

statements!(
    KEEP_ENDED = |d| format!(
        "{INSERT} SELECT l.id, l.attempt, l.executor_id, COALESCE(e.address, ''), l.node_id, v.n_due_time, \
         l.dispatched_at, l.started_at, l.finished_at, l.status, l.reason, v.n_message FROM {} \
         task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 AND l.attempt = v.n_attempt \
         {EXECUTOR} l.executor_id WHERE +l.status = {RETRY} AND l.reason = v.n_reason {}",
        d.batch(1, ENDED),
        kept_already(d)
    ),
    KEEP_REFUSED = |d| format!(
        "{INSERT} SELECT l.id, v.n_attempt, v.n_executor_id, COALESCE(e.address, ''), l.node_id, l.due_time, \
         v.n_dispatched_at, 0, 0, {RETRY}, '{}', '' FROM {} task_log l ON l.id = v.n_id AND \
         l.version = v.n_version + 1 AND l.attempt = v.n_attempt + 1 {EXECUTOR} v.n_executor_id \
         WHERE +l.status = {DISPATCHED} {}",
        Reason::NotAccepted.as_str(),
        d.batch(1, REFUSED),
        kept_already(d)
    ),
    TRIM = trim,
    PURGE = |d| d.delete_from("task_log_attempt", &d.rows(1, &[("id", Kind::Big)]), "l.log_id = v.n_id"),
    OF_LOG = |_| {
        "SELECT a.attempt, a.executor_id, a.address, a.node_id, a.due_time, a.dispatched_at, a.started_at, \
         a.finished_at, a.status, a.reason, a.message FROM task_log_attempt a JOIN task_log l ON l.id = a.log_id \
         WHERE a.log_id = {1} AND l.tenant_id = {2} ORDER BY a.attempt DESC LIMIT {3}"
            .into()
    },
);

/// A step that is repeated keeps nothing twice.
fn kept_already(d: Dialect) -> String {
    d.or_ignore("task_log_attempt", "log_id, attempt")
}

/// Keeps the last attempts of runs that a new definition takes over: `fires` finds them, as the statement
/// of the take-over does.
pub(super) fn keep_given_up(d: Dialect, fires: &str, on: &str) -> String {
    format!(
        "{INSERT} SELECT l.id, l.attempt, l.executor_id, COALESCE(e.address, ''), l.node_id, l.due_time, l.dispatched_at, \
         l.started_at, l.finished_at, l.status, l.reason, '' FROM {fires} task_log l ON {on} {EXECUTOR} l.executor_id \
         WHERE l.attempt > 0 AND l.dispatched_at > 0 {}",
        kept_already(d)
    )
}

/// Deletes the logs for which `which` holds (columns without an alias), and the attempts kept of them.
pub(super) fn delete_logs(d: Dialect, which: &str) -> [Sql; 2] {
    let logs = format!("(SELECT id AS n_id FROM task_log WHERE {which}) v");
    let attempts = d.delete_from("task_log_attempt", &logs, "l.log_id = v.n_id");
    [attempts, format!("DELETE FROM task_log WHERE {which}")].map(|text| Sql::new(d, &text))
}

/// Deletes what is older than the last kept one of each log.
fn trim(d: Dialect) -> String {
    let last = d.rows(1, LAST_KEPT);
    let on = "l.log_id = v.n_id AND l.attempt <= v.n_attempt";
    d.delete_from("task_log_attempt", &last, on)
}

impl SqlStore {
    /// Makes room where a run has more than [`ATTEMPTS_KEPT_MAX`].
    pub(super) async fn trim_attempts(
        &self,
        tx: &Transaction<'_>,
        action: &'static str,
        last: &[(LogId, i32)],
    ) -> Result<()> {
        let old = last.iter().map(|(id, number)| (*id, number - ATTEMPTS_KEPT_MAX)).filter(|(_, number)| *number > 0);
        let old: Vec<(LogId, i32)> = old.collect();
        if !old.is_empty() {
            tx.execute(&TRIM, [to_json(action, &old)?.into()]).await?;
        }
        Ok(())
    }

    /// Attempts of a log of this tenant that did not end it, oldest first.
    pub async fn kept_attempts(&self, tenant_id: TenantId, log: LogId) -> Result<Vec<KeptAttempt>> {
        let values = [log.into(), tenant_id.into(), i64::from(ATTEMPTS_KEPT_MAX).into()];
        let mut kept: Vec<KeptAttempt> = self.query("list the attempts of a run", &OF_LOG, values).await?;
        kept.reverse();
        Ok(kept)
    }
}

from_row!(KeptAttempt {
    number: "attempt",
    executor_id,
    address,
    node_id,
    due_time,
    dispatched_at,
    started_at,
    finished_at,
    status,
    reason,
    message,
});
