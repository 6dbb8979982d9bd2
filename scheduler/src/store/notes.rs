//! What the next commit writes into the audit, and until when the change may begin.

use super::error::{Result, StoreError, StoreErrorKind};
use super::{JobWords, ScriptEdit};
use crate::domain::audit::AuditNote;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A change that an API call asks for, and whose transaction has not begun after this long, also for the second time, is not
/// made: its caller may have given up and gone on to something else. As long as the API waits for a request's head or body,
/// so longer than a server takes to end a transaction that was left alone, after which the change is made again.
pub const CHANGE_BEGIN_MAX: Duration = Duration::from_secs(10);

/// What a change of tasks writes beside their definitions.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Words of portals.
    pub words: Vec<JobWords>,
    /// Scripts.
    pub scripts: Vec<ScriptEdit>,
}

/// Notes that the next commit writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Option<Arc<Pending>>);

#[derive(Debug)]
struct Pending {
    notes: Vec<AuditNote>,
    beside: Beside,
    /// When the change was first asked for.
    since: Instant,
    is_written: AtomicBool,
}

impl Notes {
    pub fn new(notes: Vec<AuditNote>, beside: Beside) -> Self {
        let (since, is_written) = (Instant::now(), AtomicBool::new(false));
        Self(Some(Arc::new(Pending { notes, beside, since, is_written })))
    }

    /// What is still to be written.
    pub fn open(&self) -> Option<&[AuditNote]> {
        self.pending().map(|pending| &pending.notes[..])
    }

    /// What is still to be written beside definitions.
    pub fn open_beside(&self) -> Option<&Beside> {
        self.pending().map(|pending| &pending.beside)
    }

    /// An error when the change is still to be made and must not begin any more.
    pub fn refuse_too_late(&self, action: &'static str) -> Result<()> {
        match self.pending() {
            Some(pending) if pending.since.elapsed() > CHANGE_BEGIN_MAX => {
                let detail = format!("not begun within {CHANGE_BEGIN_MAX:?}, and not made");
                Err(StoreError::new(StoreErrorKind::TooLate, action, detail))
            }
            _ => Ok(()),
        }
    }

    fn pending(&self) -> Option<&Pending> {
        self.0.as_deref().filter(|pending| !pending.is_written.load(Ordering::Acquire))
    }

    /// They are committed.
    pub fn close(&self) {
        if let Some(pending) = &self.0 {
            pending.is_written.store(true, Ordering::Release);
        }
    }
}
