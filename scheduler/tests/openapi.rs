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
        "docs/openapi.json is not current; regenerate it: UPDATE_OPENAPI=1 cargo test -p carillon --test it openapi"
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

/// They change nothing: their question is too long for a query.
const ASKED_WITH_A_BODY: [&str; 1] = ["preview_schedule"];

#[test]
fn every_changing_operation_is_an_action() {
    let document: Value = serde_json::from_str(&carillon::api::openapi_json().unwrap()).unwrap();
    let actions = &document["components"]["schemas"]["AuditAction"]["x-actions"];
    let mut count = 0;
    for path in document["paths"].as_object().unwrap().values() {
        for (_, operation) in path.as_object().unwrap().iter().filter(|(method, _)| *method != "get") {
            let id = operation["operationId"].as_str().unwrap();
            assert!(actions[id].is_object() != ASKED_WITH_A_BODY.contains(&id), "{id}");
            count += 1;
        }
    }
    assert!(count > 40, "{count} changes");
}

/// They answer as many fires as `count` says.
const COUNTED: [&str; 2] = ["preview_task", "preview_schedule"];

#[test]
fn what_answers_a_page_has_a_cursor_and_a_bound() {
    let document: Value = serde_json::from_str(&carillon::api::openapi_json().unwrap()).unwrap();
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let mut pages = 0;
    for operation in operations {
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
        let id = operation["operationId"].as_str().unwrap();
        if !schema.as_str().is_some_and(|name| name.ends_with("Page")) || COUNTED.contains(&id) {
            continue;
        }
        pages += 1;
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let find = |name: &str| parameters.iter().find(|parameter| parameter["name"] == name);
        assert!(find("after").or_else(|| find("before")).is_some(), "{id} has no cursor");
        let limit = &find("limit").unwrap_or_else(|| panic!("{id} has no limit"))["schema"];
        assert_eq!((&limit["minimum"], &limit["maximum"]), (&1.into(), &500.into()), "{id}");
    }
    assert!(pages > 15, "{pages} lists");
}
