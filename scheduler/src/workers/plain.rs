//! The workers that speak for plain executors.

use super::{EnginePeriods, Round, RunEndSignal, Work, Worker};
use crate::domain::{ExecutorId, Owner};
use crate::engine::Engine;
use crate::store::Store;
use crate::xxljob::{Inquiry, Reports, Vouching};
use carillon_protocol::RunResult;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What they work with.
pub struct PlainParts<S: Store> {
    /// Speaks for them.
    pub vouching: Vouching,
    /// Asks what became of their runs.
    pub inquiry: Inquiry<S>,
    /// What is to be said of their runs.
    pub reports: Arc<Reports>,
    /// Takes it in.
    pub engine: Arc<Engine<S>>,
    /// Told when runs have ended.
    pub ended: Arc<RunEndSignal>,
}

impl<S: Store + 'static> PlainParts<S> {
    /// Each of them.
    pub fn workers(self: &Arc<Self>, periods: &EnginePeriods) -> Vec<Work> {
        let (period, never) = (periods.vouch, Arc::default);
        vec![
            Work::new(Worker::Vouch, period, never(), self, vouch),
            Work::new(Worker::Inquiry, period, never(), self, inquire),
            Work::new(Worker::Reports, period, self.reports.wake(), self, take_reports),
        ]
    }
}

async fn vouch<S: Store + 'static>(parts: Arc<PlainParts<S>>) -> Round {
    Ok(parts.vouching.tick().await?)
}

async fn inquire<S: Store + 'static>(parts: Arc<PlainParts<S>>) -> Round {
    Ok(parts.inquiry.tick().await?)
}

/// What cannot be written now waits for the next round: it is found by asking, too.
async fn take_reports<S: Store + 'static>(parts: Arc<PlainParts<S>>) -> Round {
    let reports = parts.reports.take();
    let mut by_executor: BTreeMap<(Owner, ExecutorId), Vec<RunResult>> = BTreeMap::new();
    for report in &reports {
        by_executor.entry((report.owner, report.executor_id)).or_default().push(report.result.clone());
    }
    let any = !by_executor.is_empty();
    for ((owner, executor_id), results) in by_executor {
        if let Err(error) = parts.engine.ingestion.apply(owner, executor_id, &results).await {
            for report in reports {
                parts.reports.say(report);
            }
            return Err(error.into());
        }
    }
    if any {
        parts.ended.notify(&parts.engine);
    }
    Ok(())
}
