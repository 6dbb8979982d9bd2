//! A role that a user has in a tenant, or (0) everywhere. `apps`: ids as JSON; none are all.

use crate::domain::TenantId;
use crate::domain::{GrantId, RoleId, UserId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "role_grant")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: GrantId,
    pub user_id: UserId,
    pub role_id: RoleId,
    pub tenant_id: TenantId,
    pub apps: String,
    pub created_by: UserId,
    pub created_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::user_account::Entity",
        from = "Column::UserId",
        to = "super::user_account::Column::Id"
    )]
    User,
    #[sea_orm(belongs_to = "super::role::Entity", from = "Column::RoleId", to = "super::role::Column::Id")]
    Role,
}

impl ActiveModelBehavior for ActiveModel {}
