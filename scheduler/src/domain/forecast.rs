//! How much will fire when: the next 24 hours by the minute, of many tasks together.

use super::schedule::Schedule;
use super::statistics::MINUTE_MS;

/// Minutes of a forecast.
pub const MINUTES: usize = 1_440;

/// Minutes that are told with their tasks.
pub const PEAKS_MAX: usize = 10;

/// Tasks that are told of such a minute.
pub const PEAK_TASKS_MAX: usize = 5;

/// Bounds of one forecast. A step is a minute in which a task fires, or a single fire where the clock changes.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Of one task.
    pub of_task: u32,
    /// Of all of them.
    pub in_all: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { of_task: 200_000, in_all: 30_000_000 }
    }
}

/// How far a task fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As its schedule says.
    Unbounded,
    /// What is written is known up to `from` (ms); from there on so many may follow.
    Left {
        /// The watermark, epoch ms.
        from: i64,
        /// Fires that `max_fires` leaves.
        fires: u64,
    },
    /// All is written; nothing fires at this instant (ms) or later.
    Until(i64),
}

/// When a started task fires.
#[derive(Debug, Clone)]
pub struct Firing {
    /// Its schedule; not a fixed delay, whose second fire cannot be known.
    pub schedule: Schedule,
    /// How far.
    pub extent: Extent,
}

/// The coming day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// Where the first minute starts, epoch ms.
    pub from: i64,
    /// Fires of each.
    pub minutes: Vec<u64>,
    /// Tasks that were counted.
    pub tasks: usize,
    /// Tasks that the budget left no room for.
    pub left_out: usize,
    /// The fullest minutes, the fullest first.
    pub peaks: Vec<Peak>,
}

/// A minute in which much fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peak {
    /// Where it starts, epoch ms.
    pub minute: i64,
    /// Fires in it.
    pub fires: u64,
    /// The tasks that fire most in it: their places in the row that was counted, and how often each fires.
    pub tasks: Vec<(usize, u64)>,
}

/// Counts the fires after `now` (epoch ms) in the [`MINUTES`] from the start of the running minute on.
#[must_use]
pub fn forecast(tasks: &[Firing], now: i64, budget: Budget) -> Forecast {
    let from = now - now.rem_euclid(MINUTE_MS);
    let until = from + MINUTES as i64 * MINUTE_MS;
    let mut minutes = vec![0_u64; MINUTES];
    let mut counted = Vec::with_capacity(tasks.len());
    let (mut in_all, mut parts) = (budget.in_all, Vec::new());
    for (place, task) in tasks.iter().enumerate() {
        let allowed = u32::try_from(in_all).unwrap_or(u32::MAX).min(budget.of_task);
        let mut steps = allowed;
        parts.clear();
        let is_whole = task.count(now, until, &mut steps, |minute, fires| parts.push((minute, fires)));
        in_all -= u64::from(allowed - steps);
        if is_whole {
            counted.push(place);
            for (minute, fires) in &parts {
                if let Some(sum) = minutes.get_mut(place_of(from, *minute)) {
                    *sum += fires;
                }
            }
        }
    }
    let left_out = tasks.len() - counted.len();
    let mut peaks = peaks(from, &minutes);
    for place in &counted {
        // All `tasks` here were counted within their budget once.
        tasks[*place].add_to(&mut peaks, *place, now, until, budget.of_task);
    }
    Forecast { from, minutes, tasks: counted.len(), left_out, peaks }
}

fn place_of(from: i64, minute: i64) -> usize {
    usize::try_from((minute - from) / MINUTE_MS).unwrap_or(usize::MAX)
}

/// The fullest minutes, the earlier one first of two alike; not yet with tasks.
fn peaks(from: i64, minutes: &[u64]) -> Vec<Peak> {
    let mut full: Vec<(usize, u64)> = minutes.iter().copied().enumerate().filter(|(_, fires)| *fires > 0).collect();
    full.sort_by_key(|(place, fires)| (std::cmp::Reverse(*fires), *place));
    full.truncate(PEAKS_MAX);
    let peak = |(place, fires): (usize, u64)| Peak {
        minute: from + place as i64 * MINUTE_MS,
        fires,
        tasks: Vec::with_capacity(PEAK_TASKS_MAX + 1),
    };
    full.into_iter().map(peak).collect()
}

impl Peak {
    /// Keeps the tasks that fire most, the first of those alike.
    fn add(&mut self, place: usize, fires: u64) {
        if fires == 0 {
            return;
        }
        let at = self.tasks.iter().position(|(_, other)| *other < fires).unwrap_or(self.tasks.len());
        self.tasks.insert(at, (place, fires));
        self.tasks.truncate(PEAK_TASKS_MAX);
    }
}

impl Firing {
    /// Its fires after `after` and before `until` (ms), as [`Schedule::count`] tells them; returns whether that is
    /// all of them.
    fn count(&self, after: i64, until: i64, steps: &mut u32, mut add: impl FnMut(i64, u64)) -> bool {
        let mut every = |minute: i64, fires: u64| {
            add(minute, fires);
            true
        };
        match self.extent {
            Extent::Unbounded => self.schedule.count(after, until, steps, every),
            Extent::Until(end) => self.schedule.count(after, until.min(end), steps, every),
            Extent::Left { from, fires } => {
                if !self.schedule.count(after, until.min(from), steps, &mut every) {
                    return false;
                }
                let mut left = fires;
                let after = after.max(from.saturating_sub(1));
                let is_whole = left == 0
                    || self.schedule.count(after, until, steps, |minute, fires| {
                        every(minute, fires.min(left));
                        left = left.saturating_sub(fires);
                        left > 0
                    });
                is_whole || left == 0
            }
        }
    }

    /// Adds its fires to those minutes of `peaks` in which it has some.
    fn add_to(&self, peaks: &mut [Peak], place: usize, now: i64, until: i64, steps: u32) {
        if matches!(self.extent, Extent::Left { .. }) {
            // Which fire is the last can only be told by counting from the beginning.
            let mut sums = vec![0; peaks.len()];
            self.count(now, until, &mut steps.clone(), |minute, fires| {
                if let Some(at) = peaks.iter().position(|peak| peak.minute == minute) {
                    sums[at] += fires;
                }
            });
            peaks.iter_mut().zip(sums).for_each(|(peak, fires)| peak.add(place, fires));
            return;
        }
        for peak in peaks {
            let (after, end) = ((peak.minute - 1).max(now), peak.minute + MINUTE_MS);
            let mut sum = 0;
            self.count(after, end, &mut steps.clone(), |_, fires| sum += fires);
            peak.add(place, sum);
        }
    }
}

#[cfg(test)]
#[path = "forecast/tests.rs"]
mod tests;
