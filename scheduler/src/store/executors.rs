//! Executors.

use super::dialect::Kind;
use super::handlers::{Handled, Registering};
use super::row::{FromRow, Read, column, from_row};
use super::rows::{self, EXECUTOR_COLUMNS, PULSE_COLUMNS};
use super::sql::ID;
use super::sql_store::retrying;
use super::template::Text;
use super::values::{clean, list, to_json};
use super::{
    ExecutorEnd, ExecutorHeartbeat, ExecutorStore, HeartbeatVerdict, Registration, Result, SignedHeartbeat, Signer,
    SqlStore, StoreError, StoreErrorKind,
};
use crate::domain::clock_step::AHEAD_MAX_MS;
use crate::domain::executor::Pulse;
use crate::domain::{AppId, Executor, ExecutorId, IdSource, LogId, NodeId, Owner, TenantId};
use async_trait::async_trait;
use carillon_protocol::{Register, RunKey};
use sea_orm::{QueryResult, Value};
use std::collections::{HashMap, HashSet};

statements!(
    EXECUTOR_BEAT = |_| format!(
        "UPDATE executor SET heartbeat_at = {{now}}, held = {{5}}, running = {{6}}, draining = {{7}}, \
         heartbeat_signed_at = {{8}}, node_id = {{9}} WHERE {BEAT_OF} AND (heartbeat_signed_at < {{8}} OR heartbeat_signed_at > {{now}} + {AHEAD_MAX_MS})"
    ),
    EXECUTOR_BEATS = |d| d.update_rows(
        "executor",
        "heartbeat_at = {now}, held = v.n_held, running = v.n_running, draining = v.n_draining, \
         heartbeat_signed_at = v.n_signed_at, node_id = v.n_node_id",
        BEAT_ROW,
        &format!("{BEATS_OF} AND {}", beats_count()),
    ),
    EXECUTORS_BEATEN = |d| format!(
        "SELECT l.id, CASE WHEN {} THEN 1 ELSE 0 END AS counts FROM {} executor l ON {BEATS_OF}",
        beats_count(),
        d.batch(1, BEAT_ROW)
    ),
    EXECUTOR_KNOWN = |_| format!("SELECT id FROM executor WHERE {BEAT_OF}"),
    RECONFIRM = |d| d.update_rows("task_log", "version = l.version + 1", RUN_KEY, STILL_HELD),
    RECONFIRMED = |d| format!("SELECT l.id, l.attempt FROM {} task_log l ON {STILL_HELD}", d.batch(1, RUN_KEY)),
    EXECUTORS = |_| format!("SELECT {EXECUTOR_COLUMNS} FROM executor e {RULE_OF} WHERE {HEARD} AND e.gone_at = 0"),
    EXECUTORS_AMONG = |d| format!(
        "SELECT {EXECUTOR_COLUMNS} FROM {} executor e ON e.id = v.n_id {RULE_OF} WHERE {} AND e.gone_at = 0",
        d.batch(2, ID),
        // By its key, not by the heartbeats of all.
        HEARD.replace("e.heartbeat_at", "+e.heartbeat_at")
    ),
    PULSES = |_| format!("SELECT {PULSE_COLUMNS} FROM executor e {RULE_OF} WHERE {HEARD}"),
    EXECUTOR_ENDS = |d| format!(
        "SELECT id, tenant_id, app_id, instance, key_id, address, own_address, plain, heartbeat_at, gone_at FROM executor WHERE id IN {}",
        d.ids(1)
    ),
);

/// What a person said of its address.
const RULE_OF: &str =
    "LEFT JOIN executor_rule r ON r.tenant_id = e.tenant_id AND r.app_id = e.app_id AND r.address = e.address";

/// Heard since, and not by a clock that was set back since.
const HEARD: &str = "e.heartbeat_at >= {1} AND e.heartbeat_at <= {now} + 60000";

