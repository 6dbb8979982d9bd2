//! Keys of executors: found by id to check a signature and to make one.

use crate::store::{KeyUse, Result, SigningKey, SqlStore};
use arc_swap::ArcSwap;
use carillon_protocol::Code;
use carillon_protocol::sign::{self, NONCE_CHARS, NonceMemory, RequestParts, SignMethod, TIMESTAMP_WINDOW_MS};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Nonces remembered at most: ten minutes of a thousand requests a second and more.
const NONCES_MAX: usize = 1_000_000;

/// Keys whose last use is remembered at most until it is written down; the use of more is not.
const USES_MAX: usize = 10_000;

/// Between two readings for unknown keys.
const MISS_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest secret that is accepted anywhere but on loopback, characters.
const SECRET_CHARS_MIN: usize = 16;

/// Secrets that are printed in somebody's documentation.
const KNOWN_SECRETS: [&str; 6] = ["default_token", "xxl-job", "changeme", "secret", "password", "horace-cron-job"];

/// The keys as they were read once.
#[derive(Default)]
struct Reading {
    /// Grows with each reading that is begun.
    number: u64,
    by_id: HashMap<String, Arc<SigningKey>>,
}

/// Every valid key, read from the database every second. Looking one up never waits.
#[derive(Default)]
pub struct KeyRing {
    keys: ArcSwap<Reading>,
    readings: AtomicU64,
    /// When a miss last made the keys be read, so that unknown keys cost little.
    missed_at: Mutex<Option<Instant>>,
    /// Last uses that are not written down yet, by key.
    uses: Mutex<HashMap<String, KeyUse>>,
}

impl KeyRing {
    /// Reads the keys anew: what was committed before the call counts after it.
    pub async fn refresh(&self, store: &SqlStore) -> Result<()> {
        let number = self.readings.fetch_add(1, Ordering::SeqCst) + 1;
        self.take(number, store.signing_keys().await?);
        Ok(())
    }

    /// Takes what the reading of that number found.
    pub(crate) fn take(&self, number: u64, keys: Vec<SigningKey>) {
        let by_id = keys.into_iter().map(|key| (key.key.id.clone(), Arc::new(key))).collect();
        let reading = Arc::new(Reading { number, by_id });
        // One that began earlier, and is slower, must not bring a revoked key back.
        self.keys.rcu(|present| if present.number > number { Arc::clone(present) } else { Arc::clone(&reading) });
    }

    /// Reads the keys anew after a miss, at most once a second; answers whether it did.
    pub async fn refresh_soon(&self, store: &SqlStore) -> bool {
        {
            let mut missed_at = self.missed_at.lock().unwrap_or_else(PoisonError::into_inner);
            if missed_at.is_some_and(|at| at.elapsed() < MISS_INTERVAL) {
                return false;
            }
            *missed_at = Some(Instant::now());
        }
        match self.refresh(store).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "keys not read after a miss");
                false
            }
        }
    }

    /// The key of that id, if it is valid at `now` (cluster ms).
    pub fn find(&self, id: &str, now: i64) -> Option<Arc<SigningKey>> {
        self.keys.load().by_id.get(id).filter(|key| key.is_valid(now)).cloned()
    }

    /// Ids of keys whose secret is short or known to everybody.
    pub fn weak(&self) -> Vec<String> {
        let weak = |key: &&Arc<SigningKey>| {
            let secret = key.key.secret.as_str();
            secret.chars().count() < SECRET_CHARS_MIN || KNOWN_SECRETS.contains(&secret)
        };
        self.keys.load().by_id.values().filter(weak).map(|key| key.key.id.clone()).collect()
    }

    /// Writes down when keys were last used. What cannot be written is kept for the next time.
    pub async fn note_uses(&self, store: &SqlStore) -> Result<()> {
        let uses: Vec<KeyUse> = std::mem::take(&mut *self.uses()).into_values().collect();
        if uses.is_empty() {
            return Ok(());
        }
        let noted = store.note_key_uses(&uses).await;
        if noted.is_err() {
            let mut newer = self.uses();
            for used in uses {
                newer.entry(used.id.clone()).or_insert(used);
            }
        }
        noted
    }

    fn used(&self, key: &SigningKey, at: i64) {
        let mut uses = self.uses();
        if let Some(used) = uses.get_mut(&key.key.id) {
            used.at = at;
        } else if uses.len() < USES_MAX {
            let id = key.key.id.clone();
            uses.insert(id.clone(), KeyUse { id, scope: key.scope, at });
        }
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<String, KeyUse>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a signature covers, as it came in.
#[derive(Debug, Clone, Copy)]
pub struct SignedRequest<'a> {
    /// Upper case.
    pub method: &'a str,
    /// Path as sent.
    pub path: &'a str,
    /// Raw query.
    pub query: &'a str,
    /// `X-Carillon-Tenant`, empty when missing.
    pub tenant: &'a str,
    /// `X-Carillon-App`.
    pub app: &'a str,
    /// `X-Carillon-Key`.
    pub key: &'a str,
    /// `X-Carillon-Timestamp`.
    pub timestamp: &'a str,
    /// `X-Carillon-Nonce`.
    pub nonce: &'a str,
    /// `X-Carillon-Sign-Method`.
    pub sign_method: &'a str,
    /// `X-Carillon-Sign`.
    pub sign: &'a str,
    /// Raw body.
    pub body: &'a [u8],
}

