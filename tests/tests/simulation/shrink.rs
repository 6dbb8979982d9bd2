//! The fewest faults that still break a promise: faults are left out as long as one of the same promises breaks
//! (delta debugging: halves first, then quarters, then one by one). The dice stay the seed's.

use crate::broken;
use crate::faults::Planned;
use crate::simulate;
use crate::world::Setup;
use std::collections::BTreeSet;

/// Simulations tried for it at most.
const TRIES_MAX: usize = 60;

/// A simulation with as few faults as still break one of `promises`, and how many were tried to find it.
pub fn shrunk(setup: &Setup, promises: &BTreeSet<&str>) -> (Setup, usize) {
    let mut faults = simulate(setup).faults.clone();
    let mut tries = 0;
    let mut parts = 2;
    while !faults.is_empty() && tries < TRIES_MAX {
        let size = faults.len().div_ceil(parts);
        let fewer = (0..faults.len()).step_by(size).find_map(|from| {
            let rest: Vec<Planned> = [&faults[..from], &faults[(from + size).min(faults.len())..]].concat();
            tries += 1;
            let breaks = broken(&with(setup, &rest)).iter().any(|one| promises.contains(one.promise));
            breaks.then_some(rest)
        });
        match fewer {
            Some(fewer) => {
                faults = fewer;
                parts = parts.saturating_sub(1).max(2);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(faults.len()),
        }
    }
    (with(setup, &faults), tries)
}

fn with(setup: &Setup, faults: &[Planned]) -> Setup {
    Setup { faults: Some(faults.to_vec()), ..setup.clone() }
}
