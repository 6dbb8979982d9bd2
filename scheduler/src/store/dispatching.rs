//! QUEUED rows → executors, and guarded steps out of the hot path.

use super::attempts::{KEEP_ENDED, KEEP_REFUSED, cut, delete_logs};
use super::dialect::Kind;
use super::planning::bucket;
use super::revoking::KEEP_RUNNING;
use super::sql::{DISPATCHED, ID_VERSION, QUEUED};
use super::sql_store::{Transaction, retrying};
use super::values::{clean, list, to_json};
use super::{DispatchStore, Result, RunDispatch, SqlStore, StoreError, StoreErrorKind};
use crate::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, Transition};
use crate::metrics::RUNS_ENDED;
use async_trait::async_trait;
use std::collections::HashSet;

statements!(
    DISPATCH = |d| {
        d.update_rows(
                "task_log",
                &format!(
                    "status = {DISPATCHED}, node_id = {{2}}, executor_id = v.n_executor_id, dispatched_at = v.n_dispatched_at, \
                     attempt = l.attempt + 1, version = l.version + 1, started_at = 0, finished_at = 0, reason = '', stopping = ''"
                ),
                DISPATCH_ROW,
                &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status IN ({QUEUED}, {DISPATCHED})"),
            )
    },
    DISPATCHED_ROWS = |d| format!(
        "SELECT l.id FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
         WHERE +l.status = {DISPATCHED} AND l.node_id = {{2}} AND l.executor_id = v.n_executor_id \
         AND l.dispatched_at = v.n_dispatched_at",
        d.batch(1, DISPATCH_ROW)
    ),
    EXPAND_PARENT = |_| format!(
        "UPDATE task_log SET status = {DISPATCHED}, shard_total = {{3}}, dispatched_at = {{4}}, \
         attempt = attempt + 1, version = version + 1, reason = '' WHERE id = {{1}} AND version = {{2}} \
         AND status = {QUEUED}"
    ),
    IDS_TAKEN = |d| format!("SELECT id FROM task_log WHERE id IN {} LIMIT 1", d.ids(1)),
    INSERT_SHARDS = |d| format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, \
         bucket, fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, \
         dispatched_at, started_at, finished_at, reason, params, trigger_kind, seq, priority) \
         SELECT v.n_id, p.tenant_id, p.app_id, p.task_id, p.revision, p.id, v.n_shard_index, p.shard_total, \
         v.n_bucket, p.fire_time, p.due_time, {DISPATCHED}, 1, 1, 0, {{2}}, v.n_executor_id, {{3}}, {{3}}, 0, 0, \
         '', p.params, p.trigger_kind, p.seq, p.priority FROM {} task_log p ON p.id = v.n_parent_id",
        d.batch(
            1,
            &[
                ("id", Kind::Big),
                ("parent_id", Kind::Big),
                ("shard_index", Kind::Int),
                ("bucket", Kind::Int),
                ("executor_id", Kind::Big)
            ]
        )
    ),
    CHANGE = |d| d.update_rows(
        "task_log",
        "status = v.n_status, due_time = v.n_due_time, failures = v.n_failures, reason = v.n_reason, \
         message = COALESCE(v.n_message, l.message), started_at = CASE WHEN v.n_started_at > 0 THEN \
         v.n_started_at ELSE l.started_at END, finished_at = v.n_finished_at, version = l.version + 1",
        CHANGE_ROW,
        "l.id = v.n_id AND l.version = v.n_version",
    ),
    CHANGED = |d| format!(
        "SELECT l.id FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
         AND +l.status = v.n_status AND l.reason = v.n_reason",
        d.batch(1, CHANGE_ROW)
    ),
    NOTE_STOP = |d| d.update_rows(
        "task_log",
        "stopping = {2}, version = l.version + 1",
        ID_VERSION,
        &format!("l.id = v.n_id AND l.version = v.n_version AND +l.status = {DISPATCHED}"),
    ),
    NOTED_STOP = |d| format!(
        "SELECT l.id FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version + 1 \
         WHERE +l.status = {DISPATCHED} AND l.stopping = {{2}}",
        d.batch(1, ID_VERSION)
    ),
);

const DISPATCH_ROW: &[(&str, Kind)] =
    &[("id", Kind::Big), ("version", Kind::Big), ("executor_id", Kind::Big), ("dispatched_at", Kind::Big)];

const CHANGE_ROW: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("version", Kind::Big),
    ("status", Kind::Int),
    ("due_time", Kind::Big),
    ("failures", Kind::Int),
    ("reason", Kind::Text),
    ("message", Kind::Text),
    ("started_at", Kind::Big),
    ("finished_at", Kind::Big),
];

