//! What is otherwise with plain executors, as docs/xxl-job.md has it: they run a task's runs one after the other, hold nothing early,
//! have no lease, and a run that they do not tell of is found by asking. Everything else is promised of them, too.

use super::Evidence;
use crate::settings::PLAIN_LOST_AFTER_MS;
use carillon::domain::{ExecutorId, LogId, Run, Status, TaskId, TenantId};
use carillon_protocol::{RunKey, RunStatus};
use carillon_simulation::executor::{OfMachine, Start};

/// What may go to a plain executor waits until so long before it is due, ms.
pub(super) const LEAD_MS: i64 = 200;

/// An executor that has been idle for so long has nothing more to tell, ms.
const PATIENCE_MS: i64 = 40_000;

/// A run starts within this time after the one that it waited for on its executor, ms.
const NEXT_MS: i64 = 10;

impl Evidence<'_> {
    /// Whether a machine's processes are plain executors.
    pub fn is_plain(&self, machine: usize) -> bool {
        self.world.executors[machine].is_plain()
    }

    /// Whether a tenant has such.
    pub fn has_plain(&self, tenant: TenantId) -> bool {
        let of = self.world.tenants.iter().filter(|of| of.owner.tenant_id == tenant);
        of.flat_map(|of| &of.executors).any(|machine| self.is_plain(*machine))
    }

    /// Whether an executor, by the id that nodes know it by, is one.
    pub fn is_plain_executor(&self, executor: ExecutorId) -> bool {
        let address = self.state.executor_address(executor);
        self.world.executors.iter().any(|machine| machine.is_plain() && machine.address() == address)
    }

    /// P5: what a node has taken is committed. The node does not say as what: it may have ended otherwise before.
    pub fn what_plain_executors_told_is_committed(&mut self) {
        for told in self.world.ledger.tellings() {
            let log = LogId(told.key.0);
            let end = self.state.ends.get(&(log, told.key.1)).copied();
            // Before a run is sent, no such executor can tell of it.
            let is_there = end.is_some_and(|end| end.at <= told.at);
            let is_known = self.state.dispatch_marks.contains_key(&(log, told.key.1));
            if is_known && !is_there {
                let detail = format!("{told:?} was taken, and the row says {end:?}");
                self.breaks("P5 what a plain executor has told is committed", Some(log), detail);
            }
            let row = self.state.logs.get(&log).map(|row| row.run.status);
            let stands = end.is_some_and(|end| end.to == Status::Succeeded) && told.status == RunStatus::Succeeded;
            if stands && row != Some(Status::Succeeded) {
                let detail = format!("{told:?} was taken, and the row is {row:?} now");
                self.breaks("P5 an acknowledged result stays", Some(log), detail);
            }
        }
    }

    /// Whether a run had left for a plain executor in time, and waited there while the database's clock was set back.
    pub fn waited_on_a_plain_executor(&self, start: &Start) -> bool {
        let Some(mark) = self.state.dispatch_marks.get(&(LogId(start.key.0), start.key.1)) else { return false };
        let sent_at = mark.at + LEAD_MS + NEXT_MS;
        let known = sent_at + self.clock.most_ahead(mark.at, sent_at);
        self.is_plain(start.machine) && sent_at < start.at && known >= start.due_time
    }

    /// Whether a run that covers others came to their plain executor later, though its own fire had been before: it goes by what comes.
    pub fn came_later_to_a_plain_executor(&self, run: &Run, covered: &Run) -> bool {
        let mark = |run: &Run| self.state.dispatch_marks.get(&(run.id, run.attempt));
        let (Some(mark), Some(of_covered)) = (mark(run), mark(covered)) else { return false };
        self.is_plain_executor(of_covered.executor_id)
            && mark.executor_id == of_covered.executor_id
            && mark.at >= of_covered.at
    }

    /// From when on a run could start where its task's runs go one after the other: when the one before it has ended.
    pub fn free_since(&self, start: &Start, due_at: i64) -> i64 {
        if !self.is_plain(start.machine) {
            return due_at;
        }
        let is_beside =
            |other: &&Start| other.task == start.task && other.machine == start.machine && other.key != start.key;
        let others = self.starts.values().flatten().filter(is_beside).filter(|other| other.at <= start.at);
        let ends = others.filter_map(|other| self.stops.get(&other.key)).map(|stop| stop.at);
        let last = ends.filter(|at| *at <= start.at && start.at <= at + NEXT_MS).max();
        last.unwrap_or(due_at).max(due_at)
    }

    /// Whether a plain executor had not answered for so long by then that it counts as lost, with what it ran.
    pub fn was_unheard(&self, key: RunKey, at: i64) -> bool {
        let Some(machine) = self.starts.get(&key).map(|starts| starts[0].machine) else { return false };
        let heard = |one: &OfMachine| one.machine == machine && one.at <= at;
        let last = self.world.ledger.contacts().iter().filter(|one| heard(one)).map(|one| one.at).max();
        self.is_plain(machine) && last.is_none_or(|last| at - last >= PLAIN_LOST_AFTER_MS)
    }

    /// Whether a plain executor could not tell for so long how an attempt ended that it counts as lost.
    pub fn was_untold(&self, key: RunKey, stopped_at: i64, ended_at: i64) -> bool {
        let machine = self.starts.get(&key).map(|starts| starts[0].machine);
        machine.is_some_and(|machine| self.is_plain(machine)) && ended_at - stopped_at >= PATIENCE_MS
    }

    /// Whether a plain executor took this attempt off its list, because it was told to stop the task, or to cover it: another run
    /// may go beside it until its handler has ended.
    pub fn is_off_the_list(&self, key: RunKey) -> bool {
        self.world.ledger.is_off_the_list(key)
    }

    /// Whether what waited on a plain executor was given back because another run of its task was stopped there.
    pub fn waited_behind_one_that_was_stopped(&self, log: LogId, attempt: i32, task: TaskId, ended_at: i64) -> bool {
        let Some(mark) = self.state.dispatch_marks.get(&(log, attempt)) else { return false };
        let address = self.state.executor_address(mark.executor_id);
        let is_there = |start: &&Start| start.task == task && self.world.executors[start.machine].address() == address;
        let beside = self.starts.values().flatten().filter(is_there).filter(|start| self.is_off_the_list(start.key));
        let until = |start: &Start| self.stops.get(&start.key).map_or(i64::MAX, |stop| stop.at);
        self.is_plain_executor(mark.executor_id)
            && beside.into_iter().any(|start| start.at <= ended_at && until(start) >= mark.at)
    }
}
