//! What a person says of the executor at an address.

use crate::domain::{AppId, TenantId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "executor_rule")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub tenant_id: TenantId,
    pub app_id: AppId,
    pub address: String,
    pub weight: i32,
    pub disabled: i32,
    pub note: String,
    pub updated_at: i64,
    pub revision: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
