//! The signature of requests and replies.
//!
//! A request's canonical string is its nine parameters, sorted by name and joined as
//! `name=value` with `&`; nothing that a caller puts into the query or the body can add to, or
//! replace, this list, because both enter it as one value. A reply's is `body`, `nonce` (the
//! request's) and `status`, so that a reply belongs to one request only.
//!
//! `MD5`: hex of md5(canonical + `&secret=` + secret). `HMAC-SHA256`: hex of
//! hmac(secret, canonical). Both are compared in constant time.

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use subtle::ConstantTimeEq;

/// Header names, all lower case as HTTP libraries give them.
pub mod header {
    /// Tenant name.
    pub const TENANT: &str = "x-carillon-tenant";
    /// App name.
    pub const APP: &str = "x-carillon-app";
    /// Key id.
    pub const KEY: &str = "x-carillon-key";
    /// Sender's idea of the cluster clock, epoch ms.
    pub const TIMESTAMP: &str = "x-carillon-timestamp";
    /// Random, once per request.
    pub const NONCE: &str = "x-carillon-nonce";
    /// `MD5` or `HMAC-SHA256`.
    pub const SIGN_METHOD: &str = "x-carillon-sign-method";
    /// The signature, lower-case hex.
    pub const SIGN: &str = "x-carillon-sign";
}

/// How far a timestamp may lie from the receiver's clock, ms.
pub const TIMESTAMP_WINDOW_MS: i64 = 5 * 60 * 1_000;

/// Shortest and longest nonce, characters.
pub const NONCE_CHARS: std::ops::RangeInclusive<usize> = 16..=64;

/// How a request is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SignMethod {
    /// As the source design asks.
    Md5,
    /// The default.
    #[default]
    HmacSha256,
}

impl SignMethod {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::HmacSha256 => "HMAC-SHA256",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "MD5" => Some(Self::Md5),
            "HMAC-SHA256" => Some(Self::HmacSha256),
            _ => None,
        }
    }
}

/// A key of one (tenant, app). Its `Debug` does not show the secret.
#[derive(Clone)]
pub struct Key {
    /// Public id, in every request.
    pub id: String,
    /// Shared secret, never sent.
    pub secret: String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("id", &self.id).field("secret", &"[redacted]").finish()
    }
}

/// The parameters of a request that are signed besides its body. `T` is the timestamp: a number where
/// one signs, the text as sent where one checks.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a, T = i64> {
    /// `POST`, `GET`, upper case.
    pub method: &'a str,
    /// Path without query, as sent.
    pub path: &'a str,
    /// Raw query string without `?`, empty when there is none.
    pub query: &'a str,
    /// Tenant name.
    pub tenant: &'a str,
    /// App name.
    pub app: &'a str,
    /// Key id.
    pub key: &'a str,
    /// Epoch ms.
    pub timestamp: T,
    /// Random, once per request.
    pub nonce: &'a str,
}

impl<T: std::fmt::Display> RequestParts<'_, T> {
    /// Signs these parts with `body`.
    #[must_use]
    pub fn sign(&self, method: SignMethod, secret: &str, body: &[u8]) -> String {
        let Self { method: verb, path, query, tenant, app, key, timestamp, nonce } = self;
        let body = sha256_hex(body);
        // Sorted by name; the list is fixed, so the order is written down once.
        let canonical = format!(
            "app={app}&body={body}&key={key}&method={verb}&nonce={nonce}&path={path}\
             &query={query}&tenant={tenant}&timestamp={timestamp}"
        );
        seal(method, secret, &canonical)
    }
}

/// Signs a reply: it belongs to the request whose nonce it names.
#[must_use]
pub fn sign_reply(method: SignMethod, secret: &str, nonce: &str, status: u16, body: &[u8]) -> String {
    let body = sha256_hex(body);
    seal(method, secret, &format!("body={body}&nonce={nonce}&status={status}"))
}

/// Compares two signatures in constant time.
#[must_use]
pub fn matches(expected: &str, given: &str) -> bool {
    expected.as_bytes().ct_eq(given.as_bytes()).into()
}

