//! Rules of tenants, apps and executors: bounds, maintenance windows, weights.

use super::dialect::Kind;
use super::entity::{app, executor_rule, maintenance_window};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::row::{FromRow, Read, column, from_row};
use super::sql_store::retrying;
use super::values::{clean, to_json, to_word};
use super::{BATCH_MAX, Result, RuleStore, SqlStore, StoreError};
use crate::domain::executor::WEIGHT_DEFAULT;
use crate::domain::rules::{MaintenanceWindow, RuleChange, Rules};
use crate::domain::silence::Silence;
use crate::domain::{AppId, Owner, Refusal, TenantId, WindowId};
use async_trait::async_trait;
use sea_orm::{DbErr, FromQueryResult, QueryResult};
use std::collections::HashMap;

statements!(RULE_VERSION = |_| "SELECT version FROM rule_version WHERE id = 1".into(),);

#[async_trait]
impl RuleStore for SqlStore {
    async fn rule_version(&self) -> Result<i64> {
        let found = self.query("look for new rules", &RULE_VERSION, []).await?;
        Ok(found.first().copied().unwrap_or(0))
    }

    async fn rules(&self, now: i64) -> Result<Rules> {
        const ACTION: &str = "read the rules";
        // The version first: a change that comes in between is read again.
        let version = self.rule_version().await?;
        let bounded = app::Entity::find().filter(app::Column::MaxConcurrent.gt(0));
        let apps: Vec<BoundedApp> = self.at(ACTION).all(bounded).await?;
        let apps = apps.into_iter().map(|app| (app.id, app.max_concurrent)).collect();
        let allowing = app::Entity::find().filter(app::Column::Scripts.gt(0));
        let scripts = self.at(ACTION).column(allowing, app::Column::Id).await?.into_iter().collect();
        let tenants = self.bounded_tenants(ACTION).await?;
        let mut rules = Rules { version, apps, scripts, tenants, ..Rules::default() };
        rules.silences = self.silences().await?;
        rules.changes = self.rule_changes(ACTION, now).await?;
        let windows = maintenance_window::Entity::find()
            .filter(maintenance_window::Column::EndsAt.gt(now))
            .order_by_asc(maintenance_window::Column::StartsAt)
            .limit(WINDOWS_MAX);
        for window in self.at(ACTION).read::<MaintenanceWindow>(&windows).await? {
            rules.windows.entry(window.tenant_id).or_default().push(window);
        }
        Ok(rules)
    }

    async fn witness(&self, told: &Silence) -> Result<bool> {
        self.note_witness(told).await
    }

    async fn resume(&self, tenant_id: TenantId, ends_at: i64, now: i64) -> Result<u64> {
        self.resume_postponed(tenant_id, ends_at, now).await
    }

    async fn ask_again(&self, change: &RuleChange, now: i64) -> Result<u64> {
        self.ask_again_after(change, now).await
    }
}

/// Windows that a node reads at most.
const WINDOWS_MAX: u64 = 100_000;

#[derive(DerivePartialModel)]
#[sea_orm(entity = "app::Entity")]
struct BoundedApp {
    id: AppId,
    max_concurrent: i32,
}

impl FromQueryResult for MaintenanceWindow {
    fn from_query_result(row: &QueryResult, prefix: &str) -> std::result::Result<Self, DbErr> {
        Ok(Self {
            id: row.try_get(prefix, "id")?,
            tenant_id: row.try_get(prefix, "tenant_id")?,
            starts_at: row.try_get(prefix, "starts_at")?,
            ends_at: row.try_get(prefix, "ends_at")?,
            action: row.try_get(prefix, "action")?,
            note: row.try_get(prefix, "note")?,
        })
    }
}

/// What a person said about the executor at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorRule {
    /// 0..=100.
    pub weight: i32,
    /// Takes no new runs.
    pub disabled: bool,
    /// Why.
    pub note: String,
    /// Grows with every change; 0 while nothing has been set.
    pub revision: i64,
}

impl Default for ExecutorRule {
    fn default() -> Self {
        Self { weight: WEIGHT_DEFAULT, disabled: false, note: String::new(), revision: 0 }
    }
}

/// Where an executor listens, and whose it is: tenant, app, address.
pub type ExecutorAddress = (TenantId, AppId, String);

impl SqlStore {
    /// Adds a maintenance window to its tenant.
    pub async fn add_window(&self, window: &MaintenanceWindow, now: i64) -> Result<()> {
        const ACTION: &str = "add a maintenance window";
        let row = maintenance_window::Model {
            id: window.id,
            tenant_id: window.tenant_id,
            starts_at: window.starts_at,
            ends_at: window.ends_at,
            action: to_word(ACTION, &window.action)?,
            note: clean(&window.note),
            created_at: now,
        };
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        tx.insert(row).await?;
        tx.commit().await
    }

    /// Windows of a tenant that have not ended at `now` (cluster ms), by their end and id, after a
    /// place in this order.
    pub async fn windows(
        &self,
        tenant_id: TenantId,
        now: i64,
        after: Option<(i64, i64)>,
        limit: u64,
    ) -> Result<Vec<MaintenanceWindow>> {
        let (ended, id) = after.filter(|(ends_at, _)| *ends_at > now).unwrap_or((now, i64::MAX));
        let ends_at = maintenance_window::Column::EndsAt;
        let windows = maintenance_window::Entity::find()
            .filter(maintenance_window::Column::TenantId.eq(tenant_id))
            .filter(ends_at.gte(ended))
            .filter(Condition::any().add(ends_at.gt(ended)).add(maintenance_window::Column::Id.gt(id)))
            .order_by_asc(ends_at)
            .order_by_asc(maintenance_window::Column::Id)
            .limit(limit);
        self.at("list maintenance windows").read(&windows).await
    }

