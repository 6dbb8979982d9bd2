//! Due runs → executors: chosen, recorded as DISPATCHED, sent a few seconds early.
//!
//! The record comes before the message. A node that dies in between leaves a row that no executor
//! has; the message carries `accept_until`, after which no executor accepts it any more, and only
//! after that does the reaper give it to another.

mod admit;
mod cancel;
mod carrier;
mod choose;
mod dispatcher;
mod ended_runs;
mod http;
mod judge;
mod outgoing;
mod output;
mod pump;
mod rate_limit;
mod send;
mod signed;
mod tail;
mod tasks;
mod transport;
mod wires;

pub use cancel::{Canceller, Revocation};
pub use carrier::{Carrier, Uncarried};
pub use dispatcher::{DispatchParts, DispatchSettings, Dispatcher};
pub use ended_runs::EndedRuns;
pub use http::{HttpCarrier, HttpTransport};
pub use output::{OUTPUT_STATUSES, OutputReader, OutputStatus, Reading, Wanted};
pub use pump::{Pump, PumpCore, PumpSettings};
pub use signed::{SignedTransport, TransportParts};
pub use tail::{NoTailSlot, RunSource, TailClient, TailEnd, TailEvent, TailSlot, Tails, follow};
pub use tasks::TaskCache;
pub use transport::{Presence, SendError, Transport};
pub use wires::Wires;