#[async_trait]
impl DispatchStore for SqlStore {
    async fn dispatch(&self, node: NodeId, items: &[RunDispatch]) -> Result<HashSet<LogId>> {
        const ACTION: &str = "dispatch runs";
        if items.is_empty() {
            return Ok(HashSet::new());
        }
        let key = |item: &RunDispatch| (item.id, item.version, item.executor_id, item.dispatched_at);
        let keys: Vec<_> = items.iter().map(key).collect();
        let keys = to_json(ACTION, &keys)?;
        let moved = if items.iter().any(|item| item.refused.is_some()) {
            self.dispatch_keeping(ACTION, &keys, node, items).await?
        } else {
            self.execute(ACTION, &DISPATCH, [keys.clone().into(), node.into()]).await?
        };
        if moved == items.len() as u64 {
            return Ok(items.iter().map(|item| item.id).collect());
        }
        let read = self.query(ACTION, &DISPATCHED_ROWS, [keys.into(), node.into()]);
        Ok(read.await?.into_iter().collect())
    }

    async fn dispatch_shards(&self, node: NodeId, parent: &Run, shards: &[Run], now: i64) -> Result<bool> {
        let done = retrying(|| self.dispatch_shards_once(node, parent, shards, now)).await;
        match done {
            Err(error) if error.kind() == StoreErrorKind::Duplicate && self.is_an_id_taken(shards).await? => {
                // Not the places of its shards are taken. The next try makes other ids.
                Err(StoreError::new(StoreErrorKind::Contention, error.action(), error.to_string()))
            }
            done => done,
        }
    }

    async fn note_stop(&self, runs: &[(LogId, i64)], reason: Reason) -> Result<HashSet<LogId>> {
        const ACTION: &str = "note that runs must stop";
        if runs.is_empty() {
            return Ok(HashSet::new());
        }
        let keys = to_json(ACTION, runs)?;
        let values = || [keys.clone().into(), reason.as_str().into()];
        if self.execute(ACTION, &NOTE_STOP, values()).await? == runs.len() as u64 {
            return Ok(runs.iter().map(|(id, _)| *id).collect());
        }
        let read = self.query(ACTION, &NOTED_STOP, values());
        Ok(read.await?.into_iter().collect())
    }

    async fn settle_revoked(&self, runs: &[Run], now: i64) -> Result<HashSet<LogId>> {
        if runs.is_empty() {
            return Ok(HashSet::new());
        }
        let (moved, changes) = retrying(|| self.settle_revoked_once(runs, now)).await?;
        count_ended(changes.iter());
        Ok(moved)
    }

    async fn leave_running(&self, runs: &[(LogId, i64)]) -> Result<()> {
        const ACTION: &str = "leave revoked runs that have started";
        if runs.is_empty() {
            return Ok(());
        }
        self.execute(ACTION, &KEEP_RUNNING, [to_json(ACTION, runs)?.into()]).await.map(drop)
    }

    async fn change(&self, changes: &[Transition]) -> Result<HashSet<LogId>> {
        const ACTION: &str = "change the state of runs";
        if changes.is_empty() {
            return Ok(HashSet::new());
        }
        let keys = to_json(ACTION, &changes.iter().map(change_row).collect::<Vec<_>>())?;
        let moved = if changes.iter().any(|change| change.ended.is_some()) {
            self.change_keeping(ACTION, &keys, changes).await?
        } else {
            self.execute(ACTION, &CHANGE, [keys.clone().into()]).await?
        };
        let moved: HashSet<LogId> = if moved == changes.len() as u64 {
            changes.iter().map(|change| change.id).collect()
        } else {
            let read = self.query(ACTION, &CHANGED, [keys.into()]);
            read.await?.into_iter().collect()
        };
        count_ended(changes.iter().filter(|change| moved.contains(&change.id)));
        Ok(moved)
    }
}

fn count_ended<'a>(changes: impl Iterator<Item = &'a Transition>) {
    let ended = changes.filter(|change| change.to.is_terminal());
    RUNS_ENDED.add(ended.map(|change| (change.app_id, change.to, change.reason, 1)));
}

