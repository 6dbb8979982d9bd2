//! The envelope of replies.

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
