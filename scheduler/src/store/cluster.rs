//! Nodes, heartbeats, leases, the clock.

use super::row::{Column, Read, from_row};
use super::sql::is_known;
use super::sql_store::retrying;
use super::statement::Sql;
use super::{
    Beat, ClockReading, ClusterStore, Fence, LeaseName, LeaseState, Member, NodeHeartbeat, NodeInfo, NodeState, Result,
    SqlStore, StoreError, StoreErrorKind,
};
use crate::domain::NodeId;
use crate::domain::clock_step::{AHEAD_MAX_MS, LeftBehind};
use crate::domain::id_source::NODE_NUMBER_MAX;
use crate::domain::silence::SILENCE_MS;
use async_trait::async_trait;
use carillon_migrations::Migrator;
use carillon_protocol::sign::random_hex;
use sea_orm::QueryResult;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

statements!(
    NOW_US = |_| "SELECT {now_us} AS now_us".into(),
    // Only as long as nodes of this release can work with the schema, and the row is not older than what this one has
    // committed. A clock that was set back makes rows older, too: then it is the measure.
    NODE_BEAT = |_| format!(
        "UPDATE node SET heartbeat_at = {{now}}, queue_depth = {{3}}, left_at = 0, clock_offset_ms = {{4}}, \
         clock_uncertainty_us = {{5}}, set_back_from = CASE WHEN set_back_from < {{7}} THEN {{7}} ELSE set_back_from END \
         WHERE id = {{1}} AND incarnation = {{2}} AND \
         heartbeat_at >= CASE WHEN {{6}} < {{now}} THEN {{6}} ELSE {{now}} END - {SILENCE_MS} AND \
         COALESCE((SELECT s.oldest FROM schema_support s WHERE s.id = 1), 0) <= {}",
        Migrator::number()
    ),
    NODES = |_| {
        "SELECT id, name, address, version, started_at, heartbeat_at, {now} AS read_at, left_at, queue_depth, \
     clock_offset_ms, clock_uncertainty_us, set_back_from FROM node WHERE left_at = 0 OR left_at > {now} - {1} ORDER BY id"
        .into()
    },
    LEASE_TAKE = |_| format!(
        "UPDATE lease SET fence = fence + 1, holder = {{2}}, expires_at = {{now}} + {{3}} WHERE name = {{1}} \
         AND (expires_at < {{now}} OR expires_at > {{now}} + 10 * {{3}}) AND {}",
        is_known(2)
    ),
    LEASE_RENEW = |_| format!(
        "UPDATE lease SET expires_at = {{now}} + {{4}} WHERE name = {{1}} AND holder = {{2}} AND fence = {{3}} \
         AND expires_at >= {{now}} AND {}",
        is_known(2)
    ),
    LEASE_READ = |_| "SELECT fence FROM lease WHERE name = {1} AND holder = {2} AND expires_at >= {now}".into(),
);

/// A node that left, or was not heard of, for this long gives its number to a new one, ms. Far
/// longer than anything that a paused process could still want to write.
const NUMBER_REST_MS: i64 = 3_600_000;

/// The node that last joined under a name, and has not left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameHolder {
    /// Where it listens, or did.
    pub address: String,
    /// Changes with each process.
    pub incarnation: String,
    /// When it joined, epoch ms.
    pub started_at: i64,
    /// Its last heartbeat, epoch ms.
    pub heartbeat_at: i64,
    /// How long ago that is, ms.
    pub silent_ms: i64,
    /// Whether it joined from the network stack that this process runs in.
    pub is_here: bool,
}

/// Characters at the beginning of an incarnation that name its network stack.
const STACK_CHARS: usize = 8;

/// Names the network stack that this process runs in, until the machine starts again; `None` where
/// the system does not tell.
fn network_stack() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/net").ok()?;
    let mut hasher = DefaultHasher::new();
    (boot.trim(), namespace).hash(&mut hasher);
    Some(format!("{:0STACK_CHARS$x}", hasher.finish() & 0xffff_ffff))
}

/// Whether these incarnations joined from the same network stack, for sure.
fn is_of_one_stack(one: &str, other: &str) -> bool {
    one.get(..STACK_CHARS).is_some_and(|stack| other.starts_with(stack))
}

