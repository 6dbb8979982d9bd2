//! The transport over HTTP, signed both ways.

use super::{Presence, SendError, Transport};
use crate::auth::{AddressRule, KeyRing};
use crate::cluster::Clock;
use crate::domain::{Executor, Owner};
use crate::store::{SigningKey, SqlStore};
use async_trait::async_trait;
use carillon_protocol::sign::{self, RequestParts, SignMethod, header};
use carillon_protocol::{
    BODY_BYTES_MAX, Cancel, CancelAck, Code, Dispatch, DispatchAck, EXECUTOR_KEEP_ALIVE, Health, KEEP_ALIVE_MARGIN,
    OutputPage, ProbeAck, ReadOutput, Reply,
};
use reqwest::{Client, Response, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// A connection that is not made within this time is not made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an idle connection is reused.
const POOL_IDLE: Duration = EXECUTOR_KEEP_ALIVE.saturating_sub(KEEP_ALIVE_MARGIN);

/// An executor answers a dispatch from memory; longer than this is a fault.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

/// An executor that does not answer a probe by then counts as gone for this run.
const ASK_MAX: Duration = Duration::from_millis(500);

/// A health answer is small, bytes.
const HEALTH_BYTES_MAX: usize = 16 * 1024;

/// A page of output may be so many times as long as the bytes asked for: one that is no character
/// is shown as U+FFFD, which has three.
const PAGE_GROWTH_MAX: usize = 3;

/// Sends to executors, each with the key that it registered with.
pub struct HttpTransport {
    client: Client,
    keys: Arc<KeyRing>,
    store: SqlStore,
    addresses: AddressRule,
    clock: Arc<dyn Clock>,
}

impl HttpTransport {
    /// A transport with its own connections.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(
        keys: Arc<KeyRing>,
        store: SqlStore,
        addresses: AddressRule,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .tls_backend_preconfigured(crate::tls::unused()?)
            .dns_resolver(Arc::new(addresses.clone()))
            .tcp_nodelay(true)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(8)
            .build()?;
        Ok(Self { client, keys, store, addresses, clock })
    }

    /// The key that the executor registered with. When it has ended nothing is sent there any more:
    /// the holder of such a key is no longer an executor of the app.
    async fn key_of(&self, to: &Executor) -> Result<Arc<SigningKey>, SendError> {
        let owner = Owner { tenant_id: to.tenant_id, app_id: to.app_id };
        let find = || self.keys.find(&to.key_id, self.clock.now_ms()).filter(|key| key.owner == owner);
        if let Some(key) = find() {
            return Ok(key);
        }
        // It may have been made a moment ago, at another node.
        self.keys.refresh_soon(&self.store).await;
        find().ok_or_else(|| {
            SendError::NotDelivered(format!("its key {} has ended; it must register with a valid one", to.key_id))
        })
    }

    async fn call<Q: Serialize + Sync, A: DeserializeOwned>(
        &self,
        to: &Executor,
        path: &str,
        message: &Q,
    ) -> Result<A, SendError> {
        let not_delivered = |detail: String| SendError::NotDelivered(detail);
        // Judged by today's rule, whatever it was when the executor registered.
        self.addresses.check(&to.address).map_err(not_delivered)?;
        let key = self.key_of(to).await?;
        let method = key.demanded.unwrap_or_default();
        let body = serde_json::to_vec(message).map_err(|error| not_delivered(error.to_string()))?;
        let nonce = sign::nonce().map_err(|error| not_delivered(error.to_string()))?;
        let timestamp = self.clock.now_ms();
        let parts = RequestParts {
            method: "POST",
            path,
            query: "",
            tenant: &key.tenant,
            app: &key.app,
            key: &key.key.id,
            timestamp,
            nonce: &nonce,
        };
        let signature = parts.sign(method, &key.key.secret, &body);
        let response = self
            .client
            .post(format!("{}{path}", to.address.trim_end_matches('/')))
            .header(header::TENANT, &key.tenant)
            .header(header::APP, &key.app)
            .header(header::KEY, &key.key.id)
            .header(header::TIMESTAMP, timestamp)
            .header(header::NONCE, &nonce)
            .header(header::SIGN_METHOD, method.as_str())
            .header(header::SIGN, signature)
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .map_err(|error| {
                let detail = chain(&error);
                if error.is_connect() || error.is_builder() {
                    SendError::NotDelivered(detail)
                } else {
                    SendError::Unknown(detail)
                }
            })?;
        let reply: Reply<A> = read_signed(response, &key, method, &nonce).await?;
        match (reply.code, reply.data) {
            (Code::Ok, Some(data)) => Ok(data),
            (Code::Ok, None) => Err(SendError::Unknown("the reply has no data".to_owned())),
            (code, _) => Err(SendError::Refused(code, reply.msg)),
        }
    }
}

