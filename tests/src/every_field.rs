//! A definition in which nothing is as it is by default.

use carillon::cli::tasks::{Document, Format};
use carillon::domain::task::TaskSpec;
use std::fmt::Write as _;

/// The examples of the list of fields, read as a task file is. It names the calendar `holidays` and the task `load`.
#[must_use]
pub fn every_field() -> TaskSpec {
    let examples = TaskSpec::FIELDS.iter().fold(String::new(), |mut text, field| {
        writeln!(text, "{} = {}", field.name, field.example).expect("text grows");
        text
    });
    let read = Document::parse(&examples, Format::Toml).expect("the examples are TOML");
    TaskSpec::default().read(&read.fields).expect("the examples are allowed")
}
