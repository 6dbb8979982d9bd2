//! Carries requests to nodes and their answers back: over HTTP, or, in a simulation, over a wire in memory.
//! Neither reads what it carries.

use carillon_protocol::exchange::{Answer, Request};
use carillon_protocol::sign::{SignMethod, header};
use carillon_protocol::{BODY_BYTES_MAX, NODE_POOL_IDLE};
use reqwest::Response;
use reqwest::header::HeaderMap;
use rustls::ClientConfig;
use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

/// How long connecting to a node may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// An answer, or why there is none.
pub type Carried<'a> = Pin<Box<dyn Future<Output = Result<Answer, String>> + Send + 'a>>;

/// The way to the nodes.
pub trait Carrier: Debug + Send + Sync {
    /// Carries `request` to the node at `origin` (`http[s]://host:port`), and back what it answers within `timeout`.
    fn carry<'a>(&'a self, origin: &'a str, request: Request, timeout: Duration) -> Carried<'a>;
}

/// Over HTTP.
#[derive(Debug)]
pub(crate) struct HttpCarrier {
    client: reqwest::Client,
}

impl HttpCarrier {
    pub(crate) fn new(tls: ClientConfig) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(NODE_POOL_IDLE)
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { client })
    }

    async fn send(&self, origin: &str, request: Request, timeout: Duration) -> Result<Answer, String> {
        let mut sent = self
            .client
            .post(format!("{origin}{}", request.path))
            .timeout(timeout)
            .header("content-type", "application/json");
        for (name, value) in request.headers {
            sent = sent.header(name, value);
        }
        let response = sent.body(request.body).send().await.map_err(|e| chain(&e))?;
        let status = response.status().as_u16();
        let signature = signature(response.headers());
        let body = bounded(response).await?.into();
        Ok(Answer { status, signature, wait: None, body })
    }
}

impl Carrier for HttpCarrier {
    fn carry<'a>(&'a self, origin: &'a str, request: Request, timeout: Duration) -> Carried<'a> {
        Box::pin(self.send(origin, request, timeout))
    }
}

fn signature(headers: &HeaderMap) -> Option<(SignMethod, String)> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let method = text(header::SIGN_METHOD).and_then(SignMethod::parse).unwrap_or_default();
    text(header::SIGN).map(|sign| (method, sign.to_owned()))
}

async fn bounded(mut response: Response) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| chain(&e))? {
        if text.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(format!("the answer is larger than {BODY_BYTES_MAX} bytes"));
        }
        text.extend_from_slice(&chunk);
    }
    Ok(text)
}

/// An error with its causes: reqwest's own text omits them.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::TlsFiles;
    use carillon_protocol::{KEEP_ALIVE_MARGIN, NODE_KEEP_ALIVE};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    /// Answers every request, and leaves the connection open.
    async fn answer(mut stream: TcpStream) {
        let mut head = [0; 4_096];
        while stream.read(&mut head).await.is_ok_and(|bytes| bytes > 0) {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        }
    }

    #[tokio::test]
    async fn no_connection_is_reused_that_its_node_may_be_closing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(answer(stream));
            }
        });
        let carrier = HttpCarrier::new(TlsFiles::default().open(false).unwrap()).unwrap();
        let connections = async || {
            let request = Request { path: "/openapi/results".to_owned(), headers: Vec::new(), body: "{}".into() };
            carrier.carry(&origin, request, Duration::from_secs(10)).await.unwrap();
            accepted.load(Ordering::SeqCst)
        };
        let mut before = connections().await;
        loop {
            let now = connections().await;
            if now == before {
                break;
            }
            assert!(now < 20, "no connection is reused");
            before = now;
        }
        // The node closes it after this time, and a request may meet that a little before.
        tokio::time::sleep(NODE_KEEP_ALIVE.saturating_sub(KEEP_ALIVE_MARGIN / 2)).await;
        assert_eq!(connections().await, before + 1);
    }
}
