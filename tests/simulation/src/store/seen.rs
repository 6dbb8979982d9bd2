//! What is seen of the rows in SQLite: triggers write down each change, in order, and after each call it is read into the
//! model's tables. So whoever judges a simulation looks at the same types, and at the same things that rows forget.

use super::history::{Bounded, Claim, DispatchMark, End, Follow, Move, Rebound};
use super::rows::{Link, LogRow, State, TaskRow};
use carillon::domain::quota::Quotas;
use carillon::domain::{AppId, ExecutorId, LogId, NodeId, Reason, Status, TaskId, TenantId};
use carillon::store::{BATCH_MAX, DefinitionStore as _, DispatchedRun, OutcomeStore as _, Result, SqlStore, TaskView};
use sea_orm::{ConnectionTrait as _, DatabaseConnection, DbErr, Statement};
use serde::Deserialize;
use std::collections::BTreeSet;

/// A table for what has changed, and the triggers that fill it.
pub(super) const TRIGGERS: &[&str] = &[
    "CREATE TABLE seen (number INTEGER PRIMARY KEY, what TEXT NOT NULL, id INTEGER NOT NULL, facts TEXT NOT NULL)",
    "CREATE TRIGGER seen_log AFTER INSERT ON task_log BEGIN INSERT INTO seen (what, id, facts) VALUES ('log', NEW.id, \
     json_array(NULL, json_array(NEW.status, NEW.reason, NEW.attempt, NEW.version, NEW.revision, NEW.executor_id, \
     NEW.node_id, NEW.failures, NEW.due_time, NEW.queued_at))); END",
    "CREATE TRIGGER seen_step AFTER UPDATE ON task_log BEGIN INSERT INTO seen (what, id, facts) VALUES ('log', NEW.id, \
     json_array(json_array(OLD.status, OLD.reason, OLD.attempt, OLD.version, OLD.revision, OLD.executor_id, OLD.node_id, \
     OLD.failures, OLD.due_time, OLD.queued_at), json_array(NEW.status, NEW.reason, NEW.attempt, NEW.version, \
     NEW.revision, NEW.executor_id, NEW.node_id, NEW.failures, NEW.due_time, NEW.queued_at))); END",
    "CREATE TRIGGER seen_log_gone AFTER DELETE ON task_log BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('log gone', OLD.id, 'null'); END",
    "CREATE TRIGGER seen_attempt AFTER INSERT ON task_log_attempt BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('attempt', NEW.log_id, 'null'); END",
    "CREATE TRIGGER seen_attempt_gone AFTER DELETE ON task_log_attempt BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('attempt', OLD.log_id, 'null'); END",
    "CREATE TRIGGER seen_permit AFTER INSERT ON permit BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('permit', NEW.id, NEW.version); END",
    "CREATE TRIGGER seen_permit_back AFTER UPDATE OF version ON permit BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('permit', NEW.id, NEW.version); END",
    "CREATE TRIGGER seen_permit_gone AFTER DELETE ON permit BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('permit', OLD.id, 0); END",
    "CREATE TRIGGER seen_task AFTER INSERT ON task BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('task', NEW.id, 'null'); END",
    "CREATE TRIGGER seen_change AFTER UPDATE OF revision ON task WHEN NEW.revision <> OLD.revision BEGIN \
     INSERT INTO seen (what, id, facts) VALUES ('task', NEW.id, 'null'); END",
    "CREATE TRIGGER seen_task_gone AFTER DELETE ON task BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('task gone', OLD.id, 'null'); END",
    "CREATE TRIGGER seen_outbox AFTER INSERT ON outbox BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('outbox', NEW.id, NEW.task_id); END",
    "CREATE TRIGGER seen_outbox_gone AFTER DELETE ON outbox BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('outbox gone', OLD.id, 'null'); END",
    "CREATE TRIGGER seen_executor AFTER INSERT ON executor BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('executor', NEW.id, json_quote(NEW.address)); END",
    "CREATE TRIGGER seen_quotas AFTER UPDATE OF max_concurrent ON tenant BEGIN INSERT INTO seen (what, id, facts) \
     SELECT 'quotas', NEW.id, json_array(NEW.max_tasks, NEW.max_fires_per_minute, NEW.max_concurrent, NEW.retain_days, \
     version) FROM rule_version WHERE id = 1; END",
    "CREATE TRIGGER seen_bound AFTER UPDATE OF max_concurrent ON app BEGIN INSERT INTO seen (what, id, facts) \
     SELECT 'bound', NEW.id, json_array(NEW.max_concurrent, version) FROM rule_version WHERE id = 1; END",
    "CREATE TRIGGER seen_node AFTER INSERT ON node BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('node', NEW.id, 'true'); END",
    "CREATE TRIGGER seen_join AFTER UPDATE OF incarnation ON node BEGIN INSERT INTO seen (what, id, facts) \
     VALUES ('node', NEW.id, 'true'); END",
    "CREATE TRIGGER seen_leave AFTER UPDATE OF left_at ON node WHEN NEW.left_at <> 0 BEGIN \
     INSERT INTO seen (what, id, facts) VALUES ('node', NEW.id, 'false'); END",
];

