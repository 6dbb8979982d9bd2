//! User accounts; what they are granted is in [`super::grants`].

use super::conditions::holds;
use super::entity::{api_token, role_grant, session, user_account};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::sql_store::retrying;
use super::values::clean;
use super::{GrantView, NewGrant, Result, SqlStore, StoreError, grants};
use crate::domain::access::{Access, TenantScope};
use crate::domain::{AccessScope, Refusal, TenantId, UserId};

/// A user account, without its password.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "user_account::Entity")]
pub struct UserView {
    /// Id.
    pub id: UserId,
    /// Name to sign in with.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Who may manage the account: this tenant's admins, or ([`PLATFORM`]) the platform's.
    pub tenant_id: TenantId,
    /// Whether it has a password.
    #[sea_orm(from_expr = "user_account::Column::PasswordHash.ne(\"\")")]
    pub has_password: bool,
    /// Must choose another password before anything else.
    #[sea_orm(from_expr = "user_account::Column::MustChange.ne(0)")]
    pub must_change: bool,
    /// Cannot sign in.
    #[sea_orm(from_expr = "user_account::Column::Disabled.ne(0)")]
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
    #[sea_orm(skip)]
    pub grants: Vec<GrantView>,
}

impl UserView {
    /// Everything that it may do.
    #[must_use]
    pub fn access(&self) -> Access {
        Access::new(self.grants.iter().map(GrantView::to_grant).collect())
    }
}

/// An account to be, or its new content.
#[derive(Debug, Clone)]
pub struct UserRow {
    /// Id.
    pub id: UserId,
    /// Name to sign in with.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Who may manage it.
    pub tenant_id: TenantId,
    /// Hash of its password; empty for none.
    pub password_hash: String,
    /// Must choose another one first.
    pub must_change: bool,
    /// Cannot sign in.
    pub disabled: bool,
    /// Of its single sign-on.
    pub subject: String,
}

/// Which users to list.
#[derive(Debug, Clone, Default)]
pub struct UserFilter {
    /// Only this one.
    pub id: Option<UserId>,
    /// Only of this name.
    pub name: Option<String>,
    /// Only those whose name, or name for people, has this in it; case does not count, as far as the database
    /// knows letters.
    pub search: Option<String>,
    /// Only of this single sign-on.
    pub subject: Option<String>,
    /// After this id.
    pub after: UserId,
    /// At most so many.
    pub limit: u64,
}

impl SqlStore {
    /// Creates an account with its first grants.
    pub async fn create_user(&self, user: &UserRow, grants: &[NewGrant], now: i64) -> Result<()> {
        let row = user_account::Model {
            id: user.id,
            name: user.name.clone(),
            display_name: clean(&user.display_name),
            tenant_id: user.tenant_id,
            password_hash: user.password_hash.clone(),
            must_change: user.must_change.into(),
            disabled: user.disabled.into(),
            subject: user.subject.clone(),
            revision: 1,
            created_at: now,
            updated_at: now,
            password_changed_at: now,
            last_login_at: 0,
        };
        retrying(|| async {
            let tx = self.begin("create a user").await?;
            tx.insert(row.clone()).await?;
            for grant in grants {
                grants::insert_grant(&tx, grant, now).await?;
            }
            tx.commit().await
        })
        .await
        .map_err(|error| error.naming("user", &user.name))
    }

