//! Quotas of tenants: reading and changing them, what is used of them, and the one that bounds
//! tasks.

use super::entity::{task, tenant};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::rates;
use super::row::from_row;
use super::sql::{DISPATCHED, HELD, WAITING};
use super::sql_store::{Transaction, retrying};
use super::{Result, SqlStore, StoreError};
use crate::domain::quota::Quotas;
use crate::domain::rules::RuleChange;
use crate::domain::{FieldError, FieldRefusal, Reason, Refusal, TenantId};
use std::collections::{BTreeSet, HashMap};

/// What a tenant uses of its quotas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaUse {
    /// Tasks.
    pub tasks: i64,
    /// Runs that are with executors; a sharded run is one.
    pub runs: i64,
    /// Fires of the last minute; counted while there is a quota of them.
    pub fires: i64,
    /// Runs that wait because of that quota, at most [`DELAYED_MAX`].
    pub delayed: i64,
    /// When the last of those is due, ms.
    pub delayed_until: Option<i64>,
}

/// Delayed runs counted at most.
pub const DELAYED_MAX: i64 = 100_000;

/// What a tenant uses, and its rate.
struct Counted {
    tasks: i64,
    runs: i64,
    delayed: i64,
    max_fires_per_minute: i32,
    slots: Option<String>,
}

from_row!(Counted { tasks, runs, delayed: "waiting", max_fires_per_minute, slots });

impl SqlStore {
    /// Quotas of the tenants that have any which nodes must know of.
    pub(super) async fn bounded_tenants(&self, action: &'static str) -> Result<HashMap<TenantId, Quotas>> {
        let (runs, fires) = (tenant::Column::MaxConcurrent, tenant::Column::MaxFiresPerMinute);
        let bounded = tenant::Entity::find().filter(Condition::any().add(runs.gt(0)).add(fires.gt(0)));
        let tenants: Vec<tenant::Model> = self.at(action).all(bounded).await?;
        Ok(tenants.iter().map(|tenant| (tenant.id, quotas_of(tenant))).collect())
    }

    /// The quotas of a tenant.
    pub async fn quotas(&self, tenant_id: TenantId) -> Result<Quotas> {
        const ACTION: &str = "read the quotas of a tenant";
        find_tenant(&self.at(ACTION), ACTION, tenant_id).await.map(|tenant| quotas_of(&tenant))
    }

    /// Gives a tenant other quotas (checked). Every node keeps to them within a second or two. Runs
    /// that another quota of fires delayed ask again. With a `revision` the tenant must have it.
    pub async fn set_quotas(&self, tenant_id: TenantId, revision: Option<i64>, to: &Quotas, now: i64) -> Result<()> {
        if let Some(change) = retrying(|| self.set_quotas_once(tenant_id, revision, to, now)).await? {
            let again = self.ask_again_after(&change, now).await?;
            tracing::info!(tenant = tenant_id.0, again, "quota of fires changed: delayed runs ask again");
        }
        Ok(())
    }

    /// Answers what has to be followed.
    async fn set_quotas_once(
        &self,
        tenant_id: TenantId,
        revision: Option<i64>,
        to: &Quotas,
        now: i64,
    ) -> Result<Option<RuleChange>> {
        const ACTION: &str = "change the quotas of a tenant";
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        let before = quotas_of(&find_tenant(&tx, ACTION, tenant_id).await?);
        let Quotas { max_tasks, max_fires_per_minute, max_concurrent, retain_days } = *to;
        let update = tenant::Entity::update_many()
            .set(tenant::ActiveModel {
                max_tasks: Set(max_tasks),
                max_fires_per_minute: Set(max_fires_per_minute),
                max_concurrent: Set(max_concurrent),
                retain_days: Set(retain_days),
                ..Default::default()
            })
            .col_expr(tenant::Column::Revision, next(tenant::Column::Revision))
            .filter(tenant::Column::Id.eq(tenant_id))
            .apply_if(revision, |update, revision| update.filter(tenant::Column::Revision.eq(revision)));
        let asks_again = before.max_fires_per_minute != max_fires_per_minute;
        let change = asks_again.then_some(RuleChange { id: tenant_id.0, tenant_id, ends_at: 0, changed_at: now });
        if let Some(change) = &change {
            self.reset_rate(&tx, tenant_id, before.max_fires_per_minute, now).await?;
            self.note_rule_change(&tx, change).await?;
        }
        if tx.run(&update).await? == 0 {
            return Err(StoreError::of(ACTION, Refusal::changed("tenant", tenant_id)));
        }
        if before.retain_days != retain_days {
            // Its older logs lie where retention has looked already.
            let look_again = sql!("DELETE FROM purge_cursor WHERE id = {1}");
            tx.execute(&look_again, [i64::from(retain_days).into()]).await?;
        }
        tx.commit().await?;
        tracing::info!(tenant = tenant_id.0, ?to, "quotas changed");
        Ok(change)
    }

    /// Holds up who takes slots until the commit; from then on all go by the new quota.
    async fn reset_rate(&self, tx: &Transaction<'_>, tenant_id: TenantId, before: i32, now: i64) -> Result<()> {
        let tenant = BTreeSet::from([tenant_id]);
        self.lock_rates(tx, &tenant).await?;
        let mut rates = self.read_rates(tx, &tenant).await?;
        for (_, rate) in rates.values_mut() {
            rate.reset(before, now);
        }
        self.write_rates(tx, rates, now).await
    }

