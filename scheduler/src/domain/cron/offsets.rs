//! The wall clocks of all zones as tables: at which instants does an offset change?
//!
//! chrono-tz tells the offset at an instant but not when it changes, and takes a binary search through some
//! hundred changes for it. Here a zone's changes are found once, on first use, and kept in a place that is
//! reserved for them in the program's image: an answer costs a few nanoseconds and nothing is ever allocated.

use std::sync::OnceLock;

use chrono::{DateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

const DAY: i64 = 86_400;

/// No local time of 1970 comes before this instant, in seconds; changes before it are left out.
pub(super) const EARLIEST: i64 = -2 * DAY;

/// chrono-tz has no changes from here on (2101), in seconds.
const LATEST: i64 = 48_000 * DAY;

/// No two changes of a zone are this close to each other, in seconds (a test checks).
const STEP: i64 = 4 * DAY;

/// No zone has more stretches between changes than this (a test checks).
const STRETCHES_MAX: usize = 480;

/// The index has one entry for each 2^24 seconds, which is half a year.
const BUCKET_BITS: u32 = 24;

/// Entries of the index; the last one begins after the last change.
const BUCKETS: usize = (LATEST >> BUCKET_BITS) as usize + 2;

static ZONES: [OnceLock<Offsets>; TZ_VARIANTS.len()] = [const { OnceLock::new() }; TZ_VARIANTS.len()];

/// All stretches of a zone, in order.
struct Offsets {
    /// Where each stretch starts, in seconds; those that are not used start at the end of time.
    starts: [i64; STRETCHES_MAX + 1],
    /// How far each stretch is east of UTC, in seconds.
    east: [i32; STRETCHES_MAX + 1],
    /// The stretch in which each bucket starts.
    index: [u16; BUCKETS],
}

/// A stretch of time in which a zone's wall clock runs on evenly.
#[derive(Clone, Copy)]
pub(in crate::domain) struct Stretch {
    zone: &'static Offsets,
    at: usize,
}

impl Stretch {
    /// The one that `instant` is in, in seconds since the epoch.
    pub(in crate::domain) fn at(zone: Tz, instant: i64) -> Self {
        let zone = ZONES[zone as usize].get_or_init(|| Offsets::new(zone));
        let bucket = (instant >> BUCKET_BITS).clamp(0, BUCKETS as i64 - 1);
        let mut at = usize::from(zone.index[bucket as usize]);
        while at + 1 < STRETCHES_MAX && zone.starts[at + 1] <= instant {
            at += 1;
        }
        Self { zone, at }
    }

    /// Seconds east of UTC.
    pub(in crate::domain) fn offset(self) -> i64 {
        self.zone.east[self.at].into()
    }

    /// Its first instant, in seconds; `i64::MIN` for the first stretch.
    pub(in crate::domain) fn start(self) -> i64 {
        self.zone.starts[self.at]
    }

    /// The instant after its last, at which the next one starts, in seconds; `i64::MAX` for the last stretch.
    pub(in crate::domain) fn end(self) -> i64 {
        self.zone.starts[self.at + 1]
    }

    /// The one after it.
    pub(in crate::domain) fn next(self) -> Option<Self> {
        (self.end() < i64::MAX).then_some(Self { at: self.at + 1, ..self })
    }

    /// The one before it.
    pub(in crate::domain) fn previous(self) -> Option<Self> {
        Some(Self { at: self.at.checked_sub(1)?, ..self })
    }
}

impl Offsets {
    fn new(zone: Tz) -> Self {
        let mut this =
            Self { starts: [i64::MAX; STRETCHES_MAX + 1], east: [0; STRETCHES_MAX + 1], index: [0; BUCKETS] };
        let mut last = 0;
        this.starts[0] = i64::MIN;
        this.east[0] = offset_at(zone, EARLIEST);
        let mut instant = EARLIEST;
        while instant < LATEST && last + 1 < STRETCHES_MAX {
            let next = instant + STEP;
            if offset_at(zone, next) != this.east[last] {
                let change = find_change(zone, instant, next);
                last += 1;
                this.starts[last] = change;
                this.east[last] = offset_at(zone, change);
            }
            instant = next;
        }
        let mut at = 0;
        for (bucket, entry) in this.index.iter_mut().enumerate().skip(1) {
            while at < last && this.starts[at + 1] <= (bucket as i64) << BUCKET_BITS {
                at += 1;
            }
            *entry = at as u16;
        }
        this
    }
}

/// The first instant of the offset at `after`, which is another one than that at `before`.
fn find_change(zone: Tz, mut before: i64, mut after: i64) -> i64 {
    let old = offset_at(zone, before);
    while after - before > 1 {
        let middle = before.midpoint(after);
        if offset_at(zone, middle) == old {
            before = middle;
        } else {
            after = middle;
        }
    }
    after
}

/// The offset of `zone` at an instant in seconds since the epoch, in seconds east of UTC.
fn offset_at(zone: Tz, instant: i64) -> i32 {
    DateTime::from_timestamp(instant, 0)
        .map_or(0, |utc| zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every zone, every two days to the year 2210: the tables say what chrono-tz says.
    #[test]
    fn the_tables_are_those_of_chrono_tz() {
        let mut most = 0;
        for zone in TZ_VARIANTS {
            let mut stretch = Stretch::at(zone, EARLIEST);
            let mut count = 1;
            for instant in (EARLIEST..7_600_000_000).step_by(200_003) {
                let found = Stretch::at(zone, instant);
                assert!(found.start() <= instant && instant < found.end(), "{zone} {instant}");
                assert_eq!(found.offset(), i64::from(offset_at(zone, instant)), "{zone} {instant}");
            }
            while let Some(next) = stretch.next() {
                let (before, after) = (offset_at(zone, next.start() - 1), offset_at(zone, next.start()));
                assert_eq!((stretch.offset(), next.offset()), (before.into(), after.into()), "{zone}");
                assert!(next.end() - next.start() > STEP, "{zone} {}", next.start());
                assert!(next.end() == i64::MAX || next.start() < LATEST - STEP, "{zone}");
                stretch = next;
                count += 1;
            }
            assert_eq!(stretch.end(), i64::MAX);
            most = most.max(count);
        }
        assert!(most < STRETCHES_MAX - 10, "{most}");
    }
}
