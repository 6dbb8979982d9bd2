//! The log output of a run: the executor that ran it stores it, and it is read there page by page. A
//! node stores none of it: if the executor is gone, so is the output.

use super::{SendError, Transport};
use crate::cluster::Registry;
use crate::domain::{Executor, Owner, Run, Status};
use crate::store::{ExecutorEnd, ExecutorStore, Result};
use carillon_protocol::{Code, OUTPUT_PAGE_BYTES, OutputPage, OutputState, ReadOutput};
use futures_util::future::join_all;
use std::sync::Arc;

/// Executors that are asked who ran an earlier attempt, at most.
const ASKED_MAX: usize = 16;

/// What can be said of the output of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OutputStatus {
    /// The attempt has not started yet.
    NotStarted,
    /// The run has ended without this attempt.
    NeverStarted,
    /// It runs: more may follow.
    Running,
    /// It has ended: nothing follows but what is there.
    Ended,
    /// Its executor has nothing of it: it logged nothing, or what it logged was deleted.
    NotKept,
    /// Its executor is gone, and its output with it.
    ExecutorGone,
    /// Its executor is there by its heartbeats, and does not answer now.
    Unreachable,
    /// Its executor keeps no output: too old a version, or switched off.
    NoOutput,
    /// An earlier attempt, of which no executor that was asked has anything.
    ExecutorUnknown,
    /// A sharded run has none itself; its shards have.
    Sharded,
}

/// Every standing with its word in the API.
pub const OUTPUT_STATUSES: [(OutputStatus, &str); 10] = [
    (OutputStatus::NotStarted, "not_started"),
    (OutputStatus::NeverStarted, "never_started"),
    (OutputStatus::Running, "running"),
    (OutputStatus::Ended, "ended"),
    (OutputStatus::NotKept, "not_kept"),
    (OutputStatus::ExecutorGone, "executor_gone"),
    (OutputStatus::Unreachable, "unreachable"),
    (OutputStatus::NoOutput, "no_output"),
    (OutputStatus::ExecutorUnknown, "executor_unknown"),
    (OutputStatus::Sharded, "sharded"),
];

impl OutputStatus {
    /// The word in API and console.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        OUTPUT_STATUSES.iter().find(|(status, _)| *status == self).map_or("", |(_, word)| word)
    }
}

/// Which page of which attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// From 1; `None` is the latest.
    pub attempt: Option<i32>,
    /// First byte: 0 or the `next` of the previous page.
    pub from: u64,
    /// Bytes at most, [`OUTPUT_PAGE_BYTES`]; other values are brought into that range.
    pub limit: u32,
}

/// Who says when an attempt has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndSource {
    /// Its executor.
    Executor,
    /// The run's row: its executor does not.
    Row,
}

/// One page, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The attempt that was read.
    pub attempt: i32,
    /// Where it stands.
    pub status: OutputStatus,
    /// Whether the run may still change this.
    pub is_final: bool,
    /// Who says when the attempt has ended.
    pub end_source: EndSource,
    /// Whole characters.
    pub text: String,
    /// Where the next page begins.
    pub next: u64,
    /// Whether there is more after `next` already.
    pub more: bool,
    /// Whether the run logged more than its executor keeps of one run.
    pub is_cut: bool,
    /// Address of its executor, as far as it is known.
    pub address: Option<String>,
    /// When an executor that is gone was last heard, ms.
    pub heard_at: Option<i64>,
    /// For people: what to make of a page without text.
    pub detail: String,
}

/// Reads output where it lies.
pub struct OutputReader<S: ?Sized> {
    store: Arc<S>,
    registry: Arc<Registry>,
    transport: Arc<dyn Transport>,
}

impl<S: ExecutorStore + ?Sized> OutputReader<S> {
    /// Over the node's parts.
    pub fn new(store: Arc<S>, registry: Arc<Registry>, transport: Arc<dyn Transport>) -> Self {
        Self { store, registry, transport }
    }

