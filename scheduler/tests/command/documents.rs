//! `docs/tasks.md` is the reference: it knows every field and its default, and its example is
//! allowed.

use carillon::cli::tasks::{Document, Format};
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::{Entry, TaskFile};

const REFERENCE: &str = include_str!("../../../docs/tasks.md");

#[test]
fn every_field_has_its_row() {
    let rows =
        REFERENCE.lines().filter_map(|line| line.strip_prefix("| `")).filter(|row| row.matches(" | ").count() == 4);
    let mut documented: Vec<_> = rows.filter_map(|row| row.split('`').next()).collect();
    documented.sort_unstable();
    let mut fields = Entry::field_names();
    fields.sort_unstable();
    assert_eq!(documented, fields);
}

#[test]
fn defaults_are_told_as_they_are() {
    let serde_json::Value::Object(defaults) = serde_json::to_value(TaskSpec::default()).unwrap() else {
        panic!("a definition is an object")
    };
    for (field, default) in defaults.iter().filter(|(_, default)| default.is_number() || default.is_boolean()) {
        let row = REFERENCE.lines().find(|line| line.starts_with(&format!("| `{field}` |"))).unwrap();
        let told = row.split(" | ").nth(3).unwrap().replace([',', '`'], "");
        assert_eq!(told.split(':').next().unwrap(), default.to_string(), "{field}");
    }
}

#[test]
fn the_example_is_allowed() {
    let example = REFERENCE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let document = Document::parse(example, Format::Toml).unwrap();
    let file = TaskFile::read(&document.fields, &TaskSpec::default());
    assert_eq!(file.refused, []);
    assert_eq!(file.entries.len(), 2);
}
