//! Unauthenticated requests to the executors' API: how many an address may send, and how many log lines
//! they may cause.

use crate::auth::{Refusal, SignedHead, Throttle, network_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Burst of refused requests of one address that are answered with the reason; after it, one per …
const REFUSED_BURST: u32 = 200;
/// … this interval. Many executors with a wrong key may share an address; more answers would tell nothing new.
const REFUSED_EVERY: Duration = Duration::from_millis(50);

/// Burst of log lines about one address; after it, one per …
const LINES_BURST: u32 = 5;
/// … this interval.
const LINES_EVERY: Duration = Duration::from_secs(1);

/// The same for all addresses together: some megabytes a day.
const ALL_LINES_BURST: u32 = 100;
const ALL_LINES_EVERY: Duration = Duration::from_millis(500);

/// Longest text of an unauthenticated caller in a log line, characters.
const TEXT_CHARS_MAX: usize = 64;

/// Recent requests of unauthenticated callers.
pub struct UnauthenticatedLimits {
    refused: Throttle,
    lines: Throttle,
    all_lines: Throttle,
    left_out: AtomicU64,
}

impl Default for UnauthenticatedLimits {
    fn default() -> Self {
        Self {
            refused: Throttle::new(REFUSED_BURST, REFUSED_EVERY),
            lines: Throttle::new(LINES_BURST, LINES_EVERY),
            all_lines: Throttle::new(ALL_LINES_BURST, ALL_LINES_EVERY),
            left_out: AtomicU64::new(0),
        }
    }
}

/// The caller, as far as known before the signature is checked: the address and the named key.
/// Guessing at one key does not lock out executors with another key at the same address.
pub struct UnauthenticatedCaller {
    /// Address of the caller.
    address: String,
    /// The key that requests are counted by.
    count_as: String,
}

impl UnauthenticatedCaller {
    /// A caller at that address that names no key, or an unknown one.
    pub fn without_key(address: String) -> Self {
        Self { count_as: network_of(&address).into_owned(), address }
    }

    /// A caller at that address that names a key.
    pub fn with_key(address: String, key_id: &str) -> Self {
        Self { count_as: format!("{} {key_id}", network_of(&address)), address }
    }
}

impl UnauthenticatedLimits {
    /// Whether the caller may try; otherwise how long it must wait.
    pub fn may_try(&self, caller: &UnauthenticatedCaller) -> Result<(), Duration> {
        self.refused.would_admit(&caller.count_as)
    }

    /// Counts a request that was refused, or will be; the error says how long none will be answered.
    pub fn count(&self, caller: &UnauthenticatedCaller) -> Result<(), Duration> {
        self.refused.admit(&caller.count_as)
    }

    /// Logs a refusal, unless there are too many.
    pub fn note(&self, caller: &UnauthenticatedCaller, head: &SignedHead<'_>, refusal: &Refusal) {
        if self.lines.admit_address(&caller.address).is_err() || self.all_lines.admit("").is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        tracing::warn!(
            code = u32::from(refusal.code),
            reason = refusal.message,
            from = caller.address,
            tenant = cut(head.parts.tenant),
            app = cut(head.parts.app),
            key = cut(head.parts.key),
            path = cut(head.parts.path),
            left_out = self.left_out.swap(0, Ordering::Relaxed),
            "signed request refused"
        );
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).map_or(text, |(end, _)| &text[..end])
}
