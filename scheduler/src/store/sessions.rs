//! Sessions of signed-in users and API tokens. Only hashes are stored: what the database holds
//! opens no door.

use super::conditions::within;
use super::entity::{api_token, session, user_account};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::sql_store::retrying;
use super::values::{clean, to_json};
use super::{Result, SqlStore, StoreError, UserView};
use crate::domain::access::PermissionSet;
use crate::domain::{AccessScope, Refusal, TenantId, TokenId, UserId};

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "session::Entity")]
pub struct SessionView {
    /// Hash of its token.
    pub hash: String,
    /// Whose.
    pub user_id: UserId,
    /// What the user calls it by.
    pub number: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub used_at: i64,
    /// ms.
    pub expires_at: i64,
    /// Where it was begun.
    pub address: String,
    /// With what.
    pub agent: String,
}

/// An API token, without itself.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "api_token::Entity")]
pub struct TokenView {
    /// Id.
    pub id: TokenId,
    /// Whose.
    pub user_id: UserId,
    /// Owner's name.
    #[sea_orm(from_expr = "user_account::Column::Name")]
    pub user: String,
    /// What the owner calls it.
    pub name: String,
    /// Only in this tenant; 0 is wherever the owner may.
    pub tenant_id: TenantId,
    /// What it may be used for, as far as the owner may.
    pub permissions: PermissionSet,
    /// ms.
    pub created_at: i64,
    /// ms, or 0 for never.
    pub expires_at: i64,
    /// ms, or 0.
    pub used_at: i64,
}

/// Sessions of one user at most; a further one ends the oldest.
const SESSIONS_MAX: u64 = 50;

/// Valid tokens of one user at most.
const TOKENS_MAX: i64 = 100;

#[derive(DerivePartialModel)]
struct SessionOfUser {
    #[sea_orm(nested)]
    session: SessionView,
    #[sea_orm(nested)]
    user: UserView,
}

#[derive(DerivePartialModel)]
struct TokenOfUser {
    #[sea_orm(nested)]
    token: TokenView,
    #[sea_orm(nested)]
    user: UserView,
}

/// A token that is neither revoked nor over at `now` (cluster ms).
fn valid(now: i64) -> Condition {
    let (expires, revoked) = (api_token::Column::ExpiresAt, api_token::Column::RevokedAt);
    Condition::all().add(revoked.eq(0)).add(Condition::any().add(expires.eq(0)).add(expires.gt(now)))
}

impl SqlStore {
    /// Begins a session; the user's oldest ends when there are too many.
    pub async fn create_session(&self, session: &SessionView) -> Result<()> {
        let row = session::Model {
            hash: session.hash.clone(),
            user_id: session.user_id,
            number: session.number,
            created_at: session.created_at,
            used_at: session.created_at,
            expires_at: session.expires_at,
            address: session.address.clone(),
            agent: clean(&session.agent),
        };
        let oldest = session::Entity::find()
            .filter(session::Column::UserId.eq(session.user_id))
            .order_by_desc(session::Column::CreatedAt)
            .order_by_asc(session::Column::Hash)
            .offset(SESSIONS_MAX)
            .limit(SESSIONS_MAX);
        let seen = user_account::Entity::update_many()
            .col_expr(user_account::Column::LastLoginAt, session.created_at.into())
            .filter(user_account::Column::Id.eq(session.user_id));
        retrying(|| async {
            let tx = self.begin("begin a session").await?;
            tx.insert(row.clone()).await?;
            let over: Vec<String> = tx.column(oldest.clone(), session::Column::Hash).await?;
            if !over.is_empty() {
                tx.run(&session::Entity::delete_many().filter(session::Column::Hash.is_in(over))).await?;
            }
            tx.run(&seen).await?;
            tx.commit().await
        })
        .await
    }

    /// The session of that hash, if it is not over and its user is not disabled; with the user and
    /// their grants.
    pub async fn session(&self, hash: &str, now: i64) -> Result<Option<(SessionView, UserView)>> {
        let found = session::Entity::find_by_id(hash)
            .join(JoinType::InnerJoin, session::Relation::User.def())
            .filter(session::Column::ExpiresAt.gt(now))
            .filter(user_account::Column::Disabled.eq(0));
        let found = self.at("find a session").one(found).await?;
        let Some(SessionOfUser { session, mut user }) = found else { return Ok(None) };
        user.grants = self.grants_of(&[user.id]).await?;
        Ok(Some((session, user)))
    }

    /// Notes that a session was used; it then lasts until `expires_at` (ms).
    pub async fn touch_session(&self, hash: &str, now: i64, expires_at: i64) -> Result<()> {
        let touch = session::Entity::update_many()
            .col_expr(session::Column::UsedAt, now.into())
            .col_expr(session::Column::ExpiresAt, expires_at.into())
            .filter(session::Column::Hash.eq(hash));
        self.at("note the use of a session").run(&touch).await.map(drop)
    }

