//! Results, and runs whose result does not come.

use super::dialect::{Dialect, Kind};
use super::row::from_row;
use super::rows::DISPATCHED_COLUMNS;
use super::sql::{CANCELLED, DISPATCHED, FAILED, HELD, ID, REVOCATIONS, SUCCEEDED};
use super::template::Template;
use super::values::{clean, list, to_json};
use super::{DispatchedRun, OutcomeStore, Place, Result, SqlStore, Suspect, Suspects};
use crate::domain::{ExecutorId, LogId, Owner, Reason, Status};
use crate::metrics::RUNS_ENDED;
use async_trait::async_trait;
use carillon_protocol::RunResult;

statements!(
    SUCCEED = |d| succeed(d, SUCCESS, "NULL", ""),
    SUCCEED_WITH_OUTPUT = |d| succeed(d, SUCCESS_WITH_OUTPUT, "v.n_output", ""),
    SUCCEED_WHOLE = |d| succeed(d, SUCCESS, "NULL", WHOLE),
    SUCCEED_WHOLE_WITH_OUTPUT = |d| succeed(d, SUCCESS_WITH_OUTPUT, "v.n_output", WHOLE),
    RUNS = |d| format!("SELECT {DISPATCHED_COLUMNS} FROM {} task_log l ON l.id = v.n_id", d.batch(1, ID)),
    RUNS_SCOPED = |d| format!(
        "SELECT {DISPATCHED_COLUMNS} FROM {} task_log l ON l.id = v.n_id AND +l.tenant_id = {{2}} AND +l.app_id = {{3}}",
        d.batch(1, ID)
    ),
    STALE = |d| format!(
        "INSERT INTO stale_result (id, log_id, attempt, executor_id, status, message, started_at, finished_at, \
         received_at) SELECT v.n_id, v.n_log, v.n_attempt, {{2}}, v.n_status, v.n_message, v.n_started_at, \
         v.n_finished_at, {{3}} FROM {}",
        d.rows(
            1,
            &[
                ("id", Kind::Big),
                ("log", Kind::Big),
                ("attempt", Kind::Int),
                ("status", Kind::Text),
                ("message", Kind::Text),
                ("started_at", Kind::Big),
                ("finished_at", Kind::Big)
            ]
        )
    ),
    PARENTS_OF = |d| format!(
        "SELECT DISTINCT l.parent_id FROM {} task_log l ON l.id = v.n_id WHERE l.parent_id > 0",
        d.batch(1, ID)
    ),
    SETTLE_PARENTS = settle_parents,
    OPEN_PARENTS = |d| format!(
        "SELECT l.due_time, l.id FROM task_log l WHERE {} AND l.shard_index = -1 AND \
         l.dispatched_at < {{1}} AND l.due_time >= {{2}} AND l.due_time < {{5}} AND (l.due_time > {{2}} OR l.id > {{3}}) \
         ORDER BY l.due_time, l.id LIMIT {{4}}",
        is_dispatched(d)
    ),
    STOPPING = |d| format!(
        "SELECT {DISPATCHED_COLUMNS} FROM task_log l WHERE {} AND l.stopping <> '' AND \
         l.shard_index >= 0 AND l.due_time >= {{1}} AND l.due_time < {{4}} AND (l.due_time > {{1}} OR l.id > {{2}}) \
         ORDER BY l.due_time, l.id LIMIT {{3}}",
        is_dispatched(d)
    ),
    SHARDS_TO_STOP = |d| format!(
        "SELECT {} FROM task_log p JOIN task_log l ON l.task_id = p.task_id AND l.fire_time = p.fire_time \
         AND l.parent_id = p.id WHERE {} AND p.shard_index = -1 AND p.stopping <> '' AND \
         +l.status < {SUCCEEDED} AND (l.stopping IN ('', {REVOCATIONS}) OR +l.status <> {DISPATCHED}) LIMIT {{1}}",
        DISPATCHED_COLUMNS.replace("l.stopping", "p.stopping"),
        is_dispatched(d).replace("l.", "p.")
    ),
    SUSPECTS_OF = |d| suspects(d, "IN"),
    SUSPECTS_EXCEPT = |d| suspects(d, "NOT IN"),
);

const SUCCESS: &[(&str, Kind)] =
    &[("id", Kind::Big), ("attempt", Kind::Int), ("started_at", Kind::Big), ("finished_at", Kind::Big)];

const SUCCESS_WITH_OUTPUT: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("attempt", Kind::Int),
    ("started_at", Kind::Big),
    ("finished_at", Kind::Big),
    ("output", Kind::Text),
];

