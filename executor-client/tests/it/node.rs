//! A node that registers every caller that signs correctly, and records what it was told.

use crate::harness::{APP, KEY, SECRET, TENANT, now_us};
use bytes::Bytes;
use carillon_protocol::sign::{self, RequestParts, SignMethod, header};
use carillon_protocol::*;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::TcpListener;

/// How the node behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Normal,
    /// Closes connections without an answer.
    Down,
    /// Signed refusals: the database is away.
    StoreUnavailable,
    /// The same, but each heartbeat is written down by the time that the next one comes.
    Late,
    /// Successes signed with another secret.
    Forged,
    /// Takes everything but results.
    NoResults,
    /// Refuses every batch of results with this log in it.
    Picky(i64),
}

pub struct Inner {
    pub mode: Mode,
    pub settings: ExecutorSettings,
    /// Cluster clock minus this machine's, µs.
    pub clock_ahead_us: i64,
    /// Demand timestamps near the cluster clock.
    pub check_clock: bool,
    pub known: bool,
    /// How long it takes to answer.
    pub answers_after: Duration,
    pub cancel: Vec<RunKey>,
    pub registers: Vec<Register>,
    pub heartbeats: Vec<Heartbeat>,
    pub unregisters: Vec<Unregister>,
    /// Refuse so many more.
    pub refuse_unregisters: usize,
    pub results: Vec<RunResult>,
    /// Answers every result, which it records, with the wish to have it again.
    pub again: bool,
    pub result_requests: usize,
    pub skew_refusals: usize,
    pub bad_signatures: usize,
    pub refused_connections: usize,
}

#[derive(Clone)]
pub struct TestNode {
    pub url: String,
    inner: Arc<Mutex<Inner>>,
}

pub const EXECUTOR_ID: i64 = 4711;

impl TestNode {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::new(Mutex::new(Inner {
            mode: Mode::Normal,
            settings: ExecutorSettings {
                heartbeat_interval_ms: 100,
                metadata_interval_ms: 60_000,
                offline_after_ms: 10_000,
                abandon_after_ms: 20_000,
            },
            clock_ahead_us: 0,
            check_clock: false,
            known: true,
            answers_after: Duration::ZERO,
            cancel: vec![],
            registers: vec![],
            heartbeats: vec![],
            unregisters: vec![],
            refuse_unregisters: 0,
            results: vec![],
            again: false,
            result_requests: 0,
            skew_refusals: 0,
            bad_signatures: 0,
            refused_connections: 0,
        }));
        let node = Self { url, inner };
        let server = node.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let node = server.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| node.clone().answer(request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        node
    }

