//! Where apps' executors are found that do not register themselves.

use super::entity::{app, executor_source};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::row::{FromRow, Read, column, from_row};
use super::rows;
use super::sql_store::retrying;
use super::values::{clean, to_json};
use super::{AnnouncedAt, AnnouncedBy, DiscoveryStore, ExecutorSource, Result, SqlStore, StoreError};
use crate::domain::discovery::{DiscoverySpec, NacosService};
use crate::domain::{AppId, ExecutorId, Owner, Refusal};
use async_trait::async_trait;
use sea_orm::QueryResult;

/// Columns of an [`ExecutorSource`].
const SOURCE: &str = "tenant_id, app_id, addresses, nacos_namespace, nacos_group, nacos_service, nacos_port, problem, since, \
     revision, updated_at";

const PUT: &str = "say where executors are found";

#[async_trait]
impl DiscoveryStore for SqlStore {
    async fn sources(&self, after: AppId, limit: u64) -> Result<Vec<ExecutorSource>> {
        let sql =
            sql!(format!("SELECT {SOURCE} FROM executor_source WHERE app_id > {{1}} ORDER BY app_id LIMIT {{2}}"));
        self.query("read where executors are found", &sql, [after.into(), limit.into()]).await
    }

    async fn note_source(&self, owner: Owner, revision: i64, problem: &str, since: i64) -> Result<()> {
        // Another node may have noted the same before.
        let sql = sql!(
            "UPDATE executor_source SET since = CASE WHEN since > 0 AND CASE WHEN problem = '' THEN 0 ELSE 1 END = {6} THEN since \
             ELSE {5} END, problem = {4} WHERE app_id = {1} AND tenant_id = {2} AND revision = {3}"
        );
        let Owner { tenant_id, app_id } = owner;
        let is_problem = i32::from(!problem.is_empty());
        let values =
            [app_id.into(), tenant_id.into(), revision.into(), clean(problem).into(), since.into(), is_problem.into()];
        self.execute("note whether Nacos is read", &sql, values).await.map(drop)
    }

    async fn announced_of(&self, owner: Owner, limit: u64) -> Result<Vec<AnnouncedAt>> {
        let sql = sql!(
            "SELECT id, address, key_id, tags, announced_by FROM executor WHERE app_id = {1} AND tenant_id = {2} AND \
             plain = 1 AND gone_at = 0 ORDER BY id LIMIT {3}"
        );
        let values = [owner.app_id.into(), owner.tenant_id.into(), limit.into()];
        self.query("list an app's announced executors", &sql, values).await
    }

    async fn tag(&self, owner: Owner, id: ExecutorId, tags: &[String], now: i64) -> Result<()> {
        const ACTION: &str = "tag an executor";
        let sql = sql!(
            "UPDATE executor SET tags = {4}, described_at = {5} WHERE id = {1} AND tenant_id = {2} AND app_id = {3} AND \
             plain = 1 AND gone_at = 0"
        );
        let tags = to_json(ACTION, tags)?;
        let values = [id.into(), owner.tenant_id.into(), owner.app_id.into(), tags.into(), now.into()];
        self.execute(ACTION, &sql, values).await.map(drop)
    }

    async fn withdraw_of(&self, owner: Owner, id: ExecutorId, by: AnnouncedBy, now: i64) -> Result<bool> {
        let sql = sql!(
            "UPDATE executor SET gone_at = {5}, draining = 1, heartbeat_at = {now} WHERE id = {1} AND tenant_id = {2} AND \
             app_id = {3} AND announced_by = {4} AND plain = 1 AND gone_at = 0"
        );
        let values = [id.into(), owner.tenant_id.into(), owner.app_id.into(), by.as_str().into(), now.into()];
        Ok(self.execute("withdraw an executor", &sql, values).await? > 0)
    }
}

