//! Times for which the database has no heartbeat of any node. Either no node ran, and what was due then was missed; or the
//! database was restored from a backup, and what was due then may have run. Who lived through it tells: executors say when
//! a node last acknowledged them, and a node that kept running knows its own heartbeats.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Heartbeats of nodes that are further apart leave a silence between them, ms. A database that lost less than this is
/// not taken for a restored one.
pub const SILENCE_MS: i64 = 60_000;

/// Clocks of executors are estimates: what one says of so short a time before the end of a silence may be meant of the time after
/// it, ms.
const CLOCKS_MS: i64 = 50;

/// What becomes of the runs that may have run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PastDecision {
    /// They are cancelled.
    Skip,
    /// They run as their tasks' policies for missed and lost runs say, some of them a second time.
    Run,
}

/// A time for which the database has no heartbeat of any node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// The last heartbeat before it, epoch ms.
    pub from: i64,
    /// The first one after it, epoch ms.
    pub until: i64,
    /// What was due until this instant (epoch ms) may have run, as someone who lived through it says; 0 while nobody does.
    pub lived_until: i64,
    /// Who says so.
    pub found_by: String,
    /// What an operator has decided since.
    pub decision: Option<PastDecision>,
}

impl Silence {
    /// Whether an operator has to decide what becomes of the past.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.lived_until > 0 && self.decision.is_none()
    }

    /// Whether its witnesses may still come forward: for `grace_ms` after it.
    #[must_use]
    pub fn is_fresh(&self, now: i64, grace_ms: i64) -> bool {
        (self.until..self.until + grace_ms).contains(&now)
    }
}

/// What is due at or before this instant (epoch ms) may have run and is held: until an operator decides, and after each
/// silence for `grace_ms`, in which its witnesses have time to come forward.
#[must_use]
pub fn held_until(silences: &[Silence], now: i64, grace_ms: i64) -> Option<i64> {
    let held = silences.iter().filter_map(|silence| {
        let open = silence.is_open().then_some(silence.lived_until);
        let fresh = silence.is_fresh(now, grace_ms).then_some(silence.until);
        open.max(fresh)
    });
    held.max()
}

/// What was to fire at or before this instant (epoch ms) may have run: it is held, or is not to run again. So what is
/// made up for it now must not be due now.
#[must_use]
pub fn doubted_until(silences: &[Silence], now: i64, grace_ms: i64) -> Option<i64> {
    let skipped = silences.iter().filter(|silence| silence.decision == Some(PastDecision::Skip));
    skipped.map(|silence| silence.lived_until).max().max(held_until(silences, now, grace_ms))
}

/// Whether a run that was due then (epoch ms) may have run, and is not to run again.
#[must_use]
pub fn is_skipped(silences: &[Silence], due_time: i64) -> bool {
    silences.iter().any(|silence| silence.decision == Some(PastDecision::Skip) && due_time <= silence.lived_until)
}

/// The silence within which a node acknowledged somebody (epoch ms), as they say, if that is news: with the time until which
/// runs may have gone out. The nodes that were lost may have dispatched for another `dispatched_for_ms`, or until there were
/// new ones, what was due `lead_ms` later.
#[must_use]
pub fn witnessed(
    silences: &[Silence],
    acknowledged_at: i64,
    (dispatched_for_ms, lead_ms): (i64, i64),
) -> Option<Silence> {
    let within = |silence: &&Silence| {
        silence.from + SILENCE_MS < acknowledged_at && acknowledged_at < silence.until.saturating_sub(CLOCKS_MS)
    };
    let silence = silences.iter().find(within)?;
    let lived_until = (acknowledged_at + dispatched_for_ms).min(silence.until) + lead_ms;
    (silence.lived_until < lived_until).then(|| Silence { lived_until, ..silence.clone() })
}

/// Who speaks of a silence that was too long for the past to run unasked.
const FOUND_BY_LENGTH: &str = "schedulers.hold_past_after";