    /// A page of the output of `run`, as its row is now.
    pub async fn read(&self, run: &Run, wanted: Wanted) -> Result<Reading> {
        let asked = Asked::of(run, wanted);
        if run.is_parent() {
            return Ok(asked.nothing(OutputStatus::Sharded, "a sharded run logs nothing itself: read its shards"));
        }
        if asked.attempt > run.attempt {
            return Ok(if run.status.is_terminal() {
                asked.nothing(OutputStatus::NeverStarted, "the run has ended without this attempt")
            } else {
                asked.nothing(OutputStatus::NotStarted, "the attempt has not been dispatched to an executor yet")
            });
        }
        if asked.attempt < run.attempt || run.executor_id.is_none() {
            return Ok(self.earlier(run, &asked).await);
        }
        if let Some(executor) = self.registry.find(run.executor_id).filter(|executor| is_of(executor, run)) {
            let answer = self.ask(&executor, &asked).await;
            return Ok(asked.answered(&executor, answer));
        }
        let ends = self.store.executor_ends(&[run.executor_id]).await?;
        let owner = Owner { tenant_id: run.tenant_id, app_id: run.app_id };
        let end = ends.into_iter().find(|end| end.owner == owner);
        Ok(self.left_behind(run, &asked, end).await)
    }

    /// The output of an attempt whose executor is not online: the process that stands at its
    /// address now may have it.
    async fn left_behind(&self, run: &Run, asked: &Asked, end: Option<ExecutorEnd>) -> Reading {
        let Some(end) = end else {
            return asked.nothing(
                OutputStatus::ExecutorGone,
                "its executor has been gone for so long that nothing is known about it",
            );
        };
        let online = self.registry.online(run.tenant_id, run.app_id);
        if let Some(successor) = online.into_iter().find(|executor| executor.address == end.address)
            && let Ok(page) = self.ask(&successor, asked).await
            && page.state != OutputState::Unknown
        {
            return asked.answered(&successor, Ok(page));
        }
        let heard = chrono::DateTime::from_timestamp_millis(end.heartbeat_at).unwrap_or_default();
        let heard = heard.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let detail = format!("its executor at {} is gone, and its output with it; last heard {heard}", end.address);
        Reading {
            address: Some(end.address),
            heard_at: Some(end.heartbeat_at),
            ..asked.nothing(OutputStatus::ExecutorGone, &detail)
        }
    }

    /// The output of an attempt whose executor the row does not name: asks the executors for it.
    async fn earlier(&self, run: &Run, asked: &Asked) -> Reading {
        let mut online = self.registry.online(run.tenant_id, run.app_id);
        let (known, all) = (online.len().min(ASKED_MAX), online.len());
        // A retry often goes to the same one.
        online.sort_unstable_by_key(|executor| (executor.id != run.executor_id, executor.id));
        online.truncate(ASKED_MAX);
        let answers = join_all(online.iter().map(async |executor| (executor, self.ask(executor, asked).await))).await;
        let has_it = |answer: &std::result::Result<OutputPage, SendError>| {
            answer.as_ref().is_ok_and(|page| page.state != OutputState::Unknown)
        };
        if let Some((executor, answer)) = answers.into_iter().find(|(_, answer)| has_it(answer)) {
            return asked.answered(executor, answer);
        }
        let detail = format!(
            "where attempt {} ran is not recorded once there is another; of the app's {all} executors online {known} \
             were asked, and none has its output",
            asked.attempt
        );
        asked.nothing(OutputStatus::ExecutorUnknown, &detail)
    }

    async fn ask(&self, executor: &Executor, asked: &Asked) -> std::result::Result<OutputPage, SendError> {
        let message = ReadOutput { instance: Some(executor.instance.clone()), ..asked.message.clone() };
        self.transport.read_output(executor, &message).await
    }
}

fn is_of(executor: &Executor, run: &Run) -> bool {
    (executor.tenant_id, executor.app_id) == (run.tenant_id, run.app_id)
}

/// What is asked for, and what the run's row says of it.
struct Asked {
    attempt: i32,
    /// To the executor that is asked; names none yet.
    message: ReadOutput,
    /// Whether the attempt may still log, by the row.
    goes_on: bool,
}

