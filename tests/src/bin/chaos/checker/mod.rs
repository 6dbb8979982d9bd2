//! Holds a history against the promises, in the manner of Jepsen's checker for Chronos: what must have come, came, once.

mod attempts;
mod causes;
mod definitions;
mod ends;
mod fires;
mod following;
mod missed;
mod turns;

#[cfg(test)]
mod good;
#[cfg(test)]
mod spoilt;

pub use fires::is_lateness_judged;

use crate::history::{Attempt, History, Row, Task, Visit};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// Which one, in a word.
    pub what: &'static str,
    /// The run that it is about; 0: none.
    pub log: i64,
    /// The task's name.
    pub task: String,
    /// For people.
    pub detail: String,
}

/// A history, so arranged that questions are answered quickly.
pub struct Evidence<'a> {
    history: &'a History,
    tasks: HashMap<i64, &'a Task>,
    rows: HashMap<i64, &'a Row>,
    rows_of: BTreeMap<i64, Vec<&'a Row>>,
    /// By run and attempt, each in the order of their starts.
    visits: BTreeMap<(i64, i32), Vec<&'a Visit>>,
    attempts: HashMap<(i64, i32), &'a Attempt>,
    broken: Vec<Broken>,
}

/// Everything that was not kept.
pub fn check(history: &History) -> Vec<Broken> {
    let mut evidence = Evidence::of(history);
    for incident in &history.incidents {
        evidence.breaks("incident", 0, 0, incident.clone());
    }
    evidence.fires_have_one_row();
    evidence.rows_end_as_they_may();
    evidence.missed_fires_run_as_they_may();
    evidence.nothing_starts_early();
    evidence.attempts_start_as_they_may();
    evidence.unknown_ends_have_a_cause();
    evidence.turns_are_kept();
    evidence.what_follows_comes_once();
    evidence.definitions_are_kept();
    evidence.it_recovers();
    evidence.broken
}

impl<'a> Evidence<'a> {
    fn of(history: &'a History) -> Self {
        let mut rows_of: BTreeMap<i64, Vec<&Row>> = BTreeMap::new();
        for row in &history.rows {
            rows_of.entry(row.task).or_default().push(row);
        }
        let mut visits: BTreeMap<(i64, i32), Vec<&Visit>> = BTreeMap::new();
        for visit in &history.visits {
            visits.entry((visit.log, visit.attempt)).or_default().push(visit);
        }
        Self {
            history,
            tasks: history.tasks.iter().map(|task| (task.id, task)).collect(),
            rows: history.rows.iter().map(|row| (row.id, row)).collect(),
            rows_of,
            visits,
            attempts: history.attempts.iter().map(|kept| ((kept.log, kept.attempt), kept)).collect(),
            broken: Vec::new(),
        }
    }

    fn breaks(&mut self, what: &'static str, log: i64, task: i64, detail: String) {
        let task = self.tasks.get(&task).map_or_else(String::new, |task| task.name.clone());
        self.broken.push(Broken { what, log, task, detail });
    }

    fn rows_of(&self, task: i64) -> &[&'a Row] {
        self.rows_of.get(&task).map_or(&[], Vec::as_slice)
    }

    /// Every stay of a run in a handler, by attempt.
    fn visits_of(&self, log: i64) -> impl Iterator<Item = &'a Visit> + '_ {
        self.visits.range((log, i32::MIN)..=(log, i32::MAX)).flat_map(|(_, visits)| visits.iter().copied())
    }

    /// How the row says that an attempt ended: the state that came of it, the reason, and when (ms) at the latest.
    fn end_of(&self, log: i64, attempt: i32) -> Option<(i32, &'a str, i64)> {
        if let Some(kept) = self.attempts.get(&(log, attempt)) {
            return Some((kept.status, &kept.reason, self.called_at(kept)));
        }
        let row = self.rows.get(&log).filter(|row| row.attempt == attempt && row.is_ended())?;
        Some((row.status, &row.reason, row.finished_at))
    }
    /// When an attempt was said to have ended, ms. One of which nobody knows how it ended has no time of its own: no later than
    /// the next one was due, or began where an edit had it go on as it was due.
    fn called_at(&self, kept: &Attempt) -> i64 {
        if kept.finished_at > 0 {
            return kept.finished_at;
        }
        let next = self.attempts.get(&(kept.log, kept.attempt + 1)).map(|next| next.due_time);
        let due = next.or_else(|| self.rows.get(&kept.log).map(|row| row.due_time)).unwrap_or(0);
        let began = self.visits.get(&(kept.log, kept.attempt + 1)).and_then(|visits| visits.first());
        began.map_or(due, |visit| due.max(visit.start_us / 1_000))
    }
}
