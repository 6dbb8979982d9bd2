//! Sessions of signed-in users and API tokens. Only hashes are stored: what the database holds
//! opens no door.

use super::conditions::Conditions;
use super::dialect::Sql;
use super::rows::{clean, json, to_json};
use super::users::{USER_COLUMNS, user};
use super::{Result, SqlStore, StoreError, StoreErrorKind, UserView};
use crate::domain::Reach;
use crate::domain::access::PermissionSet;
use sea_orm::{DbErr, QueryResult};

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// Hash of its token.
    pub hash: String,
    /// Whose.
    pub user_id: i64,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// Id.
    pub id: i64,
    /// Whose.
    pub user_id: i64,
    /// Owner's name.
    pub user: String,
    /// What the owner calls it.
    pub name: String,
    /// Only in this tenant; 0 is wherever the owner may.
    pub tenant_id: i64,
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

const SESSION_COLUMNS: &str = "s.id, s.user_id, s.number, s.created_at, s.used_at, s.expires_at, s.address, s.agent";

const TOKEN_COLUMNS: &str =
    "k.id, k.user_id, u.name, k.name, k.tenant_id, k.permissions, k.created_at, k.expires_at, k.used_at";

/// How many columns a user has, before those.
const USER_COUNT: usize = 12;

impl SqlStore {
    /// Begins a session; the user's oldest ends when there are too many.
    pub async fn create_session(&self, session: &SessionView) -> Result<()> {
        const ACTION: &str = "begin a session";
        let insert = Sql::new(
            self.backend,
            "INSERT INTO session (id, user_id, number, created_at, used_at, expires_at, address, agent) VALUES \
             ({1}, {2}, {3}, {4}, {4}, {5}, {6}, {7})",
        );
        let oldest = Sql::new(
            self.backend,
            "SELECT s.id FROM session s WHERE s.user_id = {1} ORDER BY s.created_at DESC, s.id LIMIT 50 OFFSET {2}",
        );
        let used = Sql::new(self.backend, "UPDATE user_account SET last_login_at = {2} WHERE id = {1}");
        super::connect::retrying(|| async {
            let tx = self.begin(ACTION).await?;
            let values = [
                session.hash.as_str().into(),
                session.user_id.into(),
                session.number.into(),
                session.created_at.into(),
                session.expires_at.into(),
                session.address.as_str().into(),
                clean(&session.agent).into(),
            ];
            tx.execute(&insert, values).await?;
            let over: Vec<String> =
                tx.query(&oldest, [session.user_id.into(), SESSIONS_MAX.into()], |row| row.try_get_by_index(0)).await?;
            let end = Sql::new(self.backend, "DELETE FROM session WHERE id = {1}");
            for hash in over {
                tx.execute(&end, [hash.into()]).await?;
            }
            tx.execute(&used, [session.user_id.into(), session.created_at.into()]).await?;
            tx.commit().await
        })
        .await
    }

