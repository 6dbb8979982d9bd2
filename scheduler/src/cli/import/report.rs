//! What an import did, or would do, and what could not be carried over.

use crate::cli::table::escaped;
use crate::domain::import::{Effect, ImportDocument, Uncarried};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What an import did, or would do.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Tenants that are new.
    pub tenants: Vec<String>,
    /// Apps that are new: `tenant/app`.
    pub apps: Vec<String>,
    /// Tasks.
    pub tasks: Tasks,
    /// Tasks whose scripts were written: `tenant/app/name`.
    pub scripts: Vec<String>,
    /// Users that are new.
    pub users: Vec<String>,
    /// Runs that have ended, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Runs>,
    /// What was not carried over as it was.
    pub uncarried: Vec<Left>,
    /// The document, of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<ImportDocument>,
}

/// What became of tasks: `tenant/app/name`.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tasks {
    /// New ones.
    pub created: Vec<String>,
    /// Those that are defined otherwise now.
    pub changed: Vec<String>,
    /// How many are as they were.
    pub unchanged: usize,
    /// Those that are started or paused here, and left as they are.
    pub in_use: Vec<String>,
}

/// What became of runs that have ended.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// New ones.
    pub written: u64,
    /// Those that an earlier import has brought, or of an instant at which their task has a run here.
    pub already_there: u64,
    /// Those that have not ended, or never began.
    pub not_ended: u64,
    /// Those of jobs that have no task here.
    pub without_task: u64,
}

/// Something that was not carried over as it was.
#[derive(Debug, Serialize)]
pub struct Left {
    /// Whose it is: `task shop/orders/nightly`.
    of: String,
    /// What.
    #[serde(flatten)]
    what: Uncarried,
}

impl Report {
    /// Adds what is not carried over of the document.
    pub fn leave(&mut self, document: &ImportDocument) {
        let all = document.all_uncarried().map(|(of, what)| Left { of, what: what.clone() });
        self.uncarried.extend(all);
    }

    /// Adds one.
    pub fn left(&mut self, of: String, what: Uncarried) {
        self.uncarried.push(Left { of, what });
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let added =
            [("tenant", &self.tenants), ("app", &self.apps), ("task", &self.tasks.created), ("user", &self.users)];
        for (kind, names) in added {
            for name in names {
                line(&mut out, &format!("+ {kind} {}", escaped(name)));
            }
        }
        for name in &self.tasks.changed {
            line(&mut out, &format!("~ task {}", escaped(name)));
        }
        for name in &self.scripts {
            line(&mut out, &format!("~ script of task {}", escaped(name)));
        }
        for name in &self.tasks.in_use {
            line(&mut out, &format!("= task {} is started or paused here: left as it is", escaped(name)));
        }
        self.text_of_left(&mut out);
        let Tasks { created, changed, unchanged, in_use } = &self.tasks;
        line(
            &mut out,
            &format!(
                "tasks: {} created, {} changed, {unchanged} unchanged, {} in use; apps: {} created; users: {} created",
                created.len(),
                changed.len(),
                in_use.len(),
                self.apps.len(),
                self.users.len(),
            ),
        );
        if let Some(Runs { written, already_there, not_ended, without_task }) = &self.runs {
            let others =
                format!("{already_there} there already, {not_ended} not ended, {without_task} of no task here");
            line(&mut out, &format!("runs: {written} written, {others}"));
        }
        if self.dry_run {
            line(&mut out, "dry run: nothing was changed");
        }
        if !self.users.is_empty() && !self.dry_run {
            line(
                &mut out,
                "New users have no password that anyone knows: `carillon users reset-password` gives them one.",
            );
        }
        out
    }

    /// One line for each that means something, one for each field of those that mean nothing.
    fn text_of_left(&self, out: &mut String) {
        let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
        for Left { of, what } in &self.uncarried {
            let Uncarried { field, value, why, remedy, effect } = what;
            let mark = match effect {
                Effect::Nothing => {
                    *notes.entry(field).or_default() += 1;
                    continue;
                }
                Effect::Differs => "!",
                Effect::Stops => "! not started:",
            };
            let value = if value.is_empty() { String::new() } else { format!(" ({})", escaped(value)) };
            let remedy = if remedy.is_empty() { String::new() } else { format!(" {remedy}") };
            line(out, &format!("{mark} {}: {field}{value}: {why}.{remedy}", escaped(of)));
        }
        for (field, count) in notes {
            line(out, &format!("- {field}: left behind {count} times; nothing follows of it"));
        }
    }
}

fn line(out: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_nothing_is_counted_and_the_rest_is_told() {
        let mut report = Report { dry_run: true, ..Report::default() };
        for of in ["task a/b/c", "task a/b/d"] {
            report.left(of.to_owned(), Uncarried::note("add_time", 1, "begins", ""));
        }
        report.left(
            "task a/b/c".to_owned(),
            Uncarried::stops("glue_type", "GLUE_X", "no script runs", "Make a handler."),
        );
        let expected = "! not started: task a/b/c: glue_type (GLUE_X): no script runs. Make a handler.\n\
                        - add_time: left behind 2 times; nothing follows of it\n\
                        tasks: 0 created, 0 changed, 0 unchanged, 0 in use; apps: 0 created; users: 0 created\n\
                        dry run: nothing was changed\n";
        assert_eq!(report.text(), expected);
    }
}
