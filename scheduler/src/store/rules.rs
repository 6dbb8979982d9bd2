//! Rules of tenants, apps and executors: bounds, maintenance windows, weights.

use super::connect::retrying;
use super::dialect::{Kind, Sql};
use super::rows::{clean, to_json, to_word, word};
use super::{BATCH_MAX, Result, RuleStore, Scope, SqlStore, StoreError, StoreErrorKind};
use crate::domain::executor::WEIGHT_DEFAULT;
use crate::domain::rules::{MaintenanceWindow, Rules};
use async_trait::async_trait;
use sea_orm::{DbErr, QueryResult};
use std::collections::HashMap;

#[async_trait]
impl RuleStore for SqlStore {
    async fn rule_version(&self) -> Result<i64> {
        let found = self.query("look for new rules", &self.sql.rule_version, [], |row| row.try_get_by_index(0)).await?;
        Ok(found.first().copied().unwrap_or(0))
    }

    async fn rules(&self, now: i64) -> Result<Rules> {
        const ACTION: &str = "read the rules";
        // The version first: a change that comes in between is read again.
        let version = self.rule_version().await?;
        let bounded = Sql::new(self.backend, "SELECT id, max_concurrent FROM app WHERE max_concurrent > 0");
        let read = |row: &QueryResult| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
        let apps = self.query(ACTION, &bounded, [], read).await?.into_iter().collect();
        let tenants = self.bounded_tenants(ACTION).await?;
        let mut rules = Rules { version, apps, tenants, ..Rules::default() };
        let windows = Sql::new(
            self.backend,
            "SELECT id, tenant_id, starts_at, ends_at, action, note FROM maintenance_window WHERE ends_at > {1} \
             ORDER BY starts_at LIMIT 100000",
        );
        for window in self.query(ACTION, &windows, [now.into()], window).await? {
            rules.windows.entry(window.tenant_id).or_default().push(window);
        }
        Ok(rules)
    }

    async fn resume(&self, tenant_id: i64, ends_at: i64, now: i64) -> Result<u64> {
        const ACTION: &str = "resume postponed runs";
        let values = [tenant_id.into(), ends_at.into(), (BATCH_MAX as u64).into()];
        let mut resumed = 0;
        loop {
            let rows = self.query(ACTION, &self.sql.postponed, values.clone(), |row| row.try_get_by_index(0)).await?;
            let ids: Vec<[i64; 1]> = rows.into_iter().map(|id| [id]).collect();
            if ids.is_empty() {
                return Ok(resumed);
            }
            let ids = to_json(ACTION, &ids)?;
            resumed += self.execute(ACTION, &self.sql.resume, [ids.into(), ends_at.into(), now.into()]).await?;
        }
    }
}

fn window(row: &QueryResult) -> std::result::Result<MaintenanceWindow, DbErr> {
    Ok(MaintenanceWindow {
        id: row.try_get_by_index(0)?,
        tenant_id: row.try_get_by_index(1)?,
        starts_at: row.try_get_by_index(2)?,
        ends_at: row.try_get_by_index(3)?,
        action: word(row, 4)?,
        note: row.try_get_by_index(5)?,
    })
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
    /// Grows with every change; 0 while nobody has said anything.
    pub revision: i64,
}

impl Default for ExecutorRule {
    fn default() -> Self {
        Self { weight: WEIGHT_DEFAULT, disabled: false, note: String::new(), revision: 0 }
    }
}

/// Where an executor listens, and whose it is: tenant, app, address.
pub type ExecutorPlace = (i64, i64, String);

impl SqlStore {
    /// Adds a maintenance window to its tenant.
    pub async fn add_window(&self, window: &MaintenanceWindow, now: i64) -> Result<()> {
        const ACTION: &str = "add a maintenance window";
        let sql = Sql::new(
            self.backend,
            "INSERT INTO maintenance_window (id, tenant_id, starts_at, ends_at, action, note, created_at) VALUES \
             ({1}, {2}, {3}, {4}, {5}, {6}, {7})",
        );
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        let values = [
            window.id.into(),
            window.tenant_id.into(),
            window.starts_at.into(),
            window.ends_at.into(),
            to_word(ACTION, &window.action)?.into(),
            clean(&window.note).into(),
            now.into(),
        ];
        tx.execute(&sql, values).await?;
        tx.commit().await
    }

    /// Windows of a tenant that have not ended at `now` (cluster ms), by their end and id, after a
    /// place in this order.
    pub async fn windows(
        &self,
        tenant_id: i64,
        now: i64,
        after: Option<(i64, i64)>,
        limit: u64,
    ) -> Result<Vec<MaintenanceWindow>> {
        let (ended, id) = after.filter(|(ends_at, _)| *ends_at > now).unwrap_or((now, i64::MAX));
        let sql = Sql::new(
            self.backend,
            "SELECT id, tenant_id, starts_at, ends_at, action, note FROM maintenance_window WHERE tenant_id = {1} AND \
             ends_at >= {2} AND (ends_at > {2} OR id > {3}) ORDER BY ends_at, id LIMIT {4}",
        );
        let values = [tenant_id.into(), ended.into(), id.into(), limit.into()];
        self.query("list maintenance windows", &sql, values, window).await
    }