/// No shards: their end ends nothing else.
const WHOLE: &str = " AND +l.parent_id = 0";

fn succeed(d: Dialect, columns: &[(&str, Kind)], output: &str, which: &str) -> String {
    d.update_rows(
        "task_log",
        &format!(
            "status = {SUCCEEDED}, started_at = v.n_started_at, finished_at = v.n_finished_at, output = {output}, \
             message = CASE WHEN l.trigger_kind <> 'schedule' AND l.failures = 0 THEN l.message ELSE NULL END, \
             version = l.version + 1, reason = '', stopping = ''"
        ),
        columns,
        &format!(
            "l.id = v.n_id AND l.attempt = v.n_attempt AND +l.status = {DISPATCHED} AND +l.tenant_id = {{2}} AND \
             +l.app_id = {{3}}{which}"
        ),
    )
}

/// Whether an executor has the run `l`, for the index of phases.
fn is_dispatched(d: Dialect) -> String {
    format!("{} = {HELD} AND l.status = {DISPATCHED}", d.phase())
}

/// Runs of these executors (or of all but these) that should have begun, or whose node is gone.
fn suspects(d: Dialect, which: &str) -> String {
    format!(
        "SELECT l.id, l.version, l.attempt, l.due_time, l.executor_id, l.dispatched_at FROM task_log l \
         WHERE {} AND l.due_time >= {{6}} AND l.due_time < {{8}} AND \
         (l.due_time > {{6}} OR l.id > {{7}}) AND l.shard_index >= 0 AND l.executor_id {which} {} AND (l.due_time < {{2}} \
         OR ({{3}} = 1 AND l.node_id NOT IN {})) ORDER BY l.due_time, l.id LIMIT {{5}}",
        is_dispatched(d),
        d.ids(1),
        d.ids(4)
    )
}

from_row!(Suspect { log: "id", version, attempt, due_time, executor_id, dispatched_at });

/// Counts the shards of each parent; only a parent none of whose shards is open moves. It has ended well if as many ended well
/// as it had: one that is missing can't tell how it ended, and will not. Nor is known how it ended if a shard was skipped because
/// it may have run before the database was restored.
fn settle_parents(d: Dialect) -> String {
    let counted = format!(
        "(SELECT p.id AS n_id, SUM(CASE WHEN s.status < {SUCCEEDED} THEN 1 ELSE 0 END) AS n_open, \
         SUM(CASE WHEN s.status = {SUCCEEDED} THEN 1 ELSE 0 END) AS n_good, \
         SUM(CASE WHEN s.reason = 'restored' THEN 1 ELSE 0 END) AS n_skipped, \
         MIN(CASE WHEN s.started_at > 0 THEN s.started_at END) AS n_started, MAX(s.finished_at) AS n_finished \
         FROM {} task_log p ON p.id = v.n_id AND +p.status = {DISPATCHED} AND p.shard_index = -1 \
         LEFT JOIN task_log s ON s.task_id = p.task_id AND s.fire_time = p.fire_time AND s.parent_id = p.id \
         GROUP BY p.id) v",
        d.batch(1, ID)
    );
    d.update_from("task_log",
        &format!(
            "status = CASE WHEN v.n_good = l.shard_total THEN {SUCCEEDED} WHEN v.n_skipped > 0 OR l.stopping <> '' THEN \
             {CANCELLED} ELSE {FAILED} END, reason = CASE WHEN v.n_good = l.shard_total THEN l.reason WHEN v.n_skipped > 0 \
             THEN 'restored' WHEN l.stopping <> '' THEN l.stopping ELSE 'shard_failed' END, \
             started_at = COALESCE(v.n_started, 0), \
             finished_at = CASE WHEN v.n_finished > 0 THEN v.n_finished ELSE {{2}} END, version = l.version + 1"
        ),
        &counted,
        &format!("l.id = v.n_id AND +l.status = {DISPATCHED} AND v.n_open = 0"),
    )
}

#[async_trait]
impl OutcomeStore for SqlStore {
    async fn succeed(&self, owner: Owner, results: &[&RunResult]) -> Result<u64> {
        self.succeed_by([&SUCCEED, &SUCCEED_WITH_OUTPUT], owner, results).await
    }

    async fn succeed_whole(&self, owner: Owner, results: &[&RunResult]) -> Result<u64> {
        self.succeed_by([&SUCCEED_WHOLE, &SUCCEED_WHOLE_WITH_OUTPUT], owner, results).await
    }