    /// The session of that hash, if it is not over and its user is not disabled; with the user and
    /// what he is granted.
    pub async fn session(&self, hash: &str, now: i64) -> Result<Option<(SessionView, UserView)>> {
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT {USER_COLUMNS}, {SESSION_COLUMNS} FROM session s JOIN user_account u ON u.id = s.user_id WHERE \
                 s.id = {{1}} AND s.expires_at > {{2}} AND u.disabled = 0"
            ),
        );
        let read = |row: &QueryResult| Ok((session(row, USER_COUNT)?, user(row)?));
        let found = self.query("find a session", &sql, [hash.into(), now.into()], read).await?;
        let Some((session, mut user)) = found.into_iter().next() else { return Ok(None) };
        user.grants = self.grants_of(&[user.id]).await?;
        Ok(Some((session, user)))
    }

    /// Notes that a session was used; it then lasts until `expires_at` (ms).
    pub async fn touch_session(&self, hash: &str, now: i64, expires_at: i64) -> Result<()> {
        let sql = Sql::new(self.backend, "UPDATE session SET used_at = {2}, expires_at = {3} WHERE id = {1}");
        self.execute("note the use of a session", &sql, [hash.into(), now.into(), expires_at.into()]).await.map(drop)
    }

    /// A user's sessions, newest first.
    pub async fn sessions_of(&self, user_id: i64, now: i64) -> Result<Vec<SessionView>> {
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT {SESSION_COLUMNS} FROM session s WHERE s.user_id = {{1}} AND s.expires_at > {{2}} \
                 ORDER BY s.created_at DESC LIMIT {SESSIONS_MAX}"
            ),
        );
        self.query("list sessions", &sql, [user_id.into(), now.into()], |row| session(row, 0)).await
    }

    /// Ends one session of a user (`number`), or (`None`) all of them; answers how many.
    pub async fn end_sessions(&self, user_id: i64, number: Option<i64>) -> Result<u64> {
        let sql = Sql::new(self.backend, "DELETE FROM session WHERE user_id = {1} AND ({2} = 0 OR number = {2})");
        self.execute("end sessions", &sql, [user_id.into(), number.unwrap_or(0).into()]).await
    }

    /// Creates an API token.
    pub async fn create_token(&self, token: &TokenView, hash: &str) -> Result<()> {
        const ACTION: &str = "create a token";
        // Held to the commit: two at once must not both be the last one.
        let hold = Sql::new(self.backend, "UPDATE user_account SET revision = revision WHERE id = {1}");
        let count = Sql::new(
            self.backend,
            "SELECT COUNT(*) FROM api_token WHERE user_id = {1} AND revoked_at = 0 AND (expires_at = 0 OR expires_at > {2})",
        );
        let sql = Sql::new(
            self.backend,
            "INSERT INTO api_token (id, hash, user_id, name, tenant_id, permissions, created_at, expires_at, used_at, \
             revoked_at) VALUES ({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, 0, 0)",
        );
        let values = [
            token.id.into(),
            hash.into(),
            token.user_id.into(),
            clean(&token.name).into(),
            token.tenant_id.into(),
            to_json(ACTION, &token.permissions)?.into(),
            token.created_at.into(),
            token.expires_at.into(),
        ];
        super::connect::retrying(|| async {
            let tx = self.begin(ACTION).await?;
            if tx.execute(&hold, [token.user_id.into()]).await? == 0 {
                return Err(StoreError::new(StoreErrorKind::NotFound, ACTION, "the user is gone"));
            }
            let valid = [token.user_id.into(), token.created_at.into()];
            let present: Vec<i64> = tx.query(&count, valid, |row| row.try_get_by_index(0)).await?;
            if present.first().is_some_and(|present| *present >= TOKENS_MAX) {
                let detail = format!("{TOKENS_MAX} tokens of one user are the most; revoke one first");
                return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
            }
            tx.execute(&sql, values.clone()).await?;
            tx.commit().await
        })
        .await
    }

    /// The valid token of that hash with its owner and what he is granted.
    pub async fn token(&self, hash: &str, now: i64) -> Result<Option<(TokenView, UserView)>> {
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT {USER_COLUMNS}, {TOKEN_COLUMNS} FROM api_token k JOIN user_account u ON u.id = k.user_id WHERE \
                 k.hash = {{1}} AND k.revoked_at = 0 AND (k.expires_at = 0 OR k.expires_at > {{2}}) AND u.disabled = 0"
            ),
        );
        let read = |row: &QueryResult| Ok((token(row, USER_COUNT)?, user(row)?));
        let found = self.query("find a token", &sql, [hash.into(), now.into()], read).await?;
        let Some((token, mut user)) = found.into_iter().next() else { return Ok(None) };
        user.grants = self.grants_of(&[user.id]).await?;
        Ok(Some((token, user)))
    }

    /// Notes that a token was used.
    pub async fn touch_token(&self, id: i64, now: i64) -> Result<()> {
        let sql = Sql::new(self.backend, "UPDATE api_token SET used_at = {2} WHERE id = {1} AND used_at < {2}");
        self.execute("note the use of a token", &sql, [id.into(), now.into()]).await.map(drop)
    }

    /// Tokens that are not revoked, by id: of one user, or of those whose accounts belong to
    /// tenants within reach.
    pub async fn list_tokens(
        &self,
        reach: &Reach,
        user_id: Option<i64>,
        after: i64,
        limit: u64,
    ) -> Result<Vec<TokenView>> {
        let head = format!(
            "SELECT {TOKEN_COLUMNS} FROM api_token k JOIN user_account u ON u.id = k.user_id WHERE k.revoked_at = 0 AND \
             k.id > {{1}}"
        );
        let mut wanted = Conditions::new(head, vec![after.into()]);
        wanted.within(reach, "u.tenant_id", None);
        wanted.and("k.user_id = ", user_id);
        let statement = wanted.finish(self, "ORDER BY k.id", limit);
        self.query_raw("list tokens", statement, |row| token(row, 0)).await
    }

    /// Revokes a token of a user.
    pub async fn revoke_token(&self, user_id: i64, id: i64, now: i64) -> Result<()> {
        const ACTION: &str = "revoke a token";
        let sql = Sql::new(
            self.backend,
            "UPDATE api_token SET revoked_at = {3} WHERE id = {1} AND user_id = {2} AND revoked_at = 0",
        );
        if self.execute(ACTION, &sql, [id.into(), user_id.into(), now.into()]).await? == 0 {
            return Err(StoreError::new(StoreErrorKind::NotFound, ACTION, format!("there is no token {id}")));
        }
        Ok(())
    }
}

fn session(row: &QueryResult, at: usize) -> std::result::Result<SessionView, DbErr> {
    Ok(SessionView {
        hash: row.try_get_by_index(at)?,
        user_id: row.try_get_by_index(at + 1)?,
        number: row.try_get_by_index(at + 2)?,
        created_at: row.try_get_by_index(at + 3)?,
        used_at: row.try_get_by_index(at + 4)?,
        expires_at: row.try_get_by_index(at + 5)?,
        address: row.try_get_by_index(at + 6)?,
        agent: row.try_get_by_index(at + 7)?,
    })
}

fn token(row: &QueryResult, at: usize) -> std::result::Result<TokenView, DbErr> {
    let words: Vec<String> = json(row, at + 5)?;
    Ok(TokenView {
        id: row.try_get_by_index(at)?,
        user_id: row.try_get_by_index(at + 1)?,
        user: row.try_get_by_index(at + 2)?,
        name: row.try_get_by_index(at + 3)?,
        tenant_id: row.try_get_by_index(at + 4)?,
        permissions: PermissionSet::known(words.iter().map(String::as_str)),
        created_at: row.try_get_by_index(at + 6)?,
        expires_at: row.try_get_by_index(at + 7)?,
        used_at: row.try_get_by_index(at + 8)?,
    })
}
