//! A node's calls to an executor, honest or not.

use crate::harness::{APP, KEY, SECRET, TENANT};
use crate::node::EXECUTOR_ID;
use carillon_protocol::sign::{self, RequestParts, SignMethod, header};
use carillon_protocol::*;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// A request with every part open to tampering.
#[derive(Clone)]
pub struct Call {
    pub port: u16,
    pub path: String,
    pub query: String,
    pub body: Vec<u8>,
    pub headers: Vec<(&'static str, String)>,
    nonce: String,
}

pub struct Got {
    pub status: u16,
    pub code: Code,
    pub data: Value,
    /// Whether the reply carries a right signature for this request.
    pub signed: bool,
}

/// An honest request at cluster time `now_ms`.
pub fn call<T: Serialize>(port: u16, path: &str, message: &T, now_ms: i64) -> Call {
    signed_with(port, path, message, now_ms, SECRET, SignMethod::HmacSha256)
}

pub fn signed_with<T: Serialize>(
    port: u16,
    path: &str,
    message: &T,
    now_ms: i64,
    secret: &str,
    method: SignMethod,
) -> Call {
    let body = serde_json::to_vec(message).unwrap();
    let nonce = sign::nonce().unwrap();
    let sign = RequestParts {
        method: "POST",
        path,
        query: "",
        tenant: TENANT,
        app: APP,
        key: KEY,
        timestamp: now_ms,
        nonce: &nonce,
    }
    .sign(method, secret, &body);
    Call {
        port,
        path: path.to_owned(),
        query: String::new(),
        body,
        headers: vec![
            (header::TENANT, TENANT.to_owned()),
            (header::APP, APP.to_owned()),
            (header::KEY, KEY.to_owned()),
            (header::TIMESTAMP, now_ms.to_string()),
            (header::NONCE, nonce.clone()),
            (header::SIGN_METHOD, method.as_str().to_owned()),
            (header::SIGN, sign),
        ],
        nonce,
    }
}

impl Call {
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        for header in &mut self.headers {
            if header.0 == name {
                value.clone_into(&mut header.1);
            }
        }
        self
    }

    /// The same bytes to another port.
    pub fn to(self, port: u16) -> Self {
        Self { port, ..self }
    }

    pub fn without(mut self, name: &'static str) -> Self {
        self.headers.retain(|header| header.0 != name);
        self
    }

    pub async fn send(&self) -> Got {
        let url = format!("http://127.0.0.1:{}{}{}", self.port, self.path, self.query);
        let mut request = http().post(url).body(self.body.clone());
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let given = response.headers().get(header::SIGN).cloned();
        let body = response.bytes().await.unwrap();
        let right = sign::sign_reply(SignMethod::HmacSha256, SECRET, &self.nonce, status, &body);
        let reply: Reply<Value> = serde_json::from_slice(&body).unwrap();
        assert_eq!(reply.code.http_status(), status);
        Got {
            status,
            code: reply.code,
            data: reply.data.unwrap_or(Value::Null),
            signed: given.is_some_and(|given| given.to_str().unwrap() == right),
        }
    }
}

/// A run of `handler`, due at `due_ms`.
pub fn item(log: i64, handler: &str, due_ms: i64) -> DispatchItem {
    DispatchItem {
        log,
        attempt: 1,
        task: 1,
        task_name: "task".into(),
        handler: handler.into(),
        params: String::new(),
        fire_time: due_ms,
        due_time: due_ms,
        accept_until: i64::MAX,
        shard_index: 0,
        shard_total: 1,
        timeout_ms: 0,
        block_strategy: BlockStrategy::Concurrent,
        wait_timeout_ms: 0,
        priority: PRIORITY_DEFAULT,
        trace: String::new(),
    }
}

pub fn dispatch(items: Vec<DispatchItem>) -> Dispatch {
    Dispatch { executor_id: EXECUTOR_ID, cluster_time_us: 0, items }
}

pub fn cancel(runs: &[RunKey], unstarted_only: bool) -> Cancel {
    Cancel { executor_id: EXECUTOR_ID, runs: runs.to_vec(), unstarted_only }
}

/// A client of plain HTTP.
pub fn http() -> reqwest::Client {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build().unwrap()
}
