//! Why a run found no executor: the answer to "why did it not run?", for programs and for people.

use super::Tags;
use std::fmt;

/// Why no executor takes a run. The filters are applied in the order of the variants, and the first
/// that leaves no executor is the one named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoExecutor {
    /// No executor of the app is online.
    NoneOnline,
    /// None that is online has the handler.
    NoHandler {
        /// Handler asked for.
        handler: String,
        /// Executors of the app online.
        online: usize,
    },
    /// None that has the handler meets the condition on tags.
    NoTags {
        /// Handler asked for.
        handler: String,
        /// The condition.
        tags: Tags,
        /// Executors online with the handler.
        able: usize,
    },
    /// All that could take it are closed; one counts where the first word fits.
    AllClosed {
        /// Handler asked for.
        handler: String,
        /// Disabled manually.
        disabled: usize,
        /// Shutting down.
        draining: usize,
        /// With weight 0.
        weightless: usize,
    },
    /// All that fit have refused this run or could not be reached.
    AllRefused {
        /// Handler asked for.
        handler: String,
        /// How many.
        refused: usize,
    },
    /// Not one that fits answered its probe.
    NoAnswer {
        /// Executors probed.
        probed: usize,
    },
    /// None that answered its probe is free of this task.
    NoIdle {
        /// Executors that run or hold this task.
        busy: usize,
        /// Executors that did not answer.
        silent: usize,
    },
}

impl fmt::Display for NoExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoneOnline => f.write_str("no executor of the app is online"),
            Self::NoHandler { handler, online } if handler.is_empty() => {
                write!(f, "{online} online, but none is a plain one: no other runs scripts")
            }
            Self::NoHandler { handler, online } => {
                write!(f, "{online} online, but none has handler `{handler}`")
            }
            Self::NoTags { handler, tags, able } => {
                write!(f, "{able} online with handler `{handler}`, but none has the tags: {tags}")
            }
            Self::AllClosed { handler, disabled, draining, weightless } => write!(
                f,
                "all executors that fit handler `{handler}` are closed: {disabled} disabled manually, {draining} \
                 draining, {weightless} with weight 0"
            ),
            Self::AllRefused { handler, refused } => write!(
                f,
                "every executor that fits handler `{handler}` ({refused}) refused the run or could not be reached"
            ),
            Self::NoAnswer { probed } => write!(f, "not one of {probed} executors answered its probe"),
            Self::NoIdle { busy, silent } => {
                write!(f, "no executor is idle: {busy} busy with this task, {silent} did not answer")
            }
        }
    }
}
