//! Whether something that broke can have brought about what a row or an answer says.

use super::Evidence;
use crate::history::{NEAR_US, Span, Trouble, Visit};

/// Faults of an executor after which nodes may take it for dead, or it gives up what it runs.
const AWAY: [&str; 5] =
    ["kill-executor", "pause-executor", "vanish-executor", "partition-executor", "one-way-executor"];

/// The same of its own doing: it stops what does not end in time.
const LEAVES: &str = "restart-executor";

/// What an executor holds that is cut off while its task changes follows the change when the executor is known to be dead, and
/// its runs have been decided: `executors.abandon_after` (20 s in these runs), two time-outs, a heartbeat, µs.
const DECIDED_US: i64 = 53_000_000;

/// Otherwise it follows the answer so soon, µs.
const FOLLOWS_US: i64 = 5_000_000;

impl Evidence<'_> {
    /// Whether an attempt that was under way between these instants (epoch ms) can have come to an end of which its executor
    /// told nothing (`outcome_unknown`), or which it did not want (`abandoned`).
    pub(super) fn can_be_lost(&self, log: i64, attempt: i32, reason: &str, (from, until): (i64, i64)) -> bool {
        let visit = self.visits.get(&(log, attempt)).and_then(|visits| visits.last().copied());
        let (from_us, until_us) = (from * 1_000, until * 1_000);
        let is_given_up = reason == "abandoned";
        // What a node could not write down may be carried out later, and then names an executor that has left in good order.
        let is_unwritten = visit.is_none() && self.troubles(from_us, until_us).any(|trouble| !is_of_executor(trouble));
        self.troubles(from_us, until_us).any(|trouble| {
            // It lost every node, if all of them, or their database, are away.
            (is_given_up && !is_of_executor(trouble))
                || (self.may_be_of(trouble, visit)
                    && (AWAY.contains(&trouble.name.as_str())
                        || ((is_given_up || is_unwritten) && trouble.name == LEAVES)))
        })
    }

    /// Whether the nodes cannot have heard of a visit that ended well, so that they called it dead at `until` (epoch ms).
    pub(super) fn is_unheard(&self, visit: &Visit, until: i64) -> bool {
        self.troubles(visit.start_us, until * 1_000)
            .any(|trouble| self.may_be_of(trouble, Some(visit)) && AWAY.contains(&trouble.name.as_str()))
    }

    /// Whether what a handler had done at one instant may not have come to the nodes at a later one (epoch ms): a row's end has
    /// the handler's time, not that of its commit. It can be lost to what begins while it is on its way.
    pub(super) fn may_come_late(&self, done: i64, until: i64) -> bool {
        let arrives = done + self.known_within_ms();
        self.troubles(done * 1_000, arrives * 1_000).any(|trouble| until * 1_000 < trouble.until_us + NEAR_US)
    }

    /// Whether the answer to a change named this run as out of reach, and it can have been.
    pub(super) fn is_out_of_reach(&self, log: i64, span: &Span) -> bool {
        if !span.unreachable.contains(&log) {
            return false;
        }
        let visit = self.visits_of(log).last();
        let runs = visit.is_some_and(|visit| visit.start_us <= span.from_us);
        let others = self.history.spans.iter().filter(|other| other.task == span.task);
        let asked = others.map(|other| other.until_us).filter(|asked| *asked <= span.from_us).max();
        let mut troubles = self.troubles(asked.unwrap_or(span.from_us), span.from_us);
        // A node that is away takes what executors told it along.
        runs || troubles.any(|trouble| !is_of_executor(trouble) || self.may_be_of(trouble, visit))
    }

    /// Whether a change of the task was under way at this instant (epoch µs), or what it revoked may follow it still.
    pub(super) fn follows_change(&self, task: i64, at_us: i64, clocks_us: i64) -> bool {
        let spans: Vec<&Span> = self.history.spans.iter().filter(|span| span.task == task).collect();
        spans.iter().any(|before| {
            let asked = before.until_us;
            let answered = spans.iter().map(|after| after.from_us).filter(|from| *from >= asked).min();
            // One that got no answer may be carried out at any time.
            let follows_until = answered.map_or(i64::MAX, |answered| answered.saturating_add(FOLLOWS_US));
            let is_late = || {
                self.troubles(asked, follows_until).any(|trouble| at_us <= trouble.until_us.saturating_add(DECIDED_US))
            };
            asked != i64::MAX && asked - clocks_us <= at_us && (at_us <= follows_until || is_late())
        })
    }

    /// What broke, or had just been mended, between these instants, epoch µs.
    fn troubles(&self, from_us: i64, until_us: i64) -> impl Iterator<Item = &Trouble> {
        let is_then = move |trouble: &&Trouble| trouble.from_us <= until_us && from_us < trouble.until_us + NEAR_US;
        self.history.troubles.iter().filter(is_then)
    }

    /// Whether it befell the executor of this visit; of what never came to a handler nobody knows whose it was.
    fn may_be_of(&self, trouble: &Trouble, visit: Option<&Visit>) -> bool {
        let executor = visit.and_then(|visit| self.history.processes.get(&visit.pid));
        is_of_executor(trouble) && executor.is_none_or(|executor| *executor == trouble.target)
    }
}

fn is_of_executor(trouble: &Trouble) -> bool {
    trouble.name.ends_with("-executor")
}
