//! A run of another scheduler that has ended. Nothing runs for it: it is kept for people who look back.

use crate::domain::choice::choice;
use crate::domain::{Reason, Status};

/// Longest message of an imported run, characters.
pub const RUN_MESSAGE_CHARS_MAX: usize = 4_000;

choice! {
    /// How a run ended in another scheduler.
    RunEnd {
        /// It succeeded.
        Succeeded,
        /// It failed.
        Failed,
        /// It took too long.
        TimedOut,
        /// No executor got it.
        NotSent,
        /// Nobody has said how it ended.
        Unknown,
    }
}

impl RunEnd {
    /// As runs end here.
    #[must_use]
    pub fn here(self) -> (Status, Reason) {
        match self {
            Self::Succeeded => (Status::Succeeded, Reason::None),
            Self::Failed => (Status::Failed, Reason::HandlerFailed),
            Self::TimedOut => (Status::Failed, Reason::TimedOut),
            Self::NotSent => (Status::Failed, Reason::Undelivered),
            Self::Unknown => (Status::Failed, Reason::OutcomeUnknown),
        }
    }
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportRun {
    /// Its task's identity there: [`origin`](super::origin).
    pub origin: String,
    /// When it fired, epoch ms. A task has one run for each instant.
    pub fire_time: i64,
    /// When it ended, epoch ms.
    pub finished_at: i64,
    /// How.
    pub end: RunEnd,
    /// What was said of it: up to [`RUN_MESSAGE_CHARS_MAX`] characters.
    pub message: String,
}
