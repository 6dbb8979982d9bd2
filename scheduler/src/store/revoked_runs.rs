//! What becomes of runs that a change of their task revoked before they started. All of it is decided and written in one
//! transaction, by what the database says then: a crash before it, a repetition, or two nodes at once change nothing.

use super::DispatchedRun;
use super::attempts::delete_logs;
use super::dispatching::{CHANGE, CHANGED, change_row};
use super::error::Result;
use super::outcome::SETTLE_PARENTS;
use super::planning::{MOVE_BACK, TASKS, read_tasks};
use super::revoking::{UNCOUNT, WATCH_RUNS};
use super::rows::DISPATCHED_COLUMNS;
use super::sql::{CANCELLED, DISPATCHED, ID, ID_VERSION, QUEUED, REVOCATIONS};
use super::sql_store::{SqlStore, Transaction};
use super::template::Text as _;
use super::values::{list, to_json};
use crate::domain::revocation::{Revoked, is_sharded};
use crate::domain::task::Routing;
use crate::domain::{LogId, Reason, Run, Status, Task, TaskId, Transition};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

const ACTION: &str = "settle revoked runs";

statements!(
    // Sets nothing: it holds the rows, so that a change of a task comes before or after.
    HOLD_TASKS = |d| d.update_rows("task", "turn = l.turn", ID, "l.id = v.n_id"),
    CHANGED_AT = |d| format!("SELECT id, updated_at FROM task WHERE id IN {}", d.ids(1)),
    REVOKED = |d| format!(
        "SELECT {DISPATCHED_COLUMNS} FROM {} task_log l ON l.id = v.n_id AND l.version = v.n_version \
         WHERE +l.status IN ({QUEUED}, {DISPATCHED})",
        d.batch(1, ID_VERSION)
    ),
    PARENTS = |d| format!(
        "SELECT {DISPATCHED_COLUMNS} FROM {} task_log l ON l.id = v.n_id WHERE +l.status = {DISPATCHED}",
        d.batch(1, ID)
    ),
    // Parents that have shards beside those that were revoked.
    PARENTS_UNDER_WAY = |d| format!(
        "SELECT DISTINCT s.parent_id FROM {} task_log p ON p.id = v.n_id \
         JOIN task_log s ON s.task_id = p.task_id AND s.fire_time = p.fire_time AND s.parent_id = p.id \
         WHERE s.status <> {CANCELLED} OR s.reason NOT IN ({REVOCATIONS})",
        d.batch(1, ID)
    ),
    GO_ON = |d| d.update_rows(
        "task_log",
        // A parent may have been told to stop since it was read.
        &format!(
            "revision = (SELECT t.revision FROM task t WHERE t.id = l.task_id), \
             priority = (SELECT t.priority FROM task t WHERE t.id = l.task_id), \
             stopping = CASE WHEN l.stopping IN ({REVOCATIONS}) THEN '' ELSE l.stopping END"
        ),
        ID,
        "l.id = v.n_id",
    ),
);

/// What was read within the transaction.
struct Seen {
    tasks: HashMap<TaskId, Task>,
    changed_at: HashMap<TaskId, i64>,
    runs: Vec<DispatchedRun>,
    parents: HashMap<LogId, DispatchedRun>,
}

/// What follows from it.
#[derive(Default)]
struct Steps {
    changes: Vec<Transition>,
    /// They go on under the present definition.
    going_on: BTreeSet<LogId>,
    /// They end, and what revoked them.
    ended: Vec<(Run, Reason)>,
    /// Parents that must stop, of shards that end for that.
    stopped: BTreeSet<LogId>,
}

impl Steps {
    fn go_on(&mut self, run: &Run, due_time: i64) {
        let (to, reason) =
            if run.attempt > 0 { (Status::Retry, Reason::GivenBack) } else { (Status::Init, Reason::None) };
        // What a schedule named begins anew; another run has the tries that it has left.
        let failures = if run.trigger.is_scheduled() { 0 } else { run.failures };
        self.changes.push(Transition { due_time, failures, ..Transition::of(run, to, reason) });
        self.going_on.insert(run.id);
    }

    fn end(&mut self, row: &DispatchedRun, reason: Reason, now: i64) {
        self.changes.push(Transition { finished_at: now, ..Transition::of(&row.run, Status::Cancelled, reason) });
        if !reason.is_revocation() {
            // For its task it is a run like others: no change revoked it.
            self.stopped.extend(Some(row.run.parent_id).filter(|id| !id.is_none()));
            return;
        }
        let by = if row.stopping.is_revocation() { row.stopping } else { Reason::TaskEdited };
        self.ended.push((row.run.clone(), by));
    }
}