/// The executor that a heartbeat is of.
const BEAT_OF: &str = "id = {1} AND instance = {2} AND tenant_id = {3} AND app_id = {4} AND gone_at = 0";

/// The same of a batch.
const BEATS_OF: &str = "l.id = v.n_id AND l.instance = v.n_instance AND +l.tenant_id = v.n_tenant_id AND \
     +l.app_id = v.n_app_id AND l.gone_at = 0";

/// Whether it is newer than the last. A signature from before the clock was set back (or by a clock that leads) keeps no later
/// message out.
fn beats_count() -> String {
    format!("(l.heartbeat_signed_at < v.n_signed_at OR l.heartbeat_signed_at > {{now}} + {AHEAD_MAX_MS})")
}

const BEAT_ROW: &[(&str, Kind)] = &[
    ("id", Kind::Big),
    ("instance", Kind::Text),
    ("tenant_id", Kind::Big),
    ("app_id", Kind::Big),
    ("held", Kind::Int),
    ("running", Kind::Int),
    ("draining", Kind::Int),
    ("signed_at", Kind::Big),
    ("node_id", Kind::Big),
];

/// Rounds in which a batch of heartbeats does without those that do not count; then the database is too busy.
const BEAT_ROUNDS: usize = 3;

const RUN_KEY: &[(&str, Kind)] = &[("id", Kind::Big), ("attempt", Kind::Int)];
const STILL_HELD: &str = "l.id = v.n_id AND l.attempt = v.n_attempt AND +l.status = 2 AND l.executor_id = {2} \
     AND +l.tenant_id = {3} AND +l.app_id = {4}";

const BEATS: &str = "commit heartbeats";
const REGISTER: &str = "register an executor";

