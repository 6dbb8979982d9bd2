//! An executor of xxl-job, as far as it keeps to the protocol: it registers, takes runs, and calls back, unless a scenario tells it
//! otherwise.

use crate::api::{Api, App, id_of};
use crate::clock::now_ms;
use crate::http;
use crate::port;
use crate::wait::await_until;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What happens to a `/run`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OnRun {
    /// It is taken.
    #[default]
    Accept,
    /// It is refused with this text.
    Refuse(String),
    /// It is taken, and the reply never comes.
    Hang,
    /// It is taken, and the connection is dropped before the reply.
    Drop,
}

/// How it behaves; changed by scenarios at any time.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // switches of a scenario
pub struct PlainScript {
    /// Answer to `/run`.
    pub on_run: OnRun,
    /// Code and text of the callback that follows each run by itself.
    pub calls_back: Option<(i32, String)>,
    /// It answers `/beat`.
    pub beats: bool,
    /// Numbers of tasks of which it says that it is busy.
    pub busy: Vec<i64>,
    /// It answers `/idleBeat`.
    pub says_idle: bool,
    /// `/kill` is answered; else its reply never comes.
    pub answers_kill: bool,
    /// What each run has logged; none has a log.
    pub lines: Option<Vec<String>>,
    /// Its number of a log's first line.
    pub first_line: i64,
    /// It says of a log that nothing follows.
    pub is_end: bool,
    /// What it calls with.
    pub agent: String,
}

/// A message that it got.
#[derive(Debug, Clone)]
pub struct Got {
    /// `/run` and the like.
    pub path: String,
    /// The token.
    pub token: String,
    /// JSON; null for what is none.
    pub body: Value,
    /// When, by the wall clock, epoch ms.
    pub at: i64,
}

struct State {
    script: PlainScript,
    got: Vec<Got>,
    nodes: Vec<String>,
    token: String,
}

/// A running executor.
pub struct PlainExecutor {
    /// As it registers.
    pub address: String,
    /// Its app's name.
    pub app: String,
    state: Arc<Mutex<State>>,
    server: JoinHandle<()>,
}

impl PlainExecutor {
    /// Listens; it is not registered yet. `nodes` are called back, the first that answers.
    ///
    /// # Panics
    /// When it cannot listen.
    pub async fn start(app: &str, token: &str, nodes: &[String]) -> Self {
        Self::start_below("/", app, token, nodes).await
    }

    /// The same, where it answers only below `path`, which ends with a slash.
    ///
    /// # Panics
    /// As [`PlainExecutor::start`].
    pub async fn start_below(path: &str, app: &str, token: &str, nodes: &[String]) -> Self {
        let port = port::free();
        let listener = TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
        let script = PlainScript {
            on_run: OnRun::Accept,
            calls_back: Some((200, String::new())),
            beats: true,
            busy: Vec::new(),
            says_idle: true,
            answers_kill: true,
            lines: None,
            first_line: 1,
            is_end: false,
            agent: "Java/17".to_owned(),
        };
        let state =
            Arc::new(Mutex::new(State { script, got: Vec::new(), nodes: nodes.to_vec(), token: token.to_owned() }));
        let server = tokio::spawn(serve(listener, path.to_owned(), Arc::clone(&state)));
        Self { address: format!("http://127.0.0.1:{port}{path}"), app: app.to_owned(), state, server }
    }

    /// Changes how it behaves.
    ///
    /// # Panics
    /// When another change panicked.
    pub fn script(&self, change: impl FnOnce(&mut PlainScript)) {
        change(&mut self.state.lock().unwrap().script);
    }

    /// What it got on this path.
    ///
    /// # Panics
    /// As [`PlainExecutor::script`].
    #[must_use]
    pub fn got(&self, path: &str) -> Vec<Got> {
        self.state.lock().unwrap().got.iter().filter(|got| got.path == path).cloned().collect()
    }

    /// Registers with all nodes, as clients do every 30 s; answers what the last one said.
    ///
    /// # Panics
    /// As [`PlainExecutor::script`], and when a node cannot be reached.
    pub async fn register(&self) -> Value {
        self.tell_all("registry").await
    }

