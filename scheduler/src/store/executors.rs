//! Executors.

use super::dialect::{Kind, Sql};
use super::handlers::{Handled, Registering};
use super::row::{Read, column, from_row};
use super::rows::{self, EXECUTOR_COLUMNS};
use super::sql_store::retrying;
use super::values::{clean, list, to_json};
use super::{
    ExecutorEnd, ExecutorHeartbeat, ExecutorStore, Registration, Result, Signer, SqlStore, StoreError, StoreErrorKind,
};
use crate::domain::{Executor, ExecutorId, IdSource, LogId, Owner};
use async_trait::async_trait;
use carillon_protocol::{Register, RunKey};
use sea_orm::QueryResult;
use std::collections::HashSet;

statements!(
    EXECUTOR_BEAT = |_| format!(
        "UPDATE executor SET heartbeat_at = {{now}}, held = {{5}}, running = {{6}}, draining = {{7}}, \
         heartbeat_signed_at = {{8}}, node_id = {{9}} WHERE {BEAT_OF} AND (heartbeat_signed_at < {{8}} OR heartbeat_signed_at > {{now}} + 1000)"
    ),
    EXECUTOR_KNOWN = |_| format!("SELECT id FROM executor WHERE {BEAT_OF}"),
    RECONFIRM = |d| d.update_rows("task_log", "version = l.version + 1", RUN_KEY, STILL_HELD),
    RECONFIRMED = |d| format!("SELECT l.id, l.attempt FROM {} task_log l ON {STILL_HELD}", d.batch(1, RUN_KEY)),
    EXECUTORS = |_| format!(
        "SELECT {EXECUTOR_COLUMNS} FROM executor e LEFT JOIN executor_rule r ON r.tenant_id = e.tenant_id AND \
         r.app_id = e.app_id AND r.address = e.address \
         WHERE e.heartbeat_at >= {{1}} AND e.heartbeat_at <= {{now}} + 60000 AND e.gone_at = 0"
    ),
    EXECUTOR_ENDS = |d| format!(
        "SELECT id, tenant_id, app_id, instance, address, heartbeat_at, gone_at FROM executor WHERE id IN {}",
        d.ids(1)
    ),
);

/// The executor that a heartbeat is of.
const BEAT_OF: &str = "id = {1} AND instance = {2} AND tenant_id = {3} AND app_id = {4} AND gone_at = 0";

const RUN_KEY: &[(&str, Kind)] = &[("id", Kind::Big), ("attempt", Kind::Int)];
const STILL_HELD: &str = "l.id = v.n_id AND l.attempt = v.n_attempt AND +l.status = 2 AND l.executor_id = {2} \
     AND +l.tenant_id = {3} AND +l.app_id = {4}";

/// A signature that is more than this ahead of the cluster clock was made before the clock was set
/// back (or by a clock that leads); it keeps no later message out, ms.
const AHEAD_MS: i64 = 1_000;

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
        let count = |runs: usize| i32::try_from(runs).unwrap_or(i32::MAX).into();
        let values = [
            executor,
            instance,
            tenant,
            app,
            count(beat.held),
            count(beat.running),
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
            "UPDATE executor SET draining = 1, gone_at = {4} WHERE id = {1} AND tenant_id = {2} AND app_id = {3} \
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
            (now + AHEAD_MS).into(),
        ];
        self.execute("retire an executor", &sql, values).await.map(drop)
    }

    async fn executors(&self, since: i64) -> Result<Vec<Executor>> {
        self.query("list online executors", &EXECUTORS, [since.into()]).await
    }

    async fn executor_ends(&self, ids: &[ExecutorId]) -> Result<Vec<ExecutorEnd>> {
        const ACTION: &str = "read the ends of executors";
        let ids = list(ACTION, ids.iter())?;
        self.query(ACTION, &EXECUTOR_ENDS, [ids.into()]).await
    }
}

