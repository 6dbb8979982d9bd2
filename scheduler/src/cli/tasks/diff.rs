//! What an apply changes, for people.

use crate::cli::table::escaped;
use crate::domain::task::file::instant_text;
use crate::domain::task::{FieldChange, TaskSpec};
use serde::Deserialize;
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

/// Names longer than this do not push the others' column to the right.
const COLUMN_MAX: usize = 60;

/// Characters shown around the difference of longer texts.
const AROUND: usize = 40;
const SHOWN_WHOLE: usize = 120;

/// A node's answer to an apply.
#[derive(Debug, Deserialize)]
pub struct AppliedFile {
    dry_run: bool,
    created: usize,
    changed: usize,
    unchanged: usize,
    /// Nodes of earlier releases know no clusters.
    #[serde(default)]
    elsewhere: usize,
    tasks: Vec<Task>,
}

#[derive(Debug, Deserialize)]
struct Task {
    tenant: String,
    app: String,
    name: String,
    action: String,
    state: String,
    changes: Vec<FieldChange>,
    warning: Option<String>,
    running: Vec<String>,
    unreachable: Vec<String>,
}

/// Colours of a terminal, or none.
struct Paint(bool);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The answer as text.
#[must_use]
pub fn show(answer: &AppliedFile, coloured: bool) -> String {
    let paint = Paint(coloured);
    let mut out = String::new();
    let shown: Vec<_> = answer.tasks.iter().filter(|task| task.action != "unchanged").collect();
    let names: Vec<String> =
        shown.iter().map(|task| escaped(&format!("{}/{}/{}", task.tenant, task.app, task.name))).collect();
    let width = names.iter().map(|name| name.width()).filter(|width| *width <= COLUMN_MAX).max().unwrap_or(0);
    for (task, name) in shown.iter().zip(&names) {
        let gap = " ".repeat(width.saturating_sub(name.width()));
        show_task(&mut out, task, &format!("{name}{gap}"), &paint);
    }
    if answer.unchanged > 0 || shown.is_empty() {
        line(&mut out, &paint.with("2", &format!("= {} unchanged", answer.unchanged)));
    }
    if answer.elsewhere > 0 {
        line(&mut out, &paint.with("2", &format!("= {} for other clusters", answer.elsewhere)));
    }
    if answer.dry_run {
        line(&mut out, "dry run: nothing was changed");
    } else {
        line(
            &mut out,
            &format!("{} created, {} changed, {} unchanged", answer.created, answer.changed, answer.unchanged),
        );
    }
    out
}

fn show_task(out: &mut String, task: &Task, name: &str, paint: &Paint) {
    if task.action == "create" {
        line(out, &paint.with("32", &format!("+ {name}  created, {}", task.state)));
    } else {
        let count = task.changes.len();
        let changes = if count == 1 { "1 change".to_owned() } else { format!("{count} changes") };
        line(out, &paint.with("33", &format!("~ {name}  {changes}")));
    }
    for change in &task.changes {
        show_change(out, change, paint);
    }
    if let Some(warning) = &task.warning {
        line(out, &paint.with("35", &format!("    ! {}", escaped(warning))));
    }
    for (what, runs) in [
        ("continues with the old definition: run", &task.running),
        ("may still start, its executor is unreachable: run", &task.unreachable),
    ] {
        if !runs.is_empty() {
            line(out, &paint.with("35", &format!("    ! {what} {}", escaped(&runs.join(", ")))));
        }
    }
}

fn show_change(out: &mut String, change: &FieldChange, paint: &Paint) {
    let field = escaped(&change.field);
    if let (Value::String(before), Value::String(after)) = (&change.before, &change.after) {
        if before.contains('\n') || after.contains('\n') {
            line(out, &format!("    {field}:"));
            return show_lines(out, before, after, paint);
        }
        let (before, after) = shortened(before, after);
        return line(out, &format!("    {field}: {before} → {after}"));
    }
    let value = |value: &Value| {
        let is_instant = TaskSpec::instants().any(|name| name == change.field);
        match value {
            Value::Null => "none".to_owned(),
            Value::Number(number) if is_instant && number.as_i64() == Some(0) => "none".to_owned(),
            value if is_instant => instant_text(value).as_str().map_or_else(|| value.to_string(), str::to_owned),
            value => escaped(&value.to_string()),
        }
    };
    line(out, &format!("    {field}: {} → {}", value(&change.before), value(&change.after)));
}

/// The lines that differ, between those that do not.
fn show_lines(out: &mut String, before: &str, after: &str, paint: &Paint) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.split('\n').collect(), after.split('\n').collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let equal = |out: &mut String, count: usize| {
        if count > 0 {
            let lines = if count == 1 { "line" } else { "lines" };
            line(out, &paint.with("2", &format!("      … {count} equal {lines}")));
        }
    };
    equal(out, head);
    for text in &old[head..old.len() - tail] {
        line(out, &paint.with("31", &format!("      - {}", escaped(text))));
    }
    for text in &new[head..new.len() - tail] {
        line(out, &paint.with("32", &format!("      + {}", escaped(text))));
    }
    equal(out, tail);
}

/// Two texts in quotes, long ones only around what differs.
fn shortened(before: &str, after: &str) -> (String, String) {
    let (old, new): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
    if old.len().max(new.len()) <= SHOWN_WHOLE {
        return (quoted(before), quoted(after));
    }
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let (from, to) = (head.saturating_sub(AROUND), tail.saturating_sub(AROUND));
    let part = |text: &[char]| {
        let inner = quoted(&text[from..text.len() - to].iter().collect::<String>());
        let (left, right) = (if from > 0 { "…" } else { "" }, if to > 0 { "…" } else { "" });
        format!("{left}{inner}{right}")
    };
    (part(&old), part(&new))
}

fn quoted(text: &str) -> String {
    escaped(&Value::from(text).to_string())
}

fn line(out: &mut String, text: &str) {
    out.push_str(text.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests;
