//! What `cluster/` asks: members, leases, rules.

pub use crate::domain::ClockReading;
use crate::domain::audit::Actor;
use crate::domain::rules::{RuleChange, Rules};
use crate::domain::silence::{LongestSilence, Silence};
use crate::domain::{NodeId, TenantId, UserId};
use crate::store::error::Result;
use async_trait::async_trait;

/// This process as a member of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Node number, 1..=1023; also what its ids carry.
    pub id: NodeId,
    /// Random per process start: a process that replaces this one under its name changes it.
    pub incarnation: String,
    /// Until when (epoch ms) another process may have made ids with this number, if that is in the future: the database's
    /// clock has been set back since. Otherwise 0.
    pub ids_after: i64,
    /// The latest time, epoch ms, that the database's clock has ever said to a node before, as far as nodes have left it; 0 if
    /// there was none. It may have been set back since.
    pub lived_until: i64,
}

/// What a node says of itself.
#[derive(Debug, Clone, Default)]
pub struct NodeInfo {
    /// Unique in the cluster; a new process of the same name replaces the old one.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Software version.
    pub version: String,
    /// Its machine's clock, if it has measured it.
    pub clock: Option<ClockReading>,
    /// After which the past waits for an operator.
    pub longest_silence: LongestSilence,
}

impl NodeInfo {
    /// The node, as the audit names it.
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor { kind: "node", id: UserId::NONE, name: self.name.clone(), address: self.address.clone() }
    }
}

/// A node as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Node number.
    pub id: NodeId,
    /// Name.
    pub name: String,
    /// Where it listens.
    pub address: String,
    /// Software version.
    pub version: String,
    /// When the process joined.
    pub started_at: i64,
    /// Last heartbeat by the database's clock.
    pub heartbeat_at: i64,
    /// When this was read, by the database's clock, ms. Where several servers answer, both are those of one of them each.
    pub read_at: i64,
    /// When it left in good order, else 0.
    pub left_at: i64,
    /// Runs in its memory at the last heartbeat.
    pub queue_depth: i64,
    /// Its machine's clock as it last measured; nothing when it is of a version that does not.
    pub clock: Option<ClockReading>,
    /// What the database's clock said, epoch ms, before this node last found that it was set back, or learnt of it; 0 for never.
    pub set_back_from: i64,
}

/// What became of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// It is renewed.
    Renewed,
    /// Another process has taken the name.
    Replaced,
    /// The database has lost this node's heartbeats, or the node: it was restored from an older backup.
    Restored {
        /// The last heartbeat that it has, epoch ms; 0 when there is none.
        from: i64,
    },
    /// The schema needs nodes of a later release.
    Outdated {
        /// The oldest schema that a node must know.
        needed: i32,
    },
}

/// What a node says with each heartbeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeHeartbeat {
    /// Runs in its memory.
    pub queue_depth: u64,
    /// Its machine's clock, if it has measured it.
    pub clock: Option<ClockReading>,
    /// When it was last renewed, as far as this process knows, epoch ms.
    pub last: i64,
    /// What the database's clock said, epoch ms, before it was last known to be set back; 0 for never.
    pub set_back_from: i64,
}

/// A lease as it stands in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseState {
    /// What it is the right to.
    pub name: String,
    /// The node that holds it, or held it last; 0 when none ever did.
    pub holder: NodeId,
    /// Its fencing number.
    pub fence: i64,
    /// Until when it lives without renewal, ms; 0 when it was given up.
    pub expires_at: i64,
}

/// The rights that one node at a time can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseName {
    /// Writing task logs ahead.
    Pregenerate,
    /// Retention.
    Housekeeping,
    /// Statistics.
    Statistics,
}

impl LeaseName {
    /// The row's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pregenerate => "pregenerate",
            Self::Housekeeping => "housekeeping",
            Self::Statistics => "statistics",
        }
    }
}

/// Proof of holding a lease: the number grows with every change of hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// Which lease.
    pub lease: LeaseName,
    /// Node that holds it.
    pub node: NodeId,
    /// Its fencing number.
    pub number: i64,
    /// How long it lives after each renewal, ms.
    pub ttl_ms: i64,
}

/// Asked by `cluster/`.
#[async_trait]
pub trait ClusterStore: Send + Sync {
    /// The cluster clock, epoch µs: the database's own.
    async fn now_us(&self) -> Result<i64>;
    /// Takes a node number. A process of the same name loses its own (its incarnation is
    /// overwritten) and its number is handed on. Notes that there was a silence, if no node was heard of for long, and
    /// whether the clock was set back since.
    async fn join(&self, node: &NodeInfo) -> Result<Member>;
    /// Renews the heartbeat by the database's clock, if this process still has its name and can work with the schema.
    async fn heartbeat(&self, me: &Member, beat: &NodeHeartbeat) -> Result<Beat>;
    /// Every node that has not left, or left less than an hour ago.
    async fn nodes(&self) -> Result<Vec<NodeState>>;
    /// Says good-bye.
    async fn leave(&self, me: &Member) -> Result<()>;
    /// Takes the lease if it is free or expired, or renews it if `held` is current. `None` when
    /// another node has it.
    async fn take_lease(
        &self,
        lease: LeaseName,
        node: NodeId,
        held: Option<Fence>,
        ttl_ms: i64,
    ) -> Result<Option<Fence>>;
    /// Gives the lease up, if it is still held.
    async fn release_lease(&self, fence: Fence) -> Result<()>;
}

/// Asked by `cluster/` for the rules of tenants and apps.
#[async_trait]
pub trait RuleStore: Send + Sync {
    /// Grows with every change of a rule.
    async fn rule_version(&self) -> Result<i64>;
    /// All of them; windows that ended before `now` (ms) are left out.
    async fn rules(&self, now: i64) -> Result<Rules>;
    /// Notes that somebody lived through a silence until `lived_until`, if that is news; a decision about it is then open
    /// again. Answers whether it was.
    async fn witness(&self, told: &Silence) -> Result<bool>;
    /// Makes runs due that wait for the end (ms) of a tenant's maintenance window that was deleted.
    async fn resume(&self, tenant_id: TenantId, ends_at: i64, now: i64) -> Result<u64>;
    /// Makes runs due that a tenant's former quota of fires has delayed beyond `now` (ms). That is done, then.
    async fn ask_again(&self, change: &RuleChange, now: i64) -> Result<u64>;
}
