//! Messages to executors over HTTP.

use super::carrier::{Carrier, Uncarried};
use super::signed::{SignedTransport, TransportParts};
use crate::auth::{AddressRule, KeyRing};
use crate::cluster::Clock;
use crate::response_body::{Unread, read_within};
use crate::store::SqlStore;
use async_trait::async_trait;
use carillon_protocol::EXECUTOR_POOL_IDLE;
use carillon_protocol::exchange::{Answer, Request};
use carillon_protocol::sign::{SignMethod, SystemRandom, header};
use reqwest::header::HeaderMap;
use reqwest::{Client, redirect};
use std::sync::Arc;
use std::time::Duration;

/// A connection that is not made within this time is not made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// An executor answers a dispatch from memory; longer than this is a fault.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A plain executor answers within this time, as xxl-job's admin waits for it.
const PLAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// Connections to plain executors are kept for so long without use: clients close them after a few seconds.
const PLAIN_POOL_IDLE: Duration = Duration::from_secs(4);

/// The transport of production.
pub type HttpTransport = SignedTransport<HttpCarrier>;

/// Carries messages over HTTP.
pub struct HttpCarrier {
    client: Client,
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
        let client = client(&addresses, REQUEST_TIMEOUT, EXECUTOR_POOL_IDLE)?;
        let (key_store, random) = (Arc::new(store), Arc::new(SystemRandom));
        Ok(Self::over(HttpCarrier { client }, TransportParts { keys, key_store, addresses, clock, random }))
    }
}

impl HttpCarrier {
    /// Carries messages to plain executors, which may be slow to answer, and close idle connections as they please.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn plain(addresses: &AddressRule) -> anyhow::Result<Self> {
        Ok(Self { client: client(addresses, PLAIN_TIMEOUT, PLAIN_POOL_IDLE)? })
    }
}

fn client(addresses: &AddressRule, timeout: Duration, idle: Duration) -> anyhow::Result<Client> {
    Ok(Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(timeout)
        .redirect(redirect::Policy::none())
        .no_proxy()
        .tls_backend_preconfigured(crate::tls::unused()?)
        .dns_resolver(Arc::new(addresses.clone()))
        .tcp_nodelay(true)
        .pool_idle_timeout(idle)
        .pool_max_idle_per_host(8)
        .build()?)
}

#[async_trait]
impl Carrier for HttpCarrier {
    async fn carry(&self, address: &str, request: Request, bytes_max: usize) -> Result<Answer, Uncarried> {
        let url = format!("{}{}", address.trim_end_matches('/'), request.path);
        let mut sent = self.client.post(url).header("content-type", "application/json");
        for (name, value) in request.headers {
            sent = sent.header(name, value);
        }
        let unknown = |error: &reqwest::Error| Uncarried::Unknown(chain(error));
        let mut response = sent.body(request.body).send().await.map_err(|error| {
            let detail = chain(&error);
            if is_refused(&error) {
                Uncarried::NotListening(detail)
            } else if error.is_connect() || error.is_builder() {
                Uncarried::NotDelivered(detail)
            } else {
                Uncarried::Unknown(detail)
            }
        })?;
        let status = response.status().as_u16();
        let signature = signature(response.headers());
        let body = read_within(&mut response, bytes_max).await.map_err(|unread| match unread {
            Unread::TooLong => Uncarried::Unknown("the reply is too large".to_owned()),
            Unread::Broken(error) => unknown(&error),
        })?;
        Ok(Answer { status, signature, wait: None, body: body.into() })
    }
}

fn signature(headers: &HeaderMap) -> Option<(SignMethod, String)> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let method = text(header::SIGN_METHOD).and_then(SignMethod::parse).unwrap_or_default();
    text(header::SIGN).map(|sign| (method, sign.to_owned()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_protocol::{EXECUTOR_KEEP_ALIVE, KEEP_ALIVE_MARGIN};

    #[test]
    fn no_connection_is_reused_that_its_executor_may_be_closing() {
        assert!(EXECUTOR_POOL_IDLE + KEEP_ALIVE_MARGIN <= EXECUTOR_KEEP_ALIVE);
        assert!(EXECUTOR_POOL_IDLE > REQUEST_TIMEOUT, "connections are reused");
    }
}
