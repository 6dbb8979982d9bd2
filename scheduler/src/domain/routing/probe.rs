//! Fail-over and busy-over: executors are asked before one is sent to. The caller does the asking.

use super::{Executors, NoExecutor};
use crate::domain::executor::Executor;
use std::sync::Arc;

/// What an executor says to a probe for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It is there, and neither runs nor holds the task.
    Idle,
    /// It is there, and runs or holds the task.
    Busy,
    /// Nothing, or no, or not in time.
    Silent,
}

/// Whom to ask, in this order; the first that will do takes the run.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Whom to ask.
    pub executors: Executors,
    /// Whether one that is busy with the task will not do.
    pub skip_busy: bool,
}

impl Probe {
    /// Whether an executor with this answer will do; those after it need not be asked.
    #[must_use]
    pub fn accepts(&self, answer: ProbeAnswer) -> bool {
        match answer {
            ProbeAnswer::Idle => true,
            ProbeAnswer::Busy => !self.skip_busy,
            ProbeAnswer::Silent => false,
        }
    }

    /// The executor that takes the run after these answers, given in the order of the executors; those
    /// missing at the end did not answer.
    ///
    /// # Errors
    /// Why none does.
    pub fn settle(&self, answers: &[ProbeAnswer]) -> Result<Arc<Executor>, NoExecutor> {
        let found = self.executors.iter().zip(answers).find(|(_, answer)| self.accepts(**answer));
        if let Some((executor, _)) = found {
            return Ok(Arc::clone(executor));
        }
        let probed = self.executors.len();
        match answers.iter().take(probed).filter(|answer| **answer == ProbeAnswer::Busy).count() {
            0 => Err(NoExecutor::NoAnswer { probed }),
            busy => Err(NoExecutor::NoIdle { busy, silent: probed - busy }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fleet;
    use super::*;
    use ProbeAnswer::{Busy, Idle, Silent};

    #[test]
    fn the_first_that_will_do_takes_the_run() {
        let check = |skip_busy, answers: &[ProbeAnswer], expect: Result<i64, NoExecutor>| {
            let probe = Probe { executors: fleet(&[1, 1, 1]).into(), skip_busy };
            assert_eq!(probe.settle(answers).map(|executor| executor.id.0), expect, "{answers:?}, {skip_busy}");
        };
        check(false, &[Idle, Idle, Idle], Ok(1));
        check(false, &[Silent, Busy, Idle], Ok(2));
        check(true, &[Silent, Busy, Idle], Ok(3));
        check(true, &[Busy, Idle], Ok(2));
        check(false, &[Silent, Silent, Silent], Err(NoExecutor::NoAnswer { probed: 3 }));
        check(false, &[], Err(NoExecutor::NoAnswer { probed: 3 }));
        check(true, &[Silent; 3], Err(NoExecutor::NoAnswer { probed: 3 }));
        check(true, &[Busy, Busy, Busy], Err(NoExecutor::NoIdle { busy: 3, silent: 0 }));
        check(true, &[Busy, Silent], Err(NoExecutor::NoIdle { busy: 1, silent: 2 }));
    }
}
