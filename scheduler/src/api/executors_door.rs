//! The door that executors knock at, from the bytes of a request to the bytes of its answer, whatever carries them. Every
//! request is checked before its body is parsed and, as far as possible, before it is read; every reply to a caller that
//! has proved to hold the key is signed.

use super::body::BodyError;
use super::executor_messages::{ExecutorMessage, ExecutorMessages, Refused};
use super::unauthenticated::{UnauthenticatedCaller, UnauthenticatedLimits};
use super::wire_limits::{ALWAYS_VERIFIED_BYTES, Unread, WireLimits};
use crate::auth::{Claims, KeyRing, MessageClass, Refusal, SignedHead, Verifier};
use crate::store::{KeyStore, Signer, SigningKey, Store};
use actix_web::web::Bytes;
use carillon_protocol::exchange::Answer;
use carillon_protocol::sign::SignMethod;
use carillon_protocol::{BODY_BYTES_MAX, Code, Reply};
use futures_util::Stream;
use serde_json::{Value, json};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

const TOO_MANY_REFUSED: &str = "too many refused requests came from this address; the node's log says why";

/// The door of one node.
pub struct ExecutorsDoor<S: Store + ?Sized> {
    messages: ExecutorMessages<S>,
    keys: Arc<KeyRing>,
    key_store: Arc<dyn KeyStore>,
    verifier: Verifier,
    unauthenticated: UnauthenticatedLimits,
    limits: WireLimits,
}

/// A request's body with its share of what a node may read at once.
type ProvedBody = (Bytes, Option<OwnedSemaphorePermit>);

