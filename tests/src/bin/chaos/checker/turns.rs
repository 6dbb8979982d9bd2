//! Serial runs never overlap, and no bound is exceeded.

use super::Evidence;
use crate::history::{Bound, Task, Visit};
use std::collections::BTreeMap;

impl Evidence<'_> {
    pub(super) fn turns_are_kept(&mut self) {
        let mut visits_of: BTreeMap<i64, Vec<&Visit>> = BTreeMap::new();
        for visit in &self.history.visits {
            visits_of.entry(visit.task).or_default().push(visit);
        }
        for task in &self.history.tasks {
            let visits = visits_of.remove(&task.id).unwrap_or_default();
            match task.bound {
                Some(Bound { most, in_process: false }) => self.no_more_than(most, task, visits),
                Some(Bound { most, in_process: true }) => {
                    let mut by_process: BTreeMap<u32, Vec<&Visit>> = BTreeMap::new();
                    for visit in visits {
                        by_process.entry(visit.pid).or_default().push(visit);
                    }
                    for visits in by_process.into_values() {
                        self.no_more_than(most, task, visits);
                    }
                }
                None => {}
            }
        }
    }

    fn no_more_than(&mut self, most: usize, task: &Task, mut visits: Vec<&Visit>) {
        visits.sort_by_key(|visit| visit.start_mono);
        let mut inside: Vec<&Visit> = Vec::new();
        for visit in visits {
            inside.retain(|other| other.end_mono > visit.start_mono);
            // The same attempt twice is named elsewhere.
            inside.retain(|other| (other.log, other.attempt) != (visit.log, visit.attempt));
            inside.push(visit);
            if inside.len() > most {
                let beside: Vec<String> = inside
                    .iter()
                    .map(|v| format!("{}.{} {} to {} µs ({})", v.log, v.attempt, v.start_us, v.end_us, v.outcome))
                    .collect();
                let what = if most == 1 { "overlap" } else { "bound_exceeded" };
                self.breaks(what, visit.log, task.id, format!("{} at once: {}", inside.len(), beside.join("; ")));
            }
        }
    }
}
