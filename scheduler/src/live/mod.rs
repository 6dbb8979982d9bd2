//! The change feed for open pages: hints to read again what they may see. One watcher polls the
//! database once a second, while there are listeners, and informs all streams.
//!
//! ```text
//! audit, task logs, executors, nodes ── watcher, 1 s ──▶ rounds of changes ──▶ stream ──▶ what its caller may see
//! ```
//!
//! Nothing is kept for a slow client: rounds that it missed become one hint that anything may have
//! changed.

mod stream;
mod streams;
mod watcher;

pub use stream::{LiveEnd, LiveEvent, follow};
pub use streams::{NoStream, StreamSlot, Streams};
pub use watcher::Watcher;
