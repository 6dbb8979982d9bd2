//! Who is alive, and which part of the work is this node's.

use super::Clock;
use crate::domain::NodeId;
use crate::domain::clock_spread::{CLOCK_SPREAD_MAX_MS, ClockSpread};
use crate::store::{Beat, ClusterStore, Member, NodeHeartbeat, NodeInfo, NodeState, Result, Share};
use arc_swap::ArcSwap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// This node's view of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Nodes alive, in the order of their numbers; always holds this node.
    pub live: Vec<NodeId>,
    /// When the process of each of them joined, by the database's clock, ms.
    pub joined: Vec<(NodeId, i64)>,
    /// This node's part of the rows.
    pub share: Share,
    /// A heartbeat at or after this instant (ms) counts as alive.
    pub alive_since: i64,
    /// Whether this node has been in contact long enough to declare others dead.
    pub settled: bool,
    /// Since when it has been in contact without a break, ms.
    pub contact_since: i64,
}

/// A contact that has been held long enough to declare others dead.
#[derive(Debug, Clone, Copy)]
pub struct SettledContact {
    /// The time by which it is judged, epoch ms.
    pub now: i64,
    /// Since when it has been held, by the same clock, epoch ms.
    pub since: i64,
}

/// A cluster clock that gains or loses more on this machine's own between two heartbeats was set, ms.
const CLOCK_STEP_MS: i64 = 1_000;

/// An instant by both clocks, ms.
#[derive(Debug, Clone, Copy)]
struct At {
    cluster: i64,
    /// Since any instant.
    local: i64,
}

impl At {
    fn now(clock: &dyn Clock) -> Self {
        Self { cluster: clock.now_ms(), local: clock.local_us().div_euclid(1_000) }
    }
}

/// When this node's heartbeat was last committed: reading alone is not contact, since a database
/// that accepts no writes accepts no heartbeats.
#[derive(Debug)]
struct Contact {
    /// Start of the present unbroken contact, cluster ms.
    since: i64,
    /// Last committed heartbeat.
    last: At,
    /// Last one before the present contact, cluster ms.
    before: Option<i64>,
    /// A gap between heartbeats longer than this breaks the contact, ms.
    gap_max: i64,
}

impl Contact {
    fn starting(now: At, offline_after_ms: i64) -> Self {
        Self { since: now.cluster, last: now, before: None, gap_max: offline_after_ms * 3 / 4 }
    }

    fn made(&mut self, now: At) {
        if !self.holds(now) {
            self.before = Some(self.last.cluster);
            self.since = now.cluster;
        }
        self.last = now;
    }

    /// A gap is an outage or a pause; where the two clocks disagree about it, the cluster clock was set. In each case all
    /// heartbeats look wrong for a while. A clock that is set back by as much as a pause was long hides it from one alone.
    fn holds(&self, now: At) -> bool {
        let passed = now.local - self.last.local;
        passed <= self.gap_max && (now.cluster - self.last.cluster - passed).abs() <= CLOCK_STEP_MS
    }

    /// Whether contact has held for `offline_after_ms`, and since when a heartbeat counts as alive.
    fn judge(&self, now: At, offline_after_ms: i64) -> (bool, i64) {
        let holds = self.holds(now);
        let settled = holds && now.cluster - self.since >= offline_after_ms;
        let reference = match (settled, holds) {
            (true, _) => now.cluster,
            (false, true) => self.before.unwrap_or(self.since),
            (false, false) => self.last.cluster,
        };
        (settled, reference.min(now.cluster) - offline_after_ms)
    }
}

/// This node's membership.
pub struct Membership {
    me: Member,
    store: Arc<dyn ClusterStore>,
    clock: Arc<dyn Clock>,
    offline_after_ms: i64,
    view: ArcSwap<View>,
    contact: Mutex<Contact>,
    /// When the last heartbeat that was committed was sent, local µs.
    sent_us: AtomicI64,
    /// When it was committed at the earliest, cluster ms.
    beaten_at: AtomicI64,
    /// What nodes have told of the database's clock: what it said before it was set back, ms.
    set_back_from: AtomicI64,
    clock_spread: Mutex<ClockSpread>,
}

impl Membership {
    /// Joins the cluster.
    pub async fn join(
        store: Arc<dyn ClusterStore>,
        clock: Arc<dyn Clock>,
        info: &NodeInfo,
        offline_after_ms: i64,
    ) -> Result<Self> {
        let sent_us = AtomicI64::new(clock.local_us());
        let beaten_at = AtomicI64::new(clock.now_ms());
        let info = NodeInfo { clock: clock.reading(), ..info.clone() };
        let me = store.join(&info).await?;
        let view = View {
            live: vec![me.id],
            joined: Vec::new(),
            share: Share { index: 0, total: 1 },
            alive_since: clock.now_ms() - offline_after_ms,
            settled: false,
            contact_since: clock.now_ms(),
        };
        let contact = Mutex::new(Contact::starting(At::now(&*clock), offline_after_ms));
        Ok(Self {
            me,
            store,
            clock,
            offline_after_ms,
            view: ArcSwap::from_pointee(view),
            contact,
            sent_us,
            beaten_at,
            set_back_from: AtomicI64::new(0),
            clock_spread: Mutex::default(),
        })
    }

