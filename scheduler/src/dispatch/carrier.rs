//! What carries messages to executors and their answers back, and reads neither.

use async_trait::async_trait;
use carillon_protocol::exchange::{Answer, Request};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncarried {
    /// The machine answers that nothing listens there: it certainly did not arrive.
    NotListening(String),
    /// It certainly did not arrive.
    NotDelivered(String),
    /// It may have arrived.
    Unknown(String),
}

/// The way to executors.
#[async_trait]
pub trait Carrier: Send + Sync {
    /// Carries `request` to the executor at `address` (`http://host:port`, perhaps with a path), and its answer back, whose body has at most
    /// `bytes_max`. Takes a bounded time.
    async fn carry(&self, address: &str, request: Request, bytes_max: usize) -> Result<Answer, Uncarried>;
}
