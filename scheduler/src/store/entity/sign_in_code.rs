//! A code by which a user signs in at another cluster. The id is its hash.

use crate::domain::UserId;
use sea_orm::entity::prelude::*;

#[derive(Clone, Debug, DeriveEntityModel)]
#[sea_orm(table_name = "sign_in_code")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false, column_name = "id")]
    pub hash: String,
    pub user_id: UserId,
    pub cluster: String,
    pub challenge: String,
    pub expires_at: i64,
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
