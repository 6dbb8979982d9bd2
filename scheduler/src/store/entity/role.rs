//! A role that an admin made. `tenant_id`: where it can be granted; 0 is everywhere.

use crate::domain::RoleId;
use crate::domain::TenantId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "role")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RoleId,
    pub tenant_id: TenantId,
    pub name: String,
    pub description: String,
    pub permissions: String,
    pub revision: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
