//! The tables of docs/permissions.md are those of the program.

#![allow(clippy::unwrap_used)] // a test may fail

use carillon::domain::access::{BUILT_IN, PERMISSIONS, PermissionLevel};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const BEGIN: &str = "<!-- made by the test `permissions`: do not edit -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_tables_in_the_docs_are_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/permissions.md");
    let kept = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = kept.split_once(BEGIN).expect("the tables begin somewhere");
    let (_, tail) = rest.split_once(END).expect("the tables end somewhere");
    let made = format!("{head}{BEGIN}\n{}\n{END}{tail}", tables());
    if std::env::var_os("UPDATE_PERMISSIONS").is_some() {
        std::fs::write(&path, &made).unwrap();
        return;
    }
    assert!(
        kept == made,
        "docs/permissions.md is not current; regenerate it: UPDATE_PERMISSIONS=1 cargo test -p carillon --test it permissions"
    );
}

/// Operations by what they need, each as `id`.
fn operations() -> BTreeMap<String, Vec<String>> {
    let document: Value = serde_json::from_str(&carillon::api::openapi_json().unwrap()).unwrap();
    let mut operations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let word = |at: &str| {
                let word = operation[at].as_str();
                word.unwrap_or_else(|| panic!("{method} {path} says nothing of {at}")).to_owned()
            };
            operations.entry(word("x-permission")).or_default().push(format!("`{}`", word("operationId")));
        }
    }
    operations
}

fn tables() -> String {
    let mut operations = operations();
    let mut text = String::new();
    for (word, says) in [
        ("public", "Without a login"),
        ("signed_in", "With any login"),
        ("session", "With a session, on the caller's own account"),
    ] {
        let free = operations.remove(word).unwrap_or_default();
        writeln!(text, "{says} (`{word}`): {}.\n", free.join(", ")).unwrap();
    }
    // Not below /api/v1, where the document ends.
    operations.entry("metrics.read".to_owned()).or_default().push("`GET /metrics`".to_owned());
    let roles = BUILT_IN.map(|role| role.name).join(" | ");
    writeln!(text, "| permission | allows | operations | {roles} |").unwrap();
    writeln!(text, "|{}", " --- |".repeat(3 + BUILT_IN.len())).unwrap();
    for (permission, word, breadth, says) in PERMISSIONS {
        let whole = if *breadth == PermissionLevel::Platform { " (platform only)" } else { "" };
        let used = operations.remove(*word).unwrap_or_default().join(", ");
        let held = BUILT_IN.map(|role| if role.permissions().has(*permission) { "yes" } else { "" }).join(" | ");
        writeln!(text, "| `{word}` | {says}{whole} | {used} | {held} |").unwrap();
    }
    assert!(operations.is_empty(), "operations whose permission there is not: {operations:?}");
    text
}