    /// Users whose account belongs to a tenant within reach, or who are granted something there;
    /// by id.
    pub async fn list_users(&self, access_scope: &AccessScope, filter: &UserFilter) -> Result<Vec<UserView>> {
        let known_in = |places: &[TenantScope]| {
            let tenants: Vec<TenantId> = places.iter().map(|place| place.tenant_id).collect();
            let granted = role_grant::Entity::find()
                .select_only()
                .column(role_grant::Column::UserId)
                .filter(role_grant::Column::TenantId.is_in(tenants.iter().copied()));
            Condition::any()
                .add(user_account::Column::TenantId.is_in(tenants))
                .add(user_account::Column::Id.in_subquery(granted.into_query()))
        };
        let places = if let AccessScope::Of(places) = access_scope { Some(places) } else { None };
        let names = [user_account::Column::Name, user_account::Column::DisplayName];
        let users = user_account::Entity::find()
            .filter(user_account::Column::Id.gt(filter.after))
            .apply_if(places, |users, places| users.filter(known_in(places)))
            .apply_if(filter.id, |users, id| users.filter(user_account::Column::Id.eq(id)))
            .apply_if(filter.name.as_deref(), |users, name| users.filter(user_account::Column::Name.eq(name)))
            .apply_if(filter.subject.as_deref(), |users, of| users.filter(user_account::Column::Subject.eq(of)))
            .apply_if(filter.search.as_deref(), |users, part| users.filter(holds(&names, part)))
            .order_by_asc(user_account::Column::Id)
            .limit(filter.limit);
        let mut users: Vec<UserView> = self.at("list users").all(users).await?;
        let ids: Vec<UserId> = users.iter().map(|user| user.id).collect();
        for grant in self.grants_of(&ids).await? {
            if let Some(user) = users.iter_mut().find(|user| user.id == grant.user_id) {
                user.grants.push(grant);
            }
        }
        Ok(users)
    }

    /// Whether there is any account yet.
    pub async fn has_users(&self) -> Result<bool> {
        self.at("look for users").any(user_account::Entity::find()).await
    }

    /// The hash of a user's password.
    pub async fn password_hash(&self, user_id: UserId) -> Result<String> {
        let user = user_account::Entity::find_by_id(user_id);
        let found = self.at("read a password").column(user, user_account::Column::PasswordHash).await?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Writes an account's new content, if its revision still is `revision`; a new password
    /// (`password_hash` not empty) and a disabled account end its sessions, but for `keep`.
    pub async fn update_user(&self, user: &UserRow, revision: i64, keep: &str, now: i64) -> Result<()> {
        const ACTION: &str = "change a user";
        let mut to = user_account::ActiveModel {
            display_name: Set(clean(&user.display_name)),
            must_change: Set(user.must_change.into()),
            disabled: Set(user.disabled.into()),
            subject: Set(user.subject.clone()),
            updated_at: Set(now),
            ..Default::default()
        };
        if !user.password_hash.is_empty() {
            to.password_hash = Set(user.password_hash.clone());
            to.password_changed_at = Set(now);
        }
        let update = user_account::Entity::update_many()
            .set(to)
            .col_expr(user_account::Column::Revision, next(user_account::Column::Revision))
            .filter(user_account::Column::Id.eq(user.id))
            .filter(user_account::Column::TenantId.eq(user.tenant_id))
            .filter(user_account::Column::Revision.eq(revision));
        let others = session::Entity::delete_many()
            .filter(session::Column::UserId.eq(user.id))
            .filter(session::Column::Hash.ne(keep));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            if tx.run(&update).await? == 0 {
                return Err(StoreError::of(ACTION, Refusal::changed("user", &user.name)));
            }
            if user.disabled || !user.password_hash.is_empty() {
                tx.run(&others).await?;
            }
            grants::refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }

    /// Deletes an account of a tenant (or of the platform) with its sessions, grants and tokens.
    pub async fn delete_user(&self, tenant_id: TenantId, user_id: UserId) -> Result<()> {
        const ACTION: &str = "delete a user";
        let user = user_account::Entity::delete_many()
            .filter(user_account::Column::Id.eq(user_id))
            .filter(user_account::Column::TenantId.eq(tenant_id));
        retrying(|| async {
            let tx = self.begin(ACTION).await?;
            self.lock_access(&tx).await?;
            if tx.run(&user).await? == 0 {
                return Err(StoreError::of(ACTION, Refusal::not_found("user", user_id)));
            }
            tx.run(&session::Entity::delete_many().filter(session::Column::UserId.eq(user_id))).await?;
            tx.run(&role_grant::Entity::delete_many().filter(role_grant::Column::UserId.eq(user_id))).await?;
            tx.run(&api_token::Entity::delete_many().filter(api_token::Column::UserId.eq(user_id))).await?;
            grants::refuse_no_admin(&tx, ACTION).await?;
            tx.commit().await
        })
        .await
    }
}
