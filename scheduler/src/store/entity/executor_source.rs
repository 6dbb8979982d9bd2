//! Where an app's plain executors are found that do not register themselves.

use crate::domain::{AppId, TenantId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "executor_source")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub app_id: AppId,
    pub tenant_id: TenantId,
    pub addresses: String,
    pub nacos_namespace: String,
    pub nacos_group: String,
    pub nacos_service: String,
    pub nacos_port: i32,
    pub problem: String,
    pub since: i64,
    pub revision: i64,
    pub updated_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