    /// This node's number.
    pub fn id(&self) -> NodeId {
        self.me.id
    }

    /// Its ids are made after this instant (epoch ms), whatever the clock says.
    pub fn ids_after(&self) -> i64 {
        self.me.ids_after
    }

    /// Since when there have been nodes without a gap of more than `gap_max_ms`, as far as this one knows, epoch ms.
    pub fn attended_since(&self, gap_max_ms: i64) -> i64 {
        let since = self.view().contact_since;
        if since - self.me.lived_until <= gap_max_ms { i64::MIN } else { since }
    }

    /// What the database's clock said, ms, before it was last known to be set back; 0 for never. It only grows: until then,
    /// things were done whose times the clock says once more.
    fn set_back_from(&self) -> i64 {
        self.set_back_from.fetch_max(self.clock.set_back_from(), Ordering::Relaxed);
        self.set_back_from.load(Ordering::Relaxed)
    }

    /// The latest time, ms, that the database's clock is known to have said before this process, or before it was set back. What
    /// was due by then, or for as long after as leases lasted, may have been started.
    pub fn lived_until(&self) -> i64 {
        self.set_back_from().max(self.me.lived_until)
    }

    /// The present view.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Renews the heartbeat. A node whose heartbeat was not renewed must stop.
    pub async fn heartbeat(&self, queue_depth: u64) -> Result<Beat> {
        self.mind_the_clock();
        let beat = NodeHeartbeat {
            queue_depth,
            clock: self.clock.reading(),
            last: self.last_beat(),
            set_back_from: self.set_back_from(),
        };
        let sent = At::now(&*self.clock);
        let sent_us = self.clock.local_us();
        let done = self.store.heartbeat(&self.me, &beat).await?;
        self.sent_us.fetch_max(sent_us, Ordering::Relaxed);
        let answered = At::now(&*self.clock);
        self.contact().made(answered);
        // Where the clock was set meanwhile, the row may carry the time before.
        self.beaten_at.store(sent.cluster.min(answered.cluster), Ordering::Relaxed);
        Ok(done)
    }

    /// The last heartbeat may have been committed after the clock was set back, and before that was read here.
    fn mind_the_clock(&self) {
        self.beaten_at.fetch_min(self.clock.now_ms(), Ordering::Relaxed);
    }

    /// When this node's heartbeat was last committed, epoch ms: its row carries this instant or a later one.
    pub fn last_beat(&self) -> i64 {
        self.beaten_at.load(Ordering::Relaxed)
    }

    /// How old the heartbeat of a live node is at most, ms.
    pub fn offline_after_ms(&self) -> i64 {
        self.offline_after_ms
    }

    /// Whether this node's heartbeat was committed within one offline time-out, whatever the database's clock did since. Only
    /// then may it tell executors that the database is away and that they should go on.
    pub fn in_touch(&self) -> bool {
        self.clock.local_us() - self.sent_us.load(Ordering::Relaxed) <= self.offline_after_ms * 1_000
    }

    /// Whether it may declare others dead, now: the view may be from before a pause.
    pub fn is_settled(&self) -> bool {
        self.settled_contact().is_some()
    }

    /// The present contact, if it has been held long enough to declare others dead, now.
    pub fn settled_contact(&self) -> Option<SettledContact> {
        let (now, contact) = (At::now(&*self.clock), self.contact());
        let is_settled = self.view().settled && contact.judge(now, self.offline_after_ms).0;
        is_settled.then(|| SettledContact { now: now.cluster, since: contact.since })
    }

    /// Reads who is alive; returns whether that changed.
    pub async fn look(&self) -> Result<bool> {
        self.mind_the_clock();
        let nodes = self.store.nodes().await?;
        self.compare_clocks(&nodes);
        let told = nodes.iter().map(|node| node.set_back_from).max().unwrap_or(0);
        self.set_back_from.fetch_max(told, Ordering::Relaxed);
        let now = At::now(&*self.clock);
        let (settled, alive_since) = self.contact().judge(now, self.offline_after_ms);
        let before = self.view();
        // A heartbeat from the future was written before the clock was set back.
        let alive = alive_since..=now.cluster + self.offline_after_ms;
        let view = self.judge(&nodes, &before, settled, alive);
        let changed = view.live != before.live;
        if changed {
            tracing::info!(live = ?view.live, settled, "cluster membership changed");
        }
        self.view.store(Arc::new(view));
        Ok(changed)
    }

