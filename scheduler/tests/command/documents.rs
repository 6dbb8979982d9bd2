//! `docs/tasks.md` is the reference: its example is allowed.

use carillon::cli::tasks::{Document, Format};
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::TaskFile;

const REFERENCE: &str = include_str!("../../../docs/tasks.md");

#[test]
fn the_example_is_allowed() {
    let example = REFERENCE.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let document = Document::parse(example, Format::Toml).unwrap();
    let file = TaskFile::read(&document.fields, &TaskSpec::default(), "");
    assert_eq!(file.refused, []);
    assert_eq!(file.entries.len(), 2);
}
