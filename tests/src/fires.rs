//! Which fires a task must have had.

use crate::report::Start;
use crate::rows::LogRow;
use crate::wait::sample;
use std::collections::HashSet;

/// The rows of one task with a periodic schedule, without those started manually.
#[derive(Debug)]
pub struct Fires {
    period_ms: i64,
    /// One row per fire: the parent of a sharded one.
    rows: Vec<LogRow>,
}

impl Fires {
    /// Of `rows`, those that the schedule (every `period_s` seconds, on the second) named.
    #[must_use]
    pub fn every(period_s: i64, rows: &[LogRow]) -> Self {
        let rows = rows.iter().filter(|row| row.parent == 0 && row.fire_time % 1_000 == 0).cloned().collect();
        Self { period_ms: period_s * 1_000, rows }
    }

    /// Nothing between the first and the last fire is missing, and nothing is there twice.
    #[must_use]
    pub fn assert_no_gap(self) -> Self {
        for pair in self.rows.windows(2) {
            assert_eq!(
                pair[1].fire_time - pair[0].fire_time,
                self.period_ms,
                "a fire is missing or doubled between {:?} and {:?}",
                pair[0],
                pair[1]
            );
        }
        self
    }

    /// Every fire that the schedule names in `from..=to` (epoch ms) is there; returns those rows.
    #[must_use]
    pub fn between(self, from: i64, to: i64) -> Vec<LogRow> {
        let first = (from + self.period_ms - 1).div_euclid(self.period_ms) * self.period_ms;
        let expected: Vec<i64> = (first..=to).step_by(self.period_ms as usize).collect();
        let there: Vec<LogRow> = self.rows.into_iter().filter(|row| (from..=to).contains(&row.fire_time)).collect();
        let missing: Vec<i64> =
            expected.iter().filter(|t| !there.iter().any(|row| row.fire_time == **t)).copied().collect();
        assert!(missing.is_empty(), "no log for these fire times: {}", sample(&missing));
        assert_eq!(there.len(), expected.len(), "more logs than fires: {}", sample(&there));
        there
    }
}

/// Rows of `rows` that do not meet `wanted` (none may) fail with `what`.
pub fn assert_all(what: &str, rows: &[LogRow], wanted: impl Fn(&LogRow) -> bool) {
    let wrong: Vec<&LogRow> = rows.iter().filter(|row| !wanted(row)).collect();
    assert!(wrong.is_empty(), "not {what}: {}", sample(&wrong));
}

/// Those of `rows` that ran were entered no later than `late_ms_max` after their fire time.
pub fn assert_on_time(what: &str, rows: &[LogRow], starts: &[Start], late_ms_max: i64) {
    let wanted: HashSet<i64> = rows.iter().map(|row| row.id).collect();
    let late: Vec<(i64, &Start)> = starts
        .iter()
        .filter(|start| wanted.contains(&start.log) && start.attempt == 1)
        .map(|start| (start.late_ms(), start))
        .filter(|(late_ms, _)| *late_ms > late_ms_max)
        .collect();
    assert!(late.is_empty(), "{what}: later than {late_ms_max} ms: {}", sample(&late));
}

/// Rows due in `from..=to`, epoch ms.
#[must_use]
pub fn fired_within(rows: &[LogRow], from: i64, to: i64) -> Vec<LogRow> {
    rows.iter().filter(|row| (from..=to).contains(&row.fire_time)).cloned().collect()
}