impl SqlStore {
    async fn register_once(
        &self,
        signer: &Signer<'_>,
        register: &Register,
        new_id: &(dyn Fn() -> i64 + Sync),
        now: i64,
    ) -> Result<Registration> {
        const ACTION: &str = "register an executor";
        let Signer { owner, key_id, signed_at } = *signer;
        let Owner { tenant_id, app_id } = owner;
        let names: Vec<&str> = register.handlers.iter().map(|handler| handler.name.as_str()).collect();
        let (tags, handlers) = (to_json(ACTION, &register.tags)?, to_json(ACTION, &names)?);
        let tx = self.begin(ACTION).await?;
        let known = self.process(&tx, owner, &register.instance).await?;
        if known.as_ref().is_some_and(|known| signed_at <= known.signed_at && known.signed_at <= now + AHEAD_MS) {
            return Err(outdated(ACTION));
        }
        let described = [tags.clone(), handlers.clone(), register.address.clone(), clean(&register.description)];
        let (id, news, gone_at) = known.as_ref().map_or_else(
            || (new_id().into(), true, 0),
            |known| (known.id, known.described != described, known.gone_at),
        );
        let [_, _, address, description] = described;
        let place = || [tenant_id.into(), app_id.into(), address.clone().into(), id.into()];
        let others = "tenant_id = {1} AND app_id = {2} AND address = {3} AND id <> {4} AND gone_at = 0";
        let detail = "a newer process has registered at this address; this message came too late";
        let too_late = || StoreError::new(StoreErrorKind::Conflict, ACTION, detail);
        if known.is_none() {
            // A message of a process that has died before it was ever heard drives out no newer one.
            let newer = format!(
                "SELECT id FROM executor WHERE {others} AND register_signed_at > {{5}} AND register_signed_at <= {{6}}"
            );
            let [tenant, app, at, me] = place();
            let bounds = [tenant, app, at, me, signed_at.into(), (now + AHEAD_MS).into()];
            let newer: Vec<ExecutorId> = tx.query(&Sql::new(self.backend, &newer), bounds).await?;
            if !newer.is_empty() {
                return Err(too_late());
            }
            // An address belongs to one process: the one that listened there before is gone.
            let replace = format!("UPDATE executor SET gone_at = {{5}}, draining = 1 WHERE {others}");
            let [tenant, app, at, me] = place();
            tx.execute(&Sql::new(self.backend, &replace), [tenant, app, at, me, now.into()]).await?;
        } else if gone_at > 0 {
            let holder = Sql::new(self.backend, &format!("SELECT id FROM executor WHERE {others}"));
            let holder: Vec<ExecutorId> = tx.query(&holder, place()).await?;
            if !holder.is_empty() {
                return Err(too_late());
            }
        }
        if known.is_none() {
            let insert = sql!(
                "INSERT INTO executor (id, tenant_id, app_id, instance, address, host_name, pid, version, description, \
                 tags, handlers, capacity, held, running, draining, registered_at, described_at, heartbeat_at, gone_at, key_id, \
                 register_signed_at, node_id) VALUES ({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, 0, 0, 0, {13}, {13}, {now}, 0, {14}, \
                 {15}, {16})"
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
                    i64::from(register.capacity).into(),
                    now.into(),
                    key_id.into(),
                    signed_at.into(),
                    // The caller that made the id was asked to register it.
                    IdSource::made_by(id).into(),
                ],
            )
            .await?;
        } else {
            let update = sql!(
                "UPDATE executor SET gone_at = 0, key_id = {9}, tags = {2}, handlers = {3}, capacity = {4}, address = {5}, \
                 description = {6}, heartbeat_at = {now}, register_signed_at = {10}, \
                 described_at = CASE WHEN {8} = 1 THEN {7} ELSE described_at END WHERE id = {1}"
            );
            tx.execute(
                &update,
                [
                    id.into(),
                    tags.into(),
                    handlers.into(),
                    i64::from(register.capacity).into(),
                    address.into(),
                    description.into(),
                    now.into(),
                    i32::from(news).into(),
                    key_id.into(),
                    signed_at.into(),
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

from_row!(ExecutorEnd { id, owner = rows::owner, instance, address, heartbeat_at, gone_at });

from_row!(Process { id, described = described, gone_at, signed_at: "register_signed_at" });

fn described(row: &QueryResult) -> Read<[String; 4]> {
    Ok([column(row, "tags")?, column(row, "handlers")?, column(row, "address")?, column(row, "description")?])
}
