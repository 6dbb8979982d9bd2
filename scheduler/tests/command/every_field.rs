//! A definition in which nothing is as it is by default: the examples of the list of fields, and texts that are hard to
//! write down.

use carillon::cli::tasks::{Document, Format};
use carillon::domain::cron::Overlap;
use carillon::domain::task::{ParentLink, ParentOutcome, TaskSpec};
use std::fmt::Write as _;

/// The definition; it needs the calendar `holidays` and the tasks `first` and `other/second`.
pub fn every_field() -> TaskSpec {
    let examples = TaskSpec::FIELDS.iter().fold(String::new(), |mut text, field| {
        writeln!(text, "{} = {}", field.name, field.example).unwrap();
        text
    });
    let examples = Document::parse(&examples, Format::Toml).unwrap();
    let spec = TaskSpec {
        name: "every field: \"quoted\", 'twice', # no comment".to_owned(),
        handler: "no".to_owned(),
        description: "Über die Nacht\n\n  indented, with a blank at the end \n\ttab \\ back\r\n".to_owned(),
        params: "{\n  \"text\": \"it's '''three'''\",\n  \"n\": 1\n}".to_owned(),
        cron: "0 0/5 9-17 ? * MON-FRI".to_owned(),
        fire_at: 1_798_135_200_001,
        valid_until: 7_258_118_399_999,
        max_fires: i64::MAX,
        dst_overlap: Overlap::Both,
        tags: vec!["gpu=yes".to_owned(), "on".to_owned()],
        tags_any: vec!["0x10".to_owned()],
        tags_none: vec!["null".to_owned(), "~".to_owned()],
        max_retries: 0,
        parents: vec![
            ParentLink { task: "other/second".to_owned(), on: ParentOutcome::Always },
            ParentLink { task: "first".to_owned(), on: ParentOutcome::Failure },
        ],
        ..TaskSpec::default().read(&examples.fields).unwrap()
    };
    assert_eq!(spec.check(), []);
    let said = spec.sparse();
    let unsaid: Vec<_> = TaskSpec::field_names().filter(|name| !said.contains_key(*name)).collect();
    assert!(unsaid.is_empty(), "{unsaid:?} are as by default");
    spec
}
