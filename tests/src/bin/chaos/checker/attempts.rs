//! None starts twice beyond its delivery, and none against what its row says.

use super::Evidence;
use crate::history::{Visit, status};
use std::collections::BTreeMap;

/// Ends that say: it certainly never started.
const UNSTARTED: [&str; 6] = ["undelivered", "given_back", "executor_gone", "not_accepted", "no_executor", "all_busy"];

/// Ends after which an at-most-once run may start again: the handler itself said that it failed.
const SAID_BY_HANDLERS: [&str; 3] = ["handler_failed", "handler_panicked", "timed_out"];

/// Ends after which an at-least-once run may, too.
const UNKNOWN: [&str; 2] = ["outcome_unknown", "abandoned"];

/// The clocks of a row and of an executor may differ so much, ms.
const CLOCKS_MS: i64 = 200;

impl Evidence<'_> {
    pub(super) fn attempts_start_as_they_may(&mut self) {
        let mut logs: BTreeMap<i64, Vec<&Visit>> = BTreeMap::new();
        for (key, visits) in self.visits.clone() {
            if visits.len() > 1 {
                let detail = format!("attempt {} started {} times: {}", key.1, visits.len(), places(&visits));
                self.breaks("doubled_attempt", key.0, visits[0].task, detail);
            }
            if visits.iter().any(|visit| visit.outcome == "unknown") {
                let detail = format!("attempt {}: its process lives, and its handler has not ended", key.1);
                self.breaks("endless_handler", key.0, visits[0].task, detail);
            }
            self.executors_are_of_the_tenant(&visits);
            logs.entry(key.0).or_default().extend(visits);
        }
        for (log, visits) in logs {
            self.starts_agree_with_the_row(log, &visits);
            self.starts_follow_each_other(log, &visits);
        }
    }

    /// P8.
    fn executors_are_of_the_tenant(&mut self, visits: &[&Visit]) {
        for visit in visits {
            let executor = self.history.processes.get(&visit.pid);
            let of = executor.and_then(|name| self.history.tenants.get(name)).copied();
            let asked = self.tasks.get(&visit.task).map(|task| task.tenant);
            if of != asked {
                let detail = format!("tenant {asked:?}, and {executor:?} is of tenant {of:?}");
                self.breaks("foreign_executor", visit.log, visit.task, detail);
            }
        }
    }

    fn starts_agree_with_the_row(&mut self, log: i64, visits: &[&Visit]) {
        let Some(row) = self.rows.get(&log).copied() else {
            self.breaks("start_without_row", log, visits[0].task, places(visits));
            return;
        };
        for visit in visits {
            if visit.attempt > row.attempt {
                let detail = format!("attempt {} started, and the row knows {}", visit.attempt, row.attempt);
                self.breaks("start_beyond_row", log, row.task, detail);
                continue;
            }
            match self.end_of(log, visit.attempt) {
                None if row.is_ended() => {
                    let detail =
                        format!("attempt {} of {} started, and nothing says how it ended", visit.attempt, row.attempt);
                    self.breaks("attempt_without_end", log, row.task, detail);
                }
                Some((_, reason, at)) if UNSTARTED.contains(&reason) => {
                    let detail = format!(
                        "attempt {} started at {}; at {at} it was called {reason}",
                        visit.attempt,
                        visit.start_us / 1_000
                    );
                    self.breaks("started_though_unstarted", log, row.task, detail);
                }
                Some((_, reason, at)) if UNKNOWN.contains(&reason) && visit.end_us / 1_000 > at + CLOCKS_MS => {
                    let detail = format!(
                        "attempt {} was called dead at {at} and ran until {}",
                        visit.attempt,
                        visit.end_us / 1_000
                    );
                    self.breaks("ran_though_dead", log, row.task, detail);
                }
                _ => {}
            }
        }
    }

    /// An attempt of which nobody knows how it ended has an executor that was away.
    pub(super) fn unknown_ends_have_a_cause(&mut self) {
        for kept in self.history.attempts.iter().filter(|kept| UNKNOWN.contains(&kept.reason.as_str())) {
            let task = self.rows.get(&kept.log).map_or(0, |row| row.task);
            let at = self.called_at(kept);
            if !self.can_be_lost(kept.log, kept.attempt, &kept.reason, (kept.due_time, at)) {
                let detail =
                    format!("attempt {} was called {} by {at}, and its executor was well", kept.attempt, kept.reason);
                self.breaks("lost_without_reason", kept.log, task, detail);
            }
        }
    }

    fn starts_follow_each_other(&mut self, log: i64, visits: &[&Visit]) {
        let mut visits = visits.to_vec();
        visits.sort_by_key(|visit| visit.start_mono);
        let is_at_most_once = self.tasks.get(&visits[0].task).is_some_and(|task| task.is_at_most_once);
        for pair in visits.windows(2) {
            let (earlier, later) = (pair[0], pair[1]);
            let told = format!(
                "attempt {} ({}, {} to {} µs), then attempt {} at {} µs",
                earlier.attempt, earlier.outcome, earlier.start_us, earlier.end_us, later.attempt, later.start_us
            );
            if later.attempt == earlier.attempt {
                continue;
            }
            if later.attempt < earlier.attempt {
                self.breaks("attempts_out_of_order", log, later.task, told.clone());
            }
            if earlier.end_mono > later.start_mono {
                self.breaks("attempts_side_by_side", log, later.task, told.clone());
            }
            let (reason, called_at) =
                self.end_of(log, earlier.attempt).map_or(("", later.start_us / 1_000), |(_, reason, at)| (reason, at));
            let may_follow = SAID_BY_HANDLERS.contains(&reason) || (!is_at_most_once && UNKNOWN.contains(&reason));
            if !may_follow {
                let what = if is_at_most_once { "at_most_once_twice" } else { "repeated_without_reason" };
                self.breaks(what, log, later.task, format!("{told}; in between it was called {reason:?}"));
            }
            if earlier.outcome == "ok" && !self.is_unheard(earlier, called_at) {
                self.breaks("repeated_success", log, later.task, format!("{told}; its executor was well"));
            }
        }
        let is_success = self.rows.get(&log).is_some_and(|row| row.status == status::SUCCEEDED);
        let oks = visits.iter().filter(|visit| visit.outcome == "ok").count();
        if is_success && oks == 0 {
            self.breaks("invented_success", log, visits[0].task, "no handler of it returned well".to_owned());
        }
    }
}

fn places(visits: &[&Visit]) -> String {
    let place = |visit: &&Visit| format!("process {} at {} µs", visit.pid, visit.start_us);
    visits.iter().map(place).collect::<Vec<_>>().join(", ")
}
