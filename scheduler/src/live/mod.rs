//! Pages that are open hear when something has changed: a hint to look again, of what they may look
//! at. One watcher looks at the database once a second, while anybody listens, and tells all streams.
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

pub use stream::{LiveEnd, LiveEvent, Recheck, follow};
pub use streams::{NoStream, StreamSlot, Streams};
pub use watcher::Watcher;
