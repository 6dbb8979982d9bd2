//! User accounts, and what they are granted. Changes of who may do what are made one at a time
//! (`access_lock`), so that the last platform admin stays.

use super::conditions::Conditions;
use super::connect::{Transaction, retrying};
use super::dialect::{Kind, Sql};
use super::rows::{clean, json, to_json};
use super::{Result, SqlStore, StoreError, StoreErrorKind};
use crate::domain::Reach;
use crate::domain::access::{Access, BY_GROUP, BuiltIn, Grant, PLATFORM, PLATFORM_ADMIN, PermissionSet, built_in};
use sea_orm::{DbErr, QueryResult};

/// A user account, without its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserView {
    /// Id.
    pub id: i64,
    /// Name to sign in with.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Who may manage the account: this tenant's admins, or ([`PLATFORM`]) the platform's.
    pub tenant_id: i64,
    /// Whether it has a password.
    pub has_password: bool,
    /// Must choose another password before anything else.
    pub must_change: bool,
    /// Cannot sign in.
    pub disabled: bool,
    /// Issuer and subject of its single sign-on, or empty.
    pub subject: String,
    /// Grows with every change.
    pub revision: i64,
    /// ms.
    pub created_at: i64,
    /// ms.
    pub updated_at: i64,
    /// ms, or 0.
    pub last_login_at: i64,
    /// What it is granted.
    pub grants: Vec<GrantView>,
}

impl UserView {
    /// Everything that it may do.
    #[must_use]
    pub fn access(&self) -> Access {
        Access::new(self.grants.iter().map(GrantView::to_grant).collect())
    }
}

/// A role granted to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantView {
    /// Id.
    pub id: i64,
    /// Whom.
    pub user_id: i64,
    /// Which role.
    pub role_id: i64,
    /// Its name.
    pub role: String,
    /// What it allows.
    pub permissions: PermissionSet,
    /// Where; [`PLATFORM`] is everywhere.
    pub tenant_id: i64,
    /// In which apps of the tenant; none are all.
    pub apps: Vec<i64>,
    /// It follows from a group of single sign-on, and goes with it.
    pub by_group: bool,
}

impl GrantView {
    fn to_grant(&self) -> Grant {
        Grant { permissions: self.permissions, tenant_id: self.tenant_id, apps: self.apps.clone() }
    }
}

/// An account to be, or its new content.
#[derive(Debug, Clone)]
pub struct UserRow {
    /// Id.
    pub id: i64,
    /// Name to sign in with.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Who may manage it.
    pub tenant_id: i64,
    /// Hash of its password; empty for none.
    pub password_hash: String,
    /// Must choose another one first.
    pub must_change: bool,
    /// Cannot sign in.
    pub disabled: bool,
    /// Of its single sign-on.
    pub subject: String,
}

/// A grant to be.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// Id.
    pub id: i64,
    /// Whom.
    pub user_id: i64,
    /// Which role.
    pub role_id: i64,
    /// Where.
    pub tenant_id: i64,
    /// In which apps.
    pub apps: Vec<i64>,
    /// By whom: a user, 0 for the configured token, or [`BY_GROUP`].
    pub created_by: i64,
}

/// Which users to list.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    /// Only this one.
    pub id: Option<i64>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only those whose name, or name for people, has this in it; case does not count, as far as the database
    /// knows letters.
    pub search: Option<String>,
    /// Only of this single sign-on.
    pub subject: Option<String>,
    /// After this id.
    pub after: i64,
    /// At most so many.
    pub limit: u64,
}

/// Columns of [`user`].
pub(super) const USER_COLUMNS: &str = "u.id, u.name, u.display_name, u.tenant_id, u.password_hash, u.must_change, u.disabled, \
     u.subject, u.revision, u.created_at, u.updated_at, u.last_login_at";

