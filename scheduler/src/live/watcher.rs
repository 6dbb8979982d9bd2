//! Polls for changes while there are listeners, with a constant number of statements, however many there are. The rows
//! read are bounded, except for one small row per tenant when a caller listens to all.

use super::streams::{Change, Streams};
use crate::domain::TenantId;
use crate::domain::access::PLATFORM;
use crate::domain::change_feed::{ChangeKind, ChangeKinds, ChangeScope, WatchedTenants};
use crate::engine::Engine;
use crate::store::{ClusterStore as _, DIGEST_TENANTS, Digest, Result, SqlStore};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Polling interval for executors and nodes, whose load changes all the time.
const CLUSTER_EVERY: Duration = Duration::from_millis(1_900);

/// Polling interval for the progress of statistics.
const STATISTICS_EVERY: Duration = Duration::from_millis(4_900);

/// Tenants reported in one round; the others follow in the next.
const CHANGES_MAX: usize = 1_000;

/// Names of tenants that are remembered.
const NAMES_MAX: usize = 10_000;

/// Looks at the database for all streams of a node.
pub struct Watcher {
    engine: Arc<Engine<SqlStore>>,
    store: SqlStore,
    streams: Arc<Streams>,
    /// Taken out for the time of a look.
    seen: Mutex<Seen>,
}

/// What the looks before have seen.
#[derive(Default)]
struct Seen {
    /// Whose changes the last look looked for; nothing before the first.
    watched_tenants: Option<WatchedTenants>,
    /// Where each chain of the audit ended.
    chains: HashMap<TenantId, i64>,
    /// The newest logs of tenants that are asked for by themselves.
    logs: HashMap<TenantId, Digest>,
    /// The next of these to look at comes after this one.
    logs_after: TenantId,
    /// The newest logs of all tenants, when a caller listens to all.
    logs_of_all: Option<HashMap<TenantId, Digest>>,
    /// What executors have.
    out: Option<HashMap<TenantId, Digest>>,
    executors: Option<HashMap<TenantId, u64>>,
    nodes: Option<u64>,
    cluster_at: Option<Instant>,
    /// ms
    statistics_until: Option<i64>,
    statistics_at: Option<Instant>,
    names: HashMap<TenantId, Arc<str>>,
    /// What is still to be told.
    changes: BTreeMap<ChangeScope, ChangeKinds>,
}

impl Seen {
    fn changed(&mut self, scope: ChangeScope, kinds: ChangeKinds) {
        let all = self.changes.entry(scope).or_default();
        *all = all.either(kinds);
    }

    fn changed_one(&mut self, scope: ChangeScope, kind: ChangeKind) {
        self.changed(scope, [kind].into_iter().collect());
    }
}

impl Watcher {
    /// For these streams.
    #[must_use]
    pub fn new(engine: Arc<Engine<SqlStore>>, store: SqlStore, streams: Arc<Streams>) -> Self {
        Self { engine, store, streams, seen: Mutex::default() }
    }

    /// Told when there is a first stream.
    #[must_use]
    pub fn wake(&self) -> Arc<tokio::sync::Notify> {
        self.streams.opened.clone()
    }

    /// Polls and informs the streams; does nothing without listeners.
    pub async fn tick(&self) -> Result<()> {
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        let Some((number, watched_tenants)) = self.streams.watched() else { return Ok(()) };
        let looked = self.look(&mut seen, &watched_tenants).await;
        // What was found before the database went away is told as well.
        let told = self.tell(&mut seen).await;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        looked?;
        told?;
        self.streams.cover(number, watched_tenants);
        Ok(())
    }

    async fn look(&self, seen: &mut Seen, watched_tenants: &WatchedTenants) -> Result<()> {
        let now = self.engine.clock.now_ms();
        self.look_at_the_audit(seen, watched_tenants).await?;
        self.look_at_logs(seen, watched_tenants, now).await?;
        if is_time(&mut seen.cluster_at, CLUSTER_EVERY) {
            self.look_at_executors(seen);
            self.look_at_nodes(seen).await?;
        }
        if is_time(&mut seen.statistics_at, STATISTICS_EVERY) {
            let until = self.store.statistics_until().await?;
            if seen.statistics_until.replace(until).is_some_and(|before| before != until) {
                seen.changed_one(ChangeScope::Everywhere, ChangeKind::Statistics);
            }
        }
        seen.watched_tenants = Some(watched_tenants.clone());
        Ok(())
    }

