//! Numbers spread over executors in proportion to their weights.

use crate::domain::executor::Executor;
use crate::domain::stable_random::stable_random;
use std::sync::Arc;

/// The weights of a list of executors, ready to draw from.
#[derive(Debug, Clone)]
pub struct Weights {
    /// At each place, the sum of the weights up to and with it.
    sums: Vec<u64>,
}

impl Weights {
    /// Of these executors, in their order.
    #[must_use]
    pub fn of(executors: &[Arc<Executor>]) -> Self {
        let add = |sum: &mut u64, executor: &Arc<Executor>| {
            *sum += executor.share() as u64;
            Some(*sum)
        };
        Self { sums: executors.iter().scan(0, add).collect() }
    }

    /// A place, drawn by `seed` (any number that differs from run to run).
    #[must_use]
    pub fn draw(&self, seed: u64) -> Option<usize> {
        let total = self.sums.last().copied().filter(|total| *total > 0)?;
        let drawn = stable_random(seed) % total;
        Some(self.sums.partition_point(|sum| *sum <= drawn))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fleet;
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weights = Weights::of(&fleet(&[1, 0, 2, 5]));
        let mut counts = [0; 4];
        for seed in 0..8_000 {
            counts[weights.draw(seed).unwrap()] += 1;
        }
        for (count, weight) in counts.into_iter().zip([1, 0, 2, 5]) {
            assert!((weight * 850..=weight * 1_150).contains(&count), "{counts:?}");
        }
    }

    #[test]
    fn nothing_to_draw_from_is_no_slot() {
        assert_eq!(Weights::of(&[]).draw(1), None);
        assert_eq!(Weights::of(&fleet(&[0, 0])).draw(1), None);
    }
}