impl SqlStore {
    /// Creates an account with its first grants.
    pub async fn create_user(&self, user: &UserRow, grants: &[NewGrant], now: i64) -> Result<()> {
        const ACTION: &str = "create a user";
        let sql = Sql::new(
            self.backend,
            "INSERT INTO user_account (id, name, display_name, tenant_id, password_hash, must_change, disabled, subject, \
             revision, created_at, updated_at, password_changed_at, last_login_at) VALUES \
             ({1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, 1, {9}, {9}, {9}, 0)",
        );
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            tx.execute(
                &sql,
                [
                    user.id.into(),
                    user.name.as_str().into(),
                    clean(&user.display_name).into(),
                    user.tenant_id.into(),
                    user.password_hash.as_str().into(),
                    i32::from(user.must_change).into(),
                    i32::from(user.disabled).into(),
                    user.subject.as_str().into(),
                    now.into(),
                ],
            )
            .await?;
            for grant in grants {
                self.insert_grant(&tx, grant, now).await?;
            }
            tx.commit().await
        })
        .await
    }

    /// Users whose account belongs to a tenant within reach, or who are granted something there;
    /// by id.
    pub async fn list_users(&self, reach: &Reach, filter: &UserFilter) -> Result<Vec<UserView>> {
        let head = format!("SELECT {USER_COLUMNS} FROM user_account u WHERE u.id > {{1}}");
        let mut wanted = Conditions::new(head, vec![filter.after.into()]);
        if let Reach::Of(places) = reach {
            let tenants: Vec<[i64; 1]> = places.iter().map(|place| [place.tenant_id]).collect();
            let at = wanted.push(to_json("list users", &tenants)?);
            let of = self.backend.rows(at, &[("tenant", Kind::Big)]);
            wanted.text = format!(
                "{} AND (u.tenant_id IN (SELECT n_tenant FROM {of}) OR EXISTS (SELECT 1 FROM role_grant g WHERE \
                 g.user_id = u.id AND g.tenant_id IN (SELECT n_tenant FROM {of})))",
                wanted.text
            );
        }
        wanted.and("u.id = ", filter.id);
        wanted.and("u.name = ", filter.name.clone());
        wanted.and("u.subject = ", filter.subject.clone());
        wanted.and_holds(&["u.name", "u.display_name"], filter.search.as_deref());
        let statement = wanted.finish(self, "ORDER BY u.id", filter.limit);
        let mut users = self.query_raw("list users", statement, user).await?;
        let ids: Vec<i64> = users.iter().map(|user| user.id).collect();
        for grant in self.grants_of(&ids).await? {
            if let Some(user) = users.iter_mut().find(|user| user.id == grant.user_id) {
                user.grants.push(grant);
            }
        }
        Ok(users)
    }

    /// Whether there is any account yet.
    pub async fn has_users(&self) -> Result<bool> {
        let sql = Sql::new(self.backend, "SELECT id FROM user_account LIMIT 1");
        Ok(!self.query("look for users", &sql, [], |row| row.try_get_by_index::<i64>(0)).await?.is_empty())
    }

    /// The hash of a user's password.
    pub async fn password_hash(&self, user_id: i64) -> Result<String> {
        let sql = Sql::new(self.backend, "SELECT password_hash FROM user_account WHERE id = {1}");
        let found = self.query("read a password", &sql, [user_id.into()], |row| row.try_get_by_index(0)).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Writes an account's new content, if its revision still is `revision`; a new password
    /// (`password_hash` not empty) and a disabled account end its sessions, but for `keep`.
    pub async fn update_user(&self, user: &UserRow, revision: i64, keep: &str, now: i64) -> Result<()> {
        retrying(|| self.update_user_once(user, revision, keep, now)).await
    }

    async fn update_user_once(&self, user: &UserRow, revision: i64, keep: &str, now: i64) -> Result<()> {
        const ACTION: &str = "change a user";
        let tx = self.begin(ACTION).await?;
        self.lock_access(&tx).await?;
        let sql = Sql::new(
            self.backend,
            "UPDATE user_account SET display_name = {3}, must_change = {4}, disabled = {5}, subject = {6}, \
             password_changed_at = CASE WHEN {7} = '' THEN password_changed_at ELSE {8} END, \
             password_hash = CASE WHEN {7} = '' THEN password_hash ELSE {7} END, \
             revision = revision + 1, updated_at = {8} WHERE id = {1} AND tenant_id = {9} AND revision = {2}",
        );
        let values = [
            user.id.into(),
            revision.into(),
            clean(&user.display_name).into(),
            i32::from(user.must_change).into(),
            i32::from(user.disabled).into(),
            user.subject.as_str().into(),
            user.password_hash.as_str().into(),
            now.into(),
            user.tenant_id.into(),
        ];
        if tx.execute(&sql, values).await? == 0 {
            let detail = format!("user `{}` was changed meanwhile; read it again", user.name);
            return Err(StoreError::new(StoreErrorKind::Conflict, ACTION, detail));
        }
        if user.disabled || !user.password_hash.is_empty() {
            let end = Sql::new(self.backend, "DELETE FROM session WHERE user_id = {1} AND id <> {2}");
            tx.execute(&end, [user.id.into(), keep.into()]).await?;
        }
        self.refuse_no_admin(&tx, ACTION).await?;
        tx.commit().await
    }

    /// Deletes an account of a tenant (or of the platform) with its sessions, grants and tokens.
    pub async fn delete_user(&self, tenant_id: i64, user_id: i64) -> Result<()> {
        const ACTION: &str = "delete a user";
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            let sql = Sql::new(self.backend, "DELETE FROM user_account WHERE id = {1} AND tenant_id = {2}");
            if tx.execute(&sql, [user_id.into(), tenant_id.into()]).await? == 0 {
                return Err(StoreError::new(StoreErrorKind::NotFound, ACTION, format!("there is no user {user_id}")));
            }
            for table in ["session", "role_grant", "api_token"] {
                let sql = Sql::new(self.backend, &format!("DELETE FROM {table} WHERE user_id = {{1}}"));
                tx.execute(&sql, [user_id.into()]).await?;
            }
            self.refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }

    /// Grants a role, if user, role and tenant are still there.
    pub async fn create_grant(&self, grant: &NewGrant, now: i64) -> Result<()> {
        const ACTION: &str = "grant a role";
        let gone = |what: &str| StoreError::new(StoreErrorKind::NotFound, ACTION, format!("the {what} is gone"));
        // Users and roles are deleted under the lock; the tenant is held.
        let user = Sql::new(self.backend, "SELECT id FROM user_account WHERE id = {1}");
        let role = Sql::new(self.backend, "SELECT id FROM role WHERE id = {1}");
        let hold = Sql::new(self.backend, "UPDATE tenant SET revision = revision WHERE id = {1}");
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            let id = |row: &QueryResult| row.try_get_by_index::<i64>(0);
            if tx.query(&user, [grant.user_id.into()], id).await?.is_empty() {
                return Err(gone("user"));
            }
            if built_in(grant.role_id).is_none() && tx.query(&role, [grant.role_id.into()], id).await?.is_empty() {
                return Err(gone("role"));
            }
            if grant.tenant_id != PLATFORM && tx.execute(&hold, [grant.tenant_id.into()]).await? == 0 {
                return Err(gone("tenant"));
            }
            self.insert_grant(&tx, grant, now).await?;
            tx.commit().await
        })
        .await
    }

    async fn insert_grant(&self, tx: &Transaction<'_>, grant: &NewGrant, now: i64) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            "INSERT INTO role_grant (id, user_id, role_id, tenant_id, apps, created_by, created_at) VALUES \
             ({1}, {2}, {3}, {4}, {5}, {6}, {7})",
        );
        let apps = to_json("grant a role", &grant.apps)?;
        let values = [
            grant.id.into(),
            grant.user_id.into(),
            grant.role_id.into(),
            grant.tenant_id.into(),
            apps.into(),
            grant.created_by.into(),
            now.into(),
        ];
        tx.execute(&sql, values).await.map(drop)
    }

    /// Takes a grant in a tenant (or on the platform) back from a user.
    pub async fn delete_grant(&self, tenant_id: i64, user_id: i64, id: i64) -> Result<()> {
        const ACTION: &str = "take a role back";
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            let sql =
                Sql::new(self.backend, "DELETE FROM role_grant WHERE id = {1} AND user_id = {2} AND tenant_id = {3}");
            if tx.execute(&sql, [id.into(), user_id.into(), tenant_id.into()]).await? == 0 {
                return Err(StoreError::new(StoreErrorKind::NotFound, ACTION, format!("there is no grant {id}")));
            }
            self.refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }

    /// Takes grants (ids) of a user back and gives him others, at once.
    pub async fn regrant(&self, user_id: i64, taken: &[i64], given: &[NewGrant], now: i64) -> Result<()> {
        const ACTION: &str = "follow the groups of a user";
        let take = Sql::new(
            self.backend,
            &format!(
                "DELETE FROM role_grant WHERE user_id = {{1}} AND id IN (SELECT n_id FROM {})",
                self.backend.rows(2, &[("id", Kind::Big)])
            ),
        );
        let taken: Vec<[i64; 1]> = taken.iter().map(|id| [*id]).collect();
        let taken = to_json(ACTION, &taken)?;
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            tx.execute(&take, [user_id.into(), taken.as_str().into()]).await?;
            for grant in given {
                self.insert_grant(&tx, grant, now).await?;
            }
            self.refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }

    /// What these users are granted.
    pub async fn grants_of(&self, users: &[i64]) -> Result<Vec<GrantView>> {
        let sql = Sql::new(
            self.backend,
            &format!(
                "SELECT g.id, g.user_id, g.role_id, g.tenant_id, g.apps, COALESCE(r.name, ''), \
                 COALESCE(r.permissions, '[]'), g.created_by FROM {} JOIN role_grant g ON g.user_id = v.n_id LEFT JOIN role r ON \
                 r.id = g.role_id ORDER BY g.id",
                self.backend.rows(1, &[("id", Kind::Big)])
            ),
        );
        let ids: Vec<[i64; 1]> = users.iter().map(|id| [*id]).collect();
        self.query("read grants", &sql, [to_json("read grants", &ids)?.into()], grant).await
    }

    /// From here to the commit nobody else changes who may do what.
    pub(super) async fn lock_access(&self, tx: &Transaction<'_>) -> Result<()> {
        let sql = Sql::new(self.backend, "UPDATE access_lock SET turn = turn + 1 WHERE id = 1");
        tx.execute(&sql, []).await.map(drop)
    }

    /// Somebody must be left who can let others in, also when the provider of single sign-on is away.
    async fn refuse_no_admin(&self, tx: &Transaction<'_>, action: &'static str) -> Result<()> {
        let sql = Sql::new(
            self.backend,
            "SELECT u.id FROM user_account u JOIN role_grant g ON g.user_id = u.id WHERE g.role_id = {1} AND \
             g.tenant_id = {2} AND u.disabled = 0 AND u.password_hash <> '' LIMIT 1",
        );
        let left: Vec<i64> =
            tx.query(&sql, [PLATFORM_ADMIN.into(), PLATFORM.into()], |row| row.try_get_by_index(0)).await?;
        if left.is_empty() {
            let detail = "nobody would be left who is platform admin and has a password; make another one first";
            return Err(StoreError::new(StoreErrorKind::Conflict, action, detail));
        }
        Ok(())
    }
}

