//! The API that executors call. Every request is checked before its body is parsed and, as far as possible,
//! before it is read; every reply to a caller that has proved to hold the key is signed.

use super::Api;
use super::body::BodyError;
use super::client_address::client_address;
use super::unauthenticated::UnauthenticatedCaller;
use super::wire_limits::{ALWAYS_VERIFIED_BYTES, Unread};
use crate::auth::{AddressRule, Claims, MessageClass, Refusal, SignedHead};
use crate::domain::task_log::Status;
use crate::domain::{ExecutorId, LogId, Owner, Reason, Run, Transition};
use crate::store::{DispatchStore, OutcomeStore, Registration, Signer, SigningKey, StoreError, StoreErrorKind};
use crate::tls::ShownCertificate;
use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpRequest, HttpResponse, web};
use carillon_protocol::sign::{self, RequestParts, SignMethod, header};
use carillon_protocol::{
    BODY_BYTES_MAX, Code, EXECUTOR_RUNS_MAX, Heartbeat, HeartbeatAck, RESULT_ITEMS_MAX, Register, Registered, Reply,
    Results, ResultsAck, RunKey, Unregister, Unregistered,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Handlers, tags and characters of a name that one executor may have.
const HANDLERS_MAX: usize = 2_000;
const TAGS_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 128;

/// A heartbeat that is not committed by then is answered `StoreUnavailable`: executors wait for
/// no more than a few seconds, and the answer keeps them going.
const HEARTBEAT_COMMIT_MAX: Duration = Duration::from_millis(1_500);

const TOO_MANY_REFUSED: &str = "too many refused requests came from this address; the node's log says why";

/// Routes of the wire.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/executors/register", web::post().to(register))
        .route("/executors/heartbeat", web::post().to(heartbeat))
        .route("/executors/unregister", web::post().to(unregister))
        .route("/results", web::post().to(results))
        .default_service(web::to(elsewhere));
}

/// A refusal of an operation: code and text, and data where the caller needs some anyway.
pub(crate) struct Refused {
    code: Code,
    message: String,
    data: Option<Value>,
}

