//! Tenants, apps, and small settings.

use super::conditions::Conditions;
use super::connect::retrying;
use super::dialect::{Kind, Sql};
use super::rows::{clean, to_json};
use super::{BATCH_MAX, KeyWords, Result, Scope, SqlStore, StoreError, StoreErrorKind};
use crate::domain::Reach;
use carillon_protocol::sign::{Key, SignMethod};
use sea_orm::{DbErr, QueryResult};
use std::collections::HashMap;

/// A tenant as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantView {
    /// Id.
    pub id: i64,
    /// Name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Runs at once at most; 0 is no bound.
    pub max_concurrent: i32,
    /// Grows with every change.
    pub revision: i64,
    /// ms.
    pub created_at: i64,
}

/// An app as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppView {
    /// Id.
    pub id: i64,
    /// Tenant.
    pub tenant_id: i64,
    /// Tenant's name.
    pub tenant: String,
    /// Name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Runs at once at most; 0 is no bound.
    pub max_concurrent: i32,
    /// How it demands that everything is signed; `None` leaves it to its executors.
    pub sign_method: Option<SignMethod>,
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
    pub id: Option<i64>,
    /// After this id.
    pub after: i64,
    /// At most so many.
    pub limit: u64,
}

const APP_COLUMNS: &str =
    "a.id, a.tenant_id, n.name, a.name, a.description, a.max_concurrent, a.revision, a.created_at, a.sign_method";

