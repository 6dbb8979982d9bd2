//! A bounded memory of what was used lately.

use std::collections::HashMap;
use std::hash::Hash;

/// Values by key, of a bounded weight; what was not used for long makes room for what is new. Two halves: what is used goes
/// into the young one; when that is full, it becomes the old one, and what was left in the old one is forgotten. So every
/// step costs the same however much is inside, what is used at least as often as the young half fills up stays, and it never
/// starts from nothing again.
#[derive(Debug)]
pub struct Recent<K, V> {
    young: HashMap<K, (V, usize)>,
    young_weight: usize,
    old: HashMap<K, (V, usize)>,
    /// Weight at which the young half becomes the old one.
    half: usize,
}

impl<K: Hash + Eq + Copy, V: Clone> Recent<K, V> {
    /// Empty; it holds values of about `weight_max` in all, and one more.
    #[must_use]
    pub fn new(weight_max: usize) -> Self {
        Self { young: HashMap::new(), young_weight: 0, old: HashMap::new(), half: weight_max / 2 }
    }

    /// The value of that key, which counts as used.
    pub fn get(&mut self, key: K) -> Option<V> {
        if let Some((value, _)) = self.young.get(&key) {
            return Some(value.clone());
        }
        let (value, weight) = self.old.remove(&key)?;
        self.add(key, value.clone(), weight);
        Some(value)
    }

    /// Takes a value in, in place of the one before.
    pub fn insert(&mut self, key: K, value: V, weight: usize) {
        self.old.remove(&key);
        self.add(key, value, weight);
    }

    /// How many are inside.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether nothing is inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add(&mut self, key: K, value: V, weight: usize) {
        self.young_weight += weight;
        if let Some((_, before)) = self.young.insert(key, (value, weight)) {
            self.young_weight -= before;
        }
        if self.young_weight > self.half {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_is_used_and_forgets_the_rest_within_its_bound() {
        let mut recent = Recent::new(1_000);
        recent.insert(-1, "used all the time", 1);
        for key in 0..100_000 {
            recent.insert(key, "once", 1);
            assert!(recent.len() <= 1_002, "{}", recent.len());
            assert!(key % 100 > 0 || recent.get(-1).is_some(), "forgotten at {key}");
        }
        assert!(recent.len() >= 500, "it never starts from nothing");
        assert_eq!(recent.get(5), None);
    }

    #[test]
    fn weights_count_and_replacing_does_not_add_up() {
        let mut recent = Recent::new(1_000);
        for value in 0..10_000 {
            recent.insert(1, value, 100);
        }
        assert_eq!((recent.get(1), recent.len()), (Some(9_999), 1));
        recent.insert(2, 7, 5_000);
        assert_eq!(recent.get(2), Some(7), "one that is too large stays until the next");
        recent.insert(3, 8, 5_000);
        assert_eq!((recent.get(3), recent.get(1)), (Some(8), None));
    }
}