impl Refused {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        if error.kind() == StoreErrorKind::Outdated {
            return Self::new(Code::Replayed, error.to_string());
        }
        tracing::error!(%error, "executor request failed");
        if error.kind() == StoreErrorKind::Conflict {
            return Self::new(Code::Conflict, error.to_string());
        }
        if error.is_temporary() {
            Self::new(Code::StoreUnavailable, "the database cannot be reached right now")
        } else {
            Self::new(Code::Internal, "internal error; see the node's log")
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Refused>;

async fn register(request: HttpRequest, payload: web::Payload, api: web::Data<Api>) -> HttpResponse {
    answer(&request, payload, &api, MessageClass::Membership, async |signer, message: Register| {
        check_registration(&message, &api.addresses)?;
        let crowd = api.engine.registry.crowd(signer.owner.tenant_id, signer.owner.app_id, &message.address);
        let refused = |text: String| Refused::new(Code::TooMany, text);
        api.wire_limits.check_registration(signer.owner.app_id, crowd).map_err(refused)?;
        let since = api.engine.executors_alive_since();
        let Registration { executor_id, left_out } = api.engine.executors.register(&signer, &message, since).await?;
        let cluster_time_us = api.engine.clock.now_us();
        Ok(Registered { executor_id: executor_id.0, cluster_time_us, settings: api.executor_settings, left_out })
    })
    .await
}

pub(crate) fn check_registration(message: &Register, addresses: &AddressRule) -> Outcome<()> {
    let refuse = |detail: String| Err(Refused::new(Code::BadRequest, detail));
    if let Err(detail) = addresses.check(&message.address) {
        return refuse(detail);
    }
    let fits = |name: &str| !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && !name.contains('\0');
    if !fits(&message.instance) || message.address.len() > NAME_CHARS_MAX || message.host_name.len() > NAME_CHARS_MAX {
        return refuse(format!("instance, address and host_name must have 1 to {NAME_CHARS_MAX} characters"));
    }
    if message.version.chars().count() > NAME_CHARS_MAX {
        return refuse(format!("version must have at most {NAME_CHARS_MAX} characters"));
    }
    if message.handlers.len() > HANDLERS_MAX || message.tags.len() > TAGS_MAX {
        return refuse(format!("at most {HANDLERS_MAX} handlers and {TAGS_MAX} tags"));
    }
    let bad = message.handlers.iter().map(|handler| &handler.name).chain(&message.tags).find(|name| !fits(name));
    if let Some(name) = bad {
        return refuse(format!("handler or tag `{name}` must have 1 to {NAME_CHARS_MAX} characters"));
    }
    if message.description.chars().count() > 1_000 {
        return refuse("description must have at most 1000 characters".to_owned());
    }
    Ok(())
}

/// A node keeps what each executor names until its next heartbeat: that must have a bound.
fn check_runs<const N: usize>(lists: [&[RunKey]; N]) -> Outcome<()> {
    let count: usize = lists.iter().map(|list| list.len()).sum();
    if count > EXECUTOR_RUNS_MAX {
        return Err(Refused::new(
            Code::BadRequest,
            format!("{count} runs; at most {EXECUTOR_RUNS_MAX} in one message"),
        ));
    }
    Ok(())
}

async fn heartbeat(request: HttpRequest, payload: web::Payload, api: web::Data<Api>) -> HttpResponse {
    answer(&request, payload, &api, MessageClass::Membership, async |signer, message: Heartbeat| {
        check_runs([&message.held, &message.running, &message.unacknowledged])?;
        let ack = |cancel| HeartbeatAck { cluster_time_us: api.engine.clock.now_us(), cancel };
        // The reply keeps the executor's clock going while the database is away. A node that has been
        // cut off for long must not do so: the other nodes may have given the executor's runs away.
        let with_time = |refused: Refused| {
            let code = if api.engine.membership.in_touch() { refused.code } else { Code::Internal };
            Refused { code, data: serde_json::to_value(ack(Vec::new())).ok(), ..refused }
        };
        let commit = tokio::time::timeout(HEARTBEAT_COMMIT_MAX, api.engine.executors.heartbeat(&signer, message));
        let known = match commit.await {
            Ok(done) => done.map_err(|error| with_time(Refused::from(error)))?,
            Err(_) => return Err(with_time(Refused::new(Code::StoreUnavailable, "the database does not answer"))),
        };
        match known {
            Some(cancel) => Ok(ack(cancel)),
            None => Err(Refused::new(Code::RegisterAgain, "this executor is not known (any more)")),
        }
    })
    .await
}

async fn unregister(request: HttpRequest, payload: web::Payload, api: web::Data<Api>) -> HttpResponse {
    answer(&request, payload, &api, MessageClass::Membership, async |signer, message: Unregister| {
        check_runs([&message.held, &message.running])?;
        let owner = signer.owner;
        // Removed from routing first, so that it gets no new runs while its runs are returned.
        let left = message.running.is_empty();
        let since = api.engine.executors_alive_since();
        api.engine.executors.retire(&signer, ExecutorId(message.executor_id), left, since).await?;
        let returned = give_back(&api, owner, ExecutorId(message.executor_id), &message.held).await?;
        api.wake.notify_one();
        Ok(Unregistered { returned })
    })
    .await
}

/// Returns runs that were never started to all nodes, with their due times.
async fn give_back(api: &Api, owner: Owner, executor_id: ExecutorId, held: &[RunKey]) -> Outcome<u64> {
    let now = api.engine.clock.now_ms();
    let mut returned = 0;
    for batch in held.chunks(crate::store::BATCH_MAX) {
        let keys: HashSet<RunKey> = batch.iter().copied().collect();
        let ids: Vec<LogId> = batch.iter().map(|key| LogId(key.0)).collect();
        let rows = api.store.runs(Some(owner), &ids).await?;
        let current = |run: &Run, executor: ExecutorId| {
            run.status == Status::Dispatched && executor == executor_id && keys.contains(&RunKey(run.id.0, run.attempt))
        };
        let changes: Vec<Transition> = rows
            .iter()
            .filter(|row| current(&row.run, row.run.executor_id))
            .map(|row| {
                if row.is_stopping() {
                    // A run that was to be stopped has never started.
                    let change = Transition::of(&row.run, Status::Cancelled, row.stopping);
                    return Transition { finished_at: now, ..change };
                }
                Transition::of(&row.run, Status::Retry, Reason::GivenBack)
            })
            .collect();
        returned += api.store.change(&changes).await?.len() as u64;
    }
    Ok(returned)
}

async fn results(request: HttpRequest, payload: web::Payload, api: web::Data<Api>) -> HttpResponse {
    answer(&request, payload, &api, MessageClass::Results, async |signer, message: Results| {
        if message.results.len() > RESULT_ITEMS_MAX {
            return Err(Refused::new(Code::BadRequest, format!("at most {RESULT_ITEMS_MAX} results at a time")));
        }
        let verdicts =
            api.engine.ingestion.apply(signer.owner, ExecutorId(message.executor_id), &message.results).await?;
        api.ended.notify(&api.engine);
        Ok(ResultsAck { verdicts })
    })
    .await
}

async fn elsewhere() -> HttpResponse {
    unsigned(Code::NotFound, "there is no such route")
}

/// Checks, reads, checks, parses, works, signs.
async fn answer<Q, A, F>(
    request: &HttpRequest,
    payload: web::Payload,
    api: &web::Data<Api>,
    message_class: MessageClass,
    work: F,
) -> HttpResponse
where
    Q: DeserializeOwned,
    A: Serialize,
    F: AsyncFnOnce(Signer<'_>, Q) -> Outcome<A>,
{
    if api.executors_show_certificates && request.conn_data::<ShownCertificate>().is_none() {
        return unsigned(Code::Forbidden, "executors must show a client certificate of this node's authority");
    }
    let head = signed_head(request);
    let address = client_address(api, request);
    let claims = match check_head(api, &head).await {
        Ok(claims) => claims,
        Err(refusal) => return turn_away(api, &UnauthenticatedCaller::without_key(address), &head, &refusal),
    };
    let caller = UnauthenticatedCaller::with_key(address, head.parts.key);
    let proved = prove(api, payload, &caller, &head, &claims, message_class).await;
    let (body, _turn) = match proved {
        Ok(read) => read,
        Err(answer) => return answer,
    };
    let key = &claims.key;
    let signer = Signer { owner: key.owner, key_id: &key.key.id, signed_at: claims.at };
    let reply = match serde_json::from_slice::<Q>(&body) {
        Err(error) => Err(Refused::new(Code::BadRequest, format!("the body does not have the expected form: {error}"))),
        Ok(message) => work(signer, message).await,
    };
    let reply = match reply {
        Ok(data) => Reply { code: Code::Ok, msg: "ok".to_owned(), data: serde_json::to_value(data).ok() },
        Err(Refused { code: Code::Replayed, message, .. }) => {
            let refusal = Refusal::unproved(Code::Replayed, message);
            api.unauthenticated.note(&caller, &head, &refusal);
            return unsigned(refusal.code, &refusal.message);
        }
        Err(Refused { code, message, data }) => Reply { code, msg: message, data },
    };
    seal(&reply, &head, key)
}

async fn check_head(api: &Api, head: &SignedHead<'_>) -> Result<Claims, Refusal> {
    let now = api.engine.clock.now_ms();
    let checked = api.verifier.check_head(head, now);
    if checked.as_ref().is_err_and(|refusal| refusal.code == Code::UnknownKey)
        && api.keys.refresh_soon(&api.store).await
    {
        // The key may have just been created on another node.
        return api.verifier.check_head(head, now);
    }
    checked
}

/// The body of a request whose signature proves that the caller holds the key, with its share of what a node may read at
/// once; or the refusal.
async fn prove(
    api: &Api,
    payload: web::Payload,
    caller: &UnauthenticatedCaller,
    head: &SignedHead<'_>,
    claims: &Claims,
    message_class: MessageClass,
) -> Result<(web::Bytes, Option<OwnedSemaphorePermit>), HttpResponse> {
    // A wrong clock is refused in any case, so it is checked before the body is read.
    let is_skewed = claims.skew_ms(api.engine.clock.now_ms()).is_some();
    let may_try = if is_skewed { api.unauthenticated.count(caller) } else { api.unauthenticated.may_try(caller) };
    let too_many = |wait| {
        api.unauthenticated.note(caller, head, &Refusal::unproved(Code::TooMany, TOO_MANY_REFUSED));
        too_many_refused(wait)
    };
    // Whoever knows a key's id can spend the budget of its address, behind which its executors may stand, too: small
    // requests are verified all the same.
    let bytes_max = match may_try {
        Ok(()) => BODY_BYTES_MAX,
        Err(wait) if is_skewed => return Err(too_many(wait)),
        Err(_) => ALWAYS_VERIFIED_BYTES,
    };
    let refusal = match api.wire_limits.read(payload, bytes_max).await {
        Ok((body, turn)) => {
            match api.verifier.check_body(head, claims, &body, message_class, api.engine.clock.now_ms()) {
                Ok(()) => return Ok((body, turn)),
                Err(refusal) => refusal,
            }
        }
        Err(Unread::Busy) => {
            let busy = unsigned(Code::TooMany, "this node reads as many large bodies as it may");
            return Err(not_before(busy, Some(Duration::from_secs(1))));
        }
        Err(Unread::Body(BodyError::TooLarge)) if bytes_max < BODY_BYTES_MAX => {
            return Err(too_many(may_try.err().unwrap_or_default()));
        }
        Err(Unread::Body(BodyError::TooLarge)) => {
            Refusal::unproved(Code::TooLarge, format!("the body is larger than {BODY_BYTES_MAX} bytes"))
        }
        Err(Unread::Body(BodyError::TooSlow)) => Refusal::unproved(Code::BadRequest, "the body did not arrive in time"),
        Err(Unread::Body(BodyError::Broken(detail))) => Refusal::unproved(Code::BadRequest, detail),
    };
    if !refusal.is_proved {
        return Err(turn_away(api, caller, head, &refusal));
    }
    api.unauthenticated.note(caller, head, &refusal);
    // With a wrong clock the caller learns the right time, under a signature it can check.
    let data = (refusal.code == Code::ClockSkew).then(|| json!({ "cluster_time_us": api.engine.clock.now_us() }));
    let reply = Reply { code: refusal.code, msg: refusal.message, data };
    Err(not_before(seal(&reply, head, &claims.key), refusal.wait))
}

fn signed_head(request: &HttpRequest) -> SignedHead<'_> {
    // A header that comes twice is none: a proxy might read the other one.
    let text = |name: &str| {
        let mut values = request.headers().get_all(name);
        let only = values.next().filter(|_| values.next().is_none());
        only.and_then(|value| value.to_str().ok()).unwrap_or_default()
    };
    let parts = RequestParts {
        method: request.method().as_str(),
        path: request.uri().path(),
        query: request.query_string(),
        tenant: text(header::TENANT),
        app: text(header::APP),
        key: text(header::KEY),
        timestamp: text(header::TIMESTAMP),
        nonce: text(header::NONCE),
    };
    SignedHead { parts, sign_method: text(header::SIGN_METHOD), sign: text(header::SIGN) }
}

/// Refuses an unauthenticated caller: with the reason, or without one if it was told often enough.
fn turn_away(api: &Api, caller: &UnauthenticatedCaller, head: &SignedHead<'_>, refusal: &Refusal) -> HttpResponse {
    api.unauthenticated.note(caller, head, refusal);
    match api.unauthenticated.count(caller) {
        Ok(()) => unsigned(refusal.code, &refusal.message),
        Err(wait) => too_many_refused(wait),
    }
}

fn too_many_refused(wait: Duration) -> HttpResponse {
    not_before(unsigned(Code::TooMany, TOO_MANY_REFUSED), Some(wait))
}

/// Says when to try again.
fn not_before(mut answer: HttpResponse, wait: Option<Duration>) -> HttpResponse {
    if let Some(wait) = wait {
        answer.headers_mut().insert(RETRY_AFTER, (wait.as_secs() + 1).into());
    }
    answer
}

fn seal(reply: &Reply<Value>, request: &SignedHead<'_>, key: &SigningKey) -> HttpResponse {
    let Ok(body) = serde_json::to_vec(reply) else { return unsigned(Code::Internal, "the reply cannot be written") };
    let status = reply.code.http_status();
    let method = SignMethod::parse(request.sign_method).unwrap_or_default();
    let signature = sign::sign_reply(method, &key.key.secret, request.parts.nonce, status, &body);
    HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .insert_header((header::SIGN_METHOD, method.as_str()))
        .insert_header((header::SIGN, signature))
        .content_type("application/json")
        .body(body)
}

fn unsigned(code: Code, message: &str) -> HttpResponse {
    HttpResponse::build(StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
        .json(Reply::<Value>::refuse(code, message))
}
