//! The messages, one struct per body. Times are epoch milliseconds UTC on the cluster clock
//! unless the name ends in `_us` (microseconds). Unknown fields are ignored, so that either
//! side may be newer.

mod reply;
mod run_key;
mod to_executor;
mod to_node;

pub use reply::Reply;
pub use run_key::RunKey;
pub use to_executor::*;
pub use to_node::*;

#[cfg(test)]
mod tests;
