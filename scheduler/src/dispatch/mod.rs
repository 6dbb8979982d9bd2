//! Due runs → executors: chosen, marked DISPATCHED, sent a few seconds early.
//!
//! The mark comes before the message. A node that dies in between leaves a row that no executor
//! has; the message carries `accept_until`, after which no executor takes it any more, and only
//! after that does the reaper give it to somebody else.

mod admit;
mod cancel;
mod choose;
mod dispatcher;
mod http;
mod judge;
mod output;
mod pace;
mod parcel;
mod pump;
mod send;
mod tail;
mod tasks;
mod transport;

pub use cancel::{Canceller, TookBack};
pub use dispatcher::{DispatchParts, DispatchSettings, Dispatcher};
pub use http::HttpTransport;
pub use output::{OutputReader, Reading, STANDINGS, Standing, Wanted};
pub use pump::{Pump, PumpSettings};
pub use tail::{Follower, NoPlace, Place, RunSource, TailEnd, TailEvent, Tails, follow};
pub use tasks::TaskCache;
pub use transport::{Probe, SendError, Transport};
