//! An account that signs in. `tenant_id`: who may manage it; 0 is the platform.

use crate::domain::TenantId;
use crate::domain::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "user_account")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: UserId,
    pub name: String,
    pub display_name: String,
    pub tenant_id: TenantId,
    pub password_hash: String,
    pub must_change: i32,
    pub disabled: i32,
    pub subject: String,
    pub revision: i64,
    pub created_at: i64,
    pub updated_at: i64,
    pub password_changed_at: i64,
    pub last_login_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