#[async_trait]
impl ClusterStore for SqlStore {
    async fn now_us(&self) -> Result<i64> {
        let now = self.query("read the cluster clock", &NOW_US, []).await?;
        now.first().copied().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Other, "read the cluster clock", "the database answered no row")
        })
    }

    async fn join(&self, node: &NodeInfo) -> Result<Member> {
        let random = random_hex::<12>()
            .map_err(|error| StoreError::new(StoreErrorKind::Other, "join the cluster", error.to_string()))?;
        let incarnation = network_stack().unwrap_or_default() + &random;
        for tries in 0..20 {
            match retrying(|| self.join_once(node, &incarnation, tries)).await {
                // Another node took the same number a moment earlier.
                Err(error) if error.kind() == StoreErrorKind::Duplicate => {}
                done => return done,
            }
        }
        Err(StoreError::new(StoreErrorKind::Conflict, "join the cluster", "no free node number found in 20 tries"))
    }

    async fn heartbeat(&self, me: &Member, beat: &NodeHeartbeat) -> Result<Beat> {
        let depth = i64::try_from(beat.queue_depth).unwrap_or(i64::MAX);
        let values = [
            me.id.into(),
            me.incarnation.clone().into(),
            depth.into(),
            beat.clock.map(|clock| clock.offset_ms).into(),
            beat.clock.map(|clock| clock.uncertainty_us).into(),
            beat.last.into(),
            beat.set_back_from.into(),
        ];
        if self.execute("renew the node's heartbeat", &NODE_BEAT, values).await? == 1 {
            return Ok(Beat::Renewed);
        }
        let needed = self.oldest_schema().await?;
        if needed > Migrator::number() {
            return Ok(Beat::Outdated { needed });
        }
        // A process that takes the name joins later than this one was last heard of.
        let sql = sql!("SELECT heartbeat_at FROM node WHERE id = {1}");
        let found: Vec<i64> = self.query("read the node's own row", &sql, [me.id.into()]).await?;
        let from = found.first().copied().unwrap_or(0);
        if from >= beat.last - SILENCE_MS || self.others_lived_on(me.id, beat.last).await? {
            return Ok(Beat::Replaced);
        }
        Ok(Beat::Restored { from })
    }

    async fn nodes(&self) -> Result<Vec<NodeState>> {
        self.query("list the nodes", &NODES, [NUMBER_REST_MS.into()]).await
    }

    async fn leave(&self, me: &Member) -> Result<()> {
        let sql = sql!("UPDATE node SET left_at = {now}, queue_depth = 0 WHERE id = {1} AND incarnation = {2}");
        self.execute("leave the cluster", &sql, [me.id.into(), me.incarnation.clone().into()]).await.map(drop)
    }

    async fn take_lease(
        &self,
        lease: LeaseName,
        node: NodeId,
        held: Option<Fence>,
        ttl_ms: i64,
    ) -> Result<Option<Fence>> {
        const ACTION: &str = "take a lease";
        let name = || lease.as_str().into();
        if let Some(fence) = held {
            let values = [name(), node.into(), fence.number.into(), ttl_ms.into()];
            if self.execute(ACTION, &LEASE_RENEW, values).await? == 1 {
                return Ok(Some(fence));
            }
        }
        if self.execute(ACTION, &LEASE_TAKE, [name(), node.into(), ttl_ms.into()]).await? == 0 {
            return Ok(None);
        }
        let number = self.query(ACTION, &LEASE_READ, [name(), node.into()]).await?;
        Ok(number.first().map(|number| Fence { lease, node, number: *number, ttl_ms }))
    }

    async fn release_lease(&self, fence: Fence) -> Result<()> {
        let sql = sql!("UPDATE lease SET expires_at = 0 WHERE name = {1} AND holder = {2} AND fence = {3}");
        let values = [fence.lease.as_str().into(), fence.node.into(), fence.number.into()];
        self.execute("release a lease", &sql, values).await.map(drop)
    }
}

impl SqlStore {
    /// Whether another node was heard of after about `last` (ms) that had joined before: the database is not older than that, and
    /// what it lacks of this one was lost in a switch-over.
    async fn others_lived_on(&self, me: NodeId, last: i64) -> Result<bool> {
        let sql = sql!(format!(
            "SELECT COUNT(*) FROM node WHERE id <> {{1}} AND started_at < {{2}} AND heartbeat_at >= {{2}} - {SILENCE_MS} AND \
             heartbeat_at <= {{now}} + {AHEAD_MAX_MS}"
        ));
        let found: Vec<i64> = self.query("look for nodes that lived on", &sql, [me.into(), last.into()]).await?;
        Ok(found.first().is_some_and(|count| *count > 0))
    }

    /// Who joined under `name` last, unless they left.
    pub async fn name_holder(&self, name: &str) -> Result<Option<NameHolder>> {
        let now = self.now_us().await? / 1_000;
        let here = network_stack();
        let sql = Sql::new(
            self.backend,
            "SELECT address, incarnation, started_at, heartbeat_at FROM node WHERE name = {1} AND left_at = 0",
        );
        let found = self.query("read who holds the node's name", &sql, [name.into()]).await?.into_iter().next();
        Ok(found.map(|(address, incarnation, started_at, heartbeat_at): (String, String, i64, i64)| NameHolder {
            address,
            is_here: here.as_ref().is_some_and(|here| incarnation.starts_with(here)),
            incarnation,
            started_at,
            heartbeat_at,
            silent_ms: now - heartbeat_at,
        }))
    }

    /// Every lease, held or not, by name.
    pub async fn leases(&self) -> Result<Vec<LeaseState>> {
        let sql = sql!("SELECT name, holder, fence, expires_at FROM lease ORDER BY name");
        self.query("list the leases", &sql, []).await
    }

