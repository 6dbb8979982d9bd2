//! A store of executors for tests, which counts what it is asked.

use crate::domain::executor::{Pulse, WEIGHT_DEFAULT};
use crate::domain::{AppId, Executor, ExecutorId, NodeId, Owner, TenantId};
use crate::store::{
    ExecutorEnd, ExecutorHeartbeat, ExecutorStore, HeartbeatVerdict, Registration, Result, SignedHeartbeat, Signer,
    StoreError, StoreErrorKind,
};
use async_trait::async_trait;
use carillon_protocol::{Register, RunKey};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

/// What the store was asked.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Executors read with their descriptions.
    pub described: usize,
    /// Executors read without.
    pub pulses: usize,
    /// Transactions with heartbeats.
    pub commits: usize,
    /// Heartbeats in them.
    pub heartbeats: usize,
}

/// Executors, and when they went.
#[derive(Default)]
pub struct Fake {
    pub executors: Mutex<BTreeMap<ExecutorId, (Executor, i64)>>,
    pub counts: Mutex<Counts>,
    /// How much longer than a few milliseconds it takes to commit.
    pub slow: Duration,
    /// Tenants of whose heartbeats the database can store none.
    pub bad: HashSet<TenantId>,
}

/// An executor of app (1, 1) that has just registered.
pub fn executor(id: i64, heartbeat_at: i64) -> Executor {
    Executor {
        id: ExecutorId(id),
        tenant_id: TenantId(1),
        app_id: AppId(1),
        instance: format!("i{id}"),
        key_id: String::new(),
        address: format!("http://e{id:04}:1"),
        tags: [].into(),
        handlers: (0..50).map(|number| format!("h{number}")).collect(),
        plain: false,
        heartbeat_at,
        draining: false,
        disabled: false,
        weight: WEIGHT_DEFAULT,
        capacity: 10,
        held: 0,
        running: 0,
        described_at: heartbeat_at,
        version: String::new(),
        node_id: NodeId::NONE,
    }
}

impl Fake {
    pub fn put(&self, executor: Executor) {
        self.executors.lock().unwrap().insert(executor.id, (executor, 0));
    }

    pub fn change(&self, id: i64, change: impl FnOnce(&mut Executor, &mut i64)) {
        let mut executors = self.executors.lock().unwrap();
        let (executor, gone_at) = executors.get_mut(&ExecutorId(id)).unwrap();
        change(executor, gone_at);
    }

    /// What was asked since the last call.
    pub fn counted(&self) -> Counts {
        std::mem::take(&mut *self.counts.lock().unwrap())
    }
}

#[async_trait]
impl ExecutorStore for Fake {
    async fn register(
        &self,
        _: &Signer<'_>,
        _: &Register,
        _: &(dyn Fn() -> i64 + Sync),
        _: i64,
    ) -> Result<Registration> {
        unreachable!("no test registers here")
    }

    async fn beat(&self, signer: &Signer<'_>, beat: &ExecutorHeartbeat) -> Result<bool> {
        let message = SignedHeartbeat { owner: signer.owner, signed_at: signer.signed_at, heartbeat: beat.clone() };
        Ok(self.beats(&[message]).await?[0] == HeartbeatVerdict::Committed)
    }

    async fn beats(&self, beats: &[SignedHeartbeat]) -> Result<Vec<HeartbeatVerdict>> {
        tokio::time::sleep(Duration::from_millis(3) + self.slow).await;
        if beats.iter().any(|beat| self.bad.contains(&beat.owner.tenant_id)) {
            return Err(StoreError::new(StoreErrorKind::Other, "beats", "cannot be stored"));
        }
        let mut counts = self.counts.lock().unwrap();
        counts.commits += 1;
        counts.heartbeats += beats.len();
        let known = self.executors.lock().unwrap();
        let verdict = |beat: &SignedHeartbeat| {
            let is_known = known.contains_key(&beat.heartbeat.executor_id);
            if is_known { HeartbeatVerdict::Committed } else { HeartbeatVerdict::Unknown }
        };
        Ok(beats.iter().map(verdict).collect())
    }

    async fn reconfirm(&self, _: Owner, _: ExecutorId, _: &[RunKey]) -> Result<HashSet<RunKey>> {
        unreachable!("no test asks")
    }

    async fn retire(&self, _: &Signer<'_>, _: ExecutorId, _: bool, _: i64) -> Result<()> {
        unreachable!("no test retires here")
    }

    async fn executors(&self, since: i64) -> Result<Vec<Executor>> {
        let ids: Vec<ExecutorId> = self.executors.lock().unwrap().keys().copied().collect();
        self.executors_among(&ids, since).await
    }

    async fn executors_among(&self, ids: &[ExecutorId], since: i64) -> Result<Vec<Executor>> {
        let executors = self.executors.lock().unwrap();
        let among = ids.iter().filter_map(|id| executors.get(id));
        let online = among.filter(|(executor, gone_at)| *gone_at == 0 && executor.heartbeat_at >= since);
        let found: Vec<Executor> = online.map(|(executor, _)| executor.clone()).collect();
        self.counts.lock().unwrap().described += found.len();
        Ok(found)
    }

    async fn pulses(&self, since: i64) -> Result<Vec<Pulse>> {
        let executors = self.executors.lock().unwrap();
        let heard = executors.values().filter(|(executor, _)| executor.heartbeat_at >= since);
        let found: Vec<Pulse> = heard
            .map(|(executor, gone_at)| Pulse {
                id: executor.id,
                heartbeat_at: executor.heartbeat_at,
                gone_at: *gone_at,
                draining: executor.draining,
                disabled: executor.disabled,
                weight: executor.weight,
                held: executor.held,
                running: executor.running,
                node_id: executor.node_id,
                capacity: executor.capacity,
                key_id: executor.key_id.clone(),
                described_at: executor.described_at,
            })
            .collect();
        self.counts.lock().unwrap().pulses += found.len();
        Ok(found)
    }

    async fn executor_ends(&self, _: &[ExecutorId]) -> Result<Vec<ExecutorEnd>> {
        unreachable!("no test asks")
    }
}
