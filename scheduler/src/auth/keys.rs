//! Keys of executors: found by id to check a signature and to make one.

use super::secret::hash_of;
use crate::domain::{Owner, TenantId};
use crate::store::{EncryptionError, KeyStore, KeyUse, Result, SigningKey};
use arc_swap::ArcSwap;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Keys whose last use is remembered at most until it is written down; the use of more is not.
const USES_MAX: usize = 10_000;

/// Interval between two reads because of unknown keys.
const MISS_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest secret that is accepted anywhere but on loopback, characters.
pub const SECRET_CHARS_MIN: usize = 16;

/// Secrets that are printed in public documentation.
const KNOWN_SECRETS: [&str; 6] = ["default_token", "xxl-job", "changeme", "secret", "password", "horace-cron-job"];

/// All keys are read again after this long, whatever the audit says.
const READ_ALL_INTERVAL: Duration = Duration::from_mins(1);

/// Keys of more tenants at once are read as all are.
const TENANTS_MAX: usize = 500;

/// What the last look saw.
#[derive(Default)]
struct Looked {
    /// How many chains there are, and the sum of their lengths.
    sum: (i64, i64),
    /// Their lengths, by tenant.
    chains: HashMap<TenantId, i64>,
    read_all_at: Option<Instant>,
}

/// The keys as they were read.
#[derive(Default)]
struct Reading {
    /// Grows with each reading that is begun.
    number: u64,
    by_id: HashMap<String, Arc<SigningKey>>,
    /// Tokens by their hash: looking one up takes as long for a wrong one as for a right one. Several apps of a tenant may have
    /// the same.
    tokens: HashMap<String, Vec<Arc<SigningKey>>>,
    /// Tokens by whose they are.
    tokens_of: HashMap<Owner, Vec<Arc<SigningKey>>>,
}

impl Reading {
    fn of(number: u64, by_id: HashMap<String, Arc<SigningKey>>) -> Self {
        let mut tokens: HashMap<String, Vec<Arc<SigningKey>>> = HashMap::new();
        let mut tokens_of: HashMap<Owner, Vec<Arc<SigningKey>>> = HashMap::new();
        for key in by_id.values().filter(|key| key.is_token) {
            tokens.entry(hash_of(&key.key.secret)).or_default().push(Arc::clone(key));
            tokens_of.entry(key.owner).or_default().push(Arc::clone(key));
        }
        Self { number, by_id, tokens, tokens_of }
    }
}

/// Every valid key. Each second the ring looks at the audit's chains, without an entry in which no key changes, and reads the
/// keys of tenants whose chains have grown. Looking one up never waits.
#[derive(Default)]
pub struct KeyRing {
    keys: ArcSwap<Reading>,
    readings: AtomicU64,
    looked: Mutex<Looked>,
    /// When a miss last made the keys be read, so that unknown keys cost little.
    missed_at: Mutex<Option<Instant>>,
    /// Keys whose secret cannot be read, and of which that was said.
    reported: Mutex<HashSet<String>>,
    /// Last uses that are not written down yet, by key.
    uses: Mutex<HashMap<String, KeyUse>>,
}

