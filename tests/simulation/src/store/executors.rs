//! Executors and their handlers.

use super::ModelStore;
use super::rows::{ExecutorRow, State, TaskRow};
use async_trait::async_trait;
use carillon::domain::executor::{Pulse, WEIGHT_DEFAULT};
use carillon::domain::task::TaskSpec;
use carillon::domain::{Executor, ExecutorId, IdSource, LogId, Owner, Status, TaskId};
use carillon::store::{
    Activity, ExecutorEnd, ExecutorHeartbeat, ExecutorStore, HeartbeatVerdict, NewTask, Registration, Result,
    SignedHeartbeat, Signer, StoreError, StoreErrorKind,
};
use carillon_protocol::{HandlerInfo, Register, RunKey};
use std::collections::HashSet;

#[async_trait]
impl ExecutorStore for ModelStore {
    async fn register(
        &self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<Registration> {
        self.call("register", |state, at| state.register(signer, register, new_id, now, at)).await
    }

    async fn beat(&self, signer: &Signer<'_>, beat: &ExecutorHeartbeat) -> Result<bool> {
        self.call("beat of an executor", |state, at| match state.beat(signer.owner, signer.signed_at, beat, at) {
            HeartbeatVerdict::Committed => Ok(true),
            HeartbeatVerdict::Unknown => Ok(false),
            HeartbeatVerdict::Outdated => Err(outdated("beat")),
        })
        .await
    }

    async fn beats(&self, beats: &[SignedHeartbeat]) -> Result<Vec<HeartbeatVerdict>> {
        self.call("beats of executors", |state, at| {
            Ok(beats.iter().map(|b| state.beat(b.owner, b.signed_at, &b.heartbeat, at)).collect())
        })
        .await
    }

    async fn reconfirm(&self, owner: Owner, executor_id: ExecutorId, runs: &[RunKey]) -> Result<HashSet<RunKey>> {
        self.call("reconfirm", |state, _| {
            let mut confirmed = HashSet::new();
            for key in runs {
                let Some(row) = state.logs.get_mut(&LogId(key.0)) else { continue };
                let run = &mut row.run;
                let ours = owner == Owner { tenant_id: run.tenant_id, app_id: run.app_id };
                if ours && run.attempt == key.1 && run.status == Status::Dispatched && run.executor_id == executor_id {
                    run.version += 1;
                    confirmed.insert(*key);
                }
            }
            Ok(confirmed)
        })
        .await
    }

    async fn retire(&self, signer: &Signer<'_>, executor_id: ExecutorId, left: bool, now: i64) -> Result<()> {
        self.call("retire", |state, at| {
            let clock = state.clock(at);
            let row = state.executors.get_mut(&executor_id);
            let row = row.filter(|row| row.owner() == signer.owner && row.gone_at == 0);
            if let Some(row) = row.filter(|row| is_newer(signer.signed_at, row.register_signed_at, now)) {
                row.executor.draining = true;
                row.executor.heartbeat_at = clock;
                row.gone_at = if left { now } else { 0 };
            }
            Ok(())
        })
        .await
    }

    async fn executors(&self, since: i64) -> Result<Vec<Executor>> {
        self.call("list executors", |state, at| {
            let now = state.clock(at);
            let online = |row: &&ExecutorRow| row.gone_at == 0 && row.is_heard(since, now);
            Ok(state.executors.values().filter(online).map(|row| row.executor.clone()).collect())
        })
        .await
    }

    async fn executors_among(&self, ids: &[ExecutorId], since: i64) -> Result<Vec<Executor>> {
        self.call("read executors", |state, at| {
            let now = state.clock(at);
            let online = |row: &&ExecutorRow| row.gone_at == 0 && row.is_heard(since, now);
            let among = ids.iter().filter_map(|id| state.executors.get(id)).filter(online);
            Ok(among.map(|row| row.executor.clone()).collect())
        })
        .await
    }

    async fn pulses(&self, since: i64) -> Result<Vec<Pulse>> {
        self.call("read pulses", |state, at| {
            let now = state.clock(at);
            let heard = state.executors.values().filter(|row| row.is_heard(since, now));
            Ok(heard.map(ExecutorRow::pulse).collect())
        })
        .await
    }

    async fn executor_ends(&self, ids: &[ExecutorId]) -> Result<Vec<ExecutorEnd>> {
        self.call("read ends", |state, _| {
            let wanted = state.executors.values().filter(|row| ids.contains(&row.executor.id));
            Ok(wanted
                .map(|row| ExecutorEnd {
                    id: row.executor.id,
                    owner: row.owner(),
                    instance: row.executor.instance.clone(),
                    key_id: row.executor.key_id.clone(),
                    address: row.executor.address.clone(),
                    own_address: row.own_address,
                    plain: row.executor.plain,
                    heartbeat_at: row.executor.heartbeat_at,
                    gone_at: row.gone_at,
                })
                .collect())
        })
        .await
    }
}

/// What was signed far ahead of the clock was signed before the clock was set back.
fn is_newer(signed_at: i64, last: i64, now: i64) -> bool {
    signed_at > last || last > now + 1_000
}

fn outdated(action: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Outdated, action, "a newer message has been heard")
}