impl SqlStore {
    /// Creates a tenant.
    pub async fn create_tenant(&self, tenant: &TenantView) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            "INSERT INTO tenant (id, name, description, created_at, revision, max_concurrent) VALUES ({1}, {2}, {3}, {4}, 1, 0)",
        );
        let TenantView { id, name, description, created_at, .. } = tenant;
        let values = [(*id).into(), name.as_str().into(), clean(description).into(), (*created_at).into()];
        self.execute("create a tenant", &sql, values).await.map(drop)
    }

    /// Tenants within reach by name, after `after`; only the one of that name, when given.
    pub async fn list_tenants(
        &self,
        reach: &Reach,
        name: Option<&str>,
        after: &str,
        limit: u64,
    ) -> Result<Vec<TenantView>> {
        let head = "SELECT n.id, n.name, n.description, n.max_concurrent, n.revision, n.created_at FROM tenant n WHERE n.name > {1}";
        let mut wanted = Conditions::new(head.to_owned(), vec![after.into()]);
        wanted.touching(reach, "n.id");
        wanted.and("n.name = ", name);
        self.query_raw("list tenants", wanted.finish(self, "ORDER BY n.name", limit), tenant).await
    }

    /// Writes what people say of a tenant, if nobody else has meanwhile.
    pub async fn describe_tenant(&self, before: &TenantView, description: &str) -> Result<()> {
        const ACTION: &str = "describe a tenant";
        let sql = Sql::new(
            self.backend,
            "UPDATE tenant SET description = {3}, revision = revision + 1 WHERE id = {1} AND revision = {2}",
        );
        let values = [before.id.into(), before.revision.into(), clean(description).into()];
        if self.execute(ACTION, &sql, values).await? == 0 {
            return Err(changed_meanwhile(ACTION, "tenant", &before.name));
        }
        Ok(())
    }

    /// Deletes a tenant that nothing belongs to any more.
    pub async fn delete_tenant(&self, id: i64) -> Result<()> {
        const ACTION: &str = "delete a tenant";
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.bump_rules(&tx).await?;
            // Held, so that no app comes in meanwhile.
            let hold = Sql::new(self.backend, "UPDATE tenant SET revision = revision + 1 WHERE id = {1}");
            tx.execute(&hold, [id.into()]).await?;
            for (what, table) in
                [("apps", "app"), ("users", "user_account"), ("roles", "role"), ("grants", "role_grant")]
            {
                let sql = Sql::new(self.backend, &format!("SELECT id FROM {table} WHERE tenant_id = {{1}} LIMIT 1"));
                let found: Vec<i64> = tx.query(&sql, [id.into()], |row| row.try_get_by_index(0)).await?;
                if !found.is_empty() {
                    let detail = format!("it still has {what}; delete them first");
                    return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
                }
            }
            for table in ["calendar", "maintenance_window", "api_token"] {
                let sql = Sql::new(self.backend, &format!("DELETE FROM {table} WHERE tenant_id = {{1}}"));
                tx.execute(&sql, [id.into()]).await?;
            }
            for table in ["tenant_rate", "tenant"] {
                let sql = Sql::new(self.backend, &format!("DELETE FROM {table} WHERE id = {{1}}"));
                tx.execute(&sql, [id.into()]).await?;
            }
            tx.commit().await
        })
        .await
    }

    /// Creates an app of a tenant, with its first key.
    pub async fn create_app(&self, app: &AppView, key: &Key, words: KeyWords<'_>) -> Result<()> {
        const ACTION: &str = "create an app";
        let insert = Sql::new(
            self.backend,
            "INSERT INTO app (id, tenant_id, name, description, created_at, revision, max_concurrent, sign_method) \
             VALUES ({1}, {2}, {3}, {4}, {5}, 1, 0, {6})",
        );
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            let AppView { id, tenant_id, name, description, created_at, sign_method, .. } = app;
            // Held, so that the tenant is not deleted meanwhile.
            let hold = Sql::new(self.backend, "UPDATE tenant SET revision = revision WHERE id = {1}");
            tx.execute(&hold, [(*tenant_id).into()]).await?;
            let values = [
                (*id).into(),
                (*tenant_id).into(),
                name.as_str().into(),
                clean(description).into(),
                (*created_at).into(),
                method_word(*sign_method).into(),
            ];
            tx.execute(&insert, values).await?;
            let scope = Scope { tenant_id: *tenant_id, app_id: *id };
            self.insert_key(&tx, scope, key, words, *created_at).await?;
            tx.commit().await
        })
        .await
    }

    /// Apps within reach, by id.
    pub async fn list_apps(&self, reach: &Reach, filter: &AppFilter) -> Result<Vec<AppView>> {
        let head = format!("SELECT {APP_COLUMNS} FROM app a JOIN tenant n ON n.id = a.tenant_id WHERE a.id > {{1}}");
        let mut wanted = Conditions::new(head, vec![filter.after.into()]);
        wanted.within(reach, "a.tenant_id", Some("a.id"));
        wanted.and("n.name = ", filter.tenant.clone());
        wanted.and("a.name = ", filter.name.clone());
        wanted.and("a.id = ", filter.id);
        self.query_raw("list apps", wanted.finish(self, "ORDER BY a.id", filter.limit), app).await
    }

    /// Names of tenant and app by the app's id.
    pub async fn app_names(&self, ids: &[i64]) -> Result<HashMap<i64, (String, String)>> {
        const ACTION: &str = "read the names of apps";
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT a.id, n.name, a.name FROM {} JOIN app a ON a.id = v.n_id JOIN tenant n ON n.id = a.tenant_id",
                self.backend.rows(1, &[("id", Kind::Big)])
            ),
        );
        let mut names = HashMap::new();
        for batch in ids.chunks(BATCH_MAX) {
            let ids = to_json(ACTION, &batch.iter().map(|id| [id]).collect::<Vec<_>>())?;
            let found = self.query(ACTION, &sql, [ids.into()], |row| {
                Ok((row.try_get_by_index(0)?, (row.try_get_by_index(1)?, row.try_get_by_index(2)?)))
            });
            names.extend(found.await?);
        }
        Ok(names)
    }

    /// Writes what can be said of an app, if nobody else has meanwhile.
    pub async fn edit_app(&self, before: &AppView, after: &AppView) -> Result<()> {
        const ACTION: &str = "change an app";
        let sql = Sql::new(
            self.backend,
            "UPDATE app SET description = {4}, max_concurrent = {5}, sign_method = {6}, revision = revision + 1 \
             WHERE id = {1} AND tenant_id = {2} AND revision = {3}",
        );
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.bump_rules(&tx).await?;
            let values = [
                before.id.into(),
                before.tenant_id.into(),
                before.revision.into(),
                clean(&after.description).into(),
                after.max_concurrent.into(),
                method_word(after.sign_method).into(),
            ];
            if tx.execute(&sql, values).await? == 0 {
                return Err(changed_meanwhile(ACTION, "app", &before.name));
            }
            tx.commit().await
        })
        .await
    }

    /// Deletes an app that has no task, with its keys and handlers; its executors are refused from
    /// then on.
    pub async fn delete_app(&self, tenant_id: i64, id: i64) -> Result<()> {
        const ACTION: &str = "delete an app";
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.bump_rules(&tx).await?;
            let sql = Sql::new(self.backend, "DELETE FROM app WHERE id = {1} AND tenant_id = {2}");
            tx.execute(&sql, [id.into(), tenant_id.into()]).await?;
            for table in ["app_key", "handler", "executor_rule"] {
                let sql =
                    Sql::new(self.backend, &format!("DELETE FROM {table} WHERE app_id = {{1}} AND tenant_id = {{2}}"));
                tx.execute(&sql, [id.into(), tenant_id.into()]).await?;
            }
            let tasks = Sql::new(self.backend, "SELECT name FROM task WHERE app_id = {1} AND tenant_id = {2} LIMIT 10");
            let tasks: Vec<String> =
                tx.query(&tasks, [id.into(), tenant_id.into()], |row| row.try_get_by_index(0)).await?;
            if !tasks.is_empty() {
                let detail = format!("it still has tasks ({}); delete them first", tasks.join(", "));
                return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
            }
            tx.commit().await
        })
        .await
    }

    /// Ids of a tenant's app by their names, within reach.
    pub async fn scope(&self, reach: &Reach, tenant: &str, app: &str) -> Result<Scope> {
        let (of, name) = (Some(tenant.to_owned()), Some(app.to_owned()));
        let filter = AppFilter { tenant: of, name, limit: 1, ..AppFilter::default() };
        let found = self.list_apps(reach, &filter).await?;
        let found: Option<Scope> = found.first().map(|app| Scope { tenant_id: app.tenant_id, app_id: app.id });
        found.ok_or_else(|| {
            StoreError::new(StoreErrorKind::NotFound, "find an app", format!("tenant `{tenant}` has no app `{app}`"))
        })
    }

    /// The value stored under `name`, writing `value` first when there is none: the first of
    /// several nodes decides.
    pub async fn setting_or_insert(&self, name: &str, value: &str) -> Result<String> {
        const ACTION: &str = "read a setting";
        let insert = Sql::new(
            self.backend,
            &format!(
                "INSERT INTO setting (name, value) VALUES ({{1}}, {{2}}) {}",
                self.backend.or_ignore("setting", "name")
            ),
        );
        self.execute(ACTION, &insert, [name.into(), value.into()]).await?;
        let read = Sql::new(self.backend, "SELECT value FROM setting WHERE name = {1}");
        let found = self.query(ACTION, &read, [name.into()], |row| row.try_get_by_index(0)).await?;
        found.into_iter().next().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Other, ACTION, format!("setting `{name}` vanished while it was read"))
        })
    }
}