impl KeyRing {
    /// Reads the keys again: what was committed before the call applies after it.
    pub async fn refresh(&self, store: &dyn KeyStore) -> Result<()> {
        let number = self.begin();
        let (keys, unreadable) = store.signing_keys().await?;
        self.take(number, keys);
        let is_unreadable = |id: &String| unreadable.iter().any(|(unreadable, _)| unreadable == id);
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).retain(is_unreadable);
        self.report(unreadable);
        Ok(())
    }

    /// Reads the keys of tenants of which something has changed since the last look; answers whether anything has, of whatever
    /// kind.
    pub async fn look(&self, store: &dyn KeyStore) -> Result<bool> {
        // Before the keys: what changes meanwhile is seen by the next look.
        let sum = store.chains_sum().await?;
        let is_due = {
            let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            let is_due = looked.read_all_at.is_none_or(|at| at.elapsed() >= READ_ALL_INTERVAL);
            if !is_due && looked.sum == sum {
                return Ok(false);
            }
            is_due
        };
        let chains = store.chains().await?;
        let changed = self.changed_since(&chains).filter(|_| !is_due);
        match &changed {
            Some(tenants) if tenants.len() <= TENANTS_MAX => {
                let number = self.begin();
                let (keys, unreadable) = store.signing_keys_of(tenants).await?;
                self.take_of(number, tenants, keys);
                self.report(unreadable);
            }
            _ => self.refresh(store).await?,
        }
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let read_all_at = if changed.is_some() { looked.read_all_at } else { Some(Instant::now()) };
        *looked = Looked { sum, chains, read_all_at };
        Ok(true)
    }

    /// Tenants whose chains have grown since the last look. None when they do not say enough: chains got shorter (the
    /// database was restored), or the platform's has grown, which speaks of any tenant.
    fn changed_since(&self, chains: &HashMap<TenantId, i64>) -> Option<Vec<TenantId>> {
        let looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = looked.chains.iter().all(|(id, seq)| chains.get(id).is_some_and(|now| now >= seq));
        let is_platform_same = looked.chains.get(&TenantId::NONE) == chains.get(&TenantId::NONE);
        let grown = chains.iter().filter(|(id, seq)| looked.chains.get(id) != Some(seq)).map(|(id, _)| *id);
        (goes_on && is_platform_same).then(|| grown.collect())
    }

    fn begin(&self) -> u64 {
        self.readings.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Says once of each key that cannot be used.
    fn report(&self, unreadable: Vec<(String, EncryptionError)>) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, error) in unreadable {
            if reported.insert(key.clone()) {
                tracing::error!(key, %error, "the secret of an executor key cannot be read; its executors are refused");
            }
        }
    }

    /// Takes what the reading of that number found.
    pub(crate) fn take(&self, number: u64, keys: Vec<SigningKey>) {
        let by_id = keys.into_iter().map(|key| (key.key.id.clone(), Arc::new(key))).collect();
        let reading = Arc::new(Reading::of(number, by_id));
        // One that began earlier, and is slower, must not bring a revoked key back.
        self.keys.rcu(|present| if present.number > number { Arc::clone(present) } else { Arc::clone(&reading) });
    }

    /// Takes what the reading of that number found of these tenants.
    fn take_of(&self, number: u64, tenants: &[TenantId], keys: Vec<SigningKey>) {
        let tenants: HashSet<TenantId> = tenants.iter().copied().collect();
        let keys: Vec<Arc<SigningKey>> = keys.into_iter().map(Arc::new).collect();
        self.keys.rcu(|present| {
            if present.number > number {
                return Arc::clone(present);
            }
            let others = present.by_id.iter().filter(|(_, key)| !tenants.contains(&key.owner.tenant_id));
            let others = others.map(|(id, key)| (id.clone(), Arc::clone(key)));
            let by_id = others.chain(keys.iter().map(|key| (key.key.id.clone(), Arc::clone(key)))).collect();
            Arc::new(Reading::of(number, by_id))
        });
    }

    /// Reads the keys again after a miss, at most once a second; returns whether it did.
    pub async fn refresh_soon(&self, store: &dyn KeyStore) -> bool {
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

    /// What `find` finds here, if need be once the keys have been read again: a key may have been made a moment ago, at another
    /// node.
    pub async fn find_soon<T>(&self, store: &dyn KeyStore, find: impl Fn(&Self) -> Option<T>) -> Option<T> {
        if let Some(found) = find(self) {
            return Some(found);
        }
        self.refresh_soon(store).await;
        find(self)
    }

    /// The key of that id that signs, if it is valid at `now` (cluster ms).
    pub fn find(&self, id: &str, now: i64) -> Option<Arc<SigningKey>> {
        self.keys.load().by_id.get(id).filter(|key| key.is_valid(now) && !key.is_token).cloned()
    }

    /// The token of that id, if it is valid at `now` (cluster ms).
    pub fn find_token(&self, id: &str, now: i64) -> Option<Arc<SigningKey>> {
        self.keys.load().by_id.get(id).filter(|key| key.is_valid(now) && key.is_token).cloned()
    }

    /// The apps' keys whose token this is, valid at `now` (cluster ms).
    pub fn tokens(&self, token: &str, now: i64) -> Vec<Arc<SigningKey>> {
        let keys = self.keys.load();
        let same = keys.tokens.get(&hash_of(token)).into_iter().flatten();
        same.filter(|key| key.is_valid(now)).cloned().collect()
    }

    /// Whether any app has a token.
    pub fn has_tokens(&self) -> bool {
        !self.keys.load().tokens_of.is_empty()
    }

    /// The app's token that is valid at `now` (cluster ms): of several the one that is valid for the longest time, and of those
    /// always the same.
    pub fn token_of(&self, owner: Owner, now: i64) -> Option<Arc<SigningKey>> {
        let keys = self.keys.load();
        let valid = keys.tokens_of.get(&owner).into_iter().flatten().filter(|key| key.is_valid(now));
        let until = |key: &SigningKey| if key.expires_at == 0 { i64::MAX } else { key.expires_at };
        valid.max_by(|one, other| (until(one), &one.key.id).cmp(&(until(other), &other.key.id))).cloned()
    }

    /// Whether this may be nobody's token.
    #[must_use]
    pub fn is_weak(secret: &str) -> bool {
        secret.chars().count() < SECRET_CHARS_MIN || KNOWN_SECRETS.contains(&secret)
    }

    /// Ids of keys whose secret is short or well known.
    pub fn weak(&self) -> Vec<String> {
        let weak = |key: &&Arc<SigningKey>| Self::is_weak(&key.key.secret);
        self.keys.load().by_id.values().filter(weak).map(|key| key.key.id.clone()).collect()
    }

    /// Writes down when keys were last used. What cannot be written is kept for the next time.
    pub async fn note_uses(&self, store: &dyn KeyStore) -> Result<()> {
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

    /// Notes that a key was used at `at`, cluster ms.
    pub fn used(&self, key: &SigningKey, at: i64) {
        let mut uses = self.uses();
        if let Some(used) = uses.get_mut(&key.key.id) {
            used.at = at;
        } else if uses.len() < USES_MAX {
            let id = key.key.id.clone();
            uses.insert(id.clone(), KeyUse { id, owner: key.owner, at });
        }
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<String, KeyUse>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
