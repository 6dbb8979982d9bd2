//! Keys of executors: found by id to check a signature and to make one.

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
const SECRET_CHARS_MIN: usize = 16;

/// Secrets that are printed in public documentation.
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
    /// Keys whose secret cannot be read, and of which that was said.
    reported: Mutex<HashSet<String>>,
    /// Last uses that are not written down yet, by key.
    uses: Mutex<HashMap<String, KeyUse>>,
}

impl KeyRing {
    /// Reads the keys again: what was committed before the call applies after it.
    pub async fn refresh(&self, store: &dyn KeyStore) -> Result<()> {
        let number = self.readings.fetch_add(1, Ordering::SeqCst) + 1;
        let (keys, unreadable) = store.signing_keys().await?;
        self.take(number, keys);
        self.report(unreadable);
        Ok(())
    }

    /// Says once of each key that cannot be used.
    fn report(&self, unreadable: Vec<(String, EncryptionError)>) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        reported.retain(|id| unreadable.iter().any(|(unreadable, _)| unreadable == id));
        for (key, error) in unreadable {
            if reported.insert(key.clone()) {
                tracing::error!(key, %error, "the secret of an executor key cannot be read; its executors are refused");
            }
        }
    }

    /// Takes what the reading of that number found.
    pub(crate) fn take(&self, number: u64, keys: Vec<SigningKey>) {
        let by_id = keys.into_iter().map(|key| (key.key.id.clone(), Arc::new(key))).collect();
        let reading = Arc::new(Reading { number, by_id });
        // One that began earlier, and is slower, must not bring a revoked key back.
        self.keys.rcu(|present| if present.number > number { Arc::clone(present) } else { Arc::clone(&reading) });
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

    /// The key of that id, if it is valid at `now` (cluster ms).
    pub fn find(&self, id: &str, now: i64) -> Option<Arc<SigningKey>> {
        self.keys.load().by_id.get(id).filter(|key| key.is_valid(now)).cloned()
    }

    /// Ids of keys whose secret is short or well known.
    pub fn weak(&self) -> Vec<String> {
        let weak = |key: &&Arc<SigningKey>| {
            let secret = key.key.secret.as_str();
            secret.chars().count() < SECRET_CHARS_MIN || KNOWN_SECRETS.contains(&secret)
        };
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

    pub(super) fn used(&self, key: &SigningKey, at: i64) {
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
