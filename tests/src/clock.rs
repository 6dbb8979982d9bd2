//! The wall clock of this machine, which is the cluster clock too: the database runs here.

use std::time::{SystemTime, UNIX_EPOCH};

/// Epoch microseconds.
#[must_use]
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    i64::try_from(since.as_micros()).expect("fits for 290,000 years")
}

/// Epoch milliseconds.
#[must_use]
pub fn now_ms() -> i64 {
    now_us() / 1_000
}
