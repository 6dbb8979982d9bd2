//! A task that was stopped or edited starts nothing by its old definition after the answer, save what that named; an edit
//! loses nothing that the new definition fires as well; a run by hand comes once for its key.

use super::Evidence;
use crate::history::{Span, status};

impl Evidence<'_> {
    pub(super) fn definitions_are_kept(&mut self) {
        let edited: Vec<i64> = self.history.tasks.iter().filter(|task| task.is_edited).map(|task| task.id).collect();
        for task in edited {
            let spans: Vec<Span> = self.history.spans.iter().filter(|span| span.task == task).cloned().collect();
            self.old_definitions_start_nothing(task, &spans);
            self.edits_lose_nothing(task, &spans);
        }
        self.keys_start_one_run();
    }

    fn old_definitions_start_nothing(&mut self, task: i64, spans: &[Span]) {
        for visit in self.history.visits.iter().filter(|visit| visit.task == task) {
            if !self.rows.get(&visit.log).is_some_and(|row| row.is_scheduled()) {
                continue;
            }
            let Some(span) = spans.iter().find(|span| (span.from_us..span.until_us).contains(&visit.start_us)) else {
                continue;
            };
            let is_named = span.every_ms.is_some_and(|every| visit.fire_time % every == 0);
            if !is_named && !self.is_out_of_reach(visit.log, span) {
                let detail = format!(
                    "the fire at {} started at {} µs, {} ms after the answer that made it {:?}",
                    visit.fire_time,
                    visit.start_us,
                    (visit.start_us - span.from_us) / 1_000,
                    span.every_ms
                );
                self.breaks("old_definition", visit.log, task, detail);
            }
        }
    }

    /// A fire that a definition names, which is valid from before the fire until long after it, is not given up.
    fn edits_lose_nothing(&mut self, task: i64, spans: &[Span]) {
        let given_up = self.rows_of(task).to_vec();
        for row in given_up.iter().filter(|row| row.status == status::CANCELLED && row.is_scheduled()) {
            let at = row.fire_time * 1_000;
            let is_owed = |span: &&Span| {
                span.from_us < at
                    && at < span.until_us
                    && span.every_ms.is_some_and(|every| row.fire_time % every == 0)
                    && row.finished_at * 1_000 < span.from_us
            };
            if let Some(span) = spans.iter().find(is_owed) {
                let detail = format!(
                    "given up at {} ({}), and the definition of {} µs names {}",
                    row.finished_at, row.reason, span.from_us, row.fire_time
                );
                self.breaks("lost_by_edit", row.id, task, detail);
            }
        }
    }

    fn keys_start_one_run(&mut self) {
        for run in &self.history.manual_runs {
            let mut logs = run.logs.clone();
            logs.dedup();
            let known = logs.first().filter(|log| self.rows.contains_key(log));
            if logs.len() != 1 || known.is_none() {
                let detail = format!("{} started {logs:?}", run.key);
                self.breaks("wrong_run_by_hand", logs.first().copied().unwrap_or_default(), run.task, detail);
            }
        }
        for task in self.history.tasks.iter().filter(|task| task.is_edited) {
            let asked = self.history.manual_runs.iter().filter(|run| run.task == task.id).count();
            let made = self.rows_of(task.id).iter().filter(|row| row.trigger == "manual").count();
            if made > asked {
                self.breaks("doubled_run_by_hand", 0, task.id, format!("{made} runs for {asked} keys"));
            }
        }
    }
}
