//! One address, from which ways fork: each connection goes by the way of whoever has made it.

use super::way::Way;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// Says by which of the ways a connection goes that comes from this address; `None`: who made it is gone. It may block.
pub type Choose = Arc<dyn Fn(SocketAddr) -> Option<usize> + Send + Sync>;

/// Listens for connections, for as long as the runtime lives.
pub struct Fork {
    port: u16,
    ways: Vec<Arc<Way>>,
    choose: Choose,
    listening: Mutex<Option<AbortHandle>>,
}

impl Fork {
    /// Listens at `port` of 127.0.0.1.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn open(port: u16, ways: Vec<Arc<Way>>, choose: Choose) -> std::io::Result<Self> {
        let fork = Self { port, ways, choose, listening: Mutex::default() };
        fork.accept().await?;
        Ok(fork)
    }

    /// Refuses connections from now on: no process listens at the other end. Those that are there stay.
    pub fn refuse(&self) {
        if let Some(listening) = self.listening.lock().unwrap().take() {
            listening.abort();
        }
    }

    /// Accepts connections again.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn accept(&self) -> std::io::Result<()> {
        if self.listening.lock().unwrap().is_some() {
            return Ok(());
        }
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        let (ways, choose) = (self.ways.clone(), Arc::clone(&self.choose));
        let listening = tokio::spawn(async move {
            loop {
                // An error belongs to one connection that is gone already.
                let Ok((client, from)) = listener.accept().await else { continue };
                let (ways, choose) = (ways.clone(), Arc::clone(&choose));
                tokio::spawn(async move {
                    let chosen = tokio::task::spawn_blocking(move || choose(from)).await.ok().flatten();
                    if let Some(way) = chosen.and_then(|at| ways.get(at)) {
                        way.take(client);
                    }
                });
            }
        });
        *self.listening.lock().unwrap() = Some(listening.abort_handle());
        Ok(())
    }
}
