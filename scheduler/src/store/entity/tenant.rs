//! A tenant and its quotas; 0 is no bound.

use crate::domain::TenantId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "tenant")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TenantId,
    pub name: String,
    pub description: Option<String>,
    pub max_tasks: i32,
    pub max_fires_per_minute: i32,
    pub max_concurrent: i32,
    pub retain_days: i32,
    pub revision: i64,
    pub created_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
