//! The executor with the least to do.

use crate::domain::ExecutorId;
use crate::domain::executor::Executor;
use crate::domain::stable_random::stable_random;
use std::collections::HashMap;
use std::sync::Arc;

/// The place of the executor whose load, for its capacity and weight, is the smallest. The load is
/// what its last heartbeat named and what it was `given` (by id) since. Among equals `seed`
/// decides, so that idle executors share the work.
pub(super) fn least_loaded(executors: &[Arc<Executor>], given: &HashMap<ExecutorId, i64>, seed: u64) -> Option<usize> {
    let ratio = |executor: &Arc<Executor>| {
        let reported = i64::from(executor.held.max(0)) + i64::from(executor.running.max(0));
        let load = reported.saturating_add(given.get(&executor.id).copied().unwrap_or(0).max(0));
        Ratio { load, room: i64::from(executor.capacity.max(1)) * executor.share() }
    };
    let least = executors.iter().map(ratio).reduce(|least, next| if next.is_below(least) { next } else { least })?;
    let equals = || executors.iter().enumerate().filter(|(_, executor)| !least.is_below(ratio(executor)));
    let drawn = usize::try_from(stable_random(seed) % (equals().count().max(1) as u64)).unwrap_or(0);
    equals().nth(drawn).map(|(place, _)| place)
}

/// load ÷ room, compared without dividing.
#[derive(Clone, Copy)]
struct Ratio {
    load: i64,
    room: i64,
}

impl Ratio {
    fn is_below(self, other: Self) -> bool {
        i128::from(self.load) * i128::from(other.room) < i128::from(other.load) * i128::from(self.room)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::executor;
    use super::*;

    /// Executors as (held, running, capacity, weight, given); the places that may be chosen.
    #[track_caller]
    fn check(executors: &[(i32, i32, i32, i32, i64)], expect: &[usize]) {
        let mut given = HashMap::new();
        let fleet: Vec<_> = (0..)
            .zip(executors)
            .map(|(id, &(held, running, capacity, weight, more))| {
                given.insert(ExecutorId(id), more);
                Arc::new(Executor { weight, capacity, held, running, ..executor(id, &format!("http://a:{id}")) })
            })
            .collect();
        let mut chosen: Vec<_> = (0..200).filter_map(|seed| least_loaded(&fleet, &given, seed)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen, expect, "{executors:?}");
    }

    #[test]
    fn load_counts_against_capacity_and_weight() {
        check(&[], &[]);
        check(&[(1, 0, 10, 1, 0), (0, 0, 10, 1, 0)], &[1]);
        check(&[(1, 1, 10, 1, 0), (0, 1, 10, 1, 0), (0, 0, 10, 1, 3)], &[1]);
        check(&[(4, 0, 10, 1, 0), (5, 0, 100, 1, 0)], &[1]);
        check(&[(4, 0, 10, 1, 0), (5, 0, 10, 2, 0)], &[1]);
        // What was given since the last heartbeat counts like what it reported.
        check(&[(0, 0, 10, 1, 7), (6, 0, 10, 1, 0)], &[1]);
    }

    #[test]
    fn equals_share() {
        check(&[(0, 0, 10, 1, 0), (0, 0, 50, 7, 0), (1, 0, 10, 1, 0)], &[0, 1]);
        check(&[(2, 0, 10, 1, 0), (1, 1, 10, 1, 0), (4, 0, 10, 2, 0)], &[0, 1, 2]);
    }

    #[test]
    fn nonsense_from_outside_is_survived() {
        check(&[(-5, -5, -1, 1, -9), (0, 0, 0, 1, 0)], &[0, 1]);
        check(&[(i32::MAX, i32::MAX, i32::MAX, 100, i64::MAX), (0, 0, 1, 1, i64::MAX)], &[0]);
    }
}
