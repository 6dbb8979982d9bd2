//! P5: what a handler came to reaches its row, however often a node could not take it: for as long as its process lives and is
//! heard. Nodes may give an attempt up only where its process is gone or was not heard for as long as they wait.

use super::Evidence;
use crate::settings::{ABANDON_AFTER_MS, PLAIN_LOST_AFTER_MS};
use carillon::domain::{LogId, Reason, Status};
use carillon_protocol::RunStatus;
use carillon_simulation::executor::{OfMachine, Start, Stop, Stopped};
use carillon_simulation::store::End;

impl Evidence<'_> {
    /// Looks at every handler that came to its end.
    pub fn no_result_is_lost(&mut self) {
        let (contacts, gone) = (self.world.ledger.contacts(), self.world.ledger.ends());
        for (key, stop) in self.stops.clone() {
            let (log, attempt) = (LogId(key.0), key.1);
            let Some(start) = self.starts.get(&key).map(|starts| starts[0].clone()) else { continue };
            let end = self.state.ends.get(&(log, attempt)).copied();
            if end.as_ref().is_some_and(|end| tells(&stop, end)) {
                continue;
            }
            let until = end.map_or(i64::MAX, |end| end.at).max(stop.at);
            let is_gone = gone.iter().any(|one| one.machine == start.machine && (start.at..=until).contains(&one.at));
            let silent = longest_silence(&contacts, &start, until);
            let patience = if self.is_plain(start.machine) { PLAIN_LOST_AFTER_MS } else { ABANDON_AFTER_MS };
            if !is_gone && silent < patience && !self.was_untold(key, stop.at, until) {
                let detail = format!(
                    "{:?} at {} of a process that lived and was not silent for more than {silent} ms; the row says {end:?}",
                    stop.how, stop.at
                );
                self.breaks("P5 the result of a process that lives and is heard is not lost", Some(log), detail);
            }
        }
    }
}

/// Whether the end of an attempt says what its handler came to.
fn tells(stop: &Stop, end: &End) -> bool {
    match stop.how {
        Stopped::Ended(RunStatus::Succeeded) => end.to == Status::Succeeded,
        // What was told to stop and fails has been stopped.
        Stopped::Ended(RunStatus::Failed) => {
            matches!(end.reason, Reason::HandlerFailed | Reason::CancelledManually | Reason::Covered)
        }
        // What was told to stop came to nothing of its own.
        _ => true,
    }
}

/// The longest time for which its machine was not heard, from the start of the attempt until then, ms.
fn longest_silence(contacts: &[OfMachine], start: &Start, until: i64) -> i64 {
    let heard = contacts.iter().filter(|one| one.machine == start.machine).map(|one| one.at);
    let before = heard.clone().take_while(|at| *at <= start.at).last().unwrap_or(start.at);
    let mut last = before;
    let mut longest = 0;
    for at in heard.filter(|at| (before..until).contains(at)).chain([until]) {
        longest = longest.max(at - last);
        last = at;
    }
    longest
}
