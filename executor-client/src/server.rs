//! The embedded HTTP/1.1 server: what the nodes call.

use crate::member::Member;
use crate::output::NoPage;
use crate::verify::{Claims, Refusal, Verifier};
use bytes::Bytes;
use carillon_protocol::exchange::Answer;
use carillon_protocol::sign::header;
use carillon_protocol::{
    AskHealth, BODY_BYTES_MAX, Cancel, CancelAck, CancelOutcome, Code, DISPATCH_ITEMS_MAX, Dispatch, DispatchAck,
    EXECUTOR_KEEP_ALIVE, Health, PROBE_TASKS_MAX, Probe, ProbeAck, ReadOutput, Reply, RunKey,
};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 512;

/// How long a request's body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);

/// Pause after a failed accept (usually: out of file descriptors).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a cancel waits for handlers that stop at once.
const STOP_WAIT: Duration = Duration::from_millis(40);

/// Answers the nodes.
pub(crate) struct Server {
    pub(crate) member: Arc<Member>,
    pub(crate) verifier: Verifier,
}

/// What a route answers: a code, and the reply's JSON.
type EncodedReply = (Code, Vec<u8>);

/// The head of a request.
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
}

/// Accepts connections forever.
pub(crate) async fn serve(server: Arc<Server>, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // Never closed, so never an error.
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, peer)) => {
                let server = Arc::clone(&server);
                tokio::spawn(async move {
                    server.connection(stream, peer).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "server.accept_failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl Server {
    async fn connection(self: Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "server.nodelay_failed");
        }
        let service = service_fn(|request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.respond(request, peer).await) }
        });
        let served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            // From the connection, or the reply before: so long it may be idle, too.
            .header_read_timeout(EXECUTOR_KEEP_ALIVE)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            tracing::debug!(%peer, %error, "server.connection_ended");
        }
    }

    async fn respond(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let head = Head {
            method: head.method.as_str(),
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            headers: &head.headers,
        };
        response(self.answer(&head, read(body), &peer).await)
    }

    /// Answers a request of `peer`. `body` is awaited only for a request whose headers are right.
    pub(crate) async fn answer(
        &self,
        head: &Head<'_>,
        body: impl Future<Output = Result<Bytes, Refusal>>,
        peer: &(dyn Display + Sync),
    ) -> Answer {
        // Nodes of the release before this one ask without a signature.
        if head.method == "GET" && head.path == "/health" {
            return unsigned(ok(&self.health()));
        }
        match self.admit(head, body).await {
            Ok((claims, body)) => {
                let (code, reply) = self.route(head.path, &body).await;
                self.verifier.sign(&claims, code.http_status(), reply)
            }
            Err((code, reason)) => {
                let path: String = head.path.chars().take(64).collect();
                tracing::warn!(%peer, path, code = u32::from(code), reason, "request.refused");
                unsigned(refuse(code, reason))
            }
        }
    }

    /// Checks a request in the order of what each check costs.
    async fn admit(
        &self,
        head: &Head<'_>,
        body: impl Future<Output = Result<Bytes, Refusal>>,
    ) -> Result<(Claims, Bytes), Refusal> {
        let Head { method, path, query, headers } = *head;
        if method != "POST" || !matches!(path, "/dispatch" | "/cancel" | "/probe" | "/logs" | "/health") {
            return Err((Code::NotFound, "there is no such path"));
        }
        let claims = self.verifier.check_headers(headers)?;
        let body = body.await?;
        self.verifier.check_body(&claims, (method, path, query), &body)?;
        Ok((claims, body))
    }

    async fn route(&self, path: &str, body: &[u8]) -> EncodedReply {
        match path {
            "/dispatch" => self.dispatch(body),
            "/cancel" => self.cancel(body).await,
            "/probe" => self.probe(body),
            "/logs" => self.logs(body).await,
            "/health" => self.asked_health(body),
            _ => refuse(Code::NotFound, "there is no such path"),
        }
    }

    fn dispatch(&self, body: &[u8]) -> EncodedReply {
        let message: Dispatch = match parse(body) {
            Ok(message) => message,
            Err(answer) => return answer,
        };
        if let Err(answer) = self.check_meant(message.executor_id, message.items.len(), DISPATCH_ITEMS_MAX) {
            return answer;
        }
        let outcomes = self.member.runs.dispatch(message.items);
        ok(&DispatchAck { outcomes })
    }

    async fn cancel(&self, body: &[u8]) -> EncodedReply {
        let message: Cancel = match parse(body) {
            Ok(message) => message,
            Err(answer) => return answer,
        };
        if let Err(answer) = self.check_meant(message.executor_id, message.runs.len(), DISPATCH_ITEMS_MAX) {
            return answer;
        }
        let runs = &self.member.runs;
        let mut outcomes = runs.cancel(&message.runs, message.unstarted_only);
        if outcomes.contains(&CancelOutcome::Stopping) {
            let deadline = tokio::time::Instant::now() + STOP_WAIT;
            loop {
                tokio::time::sleep(STOP_WAIT / 8).await;
                let mut left = false;
                for (key, outcome) in message.runs.iter().zip(&mut outcomes) {
                    if *outcome == CancelOutcome::Stopping {
                        if runs.is_running(*key) {
                            left = true;
                        } else {
                            *outcome = CancelOutcome::Stopped;
                        }
                    }
                }
                if !left || tokio::time::Instant::now() >= deadline {
                    break;
                }
            }
        }
        ok(&CancelAck { outcomes })
    }

    /// Any signed reply proves that this process is alive; a draining one must not get new runs.
    fn probe(&self, body: &[u8]) -> EncodedReply {
        let message: Probe = match parse(body) {
            Ok(message) => message,
            Err(answer) => return answer,
        };
        if let Err(answer) = self.check_meant(message.executor_id, message.tasks.len(), PROBE_TASKS_MAX) {
            return answer;
        }
        let Member { runs, settings, .. } = &*self.member;
        if runs.is_draining() {
            return refuse(Code::ShuttingDown, "this executor is shutting down");
        }
        let (counts, busy) = runs.probe(&message.tasks);
        ok(&ProbeAck { held: counts.held, running: counts.running, capacity: settings.capacity as u32, busy })
    }

    /// A page of a run's output. It does not matter whether this process ran it: the output of a run outlives the
    /// process that ran it.
    async fn logs(&self, body: &[u8]) -> EncodedReply {
        let message: ReadOutput = match parse(body) {
            Ok(message) => message,
            Err(answer) => return answer,
        };
        if message.instance.as_ref().is_some_and(|instance| *instance != self.member.instance) {
            return refuse(Code::WrongExecutor, "this is another executor process than the one that is asked");
        }
        let runs = &self.member.runs;
        // Read before the file: then the file has everything the run logged before it ended.
        let state = runs.output_state(RunKey(message.log, message.attempt));
        match runs.outputs.page(&message, state).await {
            Ok(page) => ok(&page),
            Err(NoPage::KeepsNone) => refuse(Code::NotFound, "this executor keeps no output of its runs"),
            Err(NoPage::Busy) => refuse(Code::TooMany, "too many pages of output are being read"),
            Err(NoPage::Disk(error)) => {
                tracing::warn!(log = message.log, attempt = message.attempt, error, "output.not_read");
                refuse(Code::Internal, "the output could not be read; see the executor's log")
            }
        }
    }

    /// Whether a request with so many items is for this process.
    fn check_meant(&self, executor_id: i64, items: usize, items_max: usize) -> Result<(), EncodedReply> {
        if self.member.executor_id() != Some(executor_id) {
            return Err(refuse(Code::WrongExecutor, "this is another executor process, or it has not registered yet"));
        }
        if items > items_max {
            return Err(refuse(Code::BadRequest, "too many items in one request"));
        }
        Ok(())
    }

    fn asked_health(&self, body: &[u8]) -> EncodedReply {
        match parse::<AskHealth>(body) {
            Ok(AskHealth {}) => ok(&self.health()),
            Err(answer) => answer,
        }
    }

    fn health(&self) -> Health {
        let counts = self.member.runs.counts();
        Health {
            executor_id: self.member.executor_id().unwrap_or(0),
            instance: self.member.instance.clone(),
            held: counts.held,
            running: counts.running,
            version: self.member.settings.version.clone(),
        }
    }
}