    /// The window of that id, ended or not.
    pub async fn window(&self, tenant_id: TenantId, id: WindowId) -> Result<Option<MaintenanceWindow>> {
        let window = maintenance_window::Entity::find_by_id(id);
        let window = window.filter(maintenance_window::Column::TenantId.eq(tenant_id));
        Ok(self.at("find a maintenance window").read(&window).await?.pop())
    }

    /// Ends a window: takes it away, whether it has begun or not.
    pub async fn drop_window(&self, tenant_id: TenantId, id: WindowId) -> Result<()> {
        const ACTION: &str = "end a maintenance window";
        let window = maintenance_window::Entity::delete_many()
            .filter(maintenance_window::Column::Id.eq(id))
            .filter(maintenance_window::Column::TenantId.eq(tenant_id));
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        let find = sql!("SELECT ends_at FROM maintenance_window WHERE id = {1} AND tenant_id = {2}");
        let found: Vec<i64> = tx.query(&find, [id.into(), tenant_id.into()]).await?;
        if tx.run(&window).await? == 0 {
            return Err(StoreError::of(ACTION, Refusal::not_found("window", id)));
        }
        if let Some(ends_at) = found.first().copied() {
            let change = RuleChange { id: id.0, tenant_id, ends_at, changed_at: 0 };
            self.note_rule_change(&tx, &change).await?;
        }
        tx.commit().await
    }

    /// What people said of the executors at these places; nothing has been set for the others.
    pub async fn executor_rules(&self, places: &[ExecutorAddress]) -> Result<HashMap<ExecutorAddress, ExecutorRule>> {
        const ACTION: &str = "read the rules of executors";
        const PLACE: &[(&str, Kind)] = &[("tenant_id", Kind::Big), ("app_id", Kind::Big), ("address", Kind::Text)];
        let sql = sql!(|d| format!(
            "SELECT r.tenant_id, r.app_id, r.address, r.weight, r.disabled, r.note, r.revision FROM {} \
                 executor_rule r ON r.tenant_id = v.n_tenant_id AND r.app_id = v.n_app_id AND r.address = v.n_address",
            d.batch(1, PLACE)
        ));
        let mut found = HashMap::new();
        for batch in places.chunks(BATCH_MAX) {
            let rows: Vec<RuleRow> = self.query(ACTION, &sql, [to_json(ACTION, batch)?.into()]).await?;
            found.extend(rows.into_iter().map(|row| (row.place, row.rule)));
        }
        Ok(found)
    }

    /// Sets what a person says about the executor at an address of an app, if no one else has
    /// meanwhile: `rule.revision` is the one that was read. It outlives the process.
    pub async fn set_executor_rule(
        &self,
        id: i64,
        owner: Owner,
        address: &str,
        rule: &ExecutorRule,
        now: i64,
    ) -> Result<()> {
        retrying(|| self.set_executor_rule_once(id, owner, address, rule, now)).await
    }

    async fn set_executor_rule_once(
        &self,
        id: i64,
        owner: Owner,
        address: &str,
        rule: &ExecutorRule,
        now: i64,
    ) -> Result<()> {
        const ACTION: &str = "set the rule of an executor";
        let ExecutorRule { weight, disabled, ref note, revision } = *rule;
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        if revision == 0 {
            let unsaid = executor_rule::ActiveModel {
                id: Set(id),
                tenant_id: Set(owner.tenant_id),
                app_id: Set(owner.app_id),
                address: Set(address.to_owned()),
                weight: Set(WEIGHT_DEFAULT),
                disabled: Set(0),
                note: Set(String::new()),
                updated_at: Set(now),
                revision: Set(0),
            };
            let place = [executor_rule::Column::TenantId, executor_rule::Column::AppId, executor_rule::Column::Address];
            tx.run(&executor_rule::Entity::insert(unsaid).on_conflict(unless_there(place))).await?;
        }
        let update = executor_rule::Entity::update_many()
            .set(executor_rule::ActiveModel {
                weight: Set(weight),
                disabled: Set(disabled.into()),
                note: Set(clean(note)),
                updated_at: Set(now),
                ..Default::default()
            })
            .col_expr(executor_rule::Column::Revision, next(executor_rule::Column::Revision))
            .filter(executor_rule::Column::TenantId.eq(owner.tenant_id))
            .filter(executor_rule::Column::AppId.eq(owner.app_id))
            .filter(executor_rule::Column::Address.eq(address))
            .filter(executor_rule::Column::Revision.eq(revision));
        if tx.run(&update).await? == 0 {
            return Err(StoreError::of(ACTION, Refusal::changed("rule of the executor at", address)));
        }
        tx.commit().await
    }
}

struct RuleRow {
    place: ExecutorAddress,
    rule: ExecutorRule,
}

from_row!(RuleRow { place = place, rule = FromRow::from_row });

fn place(row: &QueryResult) -> Read<ExecutorAddress> {
    Ok((column(row, "tenant_id")?, column(row, "app_id")?, column(row, "address")?))
}

from_row!(ExecutorRule { weight, disabled, note, revision });