    /// A user's sessions that are not over at `now` (cluster ms), newest first, before the one of
    /// that number.
    pub async fn sessions_of(
        &self,
        user_id: UserId,
        now: i64,
        before: Option<i64>,
        limit: u64,
    ) -> Result<Vec<SessionView>> {
        let sessions = session::Entity::find()
            .filter(session::Column::UserId.eq(user_id))
            .filter(session::Column::ExpiresAt.gt(now))
            .apply_if(before, |sessions, before| sessions.filter(session::Column::Number.lt(before)))
            .order_by_desc(session::Column::Number)
            .limit(limit);
        self.at("list sessions").all(sessions).await
    }

    /// What a user calls the session of that hash by.
    pub async fn session_number(&self, user_id: UserId, hash: &str) -> Result<Option<i64>> {
        let session = session::Entity::find_by_id(hash).filter(session::Column::UserId.eq(user_id));
        Ok(self.at("find a session").column(session, session::Column::Number).await?.pop())
    }

    /// Ends one session of a user (`number`), or (`None`) all of them; answers how many.
    pub async fn end_sessions(&self, user_id: UserId, number: Option<i64>) -> Result<u64> {
        let end = session::Entity::delete_many()
            .filter(session::Column::UserId.eq(user_id))
            .apply_if(number, |end, number| end.filter(session::Column::Number.eq(number)));
        self.at("end sessions").run(&end).await
    }

    /// Creates an API token.
    pub async fn create_token(&self, token: &TokenView, hash: &str) -> Result<()> {
        const ACTION: &str = "create a token";
        // Held to the commit: two at once must not both be the last one.
        let hold = user_account::Entity::update_many()
            .col_expr(user_account::Column::Revision, Expr::col(user_account::Column::Revision))
            .filter(user_account::Column::Id.eq(token.user_id));
        let present = api_token::Entity::find()
            .filter(api_token::Column::UserId.eq(token.user_id))
            .filter(valid(token.created_at));
        let row = api_token::Model {
            id: token.id,
            hash: hash.to_owned(),
            user_id: token.user_id,
            name: clean(&token.name),
            tenant_id: token.tenant_id,
            permissions: to_json(ACTION, &token.permissions)?,
            created_at: token.created_at,
            expires_at: token.expires_at,
            used_at: 0,
            revoked_at: 0,
        };
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            if tx.run(&hold).await? == 0 {
                return Err(StoreError::of(ACTION, Refusal::not_found("user", token.user_id)));
            }
            if tx.count(present.clone()).await? >= TOKENS_MAX {
                return Err(StoreError::of(ACTION, Refusal::TooManyTokens { most: TOKENS_MAX }));
            }
            tx.insert(row.clone()).await?;
            tx.commit().await
        })
        .await
    }

    /// The valid token of that hash with its owner and their grants.
    pub async fn token(&self, hash: &str) -> Result<Option<(TokenView, UserView)>> {
        let found = api_token::Entity::find()
            .join(JoinType::InnerJoin, api_token::Relation::User.def())
            .filter(api_token::Column::Hash.eq(hash))
            .filter(api_token::Column::RevokedAt.eq(0))
            .filter(user_account::Column::Disabled.eq(0));
        let found = self.at("find a token").one(found).await?;
        let Some(TokenOfUser { token, mut user }) = found else { return Ok(None) };
        user.grants = self.grants_of(&[user.id]).await?;
        Ok(Some((token, user)))
    }

    /// Notes that a token was used.
    pub async fn touch_token(&self, id: TokenId, now: i64) -> Result<()> {
        let touch = api_token::Entity::update_many()
            .col_expr(api_token::Column::UsedAt, now.into())
            .filter(api_token::Column::Id.eq(id))
            .filter(api_token::Column::UsedAt.lt(now));
        self.at("note the use of a token").run(&touch).await.map(drop)
    }

    /// Tokens that are not revoked, by id: of one user, or of those whose accounts belong to
    /// tenants within reach.
    pub async fn list_tokens(
        &self,
        access_scope: &AccessScope,
        user_id: Option<UserId>,
        after: TokenId,
        limit: u64,
    ) -> Result<Vec<TokenView>> {
        let tokens = api_token::Entity::find()
            .join(JoinType::InnerJoin, api_token::Relation::User.def())
            .filter(api_token::Column::RevokedAt.eq(0))
            .filter(api_token::Column::Id.gt(after))
            .filter(within(access_scope, user_account::Column::TenantId, None))
            .apply_if(user_id, |tokens, user| tokens.filter(api_token::Column::UserId.eq(user)))
            .order_by_asc(api_token::Column::Id)
            .limit(limit);
        self.at("list tokens").all(tokens).await
    }

    /// Revokes a token of a user.
    pub async fn revoke_token(&self, user_id: UserId, id: TokenId, now: i64) -> Result<()> {
        const ACTION: &str = "revoke a token";
        let revoke = api_token::Entity::update_many()
            .col_expr(api_token::Column::RevokedAt, now.into())
            .filter(api_token::Column::Id.eq(id))
            .filter(api_token::Column::UserId.eq(user_id))
            .filter(api_token::Column::RevokedAt.eq(0));
        if self.at(ACTION).run(&revoke).await? == 0 {
            return Err(StoreError::of(ACTION, Refusal::not_found("token", id)));
        }
        Ok(())
    }
}
