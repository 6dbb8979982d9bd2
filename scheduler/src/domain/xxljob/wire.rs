//! The bodies of xxl-job's wire, both ways.
//!
//! ```text
//! carillon ── /run /kill /log /idleBeat /beat ──▶ executor       RunBody, JobBody, LogBody ──▶   ◀── Reply
//! carillon ◀── registry registryRemove callback ── executor      ◀── Registration, Callback   Envelope ──▶
//! ```
//!
//! What is sent has the fields, the order and the types that were captured from 2.5.0 and 3.4.2. What is read may be of any
//! version and of any client: numbers may come as texts, fields may be absent or null, those that nobody knows are skipped.
//! Long texts are cut. The size of a body is the caller's to check; everything else here is bounded.

mod loose;

mod callback;
mod envelope;
mod registration;
mod reply;
mod sent;

#[cfg(test)]
mod captures;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use callback::{CALLBACK_ITEMS_MAX, Callback, CallbackItem};
pub use envelope::Envelope;
pub use loose::Unreadable;
pub use registration::{NAME_CHARS_MAX, Registration};
pub use reply::{Content, LogPage, Reply};
pub use sent::{BEAT_BODY, Block, JobBody, LogBody, RunBody, timeout_s};

/// Header of the token, in both directions.
pub const TOKEN_HEADER: &str = "XXL-JOB-ACCESS-TOKEN";

/// Content type of every body that carillon sends.
pub const CONTENT_TYPE: &str = "application/json;charset=UTF-8";

/// Paths of an executor, below the address that it registered.
pub const RUN_PATH: &str = "/run";
/// See [`RUN_PATH`].
pub const KILL_PATH: &str = "/kill";
/// See [`RUN_PATH`].
pub const LOG_PATH: &str = "/log";
/// See [`RUN_PATH`].
pub const IDLE_BEAT_PATH: &str = "/idleBeat";
/// See [`RUN_PATH`].
pub const BEAT_PATH: &str = "/beat";

/// `code` of a success, in both envelopes and in callbacks.
pub const CODE_OK: i32 = 200;

/// `code` of a failure.
pub const CODE_FAILED: i32 = 500;

/// `code` in a callback of a run whose time-out passed.
pub const CODE_TIMED_OUT: i32 = 502;

/// A body of this module as it goes out: JSON without spaces. They are numbers, texts and nulls, so none can fail to be written.
pub fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}
