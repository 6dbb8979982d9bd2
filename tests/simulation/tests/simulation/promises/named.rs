//! P6: the reply to a change names a run only if its executor has it, and as out of reach only if something was out of order then.

use super::Evidence;
use crate::faults::Planned;
use crate::tasks::Answered;
use carillon::domain::{ExecutorId, LogId};

/// A change is answered so long after it was asked for at most, where nothing is out of order, ms.
const ASKED_MS: i64 = 5_000;

impl Evidence<'_> {
    /// Looks at every reply.
    pub fn only_what_must_be_is_named(&mut self) {
        for answered in self.world.answers.lock().unwrap().iter() {
            if self.is_taken_back(answered) {
                continue;
            }
            for log in answered.running.iter().chain(&answered.unreachable) {
                if self.executor_before(*log, answered.at).is_none() {
                    let detail = format!("{answered:?}, and no executor had it by then");
                    self.breaks("P6 a run is named only if an executor has it", Some(*log), detail);
                }
            }
            for log in &answered.unreachable {
                if self.could_be_asked_for(answered, *log) {
                    let detail = format!("{answered:?}, and nothing was out of order then");
                    self.breaks("P6 a run is called out of reach only if it may be", Some(*log), detail);
                }
            }
        }
    }

    /// Who had it then, and when the dispatch was recorded.
    fn executor_before(&self, log: LogId, at: i64) -> Option<ExecutorId> {
        self.marks_of(log).rfind(|(_, mark)| mark.at <= at).map(|(_, mark)| mark.executor_id)
    }

    /// Whether nothing was out of order then but other executors.
    fn could_be_asked_for(&self, answered: &Answered, log: LogId) -> bool {
        let address = self.executor_before(log, answered.at).map(|id| self.state.executor_address(id));
        let is_its = |index: usize| address.as_ref().is_none_or(|it| it == self.world.executors[index].address());
        let concerns = |planned: &Planned| planned.executor().is_none_or(is_its);
        self.has_begun(answered.at) && !self.disturbances(answered.at - ASKED_MS, answered.at).any(concerns)
    }
}
