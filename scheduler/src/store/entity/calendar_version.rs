//! A calendar as it was or is.

use crate::domain::CalendarId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "calendar_version")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: i64,
    pub calendar_id: CalendarId,
    pub version: i64,
    pub body: String,
    pub created_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(belongs_to = "super::calendar::Entity", from = "Column::CalendarId", to = "super::calendar::Column::Id")]
    Calendar,
}

impl ActiveModelBehavior for ActiveModel {}
