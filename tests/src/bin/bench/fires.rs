//! Which fires were seen: exactly, in less than a byte for each where tasks' ids follow one another.

use std::collections::HashMap;

/// Different (task, fire time).
#[derive(Debug, Default)]
pub struct Fires {
    /// By fire time and by 64 tasks that are neighbours, one bit for each.
    words: HashMap<(i64, i64), u64>,
    /// How many there are.
    pub count: u64,
}

impl Fires {
    /// Whether it is new.
    pub fn insert(&mut self, task: i64, fire_time: i64) -> bool {
        let word = self.words.entry((fire_time, task.div_euclid(64))).or_default();
        let bit = 1 << task.rem_euclid(64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.count += u64::from(is_new);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_new_once() {
        let mut fires = Fires::default();
        for task in 1_000_000..1_000_300 {
            for second in 0..10 {
                assert!(fires.insert(task, second * 1_000), "{task} at {second}");
            }
        }
        assert_eq!(fires.count, 3_000);
        assert!(!fires.insert(1_000_064, 3_000) && !fires.insert(1_000_064, 3_000));
        assert!(fires.insert(1_000_064, 3_001), "another instant");
        assert_eq!(fires.count, 3_001);
    }
}
