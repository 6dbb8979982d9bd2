//! Keys of executors: found by id to check a signature, by app to make one.

use crate::store::{Result, Scope, SigningKey, SqlStore};
use arc_swap::ArcSwap;
use carillon_protocol::Code;
use carillon_protocol::sign::{self, NONCE_CHARS, NonceMemory, RequestParts, SignMethod, TIMESTAMP_WINDOW_MS};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nonces remembered at most: ten minutes of a thousand requests a second and more.
const NONCES_MAX: usize = 1_000_000;

/// Between two readings for unknown keys.
const MISS_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest secret that is accepted anywhere but on loopback, characters.
const SECRET_CHARS_MIN: usize = 16;

/// Secrets that are printed in somebody's documentation.
const KNOWN_SECRETS: [&str; 6] = ["default_token", "xxl-job", "changeme", "secret", "password", "horace-cron-job"];

#[derive(Default)]
struct Keys {
    by_id: HashMap<String, Arc<SigningKey>>,
    by_app: HashMap<Scope, Arc<SigningKey>>,
}

/// Every valid key, read from the database now and then. Reads never wait.
#[derive(Default)]
pub struct KeyRing {
    keys: ArcSwap<Keys>,
    /// When a miss last made the keys be read, so that unknown keys cost little.
    missed_at: Mutex<Option<Instant>>,
}

impl KeyRing {
    /// Reads the keys anew.
    pub async fn refresh(&self, store: &SqlStore) -> Result<()> {
        let mut keys = Keys::default();
        for key in store.signing_keys().await? {
            let key = Arc::new(key);
            keys.by_id.insert(key.key.id.clone(), Arc::clone(&key));
            keys.by_app.insert(key.scope, key);
        }
        self.keys.store(Arc::new(keys));
        Ok(())
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

    /// The key of that id.
    pub fn find(&self, id: &str) -> Option<Arc<SigningKey>> {
        self.keys.load().by_id.get(id).cloned()
    }

    /// A key of that app, to sign what goes to its executors.
    pub fn of_app(&self, scope: Scope) -> Option<Arc<SigningKey>> {
        self.keys.load().by_app.get(&scope).cloned()
    }

    /// Ids of keys whose secret is short or known to everybody.
    pub fn weak(&self) -> Vec<String> {
        let weak = |key: &&Arc<SigningKey>| {
            let secret = key.key.secret.as_str();
            secret.chars().count() < SECRET_CHARS_MIN || KNOWN_SECRETS.contains(&secret)
        };
        self.keys.load().by_id.values().filter(weak).map(|key| key.key.id.clone()).collect()
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

    /// Checks a request at `now` (cluster ms); answers whose key signed it. The nonce is spent
    /// only by a request whose signature is right, so that nobody else can spend it.
    pub fn check(&self, request: &SignedRequest<'_>, now: i64) -> std::result::Result<Arc<SigningKey>, Refusal> {
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
        // A key of another tenant or app is as good as none.
        let key = self
            .keys
            .find(request.key)
            .filter(|key| key.tenant == request.tenant && key.app == request.app)
            .ok_or_else(|| {
                refuse(Code::UnknownKey, "no such key for this tenant and app; see `carillon`'s apps for its key id")
            })?;
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
        if (timestamp - now).abs() > TIMESTAMP_WINDOW_MS {
            return Err(signed(
                Code::ClockSkew,
                format!(
                    "the timestamp is {} ms from the cluster clock; allowed are {TIMESTAMP_WINDOW_MS}",
                    timestamp - now
                ),
            ));
        }
        let mut nonces = self.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if !nonces.admit(request.nonce, now) {
            // Not signed: whoever repeats a request must not get a refusal that he could pass off
            // as the answer to the first.
            return Err(refuse(Code::Replayed, "the nonce was used before, or too many were used lately"));
        }
        Ok(key)
    }
}
