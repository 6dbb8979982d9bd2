//! What is wrong with an expression, and where: an operator reads this in a form or a terminal, so each
//! error names the field, the column and what would be allowed there.

use std::fmt;

use super::{FIRST_YEAR, LAST_YEAR};

/// One of the seven fields, in the order they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// 0-59.
    Second,
    /// 0-59.
    Minute,
    /// 0-23.
    Hour,
    /// 1-31.
    DayOfMonth,
    /// 1-12 or JAN-DEC.
    Month,
    /// 1-7 or SUN-SAT.
    DayOfWeek,
    /// 1970-2199; may be left out.
    Year,
}

impl Field {
    /// The fields in the order they are written.
    pub const ALL: [Self; 7] =
        [Self::Second, Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek, Self::Year];

    /// The smallest and the largest value.
    #[must_use]
    pub const fn range(self) -> (u32, u32) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (1, 7),
            Self::Year => (FIRST_YEAR.unsigned_abs(), LAST_YEAR.unsigned_abs()),
        }
    }

    /// What may be written in this field, for a person to read.
    #[must_use]
    pub const fn allowed(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "0-59 and * , - /",
            Self::Hour => "0-23 and * , - /",
            Self::DayOfMonth => "1-31 and ? * , - / or one of L LW L-3 L-3W 15W",
            Self::Month => "1-12 or JAN-DEC and * , - /",
            Self::DayOfWeek => "1-7 or SUN-SAT and ? * , - / or one of L 6L FRIL 6#3 FRI#3",
            Self::Year => "1970-2199 and * , - /",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        })
    }
}

/// Why an expression is refused. Its text says where, what is wrong and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} (column {column}): {reason}; allowed: {}", .field, .field.allowed())]
pub struct CronError {
    /// The field the error is in; if fields are missing, the first missing one.
    pub field: Field,
    /// Where in the expression, counted in characters from 1; one past the end if something is missing.
    pub column: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Fewer than six fields.
    #[error("an expression has 6 or 7 fields, this one ends after {0}")]
    TooFewFields(usize),
    /// More than seven fields.
    #[error("an expression has 6 or 7 fields, this is one more")]
    TooManyFields,
    /// A character that cannot stand here.
    #[error("unexpected {0:?}")]
    Unexpected(char),
    /// The field ends although something must follow.
    #[error("something is missing here")]
    Missing,
    /// A value beyond the field's range.
    #[error("{0} is not between {1} and {2}")]
    OutOfRange(u32, u32, u32),
    /// A step of nothing, or one that leaves the field at once.
    #[error("the step {0} is not between 1 and {1}")]
    Step(u32, u32),
    /// A range of years that ends before it starts: years do not wrap.
    #[error("the range of years ends before it starts")]
    YearsReversed,
    /// Three letters or more that name neither a month nor a weekday.
    #[error("unknown name")]
    UnknownName,
    /// A name and a number as the ends of one range.
    #[error("a range goes from number to number or from name to name")]
    MixedRange,
    /// Quartz drops a step after a name without a word, so its meaning is not clear.
    #[error("a step cannot follow a name, write numbers")]
    StepAfterName,
    /// `L`, `W`, `#` or `?` together with other values. Quartz refuses some of these and silently drops
    /// a part of the others.
    #[error("L, W, # and ? stand alone, not in a list, a range or with a step")]
    NotAlone,
    /// Both day fields say something.
    #[error("day of month and day of week cannot both be given, one of them must be ?")]
    BothDays,
    /// Neither day field says something.
    #[error("day of month is ? already, so this cannot be ? too")]
    NoDays,
}