type EndedRow = (LogId, i64, i32, i64, &'static str, String);
type RefusedRow = (LogId, i64, i32, ExecutorId, i64);

type ChangeRow = (LogId, i64, i16, i64, i32, &'static str, Option<String>, i64, i64);

pub(super) fn change_row(change: &Transition) -> ChangeRow {
    (
        change.id,
        change.version,
        change.to as i16,
        change.due_time,
        change.failures,
        change.reason.as_str(),
        (!change.message.is_empty()).then(|| clean(&change.message)),
        change.started_at,
        change.finished_at,
    )
}

impl SqlStore {
    async fn is_an_id_taken(&self, runs: &[Run]) -> Result<bool> {
        const ACTION: &str = "look for ids that are taken";
        let ids = list(ACTION, runs.iter().map(|run| &run.id))?;
        let found: Vec<LogId> = self.query(ACTION, &IDS_TAKEN, [ids.into()]).await?;
        Ok(!found.is_empty())
    }

    async fn dispatch_shards_once(&self, node: NodeId, parent: &Run, shards: &[Run], now: i64) -> Result<bool> {
        const ACTION: &str = "dispatch shards";
        let tx = self.begin(ACTION).await?;
        let total = i64::try_from(shards.len()).unwrap_or(i64::MAX);
        let values = [parent.id.into(), parent.version.into(), total.into(), now.into()];
        if tx.execute(&EXPAND_PARENT, values).await? == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        if parent.attempt > 0 {
            // A new definition took this fire over: the shards that the old one gave up unstarted
            // make room.
            let which = "task_id = {1} AND fire_time = {2} AND parent_id = {3} AND status = {4}";
            let cancelled = Status::Cancelled as i32;
            let values = || [parent.task_id.into(), parent.fire_time.into(), parent.id.into(), cancelled.into()];
            for sql in delete_logs(self.backend, which) {
                tx.execute(&sql, values()).await?;
            }
        }
        let rows: Vec<_> =
            shards.iter().map(|run| (run.id, parent.id, run.shard_index, bucket(run.id), run.executor_id)).collect();
        tx.execute(&INSERT_SHARDS, [to_json(ACTION, &rows)?.into(), node.into(), now.into()]).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Steps that end attempts and not their runs; answers how many rows moved.
    async fn change_keeping(&self, action: &'static str, keys: &str, changes: &[Transition]) -> Result<u64> {
        retrying(|| async {
            let tx = self.begin(action).await?;
            let moved = tx.execute(&CHANGE, [keys.into()]).await?;
            if moved == 0 {
                // What an earlier try did, it kept, too.
                tx.rollback().await?;
                return Ok(0);
            }
            self.keep_ended(&tx, changes).await?;
            tx.commit().await?;
            Ok(moved)
        })
        .await
    }

    /// Keeps the attempts that these steps end without ending their runs, after they are taken.
    pub(super) async fn keep_ended(&self, tx: &Transaction<'_>, changes: &[Transition]) -> Result<()> {
        let of = |change: &Transition| -> Option<EndedRow> {
            let last = change.ended?;
            let (reason, message) = (change.reason.as_str(), clean(&cut(&change.message)));
            Some((change.id, change.version, last.number, last.due_time, reason, message))
        };
        let ended: Vec<EndedRow> = changes.iter().filter_map(of).collect();
        if ended.is_empty() {
            return Ok(());
        }
        let last = ended.iter().map(|row| (row.0, row.2)).collect::<Vec<_>>();
        tx.execute(&KEEP_ENDED, [to_json(tx.action(), &ended)?.into()]).await?;
        self.trim_attempts(tx, tx.action(), &last).await
    }

    /// Dispatches runs of which some were refused by another executor; answers how many rows moved.
    async fn dispatch_keeping(
        &self,
        action: &'static str,
        keys: &str,
        node: NodeId,
        items: &[RunDispatch],
    ) -> Result<u64> {
        let of = |item: &RunDispatch| -> Option<RefusedRow> {
            let refused = item.refused?;
            Some((item.id, item.version, refused.number, refused.executor_id, refused.dispatched_at))
        };
        let refused: Vec<RefusedRow> = items.iter().filter_map(of).collect();
        let last = refused.iter().map(|row| (row.0, row.2)).collect::<Vec<_>>();
        let refused = to_json(action, &refused)?;
        retrying(|| async {
            let tx = self.begin(action).await?;
            let moved = tx.execute(&DISPATCH, [keys.into(), node.into()]).await?;
            if moved == 0 {
                tx.rollback().await?;
                return Ok(0);
            }
            tx.execute(&KEEP_REFUSED, [refused.clone().into()]).await?;
            self.trim_attempts(&tx, action, &last).await?;
            tx.commit().await?;
            Ok(moved)
        })
        .await
    }
}