    /// What a tenant uses of its quotas at `now` (ms). `+` keeps the databases from reading all logs
    /// of the tenant: those of these states are few.
    pub async fn quota_use(&self, tenant_id: TenantId, now: i64) -> Result<QuotaUse> {
        const ACTION: &str = "read what a tenant uses";
        let sql = sql!(|d| format!(
            "SELECT (SELECT COUNT(*) FROM task WHERE tenant_id = {{1}}) AS tasks, \
                 (SELECT COUNT(*) FROM task_log l WHERE {phase} = {HELD} AND l.status = {DISPATCHED} AND +l.tenant_id = {{1}} AND \
                 l.parent_id = 0) AS runs, (SELECT COUNT(*) FROM (SELECT l.id FROM task_log l WHERE {phase} IN ({WAITING}, {HELD}) AND \
                 l.status <> {DISPATCHED} AND +l.tenant_id = {{1}} AND l.due_time > {{2}} AND l.reason = '{}' LIMIT {DELAYED_MAX}) d) \
                 AS waiting, t.max_fires_per_minute, (SELECT slots FROM tenant_rate WHERE id = {{1}}) AS slots FROM tenant t \
                 WHERE t.id = {{1}}",
            Reason::OverQuota.as_str(),
            phase = d.phase(),
        ));
        let found: Vec<Counted> = self.query(ACTION, &sql, [tenant_id.into(), now.into()]).await?;
        let Some(Counted { tasks, runs, delayed, max_fires_per_minute, slots }) = found.into_iter().next() else {
            return Err(no_tenant(ACTION, tenant_id));
        };
        let rate = slots.map_or(Ok(None), |slots| rates::parse(&slots).map(Some))?.unwrap_or_default();
        let delayed_until = rate.behind(now).filter(|_| delayed > 0);
        Ok(QuotaUse { tasks, runs, fires: rate.used(max_fires_per_minute, now), delayed, delayed_until })
    }

    /// Refuses `count` new tasks of a tenant that do not fit into its quota. Creating tasks
    /// of the tenant after that waits for the commit.
    pub(super) async fn refuse_too_many_tasks(
        &self,
        tx: &Transaction<'_>,
        tenant_id: TenantId,
        count: usize,
    ) -> Result<()> {
        let room = self.task_room(tx, tenant_id).await?;
        let refused = room.and_then(|room| room.refusal(count));
        refused.map_or(Ok(()), |refusal| Err(StoreError::refused("create tasks", FieldError::new("tenant", refusal))))
    }

    /// The quotas of a tenant, and how many tasks it has.
    pub async fn quotas_and_tasks(&self, tenant_id: TenantId) -> Result<(Quotas, TaskRoom)> {
        const ACTION: &str = "count the tasks of a tenant";
        let at = self.at(ACTION);
        let tenant = find_tenant(&at, ACTION, tenant_id).await?;
        Ok((quotas_of(&tenant), task_room(&at, tenant).await?))
    }

    /// How many tasks a tenant may have and has; `None` when it has no quota. Asking this
    /// after that waits for the commit.
    pub(super) async fn task_room(&self, tx: &Transaction<'_>, tenant_id: TenantId) -> Result<Option<TaskRoom>> {
        let lock = sql!("UPDATE tenant SET task_turn = task_turn + 1 WHERE id = {1} AND max_tasks > 0");
        if tx.execute(&lock, [tenant_id.into()]).await? == 0 {
            return Ok(None);
        }
        task_room(tx, find_tenant(tx, "count the tasks of a tenant", tenant_id).await?).await.map(Some)
    }
}

/// A tenant's quota of tasks.
#[derive(Debug, Clone)]
pub struct TaskRoom {
    /// Whose.
    pub tenant: String,
    /// It may have so many; 0 is no bound.
    pub most: i64,
    /// It has so many.
    pub used: i64,
}

impl TaskRoom {
    /// Why `count` more are refused, if they are.
    #[must_use]
    pub fn refusal(&self, count: usize) -> Option<FieldRefusal> {
        let Self { tenant, most, used } = self;
        let (tenant, most, used, wanted) = (tenant.clone(), *most, *used, count as i64);
        (most > 0 && used + wanted > most).then_some(FieldRefusal::QuotaOfTasks { tenant, most, used, wanted })
    }
}

async fn task_room(at: &impl Queries, tenant: tenant::Model) -> Result<TaskRoom> {
    let used = at.count(task::Entity::find().filter(task::Column::TenantId.eq(tenant.id))).await?;
    Ok(TaskRoom { tenant: tenant.name, most: tenant.max_tasks.into(), used })
}

async fn find_tenant(at: &impl Queries, action: &'static str, id: TenantId) -> Result<tenant::Model> {
    at.one(tenant::Entity::find_by_id(id)).await?.ok_or_else(|| no_tenant(action, id))
}

fn quotas_of(tenant: &tenant::Model) -> Quotas {
    let tenant::Model { max_tasks, max_fires_per_minute, max_concurrent, retain_days, .. } = *tenant;
    Quotas { max_tasks, max_fires_per_minute, max_concurrent, retain_days }
}

fn no_tenant(action: &'static str, id: TenantId) -> StoreError {
    StoreError::of(action, Refusal::not_found("tenant", id))
}
