//! A calendar of a tenant as it is now.

use crate::domain::{CalendarId, TenantId};
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "calendar")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: CalendarId,
    pub tenant_id: TenantId,
    pub name: String,
    pub version: i64,
    pub body: String,
    pub updated_at: i64,
    pub changing_since: i64,
    pub task_turn: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