    /// Every change of what people manage is in the audit, committed with it.
    async fn look_at_the_audit(&self, seen: &mut Seen, watched_tenants: &WatchedTenants) -> Result<()> {
        let ends = match watched_tenants {
            WatchedTenants::All => self.store.chain_ends(None).await?,
            WatchedTenants::Of(tenants) => {
                let chains: Vec<TenantId> = tenants.iter().copied().chain([PLATFORM]).collect();
                self.store.chain_ends(Some(&chains)).await?
            }
        };
        let was_watched = |tenant: &TenantId| match &seen.watched_tenants {
            None => false,
            Some(WatchedTenants::All) => true,
            Some(WatchedTenants::Of(tenants)) => *tenant == PLATFORM || tenants.contains(tenant),
        };
        let longer = |(tenant, end): (&TenantId, &i64)| {
            let before = seen.chains.get(tenant).copied().unwrap_or(0);
            (was_watched(tenant) && *end > before).then_some((*tenant, before))
        };
        let longer: Vec<(TenantId, i64)> = ends.iter().filter_map(longer).collect();
        let changed = self.store.audited_since(&longer).await?;
        seen.chains = ends;
        for (tenant, kinds) in changed {
            seen.changed(ChangeScope::of(tenant), kinds);
        }
        Ok(())
    }

    async fn look_at_logs(&self, seen: &mut Seen, watched_tenants: &WatchedTenants, now: i64) -> Result<()> {
        let named = self.streams.named();
        seen.logs.retain(|tenant, _| named.contains(tenant));
        let next = turn(&named, seen.logs_after);
        if let Some(last) = next.last() {
            let mut found = self.store.log_digests(&next, now).await?;
            seen.logs_after = *last;
            for tenant in next {
                let digest = found.remove(&tenant).unwrap_or_default();
                let before = seen.logs.insert(tenant, digest);
                if before.is_some_and(|before| before != digest) {
                    seen.changed_one(ChangeScope::of(tenant), ChangeKind::TaskLogs);
                }
            }
        }
        let all = match watched_tenants {
            WatchedTenants::Of(_) => None,
            WatchedTenants::All => Some(self.store.log_digests_of_all(now).await?),
        };
        if let (Some(before), Some(all)) = (std::mem::replace(&mut seen.logs_of_all, all.clone()), all) {
            // One that is gone from the newest is no change of it.
            let others = all.into_iter().filter(|(tenant, digest)| before.get(tenant) != Some(digest));
            others.for_each(|(tenant, _)| seen.changed_one(ChangeScope::of(tenant), ChangeKind::TaskLogs));
        }
        let out = self.store.digests_out(now).await?;
        if let Some(before) = seen.out.replace(out.clone()) {
            for tenant in differ(&before, &out) {
                seen.changed_one(ChangeScope::of(tenant), ChangeKind::TaskLogs);
            }
        }
        Ok(())
    }

    /// As this node last read them.
    fn look_at_executors(&self, seen: &mut Seen) {
        let mut now: HashMap<TenantId, u64> = HashMap::new();
        for e in self.engine.registry.everyone() {
            let load = (e.capacity, e.held, e.running);
            let hash = hash_of(&(e.id, e.draining, e.disabled, e.weight, e.described_at, load));
            // In whichever order.
            *now.entry(e.tenant_id).or_default() ^= hash;
        }
        if let Some(before) = seen.executors.replace(now.clone()) {
            for tenant in differ(&before, &now) {
                seen.changed_one(ChangeScope::of(tenant), ChangeKind::Executors);
            }
        }
    }