/// Reads a bounded reply and checks that it is the executor's own, for this request.
async fn read_signed<A: DeserializeOwned>(
    mut response: Response,
    key: &SigningKey,
    method: SignMethod,
    nonce: &str,
) -> Result<Reply<A>, SendError> {
    let unknown = |detail: String| SendError::Unknown(detail);
    let status = response.status().as_u16();
    let signature = response.headers().get(header::SIGN).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let signature = signature.ok_or_else(|| unknown("the reply is not signed".to_owned()))?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unknown(chain(&error)))? {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(unknown("the reply is too large".to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    let expected = sign::sign_reply(method, &key.key.secret, nonce, status, &body);
    if !sign::matches(&expected, &signature) {
        return Err(unknown("the reply's signature does not match".to_owned()));
    }
    serde_json::from_slice(&body).map_err(|error| unknown(format!("the reply cannot be read: {error}")))
}

/// Whether a page is one of those that were asked for: not too long, and one that gets on, so that no
/// reader goes round in circles.
fn is_page_of(page: &OutputPage, asked: &ReadOutput) -> bool {
    let gets_on = page.next > asked.from || (page.text.is_empty() && !page.more);
    gets_on && page.text.len() <= PAGE_GROWTH_MAX * asked.limit as usize
}

/// An error with everything behind it: reqwest's own text hides the cause.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            return io.kind() == std::io::ErrorKind::ConnectionRefused;
        }
        source = cause.source();
    }
    false
}

#[async_trait]
impl Transport for HttpTransport {
    async fn dispatch(&self, to: &Executor, message: &Dispatch) -> Result<DispatchAck, SendError> {
        let ack: DispatchAck = self.call(to, "/dispatch", message).await?;
        if ack.outcomes.len() == message.items.len() {
            Ok(ack)
        } else {
            Err(SendError::Unknown("the reply has another number of outcomes than the request items".to_owned()))
        }
    }

    async fn cancel(&self, to: &Executor, message: &Cancel) -> Result<CancelAck, SendError> {
        self.call(to, "/cancel", message).await
    }

    async fn ask(&self, to: &Executor, message: &carillon_protocol::Probe) -> Result<ProbeAck, SendError> {
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

    async fn probe(&self, address: &str) -> Presence {
        if self.addresses.check(address).is_err() {
            return Presence::Unknown;
        }
        let answer = self.client.get(format!("{}/health", address.trim_end_matches('/'))).send().await;
        match answer {
            Err(error) if is_refused(&error) => Presence::NotListening,
            Err(_) => Presence::Unknown,
            Ok(mut response) => {
                let mut body = Vec::new();
                while let Ok(Some(chunk)) = response.chunk().await {
                    if body.len() + chunk.len() > HEALTH_BYTES_MAX {
                        return Presence::Unknown;
                    }
                    body.extend_from_slice(&chunk);
                }
                match serde_json::from_slice::<Reply<Health>>(&body) {
                    Ok(Reply { data: Some(health), .. }) => Presence::Instance(health.instance),
                    _ => serde_json::from_slice::<Health>(&body)
                        .map_or(Presence::Unknown, |health| Presence::Instance(health.instance)),
                }
            }
        }
    }
}
