//! An address that leads to a server, and can be led to another: what a proxy or a virtual address is to nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::net::{TcpListener, TcpStream};

/// Passes connections on, for as long as the test's runtime lives.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens on 127.0.0.1.
    pub port: u16,
    target: Arc<AtomicU16>,
}

impl Relay {
    /// A new address that leads to this port of 127.0.0.1.
    pub async fn to(target: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("listen");
        let port = listener.local_addr().expect("an address").port();
        let target = Arc::new(AtomicU16::new(target));
        let of_now = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let target = of_now.load(Ordering::SeqCst);
                tokio::spawn(async move {
                    // A server that is gone closes the client's connection, as a proxy does.
                    let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
                    // Either end may break off; both connections are closed then.
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { port, target }
    }

    /// Leads new connections to this port of 127.0.0.1. Those that are there stay.
    pub fn lead_to(&self, target: u16) {
        self.target.store(target, Ordering::SeqCst);
    }
}