    /// A node on a thread of its own, for tests that block the runtime's.
    pub fn start_apart() -> Self {
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                sender.send(Self::start().await).unwrap();
                // Ends with the process.
                std::future::pending::<()>().await;
            });
        });
        receiver.recv().unwrap()
    }

    pub fn state(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub fn set(&self, mode: Mode) {
        self.state().mode = mode;
    }

    /// Cluster clock of this node, µs.
    pub fn now_us(&self) -> i64 {
        now_us() + self.state().clock_ahead_us
    }

    pub fn now_ms(&self) -> i64 {
        self.now_us() / 1_000
    }

    pub fn result(&self, log: i64) -> Option<RunResult> {
        self.state().results.iter().find(|r| r.log == log).cloned()
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, String> {
        let mode = self.state().mode;
        if mode == Mode::Down {
            self.state().refused_connections += 1;
            return Err("down".into());
        }
        let pause = self.state().answers_after;
        tokio::time::sleep(pause).await;
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|e| e.to_string())?.to_bytes();
        let get = |name: &str| parts.headers[name].to_str().unwrap().to_owned();
        let nonce = get(header::NONCE);
        let timestamp: i64 = get(header::TIMESTAMP).parse().unwrap();
        let method = SignMethod::parse(&get(header::SIGN_METHOD)).unwrap();
        let expected = RequestParts {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or(""),
            tenant: TENANT,
            app: APP,
            key: KEY,
            timestamp,
            nonce: &nonce,
        }
        .sign(method, SECRET, &body);
        let authentic = sign::matches(&expected, &get(header::SIGN));
        let skewed = (timestamp - self.now_ms()).abs() > sign::TIMESTAMP_WINDOW_MS;
        let (code, data) = if !authentic {
            self.state().bad_signatures += 1;
            (Code::WrongSignature, Value::Null)
        } else if skewed && self.state().check_clock {
            self.state().skew_refusals += 1;
            (Code::ClockSkew, self.time())
        } else if mode == Mode::StoreUnavailable {
            (Code::StoreUnavailable, self.time())
        } else if mode == Mode::Late {
            (Code::StoreUnavailable, self.written_late(parts.uri.path(), &body))
        } else {
            self.route(parts.uri.path(), &body, mode)
        };
        let reply = serde_json::to_vec(&json!({"code": code, "msg": "m", "data": data})).unwrap();
        let secret = if mode == Mode::Forged || !authentic { "not the secret" } else { SECRET };
        let status = code.http_status();
        let sign = sign::sign_reply(method, secret, &nonce, status, &reply);
        Ok(Response::builder()
            .status(status)
            .header(header::SIGN_METHOD, method.as_str())
            .header(header::SIGN, sign)
            .body(Full::new(Bytes::from(reply)))
            .unwrap())
    }

    fn written_late(&self, path: &str, body: &[u8]) -> Value {
        let mut answer = self.time();
        if path == "/openapi/executors/heartbeat" {
            let heartbeats = &mut self.state().heartbeats;
            answer["written_us"] = json!(heartbeats.last().map(|before| before.made_us));
            heartbeats.push(serde_json::from_slice(body).unwrap());
        }
        answer
    }

    fn time(&self) -> Value {
        json!({"cluster_time_us": self.now_us()})
    }

    fn route(&self, path: &str, body: &[u8], mode: Mode) -> (Code, Value) {
        let now = self.now_us();
        let mut state = self.state();
        match path {
            "/openapi/executors/register" => {
                state.registers.push(serde_json::from_slice(body).unwrap());
                state.known = true;
                ok(&Registered {
                    executor_id: EXECUTOR_ID,
                    cluster_time_us: now,
                    settings: state.settings,
                    left_out: Vec::new(),
                })
            }
            "/openapi/executors/heartbeat" if !state.known => (Code::RegisterAgain, Value::Null),
            "/openapi/executors/heartbeat" => {
                state.heartbeats.push(serde_json::from_slice(body).unwrap());
                let cancel = std::mem::take(&mut state.cancel);
                ok(&HeartbeatAck { cluster_time_us: now, cancel, written_us: None })
            }
            "/openapi/executors/unregister" if state.refuse_unregisters > 0 => {
                state.refuse_unregisters -= 1;
                (Code::Internal, Value::Null)
            }
            "/openapi/executors/unregister" => {
                let message: Unregister = serde_json::from_slice(body).unwrap();
                let returned = message.held.len() as u64;
                state.unregisters.push(message);
                ok(&Unregistered { returned })
            }
            "/openapi/results" if mode == Mode::NoResults => (Code::Internal, Value::Null),
            "/openapi/results" => {
                let message: Results = serde_json::from_slice(body).unwrap();
                let verdict = if state.again { Verdict::Again } else { Verdict::Applied };
                let verdicts = vec![verdict; message.results.len()];
                state.result_requests += 1;
                if let Mode::Picky(log) = mode
                    && message.results.iter().any(|result| result.log == log)
                {
                    return (Code::BadRequest, Value::Null);
                }
                if mode != Mode::Forged {
                    state.results.extend(message.results);
                }
                ok(&ResultsAck { verdicts })
            }
            _ => (Code::NotFound, Value::Null),
        }
    }
}

fn ok<T: Serialize>(data: &T) -> (Code, Value) {
    (Code::Ok, serde_json::to_value(data).unwrap())
}
