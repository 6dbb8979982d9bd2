//! Run keys remembered for a while, in bounded memory and without a sweep.
//!
//! Keys go into the newest of a few generations; when a generation's share of the time has
//! passed, a new one begins and the oldest is dropped entirely. Each generation is split by key, so
//! that a growing set rehashes a sixty-fourth of itself at a time and never stalls a burst.

use carillon_protocol::RunKey;
use std::collections::{HashSet, VecDeque};

/// Generations that make up the time to remember; one more is kept.
const GENERATIONS: i64 = 4;

/// Parts of a generation.
const PARTS: usize = 64;

type Generation = Vec<HashSet<RunKey>>;

/// A set of keys, each kept for at least `keep_us` of the monotonic clock.
#[derive(Debug)]
pub(crate) struct Remembered {
    generations: VecDeque<Generation>,
    newest_began_us: i64,
    generation_us: i64,
    len: usize,
    len_max: usize,
}

impl Remembered {
    pub(crate) fn new(keep_us: i64, len_max: usize) -> Self {
        Self {
            generations: VecDeque::from([generation()]),
            newest_began_us: i64::MIN,
            generation_us: keep_us / GENERATIONS,
            len: 0,
            len_max,
        }
    }

    /// Remembers `key` from `now_us` on.
    pub(crate) fn insert(&mut self, key: RunKey, now_us: i64) {
        self.turn(now_us);
        if let Some(newest) = self.generations.back_mut()
            && newest[part(key)].insert(key)
        {
            self.len += 1;
        }
    }

    pub(crate) fn contains(&self, key: RunKey) -> bool {
        self.generations.iter().any(|generation| generation[part(key)].contains(&key))
    }

    /// Whether nothing more may be inserted without forgetting too early.
    pub(crate) fn is_full(&mut self, now_us: i64) -> bool {
        self.turn(now_us);
        self.len >= self.len_max
    }

    /// Makes room at the cost of the oldest keys. Whether anything was forgotten early.
    pub(crate) fn make_room(&mut self, now_us: i64) -> bool {
        let full = self.is_full(now_us);
        if full {
            self.drop_oldest();
            if self.generations.is_empty() {
                self.generations.push_back(generation());
            }
        }
        full
    }

    fn turn(&mut self, now_us: i64) {
        if self.newest_began_us == i64::MIN {
            self.newest_began_us = now_us;
        }
        let turns = (now_us - self.newest_began_us) / self.generation_us.max(1);
        for _ in 0..turns.clamp(0, GENERATIONS + 1) {
            self.generations.push_back(generation());
            if self.generations.len() as i64 > GENERATIONS + 1 {
                self.drop_oldest();
            }
        }
        self.newest_began_us += turns.max(0) * self.generation_us.max(1);
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.generations.pop_front() {
            self.len -= oldest.iter().map(HashSet::len).sum::<usize>();
        }
    }
}

fn generation() -> Generation {
    (0..PARTS).map(|_| HashSet::new()).collect()
}

/// Which part holds `key`: Fibonacci hashing of the log id, as consecutive ids are the rule.
fn part(key: RunKey) -> usize {
    let mixed = (key.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 58) as usize % PARTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_kept_for_the_time_and_then_forgotten() {
        let mut seen = Remembered::new(1_000, 10);
        seen.insert(RunKey(1, 1), 0);
        seen.insert(RunKey(2, 1), 999);
        assert!(seen.contains(RunKey(1, 1)));
        assert!(!seen.contains(RunKey(1, 2)));
        assert!(!seen.is_full(1_990));
        assert!(seen.contains(RunKey(2, 1)));
        assert!(!seen.is_full(10_000));
        assert!(!seen.contains(RunKey(2, 1)));
        assert_eq!(seen.len, 0);
    }

    #[test]
    fn a_full_memory_says_so_and_makes_room_on_demand() {
        let mut seen = Remembered::new(1_000, 2);
        seen.insert(RunKey(1, 1), 0);
        seen.insert(RunKey(2, 1), 500);
        assert!(seen.is_full(600));
        assert!(seen.make_room(600));
        assert!(!seen.contains(RunKey(1, 1)));
        assert!(seen.contains(RunKey(2, 1)));
    }
}
