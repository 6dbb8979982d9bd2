//! P2: each run ends as its policy says, from what befell it. Where nothing was out of order nothing is missed, expires, is
//! lost or is given up, and an attempt ends by its handler alone.

use super::{CLOCKS_MS, Evidence};
use crate::faults::{Fault, Planned};
use crate::operations::{Effect, Operation};
use carillon::domain::rules::WindowAction;
use carillon::domain::task::{BlockStrategy, Delivery, ExpiredStrategy, FailureStrategy, ScheduleKind, TaskSpec};
use carillon::domain::{LogId, Reason, Run, Status};
use carillon_protocol::{RunKey, RunStatus};
use carillon_simulation::executor::Stopped;
use carillon_simulation::store::{End, LogRow, Redefinition};

/// The last part of a run's life without an end, ms: from when on a fault may have had a say in it.
const BEFORE_MS: i64 = 5_000;

impl Evidence<'_> {
    /// Looks at every end, of runs and of attempts.
    pub fn ends_follow_policies(&mut self) {
        // Logs of long ago were written by nobody's definition.
        let ended = self.state.logs.values().filter(|row| row.run.status.is_terminal() && row.run.revision > 0);
        for row in ended.cloned().collect::<Vec<_>>() {
            if let Some(why) = self.objection(&row) {
                let run = &row.run;
                let detail = format!(
                    "task {} fire {} due {} is {:?} {:?} at {}: {why}",
                    run.task_id, run.fire_time, run.due_time, run.status, run.reason, row.finished_at
                );
                self.breaks("P2 a run ends as its policy says", Some(run.id), detail);
            }
        }
        for ((log, attempt), end) in self.state.ends.clone() {
            self.attempt_ends_for_a_reason(log, attempt, &end);
        }
    }

    /// What speaks against the end of a run.
    fn objection(&self, row: &LogRow) -> Option<&'static str> {
        let run = &row.run;
        let Some(task) = self.state.tasks.get(&run.task_id) else { return Some("its task is not there") };
        if row.finished_at <= 0 {
            return Some("its end has no time");
        }
        let spec = &task.view.spec;
        let shown = row.finished_at.max(run.due_time);
        let from = self.in_memory_from(run.fire_time, self.clock.first(run.fire_time)) - BEFORE_MS;
        let until = self.clock.last(shown);
        let calm = self.is_calm_for(run.tenant_id, from, until) && !self.is_held_back(run.tenant_id, from, until);
        let is = |holds: bool, objection: &'static str| (!holds).then_some(objection);
        let retried = run.failures > spec.max_retries;
        match (run.status, run.reason) {
            (Status::Succeeded, _) if run.is_parent() => {
                is(self.shards_of(run.id).all(succeeded), "not all shards did")
            }
            (Status::Succeeded, _) => {
                is(self.ended_by_handler(row, RunStatus::Succeeded), "its handler did not succeed")
            }
            (Status::Failed, Reason::TimedOut) => is(self.took_too_long(row, spec), "it was not stopped, or too early")
                .or_else(|| is(retried, "it was not tried often enough")),
            (Status::Failed, Reason::ShardFailed) => is(!self.shards_of(run.id).all(succeeded), "all shards succeeded"),
            (Status::Failed, Reason::HandlerFailed) => {
                is(self.ended_by_handler(row, RunStatus::Failed), "its handler did not fail")
                    .or_else(|| is(retried, "it was not tried often enough"))
            }
            (Status::Failed, Reason::OutcomeUnknown | Reason::Abandoned) => {
                is(!calm && self.may_be_lost(from, until), "nothing was out of order that loses a run")
                    .or_else(|| is(retried || spec.delivery == Delivery::AtMostOnce, "it was not tried again"))
            }
            (Status::Failed, _) => {
                is(!calm, "nothing was out of order").or_else(|| is(retried, "it was not tried often enough"))
            }
            (Status::Expired, Reason::MisfireSkipped) => {
                is(!calm, "nothing was out of order").or_else(|| self.why_not_left_out(row, spec))
            }
            (Status::Discarded, Reason::Blocked) => is(blocks(spec, BlockStrategy::DiscardLater), "its task waits"),
            (Status::Discarded, _) => is(!calm && spec.failure_strategy == FailureStrategy::Discard, "without need"),
            (Status::Expired, Reason::Expired) => is(!calm, "nothing was out of order")
                .or_else(|| is(spec.expired_strategy == ExpiredStrategy::Discard, "its task never expires"))
                .or_else(|| is(row.finished_at - run.due_time >= spec.expire_after_ms, "it was not that late")),
            (Status::Expired, Reason::Maintenance) => is(self.is_skipped_by_window(row), "no window skips it"),
            (Status::Expired, _) => Some("nothing asked for it"),
            (Status::Cancelled, Reason::TaskStopped | Reason::TaskEdited | Reason::TaskPaused) => {
                // A copy that comes back after a stop is called edited, too.
                let fits = |started: bool| !started || run.reason == Reason::TaskEdited;
                // What a person or a parent started, and a link of a delay's chain, may have gone over to the definition that ended
                // it.
                let goes_over = !run.trigger.is_scheduled() || spec.schedule == ScheduleKind::FixedDelay;
                let after = if goes_over { 1 } else { run.revision };
                let mut changes = self.state.changes.iter().filter(|c| c.task == run.task_id && c.revision > after);
                let ended_at = self.clock.last(row.finished_at);
                // The row has the time at which the change was decided; its commit may have come late.
                let is_by = |c: &Redefinition| c.at <= ended_at + BEFORE_MS || c.from <= row.finished_at;
                let by = changes.any(|c| fits(c.started) && is_by(c));
                is(by, "nobody changed its task so")
            }
            (Status::Cancelled, Reason::Covered) => is(blocks(spec, BlockStrategy::CoverEarly), "its task waits"),
            (Status::Cancelled, Reason::CancelledManually) => is(self.is_cancelled(run), "no person cancelled it"),
            (Status::Cancelled, _) => Some("nobody cancelled it"),
            _ => Some("it has not ended"),
        }
    }

    /// Whether it would have gone out within a window in which the tenant's runs are skipped: at its due time, or, where it
    /// waited for others, when its turn came.
    fn is_skipped_by_window(&self, row: &LogRow) -> bool {
        let at = row.run.due_time.max(row.finished_at);
        self.world.operations.iter().any(|intended| {
            let Operation::Window { begins_in, lasts, action: WindowAction::Skip, .. } = intended.operation else {
                return false;
            };
            let from = self.clock.at(self.world.began + intended.at) + begins_in;
            row.run.tenant_id == self.world.tenants[0].owner.tenant_id && (from..=from + lasts).contains(&at)
        })
    }

    /// Whether something was out of order in this time (epoch ms) after which nodes may not know what became of a run. Messages that
    /// come twice, or too late, and nodes that are stopped in good order, lose none.
    fn may_be_lost(&self, from: i64, until: i64) -> bool {
        let loses_none = |planned: &Planned| {
            matches!(planned.fault, Fault::Doubled { .. } | Fault::Overtaken { .. } | Fault::Stop { .. })
        };
        self.disturbances(from, until).any(|planned| !loses_none(planned))
    }

    /// Whether people have asked for it, or what it is a shard of, to be cancelled.
    fn is_cancelled(&self, run: &Run) -> bool {
        let cancelling = |log: LogId| self.is_asked_for(&Effect::Cancelling(log));
        cancelling(run.id) || cancelling(run.parent_id) || self.skipped_by(run.task_id, run.fire_time) > 0
    }

    fn shards_of(&self, parent: LogId) -> impl Iterator<Item = &LogRow> {
        self.state.logs.values().filter(move |row| row.run.parent_id == parent)
    }

    fn ended_by_handler(&self, row: &LogRow, status: RunStatus) -> bool {
        let stop = self.stops.get(&RunKey(row.run.id.0, row.run.attempt));
        stop.is_some_and(|stop| stop.how == Stopped::Ended(status))
    }

    /// Whether its handler was stopped, and by no other than its time-out.
    fn took_too_long(&self, row: &LogRow, spec: &TaskSpec) -> bool {
        let key = RunKey(row.run.id.0, row.run.attempt);
        let (start, stop) = (self.starts.get(&key).and_then(|starts| starts.first()), self.stops.get(&key));
        let took = start.zip(stop).map(|(start, stop)| stop.at - start.at);
        spec.timeout_ms > 0 && took.is_some_and(|took| took >= spec.timeout_ms - CLOCKS_MS)
    }

    /// An attempt is lost, given back or abandoned only if something was out of order.
    fn attempt_ends_for_a_reason(&mut self, log: LogId, attempt: i32, end: &End) {
        let Some(row) = self.state.logs.get(&log) else { return };
        let by_itself =
            matches!(end.to, Status::Succeeded) || matches!(end.reason, Reason::HandlerFailed | Reason::TimedOut);
        let by_change = end.reason.is_revocation()
            || matches!(
                end.reason,
                Reason::Blocked | Reason::Covered | Reason::ShardFailed | Reason::CancelledManually
            );
        let from = self.state.dispatch_marks.get(&(log, attempt)).map_or(end.at, |mark| mark.at);
        // A change takes back what executors hold, and by another definition it goes on. What counts is the attempt's own
        // time, not its fire's: with a long lead it may be over long before that.
        let goes_on = matches!(end.to, Status::Init | Status::Retry) && self.is_changed(row.run.task_id, from, end.at);
        if by_itself || by_change || goes_on || row.run.is_parent() {
            return;
        }
        if end.reason == Reason::GivenBack
            && self.waited_behind_one_that_was_stopped(log, attempt, row.run.task_id, end.at)
        {
            return;
        }
        if self.is_calm_for(row.run.tenant_id, from - BEFORE_MS, end.at) {
            let detail = format!("attempt {attempt} of task {}, {from} to {}: {end:?}", row.run.task_id, end.at);
            self.breaks("P2 no attempt is given up without need", Some(log), detail);
        }
    }
}

fn succeeded(row: &LogRow) -> bool {
    row.run.status == Status::Succeeded
}

fn blocks(spec: &TaskSpec, strategy: BlockStrategy) -> bool {
    spec.block_strategy == strategy
}
