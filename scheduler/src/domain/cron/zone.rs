//! From local times to instants.
//!
//! chrono-tz tells the offset at an instant but not when it changes, so a change is found by comparing
//! offsets at two ends and, if they differ, by bisection between them. That is right as long as no zone
//! changes twice within [`REACH`]; since 1970 none has changed twice within a week (a test checks).

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::Tz;

use super::{CronSchedule, DstPolicy, Gap, Overlap};

const DAY: i64 = 86_400;

/// How far from an instant changes of offset are looked for, in seconds. The local times that a change
/// repeats or leaves out lie within 26 hours of it, because offsets range from -12 to +14 hours.
const REACH: i64 = 2 * DAY;

/// No overlap is longer, in seconds; the longest one since 1970 took 7 hours.
const LONGEST_OVERLAP: i64 = DAY / 2;

/// No local time of 1970 comes before this instant, in seconds.
const EARLIEST: i64 = -2 * DAY;

/// A stretch of time in which a zone's wall clock runs on evenly: from the instant `from`, in seconds, at
/// `offset` seconds east of UTC, up to the next change. That change may be at `from` itself, in which case
/// `offset` is the one before it.
#[derive(Clone, Copy)]
struct Stretch {
    from: i64,
    offset: i64,
}

/// Which of the two passes of an overlap an instant is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Second,
}

impl CronSchedule {
    /// The first fire strictly after `after_ms`, both in milliseconds since the epoch, in UTC; fires fall on
    /// whole seconds. `None` if the schedule does not fire again (its last year is [`super::LAST_YEAR`]).
    ///
    /// Which instants fire depends on the schedule, the zone and the policy only, never on `after_ms`: the
    /// fires make one strictly increasing row, and this finds the place in it.
    #[must_use]
    pub fn next_after(&self, after_ms: i64, zone: Tz, dst: DstPolicy) -> Option<i64> {
        let passed = after_ms.div_euclid(1000).max(EARLIEST);
        let mut stretch = Stretch { from: passed + 1, offset: offset_at(zone, passed) };
        let mut known = None;
        loop {
            let local = known.take().or_else(|| self.next_local(stretch.from + stretch.offset));
            // Only a change this close can bring back local times that have passed.
            let near = stretch.from.saturating_add(REACH);
            let fire = local.map(|local| local - stretch.offset);
            let until = fire.map_or(near, |fire| fire.min(near));
            if let Some(next) = stretch.change(zone, until) {
                if self.fires_at_gap_end(stretch, next, fire, dst.gap) {
                    return next.from.checked_mul(1000);
                }
                stretch = next;
                continue;
            }
            let fire = fire?;
            if fire > near {
                // Nothing comes before the day of the next match, so look around there only.
                let from = fire - REACH;
                let offset = offset_at(zone, from);
                stretch = Stretch { from, offset };
                known = local;
                continue;
            }
            match self.unwanted_pass(stretch, fire, zone, dst.overlap) {
                None => return fire.checked_mul(1000),
                Some(next) => stretch = next,
            }
        }
    }

    /// Whether a schedule that is next due at `fire`, were the clock not changed, fires at the change from
    /// `before` to `after` because its local time is in the gap there.
    fn fires_at_gap_end(&self, before: Stretch, after: Stretch, fire: Option<i64>, gap: Gap) -> bool {
        let after_gap = match gap {
            Gap::Auto => self.fixed,
            Gap::Skip => false,
            Gap::After => true,
        };
        let length = after.offset - before.offset;
        // A gap of a whole day is a calendar day that did not exist.
        let left_out = fire.is_some_and(|fire| fire < after.from + length) && length < DAY;
        after_gap && left_out
    }

    /// If `fire`, in `stretch`, lies in a pass of an overlap in which the schedule does not fire: where to
    /// go on.
    fn unwanted_pass(&self, stretch: Stretch, fire: i64, zone: Tz, overlap: Overlap) -> Option<Stretch> {
        let unwanted = match overlap {
            Overlap::Auto if self.fixed => Pass::Second,
            Overlap::First => Pass::Second,
            Overlap::Second => Pass::First,
            Overlap::Auto | Overlap::Both => return None,
        };
        let here = Stretch { from: fire, offset: stretch.offset };
        match unwanted {
            Pass::First => here.second_pass(zone),
            // The last change was too long ago; this spares most schedules the look at the zone.
            Pass::Second if fire - stretch.from > LONGEST_OVERLAP => None,
            Pass::Second => here.end_of_second_pass(zone),
        }
    }
}

impl Stretch {
    /// The stretch after the first change at or after `from` and up to `until`, if there is one.
    fn change(self, zone: Tz, until: i64) -> Option<Self> {
        if until < self.from || offset_at(zone, until) == self.offset {
            return None;
        }
        let (mut before, mut after) = (self.from - 1, until);
        while after - before > 1 {
            let middle = before.midpoint(after);
            if offset_at(zone, middle) == self.offset {
                before = middle;
            } else {
                after = middle;
            }
        }
        let offset = offset_at(zone, after);
        Some(Self { from: after, offset })
    }

    /// If `from` is in the first pass of an overlap: where its second pass starts.
    fn second_pass(self, zone: Tz) -> Option<Self> {
        let offset = offset_at(zone, self.from + LONGEST_OVERLAP);
        let again = self.from + self.offset - offset;
        let repeated = offset < self.offset && offset_at(zone, again) == offset;
        if !repeated {
            return None;
        }
        self.change(zone, again)
    }

    /// If `from` is in the second pass of an overlap: where that ends.
    fn end_of_second_pass(self, zone: Tz) -> Option<Self> {
        let offset = offset_at(zone, self.from - LONGEST_OVERLAP);
        let before = self.from + self.offset - offset;
        let repeated = offset > self.offset && offset_at(zone, before) == offset;
        if !repeated {
            return None;
        }
        let first = Self { from: before, offset };
        let second = first.change(zone, self.from)?;
        Some(Self { from: second.from + offset - self.offset, offset: self.offset })
    }
}

/// The offset of `zone` at an instant in seconds since the epoch, in seconds east of UTC.
fn offset_at(zone: Tz, instant: i64) -> i64 {
    DateTime::from_timestamp(instant, 0).map_or(0, |utc| {
        let offset = zone.offset_from_utc_datetime(&utc.naive_utc());
        i64::from(offset.fix().local_minus_utc())
    })
}
