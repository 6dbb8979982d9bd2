//! What executors mean by what they say. xxl-job has two codes, 200 and 500; all else is told by texts, and each client has its
//! own. They are all in one table; a text that is not there means nothing in particular.
//!
//! Checked against xxl-job-core 2.2.0 to 3.4.2 (Java), pyxxl 0.4.8, xxl-job-executor-go 1.2.0, and xxl-job 0.1.7 of npm.

#[cfg(test)]
mod tests;

use super::wire::{CODE_OK, CODE_TIMED_OUT, Content, LogPage, Reply};
use carillon_protocol::{BlockStrategy, RunStatus};

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In any refusal.
    Any,
    /// In a refusal of `/run`.
    Run,
    /// In a callback with 200.
    Success,
    /// In a callback with another code.
    Failure,
    /// In a refusal of `/idleBeat`.
    IdleBeat,
    /// In an answer to `/kill`.
    Kill,
    /// In an answer to `/log`.
    Log,
}

#[derive(Debug, Clone, Copy)]
enum Text {
    Is(&'static str),
    Begins(&'static str),
    Ends(&'static str),
    /// Begins with the first, and has the second somewhere after it.
    Holds(&'static str, &'static str),
}

impl Text {
    fn fits(self, said: &str) -> bool {
        match self {
            Self::Is(text) => said == text,
            Self::Begins(text) => said.starts_with(text),
            Self::Ends(text) => said.ends_with(text),
            Self::Holds(begin, text) => said.strip_prefix(begin).is_some_and(|rest| rest.contains(text)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    WrongToken,
    HandlerMissing,
    /// An earlier run of the task goes on, and the client refuses others, whatever the strategy.
    Occupied,
    Discarded,
    Full,
    Queued,
    Covered,
    NotStarted,
    Stopped,
    /// Stopped, or covered: it has one word for both.
    Cancelled,
    TimedOut,
    Panicked,
    Busy,
    NothingToKill,
    NoLog,
    LogsNotKept,
}

/// The first row that fits counts.
const TABLE: &[(Place, Text, Meaning)] = &[
    // Java; what follows 3.4.2 says it otherwise
    (Place::Any, Text::Is("The access token is wrong."), Meaning::WrongToken),
    (Place::Any, Text::Begins("invalid request, accessToken or appname "), Meaning::WrongToken),
    (Place::Run, Text::Holds("job handler [", "] not found."), Meaning::HandlerMissing),
    (Place::Run, Text::Holds("block strategy effect", "Discard Later"), Meaning::Discarded),
    (Place::Run, Text::Begins("repeate trigger job, logId:"), Meaning::Queued),
    (Place::Run, Text::Begins("repeat trigger job, logId:"), Meaning::Queued),
    (Place::Failure, Text::Holds("block strategy effect", "Cover Early ["), Meaning::Covered),
    (Place::Failure, Text::Ends(" [job not executed, in the job queue, killed.]"), Meaning::NotStarted),
    // killed, shut down, its handler or script changed, or two threads for one task
    (Place::Failure, Text::Ends(" [job running, killed]"), Meaning::Stopped),
    (Place::IdleBeat, Text::Is("job thread is running or has trigger queue."), Meaning::Busy),
    // also npm
    (Place::Kill, Text::Is("job thread already killed."), Meaning::NothingToKill),
    (Place::Log, Text::Is("readLog fail, logFile not exists"), Meaning::NoLog),
    (Place::Log, Text::Is("readLog fail, logFile not found"), Meaning::NoLog),
    // pyxxl
    (Place::Run, Text::Holds("handler ", " not found."), Meaning::HandlerMissing),
    (Place::Run, Text::Begins("The same job ["), Meaning::Discarded),
    (Place::Run, Text::Holds("Job ", " is SERIAL, queue length more than "), Meaning::Full),
    // killed, covered, or shut down
    (Place::Failure, Text::Is("CancelledError"), Meaning::Cancelled),
    (Place::Failure, Text::Is("TimeoutError"), Meaning::TimedOut),
    (Place::IdleBeat, Text::Holds("job ", " is running."), Meaning::Busy),
    (Place::Log, Text::Is("No such logid logs."), Meaning::NoLog),
    // Go
    (Place::Run, Text::Is("Task not registered"), Meaning::HandlerMissing),
    (Place::Run, Text::Is("There are tasks running"), Meaning::Occupied),
    (Place::Failure, Text::Begins("task panic:"), Meaning::Panicked),
    (Place::IdleBeat, Text::Is("Task is busy"), Meaning::Busy),
    (Place::Kill, Text::Is("Task kill err"), Meaning::NothingToKill),
    (Place::Log, Text::Begins("这是日志默认返回"), Meaning::LogsNotKept),
    // npm
    (Place::Any, Text::Is("Access token incorrect."), Meaning::WrongToken),
    (Place::Run, Text::Begins("No matched jobHandler: "), Meaning::HandlerMissing),
    (Place::Run, Text::Is("There is already have a same job is running."), Meaning::Occupied),
    // it says 200 of what was killed, and its texts are JSON
    (Place::Success, Text::Holds("\"Job Task: ", " is killed.\""), Meaning::Stopped),
    (Place::Failure, Text::Holds("Job Task: ", " is Timeout."), Meaning::TimedOut),
    (Place::IdleBeat, Text::Is("busy"), Meaning::Busy),
    (Place::Log, Text::Begins("Log not found, logId: "), Meaning::NoLog),
    (Place::Log, Text::Is("No local logger found."), Meaning::LogsNotKept),
];

fn meaning(place: Place, said: &str) -> Option<Meaning> {
    let fits = |(at, text, _): &&(Place, Text, Meaning)| {
        let is_refusal = !matches!(place, Place::Success | Place::Failure);
        (*at == place || (*at == Place::Any && is_refusal)) && text.fits(said)
    };
    TABLE.iter().find(fits).map(|(.., meaning)| *meaning)
}

/// Why `/run` was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It has no such handler.
    HandlerMissing,
    /// An earlier run of the task goes on, and the task discards later ones.
    Blocked,
    /// This very attempt waits in its queue already: it was sent before.
    Queued,
    /// It takes no more runs of the task now: one goes on, or its queue is full.
    Busy,
    /// It has another token.
    WrongToken,
    /// Something else; the text is for people.
    Other,
}

/// What a refusal of `/run` with `msg` means for a run with this block strategy.
#[must_use]
pub fn refusal(strategy: BlockStrategy, msg: &str) -> Said {
    match meaning(Place::Run, msg) {
        Some(Meaning::HandlerMissing) => Said::HandlerMissing,
        Some(Meaning::Discarded) => Said::Blocked,
        Some(Meaning::Occupied) if strategy == BlockStrategy::DiscardLater => Said::Blocked,
        Some(Meaning::Occupied | Meaning::Full) => Said::Busy,
        Some(Meaning::Queued) => Said::Queued,
        Some(Meaning::WrongToken) => Said::WrongToken,
        _ => Said::Other,
    }
}

/// How a run ended, by the code and the text of its callback. Whether somebody wanted it stopped, rows say: texts do not tell a
/// kill from a restart of the process, and a kill may have met another run of the task than was meant. So what was stopped is
/// [`RunStatus::Abandoned`], from which a run goes on by its task's policy unless its row says that it was to stop.
/// [`RunStatus::Covered`] is said only where the text says so.
#[must_use]
pub fn ended(code: i32, msg: &str) -> RunStatus {
    if code == CODE_TIMED_OUT {
        return RunStatus::TimedOut;
    }
    let place = if code == CODE_OK { Place::Success } else { Place::Failure };
    match meaning(place, msg) {
        Some(Meaning::Covered) => RunStatus::Covered,
        Some(Meaning::NotStarted) => RunStatus::NotStarted,
        Some(Meaning::Stopped | Meaning::Cancelled) => RunStatus::Abandoned,
        Some(Meaning::TimedOut) => RunStatus::TimedOut,
        Some(Meaning::Panicked) => RunStatus::Panicked,
        _ if code == CODE_OK => RunStatus::Succeeded,
        _ => RunStatus::Failed,
    }
}

/// Whether a failure with this text may be the end of a run that a later one has replaced: the task's strategy tells.
#[must_use]
pub fn may_be_covered(msg: &str) -> bool {
    meaning(Place::Failure, msg) == Some(Meaning::Cancelled)
}

/// What an executor says of its work on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// No run of it goes on or waits.
    Idle,
    /// One does.
    Busy,
    /// It does not say.
    Unknown,
}

/// What an answer to `/idleBeat` means.
#[must_use]
pub fn load(reply: &Reply) -> Load {
    if reply.is_ok() {
        Load::Idle
    } else if meaning(Place::IdleBeat, &reply.msg) == Some(Meaning::Busy) {
        Load::Busy
    } else {
        Load::Unknown
    }
}

/// What became of a `/kill`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// The handler is told to stop; clients do not say whether there was one.
    Told,
    /// No run of the task is there.
    Nothing,
    /// It was refused.
    Refused,
}

/// What an answer to `/kill` means.
#[must_use]
pub fn kill(reply: &Reply) -> Kill {
    let remark = if let Content::Text(remark) = &reply.content { remark } else { "" };
    let is_nothing = |said| meaning(Place::Kill, said) == Some(Meaning::NothingToKill);
    if is_nothing(&reply.msg) || is_nothing(remark) {
        Kill::Nothing
    } else if reply.is_ok() {
        Kill::Told
    } else {
        Kill::Refused
    }
}

/// What an executor knows of a run's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logged<'a> {
    /// These lines: the run has started.
    Page(&'a LogPage),
    /// There is no log of this run: it has not started, or its log was deleted.
    Nothing,
    /// The executor keeps no logs that could be read; that says nothing of the run.
    NotKept,
    /// It does not say.
    Unknown,
}

/// What an answer to `/log` means.
#[must_use]
pub fn logged(reply: &Reply) -> Logged<'_> {
    let (said, page) = match &reply.content {
        Content::Page(page) if reply.is_ok() => (page.text.as_str(), Some(page)),
        _ => (reply.msg.as_str(), None),
    };
    match (meaning(Place::Log, said), page) {
        (Some(Meaning::NoLog), _) => Logged::Nothing,
        (Some(Meaning::LogsNotKept), _) => Logged::NotKept,
        (_, Some(page)) => Logged::Page(page),
        _ => Logged::Unknown,
    }
}