impl SqlStore {
    pub(super) async fn settle_revoked_once(
        &self,
        runs: &[Run],
        now: i64,
    ) -> Result<(HashSet<LogId>, Vec<Transition>)> {
        let tx = self.begin(ACTION).await?;
        let seen = self.see(&tx, runs).await?;
        let steps = decide(&seen, now);
        let mut moved = self.take(&tx, &steps.changes).await?;
        let Steps { changes, mut going_on, mut ended, mut stopped } = steps;
        stopped.retain(|id| seen.parents.contains_key(id));
        going_on.retain(|id| moved.contains(id));
        ended.retain(|(run, _)| moved.contains(&run.id));
        self.go_on(&tx, &going_on, &seen, &moved).await?;
        let (closed, closing) = self.close_parents(&tx, &ended, now).await?;
        moved.extend(closed.iter().map(|run| run.id));
        moved.extend(self.settle_stopped(&tx, &stopped, now).await?);
        let whole = ended.into_iter().map(|(run, _)| run).filter(|run| run.parent_id.is_none());
        let fires: Vec<Run> = whole.chain(closed).collect();
        self.uncount_untried(&tx, &fires, &seen).await?;
        self.make_room(&tx, &fires, &seen, now).await?;
        tx.commit().await?;
        let changes = changes.into_iter().chain(closing).filter(|change| moved.contains(&change.id)).collect();
        Ok((moved, changes))
    }

    async fn see(&self, tx: &Transaction<'_>, runs: &[Run]) -> Result<Seen> {
        let ids: BTreeSet<TaskId> = runs.iter().map(|run| run.task_id).collect();
        let ids = list(ACTION, &ids)?;
        tx.execute(&HOLD_TASKS, [ids.clone().into()]).await?;
        let rows = tx.fetch(TASKS.on(self.backend).bind([ids.clone().into()])).await?;
        let mut found = read_tasks(&rows)?;
        self.fill_calendars_in(tx, &mut found).await?;
        let changed_at: Vec<(TaskId, i64)> = tx.query(&CHANGED_AT, [ids.into()]).await?;
        let keys: Vec<(LogId, i64)> = runs.iter().map(|run| (run.id, run.version)).collect();
        let mut revoked: Vec<DispatchedRun> = tx.query(&REVOKED, [to_json(ACTION, &keys)?.into()]).await?;
        // Whether they go on says a node of a later release.
        revoked.retain(|row| !found.unreadable.contains(&row.run.task_id));
        let tasks: HashMap<TaskId, Task> = found.tasks.into_iter().map(|task| (task.id, task)).collect();
        revoked.retain(|row| is_revoked(row, tasks.get(&row.run.task_id)));
        let of: BTreeSet<LogId> = revoked.iter().map(|row| row.run.parent_id).filter(|id| !id.is_none()).collect();
        let parents = self.parents(tx, &of).await?;
        Ok(Seen { tasks, changed_at: changed_at.into_iter().collect(), runs: revoked, parents })
    }

    async fn parents(&self, tx: &Transaction<'_>, ids: &BTreeSet<LogId>) -> Result<HashMap<LogId, DispatchedRun>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let rows: Vec<DispatchedRun> = tx.query(&PARENTS, [list(ACTION, ids)?.into()]).await?;
        Ok(rows.into_iter().map(|row| (row.run.id, row)).collect())
    }

    /// Takes the steps; answers which were.
    async fn take(&self, tx: &Transaction<'_>, changes: &[Transition]) -> Result<HashSet<LogId>> {
        if changes.is_empty() {
            return Ok(HashSet::new());
        }
        let keys = to_json(ACTION, &changes.iter().map(change_row).collect::<Vec<_>>())?;
        let moved = tx.execute(&CHANGE, [keys.clone().into()]).await?;
        self.keep_ended(tx, changes).await?;
        if moved == changes.len() as u64 {
            return Ok(changes.iter().map(|change| change.id).collect());
        }
        Ok(tx.query(&CHANGED, [keys.into()]).await?.into_iter().collect())
    }

