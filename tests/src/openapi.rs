//! The OpenAPI document that a node serves, and the table of permissions in the docs, as far as
//! tests need them.

use reqwest::Method;
use serde_json::Value;
use std::collections::BTreeMap;

/// An operation of the document.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `operationId`.
    pub id: String,
    /// Method.
    pub method: Method,
    /// Path below `/api/v1`, with `{parameters}`.
    pub path: String,
    /// `x-permission`: `public`, `signed_in`, `session` or the name of a permission.
    pub permission: String,
    /// Names of its parameters.
    pub parameters: Vec<String>,
    /// Documented answers when all is well.
    pub successes: Vec<u16>,
}

/// The document of the node at `url`, read without a login.
pub async fn operations(url: &str) -> Vec<Operation> {
    let answer =
        crate::http::shared().get(format!("{url}/api/v1/openapi.json")).send().await.expect("ask for the document");
    let document: Value = answer.json().await.expect("the document is JSON");
    let paths = document["paths"].as_object().expect("the document has paths");
    let mut operations = Vec::new();
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().expect("a path has methods") {
            let text = |at: &str| {
                operation[at].as_str().unwrap_or_else(|| panic!("{method} {path} says nothing of {at}")).to_owned()
            };
            let answers = operation["responses"].as_object().expect("an operation has answers").keys();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            operations.push(Operation {
                parameters: parameters.filter_map(|one| one["name"].as_str().map(str::to_owned)).collect(),
                id: text("operationId"),
                method: method.to_uppercase().parse().expect("a method"),
                path: path.clone(),
                permission: text("x-permission"),
                successes: answers.filter_map(|status| status.parse().ok()).filter(|status| *status < 300).collect(),
            });
        }
    }
    operations
}

/// Columns of the table in docs/permissions.md that are roles begin after these.
const COLUMNS_BEFORE_ROLES: usize = 3;

/// Which built-in roles hold which permission, as docs/permissions.md tells people: roles by name,
/// permissions by role.
#[must_use]
pub fn roles_of_the_docs() -> BTreeMap<String, Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/permissions.md");
    let text = std::fs::read_to_string(path).expect("docs/permissions.md is there");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("| permission |"));
    let roles = cells(lines.next().expect("docs/permissions.md has the table")).split_off(COLUMNS_BEFORE_ROLES);
    let mut table: BTreeMap<String, Vec<String>> = roles.iter().map(|role| (role.clone(), Vec::new())).collect();
    for line in lines.skip(1).take_while(|line| line.starts_with('|')) {
        let cells = cells(line);
        for (role, cell) in roles.iter().zip(&cells[COLUMNS_BEFORE_ROLES..]) {
            if cell == "yes" {
                table.entry(role.clone()).or_default().push(cells[0].trim_matches('`').to_owned());
            }
        }
    }
    table
}
