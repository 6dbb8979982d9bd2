//! Nodes, leases, the clock.

use super::history::Move;
use super::rows::NodeRow;
use super::{ModelStore, refuse};
use async_trait::async_trait;
use carillon::domain::NodeId;
use carillon::domain::clock_step::{Found, LeftBehind};
use carillon::domain::id_source::NODE_NUMBER_MAX;
use carillon::domain::silence::SILENCE_MS;
use carillon::store::{
    Beat, ClusterStore, Fence, LeaseName, Member, NodeHeartbeat, NodeInfo, NodeState, Result, StoreErrorKind,
};

/// A node that left stays listed for this long, ms.
const LISTED_MS: i64 = 3_600_000;

#[async_trait]
impl ClusterStore for ModelStore {
    async fn now_us(&self) -> Result<i64> {
        let time = self.shared.time.clone();
        self.call("read the clock", move |_, _| Ok(time.database_us())).await
    }

    async fn join(&self, node: &NodeInfo) -> Result<Member> {
        self.call("join", |state, at| {
            let now = state.clock(at);
            let same_name = state.nodes.values().find(|row| row.state.name == node.name).map(|row| row.state.id);
            let unused = || (1..=NODE_NUMBER_MAX).map(NodeId).find(|id| !state.nodes.contains_key(id));
            let Some(id) = same_name.or_else(unused) else {
                return refuse(StoreErrorKind::Invalid, "join", "all numbers are in use");
            };
            let last_seen = state.nodes.get(&id).map_or(0, |row| row.state.heartbeat_at.max(row.state.left_at));
            let of_name = state.nodes.values().find(|row| row.state.name == node.name);
            let left_behind = LeftBehind {
                last_seen,
                newest: state.nodes.values().map(|row| row.state.heartbeat_at.max(row.state.left_at)).max(),
                heard: state.executors.values().map(|row| row.executor.heartbeat_at).max(),
                told: state.nodes.values().map(|row| row.state.set_back_from).max(),
                readings: [of_name.and_then(|row| row.state.clock), node.clock],
                elsewhere: false,
            };
            let Found { ids_after, set_back_from, lived_until, silent_since } = left_behind.found_at(now);
            if let Some(from) = silent_since {
                state.silences.entry(from).or_insert(node.longest_silence.found(from, now));
                state.change_rules(at);
            }
            state.joined += 1;
            let incarnation = format!("incarnation-{}", state.joined);
            let row = NodeState {
                id,
                name: node.name.clone(),
                address: node.address.clone(),
                version: node.version.clone(),
                started_at: now,
                heartbeat_at: now,
                read_at: now,
                left_at: 0,
                queue_depth: 0,
                clock: node.clock,
                set_back_from,
            };
            state.nodes.insert(id, NodeRow { state: row, incarnation: incarnation.clone() });
            state.moves.push(Move { node: id, is_there: true, at });
            Ok(Member { id, incarnation, ids_after, lived_until })
        })
        .await
    }

    async fn heartbeat(&self, me: &Member, beat: &NodeHeartbeat) -> Result<Beat> {
        self.call("beat", |state, at| {
            let now = state.clock(at);
            let mine = state.nodes.get_mut(&me.id).filter(|row| row.incarnation == me.incarnation);
            let from = mine.as_ref().map_or(0, |row| row.state.heartbeat_at);
            let Some(row) = mine else { return Ok(Beat::Replaced) };
            if from < beat.last.min(now) - SILENCE_MS {
                return Ok(Beat::Restored { from });
            }
            row.state.heartbeat_at = now;
            row.state.left_at = 0;
            row.state.queue_depth = beat.queue_depth as i64;
            row.state.clock = beat.clock;
            row.state.set_back_from = row.state.set_back_from.max(beat.set_back_from);
            Ok(Beat::Renewed)
        })
        .await
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        self.call("list nodes", |state, at| {
            let now = state.clock(at);
            let listed = |row: &&NodeRow| row.state.left_at == 0 || row.state.left_at > now - LISTED_MS;
            let read = |row: &NodeRow| NodeState { read_at: now, ..row.state.clone() };
            Ok(state.nodes.values().filter(listed).map(read).collect())
        })
        .await
    }

    async fn leave(&self, me: &Member) -> Result<()> {
        self.call("leave", |state, at| {
            let now = state.clock(at);
            if let Some(row) = state.nodes.get_mut(&me.id).filter(|row| row.incarnation == me.incarnation) {
                row.state.left_at = now;
                row.state.queue_depth = 0;
                state.moves.push(Move { node: me.id, is_there: false, at });
            }
            Ok(())
        })
        .await
    }

    async fn take_lease(
        &self,
        lease: LeaseName,
        node: NodeId,
        held: Option<Fence>,
        ttl_ms: i64,
    ) -> Result<Option<Fence>> {
        self.call("take lease", |state, at| {
            let now = state.clock(at);
            if !state.knows(node, at) {
                return Ok(None);
            }
            let row = state.leases.entry(lease.as_str()).or_default();
            let mine = held.filter(|held| row.holder == node && row.fence == held.number && row.expires_at >= now);
            if mine.is_none() {
                // A life far beyond what is asked for was given by a clock that has been set back since.
                if row.expires_at >= now && row.expires_at <= now + 10 * ttl_ms {
                    return Ok(None);
                }
                row.fence += 1;
                row.holder = node;
            }
            row.expires_at = now + ttl_ms;
            Ok(Some(Fence { lease, node, number: row.fence, ttl_ms }))
        })
        .await
    }

    async fn release_lease(&self, fence: Fence) -> Result<()> {
        self.call("release lease", |state, _| {
            let row = state.leases.entry(fence.lease.as_str()).or_default();
            if row.holder == fence.node && row.fence == fence.number {
                row.expires_at = 0;
            }
            Ok(())
        })
        .await
    }
}
