//! Claimed runs in memory, earliest first, and the loader that fills it.
//!
//! The queue is bounded. What is in it is QUEUED in the database with this node as its owner;
//! everything else about it is a copy, and the version decides whether the copy still holds.

mod heap;
mod loader;

pub use heap::RunQueue;
pub(crate) use loader::returned_to_all;
pub use loader::{Loader, LoaderSettings};
