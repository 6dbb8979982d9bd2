//! What the end of a run means for its task and for the tasks after it.

use super::reason::Reason;
use super::task::ParentOutcome;
use super::task_log::Status;
use serde_json::{Map, Value};

/// How a run ended, for those that come after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Well.
    Success,
    /// Otherwise.
    Failure,
    /// It was given up with its definition, by a person before any executor had it, or because it may have run before the
    /// database was restored; it says nothing.
    GivenUp,
}

impl End {
    /// Of a run in a terminal state, which was dispatched `attempt` times.
    #[must_use]
    pub fn of(status: Status, reason: Reason, attempt: i32) -> Self {
        match (status, reason) {
            (Status::Succeeded, _) => Self::Success,
            (Status::Cancelled, Reason::CancelledManually) if attempt == 0 => Self::GivenUp,
            // What followed the run that was lost with the restore has come already.
            (Status::Cancelled, Reason::Restored) => Self::GivenUp,
            (Status::Cancelled, reason) if reason.is_revocation() => Self::GivenUp,
            _ => Self::Failure,
        }
    }

    /// Whether a child that waits for `wanted` runs after it.
    #[must_use]
    pub fn meets(self, wanted: ParentOutcome) -> bool {
        match self {
            Self::Success => wanted != ParentOutcome::Failure,
            Self::Failure => wanted != ParentOutcome::Success,
            Self::GivenUp => false,
        }
    }
}

/// Failed runs in a row after a run with this outcome: a failure counts, a success resets the count, and
/// what never ran or was stopped on purpose changes nothing.
#[must_use]
pub fn failures_in_row(before: i32, status: Status, reason: Reason) -> i32 {
    match status {
        Status::Succeeded => 0,
        Status::Failed => before.saturating_add(1),
        Status::Discarded if reason != Reason::Blocked => before.saturating_add(1),
        _ => before,
    }
}

/// What a child gets from its parents: the output of the one, or of several an object by their
/// names. Output that does not fit into `bytes_max`, or whose log is gone, is left out (null). `None` when there is
/// nothing to hand on.
#[must_use]
pub fn input_of(outputs: &[(String, Option<String>)], bytes_max: usize) -> Option<String> {
    if let [(_, output)] = outputs {
        return output.clone().filter(|output| !output.is_empty() && output.len() <= bytes_max);
    }
    let mut whole = Map::new();
    for (name, output) in outputs {
        // JSON stays JSON; anything else is a text.
        let read = |output: &String| serde_json::from_str(output).unwrap_or_else(|_| Value::from(output.as_str()));
        let value = output.as_ref().map_or(Value::Null, read);
        whole.insert(name.clone(), value);
        if Value::Object(whole.clone()).to_string().len() > bytes_max {
            whole.insert(name.clone(), Value::Null);
        }
    }
    (!whole.is_empty()).then(|| Value::Object(whole).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_what_they_meet() {
        use ParentOutcome::{Always, Failure, Success};
        let rows = [
            (Status::Succeeded, Reason::None, 1, [true, false, true]),
            (Status::Failed, Reason::HandlerFailed, 1, [false, true, true]),
            (Status::Discarded, Reason::Blocked, 0, [false, true, true]),
            (Status::Expired, Reason::Expired, 0, [false, true, true]),
            (Status::Cancelled, Reason::CancelledManually, 1, [false, true, true]),
            (Status::Cancelled, Reason::CancelledManually, 0, [false, false, false]),
            (Status::Cancelled, Reason::Covered, 0, [false, true, true]),
            (Status::Cancelled, Reason::TaskEdited, 0, [false, false, false]),
            (Status::Cancelled, Reason::TaskStopped, 1, [false, false, false]),
            (Status::Cancelled, Reason::TaskPaused, 0, [false, false, false]),
            (Status::Cancelled, Reason::TaskDeleted, 1, [false, false, false]),
            (Status::Cancelled, Reason::Restored, 0, [false, false, false]),
            (Status::Cancelled, Reason::Restored, 1, [false, false, false]),
            (Status::Failed, Reason::ShardFailed, 1, [false, true, true]),
            (Status::Expired, Reason::MisfireSkipped, 0, [false, true, true]),
            (Status::Expired, Reason::Maintenance, 0, [false, true, true]),
            (Status::Expired, Reason::OverQuota, 0, [false, true, true]),
        ];
        for (status, reason, attempt, expected) in rows {
            let end = End::of(status, reason, attempt);
            let met = [Success, Failure, Always].map(|wanted| end.meets(wanted));
            assert_eq!(met, expected, "{status:?} {reason:?} {attempt}");
        }
    }

    #[test]
    fn failures_in_a_row() {
        let mut row = 0;
        for (status, reason, expected) in [
            (Status::Failed, Reason::HandlerFailed, 1),
            (Status::Cancelled, Reason::CancelledManually, 1),
            (Status::Discarded, Reason::TimedOut, 2),
            (Status::Discarded, Reason::Blocked, 2),
            (Status::Expired, Reason::Expired, 2),
            (Status::Succeeded, Reason::None, 0),
        ] {
            row = failures_in_row(row, status, reason);
            assert_eq!(row, expected, "{status:?} {reason:?}");
        }
    }

    #[test]
    fn input_of_one_and_of_several() {
        let pair = |name: &str, output: &str| (name.to_owned(), Some(output.to_owned()));
        assert_eq!(input_of(&[pair("a", "plain")], 100).as_deref(), Some("plain"));
        assert_eq!(input_of(&[pair("a", "")], 100), None);
        assert_eq!(
            input_of(&[pair("a", "plain"), pair("b", "{\"n\":1}")], 100).as_deref(),
            Some(r#"{"a":"plain","b":{"n":1}}"#)
        );
        assert_eq!(
            input_of(&[pair("a", "short"), pair("b", &"x".repeat(100))], 60).as_deref(),
            Some(r#"{"a":"short","b":null}"#)
        );
        let gone = ("b".to_owned(), None);
        assert_eq!(input_of(&[pair("a", ""), gone.clone()], 60).as_deref(), Some(r#"{"a":"","b":null}"#));
        assert_eq!(input_of(&[gone], 60), None);
    }
}
