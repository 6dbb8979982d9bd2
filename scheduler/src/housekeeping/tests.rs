use super::*;
use crate::domain::NodeId;
use crate::store::{Beat, Member, NodeHeartbeat, NodeInfo, NodeState, Purged};
use async_trait::async_trait;
use std::sync::atomic::{AtomicI64, AtomicU64};

const NOW: i64 = 1_800_000_000_000;

/// The rate at which a cluster may write logs for good, a second: no less goes once it is old.
const LOGS_A_SECOND: u64 = 25_000;

/// Between two ticks, s.
const TICK_S: u64 = 60;

/// How much is old, and a clock that may jump.
#[derive(Default)]
struct Old {
    logs: AtomicU64,
    /// What was left beside logs that are gone.
    leftovers: AtomicU64,
    sessions: AtomicU64,
    /// Members and what belongs to them.
    members: AtomicU64,
    /// How far the database's clock is ahead of the machine's, ms.
    ahead_ms: AtomicI64,
    /// It jumps as soon as only so many logs are left.
    jumps_at: AtomicU64,
}

impl Old {
    fn of(logs: u64) -> Arc<Self> {
        let (sessions, members) = (AtomicU64::new(5), AtomicU64::new(5));
        Arc::new(Self { logs: AtomicU64::new(logs), sessions, members, ..Self::default() })
    }

    /// Logs, sessions, members.
    fn left(&self) -> (u64, u64, u64) {
        let of = |rows: &AtomicU64| rows.load(Ordering::Relaxed);
        (of(&self.logs), of(&self.sessions), of(&self.members))
    }

    fn jump(&self, ahead_ms: i64) {
        self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
    }
}

fn take(rows: &AtomicU64, limit: u64) -> u64 {
    let taken = rows.load(Ordering::Relaxed).min(limit);
    rows.fetch_sub(taken, Ordering::Relaxed);
    taken
}

#[async_trait]
impl HousekeepingStore for Old {
    async fn retentions(&self) -> Result<Vec<i32>> {
        Ok(vec![0])
    }
    async fn purge(&self, _: i64, limit: u64) -> Result<Purged> {
        let deleted = take(&self.logs, limit);
        if self.logs.load(Ordering::Relaxed) < self.jumps_at.load(Ordering::Relaxed) {
            self.jump(30 * DAY_MS);
        }
        let is_more = deleted >= limit || take(&self.leftovers, limit) >= limit;
        Ok(Purged { deleted, is_more })
    }
    async fn purge_of(&self, _: i32, _: i64, _: u64) -> Result<Purged> {
        unreachable!("all tenants keep their logs for the same time")
    }
    async fn purge_members(&self, _: i64, limit: u64) -> Result<u64> {
        Ok(take(&self.members, limit))
    }
    async fn purge_access(&self, _: i64, limit: u64) -> Result<u64> {
        Ok(take(&self.sessions, limit))
    }
}

#[async_trait]
impl ClusterStore for Old {
    async fn now_us(&self) -> Result<i64> {
        Ok(NOW * 1_000)
    }
    async fn join(&self, _: &NodeInfo) -> Result<Member> {
        Ok(Member { id: NodeId(1), incarnation: String::new(), ids_after: 0, lived_until: 0 })
    }
    async fn heartbeat(&self, _: &Member, _: &NodeHeartbeat) -> Result<Beat> {
        Ok(Beat::Renewed)
    }
    async fn nodes(&self) -> Result<Vec<NodeState>> {
        Ok(Vec::new())
    }
    async fn leave(&self, _: &Member) -> Result<()> {
        Ok(())
    }
    async fn take_lease(&self, lease: LeaseName, node: NodeId, _: Option<Fence>, ttl: i64) -> Result<Option<Fence>> {
        Ok(Some(Fence { lease, node, number: 1, ttl_ms: ttl }))
    }
    async fn release_lease(&self, _: Fence) -> Result<()> {
        Ok(())
    }
}

/// The database's clock, which jumps, beside the machine's.
struct Jumping(Arc<Old>);

impl Clock for Jumping {
    fn now_us(&self) -> i64 {
        (NOW + self.0.ahead_ms.load(Ordering::Relaxed)) * 1_000
    }

    fn here_us(&self) -> i64 {
        NOW * 1_000
    }

    fn local_us(&self) -> i64 {
        self.here_us()
    }
}

async fn housekeeper(store: &Arc<Old>) -> Housekeeper<Old> {
    let clock: Arc<dyn Clock> = Arc::new(Jumping(store.clone()));
    let membership = Membership::join(store.clone(), clock.clone(), &NodeInfo::default(), 10_000).await.unwrap();
    let settings = HousekeepingSettings { retain_ms: 7 * DAY_MS, lease_ttl_ms: 120_000 };
    Housekeeper::new(store.clone(), clock, Arc::new(membership), settings)
}

#[test]
fn a_clock_that_has_jumped_ahead_is_not_believed() {
    assert!(!has_jumped(NOW, NOW));
    assert!(!has_jumped(NOW + AHEAD_MAX_MS, NOW));
    assert!(has_jumped(NOW + 30 * DAY_MS, NOW));
    assert!(!has_jumped(NOW - 30 * DAY_MS, NOW), "what lags keeps more");
}

#[tokio::test]
async fn nothing_is_deleted_while_the_clock_has_jumped_ahead() {
    let store = Old::of(10 * BATCH);
    let housekeeper = housekeeper(&store).await;
    store.jump(30 * DAY_MS);
    assert_eq!(housekeeper.tick().await.unwrap(), 0);
    assert_eq!(store.left(), (10 * BATCH, 5, 5));
    store.jump(0);
    assert_eq!(housekeeper.tick().await.unwrap(), 10 * BATCH);
    assert_eq!(store.left(), (0, 0, 0));
}

/// It may be set at any moment: what has been deleted by then was old.
#[tokio::test]
async fn a_clock_that_jumps_ahead_meanwhile_stops_what_goes_on() {
    let store = Old::of(10 * BATCH);
    store.jumps_at.store(6 * BATCH, Ordering::Relaxed);
    let housekeeper = housekeeper(&store).await;
    assert_eq!(housekeeper.tick().await.unwrap(), 5 * BATCH);
    assert_eq!(store.left(), (5 * BATCH, 5, 5));
}

#[tokio::test]
async fn old_logs_go_at_the_rate_at_which_a_cluster_writes_them() {
    let store = Old::of(u64::MAX);
    let deleted = housekeeper(&store).await.tick().await.unwrap();
    assert!(deleted >= LOGS_A_SECOND * TICK_S, "{deleted} in a tick");
}

/// Whatever there was for years, or comes with each deploy of a fleet: it goes in one tick, as logs do.
#[tokio::test]
async fn leftovers_members_and_sessions_go_at_the_same_rate() {
    let store = Old::of(0);
    let rows = LOGS_A_SECOND * TICK_S;
    for kind in [&store.leftovers, &store.members, &store.sessions] {
        kind.store(rows, Ordering::Relaxed);
    }
    assert_eq!(housekeeper(&store).await.tick().await.unwrap(), 0);
    assert_eq!(store.left(), (0, 0, 0));
    assert_eq!(store.leftovers.load(Ordering::Relaxed), 0);
}