pub(super) fn user(row: &QueryResult) -> std::result::Result<UserView, DbErr> {
    let flag = |at| row.try_get_by_index::<i32>(at).map(|flag| flag != 0);
    Ok(UserView {
        id: row.try_get_by_index(0)?,
        name: row.try_get_by_index(1)?,
        display_name: row.try_get_by_index(2)?,
        tenant_id: row.try_get_by_index(3)?,
        has_password: !row.try_get_by_index::<String>(4)?.is_empty(),
        must_change: flag(5)?,
        disabled: flag(6)?,
        subject: row.try_get_by_index(7)?,
        revision: row.try_get_by_index(8)?,
        created_at: row.try_get_by_index(9)?,
        updated_at: row.try_get_by_index(10)?,
        last_login_at: row.try_get_by_index(11)?,
        grants: Vec::new(),
    })
}

fn grant(row: &QueryResult) -> std::result::Result<GrantView, DbErr> {
    let role_id = row.try_get_by_index(2)?;
    let built_in = built_in(role_id);
    let words: Vec<String> = json(row, 6)?;
    let stored = || PermissionSet::known(words.iter().map(String::as_str));
    Ok(GrantView {
        id: row.try_get_by_index(0)?,
        user_id: row.try_get_by_index(1)?,
        role_id,
        tenant_id: row.try_get_by_index(3)?,
        apps: json(row, 4)?,
        by_group: row.try_get_by_index::<i64>(7)? == BY_GROUP,
        role: built_in.map_or(row.try_get_by_index(5), |role| Ok(role.name.to_owned()))?,
        permissions: built_in.map_or_else(stored, BuiltIn::permissions),
    })
}