impl Asked {
    fn of(run: &Run, wanted: Wanted) -> Self {
        let attempt = wanted.attempt.unwrap_or(run.attempt).max(1);
        let goes_on = match attempt.cmp(&run.attempt) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => run.status == Status::Dispatched,
            std::cmp::Ordering::Greater => !run.status.is_terminal(),
        };
        let limit = wanted.limit.clamp(*OUTPUT_PAGE_BYTES.start(), *OUTPUT_PAGE_BYTES.end());
        let message = ReadOutput { instance: None, log: run.id.0, attempt, from: wanted.from, limit };
        Self { attempt, message, goes_on }
    }

    fn nothing(&self, status: OutputStatus, detail: &str) -> Reading {
        Reading {
            attempt: self.attempt,
            status,
            is_final: !self.goes_on || status == OutputStatus::Sharded,
            end_source: EndSource::Executor,
            text: String::new(),
            // What comes later begins where the reader is.
            next: self.message.from,
            more: false,
            is_cut: false,
            address: None,
            heard_at: None,
            detail: detail.to_owned(),
        }
    }

    fn answered(&self, executor: &Executor, answer: std::result::Result<OutputPage, SendError>) -> Reading {
        let reading = match answer {
            Ok(page) if executor.plain => self.plain_page(page),
            Ok(page) => self.page(page),
            Err(SendError::Refused(Code::NotFound, _)) => {
                let detail = "its executor keeps no output: its version is too old, or output is switched off there";
                Reading { is_final: true, ..self.nothing(OutputStatus::NoOutput, detail) }
            }
            Err(SendError::Refused(Code::WrongExecutor, _)) => {
                let detail = "its executor has been restarted, and the new process has not registered yet; read again in a \
                              few seconds";
                Reading { is_final: false, ..self.nothing(OutputStatus::Unreachable, detail) }
            }
            Err(error) => {
                // Why is for the operator: it would tell the holder of a key what listens at an address.
                tracing::info!(address = executor.address, %error, "an executor does not answer a request for output");
                let detail = "its executor does not answer now; the node's log says why";
                Reading { is_final: false, ..self.nothing(OutputStatus::Unreachable, detail) }
            }
        };
        Reading { address: Some(executor.address.clone()), ..reading }
    }

    /// Clients of xxl-job say that nothing follows while a run goes on, or never do: its row knows. Once it has ended, there is
    /// more until a page is empty, as some tell only so many lines at once.
    fn plain_page(&self, page: OutputPage) -> Reading {
        let more = page.more || !(self.goes_on || page.state == OutputState::Ended || page.text.is_empty());
        let state = match page.state {
            OutputState::Running | OutputState::Ended if self.goes_on => OutputState::Running,
            OutputState::Running => OutputState::Ended,
            state => state,
        };
        Reading { end_source: EndSource::Row, ..self.page(OutputPage { state, more, ..page }) }
    }

    fn page(&self, page: OutputPage) -> Reading {
        let status = match page.state {
            OutputState::Waiting => OutputStatus::NotStarted,
            OutputState::Running => OutputStatus::Running,
            OutputState::Ended => OutputStatus::Ended,
            // Still on its way there, or about to be found lost.
            OutputState::Unknown if self.goes_on => OutputStatus::NotStarted,
            OutputState::Unknown => OutputStatus::NotKept,
        };
        let detail = match status {
            OutputStatus::NotStarted => "the attempt has not started yet",
            OutputStatus::NotKept => {
                "its executor has nothing of it: it logged nothing, or what it logged was deleted for its age or for \
                 room"
            }
            _ => "",
        };
        let is_final = matches!(status, OutputStatus::Ended | OutputStatus::NotKept) && !page.more;
        let OutputPage { text, next, more, cut, .. } = page;
        Reading { is_final, text, next, more, is_cut: cut, ..self.nothing(status, detail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task_log::test::run_of;

    fn asked(status: Status, run_attempt: i32, attempt: Option<i32>) -> Asked {
        let run = Run { status, attempt: run_attempt, ..run_of(1, 0) };
        Asked::of(&run, Wanted { attempt, from: 0, limit: 100 })
    }

    fn page(state: OutputState, more: bool) -> OutputPage {
        OutputPage { state, text: "x".to_owned(), next: 1, more, cut: false }
    }

    #[test]
    fn a_page_is_final_when_nothing_can_follow_it() {
        let now = asked(Status::Dispatched, 2, None);
        assert_eq!((now.attempt, now.goes_on), (2, true));
        for (state, more, status, is_final) in [
            (OutputState::Waiting, false, OutputStatus::NotStarted, false),
            (OutputState::Running, false, OutputStatus::Running, false),
            (OutputState::Ended, true, OutputStatus::Ended, false),
            (OutputState::Ended, false, OutputStatus::Ended, true),
            (OutputState::Unknown, false, OutputStatus::NotStarted, false),
        ] {
            let reading = now.page(page(state, more));
            assert_eq!((reading.status, reading.is_final), (status, is_final), "{state:?}");
        }
        let over = asked(Status::Succeeded, 2, None).page(page(OutputState::Unknown, false));
        assert_eq!((over.status, over.is_final), (OutputStatus::NotKept, true));
    }

    #[test]
    fn of_a_plain_executor_the_row_says_whether_more_can_follow() {
        let (now, over) = (asked(Status::Dispatched, 1, None), asked(Status::Succeeded, 1, None));
        let empty = |state| OutputPage { text: String::new(), ..page(state, false) };
        for (asked, page, status, more, is_final) in [
            (&now, page(OutputState::Ended, false), OutputStatus::Running, false, false),
            (&now, empty(OutputState::Ended), OutputStatus::Running, false, false),
            (&now, page(OutputState::Running, true), OutputStatus::Running, true, false),
            (&now, empty(OutputState::Unknown), OutputStatus::NotStarted, false, false),
            (&over, page(OutputState::Running, false), OutputStatus::Ended, true, false),
            (&over, empty(OutputState::Running), OutputStatus::Ended, false, true),
            (&over, page(OutputState::Ended, false), OutputStatus::Ended, false, true),
            (&over, page(OutputState::Ended, true), OutputStatus::Ended, true, false),
            (&over, empty(OutputState::Unknown), OutputStatus::NotKept, false, true),
        ] {
            let reading = asked.plain_page(page.clone());
            assert_eq!((reading.status, reading.more, reading.is_final), (status, more, is_final), "{page:?}");
        }
    }

    #[test]
    fn the_row_says_whether_an_attempt_continues() {
        for (status, run_attempt, attempt, goes_on) in [
            (Status::Init, 0, None, true),
            (Status::Expired, 0, None, false),
            (Status::Dispatched, 2, Some(1), false),
            (Status::Retry, 2, Some(2), false),
            (Status::Retry, 2, Some(3), true),
            (Status::Failed, 2, Some(3), false),
        ] {
            let asked = asked(status, run_attempt, attempt);
            assert_eq!(asked.goes_on, goes_on, "{status:?} {run_attempt} {attempt:?}");
            assert_eq!(asked.nothing(OutputStatus::ExecutorGone, "").is_final, !goes_on);
        }
    }

    #[test]
    fn a_restarted_executor_is_no_fault_of_anyone() {
        let executor = crate::cluster::fixture::executor(1, 0);
        let refused = SendError::Refused(Code::WrongExecutor, "another".to_owned());
        let reading = asked(Status::Succeeded, 1, None).answered(&executor, Err(refused));
        assert_eq!((reading.status, reading.is_final), (OutputStatus::Unreachable, false));
        assert!(reading.detail.starts_with("its executor has been restarted"), "{}", reading.detail);
        assert_eq!(reading.address, Some(executor.address));
    }

    #[test]
    fn standings_have_words_of_their_own() {
        let words: std::collections::HashSet<_> = OUTPUT_STATUSES.iter().map(|(status, _)| status.as_str()).collect();
        assert_eq!(words.len(), OUTPUT_STATUSES.len());
    }
}