    async fn go_on(
        &self,
        tx: &Transaction<'_>,
        ids: &BTreeSet<LogId>,
        seen: &Seen,
        moved: &HashSet<LogId>,
    ) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let going_on = seen.runs.iter().filter(|row| ids.contains(&row.run.id));
        // The parent of shards that go on counts them by the same definition, unless it has gone its own way.
        let parents = going_on.map(|row| row.run.parent_id);
        let parents = parents.filter(|id| seen.parents.contains_key(id) && !moved.contains(id));
        let all: BTreeSet<LogId> = ids.iter().copied().chain(parents).collect();
        let all = list(ACTION, &all)?;
        tx.execute(&GO_ON, [all.clone().into()]).await?;
        // The present definition may have consequences that theirs had not.
        tx.execute(&WATCH_RUNS, [all.into()]).await.map(drop)
    }

    /// Ends the parents all of whose shards were revoked.
    async fn close_parents(
        &self,
        tx: &Transaction<'_>,
        ended: &[(Run, Reason)],
        now: i64,
    ) -> Result<(Vec<Run>, Vec<Transition>)> {
        let shards = ended.iter().filter(|(run, _)| !run.parent_id.is_none());
        let reasons: BTreeMap<LogId, Reason> = shards.map(|(run, by)| (run.parent_id, *by)).collect();
        let open: BTreeSet<LogId> = reasons.keys().copied().collect();
        // As they are after the steps above.
        let mut parents = self.parents(tx, &open).await?;
        if parents.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let busy: Vec<LogId> = tx.query(&PARENTS_UNDER_WAY, [list(ACTION, parents.keys())?.into()]).await?;
        parents.retain(|id, _| !busy.contains(id));
        let change = |row: &DispatchedRun| {
            let reason = reasons.get(&row.run.id).copied().unwrap_or(Reason::TaskEdited);
            Transition { finished_at: now, ..Transition::of(&row.run, Status::Cancelled, reason) }
        };
        let changes: Vec<Transition> = parents.values().map(change).collect();
        let moved = self.take(tx, &changes).await?;
        Ok((parents.into_values().map(|row| row.run).filter(|run| moved.contains(&run.id)).collect(), changes))
    }

    /// Ends those of these parents, which must stop, that have no open shard left; answers which.
    async fn settle_stopped(&self, tx: &Transaction<'_>, ids: &BTreeSet<LogId>, now: i64) -> Result<Vec<LogId>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        tx.execute(&SETTLE_PARENTS, [list(ACTION, ids)?.into(), now.into()]).await?;
        let open = self.parents(tx, ids).await?;
        Ok(ids.iter().copied().filter(|id| !open.contains_key(id)).collect())
    }

    /// Fires of a stopped task that never ran do not count for `max_fires`.
    async fn uncount_untried(&self, tx: &Transaction<'_>, fires: &[Run], seen: &Seen) -> Result<()> {
        let mut untried: BTreeMap<TaskId, i64> = BTreeMap::new();
        for run in fires.iter().filter(|run| run.trigger.is_scheduled() && run.failures == 0) {
            if seen.tasks.get(&run.task_id).is_some_and(|task| !task.is_started) {
                *untried.entry(run.task_id).or_default() += 1;
            }
        }
        for (task, count) in untried {
            tx.execute(&UNCOUNT, [task.into(), count.into()]).await?;
        }
        Ok(())
    }

    /// Where a task begins or ends to be sharded, what it gave up makes room for what is planned for that instant now.
    /// Runs that were started on request stay, so that the caller can see what became of them.
    async fn make_room(&self, tx: &Transaction<'_>, fires: &[Run], seen: &Seen, now: i64) -> Result<()> {
        for run in fires.iter().filter(|run| run.trigger.is_scheduled()) {
            let Some(task) = seen.tasks.get(&run.task_id).filter(|task| task.is_started) else { continue };
            if is_sharded(run) == (task.spec.routing == Routing::Sharding) {
                continue;
            }
            for sql in delete_logs(self.backend, "task_id = {1} AND fire_time = {2} AND (id = {3} OR parent_id = {3})")
            {
                tx.execute(&sql, [task.id.into(), run.fire_time.into(), run.id.into()]).await?;
            }
            // Never into the time before the present definition.
            if seen.changed_at.get(&task.id).is_some_and(|at| run.fire_time >= *at) {
                let first = task.schedule.next_after(run.fire_time - 1);
                let values = [task.id.into(), task.revision.into(), first.into(), now.into()];
                tx.execute(&MOVE_BACK, values).await?;
            }
        }
        Ok(())
    }
}

/// Whether a change of its task revoked it.
fn is_revoked(row: &DispatchedRun, task: Option<&Task>) -> bool {
    let is_outdated = task.is_none_or(|task| task.revision != row.run.revision);
    is_outdated || (row.run.status == Status::Dispatched && row.stopping.is_revocation())
}

fn decide(seen: &Seen, now: i64) -> Steps {
    // The kill of a sharded run is written down before its shards are told.
    let stopping = |row: &DispatchedRun| match seen.parents.get(&row.run.parent_id) {
        Some(parent) if parent.is_stopping() => parent.stopping,
        _ => row.stopping,
    };
    let fate = |row: &DispatchedRun| Revoked::of(&row.run, stopping(row), seen.tasks.get(&row.run.task_id));
    let mut going_on: BTreeMap<LogId, i32> = BTreeMap::new();
    for row in seen.runs.iter().filter(|row| matches!(fate(row), Revoked::GoesOn(_))) {
        *going_on.entry(row.run.parent_id).or_default() += 1;
    }
    // A sharded run none of whose shards has started begins again as a whole, with the executors that fit then.
    let whole = |row: &DispatchedRun| {
        seen.parents
            .get(&row.run.parent_id)
            .filter(|parent| going_on.get(&parent.run.id) == Some(&parent.run.shard_total))
    };
    let (mut steps, mut begun_again) = (Steps::default(), BTreeSet::new());
    for row in &seen.runs {
        match (fate(row), whole(row)) {
            (Revoked::Ends(reason), _) => steps.end(row, reason, now),
            (Revoked::GoesOn(due_time), None) => steps.go_on(&row.run, due_time),
            (Revoked::GoesOn(due_time), Some(parent)) => {
                let change = Transition::of(&row.run, Status::Cancelled, Reason::TaskEdited);
                steps.changes.push(Transition { finished_at: now, ..change });
                if begun_again.insert(parent.run.id) {
                    steps.go_on(&parent.run, due_time);
                }
            }
        }
    }
    steps
}
