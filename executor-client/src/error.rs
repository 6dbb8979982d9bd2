//! What can go wrong: while building an executor, while running it, and inside a handler.

use std::path::PathBuf;

/// Why an executor could not be built. Each message says what to change.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A setting without a default was not given.
    #[error("`{setting}` is not set: call `.{setting}(…)` on the builder or set {env}")]
    Missing {
        /// Builder method.
        setting: &'static str,
        /// Environment variable.
        env: &'static str,
    },
    /// A setting has an invalid value.
    #[error("`{setting}`: {reason}")]
    Invalid {
        /// Builder method or environment variable.
        setting: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Two handlers have the same name.
    #[error("the handler `{0}` is defined twice")]
    DuplicateHandler(String),
    /// No port could be bound.
    #[error("no free port from {first} to {last} on {bind}: {source}")]
    Bind {
        /// Address that was tried.
        bind: std::net::IpAddr,
        /// First port tried.
        first: u16,
        /// Last port tried.
        last: u16,
        /// The last failure.
        source: std::io::Error,
    },
    /// The journal directory cannot be used.
    #[error(
        "the journal directory {}: cannot {action}: {source}; \
         set `.journal_dir(…)` or CARILLON_JOURNAL_DIR to a directory that this process may write",
        path.display()
    )]
    Journal {
        /// File or directory concerned.
        path: PathBuf,
        /// What was attempted.
        action: &'static str,
        /// The failure.
        source: std::io::Error,
    },
    /// The operating system provided no random bytes, or the HTTP client could not be created.
    #[error("the process environment is unusable: {0}")]
    Environment(String),
}

/// A setting with an invalid value.
pub(crate) fn invalid(setting: &'static str, reason: String) -> BuildError {
    BuildError::Invalid { setting, reason }
}

/// Why a running executor ended other than by shutdown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A part of the executor stopped (a bug in this crate). The executor drained as far as it could.
    #[error("the executor's `{part}` stopped unexpectedly: {reason}")]
    PartStopped {
        /// Which part.
        part: &'static str,
        /// Panic message or error.
        reason: String,
    },
    /// A thread, a runtime or a signal handler could not be set up.
    #[error("cannot {action}: {source}")]
    Setup {
        /// What was attempted.
        action: &'static str,
        /// The failure.
        source: std::io::Error,
    },
}

/// How a handler fails.
///
/// Any `std::error::Error` converts into a failure that may be retried, so `?` works. For a failure
/// that another attempt cannot fix, use [`TaskError::fatal`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskError {
    message: String,
    fatal: bool,
}

impl TaskError {
    /// A failure that the task's policy may retry.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), fatal: false }
    }

    /// A permanent failure: it is not retried, whatever the task's policy says.
    pub fn fatal(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), fatal: true }
    }

    /// The message shown with the run.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether a retry is ruled out.
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }

    pub(crate) fn into_message(self) -> String {
        self.message
    }
}

impl<E: std::error::Error> From<E> for TaskError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::failed(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_causes() {
        let inner = std::io::Error::other("disk on fire");
        let outer = RunError::Setup { action: "start", source: inner };
        let error = TaskError::from(outer);
        assert!(!error.is_fatal());
        assert!(error.message().contains("disk on fire"));
    }
}
