//! Messages to executors, signed both ways. What carries them is another's matter: [`Carrier`].

use super::carrier::{Carrier, Uncarried};
use super::{Presence, SendError, Transport};
use crate::auth::{AddressRule, KeyRing};
use crate::cluster::Clock;
use crate::domain::{Executor, Owner};
use crate::store::{ExecutorEnd, KeyStore, SigningKey};
use async_trait::async_trait;
use carillon_protocol::exchange::{Answer, Request};
use carillon_protocol::sign::{RandomSource, RequestParts, SignMethod};
use carillon_protocol::{
    AskHealth, BODY_BYTES_MAX, Cancel, CancelAck, Code, Dispatch, DispatchAck, Health, OutputPage, Probe, ProbeAck,
    ReadOutput, Reply,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// An executor that does not answer a probe by then counts as gone for this run.
const ASK_MAX: Duration = Duration::from_millis(500);

/// A health answer is small, bytes.
const HEALTH_BYTES_MAX: usize = 16 * 1024;

/// A page of output may be so many times as long as the bytes asked for: one that is no character
/// is shown as U+FFFD, which has three.
const PAGE_GROWTH_MAX: usize = 3;

/// Sends to executors, each with the key that it registered with.
pub struct SignedTransport<C> {
    carrier: C,
    parts: TransportParts,
}

/// What messages to executors are made and checked with.
pub struct TransportParts {
    /// Executors' keys.
    pub keys: Arc<KeyRing>,
    /// Where they are read.
    pub key_store: Arc<dyn KeyStore>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// Where nonces come from.
    pub random: Arc<dyn RandomSource>,
}

impl From<Uncarried> for SendError {
    fn from(uncarried: Uncarried) -> Self {
        match uncarried {
            Uncarried::NotListening(detail) | Uncarried::NotDelivered(detail) => Self::NotDelivered(detail),
            Uncarried::Unknown(detail) => Self::Unknown(detail),
        }
    }
}

impl<C: Carrier> SignedTransport<C> {
    /// Over a carrier.
    pub fn over(carrier: C, parts: TransportParts) -> Self {
        Self { carrier, parts }
    }

    /// The key that the executor registered with. When it has ended nothing is sent there any more:
    /// the holder of such a key is no longer an executor of the app.
    async fn key_of(&self, to: &Recipient<'_>) -> Result<Arc<SigningKey>, SendError> {
        let find = |keys: &KeyRing| keys.find(to.key_id, self.parts.clock.now_ms()).filter(|key| key.owner == to.owner);
        self.parts.keys.find_soon(&*self.parts.key_store, find).await.ok_or_else(|| {
            SendError::NotDelivered(format!("its key {} has ended; it must register with a valid one", to.key_id))
        })
    }

    /// A message as it is sent, and what its answer is checked with.
    async fn signed<Q: Serialize + Sync>(
        &self,
        to: &Recipient<'_>,
        path: &str,
        message: &Q,
    ) -> Result<(Request, Awaited), SendError> {
        let not_delivered = |detail: String| SendError::NotDelivered(detail);
        // Judged by today's rule, whatever it was when the executor registered.
        self.parts.addresses.check(to.address).map_err(not_delivered)?;
        let key = self.key_of(to).await?;
        let method = key.demanded.unwrap_or_default();
        let body = serde_json::to_vec(message).map_err(|error| not_delivered(error.to_string()))?;
        let nonce = self.parts.random.hex().map_err(|error| not_delivered(error.to_string()))?;
        let parts = RequestParts {
            method: Request::METHOD,
            path,
            query: "",
            tenant: &key.tenant,
            app: &key.app,
            key: &key.key.id,
            timestamp: self.parts.clock.now_ms(),
            nonce: &nonce,
        };
        let request = Request::signed(&parts, method, &key.key.secret, body.into());
        Ok((request, Awaited { key, method, nonce }))
    }

    async fn call<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        to: &Executor,
        path: &str,
        message: &Q,
    ) -> Result<A, SendError> {
        let to = Recipient::from(to);
        let (request, awaited) = self.signed(&to, path, message).await?;
        let answer = self.carrier.carry(to.address, request, BODY_BYTES_MAX).await?;
        awaited.read(&answer)
    }
}