fn method_word(method: Option<SignMethod>) -> &'static str {
    method.map_or("", SignMethod::as_str)
}

fn changed_meanwhile(action: &'static str, what: &str, name: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, action, format!("{what} `{name}` was changed meanwhile; read it again"))
}

fn tenant(row: &QueryResult) -> std::result::Result<TenantView, DbErr> {
    Ok(TenantView {
        id: row.try_get_by_index(0)?,
        name: row.try_get_by_index(1)?,
        description: row.try_get_by_index::<Option<String>>(2)?.unwrap_or_default(),
        max_concurrent: row.try_get_by_index(3)?,
        revision: row.try_get_by_index(4)?,
        created_at: row.try_get_by_index(5)?,
    })
}

fn app(row: &QueryResult) -> std::result::Result<AppView, DbErr> {
    Ok(AppView {
        id: row.try_get_by_index(0)?,
        tenant_id: row.try_get_by_index(1)?,
        tenant: row.try_get_by_index(2)?,
        name: row.try_get_by_index(3)?,
        description: row.try_get_by_index::<Option<String>>(4)?.unwrap_or_default(),
        max_concurrent: row.try_get_by_index(5)?,
        revision: row.try_get_by_index(6)?,
        created_at: row.try_get_by_index(7)?,
        sign_method: SignMethod::parse(&row.try_get_by_index::<String>(8)?),
    })
}
