//! Messages of executors about themselves: registration, heartbeat, unregistration.

use super::group_commit::GroupCommit;
use super::{Clock, Registry, Room, RuleBook, Snapshot};
use crate::domain::clock_step::AHEAD_MAX_MS;
use crate::domain::silence::{self, Silence};
use crate::domain::{ExecutorId, IdSource, Owner};
use crate::store::{
    ExecutorHeartbeat, ExecutorStore, HeartbeatVerdict, Registration, Result, RuleStore, SignedHeartbeat, Signer,
    StoreError, StoreErrorKind,
};
use carillon_protocol::{ACKNOWLEDGED_LAG_MS, Heartbeat, Register, RunKey};
use std::collections::HashSet;
use std::sync::Arc;

/// An executor that this node has not heard for so long has its runs confirmed, ms: well below
/// every offline time-out, since a heartbeat lost on its way is no harm.
const SILENCE_MS: i64 = 5_000;

/// Receives these messages.
pub struct Executors {
    store: Arc<dyn ExecutorStore>,
    rule_store: Arc<dyn RuleStore>,
    clock: Arc<dyn Clock>,
    registry: Arc<Registry>,
    rules: Arc<RuleBook>,
    ids: Arc<IdSource>,
    heartbeats: Arc<GroupCommit>,
    /// How long nodes may dispatch to an executor after the last acknowledgement that it tells of, ms.
    dispatched_for_ms: i64,
    lead_ms: i64,
}

/// The parts that these messages need.
pub struct ExecutorsParts {
    /// Where executors stand.
    pub store: Arc<dyn ExecutorStore>,
    /// Where silences of the cluster stand.
    pub rule_store: Arc<dyn RuleStore>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// Online executors.
    pub registry: Arc<Registry>,
    /// Times without any node.
    pub rules: Arc<RuleBook>,
    /// Names new rows.
    pub ids: Arc<IdSource>,
}

impl Executors {
    /// Over the node's parts. Executors are offline after `offline_after_ms`; runs go out `lead_ms` before they are due.
    pub fn new(parts: ExecutorsParts, offline_after_ms: i64, lead_ms: i64) -> Self {
        let ExecutorsParts { store, rule_store, clock, registry, rules, ids } = parts;
        let heartbeats = GroupCommit::new(Arc::clone(&store));
        let dispatched_for_ms = ACKNOWLEDGED_LAG_MS + offline_after_ms;
        Self { store, rule_store, clock, registry, rules, ids, heartbeats, dispatched_for_ms, lead_ms }
    }

    /// Registers a process.
    pub async fn register(&self, signer: &Signer<'_>, register: &Register, alive_since: i64) -> Result<Registration> {
        // Its app may have waited for it with what had run already.
        self.hear_witness(register.acknowledged_at, || format!("executor at {}", register.address)).await?;
        let now = self.clock.now_ms();
        let before: ExecutorId = self.ids.next(now);
        let new_id = || self.ids.next(now);
        let registration = self.store.register(signer, register, &new_id, now).await?;
        let id = registration.executor_id;
        let app = (signer.owner.tenant_id, signer.owner.app_id);
        self.registry.refresh_one(&*self.store, id, (app, Some(&register.address)), alive_since).await?;
        // By its id, not by the time: the clock may have been set back.
        if id > before && IdSource::made_by(id) == self.ids.node() {
            // Those that are known register again from time to time.
            let (address, instance) = (&register.address, &register.instance);
            tracing::info!(executor = id.0, address, instance, "executor registered");
            // A process seen for the first time holds nothing.
            let (runs, cancelled) = (HashSet::new(), HashSet::new());
            self.registry.heard(
                id,
                Snapshot {
                    taken_at: now,
                    received_at: now,
                    times_set: self.clock.times_set(),
                    runs,
                    cancelled,
                    doubted_until: 0,
                    room: Room::default(),
                },
            );
        }
        Ok(registration)
    }