    /// Says that it leaves.
    ///
    /// # Panics
    /// As [`PlainExecutor::register`].
    pub async fn remove(&self) -> Value {
        self.tell_all("registryRemove").await
    }

    async fn tell_all(&self, path: &str) -> Value {
        let (nodes, token, agent) = self.caller();
        let body = json!({ "registryGroup": "EXECUTOR", "registryKey": self.app, "registryValue": self.address });
        let mut said = Value::Null;
        for node in nodes {
            said = tell_with(&node, path, (&token, &agent), &body).await.expect("a node answers");
        }
        said
    }

    /// Tells how runs ended; answers what the node said.
    ///
    /// # Panics
    /// As [`PlainExecutor::register`].
    pub async fn call_back(&self, items: &[(i64, i32, &str)]) -> Value {
        let (nodes, token, agent) = self.caller();
        let items: Vec<Value> = items.iter().map(|(log, code, text)| ended(*log, *code, text)).collect();
        tell_with(&nodes[0], "callback", (&token, &agent), &Value::Array(items)).await.expect("a node answers")
    }

    fn caller(&self) -> (Vec<String>, String, String) {
        caller(&self.state)
    }

    /// The number of the task whose handler is called so, as it got it.
    ///
    /// # Panics
    /// When no run of it has come.
    #[must_use]
    pub fn job(&self, handler: &str) -> i64 {
        let runs = self.got("/run");
        let run = runs.iter().find(|run| run.body["executorHandler"] == handler);
        run.and_then(|run| run.body["jobId"].as_i64()).expect("a run of that handler has come")
    }

    /// The numbers of the runs of that handler, in the order in which they came.
    ///
    /// # Panics
    /// As [`PlainExecutor::script`].
    #[must_use]
    pub fn runs_of(&self, handler: &str) -> Vec<i64> {
        let runs = self.got("/run").into_iter().filter(|run| run.body["executorHandler"] == handler);
        runs.filter_map(|run| run.body["logId"].as_i64()).collect()
    }
}

impl Drop for PlainExecutor {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn ended(log: i64, code: i32, text: &str) -> Value {
    json!({ "logId": log, "logDateTim": now_ms(), "handleCode": code, "handleMsg": text })
}

/// Gives an app a token, which opens its door.
///
/// # Panics
/// When it is refused.
pub async fn open_door(api: &Api, app: &App, token: &str) {
    let found = api.get(&format!("/apps?tenant={}&name={}", app.tenant, app.name)).await;
    let id = id_of(&found["items"][0]["id"]).expect("the app is there");
    let key = json!({ "kind": "token", "secret": token });
    api.expect(201, reqwest::Method::POST, &format!("/apps/{id}/keys"), Some(&key)).await;
}

/// Waits until these nodes know a token that was made at another one: after an unknown one they read again after a second.
///
/// # Panics
/// When a node cannot be reached, or does not learn of it.
pub async fn await_door(nodes: &[String], token: &str) {
    for node in nodes {
        await_until("the token is known", 30, || async {
            let said = tell(node, "callback", token, &json!([])).await.expect("a node answers");
            (said["msg"] != "The access token is wrong.").then_some(())
        })
        .await;
    }
}

/// A message to the door of a node, and its answer.
///
/// # Errors
/// When the node cannot be reached, or answers something other than JSON with 200.
pub async fn tell(node: &str, path: &str, token: &str, body: &Value) -> Result<Value, String> {
    tell_with(node, path, (token, "Java/17"), body).await
}

async fn tell_with(node: &str, path: &str, (token, agent): (&str, &str), body: &Value) -> Result<Value, String> {
    let url = format!("{node}/xxl-job-admin/api/{path}");
    let request = http::shared().post(url).header("XXL-JOB-ACCESS-TOKEN", token).header("User-Agent", agent);
    let sent = request.json(body).send().await;
    let answer = sent.map_err(|error| error.to_string())?;
    if answer.status() != 200 {
        return Err(format!("status {}", answer.status()));
    }
    answer.json().await.map_err(|error| error.to_string())
}

fn caller(state: &Mutex<State>) -> (Vec<String>, String, String) {
    let state = state.lock().unwrap();
    (state.nodes.clone(), state.token.clone(), state.script.agent.clone())
}

/// Serves until it is dropped, like a process.
async fn serve(listener: TcpListener, below: String, state: Arc<Mutex<State>>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (below, state) = (below.clone(), Arc::clone(&state));
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, &below, Arc::clone(&state)));
            let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // An error here is a dropped connection, which is what the script asked for.
            let _ = served.await;
        });
    }
}

