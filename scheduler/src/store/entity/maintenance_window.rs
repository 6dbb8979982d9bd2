//! A time in which a tenant's tasks rest.

use crate::domain::{TenantId, WindowId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "maintenance_window")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: WindowId,
    pub tenant_id: TenantId,
    pub starts_at: i64,
    pub ends_at: i64,
    pub action: String,
    pub note: String,
    pub created_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
