//! Tenants, apps, and small settings.

use super::conditions::{touching, within};
use super::entity::{
    api_token, app, app_key, calendar, calendar_version, executor_rule, executor_source, handler, maintenance_window,
    role, role_grant, setting, task, tenant, user_account,
};
use super::grants::hold_tenant;
use super::keys::insert_key;
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::sql_store::retrying;
use super::values::clean;
use super::{BATCH_MAX, KeyWords, Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::{AccessScope, AppId, Owner, Refusal, TenantId, refusal::no_app};
use carillon_protocol::sign::{Key, SignMethod};
use sea_orm::{DbErr, FromQueryResult, QueryResult};
use std::collections::HashMap;

/// A tenant as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "tenant::Entity")]
pub struct TenantView {
    /// Id.
    pub id: TenantId,
    /// Name.
    pub name: String,
    /// For people.
    #[sea_orm(from_expr = "or_empty(tenant::Column::Description)")]
    pub description: String,
    /// Runs at once at most; 0 is no bound.
    pub max_concurrent: i32,
    /// Grows with every change.
    pub revision: i64,
    /// ms.
    pub created_at: i64,
}

/// An app as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "app::Entity", from_query_result = "false")]
pub struct AppView {
    /// Id.
    pub id: AppId,
    /// Tenant.
    pub tenant_id: TenantId,
    /// Tenant's name.
    #[sea_orm(from_expr = "tenant::Column::Name")]
    pub tenant: String,
    /// Name.
    pub name: String,
    /// For people.
    #[sea_orm(from_expr = "or_empty(app::Column::Description)")]
    pub description: String,
    /// Runs at once at most; 0 is no bound.
    pub max_concurrent: i32,
    /// How it demands that everything is signed; `None` leaves it to its executors.
    pub sign_method: Option<SignMethod>,
    /// Whether its tasks may be scripts.
    pub scripts: bool,
    /// Grows with every change.
    pub revision: i64,
    /// ms.
    pub created_at: i64,
}

/// Which apps to list.
#[derive(Debug, Clone, Default)]
pub struct AppFilter {
    /// Only of the tenant of this name.
    pub tenant: Option<String>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only this one.
    pub id: Option<AppId>,
    /// After this id.
    pub after: i64,
    /// At most so many.
    pub limit: u64,
}

impl FromQueryResult for AppView {
    fn from_query_result(row: &QueryResult, prefix: &str) -> std::result::Result<Self, DbErr> {
        Ok(Self {
            id: row.try_get(prefix, "id")?,
            tenant_id: row.try_get(prefix, "tenant_id")?,
            tenant: row.try_get(prefix, "tenant")?,
            name: row.try_get(prefix, "name")?,
            description: row.try_get(prefix, "description")?,
            max_concurrent: row.try_get(prefix, "max_concurrent")?,
            sign_method: SignMethod::parse(&row.try_get::<String>(prefix, "sign_method")?),
            scripts: row.try_get::<i32>(prefix, "scripts")? != 0,
            revision: row.try_get(prefix, "revision")?,
            created_at: row.try_get(prefix, "created_at")?,
        })
    }
}

impl SqlStore {
    /// Creates a tenant.
    pub async fn create_tenant(&self, tenant: &TenantView) -> Result<()> {
        let row = tenant::Model {
            id: tenant.id,
            name: tenant.name.clone(),
            description: Some(clean(&tenant.description)),
            max_tasks: 0,
            max_fires_per_minute: 0,
            max_concurrent: 0,
            retain_days: 0,
            revision: 1,
            created_at: tenant.created_at,
        };
        self.at("create a tenant").insert(row).await.map_err(|error| error.naming("tenant", &tenant.name))
    }

    /// Tenants within reach by name, after `after`; only the one of that name, when given.
    pub async fn list_tenants(
        &self,
        access_scope: &AccessScope,
        name: Option<&str>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<TenantView>> {
        let tenants = tenant::Entity::find()
            .filter(tenant::Column::Name.gt(after))
            .filter(touching(access_scope, tenant::Column::Id))
            .apply_if(name, |tenants, name| tenants.filter(tenant::Column::Name.eq(name)))
            .order_by_asc(tenant::Column::Name)
            .limit(limit);
        self.at("list tenants").all(tenants).await
    }

    /// Writes what people say of a tenant, if no one else has meanwhile.
    pub async fn describe_tenant(&self, before: &TenantView, description: &str) -> Result<()> {
        const ACTION: &str = "describe a tenant";
        let update = tenant::Entity::update_many()
            .col_expr(tenant::Column::Description, clean(description).into())
            .col_expr(tenant::Column::Revision, next(tenant::Column::Revision))
            .filter(tenant::Column::Id.eq(before.id))
            .filter(tenant::Column::Revision.eq(before.revision));
        if self.at(ACTION).run(&update).await? == 0 {
            return Err(changed_meanwhile(ACTION, "tenant", &before.name));
        }
        Ok(())
    }

    /// Deletes a tenant that nothing belongs to any more.
    pub async fn delete_tenant(&self, id: TenantId) -> Result<()> {
        const ACTION: &str = "delete a tenant";
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.bump_rules(&tx).await?;
            // Held, so that no app comes in meanwhile.
            hold_tenant(&tx, id).await?;
            for (what, is_there) in [
                ("apps", tx.any(app::Entity::find().filter(app::Column::TenantId.eq(id))).await?),
                ("users", tx.any(user_account::Entity::find().filter(user_account::Column::TenantId.eq(id))).await?),
                ("roles", tx.any(role::Entity::find().filter(role::Column::TenantId.eq(id))).await?),
                ("grants", tx.any(role_grant::Entity::find().filter(role_grant::Column::TenantId.eq(id))).await?),
            ] {
                if is_there {
                    return Err(StoreError::of(ACTION, Refusal::StillHas { what: what.to_owned() }));
                }
            }
            let windows = maintenance_window::Entity::delete_many();
            tx.run(&windows.filter(maintenance_window::Column::TenantId.eq(id))).await?;
            let calendars = calendar::Entity::find().filter(calendar::Column::TenantId.eq(id));
            let calendars = calendars.select_only().column(calendar::Column::Id).into_query();
            let versions = calendar_version::Entity::delete_many();
            tx.run(&versions.filter(calendar_version::Column::CalendarId.in_subquery(calendars))).await?;
            tx.run(&calendar::Entity::delete_many().filter(calendar::Column::TenantId.eq(id))).await?;
            tx.run(&api_token::Entity::delete_many().filter(api_token::Column::TenantId.eq(id))).await?;
            tx.execute(sql!("DELETE FROM tenant_rate WHERE id = {1}"), [id.into()]).await?;
            tx.run(&tenant::Entity::delete_many().filter(tenant::Column::Id.eq(id))).await?;
            tx.commit().await
        })
        .await
    }

    /// Creates an app of a tenant, with its first key.
    pub async fn create_app(&self, app: &AppView, key: &Key, words: KeyWords<'_>) -> Result<()> {
        let row = app::Model {
            id: app.id,
            tenant_id: app.tenant_id,
            name: app.name.clone(),
            description: Some(clean(&app.description)),
            max_concurrent: 0,
            sign_method: method_word(app.sign_method).to_owned(),
            scripts: i32::from(app.scripts),
            revision: 1,
            created_at: app.created_at,
        };
        retrying(|| async {
            let tx = self.begin("create an app").await?;
            // Held, so that the tenant is not deleted meanwhile.
            hold_tenant(&tx, app.tenant_id).await?;
            tx.insert(row.clone()).await?;
            let owner = Owner { tenant_id: app.tenant_id, app_id: app.id };
            insert_key(&tx, owner, key, words, app.created_at).await?;
            tx.commit().await
        })
        .await
        .map_err(|error| error.naming("app", &app.name))
    }

    /// Apps within reach, by id.
    pub async fn list_apps(&self, access_scope: &AccessScope, filter: &AppFilter) -> Result<Vec<AppView>> {
        let apps = app::Entity::find()
            .join(JoinType::InnerJoin, app::Relation::Tenant.def())
            .filter(app::Column::Id.gt(filter.after))
            .filter(within(access_scope, app::Column::TenantId, Some(app::Column::Id)))
            .apply_if(filter.tenant.as_deref(), |apps, name| apps.filter(tenant::Column::Name.eq(name)))
            .apply_if(filter.name.as_deref(), |apps, name| apps.filter(app::Column::Name.eq(name)))
            .apply_if(filter.id, |apps, id| apps.filter(app::Column::Id.eq(id)))
            .order_by_asc(app::Column::Id)
            .limit(filter.limit);
        self.at("list apps").all(apps).await
    }

    /// Names of tenant and app by the app's id.
    pub async fn app_names(&self, ids: &[AppId]) -> Result<HashMap<AppId, (String, String)>> {
        let mut names = HashMap::new();
        for batch in ids.chunks(BATCH_MAX) {
            let apps = app::Entity::find()
                .join(JoinType::InnerJoin, app::Relation::Tenant.def())
                .filter(app::Column::Id.is_in(batch.iter().copied()));
            let apps: Vec<AppView> = self.at("read the names of apps").all(apps).await?;
            names.extend(apps.into_iter().map(|app| (app.id, (app.tenant, app.name))));
        }
        Ok(names)
    }

    /// Writes what can be said of an app, if no one else has meanwhile.
    pub async fn edit_app(&self, before: &AppView, after: &AppView) -> Result<()> {
        const ACTION: &str = "change an app";
        let update = app::Entity::update_many()
            .set(app::ActiveModel {
                description: Set(Some(clean(&after.description))),
                max_concurrent: Set(after.max_concurrent),
                sign_method: Set(method_word(after.sign_method).to_owned()),
                scripts: Set(i32::from(after.scripts)),
                ..Default::default()
            })
            .col_expr(app::Column::Revision, next(app::Column::Revision))
            .filter(app::Column::Id.eq(before.id))
            .filter(app::Column::TenantId.eq(before.tenant_id))
            .filter(app::Column::Revision.eq(before.revision));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.bump_rules(&tx).await?;
            if tx.run(&update).await? == 0 {
                return Err(changed_meanwhile(ACTION, "app", &before.name));
            }
            tx.commit().await
        })
        .await
    }

    /// Deletes an app that has no task, with its keys and handlers; its executors are refused from
    /// then on.
    pub async fn delete_app(&self, tenant_id: TenantId, id: AppId) -> Result<()> {
        const ACTION: &str = "delete an app";
        /// The rows of a table that are the app's.
        macro_rules! of_app {
            ($of:expr, $table:ident) => {
                $of.filter($table::Column::TenantId.eq(tenant_id)).filter($table::Column::AppId.eq(id))
            };
        }
        let app = app::Entity::delete_many().filter(app::Column::Id.eq(id)).filter(app::Column::TenantId.eq(tenant_id));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.bump_rules(&tx).await?;
            tx.run(&app).await?;
            tx.run(&of_app!(app_key::Entity::delete_many(), app_key)).await?;
            tx.run(&of_app!(handler::Entity::delete_many(), handler)).await?;
            tx.run(&of_app!(executor_rule::Entity::delete_many(), executor_rule)).await?;
            let number = sql!("DELETE FROM xxljob_app WHERE app_id = {1} AND tenant_id = {2}");
            tx.execute(&number, [id.into(), tenant_id.into()]).await?;
            tx.run(&of_app!(executor_source::Entity::delete_many(), executor_source)).await?;
            // Nobody else would say that they are gone.
            let announced = sql!(
                "UPDATE executor SET gone_at = {now}, draining = 1, heartbeat_at = {now} WHERE app_id = {1} AND tenant_id = {2} \
                 AND plain = 1 AND gone_at = 0"
            );
            tx.execute(&announced, [id.into(), tenant_id.into()]).await?;
            let tasks = of_app!(task::Entity::find(), task).limit(10);
            let tasks: Vec<String> = tx.column(tasks, task::Column::Name).await?;
            if !tasks.is_empty() {
                return Err(StoreError::of(ACTION, Refusal::StillHasTasks { tasks: tasks.join(", ") }));
            }
            tx.commit().await
        })
        .await
    }

    /// Ids of a tenant's app by their names, within reach.
    pub async fn owner(&self, access_scope: &AccessScope, tenant: &str, app: &str) -> Result<Owner> {
        let (of, name) = (Some(tenant.to_owned()), Some(app.to_owned()));
        let filter = AppFilter { tenant: of, name, limit: 1, ..AppFilter::default() };
        let found = self.list_apps(access_scope, &filter).await?;
        let found: Option<Owner> = found.first().map(|app| Owner { tenant_id: app.tenant_id, app_id: app.id });
        found.ok_or_else(|| StoreError::of("find an app", no_app(tenant, app)))
    }

    /// The value stored under `name`, writing `value` first when there is none: the first of
    /// several nodes decides.
    pub async fn setting_or_insert(&self, name: &str, value: &str) -> Result<String> {
        const ACTION: &str = "read a setting";
        let row = setting::ActiveModel { name: Set(name.to_owned()), value: Set(value.to_owned()) };
        self.at(ACTION).run(&setting::Entity::insert(row).on_conflict(unless_there([setting::Column::Name]))).await?;
        let found = self.at(ACTION).column(setting::Entity::find_by_id(name), setting::Column::Value).await?;
        found.into_iter().next().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Other, ACTION, format!("setting `{name}` vanished while it was read"))
        })
    }
}

fn method_word(method: Option<SignMethod>) -> &'static str {
    method.map_or("", SignMethod::as_str)
}

fn changed_meanwhile(action: &'static str, what: &str, name: &str) -> StoreError {
    StoreError::of(action, Refusal::changed(what, name))
}