    /// The first free number, or after `tries` that others won, one of twice as many for each: they join at the same time.
    async fn join_once(&self, node: &NodeInfo, incarnation: &str, tries: u32) -> Result<Member> {
        let now = self.now_us().await? / 1_000;
        let tx = self.begin("join the cluster").await?;
        let read = sql!(
            "SELECT id, name, incarnation, heartbeat_at, left_at, clock_offset_ms, clock_uncertainty_us, set_back_from FROM node"
        );
        let known: Vec<KnownNode> = tx.query(&read, []).await?;
        let heard: Vec<Option<i64>> = tx.query(&sql!("SELECT MAX(heartbeat_at) FROM executor"), []).await?;
        let of_that_name = known.iter().find(|known| known.name == node.name).map(|known| known.id);
        let has_rested = |known: &&KnownNode| now - known.heartbeat_at.max(known.left_at) > NUMBER_REST_MS;
        let taken: HashSet<NodeId> = known.iter().map(|known| known.id).collect();
        let unused = (1..=NODE_NUMBER_MAX).map(NodeId).filter(|id| !taken.contains(id));
        let rested = known.iter().filter(has_rested).map(|known| known.id);
        let free: Vec<NodeId> = unused.chain(rested).take(1 << tries.min(10)).collect();
        let mut hasher = DefaultHasher::new();
        (incarnation, tries).hash(&mut hasher);
        let index = (hasher.finish() % free.len().max(1) as u64) as usize;
        let number = of_that_name.or_else(|| free.get(index).copied());
        let Some(id) = number else {
            let detail = format!("all {NODE_NUMBER_MAX} node numbers are in use");
            return Err(StoreError::new(StoreErrorKind::Invalid, "join the cluster", detail));
        };
        let before = known.iter().find(|known| known.id == id);
        let last_seen = before.map_or(0, |before| before.heartbeat_at.max(before.left_at));
        let same_name = before.filter(|before| before.name == node.name);
        let left_behind = LeftBehind {
            last_seen,
            newest: known.iter().map(|known| known.heartbeat_at.max(known.left_at)).max(),
            heard: heard.into_iter().flatten().max(),
            told: known.iter().map(|known| known.set_back_from).max(),
            readings: [same_name.and_then(|before| before.clock), node.clock],
            elsewhere: before.is_some_and(|before| !is_of_one_stack(&before.incarnation, incarnation)),
        };
        let found = left_behind.found_at(now);
        if let Some(from) = found.silent_since {
            self.note_silence(&tx, &node.longest_silence.found(from, now)).await?;
        }
        let template = if before.is_some() {
            "UPDATE node SET name = {2}, address = {3}, incarnation = {4}, version = {5}, started_at = {now}, \
             heartbeat_at = {now}, left_at = 0, queue_depth = 0, clock_offset_ms = {6}, clock_uncertainty_us = {7}, \
             set_back_from = {8} WHERE id = {1} AND incarnation = {9} AND (name = {2} OR heartbeat_at = {10})"
        } else {
            "INSERT INTO node (id, name, address, incarnation, version, started_at, heartbeat_at, left_at, queue_depth, \
             clock_offset_ms, clock_uncertainty_us, set_back_from) \
             VALUES ({1}, {2}, {3}, {4}, {5}, {now}, {now}, 0, 0, {6}, {7}, {8})"
        };
        let mut values = vec![
            id.into(),
            node.name.clone().into(),
            node.address.clone().into(),
            incarnation.into(),
            node.version.clone().into(),
            node.clock.map(|clock| clock.offset_ms).into(),
            node.clock.map(|clock| clock.uncertainty_us).into(),
            found.set_back_from.into(),
        ];
        values.extend(before.into_iter().flat_map(|old| [old.incarnation.clone().into(), old.heartbeat_at.into()]));
        if tx.execute_raw(Sql::new(self.backend, template).bind_all(values)).await? == 0 {
            // Another process has taken it since it was read, or the one that rested goes on.
            tx.rollback().await?;
            return Err(StoreError::new(
                StoreErrorKind::Duplicate,
                "join the cluster",
                "the number was taken just now",
            ));
        }
        tx.commit().await?;
        Ok(Member {
            id,
            incarnation: incarnation.to_owned(),
            ids_after: found.ids_after,
            lived_until: found.lived_until,
        })
    }
}

/// Who has a node number.
struct KnownNode {
    id: NodeId,
    name: String,
    incarnation: String,
    heartbeat_at: i64,
    left_at: i64,
    clock: Option<ClockReading>,
    set_back_from: i64,
}

from_row!(KnownNode { id, name, incarnation, heartbeat_at, left_at, clock = clock, set_back_from });

from_row!(NodeState {
    id,
    name,
    address,
    version,
    started_at,
    heartbeat_at,
    read_at,
    left_at,
    queue_depth,
    clock = clock,
    set_back_from,
});

from_row!(LeaseState { name, holder, fence, expires_at });

fn clock(row: &QueryResult) -> Read<Option<ClockReading>> {
    let offset_ms = i64::read(row, "clock_offset_ms")?;
    let uncertainty_us = i64::read(row, "clock_uncertainty_us")?;
    Ok(offset_ms.zip(uncertainty_us).map(|(offset_ms, uncertainty_us)| ClockReading { offset_ms, uncertainty_us }))
}
