//! Smooth weighted round robin (nginx) as a function of a run's number.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Longest period that keeps weights exactly. A longer one (dozens of executors, each with a
/// different large weight) is shortened to about this, and the shares become rounded ones.
const PERIOD_MAX: i64 = 10_000;

/// Whose turn it is at each place of a period.
#[derive(Debug, Clone)]
pub(super) enum Rotation {
    /// All weigh the same: so many take turns.
    Even(usize),
    /// The whole period, as places in the list of executors.
    Period(Vec<u32>),
}

impl Rotation {
    /// Of executors with these weights, in their order.
    pub fn of(weights: &[i64]) -> Self {
        let divisor = weights.iter().fold(0, |divisor, weight| gcd(divisor, *weight));
        if weights.iter().all(|weight| *weight == divisor) {
            return Self::Even(if divisor == 0 { 0 } else { weights.len() });
        }
        let weights: Vec<i64> = weights.iter().map(|weight| weight / divisor).collect();
        Self::Period(smooth(&shorten(weights)))
    }

    /// Whose turn it is for the run with this number.
    pub fn at(&self, number: i64) -> Option<usize> {
        let length = match self {
            Self::Even(length) => *length,
            Self::Period(turns) => turns.len(),
        };
        let place = usize::try_from(number.checked_rem_euclid(i64::try_from(length).ok()?)?).ok()?;
        match self {
            Self::Even(_) => Some(place),
            Self::Period(turns) => turns.get(place).map(|turn| *turn as usize),
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn shorten(weights: Vec<i64>) -> Vec<i64> {
    let total: i64 = weights.iter().sum();
    if total <= PERIOD_MAX {
        return weights;
    }
    let rounded = |weight: i64| if weight == 0 { 0 } else { (weight * PERIOD_MAX / total).max(1) };
    weights.into_iter().map(rounded).collect()
}

/// One period of nginx's sequence: every step gives each its weight, takes the richest (the first
/// of them), and has it pay the total. At step p that makes p × weight − total × turns taken, and
/// those of equal weight come up in their order; so only one of each weight needs a look per step.
fn smooth(weights: &[i64]) -> Vec<u32> {
    struct Lane {
        weight: i64,
        members: Vec<u32>,
        taken: usize,
    }
    let total: i64 = weights.iter().sum();
    let mut by_weight: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
    for (place, weight) in (0..).zip(weights).filter(|(_, weight)| **weight > 0) {
        by_weight.entry(*weight).or_default().push(place);
    }
    let mut lanes: Vec<Lane> =
        by_weight.into_iter().map(|(weight, members)| Lane { weight, members, taken: 0 }).collect();
    let next = |lane: &Lane| lane.members.get(lane.taken % lane.members.len()).copied().unwrap_or_default();
    let richest = |step: i64, lane: &Lane| {
        let laps = (lane.taken / lane.members.len()) as i64;
        (step * lane.weight - total * laps, Reverse(next(lane)))
    };
    (1..=total)
        .filter_map(|step| {
            let lane = lanes.iter_mut().max_by_key(|lane| richest(step, lane))?;
            let turn = next(lane);
            lane.taken += 1;
            Some(turn)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn turns(weights: &[i64], count: i64) -> Vec<usize> {
        let rotation = Rotation::of(weights);
        (0..count).filter_map(|number| rotation.at(number)).collect()
    }

    /// nginx's own loop, `ngx_http_upstream_get_peer`.
    fn nginx(weights: &[i64], count: i64) -> Vec<usize> {
        let mut current = vec![0; weights.len()];
        (0..count)
            .map(|_| {
                let mut best = 0;
                for place in 0..weights.len() {
                    current[place] += weights[place];
                    if current[place] > current[best] {
                        best = place;
                    }
                }
                current[best] -= weights.iter().sum::<i64>();
                best
            })
            .collect()
    }

    #[test]
    fn turns_are_interleaved_as_nginx_does_it() {
        assert_eq!(turns(&[5, 1, 1], 7), [0, 0, 1, 0, 2, 0, 0]);
        assert_eq!(turns(&[1, 1, 1], 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&[50, 100], 6), turns(&[1, 2], 6));
        assert_eq!(turns(&[7], 3), [0, 0, 0]);
    }

    #[test]
    fn numbers_of_any_size_have_a_turn() {
        assert_eq!(Rotation::of(&[]).at(3), None);
        assert_eq!(Rotation::of(&[0, 0]).at(3), None);
        assert_eq!(Rotation::of(&[0, 4]).at(3), Some(1));
        assert_eq!(Rotation::of(&[1, 1, 1]).at(-1), Some(2));
        assert!(Rotation::of(&[1, 2]).at(i64::MAX).is_some() && Rotation::of(&[1, 2]).at(i64::MIN).is_some());
    }

    #[test]
    fn a_very_long_period_is_shortened_and_excludes_no_one() {
        let weights: Vec<i64> = (0..1_000).map(|place| 1 + place % 100).collect();
        let Rotation::Period(turns) = Rotation::of(&weights) else { panic!("weights differ") };
        assert!(turns.len() <= 11_000, "{}", turns.len());
        assert!((0..1_000).all(|place| turns.contains(&place)));
    }

    proptest! {
        #[test]
        fn every_period_is_nginxs_and_gives_each_its_weight(
            weights in prop::collection::vec(1_i64..=20, 1..12),
            start in any::<i32>().prop_map(i64::from),
        ) {
            let total: i64 = weights.iter().sum();
            prop_assert_eq!(turns(&weights, total), nginx(&weights, total));
            let rotation = Rotation::of(&weights);
            let mut counts = vec![0; weights.len()];
            for number in start..start + total {
                counts[rotation.at(number).unwrap()] += 1;
            }
            prop_assert_eq!(counts, weights);
        }
    }
}
