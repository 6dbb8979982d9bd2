//! The number that an attempt has on xxl-job's wire, `logId`.
//!
//! It is the only field of a callback that every client returns as it was sent, so it names the run and the attempt by
//! itself. Clients in JavaScript read it as a double, so it stays below 2^53; the 63 bits of a log's id do not fit.
//!
//! ```text
//! id of a log        10 ms | 31 ms | 10 node | 12 sequence
//! first attempt              31 ms | 10 node | 12 sequence
//! later attempt              31    |  0      | 12
//! ```
//!
//! The number of a first attempt is the lower part of its log's id, and is widened by the clock when it comes back: no
//! statement is needed. Numbers of later attempts are rows. No node has the number 0, so each number says which kind it is.

use crate::domain::id_source::{NODE_BITS, SEQUENCE_BITS};
use crate::domain::{IdSource, LogId};

/// Bits of a number.
const BITS: i64 = 53;

/// Bits of an id below its milliseconds.
const BELOW_MS: i64 = NODE_BITS + SEQUENCE_BITS;

/// Largest number: the largest integer that a double holds together with all smaller ones.
pub const NUMBER_MAX: i64 = (1 << BITS) - 1;

/// How far ahead of the cluster clock a log may have been made, ms: bursts borrow from the coming milliseconds, and the clock
/// may have been set back since.
pub const AHEAD_MAX_MS: i64 = 86_400_000;

/// How long after its log was made the number of a first attempt is understood, ms (exclusive): 23.8 days. After that it is
/// taken for the number of a log that has not been made yet, which no row answers to.
pub const READ_WITHIN_MS: i64 = (1 << (BITS - BELOW_MS)) - AHEAD_MAX_MS;

/// How many numbers there are for later attempts.
pub const LATER_COUNT: i64 = (1 << (BITS - NODE_BITS)) - 1;

/// The number of the first attempt of `log`, an id that a node made: 1..=[`NUMBER_MAX`].
#[must_use]
pub fn of_first(log: LogId) -> i64 {
    log.0 & NUMBER_MAX
}

/// A number for a later attempt, 1..=[`NUMBER_MAX`]: another one for each `serial` in 0..[`LATER_COUNT`], beyond which they
/// begin anew. Whoever takes one writes down which attempt has it.
#[must_use]
pub fn of_later(serial: i64) -> i64 {
    let place = 1 + serial.rem_euclid(LATER_COUNT);
    let low = place & ((1 << SEQUENCE_BITS) - 1);
    ((place >> SEQUENCE_BITS) << BELOW_MS) | low
}

/// What a number names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// The first attempt of this log.
    First(LogId),
    /// The attempt that is written down under this number.
    Later(i64),
}

