//! Quartz cron expressions: when does a schedule fire next?
//!
//! No published crate reads the whole of Quartz's syntax the way Quartz does, and users bring their
//! expressions along from schedulers that are built on it. So this module parses all of it (six or
//! seven fields, `? * , - / L W #`, names, ranges that wrap) and is tested against Quartz's own answers.
//!
//! It is pure: no clock, no I/O, nothing asynchronous. [`CronSchedule::parse`] turns the text into bit
//! sets once; [`CronSchedule::next_after`] walks the bits and allocates nothing.
//!
//! # Daylight saving
//!
//! A schedule names *local* times. When a zone's clock is put forward some of them do not exist (a
//! **gap**), and when it is put back some of them exist twice (an **overlap**). What then happens is
//! decided by [`DstPolicy`]; left on automatic it depends on what the expression means:
//!
//! * A **fixed** schedule says *at what time of day*. It fires exactly once for each time it names on
//!   each day: one that falls in a gap fires where the gap ends, one that falls in an overlap fires in the
//!   first pass. A nightly backup should be neither lost nor run twice. Several times of one schedule that
//!   fall in the same gap, or one that falls in it and another right at its end, share one fire.
//! * A **repeating** schedule says *how often*. It follows real time: each instant whose local time
//!   matches fires, in order, in both passes of an overlap, and a gap, in which no real time passes, has
//!   none. A five-minute poll should not pause for an hour.
//!
//! A schedule is fixed if its second, its minute and its hour field each *list* their values, and
//! repeating if at least one of the three *repeats*. A field repeats if it uses `*`, `/` or `-`, or lists
//! every value there is; but one that comes down to a single value (`5-5`, `2/23`) lists it, however it is
//! written. The day, month and year fields have no say. So
//!
//! | expression | is | because |
//! |---|---|---|
//! | `0 15 2 * * ?`, `0 0 1,2 * * ?`, `0 15,45 1,2 * * ?` | fixed | plain times |
//! | `0 */30 * * * ?`, `*/5 * * * * ?`, `0 0 * * * ?` | repeating | `*`, a step |
//! | `0 0 0/2 * * ?`, `0 0 9-17 * * ?` | repeating | hours by step, by range |
//! | `0 0/10 2 * * ?` | repeating | repeats within the hour that may be missing or doubled |
//!
//! A calendar day that a zone left out altogether (Apia had no 2011-12-30 when it moved across the date
//! line) is not a daylight-saving gap: there was no such day, so under every policy nothing fires for it.
//!
//! Quartz itself behaves like [`Gap::Skip`] with [`Overlap::Second`], but for two accidents that are not
//! copied: asked from within the first pass it overlooks a part of the second, and after a gap that ends
//! within an hour (Lord Howe's is half an hour) it can overlook the rest of that hour.

mod error;
mod filter;
mod next;
mod offsets;
mod parse;
mod zone;

use crate::domain::choice::choice;
use serde::{Deserialize, Serialize};

pub use error::{CronError, Field, Reason};
pub(in crate::domain) use offsets::Stretch;

/// The first year a schedule can fire in.
pub const FIRST_YEAR: i32 = 1970;

/// The last year a schedule can fire in.
///
/// Quartz documents 2099, but computes "the running year plus 100"; a fixed year past both keeps the
/// answer independent of the clock. The zone tables know no changes after 2099.
pub const LAST_YEAR: i32 = 2199;

/// A parsed cron expression: a small value without heap parts, cheap to copy and keep by the million.
///
/// Equal schedules fire at the same instants; `L` and `7`, `1-3` and `3-3,1,2` are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CronSchedule {
    /// Bit n stands for second n.
    seconds: u64,
    /// Bit n stands for minute n.
    minutes: u64,
    /// Bit n stands for hour n.
    hours: u64,
    /// Bit n stands for month n; bit 0 is unused.
    months: u16,
    /// Bit n stands for the year `FIRST_YEAR + n`.
    years: [u64; 4],
    days: Days,
    /// Whether second, minute and hour each list their values; see the module's text.
    fixed: bool,
}

/// Which days of a month match. Quartz lets only one of the two day fields say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Days {
    /// Days of the month; bit n stands for day n, bit 0 is unused.
    OfMonth(u32),
    /// `L`, `L-n`: so many days before the last one.
    Last { back: u8 },
    /// `LW`, `L-nW`: the working day (Monday to Friday) nearest to that day.
    LastWorking { back: u8 },
    /// `nW`: the working day nearest to day n.
    NearestWorking(u8),
    /// Days of the week; bit n stands for day n with 1 = Sunday .. 7 = Saturday.
    OfWeek(u8),
    /// `dL`: the last such weekday of the month.
    LastOfWeek(u8),
    /// `d#n`: the n-th such weekday of the month.
    NthOfWeek { day: u8, nth: u8 },
}

impl CronSchedule {
    /// Whether this is a *fixed* schedule, which names times of day, and not a *repeating* one, which
    /// follows real time; [`Gap::Auto`] and [`Overlap::Auto`] go by it. The module's text defines both.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// The seconds of every minute in which it fires; bit n stands for second n.
    pub(in crate::domain) fn seconds(&self) -> u64 {
        self.seconds
    }
}

/// What to do with local times that a change of the zone's clock leaves out or repeats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DstPolicy {
    /// For times that do not exist.
    pub gap: Gap,
    /// For times that exist twice.
    pub overlap: Overlap,
}

choice! {
    /// What a schedule does whose local time does not exist, because the clock was put forward over it.
    Gap {
        /// As `after` for a fixed schedule, as `skip` for a repeating one.
        Auto,
        /// It does not fire.
        Skip,
        /// It fires once, right at the end of the gap.
        After,
    }
}

choice! {
    /// What a schedule does whose local time exists twice, because the clock was put back over it.
    Overlap {
        /// As `first` for a fixed schedule, as `both` for a repeating one.
        Auto,
        /// It fires in the first pass only.
        First,
        /// It fires in the second pass only.
        Second,
        /// It fires in both passes.
        Both,
    }
}
