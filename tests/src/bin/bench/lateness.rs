//! How late handlers start: histograms of constant size, however many fires there are.

use crate::rounding::rounded;
use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// What is told apart: three significant digits, so that a value is off by less than a thousandth of itself.
const DIGITS: u8 = 3;

/// The largest that is told apart, µs: more than a record can hold.
const LARGEST_US: u64 = 3_600_000_000;

/// Shares of fires beyond each point of a curve, within a factor of ten: as far apart as they look on a scale of nines.
const TAILS: [f64; 7] = [1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2];

/// Factors of ten of a curve: 90 %, 99 %, … 99.9999 %.
const NINES: i32 = 6;

/// How late, by number of fires.
pub struct Histo {
    counts: Histogram<u64>,
    /// Exactly, µs.
    max_us: i32,
}

impl Histo {
    /// Without any fire.
    pub fn new() -> Result<Self> {
        Ok(Self { counts: Histogram::new_with_bounds(1, LARGEST_US, DIGITS)?, max_us: 0 })
    }

    /// Counts a fire that started so late, µs. One that started early counts as being on time: `early` tells of it.
    pub fn record(&mut self, late_us: i32) {
        self.max_us = self.max_us.max(late_us);
        self.counts.saturating_record(u64::try_from(late_us).unwrap_or(0));
    }

    /// What at least `share` of all do not exceed, ms; 0 of none.
    fn at(&self, share: f64) -> f64 {
        // The upper end of a cell may lie beyond all that is in it.
        let us = self.counts.value_at_quantile(share).min(self.max_us.unsigned_abs().into());
        rounded(us as f64 / 1_000.0, 3)
    }

    /// What is told of it.
    pub fn summary(&self) -> Lateness {
        let max = f64::from(self.max_us) / 1_000.0;
        Lateness { p50: self.at(0.5), p99: self.at(0.99), p999: self.at(0.999), max, curve: self.curve() }
    }

    /// Percentile and ms, up to the largest: as fine as the number of fires says something.
    fn curve(&self) -> Vec<(f64, f64)> {
        let fires = self.counts.len() as f64;
        let tails = (0..NINES).flat_map(|nines| TAILS.map(|tail| tail / 10f64.powi(nines)));
        // With fewer than two beyond it, a percentile is the largest, which comes last anyway.
        let told = tails.take_while(|tail| tail * fires >= 2.0);
        let point = |tail: f64| (rounded((1.0 - tail) * 100.0, 6), self.at(1.0 - tail));
        let last = (fires > 0.0).then(|| (100.0, f64::from(self.max_us) / 1_000.0));
        told.map(point).chain(last).collect()
    }
}

/// How late, ms.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Lateness {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    /// Percentile and ms, ascending.
    pub curve: Vec<(f64, f64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = i32>) -> Lateness {
        let mut histogram = Histo::new().unwrap();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram.summary()
    }

    /// To a thousandth.
    fn is_about(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= expected * 0.001
    }

    #[test]
    fn percentiles_are_told_to_a_thousandth_and_the_largest_exactly() {
        let late = of((1..=1_000_000).rev());
        assert!(is_about(late.p50, 500.0), "{}", late.p50);
        assert!(is_about(late.p99, 990.0), "{}", late.p99);
        assert!(is_about(late.p999, 999.0), "{}", late.p999);
        assert!(late.max.eq(&1_000.0), "{}", late.max);
    }

    #[test]
    fn a_curve_rises_to_the_largest_and_is_as_fine_as_there_are_fires() {
        let late = of(1..=1_000_000);
        assert!((38..=46).contains(&late.curve.len()), "{}", late.curve.len());
        assert!(late.curve.is_sorted_by(|one, other| one.0 < other.0 && one.1 <= other.1), "{:?}", late.curve);
        let at = |percentile: f64| late.curve.iter().find(|point| (point.0 - percentile).abs() < 1e-9).unwrap().1;
        assert!(is_about(at(90.0), 900.0) && is_about(at(99.98), 999.8), "{:?}", late.curve);
        assert_eq!(late.curve.last(), Some(&(100.0, 1_000.0)));

        let few = of(1..=100);
        let before_last = few.curve[few.curve.len() - 2].0;
        assert!((before_last - 98.0).abs() < 1e-9, "a hundred fires say nothing beyond: {before_last}");
    }

    #[test]
    fn early_starts_are_on_time_and_none_are_nothing() {
        let late = of([-5, -3, 700]);
        assert!(late.p50.abs() < 1e-9 && (late.max - 0.7).abs() < 1e-9, "{late:?}");
        let none = of([]);
        assert!(none.max.abs() < 1e-9 && none.p99.abs() < 1e-9 && none.curve.is_empty(), "{none:?}");
    }
}
