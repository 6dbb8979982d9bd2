//! The messages, one struct per body. Times are epoch milliseconds UTC on the cluster clock
//! unless the name ends in `_us` (microseconds). Unknown fields are ignored, so that either
//! side may be newer.

mod to_executor;
mod to_node;

pub use to_executor::*;
pub use to_node::*;

use crate::code::Code;
use serde::{Deserialize, Serialize};

/// The envelope of every reply.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply<T> {
    /// Outcome; `0` is success.
    pub code: Code,
    /// `ok`, or what went wrong and how to fix it.
    pub msg: String,
    /// The answer; absent unless `code` is `0` (a refused heartbeat still carries the time).
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

impl<T> Reply<T> {
    /// A success.
    pub fn ok(data: T) -> Self {
        Self { code: Code::Ok, msg: "ok".to_owned(), data: Some(data) }
    }

    /// A refusal.
    pub fn refuse(code: Code, msg: impl Into<String>) -> Self {
        Self { code, msg: msg.into(), data: None }
    }
}

/// One dispatch of a run: the fencing token of every message about it.
/// On the wire it is the array `[log, attempt]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey(
    /// Task log id.
    pub i64,
    /// Attempt, counted from 1.
    pub i32,
);

#[cfg(test)]
mod tests;
