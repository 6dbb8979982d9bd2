//! Accounts as handlers find and show them.

use super::Api;
use super::input::parse_id;
use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::auth::Caller;
use crate::domain::access::PLATFORM;
use crate::domain::audit::Target;
use crate::domain::{AccessScope, Permission, Refusal, UserId};
use crate::store::{GrantView, UserFilter, UserRow, UserView};
use serde::Serialize;
use utoipa::ToSchema;

/// A role granted to a user.
#[derive(Serialize, ToSchema)]
#[schema(as = Grant)]
pub struct GrantOutput {
    /// Id.
    id: String,
    /// Role's id.
    role_id: String,
    /// Role's name.
    role: String,
    /// Tenant it is granted in (id); null means the whole platform.
    tenant_id: Option<String>,
    /// Only in these apps (ids); empty means all.
    apps: Vec<String>,
    /// It comes from a group of single sign-on, and ends with the membership.
    from_group: bool,
}

/// A user.
#[derive(Serialize, ToSchema)]
pub struct User {
    /// Id.
    pub id: String,
    /// Name to sign in with.
    name: String,
    /// Display name.
    display_name: String,
    /// Tenant whose admins manage the account (id); null means the platform.
    tenant_id: Option<String>,
    /// Cannot sign in.
    disabled: bool,
    /// Must choose another password before anything else.
    must_change_password: bool,
    /// Can sign in with a password, not only by single sign-on.
    has_password: bool,
    /// Issuer and subject of a user who signs in by single sign-on; null for others.
    subject: Option<String>,
    /// Increases with every change.
    revision: i64,
    /// Epoch ms.
    created_at: i64,
    /// Epoch ms.
    updated_at: i64,
    /// Epoch ms.
    last_login_at: Option<i64>,
    /// Roles granted to the user.
    grants: Vec<GrantOutput>,
}

impl From<&GrantView> for GrantOutput {
    fn from(grant: &GrantView) -> Self {
        Self {
            id: grant.id.to_string(),
            role_id: grant.role_id.to_string(),
            role: grant.role.clone(),
            tenant_id: (grant.tenant_id != PLATFORM).then(|| grant.tenant_id.to_string()),
            apps: grant.apps.iter().map(ToString::to_string).collect(),
            from_group: grant.by_group,
        }
    }
}

impl From<&UserView> for User {
    fn from(user: &UserView) -> Self {
        Self {
            id: user.id.to_string(),
            name: user.name.clone(),
            display_name: user.display_name.clone(),
            tenant_id: (user.tenant_id != PLATFORM).then(|| user.tenant_id.to_string()),
            disabled: user.disabled,
            must_change_password: user.must_change,
            has_password: user.has_password,
            subject: (!user.subject.is_empty()).then(|| user.subject.clone()),
            revision: user.revision,
            created_at: user.created_at,
            updated_at: user.updated_at,
            last_login_at: (user.last_login_at != 0).then_some(user.last_login_at),
            grants: user.grants.iter().map(GrantOutput::from).collect(),
        }
    }
}

/// The view for a caller whose permission covers `access_scope`: grants in other tenants are hidden; those on
/// the whole platform are shown, because they apply there, too.
pub fn seen(user: &UserView, access_scope: &AccessScope) -> User {
    let is_seen = |grant: &&GrantView| grant.tenant_id == PLATFORM || access_scope.touches(grant.tenant_id);
    let grants = user.grants.iter().filter(is_seen).cloned().collect();
    User::from(&UserView { grants, ..user.clone() })
}

/// A user as a target in the audit.
pub fn target(user: &UserView) -> Target {
    Target { kind: "user", id: user.id.to_string(), name: user.name.clone() }
}

/// What the audit records of a user: the view within the tenant that manages the account.
pub fn audited(user: &UserView) -> Option<String> {
    serde_json::to_string(&seen(user, &AccessScope::tenant(user.tenant_id))).ok()
}

/// The user with that id, within the access scope.
pub async fn find_by_id(api: &Api, access_scope: &AccessScope, id: UserId) -> Result<Option<UserView>, Problem> {
    let filter = UserFilter { id: Some(id), limit: 1, ..UserFilter::default() };
    Ok(api.store.list_users(access_scope, &filter).await?.into_iter().next())
}

pub async fn find(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<UserView, Problem> {
    let id = parse_id("id", id)?;
    let user = find_by_id(api, &caller.access_scope(needs), id).await?;
    user.ok_or_else(|| Refusal::not_found("user", id).into())
}

/// The current content of an account, with its password unchanged.
pub fn row_of(user: &UserView) -> UserRow {
    UserRow {
        id: user.id,
        name: user.name.clone(),
        display_name: user.display_name.clone(),
        tenant_id: user.tenant_id,
        password_hash: String::new(),
        must_change: user.must_change,
        disabled: user.disabled,
        subject: user.subject.clone(),
    }
}

/// The caller's account.
pub async fn me(api: &Api, caller: &Caller) -> Result<UserView, Problem> {
    let user = match caller.actor.id {
        UserId::NONE => None,
        id => find_by_id(api, &AccessScope::All, id).await?,
    };
    user.ok_or_else(|| RequestRefusal::AccountNeeded.into())
}