/// A change of a row.
pub(super) struct Seen {
    number: i64,
    what: String,
    id: i64,
    facts: String,
}

/// Of a log: status, reason, attempt, version, revision, executor, node, failures, due time, when it was queued.
#[derive(Deserialize)]
struct Facts(i16, String, i32, i64, i64, i64, i64, i32, i64, i64);

/// What has changed since the last time, in order.
pub(super) async fn take(looker: &DatabaseConnection) -> std::result::Result<Vec<Seen>, DbErr> {
    let take =
        Statement::from_string(looker.get_database_backend(), "DELETE FROM seen RETURNING number, what, id, facts");
    let read = |row: &sea_orm::QueryResult| {
        Ok(Seen {
            number: row.try_get_by_index(0)?,
            what: row.try_get_by_index(1)?,
            id: row.try_get_by_index(2)?,
            facts: row.try_get_by_index(3)?,
        })
    };
    let mut seen =
        looker.query_all_raw(take).await?.iter().map(read).collect::<std::result::Result<Vec<Seen>, DbErr>>()?;
    seen.sort_by_key(|one| one.number);
    Ok(seen)
}

/// Notes it, with the rows as they are now, at `at` (ms).
pub(super) async fn note(sql: &SqlStore, state: &mut State, seen: Vec<Seen>, at: i64) -> Result<()> {
    let of = |what: &str| seen.iter().filter(|one| one.what == what).map(|one| one.id).collect::<BTreeSet<i64>>();
    let logs: Vec<LogId> = of("log").into_iter().map(LogId).collect();
    for ids in logs.chunks(BATCH_MAX) {
        state.put_logs(sql.runs(None, ids).await?);
    }
    let mut views = Vec::new();
    for id in of("task") {
        views.extend(sql.task(TaskId(id)).await?);
    }
    state.put_tasks(views);
    for one in &seen {
        state.note_seen(one, at);
    }
    for log in of("attempt").into_iter().map(LogId) {
        state.attempts.retain(|(of, _), _| *of != log);
        let Some(tenant) = state.logs.get(&log).map(|row| row.run.tenant_id) else { continue };
        let kept = sql.kept_attempts(tenant, log).await?;
        state.attempts.extend(kept.into_iter().map(|kept| ((log, kept.number), kept)));
    }
    Ok(())
}

impl State {
    fn put_logs(&mut self, rows: Vec<DispatchedRun>) {
        for DispatchedRun { run, node_id, dispatched_at, finished_at, stopping } in rows {
            let row = LogRow { node_id, stopping, dispatched_at, finished_at, ..LogRow::new(run) };
            self.logs.insert(row.run.id, row);
        }
    }

    fn put_tasks(&mut self, views: Vec<TaskView>) {
        for mut view in views.clone() {
            view.spec.parents.clear();
            self.tasks.insert(view.id, TaskRow { view, written_until: 0, turn: 0, calendar_version: 0 });
        }
        for TaskView { id: child, owner, spec, .. } in views {
            self.links.retain(|link| link.child != child);
            for parent in spec.parents {
                let is_named = |task: &&TaskRow| task.view.owner == owner && task.view.spec.name == parent.task;
                let named =
                    self.tasks.values().find(is_named).map(|task| task.view.id).expect("a parent of the same app");
                self.links.push(Link { child, parent: named, on: parent.on });
            }
        }
    }

