//! How many fires fall into each minute, without walking from second to second where a minute is even.
//!
//! Calendars exclude whole minutes of the wall clock. So wherever that clock runs on evenly by whole minutes, a
//! minute in which anything fires has all that its trigger names in it, and one step takes the whole of it.

use super::{Schedule, Timing};
use crate::domain::cron::Stretch;

/// In milliseconds.
const MINUTE: i64 = 60_000;

impl Schedule {
    /// Tells `add` the start of each minute (epoch ms, UTC) and how many of the fires after `after` and before
    /// `until` (ms) lie in it, in their order; a minute may come in two parts. Returns whether it came to the end:
    /// each minute takes from `steps`, and it stops where none are left, or where `add` says no.
    pub fn count(&self, after: i64, until: i64, steps: &mut u32, mut add: impl FnMut(i64, u64) -> bool) -> bool {
        let offset = self.spread_offset();
        // Nothing is looked for beyond the end: excluded hours of years could lie there.
        let end = self.end().min(until.saturating_sub(offset));
        if end <= 0 {
            return true;
        }
        let within = Self { valid_until: end, ..self.clone() };
        let mut at = within.next_instant(after.saturating_sub(offset));
        while at < end {
            if *steps == 0 {
                return false;
            }
            *steps -= 1;
            let part = within.part(at);
            // The spread may put the second half of the schedule's minute into the clock's next one.
            let turn = at + offset;
            let turn = (turn - turn.rem_euclid(MINUTE) + MINUTE - offset).min(part.end);
            let before_turn = part.fires_before(turn.min(end));
            let fires = part.fires_before(part.end.min(end));
            let minute = |instant: i64| (instant + offset) - (instant + offset).rem_euclid(MINUTE);
            if !add(minute(at), before_turn) || (fires > before_turn && !add(minute(turn), fires - before_turn)) {
                return false;
            }
            at = within.next_instant(part.end - 1);
        }
        true
    }

    /// What is known from the fire at `at` on, which the schedule names: the rest of its minute, or itself alone.
    fn part(&self, at: i64) -> Part {
        let minute = at - at.rem_euclid(MINUTE);
        let (end, apart) = match &self.timing {
            Timing::Cron(cron) if self.is_even(minute) => (minute + MINUTE, Apart::Seconds(cron.seconds())),
            Timing::FixedRate { interval_ms } if self.is_even(minute) => {
                (minute + MINUTE, Apart::Every((*interval_ms).max(1)))
            }
            _ => (at + 1, Apart::Every(MINUTE)),
        };
        Part { at, end, minute, apart }
    }

    /// Whether the zone's clock runs on evenly over the minute, and did so just before it: a fire out of a gap
    /// stands at the gap's end, alone.
    fn is_even(&self, minute: i64) -> bool {
        let second = minute.div_euclid(1_000);
        let stretch = Stretch::at(self.zone, second);
        stretch.offset() % 60 == 0 && stretch.start() < second && second + 60 <= stretch.end()
    }
}

/// Instants from `at` up to `end`, before the spread.
struct Part {
    at: i64,
    end: i64,
    minute: i64,
    apart: Apart,
}

/// How the instants of a part lie.
enum Apart {
    /// At these seconds of the minute.
    Seconds(u64),
    /// So many ms from one to the next.
    Every(i64),
}

impl Part {
    /// How many of its instants come before `end`, which lies after the first.
    fn fires_before(&self, end: i64) -> u64 {
        match self.apart {
            Apart::Every(apart) => (end - 1 - self.at).div_euclid(apart).cast_unsigned() + 1,
            Apart::Seconds(seconds) => {
                let first = (self.at - self.minute) / 1_000;
                let last = (end - 1 - self.minute) / 1_000;
                let among = (1_u64 << (last + 1)) - (1_u64 << first);
                u64::from((seconds & among).count_ones())
            }
        }
    }
}
