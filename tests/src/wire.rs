//! The executors' wire, spoken by hand: rightly signed, or wrong in one chosen way.

use crate::api::App;
use crate::clock::now_ms;
use carillon_protocol::sign::{self, RequestParts, SignMethod, header};
use carillon_protocol::{Code, Reply};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// A request with everything that a forger could turn.
#[derive(Debug, Clone)]
pub struct Request {
    /// `http://host:port`.
    pub url: String,
    /// Path, as signed and as sent.
    pub path: String,
    /// Raw query without `?`, as signed and as sent.
    pub query: String,
    /// Claimed tenant.
    pub tenant: String,
    /// Claimed app.
    pub app: String,
    /// Claimed key id.
    pub key: String,
    /// What it is signed with.
    pub secret: String,
    /// Epoch ms.
    pub timestamp: i64,
    /// Random, once per request.
    pub nonce: String,
    /// How it is signed.
    pub method: SignMethod,
    /// What is signed …
    pub body: Vec<u8>,
    /// … and what is sent instead, if anything.
    pub sent_body: Option<Vec<u8>>,
    /// Headers left out.
    pub without: Vec<&'static str>,
    /// Headers set to something else after signing.
    pub instead: Vec<(&'static str, String)>,
    /// Headers that come a second time.
    pub beside: Vec<(&'static str, String)>,
    /// How long an answer may take.
    pub timeout: Duration,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Body.
    pub body: Vec<u8>,
    /// Whether it carries a right signature for the request's nonce.
    pub is_signed: bool,
    /// `Retry-After`, seconds.
    pub retry_after: Option<u64>,
}

impl Answer {
    /// The envelope.
    #[must_use]
    pub fn reply<T: DeserializeOwned>(&self) -> Reply<T> {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            let text = String::from_utf8_lossy(&self.body);
            panic!("{} with {text}: {error}", self.status)
        })
    }

    /// The envelope's code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.reply::<serde_json::Value>().code
    }

    /// The data of a success, whose signature must be right.
    #[must_use]
    pub fn data<T: DeserializeOwned>(&self) -> T {
        assert!(self.is_signed, "the reply carries no right signature: {self:?}");
        let reply = self.reply::<T>();
        reply.data.unwrap_or_else(|| panic!("{:?}: {}", reply.code, reply.msg))
    }
}

impl Request {
    /// A right request of `app`.
    #[must_use]
    pub fn new(app: &App, url: &str, path: &str, message: &impl Serialize) -> Self {
        Self {
            url: url.to_owned(),
            path: path.to_owned(),
            query: String::new(),
            tenant: app.tenant.clone(),
            app: app.name.clone(),
            key: app.key.id.clone(),
            secret: app.key.secret.clone(),
            timestamp: now_ms(),
            nonce: sign::nonce().expect("random bytes"),
            method: SignMethod::HmacSha256,
            body: serde_json::to_vec(message).expect("a message is JSON"),
            sent_body: None,
            without: Vec::new(),
            instead: Vec::new(),
            beside: Vec::new(),
            timeout: Duration::from_secs(15),
        }
    }

    /// This request, changed.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Sends it; `None` when the connection fails or nothing answers in time.
    pub async fn try_send(&self) -> Option<Answer> {
        let parts = RequestParts {
            method: "POST",
            path: &self.path,
            query: &self.query,
            tenant: &self.tenant,
            app: &self.app,
            key: &self.key,
            timestamp: self.timestamp,
            nonce: &self.nonce,
        };
        let mut headers = vec![
            (header::TENANT, self.tenant.clone()),
            (header::APP, self.app.clone()),
            (header::KEY, self.key.clone()),
            (header::TIMESTAMP, self.timestamp.to_string()),
            (header::NONCE, self.nonce.clone()),
            (header::SIGN_METHOD, self.method.as_str().to_owned()),
            (header::SIGN, parts.sign(self.method, &self.secret, &self.body)),
        ];
        headers.retain(|(name, _)| !self.without.contains(name));
        for (name, value) in &self.instead {
            headers.retain(|(known, _)| known != name);
            headers.push((name, value.clone()));
        }
        headers.extend(self.beside.iter().cloned());
        let query = if self.query.is_empty() { String::new() } else { format!("?{}", self.query) };
        let client = crate::http::client().build().expect("build the HTTP client");
        let mut request = client
            .post(format!("{}{}{query}", self.url, self.path))
            .timeout(self.timeout)
            .header("content-type", "application/json")
            .body(self.sent_body.clone().unwrap_or_else(|| self.body.clone()));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let reply = request.send().await.ok()?;
        let status = reply.status().as_u16();
        let text = |name| reply.headers().get(name).and_then(|value| value.to_str().ok());
        let given = text(header::SIGN).unwrap_or("").to_owned();
        let retry_after = text("retry-after").and_then(|seconds| seconds.parse().ok());
        let body = reply.bytes().await.ok()?.to_vec();
        let expected = sign::sign_reply(self.method, &self.secret, &self.nonce, status, &body);
        Some(Answer { status, is_signed: sign::matches(&expected, &given), body, retry_after })
    }

    /// Sends it; it must be answered.
    pub async fn send(&self) -> Answer {
        self.try_send().await.unwrap_or_else(|| panic!("{}{} did not answer", self.url, self.path))
    }
}