/// A fresh nonce: 128 random bits as hex.
///
/// # Errors
/// When the operating system gives no random bytes.
pub fn nonce() -> Result<String, getrandom::Error> {
    random_hex::<16>()
}

/// Where the nonces and names of a process come from.
pub trait RandomSource: std::fmt::Debug + Send + Sync {
    /// 128 random bits as lower-case hex.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    fn hex(&self) -> Result<String, getrandom::Error>;
}

/// The operating system's.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    fn hex(&self) -> Result<String, getrandom::Error> {
        random_hex::<16>()
    }
}

/// `N` random bytes as lower-case hex, for nonces, instances, key ids and secrets.
///
/// # Errors
/// When the operating system gives no random bytes.
pub fn random_hex<const N: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; N];
    getrandom::fill(&mut bytes)?;
    Ok(hex(&bytes))
}

/// How much time the nonces of one set cover, ms.
const NONCE_SPAN_MS: i64 = TIMESTAMP_WINDOW_MS / 10;

/// How much longer than the window nonces are remembered, ms: a timestamp may be checked just before its
/// window ends, and the nonce a little later.
const NONCE_MARGIN_MS: i64 = 30_000;

/// How long a nonce is remembered at most after the instant that its request is dated, ms.
pub const NONCE_KEPT_MS: i64 = TIMESTAMP_WINDOW_MS + NONCE_MARGIN_MS + NONCE_SPAN_MS;

/// What is known of a nonce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonceVerdict {
    /// It was not used before, and is remembered now.
    New,
    /// It was used before.
    Repeated,
    /// It is not known, and there is no room to remember it.
    Full,
}

/// Nonces of requests whose timestamps still lie within the window, bounded in number. A full memory
/// refuses instead of forgetting: forgetting would open the door to a replay.
///
/// A repetition carries the timestamp of the first request, which is signed with it. So nonces are
/// kept by timestamp: one set is asked, and whole sets are dropped when no repetition would be
/// admitted any more. A nonce is kept as a hash under a random key of the process: 10 to 21 bytes
/// each. Should two have one hash (1 of 10^13 requests, with a million remembered), the second
/// is refused.
#[derive(Debug)]
pub struct NonceMemory {
    /// By the span in which the timestamps lie.
    seen: BTreeMap<i64, HashSet<u64>>,
    hasher: RandomState,
    count: usize,
    capacity: usize,
}