impl SqlStore {
    /// Where an app's executors are found, if anyone has ever said it.
    pub async fn source(&self, owner: Owner) -> Result<Option<ExecutorSource>> {
        let sql = sql!(format!("SELECT {SOURCE} FROM executor_source WHERE app_id = {{1}} AND tenant_id = {{2}}"));
        let found: Vec<ExecutorSource> =
            self.query("read where executors are found", &sql, [owner.app_id.into(), owner.tenant_id.into()]).await?;
        Ok(found.into_iter().next())
    }

    /// Says where an app's executors are found, if nobody has said something else since revision `before` (0: never).
    pub async fn put_source(&self, owner: Owner, spec: &DiscoverySpec, before: i64, now: i64) -> Result<()> {
        let service = spec.nacos.as_ref();
        let text = |of: fn(&NacosService) -> &String| service.map(of).cloned().unwrap_or_default();
        let row = executor_source::Model {
            app_id: owner.app_id,
            tenant_id: owner.tenant_id,
            addresses: to_json(PUT, &spec.addresses)?,
            nacos_namespace: text(|service| &service.namespace),
            nacos_group: text(|service| &service.group),
            nacos_service: text(|service| &service.service),
            nacos_port: service.and_then(|service| service.port).map_or(0, i32::from),
            problem: String::new(),
            since: 0,
            revision: before + 1,
            updated_at: now,
        };
        let update = executor_source::Entity::update_many()
            .set(executor_source::ActiveModel {
                addresses: Set(row.addresses.clone()),
                nacos_namespace: Set(row.nacos_namespace.clone()),
                nacos_group: Set(row.nacos_group.clone()),
                nacos_service: Set(row.nacos_service.clone()),
                nacos_port: Set(row.nacos_port),
                problem: Set(String::new()),
                since: Set(0),
                revision: Set(row.revision),
                updated_at: Set(now),
                ..Default::default()
            })
            .filter(executor_source::Column::AppId.eq(owner.app_id))
            .filter(executor_source::Column::TenantId.eq(owner.tenant_id))
            .filter(executor_source::Column::Revision.eq(before));
        // Held, so that the app is not deleted meanwhile, and so that two that come first do not both write.
        let hold = app::Entity::update_many()
            .col_expr(app::Column::SignMethod, Expr::col(app::Column::SignMethod))
            .filter(app::Column::Id.eq(owner.app_id))
            .filter(app::Column::TenantId.eq(owner.tenant_id));
        let is_there = executor_source::Entity::find()
            .filter(executor_source::Column::AppId.eq(owner.app_id))
            .filter(executor_source::Column::TenantId.eq(owner.tenant_id));
        retrying(|| async {
            let tx = self.begin(PUT).await?;
            if tx.run(&hold).await? == 0 {
                return Err(StoreError::of(PUT, Refusal::not_found("app", owner.app_id)));
            }
            let is_first = before == 0 && !tx.any(is_there.clone()).await?;
            if is_first {
                tx.insert(row.clone()).await?;
            } else if tx.run(&update).await? == 0 {
                return Err(StoreError::of(PUT, Refusal::changed("app", owner.app_id)));
            }
            tx.commit().await
        })
        .await
    }
}

impl FromRow for ExecutorSource {
    fn from_row(row: &QueryResult) -> Read<Self> {
        let service: String = column(row, "nacos_service")?;
        let port: i32 = column(row, "nacos_port")?;
        let nacos = if service.is_empty() {
            None
        } else {
            Some(NacosService {
                namespace: column(row, "nacos_namespace")?,
                group: column(row, "nacos_group")?,
                service,
                port: u16::try_from(port).ok().filter(|port| *port > 0),
            })
        };
        Ok(Self {
            owner: rows::owner(row)?,
            spec: DiscoverySpec { addresses: column(row, "addresses")?, nacos },
            problem: column(row, "problem")?,
            since: column(row, "since")?,
            revision: column(row, "revision")?,
            updated_at: column(row, "updated_at")?,
        })
    }
}

from_row!(AnnouncedAt { id, address, key_id, tags, by: "announced_by" });
