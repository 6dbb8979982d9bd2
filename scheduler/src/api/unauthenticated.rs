//! Requests at the executors' door that nobody has proved to be his: how many an address may send,
//! and how many lines they may leave in the log.

use crate::auth::{Refusal, SignedHead, Throttle, network_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Refused requests of one address that are answered with the reason, at once, and then one each …
const REFUSED_BURST: u32 = 200;
/// … of this. Many executors with a wrong key may share an address; more tell nobody anything new.
const REFUSED_EVERY: Duration = Duration::from_millis(50);

/// Lines about one address at once, and then one each …
const LINES_BURST: u32 = 5;
/// … of this.
const LINES_EVERY: Duration = Duration::from_secs(1);

/// The same for all addresses together: some megabytes a day.
const ALL_LINES_BURST: u32 = 100;
const ALL_LINES_EVERY: Duration = Duration::from_millis(500);

/// Longest text of a stranger in a line, characters.
const TEXT_CHARS_MAX: usize = 64;

/// What strangers have done lately.
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

/// Who asks, as far as that is known before the signature is: the address, with the key that is named.
/// Whoever guesses at one key keeps executors with another, which may have the same address, in.
pub struct UnauthenticatedCaller {
    /// Address of the caller.
    address: String,
    /// What is counted.
    count_as: String,
}

impl UnauthenticatedCaller {
    /// One at that address who names no key, or none that there is.
    pub fn nobody(address: String) -> Self {
        Self { count_as: network_of(&address).into_owned(), address }
    }

    /// One at that address who names a key.
    pub fn with_key(address: String, key_id: &str) -> Self {
        Self { count_as: format!("{} {key_id}", network_of(&address)), address }
    }
}

impl UnauthenticatedLimits {
    /// Whether one may try; else for how long none will.
    pub fn may_try(&self, caller: &UnauthenticatedCaller) -> Result<(), Duration> {
        self.refused.would_admit(&caller.count_as)
    }

    /// Counts a request that was refused, or will be; else for how long none is answered.
    pub fn count(&self, caller: &UnauthenticatedCaller) -> Result<(), Duration> {
        self.refused.admit(&caller.count_as)
    }

    /// Leaves a line about a refusal, unless there are many.
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
