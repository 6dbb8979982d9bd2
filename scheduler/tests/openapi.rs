//! The OpenAPI document in the repository is the one that nodes serve, and whole.

use serde_json::Value;

#[test]
fn the_document_in_the_repository_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let made = carillon::api::openapi_json().unwrap() + "\n";
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/openapi.json is not current; make it anew: UPDATE_OPENAPI=1 cargo test -p carillon --test openapi"
    );
}

#[test]
fn everything_that_it_refers_to_is_there() {
    let document: Value = serde_json::from_str(&carillon::api::openapi_json().unwrap()).unwrap();
    let mut open = vec![&document];
    let mut count = 0;
    while let Some(value) = open.pop() {
        if let Some(to) = value.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(&to[1..]).is_some(), "{to} is not there");
            count += 1;
        }
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    assert!(count > 100, "{count} references");
}