/// Whom a message is for.
struct Recipient<'a> {
    owner: Owner,
    key_id: &'a str,
    address: &'a str,
}

impl<'a> From<&'a Executor> for Recipient<'a> {
    fn from(executor: &'a Executor) -> Self {
        let Executor { tenant_id, app_id, key_id, address, .. } = executor;
        Self { owner: Owner { tenant_id: *tenant_id, app_id: *app_id }, key_id, address }
    }
}

impl<'a> From<&'a ExecutorEnd> for Recipient<'a> {
    fn from(ExecutorEnd { owner, key_id, address, .. }: &'a ExecutorEnd) -> Self {
        Self { owner: *owner, key_id, address }
    }
}

/// The answer to a message that was sent, as it must be.
struct Awaited {
    key: Arc<SigningKey>,
    method: SignMethod,
    nonce: String,
}

impl Awaited {
    /// What the executor answers, if the answer is its own, and to that message.
    fn read<A: DeserializeOwned>(&self, answer: &Answer) -> Result<A, SendError> {
        let unknown = |detail: &str| SendError::Unknown(detail.to_owned());
        if answer.signature.is_none() {
            return Err(unknown("the reply is not signed"));
        }
        if !answer.is_genuine(self.method, &self.key.key.secret, &self.nonce) {
            return Err(unknown("the reply's signature does not match"));
        }
        let reply: Reply<A> = serde_json::from_slice(&answer.body)
            .map_err(|error| unknown(&format!("the reply cannot be read: {error}")))?;
        match (reply.code, reply.data) {
            (Code::Ok, Some(data)) => Ok(data),
            (Code::Ok, None) => Err(unknown("the reply has no data")),
            (code, _) => Err(SendError::Refused(code, reply.msg)),
        }
    }
}

/// Whether a page is one of those that were asked for: not too long, and one that gets on, so that no
/// reader goes round in circles.
fn is_page_of(page: &OutputPage, asked: &ReadOutput) -> bool {
    let gets_on = page.next > asked.from || (page.text.is_empty() && !page.more);
    gets_on && page.text.len() <= PAGE_GROWTH_MAX * asked.limit as usize
}

#[async_trait]
impl<C: Carrier> Transport for SignedTransport<C> {
    async fn dispatch(&self, to: &Executor, message: &Dispatch, _: &[i64]) -> Result<DispatchAck, SendError> {
        let ack: DispatchAck = self.call(to, "/dispatch", message).await?;
        if ack.outcomes.len() == message.items.len() {
            Ok(ack)
        } else {
            Err(SendError::Unknown("the reply has another number of outcomes than the request items".to_owned()))
        }
    }

    async fn cancel(&self, to: &Executor, message: &Cancel, _again: bool) -> Result<CancelAck, SendError> {
        self.call(to, "/cancel", message).await
    }

    async fn ask(&self, to: &Executor, message: &Probe) -> Result<ProbeAck, SendError> {
        // Live executors answer at once; a run must not wait for those that are gone.
        match tokio::time::timeout(ASK_MAX, self.call(to, "/probe", message)).await {
            Ok(answer) => answer,
            Err(_) => Err(SendError::Unknown(format!("no answer within {ASK_MAX:?}"))),
        }
    }

    async fn read_output(&self, to: &Executor, message: &ReadOutput) -> Result<OutputPage, SendError> {
        let page: OutputPage = self.call(to, "/logs", message).await?;
        if is_page_of(&page, message) {
            Ok(page)
        } else {
            Err(SendError::Unknown("the reply is not a page of the requested output".to_owned()))
        }
    }

    async fn probe(&self, silent: &ExecutorEnd) -> Presence {
        let Ok((request, awaited)) = self.signed(&silent.into(), "/health", &AskHealth {}).await else {
            return Presence::Unknown;
        };
        match self.carrier.carry(&silent.address, request, HEALTH_BYTES_MAX).await {
            Err(Uncarried::NotListening(_)) => Presence::NotListening,
            Err(_) => Presence::Unknown,
            // Only processes of its app can sign. What others say, refusals too, proves nothing of it.
            Ok(answer) => {
                awaited.read::<Health>(&answer).map_or(Presence::Unknown, |health| Presence::Instance(health.instance))
            }
        }
    }
}