    fn note_seen(&mut self, Seen { what, id, facts, .. }: &Seen, at: i64) {
        let id = *id;
        match what.as_str() {
            "log" => self.note_step(LogId(id), facts, at),
            "log gone" => self.forget(LogId(id)),
            "task" => {
                if let Some(from) = self.tasks.get(&TaskId(id)).map(|task| task.view.updated_at) {
                    self.note_change(TaskId(id), from, at);
                }
            }
            "task gone" => {
                self.tasks.remove(&TaskId(id));
                self.links.retain(|link| ![link.child, link.parent].contains(&TaskId(id)));
            }
            "outbox" => drop(self.outbox_entries.insert(LogId(id), TaskId(read(facts)))),
            "outbox gone" => {
                self.outbox_entries.remove(&LogId(id));
                if self.logs.get(&LogId(id)).is_some_and(|row| row.run.status.is_terminal()) {
                    self.follows.insert(LogId(id), Follow { at, changes: self.changes.len() });
                }
            }
            "permit" if read::<i64>(facts) > 0 => self.grants.begin(LogId(id), at),
            "permit" => self.grants.end(LogId(id), at),
            "executor" => drop(self.addresses.insert(ExecutorId(id), read(facts))),
            "quotas" => {
                let (max_tasks, max_fires_per_minute, max_concurrent, retain_days, version) = read(facts);
                let quotas = Quotas { max_tasks, max_fires_per_minute, max_concurrent, retain_days };
                self.quotas.insert(TenantId(id), quotas);
                self.rebounds.push(Rebound { of: Bounded::Tenant(TenantId(id)), most: max_concurrent, version, at });
            }
            "bound" => {
                let (most, version) = read(facts);
                self.rebounds.push(Rebound { of: Bounded::App(AppId(id)), most, version, at });
            }
            "node" => self.moves.push(Move { node: NodeId(id), is_there: read(facts), at }),
            // What is kept of attempts is read as a whole.
            _ => {}
        }
    }

    /// As the model notes a step of its own.
    fn note_step(&mut self, id: LogId, facts: &str, at: i64) {
        let (was, now): (Option<Facts>, Facts) = read(facts);
        let Some(run) = self.logs.get(&id).map(|row| row.run.clone()) else { return };
        self.by_fire.insert((run.task_id, run.fire_time, run.shard_index), id);
        let Facts(to, reason, attempt, version, revision, executor_id, node, failures, due_time, queued_at) = now;
        let (to, reason) = (status(to), Reason::parse(&reason));
        let is_dispatch = to == Status::Dispatched && was.as_ref().is_none_or(|was| was.2 != attempt);
        if is_dispatch && !run.is_parent() {
            let mark = DispatchMark { revision, executor_id: ExecutorId(executor_id), at };
            self.dispatch_marks.insert((id, attempt), mark);
        }
        let Some(Facts(from, why, last, ..)) = was else {
            self.events.push(format!(
                "log {id} written: task {} fire {} shard {} rev {revision} {to:?}",
                run.task_id, run.fire_time, run.shard_index
            ));
            return;
        };
        let (from, why) = (status(from), Reason::parse(&why));
        let line = format!(
            "log {id} v{version} attempt {last}: {from:?} {why:?} -> {to:?} {reason:?} (task {} fire {} due {})",
            run.task_id, run.fire_time, run.due_time
        );
        if from != to && !from.may_become(to, why) {
            self.violations.push(format!("the state machine forbids: {line}"));
        }
        if from == Status::Queued {
            self.stays.end(id, at);
            // A wait that is noted, for one, is no step.
            if to != Status::Queued {
                self.grants.end(id, at);
            }
        }
        if to == Status::Queued {
            self.stays.begin(id, NodeId(node), run.tenant_id, at);
            if from != Status::Queued && (attempt, failures) == (0, 0) {
                self.claims.insert(id, Claim { at: queued_at, due_time, reason: why });
            }
        }
        if from == Status::Dispatched && (from, last) != (to, attempt) {
            self.ends.insert((id, last), End { to, reason, at });
        }
        if is_dispatch {
            self.events.push(format!("log {id} is with executor {executor_id} by node number {node}"));
        }
        self.events.push(line);
    }
}

fn read<'a, T: Deserialize<'a>>(facts: &'a str) -> T {
    serde_json::from_str(facts).expect("what a trigger wrote")
}

fn status(number: i16) -> Status {
    Status::from_number(number).expect("a status")
}