impl<S: Store + 'static> ExecutorsDoor<S> {
    /// Opens it. The holders of each key may send `requests_per_second` of each class of message.
    pub fn new(
        messages: ExecutorMessages<S>,
        keys: Arc<KeyRing>,
        key_store: Arc<dyn KeyStore>,
        requests_per_second: u32,
    ) -> Self {
        Self {
            messages,
            verifier: Verifier::new(keys.clone(), requests_per_second),
            keys,
            key_store,
            unauthenticated: UnauthenticatedLimits::default(),
            limits: WireLimits::default(),
        }
    }

    /// Checks, reads, checks, parses, works, signs. `address` is the caller's, without a port.
    pub async fn answer<P, E>(
        &self,
        message: ExecutorMessage,
        head: &SignedHead<'_>,
        address: String,
        payload: P,
    ) -> Answer
    where
        P: Stream<Item = Result<Bytes, E>> + Unpin,
        E: Display,
    {
        let claims = match self.check_head(head).await {
            Ok(claims) => claims,
            Err(refusal) => return self.turn_away(&UnauthenticatedCaller::without_key(address), head, &refusal),
        };
        let caller = UnauthenticatedCaller::with_key(address, head.parts.key);
        let (body, _turn) = match self.prove(message, payload, &caller, head, &claims).await {
            Ok(proved) => proved,
            Err(answer) => return answer,
        };
        let key = &claims.key;
        let signer = Signer { owner: key.owner, key_id: &key.key.id, signed_at: claims.at };
        let reply = match self.messages.handle(message, &signer, &body, &self.limits).await {
            Ok(data) => Reply { code: Code::Ok, msg: "ok".to_owned(), data: Some(data) },
            // Its clock may be behind what it said itself, or a process before it that knew the time: so it learns the time,
            // under a signature that it can check.
            Err(Refused { code: code @ (Code::Replayed | Code::Conflict), message, .. }) => {
                if code == Code::Replayed {
                    self.unauthenticated.note(&caller, head, &Refusal::unproved(code, message.clone()));
                }
                Reply { code, msg: message, data: Some(self.time()) }
            }
            Err(Refused { code, message, data }) => Reply { code, msg: message, data },
        };
        seal(&reply, head, key)
    }

    fn now_ms(&self) -> i64 {
        self.messages.engine.clock.now_ms()
    }

    fn time(&self) -> Value {
        json!({ "cluster_time_us": self.messages.engine.clock.now_us() })
    }

    async fn check_head(&self, head: &SignedHead<'_>) -> Result<Claims, Refusal> {
        let now = self.now_ms();
        let checked = self.verifier.check_head(head, now);
        if checked.as_ref().is_err_and(|refusal| refusal.code == Code::UnknownKey)
            && self.keys.refresh_soon(&*self.key_store).await
        {
            // The key may have just been created on another node.
            return self.verifier.check_head(head, now);
        }
        checked
    }

    /// The body of a request whose signature proves that the caller holds the key; or the refusal.
    async fn prove<P, E>(
        &self,
        message: ExecutorMessage,
        payload: P,
        caller: &UnauthenticatedCaller,
        head: &SignedHead<'_>,
        claims: &Claims,
    ) -> Result<ProvedBody, Answer>
    where
        P: Stream<Item = Result<Bytes, E>> + Unpin,
        E: Display,
    {
        // A wrong clock is refused in any case, so it is checked before the body is read.
        let is_skewed = claims.skew_ms(self.now_ms()).is_some();
        let limits = &self.unauthenticated;
        let may_try = if is_skewed { limits.count(caller) } else { limits.may_try(caller) };
        let too_many = |wait| {
            limits.note(caller, head, &Refusal::unproved(Code::TooMany, TOO_MANY_REFUSED));
            too_many_refused(wait)
        };
        // Whoever knows a key's id can spend the budget of its address, behind which its executors may stand, too: small
        // requests are verified all the same.
        let bytes_max = match may_try {
            Ok(()) => BODY_BYTES_MAX,
            Err(wait) if is_skewed => return Err(too_many(wait)),
            Err(_) => ALWAYS_VERIFIED_BYTES,
        };
        let refusal = match self.limits.read(payload, bytes_max).await {
            Ok((body, turn)) => match self.verifier.check_body(head, claims, &body, class_of(message), self.now_ms()) {
                Ok(()) => return Ok((body, turn)),
                Err(refusal) => refusal,
            },
            Err(Unread::Busy) => {
                let busy = unsigned(Code::TooMany, "this node reads as many large bodies as it may");
                return Err(Answer { wait: Some(Duration::from_secs(1)), ..busy });
            }
            Err(Unread::Body(BodyError::TooLarge)) if bytes_max < BODY_BYTES_MAX => {
                return Err(too_many(may_try.err().unwrap_or_default()));
            }
            Err(Unread::Body(BodyError::TooLarge)) => {
                Refusal::unproved(Code::TooLarge, format!("the body is larger than {BODY_BYTES_MAX} bytes"))
            }
            Err(Unread::Body(BodyError::TooSlow)) => {
                Refusal::unproved(Code::BadRequest, "the body did not arrive in time")
            }
            Err(Unread::Body(BodyError::Broken(detail))) => Refusal::unproved(Code::BadRequest, detail),
        };
        if !refusal.is_proved {
            return Err(self.turn_away(caller, head, &refusal));
        }
        limits.note(caller, head, &refusal);
        // With a wrong clock the caller learns the right time, under a signature it can check.
        let data = (refusal.code == Code::ClockSkew).then(|| self.time());
        let reply = Reply { code: refusal.code, msg: refusal.message, data };
        Err(Answer { wait: refusal.wait, ..seal(&reply, head, &claims.key) })
    }

    /// Refuses an unauthenticated caller: with the reason, or without one if it was told often enough.
    fn turn_away(&self, caller: &UnauthenticatedCaller, head: &SignedHead<'_>, refusal: &Refusal) -> Answer {
        self.unauthenticated.note(caller, head, refusal);
        match self.unauthenticated.count(caller) {
            Ok(()) => unsigned(refusal.code, &refusal.message),
            Err(wait) => too_many_refused(wait),
        }
    }
}

fn class_of(message: ExecutorMessage) -> MessageClass {
    match message {
        ExecutorMessage::Results => MessageClass::Results,
        ExecutorMessage::Register | ExecutorMessage::Heartbeat | ExecutorMessage::Unregister => {
            MessageClass::Membership
        }
    }
}

fn too_many_refused(wait: Duration) -> Answer {
    Answer { wait: Some(wait), ..unsigned(Code::TooMany, TOO_MANY_REFUSED) }
}

fn seal(reply: &Reply<Value>, request: &SignedHead<'_>, key: &SigningKey) -> Answer {
    let Ok(body) = serde_json::to_vec(reply) else { return unsigned(Code::Internal, "the reply cannot be written") };
    let method = SignMethod::parse(request.sign_method).unwrap_or_default();
    Answer::signed(reply.code.http_status(), body, method, &key.key.secret, request.parts.nonce)
}

/// A refusal that anyone could have made.
pub(super) fn unsigned(code: Code, message: &str) -> Answer {
    let body = serde_json::to_vec(&Reply::<Value>::refuse(code, message)).unwrap_or_default();
    Answer::unsigned(code.http_status(), body)
}
