//! Where a run comes from: stored with it, because it decides what expires, what counts as a
//! fire of the schedule, and what may wait for others.

use serde::{Deserialize, Serialize};

/// What made a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The task's schedule.
    #[default]
    Schedule,
    /// The task's schedule, caught up after downtime.
    Misfire,
    /// A person or a program, by hand.
    Manual,
    /// A parent that ended.
    Parent,
    /// A backfill of a range.
    Backfill,
}

/// Every trigger with its stored word.
pub const TRIGGERS: [(Trigger, &str); 5] = [
    (Trigger::Schedule, "schedule"),
    (Trigger::Misfire, "misfire"),
    (Trigger::Manual, "manual"),
    (Trigger::Parent, "parent"),
    (Trigger::Backfill, "backfill"),
];

impl Trigger {
    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        TRIGGERS.iter().find(|(trigger, _)| *trigger == self).map_or("", |(_, word)| word)
    }

    /// The trigger of a stored word; one that a newer version wrote counts as the schedule's.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        TRIGGERS.iter().find(|(_, w)| *w == word).map_or(Self::Schedule, |(trigger, _)| *trigger)
    }
}

impl Trigger {
    /// Whether the schedule names its instant: such a run belongs to the definition that it was
    /// written for. The others run by the definition that is valid when they are dispatched.
    #[must_use]
    pub fn is_scheduled(self) -> bool {
        matches!(self, Self::Schedule | Self::Misfire)
    }
}