/// Who a request is from.
#[derive(Debug, Clone)]
pub struct Signed {
    /// The key that signed it.
    pub key: Arc<SigningKey>,
    /// When, by the caller's clock, ms.
    pub at: i64,
}

/// Why a request is refused: the class of fault, never the right signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Class of fault.
    pub code: Code,
    /// For people.
    pub message: String,
    /// The key it was checked with, where there is one: the refusal is then signed.
    pub key: Option<String>,
}

/// Checks signatures of executors.
pub struct Verifier {
    keys: Arc<KeyRing>,
    nonces: Mutex<NonceMemory>,
}

impl Verifier {
    /// Over the node's keys.
    pub fn new(keys: Arc<KeyRing>) -> Self {
        Self { keys, nonces: Mutex::new(NonceMemory::new(NONCES_MAX)) }
    }

    /// Checks a request at `now` (cluster ms); answers who signed it. The nonce is spent
    /// only by a request whose signature is right, so that nobody else can spend it.
    pub fn check(&self, request: &SignedRequest<'_>, now: i64) -> std::result::Result<Signed, Refusal> {
        let refuse = |code, message: &str| Refusal { code, message: message.to_owned(), key: None };
        let fields = [
            request.tenant,
            request.app,
            request.key,
            request.timestamp,
            request.nonce,
            request.sign_method,
            request.sign,
        ];
        if fields.iter().any(|field| field.is_empty()) {
            return Err(refuse(Code::Unsigned, "the request is not signed: an X-Carillon-* header is missing"));
        }
        let timestamp: i64 = request
            .timestamp
            .parse()
            .map_err(|_| refuse(Code::BadRequest, "X-Carillon-Timestamp must be epoch milliseconds"))?;
        let method = SignMethod::parse(request.sign_method)
            .ok_or_else(|| refuse(Code::SignMethod, "X-Carillon-Sign-Method must be MD5 or HMAC-SHA256"))?;
        // The nonce stands in the signed text: nothing that could end its field.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !NONCE_CHARS.contains(&request.nonce.len()) || !request.nonce.chars().all(plain) {
            return Err(refuse(Code::BadRequest, "X-Carillon-Nonce must have 16 to 64 plain characters"));
        }
        // A key of another tenant or app, or one that has ended, is as good as none.
        let key = self
            .keys
            .find(request.key, now)
            .filter(|key| key.tenant == request.tenant && key.app == request.app)
            .ok_or_else(|| {
                refuse(
                    Code::UnknownKey,
                    "no valid key of this tenant and app; see the app's keys: it may have been revoked",
                )
            })?;
        if let Some(demanded) = key.demanded.filter(|demanded| *demanded != method) {
            let (demanded, method) = (demanded.as_str(), method.as_str());
            let message =
                format!("this app demands signatures by {demanded}, not {method}: set its executors' sign method");
            return Err(refuse(Code::SignMethod, &message));
        }
        let parts = RequestParts {
            method: request.method,
            path: request.path,
            query: request.query,
            tenant: request.tenant,
            app: request.app,
            key: request.key,
            timestamp,
            nonce: request.nonce,
        };
        if !sign::matches(&parts.sign(method, &key.key.secret, request.body), request.sign) {
            return Err(refuse(Code::WrongSignature, "the signature does not match; check the key's secret"));
        }
        let signed = |code, message: String| Refusal { code, message, key: Some(key.key.id.clone()) };
        if timestamp.saturating_sub(now).unsigned_abs() > TIMESTAMP_WINDOW_MS.unsigned_abs() {
            return Err(signed(
                Code::ClockSkew,
                format!(
                    "the timestamp is {} ms from the cluster clock; allowed are {TIMESTAMP_WINDOW_MS}",
                    timestamp.saturating_sub(now)
                ),
            ));
        }
        let is_new = self.nonces.lock().unwrap_or_else(PoisonError::into_inner).admit(request.nonce, now);
        if !is_new {
            // Not signed: whoever repeats a request must not get a refusal that he could pass off
            // as the answer to the first.
            return Err(refuse(Code::Replayed, "the nonce was used before, or too many were used lately"));
        }
        self.keys.used(&key, now);
        Ok(Signed { key, at: timestamp })
    }
}
