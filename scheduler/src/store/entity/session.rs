//! A session of a user. The id is the hash of its token.

use crate::domain::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "session")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "id")]
    pub hash: String,
    pub user_id: UserId,
    pub number: i64,
    pub created_at: i64,
    pub used_at: i64,
    pub expires_at: i64,
    pub address: String,
    pub agent: String,
}

#[derive(Clone, Copy, Debug, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::user_account::Entity",
        from = "Column::UserId",
        to = "super::user_account::Column::Id"
    )]
    User,
}

impl ActiveModelBehavior for ActiveModel {}
