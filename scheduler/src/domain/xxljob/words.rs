//! xxl-job's words and ours, each pair once: read in one direction, written in the other.
//!
//! Where xxl-job has no word, ours is written as it would spell it. So a script that reads a task and sends it back changes
//! nothing, whatever the task is.

use crate::domain::routing::Routing;
use crate::domain::task::{BlockStrategy, MisfireStrategy, ScheduleKind};

/// The kind of a job that is a handler of the executor, not a script.
pub const BEAN: &str = "BEAN";

/// Every kind of job, scripts last.
pub const GLUE_TYPES: [&str; 8] =
    [BEAN, "GLUE_GROOVY", "GLUE_SHELL", "GLUE_PYTHON", "GLUE_PYTHON2", "GLUE_PHP", "GLUE_NODEJS", "GLUE_POWERSHELL"];

/// Pairs of words.
pub struct Words<T: 'static> {
    /// Those that xxl-job has.
    pub known: &'static [(&'static str, T)],
    /// Those that only we have.
    pub ours: &'static [(&'static str, T)],
}

impl<T: Copy + PartialEq> Words<T> {
    fn all(&self) -> impl Iterator<Item = &(&'static str, T)> {
        self.known.iter().chain(self.ours)
    }

    /// What a word means; `None` for one that is unknown.
    pub fn read(&self, word: &str) -> Option<T> {
        self.all().find(|(known, _)| *known == word.trim()).map(|(_, meant)| *meant)
    }

    /// The word for it.
    pub fn write(&self, meant: T) -> &'static str {
        self.all().find(|(_, of)| *of == meant).map_or("", |(word, _)| word)
    }

    /// The words that xxl-job has, for sentences.
    pub fn list(&self) -> String {
        self.known.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ")
    }
}

/// `schedule_type`.
pub static SCHEDULES: Words<ScheduleKind> = Words {
    known: &[("NONE", ScheduleKind::None), ("CRON", ScheduleKind::Cron), ("FIX_RATE", ScheduleKind::FixedRate)],
    ours: &[("FIX_DELAY", ScheduleKind::FixedDelay), ("ONCE", ScheduleKind::Once)],
};

/// `misfire_strategy`.
pub static MISFIRES: Words<MisfireStrategy> = Words {
    known: &[("DO_NOTHING", MisfireStrategy::Skip), ("FIRE_ONCE_NOW", MisfireStrategy::FireOnce)],
    ours: &[("FIRE_ALL", MisfireStrategy::FireAll)],
};

/// `executor_route_strategy`.
pub static ROUTINGS: Words<Routing> = Words {
    known: &[
        ("FIRST", Routing::First),
        ("LAST", Routing::Last),
        ("ROUND", Routing::Round),
        ("RANDOM", Routing::Random),
        ("CONSISTENT_HASH", Routing::ConsistentHash),
        ("LEAST_FREQUENTLY_USED", Routing::LeastFrequentlyUsed),
        ("LEAST_RECENTLY_USED", Routing::LeastRecentlyUsed),
        ("FAILOVER", Routing::Failover),
        ("BUSYOVER", Routing::Busyover),
        ("SHARDING_BROADCAST", Routing::Sharding),
    ],
    ours: &[("LEAST_LOADED", Routing::LeastLoaded)],
};

/// `executor_block_strategy`.
pub static BLOCKS: Words<BlockStrategy> = Words {
    known: &[
        ("SERIAL_EXECUTION", BlockStrategy::Serial),
        ("DISCARD_LATER", BlockStrategy::DiscardLater),
        ("COVER_EARLY", BlockStrategy::CoverEarly),
    ],
    ours: &[("CONCURRENT", BlockStrategy::Concurrent)],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::choice::Enumerated;
    use std::fmt::Debug;

    fn there_and_back<T: Enumerated + PartialEq + Debug>(words: &Words<T>) {
        for (meant, _) in T::ALL {
            assert_eq!(words.read(words.write(*meant)), Some(*meant));
        }
        assert_eq!(words.all().count(), T::ALL.len(), "each has one word");
        assert_eq!(words.read("first"), None, "case counts there");
    }

    #[test]
    fn every_choice_has_one_word() {
        there_and_back(&SCHEDULES);
        there_and_back(&MISFIRES);
        there_and_back(&ROUTINGS);
        there_and_back(&BLOCKS);
        assert_eq!(ROUTINGS.read(" FIRST "), Some(Routing::First));
        assert_eq!(BLOCKS.list(), "SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY");
    }
}
