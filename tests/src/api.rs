//! The management API, as an admin with curl uses it.

use crate::node::TOKEN;
use carillon_protocol::sign::Key;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// An id as the API shows it (a string), or as the report does.
#[must_use]
pub fn id_of(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// A list of ids.
#[must_use]
pub fn ids_of(value: &Value) -> Vec<i64> {
    value.as_array().into_iter().flatten().filter_map(id_of).collect()
}

/// An app and the key that its executors sign with.
#[derive(Debug, Clone)]
pub struct App {
    /// Tenant name.
    pub tenant: String,
    /// App name.
    pub name: String,
    /// Its first key.
    pub key: Key,
}

/// A client of one node's `/api/v1`.
#[derive(Debug, Clone)]
pub struct Api {
    url: String,
    token: String,
    client: reqwest::Client,
}

impl Api {
    /// Speaks to the node at `url` with the right token.
    #[must_use]
    pub fn new(url: &str) -> Self {
        Self::with_token(url, TOKEN)
    }

    /// Speaks to the node at `url` with any token.
    #[must_use]
    pub fn with_token(url: &str, token: &str) -> Self {
        let client = crate::http::client().timeout(Duration::from_secs(30)).build();
        Self { url: format!("{url}/api/v1"), token: token.to_owned(), client: client.expect("build the HTTP client") }
    }

    /// The same node, with another token.
    #[must_use]
    pub fn carrying(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    /// The token that it carries.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where a path below `/api/v1` is.
    #[must_use]
    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Any request: status and body (null when it is not JSON, or a stream).
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let mut request = self.client.request(method.clone(), format!("{}{path}", self.url)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let reply = request.send().await.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"));
        let status = reply.status().as_u16();
        if reply.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream") {
            // It may have no end.
            return (status, Value::Null);
        }
        let text = reply.text().await.unwrap_or_default();
        (status, serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// `GET` of a stream; `last` is the id of the event after which it is to go on.
    pub async fn open(&self, path: &str, last: Option<&str>) -> reqwest::Response {
        // It may last longer than a request.
        let request = self.client.get(format!("{}{path}", self.url)).timeout(Duration::from_mins(5));
        let mut request = request.bearer_auth(&self.token);
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        request.send().await.unwrap_or_else(|error| panic!("GET {path}: {error:?}"))
    }

    /// A request that must be answered with `status`.
    pub async fn expect(&self, status: u16, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (got, answer) = self.send(method.clone(), path, body).await;
        assert_eq!(got, status, "{method} {path} with {body:?} answered {answer}");
        answer
    }

    /// A request that must be refused with `status`; its `errors` as (field, message).
    pub async fn refused(&self, status: u16, method: Method, path: &str, body: &Value) -> Vec<(String, String)> {
        let answer = self.expect(status, method, path, Some(body)).await;
        assert_eq!(answer["status"], status, "no problem document: {answer}");
        assert!(answer["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{answer}");
        let text = |error: &Value, at: &str| error[at].as_str().unwrap_or_default().to_owned();
        let errors = answer["errors"].as_array().cloned().unwrap_or_default();
        errors.iter().map(|error| (text(error, "field"), text(error, "message"))).collect()
    }

    /// `GET`, which must succeed.
    pub async fn get(&self, path: &str) -> Value {
        self.expect(200, Method::GET, path, None).await
    }

    /// Makes a tenant, if it is new, and an app in it.
    pub async fn make_app(&self, tenant: &str, name: &str) -> App {
        let (status, answer) = self.send(Method::POST, "/tenants", Some(&json!({ "name": tenant }))).await;
        assert!(status == 201 || status == 409, "make tenant {tenant}: {status} {answer}");
        let made = self.expect(201, Method::POST, "/apps", Some(&json!({ "tenant": tenant, "name": name }))).await;
        let text = |at: &str| made["key"][at].as_str().unwrap_or_else(|| panic!("no key.{at} in {made}")).to_owned();
        App { tenant: tenant.to_owned(), name: name.to_owned(), key: Key { id: text("id"), secret: text("secret") } }
    }

    /// Bounds the runs at once of an app.
    pub async fn bound_app(&self, tenant: &str, name: &str, max_concurrent: i32) {
        let found = self.get(&format!("/apps?tenant={tenant}&name={name}")).await;
        let id = id_of(&found["items"][0]["id"]).unwrap_or_else(|| panic!("no app {tenant}/{name} in {found}"));
        self.patch(&format!("/apps/{id}"), json!({ "max_concurrent": max_concurrent })).await;
    }

    /// Makes a task of `app`; `fields` are added to (and win over) tenant, app and a start.
    pub async fn make_task(&self, app: &App, name: &str, handler: &str, fields: Value) -> i64 {
        let mut body = json!({
            "tenant": app.tenant, "app": app.name, "name": name, "handler": handler, "started": true,
        });
        merge(&mut body, fields);
        let made = self.expect(201, Method::POST, "/tasks", Some(&body)).await;
        id_of(&made["id"]).unwrap_or_else(|| panic!("no id in {made}"))
    }

    /// A task.
    pub async fn task(&self, id: i64) -> Value {
        self.get(&format!("/tasks/{id}")).await
    }

    /// Edits a task; answers `{"task", "unreachable"}`.
    pub async fn edit(&self, id: i64, fields: Value) -> Value {
        self.expect(200, Method::PATCH, &format!("/tasks/{id}"), Some(&fields)).await
    }

    /// Starts a task.
    pub async fn start(&self, id: i64) -> Value {
        self.expect(200, Method::POST, &format!("/tasks/{id}/start"), None).await
    }

    /// Stops a task; answers `{"task", "unreachable"}`.
    pub async fn stop(&self, id: i64) -> Value {
        self.expect(200, Method::POST, &format!("/tasks/{id}/stop"), None).await
    }

    /// Deletes a task; answers `{"task", "unreachable"}`.
    pub async fn delete(&self, id: i64) -> Value {
        self.expect(200, Method::DELETE, &format!("/tasks/{id}"), None).await
    }

    /// Runs a task by hand; the id of the log.
    pub async fn run(&self, id: i64, params: Option<&str>) -> i64 {
        let body = params.map_or_else(|| json!({}), |params| json!({ "params": params }));
        let answer = self.expect(202, Method::POST, &format!("/tasks/{id}/run"), Some(&body)).await;
        id_of(&answer["log"]).unwrap_or_else(|| panic!("no log in {answer}"))
    }

    /// Runs a task by hand with `fields` (`params`, `delay_ms`, `priority` …); the id of the log.
    pub async fn run_log_with(&self, id: i64, fields: Value) -> i64 {
        let answer = self.expect(202, Method::POST, &format!("/tasks/{id}/run"), Some(&fields)).await;
        id_of(&answer["log"]).unwrap_or_else(|| panic!("no log in {answer}"))
    }

    /// Writes a calendar; fields that are not given are empty.
    pub async fn put_calendar(&self, path: &str, fields: Value) -> Value {
        self.put(path, whole_calendar(fields)).await
    }

    /// `PATCH`, which must succeed.
    pub async fn patch(&self, path: &str, fields: Value) -> Value {
        self.expect(200, Method::PATCH, path, Some(&fields)).await
    }

    /// `PUT`, which must succeed.
    pub async fn put(&self, path: &str, fields: Value) -> Value {
        self.expect(200, Method::PUT, path, Some(&fields)).await
    }

    /// Cancels a run; status and the log.
    pub async fn kill(&self, log: i64) -> (u16, Value) {
        self.send(Method::POST, &format!("/task-logs/{log}/cancel"), None).await
    }

    /// Runs a task as `body` says; the whole answer.
    pub async fn run_with(&self, id: i64, body: Value) -> Value {
        self.expect(202, Method::POST, &format!("/tasks/{id}/run"), Some(&body)).await
    }

    /// Pauses a task.
    pub async fn pause(&self, id: i64, note: &str) -> Value {
        let body = json!({ "note": note });
        self.expect(200, Method::POST, &format!("/tasks/{id}/pause"), Some(&body)).await
    }

    /// The coming fires of an unsaved schedule, and what is skipped in between.
    pub async fn preview(&self, body: Value) -> Vec<Value> {
        let answer = self.expect(200, Method::POST, "/schedules/preview", Some(&body)).await;
        answer["items"].as_array().cloned().unwrap_or_default()
    }

    /// Cancels a run.
    pub async fn cancel(&self, log: i64) -> Value {
        let (status, answer) = self.send(Method::POST, &format!("/task-logs/{log}/cancel"), None).await;
        assert!((200..300).contains(&status), "cancel {log}: {status} {answer}");
        answer
    }

    /// A task log.
    pub async fn log(&self, id: i64) -> Value {
        self.get(&format!("/task-logs/{id}")).await
    }

    /// Every task, page by page.
    pub async fn tasks(&self) -> Vec<Value> {
        let mut tasks = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.get(&format!("/tasks?limit=100{after}")).await;
            tasks.extend(page["items"].as_array().cloned().unwrap_or_default());
            match id_of(&page["next"]) {
                Some(next) => after = format!("&after={next}"),
                None => return tasks,
            }
        }
    }
}

fn merge(into: &mut Value, fields: Value) {
    let Value::Object(fields) = fields else {
        panic!("fields are an object, not {fields}");
    };
    into.as_object_mut().expect("an object").extend(fields);
}

/// A calendar's body, which has to name every field.
#[must_use]
pub fn whole_calendar(fields: Value) -> Value {
    let mut whole = json!({
        "excluded_weekdays": [], "excluded_days": [], "workdays": [], "excluded_hours": [], "description": "",
    });
    if let (Some(whole), Value::Object(fields)) = (whole.as_object_mut(), fields) {
        whole.extend(fields);
    }
    whole
}