/// After a longer time without any node the past is held until an operator decides.
#[derive(Debug, Clone, Copy, Default)]
pub struct LongestSilence {
    /// So long, ms; 0: none is too long.
    pub ms: i64,
    /// How long before their due time runs go out, ms.
    pub lead_ms: i64,
}

impl LongestSilence {
    /// A silence that whoever joins has found, ms: with the time until which runs may have gone out, as for [`witnessed`], if it was
    /// too long.
    #[must_use]
    pub fn found(self, from: i64, until: i64) -> Silence {
        let is_too_long = self.ms > 0 && until - from > self.ms;
        let (lived_until, found_by) =
            if is_too_long { (until + self.lead_ms, FOUND_BY_LENGTH.to_owned()) } else { (0, String::new()) };
        Silence { from, until, lived_until, found_by, decision: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence(lived_until: i64, decision: Option<PastDecision>) -> Silence {
        Silence { from: 100_000, until: 500_000, lived_until, found_by: String::new(), decision }
    }

    #[test]
    fn the_past_is_held_for_a_while_and_until_someone_decides_when_it_may_have_run() {
        let quiet = [silence(0, None)];
        assert_eq!(held_until(&quiet, 505_000, 10_000), Some(500_000));
        assert_eq!(held_until(&quiet, 510_000, 10_000), None);
        let lived = [silence(300_000, None)];
        assert_eq!(held_until(&lived, 505_000, 10_000), Some(500_000));
        assert_eq!(held_until(&lived, 510_000, 10_000), Some(300_000));
        for decision in [PastDecision::Skip, PastDecision::Run] {
            assert_eq!(held_until(&[silence(300_000, Some(decision))], 510_000, 10_000), None);
        }
    }

    #[test]
    fn only_what_may_have_run_is_skipped() {
        let skip = [silence(300_000, Some(PastDecision::Skip))];
        assert_eq!([1, 300_000, 300_001].map(|due| is_skipped(&skip, due)), [true, true, false]);
        assert!(!is_skipped(&[silence(300_000, Some(PastDecision::Run)), silence(300_000, None)], 200_000));
    }

    #[test]
    fn what_is_held_or_skipped_is_doubted() {
        let doubted = |lived_until, decision, now| doubted_until(&[silence(lived_until, decision)], now, 10_000);
        assert_eq!(doubted(0, None, 505_000), Some(500_000));
        assert_eq!(doubted(0, None, 510_000), None);
        assert_eq!(doubted(300_000, None, 900_000), Some(300_000));
        assert_eq!(doubted(300_000, Some(PastDecision::Skip), 900_000), Some(300_000));
        assert_eq!(doubted(300_000, Some(PastDecision::Run), 900_000), None);
    }

    #[test]
    fn a_silence_that_is_too_long_needs_no_witness() {
        let found = |ms| LongestSilence { ms, lead_ms: 3_000 }.found(100_000, 500_000).lived_until;
        assert_eq!([0, 400_000, 399_999].map(found), [0, 0, 503_000]);
    }

    #[test]
    fn a_witness_was_acknowledged_within_the_silence_and_tells_something_new() {
        let known = [silence(300_000, None)];
        let tells = |at: i64| witnessed(&known, at, (15_000, 3_000)).map(|silence| silence.lived_until);
        assert_eq!([0, 160_000, 160_001, 282_000, 499_950, 500_000].map(tells), [None; 6]);
        // The nodes may have gone on for a while, but not beside those that came later.
        assert_eq!([282_001, 485_000, 499_949].map(tells), [300_001, 503_000, 503_000].map(Some));
        assert!(witnessed(&[silence(0, None)], 160_001, (0, 0)).is_some());
        // Whatever an executor may say.
        for at in [i64::MIN, -1, i64::MAX] {
            assert_eq!(witnessed(&known, at, (15_000, 3_000)), None);
        }
    }
}