impl Number {
    /// Reads `n` at `now_ms` (cluster clock, epoch ms); `None` for what no attempt can have. A first attempt is the right one
    /// if its log was made less than [`READ_WITHIN_MS`] ago and at most [`AHEAD_MAX_MS`] ahead; whether there is such a
    /// log, and whether that attempt is current, its row says.
    #[must_use]
    pub fn read(n: i64, now_ms: i64) -> Option<Self> {
        if !(1..=NUMBER_MAX).contains(&n) {
            return None;
        }
        if IdSource::made_by(n).is_none() {
            return Some(Self::Later(n));
        }
        let newest = IdSource::first_at::<i64>(now_ms.saturating_add(AHEAD_MAX_MS)) | ((1 << BELOW_MS) - 1);
        // The newest id up to that one that ends in these bits.
        let id = newest - (newest - n).rem_euclid(1 << BITS);
        (id > 0).then_some(Self::First(LogId(id)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::NodeId;
    use crate::domain::id_source::NODE_NUMBER_MAX;
    use proptest::prelude::*;

    /// 2025-01-01, the first millisecond of ids, and 2094, the last.
    const MS: std::ops::Range<i64> = 0..1 << 41;

    fn id(ms: i64, node: i64, sequence: i64) -> LogId {
        LogId((ms << BELOW_MS) | (node << SEQUENCE_BITS) | sequence)
    }

    fn any_log() -> impl Strategy<Value = LogId> {
        let sequence = 0..1_i64 << SEQUENCE_BITS;
        // Numbers of a few bits, and ids around the ends of a period, are as likely as the rest.
        let ms = prop_oneof![MS, 0..10_i64, (1_i64..1_000).prop_map(|period| (period << 31) - 1), Just(MS.end - 1)];
        (ms, 1..=NODE_NUMBER_MAX, sequence).prop_map(|(ms, node, sequence)| id(ms, node, sequence))
    }

    fn any_clock() -> impl Strategy<Value = i64> {
        let first = IdSource::made_at(0);
        prop_oneof![3 => MS.prop_map(move |ms| first + ms), 1 => any::<i64>()]
    }

    #[test]
    fn numbers_stay_as_they_are() {
        let log = IdSource::new(NodeId(7)).next::<LogId>(1_767_225_600_000);
        assert_eq!((log.0, of_first(log)), (132_271_570_944_028_672, 6_170_781_377_654_784));
        assert_eq!(Number::read(of_first(log), 1_767_225_600_000), Some(Number::First(log)));
        assert_eq!((of_later(0), of_later(4_094), of_later(4_095)), (1, 4_095, 1 << 22));
        assert_eq!(of_later(LATER_COUNT - 1), NUMBER_MAX - (NODE_NUMBER_MAX << SEQUENCE_BITS));
        assert_eq!(of_later(LATER_COUNT), of_later(0));
    }

    #[test]
    fn what_no_attempt_can_have_is_none() {
        for n in [i64::MIN, -1, 0, NUMBER_MAX + 1, i64::MAX] {
            assert_eq!(Number::read(n, 1_767_225_600_000), None);
        }
        // The clock stands before any log with this number was made.
        let late = of_first(id(1 << 30, 1, 0));
        assert_eq!(Number::read(late, IdSource::made_at(0)), None);
    }

    #[test]
    fn an_answer_that_comes_too_late_names_a_log_that_is_not_made_yet() {
        let log = id(1 << 35, 3, 9);
        let made_at = IdSource::made_at(log);
        assert_eq!(Number::read(of_first(log), made_at + READ_WITHIN_MS - 1), Some(Number::First(log)));
        let Some(Number::First(other)) = Number::read(of_first(log), made_at + READ_WITHIN_MS) else {
            panic!("a first attempt")
        };
        assert!(IdSource::made_at(other) > made_at + READ_WITHIN_MS);
        assert_eq!(Number::read(of_first(log), made_at - AHEAD_MAX_MS), Some(Number::First(log)));
        assert_ne!(Number::read(of_first(log), made_at - AHEAD_MAX_MS - 1), Some(Number::First(log)));
    }

    proptest! {
        #[test]
        fn a_first_attempt_comes_back_as_itself(log in any_log(), after in -AHEAD_MAX_MS..READ_WITHIN_MS) {
            let n = of_first(log);
            prop_assert!((1..=NUMBER_MAX).contains(&n));
            prop_assert_eq!(Number::read(n, IdSource::made_at(log) + after), Some(Number::First(log)));
        }

        #[test]
        fn a_later_attempt_is_never_taken_for_a_first_one(serial in any::<i64>(), now in any_clock()) {
            let n = of_later(serial);
            prop_assert!((1..=NUMBER_MAX).contains(&n));
            prop_assert_eq!(Number::read(n, now), Some(Number::Later(n)));
        }

        #[test]
        fn a_first_attempt_is_never_taken_for_a_later_one(log in any_log(), now in any_clock()) {
            let read = Number::read(of_first(log), now);
            prop_assert!(!matches!(read, Some(Number::Later(_))), "{:?}", read);
        }

        /// As a double, which is what JavaScript makes of it.
        #[test]
        fn a_number_survives_being_a_double(log in any_log(), serial in any::<i64>()) {
            for n in [of_first(log), of_later(serial)] {
                prop_assert_eq!(n as f64 as i64, n);
            }
        }

        #[test]
        fn later_attempts_do_not_share_numbers(one in 0..LATER_COUNT, other in 0..LATER_COUNT) {
            prop_assert_eq!(of_later(one) == of_later(other), one == other);
        }

        #[test]
        fn any_number_is_read_as_what_it_was_made_from(n in any::<i64>(), low in 1..=NUMBER_MAX, now in any_clock()) {
            for n in [n, low] {
                match Number::read(n, now) {
                    Some(Number::First(log)) => {
                        prop_assert_eq!(of_first(log), n);
                        prop_assert!(!IdSource::made_by(log).is_none());
                        let at = IdSource::made_at(log);
                        let is_ahead = at > now.saturating_add(AHEAD_MAX_MS) && at > IdSource::made_at(0);
                        prop_assert!(!is_ahead, "made at {}, read at {}", at, now);
                        let is_in_range = now < IdSource::made_at(i64::MAX) - AHEAD_MAX_MS;
                        prop_assert!(at > now.saturating_sub(READ_WITHIN_MS) || !is_in_range);
                    }
                    Some(Number::Later(same)) => prop_assert_eq!(same, n),
                    None => {}
                }
            }
        }
    }
}
