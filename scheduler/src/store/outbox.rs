//! What follows the end of runs: children, the next fire of a fixed delay, failures in a row.
//!
//! Each run whose end has consequences has a row in `outbox`; it is taken away in the
//! transaction that writes the consequences, so they come exactly once, whichever node dies.

use super::planning::{TASKS, read_tasks};
use super::row::{from_row, or_default};
use super::sql::{ID, SUCCEEDED};
use super::sql_store::{Transaction, retrying};
use super::template::Text as _;
use super::values::list;
use super::{EndedPage, EndedRun, NewRun, OutboxRound, OutboxStore, Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::audit::Actor;
use crate::domain::consequences::{End, failures_in_row, input_of};
use crate::domain::task::{NEVER, ParentOutcome, ParentRule, ScheduleKind};
use crate::domain::{LogId, Task, TaskId, Trigger};
use async_trait::async_trait;
use carillon_protocol::TEXT_BYTES_MAX;
use std::collections::{BTreeSet, HashMap};

statements!(
    FOLLOW_ANY = |_| "SELECT id FROM outbox LIMIT 1".into(),
    FOLLOW_PAGE = |d| format!("SELECT MAX(f.id), {} FROM ({OUTBOX_PAGE}) f", d.big("COUNT(*)")),
    FOLLOW_ENDED = |d| format!(
        "SELECT {ENDED_COLUMNS} FROM ({OUTBOX_PAGE}) f {} task_log l ON l.id = f.id WHERE +l.status >= {SUCCEEDED}",
        d.join_in_order()
    ),
    FOLLOW_AMONG = |d| format!(
        "SELECT {ENDED_COLUMNS} FROM {} outbox f ON f.id = v.n_id {} task_log l ON l.id = f.id \
         WHERE +l.status >= {SUCCEEDED} ORDER BY l.id",
        d.batch(1, ID),
        d.join_in_order()
    ),
    FOLLOW_STILL_ENDED = |d| format!(
        "SELECT COUNT(*) FROM {} task_log l ON l.id = v.n_id WHERE +l.status >= {SUCCEEDED}",
        d.batch(1, ID)
    ),
    // One that an edit has taken over since it was read has not ended any more.
    FOLLOW_TAKE = |d| d.delete_from(
        "outbox",
        &d.rows(1, ID),
        &format!("l.id = v.n_id AND EXISTS (SELECT 1 FROM task_log t WHERE t.id = l.id AND t.status >= {SUCCEEDED})"),
    ),
    CHILDREN_OF = |d| format!(
        "SELECT p.parent_id, p.child_id, p.on_outcome FROM {} task_parent p ON p.parent_id = v.n_id \
         ORDER BY p.child_id, p.id",
        d.batch(1, ID)
    ),
);

const ACTION: &str = "process the outbox";

/// Columns of an [`EndedRun`].
const ENDED_COLUMNS: &str =
    "l.id, l.task_id, l.status, l.reason, l.trigger_kind, l.revision, l.fire_time, l.finished_at, l.output, l.attempt";

/// The next rows after one.
const OUTBOX_PAGE: &str = "SELECT id FROM outbox WHERE id > {1} ORDER BY id LIMIT {2}";

/// A parent of a task, and the run by which it is met, if it is.
struct MetParent {
    met_log_id: LogId,
    name: String,
    output: Option<String>,
    /// Retention has taken its log since.
    is_gone: bool,
    /// Empty if it is the task's own.
    app: String,
}

from_row!(MetParent { met_log_id, name, output, is_gone, app });

#[async_trait]
impl OutboxStore for SqlStore {
    async fn has_outbox_entries(&self) -> Result<bool> {
        let found = self.query::<i64, _>(ACTION, &FOLLOW_ANY, []).await?;
        Ok(!found.is_empty())
    }

    async fn ended(&self, after: LogId, rows: u64) -> Result<EndedPage> {
        let values = || [after.into(), rows.into()];
        // First, so that what is said of the page holds for what is read after it: a row that came meanwhile, and moved
        // another one off the page, is met again behind its last.
        let page: Vec<(Option<LogId>, i64)> = self.query(ACTION, &FOLLOW_PAGE, values()).await?;
        let (last, count) = page.first().copied().unwrap_or_default();
        let count = u64::try_from(count).unwrap_or(0);
        if count == 0 {
            return Ok(EndedPage::default());
        }
        let mut ended: Vec<EndedRun> = self.query(ACTION, &FOLLOW_ENDED, values()).await?;
        ended.sort_unstable_by_key(|run| run.log);
        Ok(EndedPage { ended, rows: count, next: last.filter(|_| count >= rows) })
    }

    async fn ended_among(&self, ids: &[LogId]) -> Result<Vec<EndedRun>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.query(ACTION, &FOLLOW_AMONG, [list(ACTION, ids.iter())?.into()]).await
    }

    async fn process_outbox(
        &self,
        ended: &[EndedRun],
        node: &Actor,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<Option<OutboxRound>> {
        retrying(|| self.process_outbox_once(ended, node, new_id, now)).await
    }
}

/// A link from an ended run's task to a child.
struct Link {
    parent: TaskId,
    child: TaskId,
    on: ParentOutcome,
}

impl SqlStore {
    async fn process_outbox_once(
        &self,
        ended: &[EndedRun],
        node: &Actor,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<Option<OutboxRound>> {
        let ids = list(ACTION, ended.iter().map(|run| run.log))?;
        let tx = self.begin(ACTION).await?;
        let mut is_mine = tx.execute(&FOLLOW_TAKE, [ids.clone().into()]).await? == ended.len() as u64;
        if is_mine {
            // It may have waited for what takes a run over, and judged by what was before.
            let still: Vec<i64> = tx.query(&FOLLOW_STILL_ENDED, [ids.into()]).await?;
            is_mine = still == [ended.len() as i64];
        }
        if !is_mine {
            // Another node has followed some of them, or an edit has taken them over.
            tx.rollback().await?;
            return Ok(None);
        }
        let parents: BTreeSet<TaskId> = ended.iter().map(|run| run.task_id).collect();
        let links = self.links_of(&tx, &parents).await?;
        let children: BTreeSet<TaskId> = links.iter().map(|link| link.child).collect();
        self.lock(&tx, &children.union(&parents).copied().collect()).await?;
        let tasks = self.tasks_in(&tx, &children.union(&parents).copied().collect()).await?;
        let (mut followed, mut failing) = (OutboxRound::default(), BTreeSet::new());
        for run in ended {
            if let Some(task) = tasks.get(&run.task_id) {
                if self.follow_link(&tx, run, task).await? {
                    followed.moved.push(task.id);
                }
                if self.count_failure(&tx, run, task).await? {
                    failing.insert(task.id);
                }
            }
            for link in links.iter().filter(|link| link.parent == run.task_id) {
                let meets = End::of(run.status, run.reason, run.attempt).meets(link.on);
                if let Some(child) = tasks.get(&link.child).filter(|child| meets && takes_children(child, now)) {
                    followed.started += usize::from(self.follow_child(&tx, run, &tasks, child, new_id, now).await?);
                }
            }
        }
        // Last: what follows the runs goes by the definition that was read above.
        for id in failing {
            followed.paused.extend(self.pause_failing(&tx, id, node, new_id, now).await?);
        }
        tx.commit().await?;
        Ok(Some(followed))
    }

    /// Counts the failures in a row of a task that pauses after some; answers whether it may have to now.
    async fn count_failure(&self, tx: &Transaction<'_>, run: &EndedRun, task: &Task) -> Result<bool> {
        let most = task.spec.pause_after_failures;
        if most == 0 {
            return Ok(false);
        }
        let read = sql!("SELECT failures_in_row FROM task WHERE id = {1}");
        let before: Vec<i32> = tx.query(&read, [task.id.into()]).await?;
        let count = failures_in_row(before.first().copied().unwrap_or(0), run.status, run.reason);
        let write = sql!("UPDATE task SET failures_in_row = {2} WHERE id = {1}");
        tx.execute(&write, [task.id.into(), count.into()]).await?;
        Ok(count >= most)
    }

    /// The next fire of a fixed delay, after a run of the definition that is valid now. Answers
    /// whether there is one.
    async fn follow_link(&self, tx: &Transaction<'_>, run: &EndedRun, task: &Task) -> Result<bool> {
        let is_link = task.spec.schedule == ScheduleKind::FixedDelay && run.trigger.is_scheduled();
        if !is_link || task.fires_left() <= 0 {
            return Ok(false);
        }
        let next = task.schedule.next_link(run.fire_time, run.finished_at);
        // An edit that comes in between may make the run a link of its own chain: read it again.
        if self.revisions(tx, run, task).await? != Some(task.revision) || next == NEVER {
            return Ok(false);
        }
        let sql = sql!(format!(
            "UPDATE task SET next_fire_at = {{3}} WHERE id = {{1}} AND revision = {{2}} AND started = 1 AND \
                 next_fire_at = {NEVER}"
        ));
        if tx.execute(&sql, [task.id.into(), task.revision.into(), next.into()]).await? > 0 {
            return Ok(true);
        }
        self.revisions(tx, run, task).await.map(|_| false)
    }

    /// The revision that a run belongs to.
    ///
    /// # Errors
    /// The task was changed since it was read: the whole must be tried again.
    async fn revisions(&self, tx: &Transaction<'_>, run: &EndedRun, task: &Task) -> Result<Option<i64>> {
        let sql =
            sql!("SELECT l.revision, t.revision FROM task_log l JOIN task t ON t.id = l.task_id WHERE l.id = {1}");
        let found: Option<(i64, i64)> = tx.query(&sql, [run.log.into()]).await?.first().copied();
        match found {
            Some((_, now)) if now != task.revision => {
                Err(StoreError::new(StoreErrorKind::Contention, ACTION, "the task was changed meanwhile"))
            }
            found => Ok(found.map(|(of_run, _)| of_run)),
        }
    }

    /// A child one of whose parents has met its condition; answers whether it runs now.
    async fn follow_child(
        &self,
        tx: &Transaction<'_>,
        run: &EndedRun,
        tasks: &HashMap<TaskId, Task>,
        child: &Task,
        new_id: &(dyn Fn() -> LogId + Sync),
        now: i64,
    ) -> Result<bool> {
        let name = |id: TaskId| tasks.get(&id).map_or_else(|| id.to_string(), |task| task.spec.name.clone());
        let outputs = match child.spec.parent_rule {
            ParentRule::Any => vec![(name(run.task_id), Some(run.output.clone()))],
            ParentRule::All => match self.meet(tx, run, child.id).await? {
                Some(outputs) => outputs,
                None => return Ok(false),
            },
        };
        let input = if child.spec.parent_output { input_of(&outputs, TEXT_BYTES_MAX) } else { None };
        let after: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
        let new = NewRun {
            params: input,
            trigger: Trigger::Parent,
            message: format!("after {} (last of them: run {})", after.join(", "), run.log),
            ..NewRun::manual(new_id(), child.schedule.unnamed_from(now))
        };
        self.insert_run(tx, child.id, &child.spec, &new).await?;
        Ok(true)
    }

    /// Notes that a parent has met its condition. Answers the outputs of all parents when it was
    /// the last one; all of them are then reset.
    async fn meet(
        &self,
        tx: &Transaction<'_>,
        run: &EndedRun,
        child: TaskId,
    ) -> Result<Option<Vec<(String, Option<String>)>>> {
        let met = sql!("UPDATE task_parent SET met_log_id = {3} WHERE child_id = {1} AND parent_id = {2}");
        tx.execute(&met, [child.into(), run.task_id.into(), run.log.into()]).await?;
        let all = sql!(
            "SELECT p.met_log_id, t.name, l.output, CASE WHEN l.id IS NULL THEN 1 ELSE 0 END AS is_gone, CASE WHEN t.app_id = c.app_id THEN '' ELSE a.name END AS app \
             FROM task_parent p JOIN task t ON t.id = p.parent_id JOIN app a ON a.id = t.app_id \
             JOIN task c ON c.id = p.child_id LEFT JOIN task_log l ON l.id = p.met_log_id \
             WHERE p.child_id = {1} ORDER BY p.id"
        );
        let rows: Vec<MetParent> = tx.query(&all, [child.into()]).await?;
        if rows.iter().any(|parent| parent.met_log_id.is_none()) {
            return Ok(None);
        }
        let reset = sql!("UPDATE task_parent SET met_log_id = 0 WHERE child_id = {1}");
        tx.execute(&reset, [child.into()]).await?;
        // As the child names it.
        let named = |app: &str, name| if app.is_empty() { name } else { format!("{app}/{name}") };
        let outputs = rows.into_iter().map(|row| {
            let output = (!row.is_gone).then(|| row.output.unwrap_or_default());
            (named(&row.app, row.name), output)
        });
        Ok(Some(outputs.collect()))
    }

    async fn links_of(&self, tx: &Transaction<'_>, parents: &BTreeSet<TaskId>) -> Result<Vec<Link>> {
        let ids = list(ACTION, parents.iter())?;
        tx.query(&CHILDREN_OF, [ids.into()]).await
    }

    /// Two parents of one child that end at once on two nodes come one after the other.
    async fn lock(&self, tx: &Transaction<'_>, tasks: &BTreeSet<TaskId>) -> Result<()> {
        self.lock_scopes(tx, tasks.iter().map(|task| task.0).collect()).await
    }

    async fn tasks_in(&self, tx: &Transaction<'_>, ids: &BTreeSet<TaskId>) -> Result<HashMap<TaskId, Task>> {
        let ids = list(ACTION, ids.iter())?;
        let rows = tx.fetch(TASKS.on(self.backend).bind([ids.into()])).await?;
        let mut found = read_tasks(&rows)?;
        self.fill_calendars_in(tx, &mut found).await?;
        if let Some(id) = found.unreadable.first() {
            let detail = format!("task {id} cannot be read; what follows its runs waits");
            return Err(StoreError::new(StoreErrorKind::Other, ACTION, detail));
        }
        Ok(found.tasks.into_iter().map(|task| (task.id, task)).collect())
    }
}

/// Whether parents make it run: it is started and within its validity.
fn takes_children(child: &Task, now: i64) -> bool {
    let spec = &child.spec;
    child.is_started && now >= spec.valid_from && (spec.valid_until == 0 || now < spec.valid_until)
}

from_row!(EndedRun {
    log: "id",
    task_id,
    status,
    reason,
    trigger: "trigger_kind",
    revision,
    fire_time,
    finished_at,
    output = or_default("output"),
    attempt,
});

from_row!(Link { parent: "parent_id", child: "child_id", on: "on_outcome" });