#[async_trait]
impl ExecutorStore for SqlStore {
    async fn register(
        &self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<Registration> {
        retrying(|| self.register_once(signer, register, new_id, now)).await
    }

    async fn beat(&self, signer: &Signer<'_>, beat: &ExecutorHeartbeat) -> Result<bool> {
        const ACTION: &str = "commit a heartbeat";
        let Owner { tenant_id, app_id } = signer.owner;
        let whose = || [beat.executor_id.into(), beat.instance.clone().into(), tenant_id.into(), app_id.into()];
        let [executor, instance, tenant, app] = whose();
        let values = [
            executor,
            instance,
            tenant,
            app,
            stored(beat.held).into(),
            stored(beat.running).into(),
            i32::from(beat.draining).into(),
            signer.signed_at.into(),
            beat.node_id.into(),
        ];
        if self.execute(ACTION, &EXECUTOR_BEAT, values).await? > 0 {
            return Ok(true);
        }
        let known = self.query::<ExecutorId, _>(ACTION, &EXECUTOR_KNOWN, whose()).await?;
        if known.is_empty() { Ok(false) } else { Err(outdated(ACTION)) }
    }

    async fn beats(&self, beats: &[SignedHeartbeat]) -> Result<Vec<HeartbeatVerdict>> {
        let mut verdicts = vec![HeartbeatVerdict::Committed; beats.len()];
        // In one order everywhere: two transactions that lock the same rows do not wait for each other.
        let mut open: Vec<usize> = (0..beats.len()).collect();
        open.sort_unstable_by_key(|at| beats.get(*at).map(|beat| beat.heartbeat.executor_id));
        for _ in 0..BEAT_ROUNDS {
            let rows: Vec<BeatRow> = open.iter().filter_map(|at| beats.get(*at)).map(beat_row).collect();
            if rows.is_empty() || retrying(|| self.beats_once(&rows)).await? {
                return Ok(verdicts);
            }
            let keys = to_json(BEATS, &rows)?;
            let known: Vec<(ExecutorId, bool)> = self.query(BEATS, &EXECUTORS_BEATEN, [keys.into()]).await?;
            let known: HashMap<ExecutorId, bool> = known.into_iter().collect();
            open.retain(|at| {
                let (Some(beat), Some(verdict)) = (beats.get(*at), verdicts.get_mut(*at)) else { return false };
                *verdict = match known.get(&beat.heartbeat.executor_id) {
                    None => HeartbeatVerdict::Unknown,
                    Some(false) => HeartbeatVerdict::Outdated,
                    Some(true) => HeartbeatVerdict::Committed,
                };
                *verdict == HeartbeatVerdict::Committed
            });
        }
        Err(StoreError::new(StoreErrorKind::Contention, BEATS, "the executors change faster than they are heard"))
    }

    async fn reconfirm(&self, owner: Owner, executor_id: ExecutorId, runs: &[RunKey]) -> Result<HashSet<RunKey>> {
        const ACTION: &str = "reconfirm the runs of an executor";
        let mut confirmed = HashSet::new();
        for batch in runs.chunks(super::BATCH_MAX) {
            let keys = to_json(ACTION, batch)?;
            let values = || [keys.clone().into(), executor_id.into(), owner.tenant_id.into(), owner.app_id.into()];
            self.execute(ACTION, &RECONFIRM, values()).await?;
            let held: Vec<(LogId, i32)> = self.query(ACTION, &RECONFIRMED, values()).await?;
            confirmed.extend(held.into_iter().map(|(log, attempt)| RunKey(log.0, attempt)));
        }
        Ok(confirmed)
    }

    async fn retire(&self, signer: &Signer<'_>, executor_id: ExecutorId, left: bool, now: i64) -> Result<()> {
        let sql = sql!(
            "UPDATE executor SET draining = 1, gone_at = {4}, heartbeat_at = {now} WHERE id = {1} AND tenant_id = {2} AND app_id = {3} \
             AND gone_at = 0 AND (register_signed_at < {5} OR register_signed_at > {6})"
        );
        let Owner { tenant_id, app_id } = signer.owner;
        let gone_at = if left { now } else { 0 };
        let values = [
            executor_id.into(),
            tenant_id.into(),
            app_id.into(),
            gone_at.into(),
            signer.signed_at.into(),
            (now + AHEAD_MAX_MS).into(),
        ];
        self.execute("retire an executor", &sql, values).await.map(drop)
    }

    async fn executors(&self, since: i64) -> Result<Vec<Executor>> {
        self.each_readable("list online executors", &EXECUTORS, [since.into()]).await
    }

    async fn executors_among(&self, ids: &[ExecutorId], since: i64) -> Result<Vec<Executor>> {
        const ACTION: &str = "read executors";
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(super::BATCH_MAX) {
            let ids = list(ACTION, ids.iter())?;
            found.extend(self.each_readable(ACTION, &EXECUTORS_AMONG, [since.into(), ids.into()]).await?);
        }
        Ok(found)
    }

    async fn pulses(&self, since: i64) -> Result<Vec<Pulse>> {
        self.each_readable("read the pulses of executors", &PULSES, [since.into()]).await
    }

    async fn executor_ends(&self, ids: &[ExecutorId]) -> Result<Vec<ExecutorEnd>> {
        const ACTION: &str = "read the ends of executors";
        let ids = list(ACTION, ids.iter())?;
        self.query(ACTION, &EXECUTOR_ENDS, [ids.into()]).await
    }
}

/// Id, instance, tenant, app, held, running, draining, signed at, node.
type BeatRow = (ExecutorId, String, TenantId, AppId, i32, i32, i32, i64, NodeId);

fn beat_row(beat: &SignedHeartbeat) -> BeatRow {
    let SignedHeartbeat { owner, signed_at, heartbeat } = beat;
    let ExecutorHeartbeat { executor_id, held, running, draining, node_id, .. } = *heartbeat;
    let (instance, draining) = (clean(&heartbeat.instance), i32::from(draining));
    (executor_id, instance, owner.tenant_id, owner.app_id, stored(held), stored(running), draining, *signed_at, node_id)
}

/// A number that an executor names, as far as its column goes: `u32::MAX` is a word for no bound.
fn stored(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

impl SqlStore {
    /// Executors, or what changes of them: one that cannot be read hides no other, of whatever tenant.
    async fn each_readable<T: FromRow, const N: usize>(
        &self,
        action: &'static str,
        sql: &impl Text,
        values: [Value; N],
    ) -> Result<Vec<T>> {
        let rows = self.fetch(action, sql.on(self.backend).bind(values)).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            match T::from_row(row) {
                Ok(one) => found.push(one),
                Err(error) => {
                    let id: ExecutorId = column(row, "id").map_err(|error| StoreError::from_db(action, &error))?;
                    tracing::error!(executor = id.0, %error, "an executor cannot be read; it counts as offline");
                }
            }
        }
        Ok(found)
    }

    /// Commits them if each of them counts; answers whether it did.
    async fn beats_once(&self, rows: &[BeatRow]) -> Result<bool> {
        let tx = self.begin(BEATS).await?;
        let moved = tx.execute(&EXECUTOR_BEATS, [to_json(BEATS, rows)?.into()]).await?;
        if moved != rows.len() as u64 {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    async fn register_once(
        &self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<Registration> {
        let Signer { owner, key_id, signed_at } = *signer;
        let Owner { tenant_id, app_id } = owner;
        let names: Vec<&str> = register.handlers.iter().map(|handler| handler.name.as_str()).collect();
        let (tags, handlers) = (to_json(REGISTER, &register.tags)?, to_json(REGISTER, &names)?);
        let tx = self.begin(REGISTER).await?;
        let known = self.process(&tx, owner, &register.instance).await?;
        if known.as_ref().is_some_and(|known| signed_at <= known.signed_at && known.signed_at <= now + AHEAD_MAX_MS) {
            return Err(outdated(REGISTER));
        }
        let described = [tags.clone(), handlers.clone(), register.address.clone(), clean(&register.description)];
        let (id, news) =
            known.as_ref().map_or_else(|| (new_id().into(), true), |known| (known.id, known.described != described));
        let [_, _, address, description] = described;
        let place = Place { owner, address: &address, id };
        place.take(&tx, known.as_ref().map(|known| known.gone_at), signed_at, now).await?;
        if known.is_none() {
            let insert = sql!(
                "INSERT INTO executor (id, tenant_id, app_id, instance, address, host_name, pid, version, description, \
                 tags, handlers, capacity, held, running, draining, registered_at, described_at, heartbeat_at, gone_at, key_id, \
                 register_signed_at, node_id, own_address) VALUES ({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, 0, 0, 0, {13}, {13}, {now}, 0, {14}, \
                 {15}, {16}, {17})"
            );
            tx.execute(
                &insert,
                [
                    id.into(),
                    tenant_id.into(),
                    app_id.into(),
                    register.instance.clone().into(),
                    address.into(),
                    register.host_name.clone().into(),
                    i64::from(register.pid).into(),
                    register.version.clone().into(),
                    description.into(),
                    tags.into(),
                    handlers.into(),
                    stored(register.capacity).into(),
                    now.into(),
                    key_id.into(),
                    signed_at.into(),
                    // The caller that made the id was asked to register it.
                    IdSource::made_by(id).into(),
                    i32::from(register.own_address).into(),
                ],
            )
            .await?;
        } else {
            let update = sql!(
                "UPDATE executor SET gone_at = 0, key_id = {9}, tags = {2}, handlers = {3}, capacity = {4}, address = {5}, \
                 description = {6}, heartbeat_at = {now}, register_signed_at = {10}, own_address = {11}, \
                 described_at = CASE WHEN {8} = 1 THEN {7} ELSE described_at END WHERE id = {1}"
            );
            tx.execute(
                &update,
                [
                    id.into(),
                    tags.into(),
                    handlers.into(),
                    stored(register.capacity).into(),
                    address.into(),
                    description.into(),
                    now.into(),
                    i32::from(news).into(),
                    key_id.into(),
                    signed_at.into(),
                    i32::from(register.own_address).into(),
                ],
            )
            .await?;
        }
        let registering = Registering { signer, register, has_change: news, new_id, now };
        let Handled { left_out, notes } = self.register_handlers(&tx, &registering).await?;
        self.append_notes(&tx, &notes).await?;
        tx.commit().await?;
        Ok(Registration { executor_id: id, left_out })
    }

    /// A process of the app that has registered before.
    async fn process(
        &self,
        tx: &super::sql_store::Transaction<'_>,
        owner: Owner,
        instance: &str,
    ) -> Result<Option<Process>> {
        let sql = sql!(
            "SELECT id, tags, handlers, address, description, gone_at, register_signed_at FROM executor WHERE \
             app_id = {1} AND instance = {2} AND tenant_id = {3}"
        );
        let found = tx.query(&sql, [owner.app_id.into(), instance.into(), owner.tenant_id.into()]);
        Ok(found.await?.pop())
    }
}

/// An address of an app, and the process that says it is there.
struct Place<'a> {
    owner: Owner,
    address: &'a str,
    id: ExecutorId,
}

/// Other processes that are there, at the same address.
const OTHERS: &str = "tenant_id = {1} AND app_id = {2} AND address = {3} AND id <> {4} AND gone_at = 0";

impl Place<'_> {
    /// Drives out the process that listened there before. `gone_at` is of a process that has registered before, ms.
    async fn take(
        &self,
        tx: &super::sql_store::Transaction<'_>,
        gone_at: Option<i64>,
        signed_at: i64,
        now: i64,
    ) -> Result<()> {
        let Owner { tenant_id, app_id } = self.owner;
        let place = || [tenant_id.into(), app_id.into(), self.address.into(), self.id.into()];
        let holders: Vec<ExecutorId> = match gone_at {
            // A message of a process that has died before it was ever heard drives out no newer one.
            None => {
                let newer = sql!(format!(
                    "SELECT id FROM executor WHERE {OTHERS} AND register_signed_at > {{5}} AND register_signed_at <= {{6}}"
                ));
                let [tenant, app, at, me] = place();
                tx.query(&newer, [tenant, app, at, me, signed_at.into(), (now + AHEAD_MAX_MS).into()]).await?
            }
            Some(1..) => {
                let holder = sql!(format!("SELECT id FROM executor WHERE {OTHERS}"));
                tx.query(&holder, place()).await?
            }
            Some(_) => return Ok(()),
        };
        if !holders.is_empty() {
            let detail = "a newer process has registered at this address; this message came too late";
            return Err(StoreError::new(StoreErrorKind::Conflict, REGISTER, detail));
        }
        if gone_at.is_none() {
            // An address belongs to one process: the one that listened there before is gone.
            let replace = sql!(format!(
                "UPDATE executor SET gone_at = {{5}}, draining = 1, heartbeat_at = {{now}} WHERE {OTHERS}"
            ));
            let [tenant, app, at, me] = place();
            tx.execute(&replace, [tenant, app, at, me, now.into()]).await?;
        }
        Ok(())
    }
}

/// A process as it last registered.
struct Process {
    id: ExecutorId,
    /// Tags, handlers, address, description.
    described: [String; 4],
    /// ms; 0 while it is there.
    gone_at: i64,
    /// By its clock, ms.
    signed_at: i64,
}

fn outdated(action: &'static str) -> StoreError {
    let detail = "a newer message of this kind has been heard from this executor before";
    StoreError::new(StoreErrorKind::Outdated, action, detail)
}

from_row!(ExecutorEnd { id, owner = rows::owner, instance, key_id, address, own_address, plain, heartbeat_at, gone_at });

from_row!(Process { id, described = described, gone_at, signed_at: "register_signed_at" });

fn described(row: &QueryResult) -> Read<[String; 4]> {
    Ok([column(row, "tags")?, column(row, "handlers")?, column(row, "address")?, column(row, "description")?])
}
