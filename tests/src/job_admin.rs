//! A portal, or a script, that knows xxl-job's admin.

use crate::http;
use crate::now_ms;
use crate::people::Person;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// Everything that one who manages jobs needs.
pub const EVERYTHING: [&str; 12] = [
    "apps.read",
    "audit.read",
    "executors.read",
    "task_logs.read",
    "tasks.create",
    "tasks.delete",
    "tasks.edit",
    "tasks.pause",
    "tasks.read",
    "tasks.run",
    "tasks.start",
    "tasks.stop",
];

/// A client of one node.
#[derive(Debug, Clone)]
pub struct JobAdmin {
    url: String,
    token: String,
}

impl JobAdmin {
    /// Speaks to the node at `url`, below the path that old executors know, with this token.
    #[must_use]
    pub fn new(url: &str, token: &str) -> Self {
        Self { url: format!("{url}/xxl-job-admin"), token: token.to_owned() }
    }

    /// The same, below the root.
    #[must_use]
    pub fn at_root(&self) -> Self {
        Self { url: self.url.trim_end_matches("/xxl-job-admin").to_owned(), token: self.token.clone() }
    }

    /// `GET`, which must be answered with 200.
    pub async fn get(&self, path: &str) -> Value {
        self.ok(self.request(Method::GET, path)).await
    }

    /// `POST` without a body.
    pub async fn post(&self, path: &str) -> Value {
        self.ok(self.request(Method::POST, path)).await
    }

    /// `POST` of JSON.
    pub async fn post_json(&self, path: &str, body: &Value) -> Value {
        self.ok(self.request(Method::POST, path).json(body)).await
    }

    /// `POST` of a form.
    pub async fn post_form(&self, path: &str, fields: &[(&str, &str)]) -> Value {
        self.ok(form(self.request(Method::POST, path), fields)).await
    }

    /// A request with its token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        http::shared().request(method, format!("{}{path}", self.url)).header("XXL-JOB-ACCESS-TOKEN", &self.token)
    }

    async fn ok(&self, request: RequestBuilder) -> Value {
        let (status, answer) = answer(request).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}

/// The request with a form.
pub fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let encoded = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.*".contains(&byte);
        let of = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(of).collect::<String>()
    };
    let pairs: Vec<String> =
        fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    request.header("content-type", "application/x-www-form-urlencoded").body(pairs.join("&"))
}

/// Status and body of an answer.
pub async fn answer(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.expect("a node answers");
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap_or_default();
    (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}")))
}

/// A token of that person, for a tenant if one is named.
pub async fn token_of(person: &Person, permissions: &[&str], tenant: Option<&str>) -> String {
    let body = json!({
        "name": "portal", "permissions": permissions, "tenant": tenant, "expires_at": now_ms() + 3_600_000,
    });
    let made = person.api.expect(201, Method::POST, "/account/tokens", Some(&body)).await;
    made["secret"].as_str().unwrap_or_else(|| panic!("no secret in {made}")).to_owned()
}