    /// By how much the clocks of the database's servers differ at least, ms; 0 if nothing shows that they do.
    pub fn database_clock_spread_ms(&self) -> i64 {
        self.clock_spread().least_ms()
    }

    /// Says when the clocks of the database's servers are found to differ by too much, and when no longer.
    fn compare_clocks(&self, nodes: &[NodeState]) {
        let mut spread = self.clock_spread();
        let was_too_much = spread.least_ms() > CLOCK_SPREAD_MAX_MS;
        spread.keep(|id| nodes.iter().any(|node| node.id == id));
        for node in nodes {
            spread.see(node.id, node.heartbeat_at, node.read_at);
        }
        let least_ms = spread.least_ms();
        drop(spread);
        match (was_too_much, least_ms > CLOCK_SPREAD_MAX_MS) {
            (false, true) => tracing::warn!(
                least_ms,
                "clocks of the database's servers differ, or one of them is set back again and again: runs come late or early \
                 by as much; let the servers keep time (NTP)"
            ),
            (true, false) => tracing::info!("nothing shows any longer that clocks of the database's servers differ"),
            _ => {}
        }
    }

    fn clock_spread(&self) -> std::sync::MutexGuard<'_, ClockSpread> {
        self.clock_spread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves the cluster, so that the others need not wait for the time-out.
    pub async fn leave(&self) -> Result<()> {
        self.store.leave(&self.me).await
    }

    fn contact(&self) -> std::sync::MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those live whose heartbeats are `alive` (epoch ms).
    fn judge(&self, nodes: &[NodeState], before: &View, settled: bool, alive: RangeInclusive<i64>) -> View {
        let is_live = |node: &&NodeState| {
            node.id == self.me.id
                || (node.left_at == 0
                    && (alive.contains(&node.heartbeat_at) || (!settled && before.live.contains(&node.id))))
        };
        let joined: Vec<(NodeId, i64)> = nodes.iter().filter(is_live).map(|node| (node.id, node.started_at)).collect();
        let mut live: Vec<NodeId> = joined.iter().map(|(id, _)| *id).collect();
        if !live.contains(&self.me.id) {
            live.push(self.me.id);
        }
        live.sort_unstable();
        let index = live.iter().position(|id| *id == self.me.id).unwrap_or(0);
        let share = Share { index: u32::try_from(index).unwrap_or(0), total: u32::try_from(live.len()).unwrap_or(1) };
        View { live, joined, share, alive_since: *alive.start(), settled, contact_since: self.contact().since }
    }
}

#[cfg(test)]
mod tests {
    use super::{At, Contact};

    /// When the database's clock is so far ahead of the local one.
    fn at(cluster: i64, ahead: i64) -> At {
        At { cluster, local: cluster - ahead }
    }

    #[test]
    fn after_an_outage_no_executor_expires_before_a_whole_time_out() {
        let mut contact = Contact::starting(at(0, 0), 10_000);
        for now in (3_000..=12_000).step_by(3_000) {
            contact.made(at(now, 0));
        }
        assert_eq!(contact.judge(at(12_500, 0), 10_000), (true, 2_500));
        // Out of contact: the last heartbeats that could have been seen count.
        assert_eq!(contact.judge(at(25_000, 0), 10_000), (false, 2_000));
        contact.made(at(32_000, 0));
        assert_eq!(contact.judge(at(33_000, 0), 10_000), (false, 2_000));
        for now in [35_000, 38_000, 41_000] {
            contact.made(at(now, 0));
            assert!(!contact.judge(at(now, 0), 10_000).0);
        }
        contact.made(at(42_500, 0));
        assert_eq!(contact.judge(at(42_500, 0), 10_000), (true, 32_500));
    }

    #[test]
    fn a_clock_that_is_set_back_breaks_contact() {
        let mut contact = Contact::starting(at(100_000, 0), 10_000);
        contact.made(at(103_000, 0));
        assert_eq!(contact.judge(at(50_000, -54_000), 10_000), (false, 40_000));
        contact.made(at(50_000, -54_000));
        assert_eq!(contact.judge(at(51_000, -54_000), 10_000), (false, 41_000));
    }

    #[test]
    fn a_clock_that_is_set_hides_no_pause_and_makes_none() {
        let mut contact = Contact::starting(at(100_000, 0), 10_000);
        for now in [103_000, 106_000, 109_000, 112_000] {
            contact.made(at(now, 0));
        }
        assert!(contact.judge(at(114_000, 0), 10_000).0);
        assert!(!contact.holds(at(115_000, -16_000)), "a pause of 19 s, set back by 16 s");
        assert!(!contact.holds(at(117_000, 2_000)), "set forward by 2 s");
        assert!(contact.holds(at(117_000, 900)), "servers may differ by so much");
    }
}