/// An error drops the connection without a reply.
async fn answer(
    request: Request<Incoming>,
    below: &str,
    state: Arc<Mutex<State>>,
) -> io::Result<Response<Full<Bytes>>> {
    let at = now_ms();
    let path = request.uri().path().strip_prefix(below).map_or_else(String::new, |path| format!("/{path}"));
    let token = request.headers().get("XXL-JOB-ACCESS-TOKEN").and_then(|value| value.to_str().ok());
    let token = token.unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let script = {
        let mut state = state.lock().unwrap();
        state.got.push(Got { path: path.clone(), token, body: body.clone(), at });
        state.script.clone()
    };
    let ok = json!({ "code": 200, "msg": null, "content": null });
    match path.as_str() {
        "/run" => {
            if let OnRun::Refuse(text) = &script.on_run {
                return reply(&json!({ "code": 500, "msg": text }));
            }
            if let Some((code, text)) = &script.calls_back {
                let item = ended(body["logId"].as_i64().unwrap_or_default(), *code, text);
                tokio::spawn(keep_calling_back(Arc::clone(&state), item));
            }
            match script.on_run {
                OnRun::Hang => std::future::pending().await,
                OnRun::Drop => Err(io::Error::other("scripted")),
                OnRun::Accept | OnRun::Refuse(_) => reply(&ok),
            }
        }
        "/beat" if script.beats => reply(&ok),
        "/idleBeat" if script.busy.contains(&body["jobId"].as_i64().unwrap_or_default()) => {
            reply(&json!({ "code": 500, "msg": "job thread is running or has trigger queue." }))
        }
        "/idleBeat" if script.says_idle => reply(&ok),
        "/kill" if !script.answers_kill => std::future::pending().await,
        "/kill" => reply(&ok),
        "/log" => reply(&page(&script, body["fromLineNum"].as_i64().unwrap_or_default())),
        _ => Err(io::Error::other("scripted")),
    }
}

/// As Java answers: all lines from the one that is asked for.
fn page(script: &PlainScript, from: i64) -> Value {
    let Some(lines) = &script.lines else {
        let content = json!({ "fromLineNum": from, "toLineNum": 0, "logContent": "readLog fail, logFile not exists", "isEnd": true });
        return json!({ "code": 200, "msg": null, "content": content });
    };
    let skipped = usize::try_from(from - script.first_line).unwrap_or_default();
    let text: String = lines.iter().skip(skipped).flat_map(|line| [line.as_str(), "\n"]).collect();
    let content = json!({ "fromLineNum": from, "toLineNum": lines.len(), "logContent": text, "isEnd": script.is_end });
    json!({ "code": 200, "msg": null, "content": content })
}

fn reply(body: &Value) -> io::Result<Response<Full<Bytes>>> {
    // As Java's does.
    let reply = Response::builder().header("content-type", "text/html;charset=UTF-8");
    reply.body(Full::new(Bytes::from(body.to_string()))).map_err(io::Error::other)
}

/// As clients do: again until a node has taken it.
async fn keep_calling_back(state: Arc<Mutex<State>>, item: Value) {
    let body = Value::Array(vec![item]);
    loop {
        let (nodes, token, agent) = caller(&state);
        for node in &nodes {
            if tell_with(node, "callback", (&token, &agent), &body).await.is_ok_and(|said| said["code"] == 200) {
                return;
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}
