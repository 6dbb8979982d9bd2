//! What the next commit writes into the audit.

use crate::domain::audit::AuditNote;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Notes that the next commit writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes(Option<Arc<Pending>>);

#[derive(Debug)]
struct Pending {
    notes: Vec<AuditNote>,
    is_written: AtomicBool,
}

impl Notes {
    pub fn new(notes: Vec<AuditNote>) -> Self {
        Self(Some(Arc::new(Pending { notes, is_written: AtomicBool::new(false) })))
    }

    /// What is still to be written.
    pub fn open(&self) -> Option<&[AuditNote]> {
        self.0.as_ref().filter(|pending| !pending.is_written.load(Ordering::Acquire)).map(|pending| &pending.notes[..])
    }

    /// They are committed.
    pub fn close(&self) {
        if let Some(pending) = &self.0 {
            pending.is_written.store(true, Ordering::Release);
        }
    }
}
