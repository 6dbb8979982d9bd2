//! A key of an app's executors.

use crate::domain::{AppId, TenantId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "app_key")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: String,
    pub tenant_id: TenantId,
    pub app_id: AppId,
    pub secret: String,
    pub created_at: i64,
    pub revoked_at: i64,
    pub note: String,
    pub expires_at: i64,
    pub last_used_at: i64,
    pub created_by: String,
    pub kind: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