async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    const TOO_LARGE: Refusal = (Code::TooLarge, "the body is too large");
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(TOO_LARGE);
    }
    let whole = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(TOO_LARGE),
        Ok(Err(_)) => Err((Code::BadRequest, "the body ended early")),
        Err(_) => Err((Code::BadRequest, "the body took too long")),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, EncodedReply> {
    serde_json::from_slice(body)
        .map_err(|error| refuse(Code::BadRequest, &format!("not the expected message: {error}")))
}

fn ok<T: Serialize>(data: &T) -> EncodedReply {
    match serde_json::to_vec(&Reply::ok(data)) {
        Ok(body) => (Code::Ok, body),
        Err(error) => {
            tracing::error!(%error, "reply.not_encoded");
            refuse(Code::Internal, "the reply could not be written")
        }
    }
}

fn refuse(code: Code, reason: &str) -> EncodedReply {
    let body = serde_json::to_vec(&Reply::<()>::refuse(code, reason)).unwrap_or_default();
    (code, body)
}

fn unsigned((code, body): EncodedReply) -> Answer {
    Answer::unsigned(code.http_status(), body)
}

fn response(answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(hyper::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some((method, sign)) = answer.signature {
        headers.insert(header::SIGN_METHOD, HeaderValue::from_static(method.as_str()));
        // Hex is always a valid header value; without it the caller would not trust the reply.
        if let Ok(value) = HeaderValue::from_str(&sign) {
            headers.insert(header::SIGN, value);
        }
    }
    response
}
