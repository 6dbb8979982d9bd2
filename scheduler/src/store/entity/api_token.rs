//! An API token of a user, by its hash.

use crate::domain::TenantId;
use crate::domain::{TokenId, UserId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "api_token")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TokenId,
    pub hash: String,
    pub user_id: UserId,
    pub name: String,
    pub tenant_id: TenantId,
    pub permissions: String,
    pub created_at: i64,
    pub expires_at: i64,
    pub used_at: i64,
    pub revoked_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::user_account::Entity",
        from = "Column::UserId",
        to = "super::user_account::Column::Id"
    )]
    User,
}

impl ActiveModelBehavior for ActiveModel {}
