//! What users are granted. Changes of who may do what are made one at a time (`access_lock`), so
//! that the last platform admin stays.

use super::entity::{Ids, role, role_grant, tenant, user_account};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::sql_store::{Transaction, retrying};
use super::values::to_json;
use super::{Result, SqlStore, StoreError};
use crate::domain::access::{BY_GROUP, BuiltIn, Grant, PLATFORM, PLATFORM_ADMIN, PermissionSet, built_in};
use crate::domain::{AppId, GrantId, Refusal, RoleId, TenantId, UserId};
use std::fmt::Display;

/// A role granted to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantView {
    /// Id.
    pub id: GrantId,
    /// Whom.
    pub user_id: UserId,
    /// Which role.
    pub role_id: RoleId,
    /// Its name.
    pub role: String,
    /// What it allows.
    pub permissions: PermissionSet,
    /// Where; [`PLATFORM`] is everywhere.
    pub tenant_id: TenantId,
    /// In which apps of the tenant; none are all.
    pub apps: Vec<AppId>,
    /// It follows from a group of single sign-on, and goes with it.
    pub by_group: bool,
}

impl GrantView {
    pub(super) fn to_grant(&self) -> Grant {
        Grant { permissions: self.permissions, tenant_id: self.tenant_id, apps: self.apps.clone() }
    }
}

/// A grant to be.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// Id.
    pub id: GrantId,
    /// Whom.
    pub user_id: UserId,
    /// Which role.
    pub role_id: RoleId,
    /// Where.
    pub tenant_id: TenantId,
    /// In which apps.
    pub apps: Vec<AppId>,
    /// By whom: a user, 0 for the configured token, or [`BY_GROUP`].
    pub created_by: UserId,
}

/// A grant as it is stored, with the role that admins made.
#[derive(DerivePartialModel)]
#[sea_orm(entity = "role_grant::Entity")]
struct GrantRow {
    id: GrantId,
    user_id: UserId,
    role_id: RoleId,
    tenant_id: TenantId,
    apps: Ids,
    created_by: UserId,
    #[sea_orm(from_expr = "role::Column::Name")]
    role: Option<String>,
    #[sea_orm(from_expr = "role::Column::Permissions")]
    permissions: Option<PermissionSet>,
}

impl From<GrantRow> for GrantView {
    fn from(row: GrantRow) -> Self {
        let built_in = built_in(row.role_id);
        Self {
            id: row.id,
            user_id: row.user_id,
            role_id: row.role_id,
            role: built_in.map_or(row.role.unwrap_or_default(), |role| role.name.to_owned()),
            permissions: built_in.map_or(row.permissions.unwrap_or_default(), BuiltIn::permissions),
            tenant_id: row.tenant_id,
            apps: row.apps.0,
            by_group: row.created_by == BY_GROUP,
        }
    }
}

impl SqlStore {
    /// Grants a role, if user, role and tenant are still there.
    pub async fn create_grant(&self, grant: &NewGrant, now: i64) -> Result<()> {
        const ACTION: &str = "grant a role";
        let gone = |what: &str, id: &dyn Display| StoreError::of(ACTION, Refusal::not_found(what, id));
        // Users and roles are deleted under the lock; the tenant is held.
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            if !tx.any(user_account::Entity::find_by_id(grant.user_id)).await? {
                return Err(gone("user", &grant.user_id));
            }
            if built_in(grant.role_id).is_none() && !tx.any(role::Entity::find_by_id(grant.role_id)).await? {
                return Err(gone("role", &grant.role_id));
            }
            if grant.tenant_id != PLATFORM && !hold_tenant(&tx, grant.tenant_id).await? {
                return Err(gone("tenant", &grant.tenant_id));
            }
            insert_grant(&tx, grant, now).await?;
            tx.commit().await
        })
        .await
    }

    /// Takes a grant in a tenant (or on the platform) back from a user.
    pub async fn delete_grant(&self, tenant_id: TenantId, user_id: UserId, id: GrantId) -> Result<()> {
        const ACTION: &str = "take a role back";
        let grant = role_grant::Entity::delete_many()
            .filter(role_grant::Column::Id.eq(id))
            .filter(role_grant::Column::UserId.eq(user_id))
            .filter(role_grant::Column::TenantId.eq(tenant_id));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            if tx.run(&grant).await? == 0 {
                return Err(StoreError::of(ACTION, Refusal::not_found("grant", id)));
            }
            refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }

    /// Replaces grants (ids) of a user by others, in one transaction.
    pub async fn regrant(&self, user_id: UserId, taken: &[GrantId], given: &[NewGrant], now: i64) -> Result<()> {
        const ACTION: &str = "follow the groups of a user";
        let take = role_grant::Entity::delete_many()
            .filter(role_grant::Column::UserId.eq(user_id))
            .filter(role_grant::Column::Id.is_in(taken.iter().copied()));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            tx.run(&take).await?;
            for grant in given {
                insert_grant(&tx, grant, now).await?;
            }
            refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }

    /// What these users are granted.
    pub async fn grants_of(&self, users: &[UserId]) -> Result<Vec<GrantView>> {
        let grants = role_grant::Entity::find()
            .join(JoinType::LeftJoin, role_grant::Relation::Role.def())
            .filter(role_grant::Column::UserId.is_in(users.iter().copied()))
            .order_by_asc(role_grant::Column::Id);
        let grants: Vec<GrantRow> = self.at("read grants").all(grants).await?;
        Ok(grants.into_iter().map(GrantView::from).collect())
    }

    /// From here to the commit no one else changes who may do what.
    pub(super) async fn lock_access(&self, tx: &Transaction<'_>) -> Result<()> {
        let sql = sql!("UPDATE access_lock SET turn = turn + 1 WHERE id = 1");
        tx.execute(&sql, []).await.map(drop)
    }
}

/// Holds a tenant until the commit, so that it is not deleted meanwhile; answers whether it is there.
pub(super) async fn hold_tenant(tx: &Transaction<'_>, id: TenantId) -> Result<bool> {
    let hold = tenant::Entity::update_many()
        .col_expr(tenant::Column::Revision, Expr::col(tenant::Column::Revision))
        .filter(tenant::Column::Id.eq(id));
    Ok(tx.run(&hold).await? > 0)
}

pub(super) async fn insert_grant(tx: &Transaction<'_>, grant: &NewGrant, now: i64) -> Result<()> {
    let row = role_grant::Model {
        id: grant.id,
        user_id: grant.user_id,
        role_id: grant.role_id,
        tenant_id: grant.tenant_id,
        apps: to_json("grant a role", &grant.apps)?,
        created_by: grant.created_by,
        created_at: now,
    };
    tx.insert(row).await
}

/// At least one user must be able to let others in, even while the provider of single sign-on is away.
pub(super) async fn refuse_no_admin(tx: &Transaction<'_>, action: &'static str) -> Result<()> {
    let admins = role_grant::Entity::find()
        .join(JoinType::InnerJoin, role_grant::Relation::User.def())
        .filter(role_grant::Column::RoleId.eq(PLATFORM_ADMIN))
        .filter(role_grant::Column::TenantId.eq(PLATFORM))
        .filter(user_account::Column::Disabled.eq(0))
        .filter(user_account::Column::PasswordHash.ne(""));
    if !tx.any(admins).await? {
        return Err(StoreError::of(action, Refusal::LastAdmin));
    }
    Ok(())
}
