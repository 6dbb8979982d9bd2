//! The JSON of a problem of each kind, as callers get it.

use super::*;
use crate::domain::task::TaskSpec;
use serde_json::json;

/// Status, headers that go with it, and the document without what every one has.
async fn told(problem: Problem) -> (u16, Vec<(String, String)>, Value) {
    let answer = problem.error_response();
    assert_eq!(answer.headers().get(header::CONTENT_TYPE).unwrap(), "application/problem+json");
    let status = answer.status();
    let named = [header::RETRY_AFTER, header::ALLOW, header::WWW_AUTHENTICATE];
    let header =
        |name: &header::HeaderName| Some((name.to_string(), answer.headers().get(name)?.to_str().ok()?.to_owned()));
    let headers = named.iter().filter_map(header).collect();
    let body = actix_web::body::to_bytes(answer.into_body()).await.unwrap_or_default();
    let Value::Object(mut document) = serde_json::from_slice(&body).unwrap() else { panic!("an object") };
    assert_eq!(document.remove("status"), Some(status.as_u16().into()));
    assert_eq!(document.remove("title"), status.canonical_reason().map(Value::from));
    let page = document.remove("type").unwrap();
    let code = document["code"].as_str().unwrap();
    assert!(page.as_str().unwrap().ends_with(&format!("/docs/errors.md#{code}")), "{page}");
    (status.as_u16(), headers, Value::Object(document))
}

fn with(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

#[actix_web::test]
async fn fields() {
    let fields = json!({ "name": "", "handler": "h", "cron": "0 3 * * *", "time_zone": "europe/berlin" });
    let errors = TaskSpec::default().read(fields.as_object().unwrap()).unwrap_err();
    let expression = "a crontab line has five fields, a cron expression here starts with seconds; write `0 0 3 * * ?`";
    let zone = "`europe/berlin` is not an IANA time zone; did you mean `Europe/Berlin`?";
    let name = "1 to 128 printable characters are allowed";
    let detail = format!("name: {name}; cron: {expression}; time_zone: {zone}");
    let expected = json!({
        "code": "invalid_fields",
        "params": { "fields": detail },
        "detail": detail,
        "errors": [
            { "field": "name", "code": "wrong_name", "params": { "most": 128 }, "message": name },
            { "field": "cron", "code": "cron_five_fields", "params": { "expression": "0 0 3 * * ?" }, "message": expression },
            { "field": "time_zone", "code": "wrong_time_zone_near",
              "params": { "given": "europe/berlin", "nearest": "Europe/Berlin" }, "message": zone },
        ],
    });
    assert_eq!(told(Problem::fields(errors)).await, (400, vec![], expected));
}

#[actix_web::test]
async fn entries_of_a_file() {
    let error = FieldError::span("timeout_ms", 0, 9).within("task[3]", Some("retail/orders/a"));
    let expected = json!({
        "code": "file_refused", "params": { "count": 1 }, "detail": "fields in error: 1; nothing was changed",
        "errors": [{ "field": "task[3].timeout_ms", "entry": "retail/orders/a", "code": "span_out_of_range",
            "params": { "least_ms": 0, "most_ms": 9 }, "message": "retail/orders/a: 0 to 9 ms are allowed" }],
    });
    let problem = Problem::from(RequestRefusal::FileRefused { count: 1 }).naming(vec![error]);
    assert_eq!(told(problem).await, (400, vec![], expected));
}

#[actix_web::test]
async fn what_is_there() {
    let taken = StoreError::new(StoreErrorKind::Duplicate, "create a tenant", "UNIQUE").naming("tenant", "retail");
    let changed = StoreError::of("describe a tenant", Refusal::changed("tenant", "retail"));
    let missing = StoreError::of("find an app", crate::domain::refusal::no_app("retail", "ordres"));
    for (error, status, code, params, detail) in [
        (taken, 409, "name_taken", json!({ "kind": "tenant", "name": "retail" }), "there is already a tenant `retail`"),
        (
            changed,
            409,
            "changed_meanwhile",
            json!({ "kind": "tenant", "name": "retail" }),
            "tenant `retail` has changed in the meantime; read it again",
        ),
        (
            missing,
            404,
            "not_found_in",
            json!({ "kind": "app", "name": "ordres", "of_kind": "tenant", "of": "retail" }),
            "tenant `retail` has no app `ordres`",
        ),
        (
            StoreError::new(StoreErrorKind::Unavailable, "list tasks", "connection refused (10.0.0.7)"),
            503,
            "database_away",
            json!({}),
            "the database cannot be reached right now; try again",
        ),
        (
            StoreError::new(StoreErrorKind::TooLate, "change tasks", "not begun"),
            503,
            "change_too_late",
            json!({ "seconds": 10 }),
            "the change could not begin within 10 s, and was not made; try again",
        ),
        (
            StoreError::new(StoreErrorKind::Other, "list tasks", "no column `secret`"),
            500,
            "internal",
            json!({}),
            "internal error; see the node's log",
        ),
    ] {
        let expected = json!({ "code": code, "params": params, "detail": detail, "errors": [] });
        assert_eq!(told(error.into()).await, (status, vec![], expected));
    }
}

#[actix_web::test]
async fn who_asks_and_how_often() {
    let wait = Duration::from_millis(1_500);
    for (problem, status, headers, code, params) in [
        (Denied::Unknown.into(), 401, with("www-authenticate", "Bearer"), "unauthenticated", json!({})),
        (
            Denied::Expired(1_790_000_000_000).into(),
            401,
            with("www-authenticate", "Bearer"),
            "token_expired",
            json!({ "expired_at": "2026-09-21T14:13:20Z" }),
        ),
        (
            Problem::forbidden(Permission::TasksEdit),
            403,
            vec![],
            "permission_missing",
            json!({ "permission": "tasks.edit" }),
        ),
        (Problem::too_many(wait), 429, with("retry-after", "2"), "too_many_requests", json!({ "seconds": 2 })),
        (Denied::TooMany(wait).into(), 429, with("retry-after", "2"), "too_many_sign_ins", json!({ "seconds": 2 })),
        (Problem::wrong_method(&[Method::GET]), 405, with("allow", "GET"), "wrong_method", json!({ "allowed": "GET" })),
    ] {
        let (is, with, document) = told(problem).await;
        assert_eq!((is, with, &document["code"], &document["params"]), (status, headers, &code.into(), &params));
    }
}