    async fn look_at_nodes(&self, seen: &mut Seen) -> Result<()> {
        let live = self.engine.membership.view().live.clone();
        let mut now = hash_of(&live);
        for node in self.store.nodes().await? {
            now ^= hash_of(&(node.id, node.name, node.version, node.started_at, node.left_at, node.queue_depth));
        }
        if seen.nodes.replace(now).is_some_and(|before| before != now) {
            seen.changed_one(ChangeScope::Platform, ChangeKind::Nodes);
        }
        Ok(())
    }

    async fn tell(&self, seen: &mut Seen) -> Result<()> {
        let tenant = |scope: &ChangeScope| match scope {
            ChangeScope::Tenant(id) => Some(*id),
            ChangeScope::Platform | ChangeScope::Everywhere => None,
        };
        let scopes: Vec<ChangeScope> = seen.changes.keys().take(CHANGES_MAX).copied().collect();
        let unknown: Vec<TenantId> =
            scopes.iter().filter_map(tenant).filter(|id| !seen.names.contains_key(id)).collect();
        if !unknown.is_empty() {
            if seen.names.len() > NAMES_MAX {
                seen.names.clear();
            }
            let names = self.store.tenant_names(&scopes.iter().filter_map(tenant).collect::<Vec<_>>()).await?;
            seen.names.extend(names.into_iter().map(|(id, name)| (id, name.into())));
        }
        let mut changes = Vec::with_capacity(scopes.len());
        for scope in scopes {
            if let Some(kinds) = seen.changes.remove(&scope) {
                let tenant = tenant(&scope).and_then(|id| seen.names.get(&id).cloned());
                changes.push(Change { scope, tenant, kinds });
            }
        }
        self.streams.tell(changes);
        Ok(())
    }
}

/// Those whose turn it is: the next ones after `after`, round and round.
fn turn(of: &BTreeSet<TenantId>, after: TenantId) -> Vec<TenantId> {
    let beginning = of.range(..=after);
    let rest = after.0.checked_add(1).map(|next| of.range(TenantId(next)..));
    rest.into_iter().flatten().chain(beginning).take(DIGEST_TENANTS).copied().collect()
}

/// Tenants of which two looks do not say the same.
fn differ<T: PartialEq>(before: &HashMap<TenantId, T>, now: &HashMap<TenantId, T>) -> Vec<TenantId> {
    let gone = before.keys().filter(|tenant| !now.contains_key(tenant));
    let other = now.iter().filter(|(tenant, value)| before.get(tenant) != Some(value)).map(|(tenant, _)| tenant);
    gone.chain(other).copied().collect()
}

/// Whether it is time again; notes when it was.
fn is_time(last: &mut Option<Instant>, period: Duration) -> bool {
    let is_time = last.is_none_or(|last| last.elapsed() >= period);
    if is_time {
        *last = Some(Instant::now());
    }
    is_time
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tenant_has_its_turn() {
        let turn =
            |of: &BTreeSet<TenantId>, after| super::turn(of, TenantId(after)).iter().map(|id| id.0).collect::<Vec<_>>();
        let few: BTreeSet<TenantId> = (1..=3).map(TenantId).collect();
        assert_eq!(turn(&few, 0), [1, 2, 3]);
        assert_eq!(turn(&few, 2), [3, 1, 2]);
        let many: BTreeSet<TenantId> = (1..=40).map(TenantId).collect();
        let (mut after, mut seen) = (0, BTreeSet::new());
        for _ in 0..3 {
            let next = turn(&many, after);
            assert_eq!(next.len(), DIGEST_TENANTS);
            after = *next.last().unwrap();
            seen.extend(next.into_iter().map(TenantId));
        }
        assert_eq!(seen, many);
        assert_eq!(turn(&BTreeSet::new(), 7), [0; 0]);
    }

    #[test]
    fn added_removed_and_changed_rows_differ() {
        let mut tenants = differ(
            &[(1, 1), (2, 1), (3, 1)].map(|(id, digest)| (TenantId(id), digest)).into(),
            &[(1, 1), (3, 2), (4, 1)].map(|(id, digest)| (TenantId(id), digest)).into(),
        );
        tenants.sort_unstable();
        assert_eq!(tenants, [2, 3, 4].map(TenantId));
    }
}
