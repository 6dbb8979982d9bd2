//! Exit codes of the process. `docs/cli.md` and `--help` list the same.

use anyhow::anyhow;
use serde_json::Value;
use std::process::ExitCode;

/// Of the whole command, under its help.
pub const HELP: &str = "\
Exits with 0: done; 1: refused or failed; 2: the command itself is wrong; 3: `tasks apply --dry-run --exit-code` found \
differences; 4: not signed in, or a permission is missing; 5: no node could be reached.";

/// Why a command failed; 2 is clap's, every other failure is 1 as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// A node refused it.
    Refused = 1,
    /// A dry run found differences.
    Different = 3,
    /// Not signed in, or a permission is missing.
    NotAllowed = 4,
    /// No node could be reached, or it broke off.
    Unreachable = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error that has an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Failure {
    exit: Exit,
    message: String,
    /// The node's response, when responses are shown as JSON.
    document: Option<Value>,
}

impl Exit {
    /// An error that ends the process with this code.
    pub fn because(self, message: impl Into<String>) -> anyhow::Error {
        self.told(message, None)
    }

    /// The same for a refusal whose document is shown unchanged.
    pub fn told(self, message: impl Into<String>, document: Option<Value>) -> anyhow::Error {
        anyhow!(Failure { exit: self, message: message.into(), document })
    }

    /// Whether it is the code of an error.
    pub fn is_why(self, error: &anyhow::Error) -> bool {
        error.downcast_ref::<Failure>().is_some_and(|failure| failure.exit == self)
    }

    /// The same as [`Self::because`], with the underlying error.
    pub fn caused(self, message: impl Into<String>, error: anyhow::Error) -> anyhow::Error {
        error.context(Failure { exit: self, message: message.into(), document: None })
    }
}

/// The reader of the output has closed it (`carillon … | head`).
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed by its reader")]
pub struct Unread;

/// Reports what went wrong, and returns the exit code.
#[must_use]
pub fn code_of(error: &anyhow::Error) -> ExitCode {
    if error.is::<Unread>() {
        return ExitCode::SUCCESS;
    }
    let failure = error.downcast_ref::<Failure>();
    match failure.and_then(|failure| failure.document.as_ref()) {
        Some(document) => eprintln!("{document}"),
        None => eprintln!("carillon: {error:#}"),
    }
    failure.map_or(ExitCode::FAILURE, |failure| failure.exit.into())
}
