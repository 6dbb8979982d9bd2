//! An app of a tenant.

use crate::domain::{AppId, TenantId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "app")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: AppId,
    pub tenant_id: TenantId,
    pub name: String,
    pub description: Option<String>,
    pub max_concurrent: i32,
    pub sign_method: String,
    pub scripts: i32,
    pub revision: i64,
    pub created_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(belongs_to = "super::tenant::Entity", from = "Column::TenantId", to = "super::tenant::Column::Id")]
    Tenant,
}

impl ActiveModelBehavior for ActiveModel {}