impl NonceMemory {
    /// Remembers at most `capacity` nonces.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { seen: BTreeMap::new(), hasher: RandomState::new(), count: 0, capacity }
    }

    /// Whether a request dated `timestamp` (ms) with `nonce` was admitted before.
    #[must_use]
    pub fn knows(&self, nonce: &str, timestamp: i64) -> bool {
        let set = self.seen.get(&timestamp.div_euclid(NONCE_SPAN_MS));
        set.is_some_and(|set| set.contains(&self.hasher.hash_one(nonce)))
    }

    /// Admits `nonce` once, of a request dated `timestamp` (ms). The caller has seen that this lies
    /// within the window around `now` (ms), after the whole request had come.
    pub fn admit(&mut self, nonce: &str, timestamp: i64, now: i64) -> NonceVerdict {
        if self.knows(nonce, timestamp) {
            return NonceVerdict::Repeated;
        }
        self.forget_old(now);
        if self.count >= self.capacity {
            return NonceVerdict::Full;
        }
        let hash = self.hasher.hash_one(nonce);
        self.seen.entry(timestamp.div_euclid(NONCE_SPAN_MS)).or_default().insert(hash);
        self.count += 1;
        NonceVerdict::New
    }

    /// Drops the sets whose timestamps all lie well before the window around `now` (ms).
    pub fn forget_old(&mut self, now: i64) {
        while let Some(oldest) = self.seen.first_entry() {
            let ends = (oldest.key() + 1).saturating_mul(NONCE_SPAN_MS);
            if ends.saturating_add(TIMESTAMP_WINDOW_MS + NONCE_MARGIN_MS) >= now {
                break;
            }
            self.count -= oldest.remove().len();
        }
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

fn seal(method: SignMethod, secret: &str, canonical: &str) -> String {
    match method {
        SignMethod::Md5 => hex(&Md5::digest(format!("{canonical}&secret={secret}"))),
        SignMethod::HmacSha256 => {
            // HMAC takes a key of any length; the error arm cannot be reached and would only
            // make a signature that is never accepted.
            Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_or_else(
                |_| String::new(),
                |mut mac| {
                    mac.update(canonical.as_bytes());
                    hex(&mac.finalize().into_bytes())
                },
            )
        }
    }
}

/// The SHA-256 of `bytes` as lower-case hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// `bytes` as lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 0xf)]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> RequestParts<'static> {
        RequestParts {
            method: "POST",
            path: "/dispatch",
            query: "",
            tenant: "retail",
            app: "orders",
            key: "k1",
            timestamp: 1_700_000_000_000,
            nonce: "0123456789abcdef",
        }
    }

    #[test]
    fn known_answers() {
        // Computed independently with md5sum and openssl dgst over the documented string.
        assert_eq!(parts().sign(SignMethod::Md5, "s3cret", b"{}"), "55411cc99bf25ce0f1edd61e2d1eb1ae");
        assert_eq!(
            parts().sign(SignMethod::HmacSha256, "s3cret", b"{}"),
            "a504c72b34170a83bc7688cd5bd9af457ac64d56ba3f0c8f4b311624a1f4c769"
        );
    }

    #[test]
    fn a_query_cannot_replace_a_parameter_or_the_secret() {
        let honest = parts().sign(SignMethod::Md5, "s3cret", b"");
        for query in ["secret=x", "tenant=other", "_signKey_=x"] {
            let forged = RequestParts { query, ..parts() };
            assert_ne!(honest, forged.sign(SignMethod::Md5, "s3cret", b""));
        }
    }

    #[test]
    fn a_nonce_is_admitted_once_and_a_full_memory_refuses() {
        let mut memory = NonceMemory::new(2);
        assert_eq!(memory.admit("a", 0, 0), NonceVerdict::New);
        assert_eq!(memory.admit("a", 0, 1), NonceVerdict::Repeated);
        assert!(memory.knows("a", 0) && !memory.knows("b", 0));
        assert_eq!(memory.admit("b", 1, 1), NonceVerdict::New);
        assert_eq!(memory.admit("c", 2, 2), NonceVerdict::Full);
        assert_eq!(memory.admit("b", 1, 2), NonceVerdict::Repeated, "what is known stays known when it is full");
        let later = NONCE_KEPT_MS + 1;
        assert_eq!(memory.admit("c", later, later), NonceVerdict::New);
    }

    #[test]
    fn a_nonce_is_remembered_while_its_timestamp_is_in_the_window() {
        // The sender's clock is ahead by almost all that is allowed.
        let (now, dated) = (1_700_000_000_000, 1_700_000_000_000 + TIMESTAMP_WINDOW_MS);
        let mut memory = NonceMemory::new(1_000_000);
        assert_eq!(memory.admit("a", dated, now), NonceVerdict::New);
        for (number, at) in (now..=dated + TIMESTAMP_WINDOW_MS).step_by(5_000).enumerate() {
            assert_eq!(memory.admit(&number.to_string(), at, at), NonceVerdict::New);
            assert_eq!(memory.admit("a", dated, at), NonceVerdict::Repeated, "forgotten {} ms later", at - now);
        }
        memory.forget_old(dated + NONCE_KEPT_MS + 1);
        assert!(!memory.knows("a", dated));
        memory.forget_old(dated + TIMESTAMP_WINDOW_MS + NONCE_KEPT_MS + 1);
        assert!(memory.is_empty());
    }

    #[test]
    fn a_key_never_shows_its_secret() {
        let key = Key { id: "k1".into(), secret: "hush".into() };
        assert!(!format!("{key:?}").contains("hush"));
    }
}