/// A heartbeat that is further ahead of the clock was written before the clock was set back, ms.
const AHEAD_MAX_MS: i64 = 60_000;

impl ExecutorRow {
    fn is_heard(&self, since: i64, now: i64) -> bool {
        (since..=now + AHEAD_MAX_MS).contains(&self.executor.heartbeat_at)
    }

    fn pulse(&self) -> Pulse {
        let Executor { id, heartbeat_at, draining, disabled, weight, held, running, capacity, node_id, .. } =
            self.executor;
        let (gone_at, key_id) = (self.gone_at, self.executor.key_id.clone());
        let described_at = self.executor.described_at;
        Pulse {
            id,
            heartbeat_at,
            gone_at,
            draining,
            disabled,
            weight,
            held,
            running,
            capacity,
            node_id,
            key_id,
            described_at,
        }
    }

    fn owner(&self) -> Owner {
        Owner { tenant_id: self.executor.tenant_id, app_id: self.executor.app_id }
    }
}

impl State {
    fn beat(&mut self, owner: Owner, signed_at: i64, beat: &ExecutorHeartbeat, at: i64) -> HeartbeatVerdict {
        let at = self.clock(at);
        let row = self.executors.get_mut(&beat.executor_id);
        let known =
            |row: &&mut ExecutorRow| row.executor.instance == beat.instance && row.owner() == owner && row.gone_at == 0;
        let Some(row) = row.filter(known) else { return HeartbeatVerdict::Unknown };
        if !is_newer(signed_at, row.heartbeat_signed_at, at) {
            return HeartbeatVerdict::Outdated;
        }
        row.heartbeat_signed_at = signed_at;
        row.executor.heartbeat_at = at;
        row.executor.draining = beat.draining;
        row.executor.held = i32::try_from(beat.held).unwrap_or(i32::MAX);
        row.executor.running = i32::try_from(beat.running).unwrap_or(i32::MAX);
        row.executor.node_id = beat.node_id;
        HeartbeatVerdict::Committed
    }

