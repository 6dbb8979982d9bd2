//! How a run gets to a plain executor: not before it is due, and at most once.

use super::address::Address;
use crate::dispatch::Uncarried;
use async_trait::async_trait;
use bytes::Bytes;
use carillon_protocol::exchange::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The way of runs to plain executors.
#[async_trait]
pub trait RunDoor: Send + Sync {
    /// Holds `run` until it is due, sends it to the executor at `to`, and returns the body of its reply, at most 64 KiB.
    /// Takes a bounded time. Whoever stops waiting withdraws the run, unless it was sent already.
    ///
    /// # Errors
    /// `NotListening` and `NotDelivered`: not a byte was sent, and none will be. `Unknown`: some were sent, and there is no
    /// reply with a status of 2xx. It must not be sent again: the executor may have taken it.
    async fn run(&self, to: &Address, run: PreparedRun) -> Result<Bytes, Uncarried>;
}

/// A request with its instant.
#[derive(Debug, Clone)]
pub struct PreparedRun {
    /// When it is due: cluster time, epoch ms, at most [`HELD_MS_MAX`] ahead. It is not sent before; if that has passed, it is
    /// sent at once.
    pub due_ms: i64,
    /// It is not sent at this instant or later: cluster time, epoch ms.
    pub accept_until_ms: i64,
    /// What is posted. The sender adds `Host`, `Content-Type`, `Content-Length` and `Connection`.
    pub request: Request,
    /// Tells what became of it, and withdraws it.
    pub hold: Hold,
}

/// No run is held for longer, ms. Until 200 ms before it is due, it is a row that waits, and edits and stops reach it.
pub const HELD_MS_MAX: i64 = 1_000;

const HELD: i64 = 0;
const WITHDRAWN: i64 = -1;

/// Whether a held run was sent. Sending and withdrawing exclude each other: whichever comes first.
#[derive(Debug, Clone, Default)]
pub struct Hold(Arc<AtomicI64>);

impl Hold {
    /// Takes the run back. True: not a byte of it was sent, and none will be. False: it was sent.
    pub fn withdraw(&self) -> bool {
        match self.0.compare_exchange(HELD, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(state) => state == WITHDRAWN,
        }
    }

    /// Whether it was taken back.
    pub fn is_withdrawn(&self) -> bool {
        self.0.load(Ordering::Acquire) == WITHDRAWN
    }

    /// When it was sent: cluster time, epoch µs.
    pub fn sent_us(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Acquire)).filter(|&sent_us| sent_us > HELD)
    }

    /// Whether it may be sent, which is now noted as its instant (cluster time, epoch µs). Asked by who sends it.
    pub fn send(&self, now_us: i64) -> bool {
        self.0.compare_exchange(HELD, now_us.max(1), Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Not a byte of what was to be sent has left.
    pub(super) fn was_not_sent(&self) {
        self.0.store(HELD, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Hold;

    #[test]
    fn what_was_withdrawn_is_not_sent_and_what_was_sent_is_not_withdrawn() {
        let hold = Hold::default();
        assert!(hold.withdraw() && hold.withdraw());
        assert!(!hold.send(7) && hold.is_withdrawn() && hold.sent_us().is_none());

        let hold = Hold::default();
        assert!(hold.send(7) && !hold.send(8));
        assert!(!hold.withdraw() && hold.sent_us() == Some(7));
        hold.was_not_sent();
        assert!(hold.sent_us().is_none() && hold.send(9));
        assert_eq!(hold.sent_us(), Some(9));
    }
}
