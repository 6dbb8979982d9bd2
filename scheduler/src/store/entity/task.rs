//! A task, as far as what people manage asks for it.

use crate::domain::{AppId, TaskId, TenantId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "task")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TaskId,
    pub tenant_id: TenantId,
    pub app_id: AppId,
    pub name: String,
    pub calendar: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
