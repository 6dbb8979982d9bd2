//! Who is alive, and which part of the work is this node's.

use super::Clock;
use crate::store::{ClusterStore, Member, NodeInfo, NodeState, Result, Share};
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, PoisonError};

/// What this node knows of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Nodes alive, in the order of their numbers; always holds this node.
    pub live: Vec<i64>,
    /// This node's part of the rows.
    pub share: Share,
    /// A heartbeat at or after this instant (ms) counts as alive.
    pub alive_since: i64,
    /// Whether this node has been in contact long enough to call anybody dead.
    pub settled: bool,
}

/// A cluster clock that goes back by more was set, ms.
const CLOCK_STEP_MS: i64 = 1_000;

/// When this node was in contact with the database.
#[derive(Debug, Default)]
struct Contact {
    /// Start of the present unbroken contact, ms.
    since: Option<i64>,
    /// Last success, ms.
    last: Option<i64>,
    /// Last success before the present contact, ms.
    before: Option<i64>,
}

/// This node's membership.
pub struct Membership {
    me: Member,
    store: Arc<dyn ClusterStore>,
    clock: Arc<dyn Clock>,
    offline_after_ms: i64,
    view: ArcSwap<View>,
    contact: Mutex<Contact>,
}

impl Membership {
    /// Joins the cluster.
    pub async fn join(
        store: Arc<dyn ClusterStore>,
        clock: Arc<dyn Clock>,
        info: &NodeInfo,
        offline_after_ms: i64,
    ) -> Result<Self> {
        let me = store.join(info).await?;
        let view = View {
            live: vec![me.id],
            share: Share { index: 0, total: 1 },
            alive_since: clock.now_ms() - offline_after_ms,
            settled: false,
        };
        let contact = Mutex::default();
        Ok(Self { me, store, clock, offline_after_ms, view: ArcSwap::from_pointee(view), contact })
    }

    /// This node's number.
    pub fn id(&self) -> i64 {
        self.me.id
    }

    /// The present view.
    pub fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// Renews the heartbeat; `false` when another process has taken this node's name: it must
    /// stop.
    pub async fn heartbeat(&self, queue_depth: u64) -> Result<bool> {
        self.store.heartbeat(&self.me, queue_depth).await
    }

    /// Looks who is alive; answers whether that changed.
    pub async fn look(&self) -> Result<bool> {
        let nodes = self.store.nodes().await?;
        let now = self.clock.now_ms();
        let (settled, alive_since) = self.contact_made(now);
        let before = self.view();
        let view = self.judge(&nodes, &before, settled, alive_since);
        let changed = view.live != before.live;
        if changed {
            tracing::info!(live = ?view.live, settled, "cluster membership changed");
        }
        self.view.store(Arc::new(view));
        Ok(changed)
    }

    /// Says good-bye, so that the others need not wait for the time-out.
    pub async fn leave(&self) -> Result<()> {
        self.store.leave(&self.me).await
    }

    fn contact_made(&self, now: i64) -> (bool, i64) {
        let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        // A gap is an outage or a pause, or the cluster clock was set forward; a step back is the
        // clock, too. In each case everybody's heartbeat looks wrong for a while.
        let broken =
            contact.last.is_none_or(|last| now - last > self.offline_after_ms / 2 || now < last - CLOCK_STEP_MS);
        if broken {
            contact.before = contact.last;
            contact.since = Some(now);
        }
        contact.last = Some(now);
        let settled = contact.since.is_some_and(|since| now - since >= self.offline_after_ms);
        let reference = if settled { now } else { contact.before.unwrap_or(now) };
        (settled, reference - self.offline_after_ms)
    }

    fn judge(&self, nodes: &[NodeState], before: &View, settled: bool, alive_since: i64) -> View {
        // A heartbeat from the future was written before the clock was set back.
        let alive_until = self.clock.now_ms() + self.offline_after_ms;
        let alive = |node: &&NodeState| {
            node.id == self.me.id
                || (node.left_at == 0
                    && ((alive_since..=alive_until).contains(&node.heartbeat_at)
                        || (!settled && before.live.contains(&node.id))))
        };
        let mut live: Vec<i64> = nodes.iter().filter(alive).map(|node| node.id).collect();
        if !live.contains(&self.me.id) {
            live.push(self.me.id);
        }
        live.sort_unstable();
        let index = live.iter().position(|id| *id == self.me.id).unwrap_or(0);
        let share = Share { index: u32::try_from(index).unwrap_or(0), total: u32::try_from(live.len()).unwrap_or(1) };
        View { live, share, alive_since, settled }
    }
}