    /// The window of that id, ended or not.
    pub async fn window(&self, tenant_id: i64, id: i64) -> Result<Option<MaintenanceWindow>> {
        let sql = Sql::new(
            self.backend,
            "SELECT id, tenant_id, starts_at, ends_at, action, note FROM maintenance_window WHERE id = {1} AND \
             tenant_id = {2}",
        );
        let found = self.query("find a maintenance window", &sql, [id.into(), tenant_id.into()], window).await?;
        Ok(found.into_iter().next())
    }

    /// Ends a window: takes it away, whether it has begun or not.
    pub async fn drop_window(&self, tenant_id: i64, id: i64) -> Result<()> {
        const ACTION: &str = "end a maintenance window";
        let sql = Sql::new(self.backend, "DELETE FROM maintenance_window WHERE id = {1} AND tenant_id = {2}");
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        if tx.execute(&sql, [id.into(), tenant_id.into()]).await? == 0 {
            return Err(StoreError::new(StoreErrorKind::NotFound, ACTION, format!("there is no window {id}")));
        }
        tx.commit().await
    }

    /// What people said of the executors at these places; nobody has said anything of the others.
    pub async fn executor_rules(&self, places: &[ExecutorPlace]) -> Result<HashMap<ExecutorPlace, ExecutorRule>> {
        const ACTION: &str = "read the rules of executors";
        const PLACE: &[(&str, Kind)] = &[("tenant_id", Kind::Big), ("app_id", Kind::Big), ("address", Kind::Text)];
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT r.tenant_id, r.app_id, r.address, r.weight, r.disabled, r.note, r.revision FROM {} JOIN \
                 executor_rule r ON r.tenant_id = v.n_tenant_id AND r.app_id = v.n_app_id AND r.address = v.n_address",
                self.backend.rows(1, PLACE)
            ),
        );
        let mut found = HashMap::new();
        for batch in places.chunks(BATCH_MAX) {
            let rows = self.query(ACTION, &sql, [to_json(ACTION, batch)?.into()], executor_rule).await?;
            found.extend(rows);
        }
        Ok(found)
    }

    /// Sets what a person says about the executor at an address of an app, if nobody else has
    /// meanwhile: `rule.revision` is the one that was read. It outlives the process.
    pub async fn set_executor_rule(
        &self,
        id: i64,
        scope: Scope,
        address: &str,
        rule: &ExecutorRule,
        now: i64,
    ) -> Result<()> {
        retrying(|| self.set_executor_rule_once(id, scope, address, rule, now)).await
    }

    async fn set_executor_rule_once(
        &self,
        id: i64,
        scope: Scope,
        address: &str,
        rule: &ExecutorRule,
        now: i64,
    ) -> Result<()> {
        const ACTION: &str = "set the rule of an executor";
        let insert = Sql::new(
            self.backend,
            &format!(
                "INSERT INTO executor_rule (id, tenant_id, app_id, address, weight, disabled, note, updated_at, revision) \
                 VALUES ({{1}}, {{2}}, {{3}}, {{4}}, {WEIGHT_DEFAULT}, 0, '', {{5}}, 0) {}",
                self.backend.or_ignore("executor_rule", "tenant_id, app_id, address")
            ),
        );
        let update = Sql::new(
            self.backend,
            "UPDATE executor_rule SET weight = {4}, disabled = {5}, note = {6}, updated_at = {7}, revision = revision + 1 \
             WHERE tenant_id = {1} AND app_id = {2} AND address = {3} AND revision = {8}",
        );
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        if rule.revision == 0 {
            let place = [id.into(), scope.tenant_id.into(), scope.app_id.into(), address.into(), now.into()];
            tx.execute(&insert, place).await?;
        }
        let values = [
            scope.tenant_id.into(),
            scope.app_id.into(),
            address.into(),
            rule.weight.into(),
            i32::from(rule.disabled).into(),
            clean(&rule.note).into(),
            now.into(),
            rule.revision.into(),
        ];
        if tx.execute(&update, values).await? == 0 {
            let detail = format!("what is said of the executor at {address} was changed meanwhile; read it again");
            return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
        }
        tx.commit().await
    }
}

fn executor_rule(row: &QueryResult) -> std::result::Result<(ExecutorPlace, ExecutorRule), DbErr> {
    let place = (row.try_get_by_index(0)?, row.try_get_by_index(1)?, row.try_get_by_index(2)?);
    let rule = ExecutorRule {
        weight: row.try_get_by_index(3)?,
        disabled: row.try_get_by_index::<i32>(4)? != 0,
        note: row.try_get_by_index(5)?,
        revision: row.try_get_by_index(6)?,
    };
    Ok((place, rule))
}