    async fn runs(&self, owner: Option<Owner>, ids: &[LogId]) -> Result<Vec<DispatchedRun>> {
        const ACTION: &str = "read runs";
        let ids = list(ACTION, ids.iter())?;
        match owner {
            None => self.query(ACTION, &RUNS, [ids.into()]).await,
            Some(owner) => {
                let values = [ids.into(), owner.tenant_id.into(), owner.app_id.into()];
                self.query(ACTION, &RUNS_SCOPED, values).await
            }
        }
    }

    async fn record_stale(&self, executor_id: ExecutorId, results: &[&RunResult], ids: &[i64], now: i64) -> Result<()> {
        const ACTION: &str = "record stale results";
        let rows: Vec<_> = results
            .iter()
            .zip(ids)
            .map(|(result, id)| {
                (
                    id,
                    result.log,
                    result.attempt,
                    result.status,
                    clean(&result.message),
                    result.started_at,
                    result.finished_at,
                )
            })
            .collect();
        let values = [to_json(ACTION, &rows)?.into(), executor_id.into(), now.into()];
        self.execute(ACTION, &STALE, values).await.map(drop)
    }

    async fn parents_of(&self, ids: &[LogId]) -> Result<Vec<LogId>> {
        const ACTION: &str = "find the parents of shards";
        let ids = list(ACTION, ids.iter())?;
        self.query(ACTION, &PARENTS_OF, [ids.into()]).await
    }

    async fn settle_parents(&self, parents: &[LogId], now: i64) -> Result<u64> {
        const ACTION: &str = "settle sharded runs";
        if parents.is_empty() {
            return Ok(0);
        }
        let ids = list(ACTION, parents.iter())?;
        self.execute(ACTION, &SETTLE_PARENTS, [ids.into(), now.into()]).await
    }

    async fn open_parents(&self, before: i64, until: i64, after: Place, limit: u64) -> Result<Vec<Place>> {
        let values = [before.into(), after.0.into(), after.1.into(), limit.into(), until.into()];
        self.query("read open sharded runs", &OPEN_PARENTS, values).await
    }

    async fn stopping(&self, until: i64, after: Place, limit: u64) -> Result<Vec<DispatchedRun>> {
        let values = [after.0.into(), after.1.into(), limit.into(), until.into()];
        self.query("read runs that must stop", &STOPPING, values).await
    }

    async fn shards_to_stop(&self, limit: u64) -> Result<Vec<DispatchedRun>> {
        self.query("read shards that must stop", &SHARDS_TO_STOP, [limit.into()]).await
    }

    async fn suspects(&self, which: &Suspects) -> Result<Vec<Suspect>> {
        const ACTION: &str = "read runs that may be lost";
        let (sql, ids) = if which.executors.is_empty() {
            (&SUSPECTS_EXCEPT, list(ACTION, &which.except)?)
        } else {
            (&SUSPECTS_OF, list(ACTION, &which.executors)?)
        };
        let by_dead_nodes = i32::from(!which.or_not_by.is_empty());
        let values = [
            ids.into(),
            which.due_before.into(),
            by_dead_nodes.into(),
            list(ACTION, &which.or_not_by)?.into(),
            which.limit.into(),
            which.after.0.into(),
            which.after.1.into(),
            which.until.into(),
        ];
        self.query(ACTION, sql, values).await
    }
}

impl SqlStore {
    async fn succeed_by(
        &self,
        [plain, with_output]: [&'static Template; 2],
        owner: Owner,
        results: &[&RunResult],
    ) -> Result<u64> {
        const ACTION: &str = "record successes";
        if results.is_empty() {
            return Ok(0);
        }
        let values = |rows: String| [rows.into(), owner.tenant_id.into(), owner.app_id.into()];
        let moved = if results.iter().all(|result| result.output.is_empty()) {
            let row = |result: &&RunResult| (result.log, result.attempt, result.started_at, result.finished_at);
            let rows = to_json(ACTION, &results.iter().map(row).collect::<Vec<_>>())?;
            self.execute(ACTION, plain, values(rows)).await?
        } else {
            let row = |result: &&RunResult| {
                let output = (!result.output.is_empty()).then(|| clean(&result.output));
                (result.log, result.attempt, result.started_at, result.finished_at, output)
            };
            let rows = to_json(ACTION, &results.iter().map(row).collect::<Vec<_>>())?;
            self.execute(ACTION, with_output, values(rows)).await?
        };
        RUNS_ENDED.add([(owner.app_id, Status::Succeeded, Reason::None, moved)].into_iter());
        Ok(moved)
    }
}
