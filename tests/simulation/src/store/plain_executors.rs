//! Executors that are announced instead of registering themselves.

use super::rows::{ExecutorRow, State};
use super::{ModelStore, refuse};
use async_trait::async_trait;
use carillon::domain::executor::WEIGHT_DEFAULT;
use carillon::domain::{Executor, ExecutorId, IdSource, Owner};
use carillon::store::{Announced, Announcement, PlainExecutorStore, Result, StoreErrorKind};

#[async_trait]
impl PlainExecutorStore for ModelStore {
    async fn announce(
        &self,
        announcement: &Announcement<'_>,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<ExecutorId> {
        self.call("announce an executor", |state, at| state.announce(announcement, new_id, now, at)).await
    }

    async fn withdraw(&self, owner: Owner, address: &str, now: i64) -> Result<Option<ExecutorId>> {
        self.call("withdraw an executor", |state, at| {
            let clock = state.clock(at);
            let mut rows = state.executors.values_mut();
            let found = rows.find(|row| row.is_announced() && row.is_instance(owner, address));
            Ok(found.map(|row| row.end_announcement(now, clock)))
        })
        .await
    }

    async fn announced(&self, after: ExecutorId, limit: u64) -> Result<Vec<Announced>> {
        self.call("list announced executors", |state, _| {
            let rows = state.executors.values().filter(|row| row.is_announced() && row.executor.id > after);
            Ok(rows.take(limit as usize).map(ExecutorRow::announced).collect())
        })
        .await
    }

    async fn end_announcements(&self, now: i64) -> Result<u64> {
        self.call("end announcements", |state, at| {
            let clock = state.clock(at);
            let is_over = |row: &&mut ExecutorRow| row.is_announced() && (1..now).contains(&row.announced_until);
            let ended = state.executors.values_mut().filter(is_over).map(|row| row.end_announcement(now, clock));
            Ok(ended.count() as u64)
        })
        .await
    }
}

impl ExecutorRow {
    fn is_announced(&self) -> bool {
        self.executor.plain && self.gone_at == 0
    }

    fn is_instance(&self, owner: Owner, instance: &str) -> bool {
        self.executor.owner() == owner && self.executor.instance == instance
    }

    fn end_announcement(&mut self, now: i64, clock: i64) -> ExecutorId {
        self.gone_at = now;
        self.executor.draining = true;
        self.executor.heartbeat_at = clock;
        self.executor.id
    }

    fn announced(&self) -> Announced {
        let Executor { id, instance, key_id, address, heartbeat_at, .. } = self.executor.clone();
        Announced { id, owner: self.executor.owner(), instance, key_id, address, heartbeat_at }
    }
}

impl State {
    fn announce(
        &mut self,
        announcement: &Announcement<'_>,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
        at: i64,
    ) -> Result<ExecutorId> {
        let Announcement { owner, key_id, address, version, until, .. } = *announcement;
        let clock = self.clock(at);
        if let Some(row) = self.executors.values_mut().find(|row| row.is_instance(owner, address)) {
            if !row.executor.plain {
                let detail = "an executor that registers itself has this instance";
                return refuse(StoreErrorKind::Conflict, "announce an executor", detail);
            }
            if row.gone_at > 0 || row.executor.key_id != key_id || row.executor.version != version {
                row.executor.described_at = now;
            }
            row.gone_at = 0;
            row.announced_until = until;
            row.executor.draining = false;
            row.executor.heartbeat_at = clock;
            key_id.clone_into(&mut row.executor.key_id);
            version.clone_into(&mut row.executor.version);
            return Ok(row.executor.id);
        }
        let id = ExecutorId(new_id());
        let executor = Executor {
            id,
            tenant_id: owner.tenant_id,
            app_id: owner.app_id,
            instance: address.to_owned(),
            key_id: key_id.to_owned(),
            address: address.to_owned(),
            tags: [].into_iter().collect(),
            handlers: [].into_iter().collect(),
            plain: true,
            heartbeat_at: clock,
            draining: false,
            disabled: false,
            weight: WEIGHT_DEFAULT,
            capacity: i32::MAX,
            held: 0,
            running: 0,
            described_at: now,
            version: version.to_owned(),
            node_id: IdSource::made_by(id),
        };
        let row = ExecutorRow {
            executor,
            handlers: Vec::new(),
            tags: Vec::new(),
            description: String::new(),
            own_address: true,
            gone_at: 0,
            announced_until: until,
            register_signed_at: 0,
            heartbeat_signed_at: 0,
        };
        self.executors.insert(id, row);
        Ok(id)
    }
}
