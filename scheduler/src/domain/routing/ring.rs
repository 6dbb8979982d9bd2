//! The consistent hash of xxl-job: the same task lands on the same address there and here.

use super::Executors;
use md5::{Digest, Md5};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Points of one address on a ring.
const POINTS_PER_ADDRESS: usize = 100;

/// Rings remembered at most; one is needed per app and condition on tags.
const RINGS_MAX: usize = 64;

/// A ring of hashes on which each address has a hundred points. A key belongs to the first point
/// at or after its own hash.
///
/// Addresses are hashed as registered, character by character: `http://10.0.0.1:9999/` (how
/// xxl-job's executors register) and `http://10.0.0.1:9999` (how ours do) are different texts and
/// land in different places. Weights do not count: the ring is xxl-job's, and a weighted one
/// would move keys that it need not move.
#[derive(Debug)]
pub struct Ring {
    /// (hash, place in the list of addresses), by hash; of equal hashes the later address first,
    /// as in xxl-job's tree map, where it replaces the earlier.
    points: Vec<(u32, u32)>,
}

impl Ring {
    /// Over `addresses`, in their order.
    #[must_use]
    pub fn new<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        let mut points = Vec::new();
        for (place, address) in (0..).zip(addresses) {
            let point = |node| (Self::hash(&format!("SHARD-{address}-NODE-{node}")), place);
            points.extend((0..POINTS_PER_ADDRESS).map(point));
        }
        Self::of(points)
    }

    fn of(mut points: Vec<(u32, u32)>) -> Self {
        points.sort_unstable_by_key(|(hash, place)| (*hash, Reverse(*place)));
        Self { points }
    }

    /// Where `key` lies: the first four bytes of its MD5, little-endian.
    #[must_use]
    pub fn hash(key: &str) -> u32 {
        Md5::digest(key).iter().take(4).rev().fold(0, |hash, byte| hash << 8 | u32::from(*byte))
    }

    /// The places of the addresses met from `hash` on, once around (the same place comes up more
    /// than once). The first is the answer; when it cannot be had, the next other one is what a
    /// ring without it would have answered.
    pub fn walk(&self, hash: u32) -> impl Iterator<Item = usize> {
        let start = self.points.partition_point(|(point, _)| *point < hash);
        let (before, from) = self.points.split_at(start);
        from.iter().chain(before).map(|(_, place)| *place as usize)
    }
}

/// Rings by their addresses. A ring of a hundred executors is ten thousand digests: worth keeping
/// from batch to batch.
#[derive(Debug, Default)]
pub struct Rings {
    known: HashMap<Vec<String>, Arc<Ring>>,
}

impl Rings {
    /// The ring over the addresses of `executors`.
    pub(super) fn over(&mut self, executors: &Executors) -> Arc<Ring> {
        let addresses: Vec<String> = executors.iter().map(|executor| executor.address.clone()).collect();
        if let Some(ring) = self.known.get(&addresses) {
            return Arc::clone(ring);
        }
        if self.known.len() >= RINGS_MAX {
            self.known.clear();
        }
        let ring = Arc::new(Ring::new(addresses.iter().map(String::as_str)));
        self.known.insert(addresses, Arc::clone(&ring));
        ring
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fleet;
    use super::*;
    use proptest::prelude::*;

    fn at(ring: &Ring, task: i64) -> usize {
        ring.walk(Ring::hash(&task.to_string())).next().unwrap()
    }

    /// shared/data: computed with the class of xxl-job 2.5.0 itself.
    #[test]
    fn tasks_land_where_xxl_job_puts_them() {
        let ring = Ring::new(["http://10.0.0.1:9999/", "http://10.0.0.2:9999/", "http://10.0.0.3:9999/"]);
        let places: Vec<usize> = (1..=40).map(|task| at(&ring, task)).collect();
        assert_eq!(
            places,
            [
                2, 2, 0, 2, 0, 2, 1, 1, 0, 0, 0, 0, 2, 2, 0, 1, 1, 0, 0, 0, 0, 1, 1, 2, 1, 0, 2, 0, 2, 2, 0, 0, 0, 2,
                1, 1, 1, 2, 1, 1
            ]
        );
    }

    #[test]
    fn a_ring_over_nothing_answers_nothing() {
        assert_eq!(Ring::new([]).walk(7).count(), 0);
    }

    #[test]
    fn the_last_stretch_belongs_to_the_first_point_and_a_shared_one_to_the_later_address() {
        let ring = Ring::of(vec![(20, 1), (10, 0), (20, 2)]);
        let first = |hash| ring.walk(hash).next();
        assert_eq!([first(0), first(10), first(11), first(20), first(21)], [0, 0, 2, 2, 0].map(Some));
    }

    #[test]
    fn rings_are_built_once_and_not_without_bound() {
        let mut rings = Rings::default();
        let executors: Executors = fleet(&[1, 1]).into();
        let ring = rings.over(&executors);
        assert!(Arc::ptr_eq(&ring, &rings.over(&executors)));
        for count in 1..=RINGS_MAX + 5 {
            rings.over(&fleet(&vec![1; count]).into());
            assert!(rings.known.len() <= RINGS_MAX);
        }
    }

    proptest! {
        /// An address that leaves hands on its keys and moves no other; walking past it is the
        /// same as a ring without it.
        #[test]
        fn only_the_keys_of_a_removed_address_move(count in 2_usize..8, gone in 0_usize..8, first_task in 0..i64::MAX / 2) {
            let gone = gone % count;
            let addresses: Vec<String> = (0..count).map(|n| format!("http://10.1.0.{n}:9999")).collect();
            let whole = Ring::new(addresses.iter().map(String::as_str));
            let rest: Vec<&str> = addresses.iter().map(String::as_str).filter(|a| *a != addresses[gone]).collect();
            let smaller = Ring::new(rest.iter().copied());
            for task in first_task..first_task + 50 {
                let (before, after) = (at(&whole, task), rest[at(&smaller, task)]);
                if before != gone {
                    prop_assert_eq!(&addresses[before], after);
                }
                let past = whole.walk(Ring::hash(&task.to_string())).find(|place| *place != gone).unwrap();
                prop_assert_eq!(&addresses[past], after);
            }
        }
    }
}
