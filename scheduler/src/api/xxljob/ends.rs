//! How attempts ended, out of callbacks: results as executors of ours would have told them.

use crate::domain::Status;
use crate::domain::task::{BlockStrategy, TaskSpec};
use crate::domain::xxljob::wire::{CODE_OK, CallbackItem, timeout_s};
use crate::domain::xxljob::{Library, said};
use crate::store::DispatchedRun;
use carillon_protocol::{RunKey, RunResult, RunStatus};

/// What is known of an attempt for which an executor calls back.
pub(super) struct Told<'a> {
    /// Which one it is.
    pub key: RunKey,
    /// Its run.
    pub row: &'a DispatchedRun,
    /// What the executor says.
    pub item: &'a CallbackItem,
    /// What the executor is made with.
    pub library: Library,
    /// When it was sent, cluster ms, if that was from here.
    pub sent_at: Option<i64>,
}

impl Told<'_> {
    /// Whether the run is at this attempt.
    pub fn is_current(&self) -> bool {
        self.row.run.status == Status::Dispatched && self.row.run.attempt == self.key.1
    }

    /// The result, at `now` (cluster ms), under the task's definition.
    pub fn result(&self, spec: Option<&TaskSpec>, now: i64) -> RunResult {
        let Self { key: RunKey(log, attempt), row, item, .. } = *self;
        let started_at = self.sent_at.unwrap_or_else(|| row.run.due_time.max(row.dispatched_at));
        let finished_at = now.max(started_at);
        let status = match said::ended(item.code, &item.message) {
            RunStatus::Succeeded if self.library.hides_ends() && self.is_current() => {
                self.hidden_end(spec, finished_at - started_at)
            }
            RunStatus::Abandoned if self.may_be_covered() && spec.is_some_and(covers) => RunStatus::Covered,
            status => status,
        };
        let text = item.message.clone();
        let (output, message) = match status {
            RunStatus::Succeeded => (text, String::new()),
            RunStatus::Cancelled => (String::new(), format!("it was told to stop, and has ended: {text}")),
            RunStatus::TimedOut if item.code == CODE_OK => {
                (String::new(), format!("it has ended only after its time-out: {text}"))
            }
            _ => (String::new(), text),
        };
        RunResult {
            log,
            attempt,
            status,
            message,
            output,
            started_at,
            // The same as before where it has been told before: what has ended is told again until it is answered.
            finished_at: if self.is_current() || row.finished_at == 0 { finished_at } else { row.finished_at },
            due_time: row.run.due_time,
        }
    }

    /// Whether the task's definition is needed to know how it ended.
    pub fn needs_task(&self) -> bool {
        self.is_current() && (self.library.hides_ends() || self.may_be_covered())
    }

    fn may_be_covered(&self) -> bool {
        self.item.code != CODE_OK && said::may_be_covered(&self.item.message)
    }

    /// How it ended, as its library calls that a success in any case: what it was told, and how long it took, decide.
    fn hidden_end(&self, spec: Option<&TaskSpec>, took_ms: i64) -> RunStatus {
        let timeout_ms = spec.map_or(0, |spec| i64::from(timeout_s(spec.timeout_ms)) * 1_000);
        if self.row.is_stopping() {
            RunStatus::Cancelled
        } else if timeout_ms > 0 && took_ms >= timeout_ms {
            RunStatus::TimedOut
        } else {
            RunStatus::Succeeded
        }
    }
}

fn covers(spec: &TaskSpec) -> bool {
    spec.block_strategy == BlockStrategy::CoverEarly
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task_log::test::run_of;
    use crate::domain::{NodeId, Reason, Run};

    const SENT_AT: i64 = 100_000;

    fn status(library: Library, code: i32, attempt: i32, stopping: Reason, took_ms: i64) -> RunStatus {
        let row = DispatchedRun {
            run: Run { status: Status::Dispatched, attempt: 2, ..run_of(7, SENT_AT) },
            node_id: NodeId(1),
            dispatched_at: SENT_AT - 200,
            finished_at: 0,
            stopping,
        };
        let item = CallbackItem { number: 7, code, message: "said".to_owned() };
        let told = Told { key: RunKey(7, attempt), row: &row, item: &item, library, sent_at: Some(SENT_AT) };
        let spec = TaskSpec { timeout_ms: 1_500, ..TaskSpec::default() };
        let result = told.result(Some(&spec), SENT_AT + took_ms);
        assert_eq!(
            (result.output == "said", result.message.is_empty()),
            (result.status == RunStatus::Succeeded, result.status == RunStatus::Succeeded)
        );
        result.status
    }

    #[test]
    fn one_word_for_a_kill_and_a_later_run_is_told_apart_by_the_tasks_strategy() {
        let row = DispatchedRun {
            run: Run { status: Status::Dispatched, attempt: 1, ..run_of(7, SENT_AT) },
            node_id: NodeId(1),
            dispatched_at: SENT_AT,
            finished_at: 0,
            stopping: Reason::None,
        };
        for (message, block_strategy, expected) in [
            ("CancelledError", BlockStrategy::CoverEarly, RunStatus::Covered),
            ("CancelledError", BlockStrategy::Serial, RunStatus::Abandoned),
            ("no luck", BlockStrategy::CoverEarly, RunStatus::Failed),
        ] {
            let item = CallbackItem { number: 7, code: 500, message: message.to_owned() };
            let told = Told { key: RunKey(7, 1), row: &row, item: &item, library: Library::Other, sent_at: None };
            let spec = TaskSpec { block_strategy, ..TaskSpec::default() };
            assert_eq!(told.needs_task(), message == "CancelledError");
            assert_eq!(told.result(Some(&spec), SENT_AT).status, expected, "{message} {block_strategy:?}");
        }
    }

    #[test]
    fn what_it_was_told_and_how_long_it_took_decide_where_its_library_always_says_success() {
        use RunStatus::{Cancelled, Failed, Succeeded, TimedOut};
        for (library, code, attempt, stopping, took_ms, expected) in [
            (Library::Go, 200, 2, Reason::None, 1_999, Succeeded),
            (Library::Go, 200, 2, Reason::None, 2_000, TimedOut),
            (Library::Go, 200, 2, Reason::CancelledManually, 10, Cancelled),
            (Library::Go, 200, 1, Reason::CancelledManually, 9_000, Succeeded),
            (Library::Go, 500, 2, Reason::None, 10, Failed),
            // Others tell, and let runs wait: the time until the callback says nothing.
            (Library::Other, 200, 2, Reason::None, 9_000, Succeeded),
            (Library::Other, 200, 2, Reason::CancelledManually, 10, Succeeded),
            (Library::Npm, 200, 2, Reason::CancelledManually, 10, Succeeded),
            (Library::Other, 502, 2, Reason::None, 10, TimedOut),
        ] {
            assert_eq!(
                status(library, code, attempt, stopping, took_ms),
                expected,
                "{library:?} {code} {attempt} {stopping:?} {took_ms}"
            );
        }
    }
}