    /// Commits a heartbeat; returns what the executor must drop, or `None` when it is not known
    /// and must register again. Answered only after the commit: the executor starts what it holds
    /// by this promise. `room` is for the runs that it names.
    pub async fn heartbeat(&self, signer: &Signer<'_>, beat: Heartbeat, room: Room) -> Result<Option<Vec<RunKey>>> {
        let set_before = self.clock.times_set();
        self.hear_witness(beat.acknowledged_at, || format!("executor {}", beat.executor_id)).await?;
        let Heartbeat { executor_id, instance, snapshot_at, held, running, unacknowledged, draining, made_us, .. } =
            beat;
        let executor_id = ExecutorId(executor_id);
        let (held_count, running_count, node_id) = (held.len(), running.len(), self.ids.node());
        let row =
            ExecutorHeartbeat { executor_id, instance, held: held_count, running: running_count, draining, node_id };
        let beat = SignedHeartbeat { owner: signer.owner, signed_at: signer.signed_at, heartbeat: row };
        match self.heartbeats.commit(beat, made_us).await? {
            HeartbeatVerdict::Committed => {}
            HeartbeatVerdict::Unknown => return Ok(None),
            HeartbeatVerdict::Outdated => {
                let detail = "a newer heartbeat of this executor has been heard before";
                return Err(StoreError::new(StoreErrorKind::Outdated, "commit a heartbeat", detail));
            }
        }
        let (times_set, received_at) = (self.clock.times_set(), self.clock.now_ms());
        // An executor whose clock runs ahead must not vouch for what it has not seen yet; where one of the two does not know
        // yet that the clock was set, nobody knows when its list was taken. This node learns it meanwhile when it has stood still
        // with the message.
        let is_vague = times_set != set_before || snapshot_at > received_at + AHEAD_MAX_MS;
        let taken_at = if is_vague { 0 } else { snapshot_at.min(received_at) };
        let is_back = !self.registry.heard_lately(executor_id, received_at - SILENCE_MS);
        let doubted_until = self.registry.doubted_until(executor_id);
        let live: Vec<RunKey> = held.into_iter().chain(running).collect();
        let cancel = if live.is_empty() {
            Vec::new()
        } else if !is_back && doubted_until == 0 {
            // Again, until it has dropped them: the last acknowledgement may be lost.
            self.registry.told_to_drop(executor_id, &live)
        } else {
            // Silent here for a while: another node may have given its runs away in the meantime. The list that ends
            // the silence may be older than the last of them; so the first list that was made after it is confirmed, too.
            let mine = self.store.reconfirm(signer.owner, executor_id, &live).await?;
            let given_away: Vec<RunKey> = live.iter().filter(|run| !mine.contains(run)).copied().collect();
            if !given_away.is_empty() {
                tracing::warn!(
                    executor = executor_id.0,
                    runs = given_away.len(),
                    "executor is back and must drop runs"
                );
            }
            given_away
        };
        let doubted_until = match (is_back, taken_at > doubted_until) {
            (true, _) => received_at,
            (false, true) => 0,
            // A doubt from before the clock was set back lasts no longer than one from now.
            (false, false) => doubted_until.min(received_at),
        };
        let runs: HashSet<RunKey> = live.into_iter().chain(unacknowledged).collect();
        let cancelled = cancel.iter().copied().collect();
        self.registry
            .heard(executor_id, Snapshot { taken_at, received_at, times_set, runs, cancelled, doubted_until, room });
        Ok(Some(cancel))
    }

    /// [`Heartbeat::made_us`] of the newest heartbeat of a process that this node has committed, whether or not it was answered
    /// by then.
    pub fn written_us(&self, owner: Owner, executor_id: ExecutorId, instance: &str) -> Option<i64> {
        self.heartbeats.committed(owner, executor_id, instance).filter(|made_us| *made_us != 0)
    }

    /// An executor that a node acknowledged at a time for which the database knows of no node shows that the database was
    /// restored. Noted before anything is dispatched to it.
    async fn hear_witness(&self, acknowledged_at: i64, name: impl Fn() -> String) -> Result<()> {
        let rules = self.rules.now();
        let reach = (self.dispatched_for_ms, self.lead_ms);
        let Some(silence) = silence::witnessed(&rules.silences, acknowledged_at, reach) else {
            return Ok(());
        };
        self.rule_store.witness(&Silence { found_by: name(), decision: None, ..silence }).await?;
        self.rules.refresh(&*self.rule_store, self.clock.now_ms()).await
    }

    /// Takes an executor out of routing; for good when it `left`.
    pub async fn retire(
        &self,
        signer: &Signer<'_>,
        executor_id: ExecutorId,
        left: bool,
        alive_since: i64,
    ) -> Result<()> {
        self.store.retire(signer, executor_id, left, self.clock.now_ms()).await?;
        let app = (signer.owner.tenant_id, signer.owner.app_id);
        self.registry.refresh_one(&*self.store, executor_id, (app, None), alive_since).await
    }
}
