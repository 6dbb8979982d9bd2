//! What the database's clock said when. Rows carry its times; what really happened, and when something went wrong, is known by
//! true time. Between the instants at which it was set the clock goes with true time.

use super::{Evidence, READ_MS};
use crate::world::LOADED_AHEAD_MS;
use carillon_simulation::ClockStep;
use carillon_simulation::executor::Start;

/// The database's clock of one world.
pub struct DatabaseClock {
    /// Stretches in which it went on undisturbed.
    stretches: Vec<Stretch>,
}

/// From when until when (true time, ms) it was how far ahead.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: i64,
    until: i64,
    ahead_ms: i64,
}

impl DatabaseClock {
    /// Of a clock that was set so.
    pub fn of(steps: &[ClockStep]) -> Self {
        let begins = std::iter::once(ClockStep { at: i64::MIN, ahead_ms: 0 }).chain(steps.iter().copied());
        let ends = steps.iter().map(|step| step.at).chain([i64::MAX]);
        let stretch = |(step, until): (ClockStep, i64)| Stretch { from: step.at, until, ahead_ms: step.ahead_ms };
        Self { stretches: begins.zip(ends).map(stretch).collect() }
    }

    /// What it said at that true time.
    pub fn at(&self, at: i64) -> i64 {
        at + self.most_ahead(at, at)
    }

    /// How far it was ahead at most between these true times.
    pub fn most_ahead(&self, from: i64, until: i64) -> i64 {
        let within = self.stretches.iter().filter(|stretch| stretch.from <= until && from < stretch.until);
        within.map(|stretch| stretch.ahead_ms).max().unwrap_or(0)
    }

    /// When somebody could take it to say so, or later, for the first time; true time. Who has not read it since it was set
    /// goes on by what it said before.
    pub fn first(&self, shown: i64) -> i64 {
        let reaches = |stretch: &Stretch| {
            let at = (shown.saturating_sub(stretch.ahead_ms)).max(stretch.from);
            (at < stretch.until.saturating_add(READ_MS)).then_some(at)
        };
        self.stretches.iter().filter_map(reaches).min().unwrap_or(i64::MAX)
    }

    /// Since when it has said so, or later, for good; true time.
    pub fn last(&self, shown: i64) -> i64 {
        let is_before = |stretch: &&Stretch| stretch.from == i64::MIN || stretch.from + stretch.ahead_ms < shown;
        let last = self.stretches.iter().rfind(is_before);
        last.map_or(shown, |stretch| shown.saturating_sub(stretch.ahead_ms).min(stretch.until))
    }
}

impl Evidence<'_> {
    /// When a run was due, true time, ms: when the clock came there last before it started.
    pub fn due_at(&self, start: &Start) -> i64 {
        let last = self.clock.last(start.due_time);
        if last <= start.at { last } else { self.clock.first(start.due_time).min(start.at) }
    }

    /// Since when a run that was due at that true time, ms, may have been with a node or an executor: where the clock was set back
    /// meanwhile, what befell these since then shows only now.
    pub fn in_memory_from(&self, due_time: i64, due_at: i64) -> i64 {
        let ahead_ms = self.world.shape.lead_ms + LOADED_AHEAD_MS;
        let from = self.clock.first(due_time - ahead_ms);
        if from < due_at - ahead_ms - READ_MS { from } else { due_at }
    }
}

#[test]
fn a_clock_that_is_set_forward_leaves_times_out() {
    let clock = DatabaseClock::of(&[ClockStep { at: 100, ahead_ms: 50 }]);
    assert_eq!([99, 100, 101].map(|at| clock.at(at)), [99, 150, 151]);
    let later = 100 + READ_MS;
    assert_eq!([99, 149, later, later + 50].map(|shown| clock.first(shown)), [99, 100, later - 50, later]);
    assert_eq!([99, 100, 149, 150, 151].map(|shown| clock.last(shown)), [99, 100, 100, 100, 101]);
}

#[test]
fn a_clock_that_is_set_back_says_times_twice() {
    let clock = DatabaseClock::of(&[ClockStep { at: 100, ahead_ms: -50 }]);
    assert_eq!([99, 100, 150].map(|at| clock.at(at)), [99, 50, 100]);
    let later = 100 + READ_MS;
    assert_eq!([49, 99, later - 1, later].map(|shown| clock.first(shown)), [49, 99, later - 1, later + 50]);
    assert_eq!([49, 50, 51, 99, 100].map(|shown| clock.last(shown)), [49, 50, 101, 149, 150]);
    assert_eq!([clock.most_ahead(90, 120), clock.most_ahead(100, 120)], [0, -50]);
}
