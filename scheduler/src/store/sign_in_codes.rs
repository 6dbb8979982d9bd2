//! Codes by which users sign in at other clusters: each for one use, within seconds. Only hashes are stored.

use super::entity::{sign_in_code, user_account};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::sql_store::retrying;
use super::{Result, SqlStore, UserView};
use crate::domain::UserId;

/// A code, without itself.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "sign_in_code::Entity")]
pub struct SignInCode {
    /// Its hash.
    pub hash: String,
    /// Who signs in.
    pub user_id: UserId,
    /// At which other cluster.
    pub cluster: String,
    /// Hash of what that cluster shows with the code.
    pub challenge: String,
    /// ms.
    pub expires_at: i64,
}

#[derive(DerivePartialModel)]
struct CodeOfUser {
    #[sea_orm(nested)]
    code: SignInCode,
    #[sea_orm(nested)]
    user: UserView,
}

impl SqlStore {
    /// Keeps a code; those that are over at `now` (cluster ms) are forgotten.
    pub async fn put_sign_in_code(&self, code: &SignInCode, now: i64) -> Result<()> {
        let SignInCode { hash, user_id, cluster, challenge, expires_at } = code.clone();
        let row = sign_in_code::Model { hash, user_id, cluster, challenge, expires_at };
        let over = sign_in_code::Entity::delete_many().filter(sign_in_code::Column::ExpiresAt.lte(now));
        retrying(|| async {
            let tx = self.begin("keep a code to sign in").await?;
            tx.run(&over).await?;
            tx.insert(row.clone()).await?;
            tx.commit().await
        })
        .await
    }

    /// The code of that hash with its user (without their grants), unless it is over at `now` (cluster ms) or they are disabled.
    pub async fn sign_in_code(&self, hash: &str, now: i64) -> Result<Option<(SignInCode, UserView)>> {
        let find = sign_in_code::Entity::find_by_id(hash)
            .join(JoinType::InnerJoin, sign_in_code::Relation::User.def())
            .filter(sign_in_code::Column::ExpiresAt.gt(now))
            .filter(user_account::Column::Disabled.eq(0));
        let found: Option<CodeOfUser> = self.at("find a code to sign in").one(find).await?;
        Ok(found.map(|CodeOfUser { code, user }| (code, user)))
    }

    /// Uses up the code of that hash; answers whether it was there: of two that come at once one is told so.
    pub async fn use_sign_in_code(&self, hash: &str) -> Result<bool> {
        let used = sign_in_code::Entity::delete_many().filter(sign_in_code::Column::Hash.eq(hash));
        retrying(|| async {
            let tx = self.begin("use a code to sign in").await?;
            if tx.run(&used).await? == 0 {
                return Ok(false);
            }
            tx.commit().await?;
            Ok(true)
        })
        .await
    }
}
