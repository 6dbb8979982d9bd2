//! The table of races in `docs/xxl-job.md` names tests: each must be there.

#![allow(clippy::unwrap_used)] // a test may fail

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_race_names_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/xxl-job.md")).unwrap();
    let (_, table) = page.split_once("## Races").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let mut files = Vec::new();
    sources(&root.join("tests/tests"), &mut files);
    let tests: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    assert!(rows.len() > 10, "{rows:?}");
    for row in rows {
        let cell = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(tests.contains(&format!("async fn {name}(")), "there is no test {name}: {row}");
        }
    }
}
