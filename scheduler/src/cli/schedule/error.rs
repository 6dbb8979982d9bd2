//! Why a question about a schedule has no answer.

use crate::domain::cron::CronError;
use crate::domain::field_error::FieldError;
use std::io;

/// The most fires one question may ask for.
pub(super) const FIRES_MAX: u32 = 10_000;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The expression is wrong; the text shows where.
    #[error("{}", point_at(.expression, .error))]
    Cron {
        /// As it was given.
        expression: String,
        /// What is wrong with it.
        #[source]
        error: CronError,
    },
    /// Not a zone of the IANA database.
    #[error("unknown time zone {0:?}; allowed: names of the IANA database such as Europe/Berlin")]
    Zone(String),
    /// Neither a local time nor an instant.
    #[error("{0:?} is not a time; allowed: 2026-01-01T00:00:00, local to the zone, or 2026-01-01T00:00:00+08:00")]
    Time(String),
    /// Too few or too many fires asked for.
    #[error("{0} is not between 1 and {FIRES_MAX} fires")]
    Count(u32),
    /// Nothing or too much says when to fire.
    #[error("one of cron, rate, delay and at must be given, and only one")]
    Timing,
    /// A number out of its range.
    #[error("{0} is {1}, not at least {2} (ms)")]
    Milliseconds(&'static str, i64, i64),
    /// The calendar's file cannot be used.
    #[error("the calendar {0} cannot be read: {1}")]
    CalendarFile(String, String),
    /// The calendar is wrong.
    #[error("the calendar is refused: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Calendar(Vec<FieldError>),
    /// A line of input is not a question.
    #[error("not a question in JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The input cannot be read or the output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The error, and under it the expression with a caret below the column that is wrong.
fn point_at(expression: &str, error: &CronError) -> String {
    let shown: String = expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{error}\n  {shown}\n  {:>1$}", '^', error.column)
}
