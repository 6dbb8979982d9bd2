//! The promises of the design, held against what the database and the executors say. Checked
//! after every scenario.

use crate::report::Start;
use crate::rows::{LogRow, Status};
use crate::wait::sample;
use std::collections::{HashMap, HashSet};

/// What a scenario's end is held against.
#[derive(Debug)]
pub struct Invariants<'a> {
    /// Every task log.
    pub rows: &'a [LogRow],
    /// Every start that any executor wrote down.
    pub starts: &'a [Start],
    /// An executor was killed: its report may lack the last starts.
    pub is_report_cut: bool,
}

impl Invariants<'_> {
    /// Panics with the rows that break a promise.
    pub fn check(&self) {
        self.every_log_has_ended();
        self.one_log_per_fire_and_shard();
        self.nothing_started_early();
        self.no_attempt_started_twice();
        self.every_further_start_follows_a_counted_failure();
        self.what_succeeded_was_run();
        self.every_end_is_explained();
    }

    /// Promise 2.
    fn every_log_has_ended(&self) {
        let open: Vec<_> = self.rows.iter().filter(|row| !row.status.is_terminal()).collect();
        assert!(open.is_empty(), "logs that never ended: {}", sample(&open));
        let timeless: Vec<_> = self.rows.iter().filter(|row| row.finished_at <= 0).collect();
        assert!(timeless.is_empty(), "ends without a time: {}", sample(&timeless));
    }

    /// Promise 1. The unique index guarantees it; so the index itself is tested.
    fn one_log_per_fire_and_shard(&self) {
        let mut seen = HashSet::new();
        for row in self.rows {
            let key = (row.task, row.fire_time, row.shard_index);
            assert!(seen.insert(key), "two logs for one fire: {row:?}");
        }
    }

    /// Promise 3.
    fn nothing_started_early(&self) {
        let early: Vec<_> = self
            .starts
            .iter()
            .filter(|start| start.started_at_us < start.due_time * 1_000 || start.due_time < start.fire_time)
            .collect();
        assert!(early.is_empty(), "started before their time: {}", sample(&early));
    }

    fn no_attempt_started_twice(&self) {
        let mut seen = HashMap::new();
        for start in self.starts {
            if let Some(first) = seen.insert((start.log, start.attempt), start) {
                panic!("one attempt started twice:\n  {first:?}\n  {start:?}");
            }
        }
    }

    /// A run that starts again does so because an attempt failed (or its outcome is unknown),
    /// and the row says so.
    fn every_further_start_follows_a_counted_failure(&self) {
        let mut starts: HashMap<i64, Vec<&Start>> = HashMap::new();
        for start in self.starts {
            starts.entry(start.log).or_default().push(start);
        }
        for row in self.rows {
            let of_row = starts.get(&row.id).map_or(&[][..], Vec::as_slice);
            let allowed = row.failures as usize + 1;
            assert!(
                of_row.len() <= allowed,
                "started {} times with {} failures: {row:?}\n{}",
                of_row.len(),
                row.failures,
                sample(of_row)
            );
        }
    }

    fn what_succeeded_was_run(&self) {
        if self.is_report_cut {
            return;
        }
        let started: HashSet<_> = self.starts.iter().map(|start| (start.log, start.attempt)).collect();
        let wrong: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.status == Status::Succeeded && !row.is_parent())
            .filter(|row| !started.contains(&(row.id, row.attempt)))
            .collect();
        assert!(wrong.is_empty(), "succeeded without having run: {}", sample(&wrong));
    }

    /// "Why did this not run?" has an answer in every row that did not end well.
    fn every_end_is_explained(&self) {
        let silent: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.status.is_terminal() && row.status != Status::Succeeded && row.reason.is_empty())
            .collect();
        assert!(silent.is_empty(), "ended without a reason: {}", sample(&silent));
    }
}
