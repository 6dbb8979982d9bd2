//! What a stand-in has to say of runs for which nobody calls back: it waits here until a worker takes it in.

use crate::domain::{ExecutorId, Owner};
use carillon_protocol::RunResult;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Reports that wait at most; what does not fit is found by asking the executor later.
const REPORTS_MAX: usize = 10_000;

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// Whose it is.
    pub owner: Owner,
    /// Who had it.
    pub executor_id: ExecutorId,
    /// What is said of it.
    pub result: RunResult,
}

/// Reports on their way.
#[derive(Debug, Default)]
pub struct Reports {
    waiting: Mutex<Vec<Report>>,
    said: Arc<Notify>,
}

impl Reports {
    /// Hands one over.
    pub fn say(&self, report: Report) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() >= REPORTS_MAX {
            let log = report.result.log;
            tracing::warn!(log, "too many reports wait; what became of the run is found by asking later");
            return;
        }
        waiting.push(report);
        drop(waiting);
        self.said.notify_one();
    }

    /// Takes all that wait.
    pub fn take(&self) -> Vec<Report> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Told when one comes.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.said)
    }
}
