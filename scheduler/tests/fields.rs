//! The tables of a task's fields in docs/policies.md, docs/tasks.md and docs/concepts.md are made of the list of fields, those of
//! other schedulers' columns of the lists of columns.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may fail

use carillon::domain::choice::Enumerated as _;
use carillon::domain::import::{Column, Effect, Fate};
use carillon::domain::task::{Allowed, Choices, Field, Routing, TaskSpec, Unit};
use std::fmt::Write as _;
use std::path::Path;

const BEGIN: &str = "<!-- made by the test `fields`: do not edit -->\n";
const END: &str = "<!-- end -->\n";

/// Compares, or regenerates, what is between the marks of a page.
fn is_current(page: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(page);
    let kept = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = kept.split_once(BEGIN).expect("the tables begin somewhere");
    let (_, tail) = rest.split_once(END).expect("the tables end somewhere");
    let made = format!("{head}{BEGIN}\n{made}\n{END}{tail}");
    if std::env::var_os("UPDATE_FIELDS").is_some() {
        std::fs::write(&path, &made).unwrap();
        return;
    }
    let how = "UPDATE_FIELDS=1 cargo test -p carillon --test it fields";
    assert!(kept == made, "docs/{page} is not current; make it again: {how}");
}

/// A heading and a table for each group, in the order of the list.
fn tables(level: &str, head: &str, row: impl Fn(&Field) -> String) -> String {
    let mut groups: Vec<&str> = TaskSpec::FIELDS.iter().map(|field| field.group).collect();
    groups.dedup();
    let rule = "| --- ".repeat(head.matches(" | ").count() + 1);
    let tables = groups.into_iter().map(|group| {
        let fields = TaskSpec::FIELDS.iter().filter(|field| field.group == group);
        let rows: String = fields.fold(String::new(), |mut rows, field| {
            writeln!(rows, "| {} |", row(field)).unwrap();
            rows
        });
        format!("{level} {group}\n\n| {head} |\n{rule}|\n{rows}")
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// 1234567 → 1,234,567.
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn span(ms: i64) -> String {
    let (days, number) = (ms / 86_400_000, grouped(ms));
    match days {
        0 => format!("{number} ms"),
        1 => format!("{number} ms (a day)"),
        _ => format!("{number} ms ({days} days)"),
    }
}

fn default_of(field: &Field) -> String {
    let value = &serde_json::to_value(TaskSpec::default()).unwrap()[field.name];
    match field.allowed {
        Allowed::Name { least: 1 } => "required".to_owned(),
        Allowed::Instant => "0: none".to_owned(),
        Allowed::Whole { zero, .. } if value == 0 => format!("0: {zero}"),
        Allowed::Whole { .. } => grouped(value.as_i64().unwrap()),
        Allowed::One(_) | Allowed::Flag => format!("`{}`", value.to_string().trim_matches('"')),
        Allowed::Any(_) => "all".to_owned(),
        _ if field.name == "time_zone" => "`schedulers.time_zone` (`UTC`)".to_owned(),
        _ => "none".to_owned(),
    }
}

fn words(choices: Choices) -> String {
    (choices.all)().iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// Each word with its sentence.
fn explained(choices: Choices) -> String {
    let each = (choices.all)().into_iter().map(|(word, says)| format!("`{word}`: {}", says.trim_end_matches('.')));
    each.collect::<Vec<_>>().join(" · ")
}

fn allowed(field: &Field, choices: fn(Choices) -> String) -> String {
    match field.allowed {
        Allowed::Name { least } => format!("{}1–128 printable characters", if least == 0 { "none, or " } else { "" }),
        Allowed::Text(_) if field.name == "time_zone" => "an IANA name".to_owned(),
        Allowed::Text(most) => format!("up to {} characters", grouped(most as i64)),
        Allowed::Params(most) => format!("up to {} bytes", grouped(most as i64)),
        Allowed::Whole { least, most: i64::MAX, .. } => format!("from {least}"),
        Allowed::Whole { least, most, unit: Unit::Ms, .. } => format!("{least} to {}", span(most)),
        Allowed::Whole { least, most, .. } => format!("{least} to {}", grouped(most)),
        Allowed::Instant => "an instant up to the end of 2199".to_owned(),
        Allowed::Flag => "`true`, `false`".to_owned(),
        Allowed::One(of) => choices(of),
        Allowed::Any(of) => format!("a list of {}", choices(of)),
        Allowed::Tags => "up to 32 of 1–128 printable characters".to_owned(),
        Allowed::Parents => "up to 32, each once, no cycle; `on`: `success`, `failure`, `always`".to_owned(),
    }
}

#[test]
fn the_tables_of_policies_are_current() {
    let row = |field: &Field| {
        let (name, says, when) = (field.name, field.says, field.use_when);
        format!("`{name}` | {says} | {} | {} | {when}", default_of(field), allowed(field, words))
    };
    is_current("policies.md", &tables("##", "field | what it is | default | allowed | use it when", row));
}

#[test]
fn the_reference_of_the_task_file_is_current() {
    let row = |field: &Field| {
        let (name, says, example) = (field.name, field.says, field.example);
        format!("`{name}` | {says} | {} | {} | `{example}`", allowed(field, explained), default_of(field))
    };
    is_current("tasks.md", &tables("###", "field | means | allowed | default | example", row));
}

fn routings(row: impl Fn(Routing, &str) -> String) -> String {
    Routing::ALL.iter().fold(String::new(), |mut rows, (routing, says)| {
        writeln!(rows, "| `{}` | {} |", routing.word(), row(*routing, says.trim())).unwrap();
        rows
    })
}

#[test]
fn the_table_of_routings_is_current() {
    let rows = routings(|routing, says| format!("{says} | {} | {}", routing.weight(), routing.use_when()));
    let head = "| `routing` | takes | weight | use it when |\n| --- | --- | --- | --- |\n";
    is_current("concepts.md", &format!("{head}{rows}"));
}

/// A table for each table of another scheduler.
fn tables_of_columns(columns: &[Column]) -> String {
    let mut names: Vec<&str> = columns.iter().map(|column| column.table).collect();
    names.dedup();
    let tables = names.into_iter().map(|name| {
        let rows = columns.iter().filter(|column| column.table == name).fold(String::new(), |mut rows, column| {
            let releases = if column.releases.is_empty() { String::new() } else { format!(" ({})", column.releases) };
            writeln!(rows, "| `{}`{releases} | {} | {} |", column.name, fate(column.fate), column.says).unwrap();
            rows
        });
        format!("### `{name}`\n\n| column | becomes | how |\n| --- | --- | --- |\n{rows}")
    });
    tables.collect::<Vec<_>>().join("\n")
}

fn fate(fate: Fate) -> String {
    match fate {
        Fate::Task(fields) => fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", "),
        Fate::Kept(place) => format!("{place} of the document"),
        Fate::Left(Effect::Nothing) => "left".to_owned(),
        Fate::Left(Effect::Differs | Effect::Stops) => "left: something is not as before".to_owned(),
        Fate::Unread => "not read".to_owned(),
    }
}

#[test]
fn the_table_of_xxl_job_is_current() {
    use carillon::domain::xxljob::{COLUMNS, TABLES};
    let others: Vec<_> = TABLES.iter().filter(|(_, says)| !says.is_empty()).collect();
    let others = others.into_iter().fold(String::new(), |mut rows, (table, says)| {
        writeln!(rows, "| `{table}` | {says} |").unwrap();
        rows
    });
    let others = format!("### Other tables\n\n| table | |\n| --- | --- |\n{others}");
    is_current("migrating-from-xxl-job.md", &format!("{}\n{others}", tables_of_columns(COLUMNS)));
}

#[test]
fn the_table_of_horace_is_current() {
    is_current("migrating-from-horace.md", &tables_of_columns(carillon::domain::horace::COLUMNS));
}

/// The examples of the reference, together, are a definition in which nothing is as by default.
#[test]
fn examples_are_allowed_and_differ_from_the_defaults() {
    let text: String = TaskSpec::FIELDS.iter().fold(String::new(), |mut text, field| {
        writeln!(text, "{} = {}", field.name, field.example).unwrap();
        text
    });
    let read = carillon::cli::tasks::Document::parse(&text, carillon::cli::tasks::Format::Toml).unwrap();
    let spec = TaskSpec::default().read(&read.fields).unwrap();
    let said = spec.sparse();
    let unsaid: Vec<&str> = TaskSpec::field_names().filter(|name| !said.contains_key(*name)).collect();
    assert!(unsaid.is_empty(), "{unsaid:?} are as by default");
}

#[test]
fn every_default_is_allowed() {
    let spec = TaskSpec { name: "n".to_owned(), handler: "h".to_owned(), ..TaskSpec::default() };
    assert_eq!(spec.check(), []);
}
