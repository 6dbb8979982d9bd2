//! From local times to instants.
//!
//! No zone has changed its offset twice within four days since 1970, and no overlap is longer than half a day
//! (tests check both). So the two passes of an overlap lie in two neighbouring stretches of a zone's time, and a
//! change concerns only the local times of the days around it.

use chrono_tz::Tz;

use super::filter::{Filter, Unfiltered, Worked};
use super::offsets::{EARLIEST, Stretch};
use super::{CronSchedule, DstPolicy, Gap, Overlap};
use crate::domain::calendar::{Calendar, CalendarRule};

const DAY: i64 = 86_400;

/// How far from an instant changes of offset are of interest, in seconds. The local times that a change
/// repeats or leaves out lie within 26 hours of it, because offsets range from -12 to +14 hours.
const REACH: i64 = 2 * DAY;

/// Where the search goes on.
type Place = (Stretch, i64);

impl CronSchedule {
    /// The first fire strictly after `after_ms`, both in milliseconds since the epoch, in UTC; fires fall on
    /// whole seconds. `None` if the schedule does not fire again (its last year is [`super::LAST_YEAR`]).
    ///
    /// Which instants fire depends on the schedule, the zone and the policy only, never on `after_ms`: the
    /// fires make one strictly increasing row, and this finds the place in it.
    #[must_use]
    pub fn next_after(&self, after_ms: i64, zone: Tz, dst: DstPolicy) -> Option<i64> {
        self.search(after_ms, zone, dst, &Unfiltered)
    }

    /// [`Self::next_after`] for a task that keeps to a calendar: fires on days that are not working days are
    /// left out or move by `rule`, those in excluded hours are left out; what remains follows `dst`.
    #[must_use]
    pub fn next_worked_after(
        &self,
        after_ms: i64,
        zone: Tz,
        dst: DstPolicy,
        calendar: &Calendar,
        rule: CalendarRule,
    ) -> Option<i64> {
        self.search(after_ms, zone, dst, &Worked { calendar, rule })
    }

    /// Whether it names this local time, in seconds since 1970-01-01T00:00:00 on the wall clock.
    pub(in crate::domain) fn names(&self, local: i64) -> bool {
        self.next_local(local) == Some(local)
    }

    fn search<F: Filter>(&self, after_ms: i64, zone: Tz, dst: DstPolicy, filter: &F) -> Option<i64> {
        let passed = after_ms.div_euclid(1000).max(EARLIEST);
        // A change at `from` is still ahead: a fire in the gap there has not passed.
        let (mut stretch, mut from) = (Stretch::at(zone, passed), passed + 1);
        let mut known = None;
        loop {
            let local = known.take().or_else(|| filter.next_local(self, from + stretch.offset()));
            let fire = local.map(|local| local - stretch.offset());
            let end = stretch.end();
            if let Some(fire) = fire
                && fire < end
            {
                match self.unwanted_pass(stretch, fire, dst.overlap) {
                    None => return fire.checked_mul(1000),
                    Some(place) => (stretch, from) = place,
                }
                continue;
            }
            let next = stretch.next()?;
            let landing = end + next.offset();
            if self.fires_at_gap_end(stretch, next, fire, dst.gap) && filter.allows(landing) {
                return end.checked_mul(1000);
            }
            // Only a change this close can bring back local times that have passed.
            let brings_back = end - from <= REACH;
            match fire {
                None if !brings_back => return None,
                // Nothing comes before the day of the next match, so look around there only.
                Some(fire) if !brings_back && fire - end > REACH => {
                    from = fire - REACH;
                    stretch = Stretch::at(zone, from);
                    known = local;
                }
                _ => (stretch, from) = (next, end),
            }
        }
    }

    /// Whether a schedule that is next due at `fire`, were the clock not changed, fires at the change from
    /// `before` to `after` because its local time is in the gap there.
    fn fires_at_gap_end(&self, before: Stretch, after: Stretch, fire: Option<i64>, gap: Gap) -> bool {
        let length = after.offset() - before.offset();
        // A gap of a whole day is a calendar day that did not exist.
        let left_out = fire.is_some_and(|fire| fire < after.start() + length) && length < DAY;
        left_out && self.fires_after_gaps(gap)
    }

    /// What [`Gap::Auto`] comes to for this schedule: whether a time in a gap fires at its end.
    pub(in crate::domain) fn fires_after_gaps(&self, gap: Gap) -> bool {
        match gap {
            Gap::Auto => self.fixed,
            Gap::Skip => false,
            Gap::After => true,
        }
    }

    /// If `fire`, in `stretch`, lies in a pass of an overlap in which the schedule does not fire: where to
    /// go on.
    fn unwanted_pass(&self, stretch: Stretch, fire: i64, overlap: Overlap) -> Option<Place> {
        match overlap {
            Overlap::Auto if !self.fixed => None,
            Overlap::Both => None,
            Overlap::Second => {
                let next = stretch.next()?;
                let length = stretch.offset() - next.offset();
                (fire >= stretch.end() - length).then_some((next, stretch.end()))
            }
            Overlap::First | Overlap::Auto => {
                // The first stretch starts at the beginning of time, and has none before it.
                let length = stretch.previous()?.offset() - stretch.offset();
                let end = stretch.start() + length;
                (fire < end).then_some((stretch, end))
            }
        }
    }
}
