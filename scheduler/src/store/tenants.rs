//! Tenants, apps, their keys, and small settings.

use super::dialect::{Sql, or_ignore};
use super::{Result, Scope, SqlStore, StoreError, StoreErrorKind};
use carillon_protocol::sign::Key;
use sea_orm::{DbErr, QueryResult};

/// A key with whose it is, for checking and making signatures.
#[derive(Debug, Clone)]
pub struct SigningKey {
    /// Id and secret.
    pub key: Key,
    /// Owner.
    pub scope: Scope,
    /// Tenant's name, as it stands in the signature.
    pub tenant: String,
    /// App's name, as it stands in the signature.
    pub app: String,
}

/// A tenant as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantView {
    /// Id.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Runs at once at most; 0 is no bound.
    pub max_concurrent: i32,
}

/// An app as the API shows it.
#[derive(Debug, Clone)]
pub struct AppView {
    /// Id.
    pub id: i64,
    /// Tenant's name.
    pub tenant: String,
    /// Name.
    pub name: String,
    /// Runs at once at most; 0 is no bound.
    pub max_concurrent: i32,
    /// Ids of its valid keys.
    pub keys: Vec<String>,
}

/// A key to store.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Public id.
    pub id: String,
    /// Shared secret.
    pub secret: String,
}

fn signing_key(row: &QueryResult) -> std::result::Result<SigningKey, DbErr> {
    Ok(SigningKey {
        key: Key { id: row.try_get_by_index(0)?, secret: row.try_get_by_index(1)? },
        scope: Scope { tenant_id: row.try_get_by_index(2)?, app_id: row.try_get_by_index(3)? },
        tenant: row.try_get_by_index(4)?,
        app: row.try_get_by_index(5)?,
    })
}

impl SqlStore {
    /// Creates a tenant.
    pub async fn create_tenant(&self, id: i64, name: &str, now: i64) -> Result<()> {
        let sql = Sql::new(self.backend, "INSERT INTO tenant (id, name, created_at) VALUES ({1}, {2}, {3})");
        self.execute("create a tenant", &sql, [id.into(), name.into(), now.into()]).await.map(drop)
    }

    /// Every tenant.
    pub async fn tenants(&self) -> Result<Vec<TenantView>> {
        let sql = Sql::new(self.backend, "SELECT id, name, max_concurrent FROM tenant ORDER BY name LIMIT 10000");
        self.query("list tenants", &sql, [], |row| {
            Ok(TenantView {
                id: row.try_get_by_index(0)?,
                name: row.try_get_by_index(1)?,
                max_concurrent: row.try_get_by_index(2)?,
            })
        })
        .await
    }

    /// Creates an app of a tenant, with its first key.
    pub async fn create_app(&self, id: i64, tenant: &str, name: &str, key: &NewKey, now: i64) -> Result<()> {
        const ACTION: &str = "create an app";
        let tenant_id = self.tenant_id(tenant).await?;
        let tx = self.begin(ACTION).await?;
        let app =
            Sql::new(self.backend, "INSERT INTO app (id, tenant_id, name, created_at) VALUES ({1}, {2}, {3}, {4})");
        tx.execute(&app, [id.into(), tenant_id.into(), name.into(), now.into()]).await?;
        let row = Sql::new(
            self.backend,
            "INSERT INTO app_key (id, tenant_id, app_id, secret, created_at, revoked_at) VALUES ({1}, {2}, {3}, {4}, {5}, 0)",
        );
        let values = [key.id.clone().into(), tenant_id.into(), id.into(), key.secret.clone().into(), now.into()];
        tx.execute(&row, values).await?;
        tx.commit().await
    }

    /// Every app, without secrets.
    pub async fn apps(&self) -> Result<Vec<AppView>> {
        let sql = Sql::new(
            self.backend,
            "SELECT a.id, t.name, a.name, k.id, a.max_concurrent FROM app a JOIN tenant t ON t.id = a.tenant_id \
             LEFT JOIN app_key k ON k.app_id = a.id AND k.revoked_at = 0 ORDER BY t.name, a.name LIMIT 10000",
        );
        let rows: Vec<(i64, String, String, Option<String>, i32)> = self
            .query("list apps", &sql, [], |row| {
                Ok((
                    row.try_get_by_index(0)?,
                    row.try_get_by_index(1)?,
                    row.try_get_by_index(2)?,
                    row.try_get_by_index(3)?,
                    row.try_get_by_index(4)?,
                ))
            })
            .await?;
        let mut apps: Vec<AppView> = Vec::new();
        for (id, tenant, name, key, max_concurrent) in rows {
            match apps.last_mut().filter(|app| app.id == id) {
                Some(app) => app.keys.extend(key),
                None => apps.push(AppView { id, tenant, name, max_concurrent, keys: key.into_iter().collect() }),
            }
        }
        Ok(apps)
    }

    /// Every valid key of every app.
    pub async fn signing_keys(&self) -> Result<Vec<SigningKey>> {
        let sql = Sql::new(
            self.backend,
            "SELECT k.id, k.secret, k.tenant_id, k.app_id, t.name, a.name FROM app_key k \
             JOIN tenant t ON t.id = k.tenant_id JOIN app a ON a.id = k.app_id AND a.tenant_id = k.tenant_id \
             WHERE k.revoked_at = 0",
        );
        self.query("read signing keys", &sql, [], signing_key).await
    }

    /// Ids of a tenant's app by their names.
    pub async fn scope(&self, tenant: &str, app: &str) -> Result<Scope> {
        let sql = Sql::new(
            self.backend,
            "SELECT a.tenant_id, a.id FROM app a JOIN tenant t ON t.id = a.tenant_id WHERE t.name = {1} AND a.name = {2}",
        );
        let found = self
            .query("find an app", &sql, [tenant.into(), app.into()], |row| {
                Ok(Scope { tenant_id: row.try_get_by_index(0)?, app_id: row.try_get_by_index(1)? })
            })
            .await?;
        found.first().copied().ok_or_else(|| {
            StoreError::new(StoreErrorKind::NotFound, "find an app", format!("tenant `{tenant}` has no app `{app}`"))
        })
    }

    /// The value stored under `name`, writing `value` first when there is none: the first of
    /// several nodes decides.
    pub async fn setting_or_insert(&self, name: &str, value: &str) -> Result<String> {
        const ACTION: &str = "read a setting";
        let insert = Sql::new(
            self.backend,
            &format!("INSERT INTO setting (name, value) VALUES ({{1}}, {{2}}) {}", or_ignore(self.backend, "name")),
        );
        self.execute(ACTION, &insert, [name.into(), value.into()]).await?;
        let read = Sql::new(self.backend, "SELECT value FROM setting WHERE name = {1}");
        let found = self.query(ACTION, &read, [name.into()], |row| row.try_get_by_index(0)).await?;
        found.into_iter().next().ok_or_else(|| {
            StoreError::new(StoreErrorKind::Other, ACTION, format!("setting `{name}` vanished while it was read"))
        })
    }

    /// The id of the tenant of that name.
    pub async fn tenant_id(&self, name: &str) -> Result<i64> {
        let sql = Sql::new(self.backend, "SELECT id FROM tenant WHERE name = {1}");
        let found = self.query("find a tenant", &sql, [name.into()], |row| row.try_get_by_index(0)).await?;
        found.first().copied().ok_or_else(|| {
            StoreError::new(StoreErrorKind::NotFound, "find a tenant", format!("there is no tenant `{name}`"))
        })
    }
}
