//! The fewest faults, and operations of people, that still break a promise: they are left out as long as one of the same
//! promises breaks (delta debugging: halves first, then quarters, then one by one). The dice stay the seed's.

use crate::broken;
use crate::simulate;
use crate::world::Setup;
use std::collections::BTreeSet;

/// Simulations tried for it at most.
pub const TRIES_MAX: usize = 60;

/// A simulation with as few faults and operations as still break one of `promises`, and how many were tried to find it.
pub fn shrunk(setup: &Setup, promises: &BTreeSet<&str>) -> (Setup, usize) {
    let world = simulate(setup);
    let (faults, operations) = (world.faults.clone(), world.operations.clone());
    let mut tries = 0;
    let mut breaks = |setup: &Setup| {
        tries += 1;
        tries <= TRIES_MAX && broken(setup).iter().any(|one| promises.contains(one.promise))
    };
    let mut told = Setup { faults: Some(faults.clone()), operations: Some(operations.clone()), ..setup.clone() };
    let operations = fewest(operations, |rest| breaks(&Setup { operations: Some(rest), ..told.clone() }));
    told.operations = Some(operations);
    let faults = fewest(faults, |rest| breaks(&Setup { faults: Some(rest), ..told.clone() }));
    told.faults = Some(faults);
    (told, tries.min(TRIES_MAX))
}

/// As few of `all` as `still` does; none, if that does.
fn fewest<T: Clone>(all: Vec<T>, mut still: impl FnMut(Vec<T>) -> bool) -> Vec<T> {
    if all.is_empty() || still(Vec::new()) {
        return Vec::new();
    }
    let (mut left, mut parts) = (all, 2);
    while left.len() > 1 {
        let size = left.len().div_ceil(parts);
        let rests = (0..left.len()).step_by(size).map(|from| {
            let until = (from + size).min(left.len());
            [&left[..from], &left[until..]].concat()
        });
        let fewer = rests.collect::<Vec<_>>().into_iter().find(|rest| still(rest.clone()));
        match fewer {
            Some(fewer) => {
                left = fewer;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(left.len()),
        }
    }
    left
}

#[test]
fn as_few_are_left_as_still_break_it() {
    let all: Vec<u32> = (0..20).collect();
    let both = |rest: Vec<u32>| rest.contains(&3) && rest.contains(&17);
    assert_eq!(fewest(all.clone(), both), [3, 17]);
    assert_eq!(fewest(all.clone(), |rest| rest.contains(&19)), [19]);
    assert_eq!(fewest(all.clone(), |_| true), Vec::<u32>::new());
    assert_eq!(fewest(all.clone(), |_| false), all);
}
