//! Roles that admins make. The built-in ones are the program's.

use super::conditions::touching;
use super::entity::{role, role_grant, user_account};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::sql_store::retrying;
use super::values::{clean, to_json};
use super::{Result, SqlStore, StoreError};
use crate::domain::access::{PLATFORM, PermissionSet};
use crate::domain::{AccessScope, Refusal, RoleId, TenantId};

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "role::Entity")]
pub struct RoleView {
    /// Id.
    pub id: RoleId,
    /// Where it can be granted; [`PLATFORM`] is everywhere.
    pub tenant_id: TenantId,
    /// Name, unique there.
    pub name: String,
    /// For people.
    pub description: String,
    /// What it allows.
    pub permissions: PermissionSet,
    /// Grows with every change.
    pub revision: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub updated_at: i64,
}

/// Which roles to list.
#[derive(Debug, Clone, Default)]
pub struct RoleFilter {
    /// Only this one.
    pub id: Option<RoleId>,
    /// Only of this name.
    pub name: Option<String>,
    /// After this id.
    pub after: RoleId,
    /// At most so many.
    pub limit: u64,
}

impl SqlStore {
    /// Roles that can be granted within reach, by id: those of its tenants and those of the
    /// platform.
    pub async fn list_roles(&self, access_scope: &AccessScope, filter: &RoleFilter) -> Result<Vec<RoleView>> {
        let grantable = touching(access_scope, role::Column::TenantId);
        let grantable = match access_scope {
            AccessScope::All => grantable,
            AccessScope::Of(_) => Condition::any().add(grantable).add(role::Column::TenantId.eq(PLATFORM)),
        };
        let roles = role::Entity::find()
            .filter(role::Column::Id.gt(filter.after))
            .filter(grantable)
            .apply_if(filter.id, |roles, id| roles.filter(role::Column::Id.eq(id)))
            .apply_if(filter.name.as_deref(), |roles, name| roles.filter(role::Column::Name.eq(name)))
            .order_by_asc(role::Column::Id)
            .limit(filter.limit);
        self.at("list roles").all(roles).await
    }

    /// Creates a role.
    pub async fn create_role(&self, role: &RoleView) -> Result<()> {
        const ACTION: &str = "create a role";
        let row = role::Model {
            id: role.id,
            tenant_id: role.tenant_id,
            name: role.name.clone(),
            description: clean(&role.description),
            permissions: to_json(ACTION, &role.permissions)?,
            revision: 1,
            created_at: role.created_at,
            updated_at: role.created_at,
        };
        self.at(ACTION).insert(row).await.map_err(|error| error.naming("role", &role.name))
    }

    /// Writes a role's new content, if its revision still is the one read; users who have it are
    /// affected at once.
    pub async fn update_role(&self, role: &RoleView, now: i64) -> Result<()> {
        const ACTION: &str = "change a role";
        let update = role::Entity::update_many()
            .set(role::ActiveModel {
                name: Set(role.name.clone()),
                description: Set(clean(&role.description)),
                permissions: Set(to_json(ACTION, &role.permissions)?),
                updated_at: Set(now),
                ..Default::default()
            })
            .col_expr(role::Column::Revision, next(role::Column::Revision))
            .filter(role::Column::Id.eq(role.id))
            .filter(role::Column::TenantId.eq(role.tenant_id))
            .filter(role::Column::Revision.eq(role.revision));
        let written = self.at(ACTION).run(&update).await;
        if written.map_err(|error| error.naming("role", &role.name))? == 0 {
            return Err(StoreError::of(ACTION, Refusal::changed("role", &role.name)));
        }
        Ok(())
    }

    /// Deletes a role that no user has.
    pub async fn delete_role(&self, role: &RoleView) -> Result<()> {
        const ACTION: &str = "delete a role";
        let holders = role_grant::Entity::find()
            .join(JoinType::InnerJoin, role_grant::Relation::User.def())
            .filter(role_grant::Column::RoleId.eq(role.id))
            .limit(10);
        let delete = role::Entity::delete_many()
            .filter(role::Column::Id.eq(role.id))
            .filter(role::Column::TenantId.eq(role.tenant_id));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            let holders: Vec<String> = tx.column(holders.clone(), user_account::Column::Name).await?;
            if !holders.is_empty() {
                return Err(StoreError::of(ACTION, Refusal::RoleGranted { users: holders.join(", ") }));
            }
            tx.run(&delete).await?;
            tx.commit().await
        })
        .await
    }
}