    fn register(
        &mut self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
        at: i64,
    ) -> Result<Registration> {
        let Signer { owner, key_id, signed_at } = *signer;
        let at = self.clock(at);
        let same = |row: &&ExecutorRow| row.executor.instance == register.instance && row.owner() == owner;
        let known = self.executors.values().find(same).map(|row| (row.executor.id, row.gone_at));
        let id = known.map_or_else(|| ExecutorId(new_id()), |(id, _)| id);
        let before = self.executors.get(&id);
        if before.is_some_and(|row| !is_newer(signed_at, row.register_signed_at, now)) {
            return Err(outdated("register"));
        }
        let heartbeat_signed_at = before.map_or(0, |row| row.heartbeat_signed_at);
        for row in self.executors.values_mut() {
            let other = row.executor.id != id && row.owner() == owner && row.executor.address == register.address;
            if other && row.gone_at == 0 {
                match known {
                    Some((_, 0)) => continue,
                    Some(_) => {
                        return Err(StoreError::new(StoreErrorKind::Conflict, "register", "replaced at its address"));
                    }
                    // Of a process that has died before it was ever heard.
                    None if row.register_signed_at > signed_at && row.register_signed_at <= now + 1_000 => {
                        return Err(StoreError::new(StoreErrorKind::Conflict, "register", "a newer process is there"));
                    }
                    None => {}
                }
                row.gone_at = now;
                row.executor.draining = true;
                row.executor.heartbeat_at = at;
                self.events.push(format!("executor {} is replaced at its address by {id}", row.executor.id));
            }
        }
        let handlers: Vec<String> = register.handlers.iter().map(|handler| handler.name.clone()).collect();
        let before = self.executors.get(&id);
        let news = before.is_none_or(|row| {
            row.tags != register.tags
                || row.handlers != handlers
                || row.executor.address != register.address
                || row.description != register.description
        });
        let executor = Executor {
            id,
            tenant_id: owner.tenant_id,
            app_id: owner.app_id,
            instance: register.instance.clone(),
            key_id: key_id.to_owned(),
            address: register.address.clone(),
            tags: register.tags.iter().cloned().collect(),
            handlers: handlers.iter().cloned().collect(),
            plain: false,
            heartbeat_at: at,
            draining: before.is_some_and(|row| row.executor.draining),
            disabled: false,
            weight: WEIGHT_DEFAULT,
            capacity: i32::try_from(register.capacity).unwrap_or(i32::MAX),
            held: before.map_or(0, |row| row.executor.held),
            running: before.map_or(0, |row| row.executor.running),
            described_at: before.filter(|_| !news).map_or(now, |row| row.executor.described_at),
            version: register.version.clone(),
            node_id: before.map_or(IdSource::made_by(id), |row| row.executor.node_id),
        };
        let (tags, description) = (register.tags.clone(), register.description.clone());
        let row = ExecutorRow {
            executor,
            handlers,
            tags,
            description,
            own_address: register.own_address,
            gone_at: 0,
            announced_until: 0,
            register_signed_at: signed_at,
            heartbeat_signed_at,
        };
        self.executors.insert(id, row);
        let left_out = self.register_handlers(owner, &register.handlers, new_id, now);
        Ok(Registration { executor_id: id, left_out })
    }

    /// A handler seen for the first time makes a stopped task; one seen before does not.
    fn register_handlers(
        &mut self,
        owner: Owner,
        handlers: &[HandlerInfo],
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Vec<String> {
        let mut left_out = Vec::new();
        let mut room = self.task_room(owner.tenant_id).unwrap_or(i64::MAX);
        for handler in handlers {
            let taken = |row: &TaskRow| row.view.owner == owner && row.view.spec.name == handler.name;
            let has_task = self.tasks.values().any(taken);
            let key = (owner.tenant_id, owner.app_id, handler.name.clone());
            if self.handlers.contains(&key) {
                continue;
            }
            if room <= 0 && !has_task {
                left_out.push(handler.name.clone());
                continue;
            }
            self.handlers.insert(key);
            // The handler's own row takes an id first.
            new_id();
            let id = new_id();
            if has_task {
                continue;
            }
            room -= 1;
            let task = NewTask { id: TaskId(id), owner, spec: defaults_of(handler), activity: Activity::default() };
            self.insert_task(&task, now).expect("checked definitions can be stored");
        }
        left_out
    }
}

/// The definition that a handler describes; without its defaults when they are not allowed.
fn defaults_of(handler: &HandlerInfo) -> TaskSpec {
    let name = handler.name.clone();
    let plain =
        TaskSpec { handler: name.clone(), description: handler.description.clone(), name, ..TaskSpec::default() };
    let mut wanted = handler.policies.clone();
    let given = [
        ("cron", handler.cron.clone().map(Into::into)),
        ("time_zone", handler.time_zone.clone().map(Into::into)),
        ("timeout_ms", (handler.timeout_ms != 0).then(|| handler.timeout_ms.into())),
    ];
    wanted.extend(given.into_iter().filter_map(|(field, value)| Some((field.to_owned(), value?))));
    wanted.retain(|field, _| !["name", "handler", "parents"].contains(&field.as_str()));
    plain.patched(wanted).ok().filter(|spec| spec.check().is_empty()).unwrap_or(plain)
}
