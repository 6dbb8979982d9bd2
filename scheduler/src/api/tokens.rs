//! API tokens: for programs that act for a user, with a subset of the user's permissions.

use super::input::{Page, Query, limit, parse_id, parse_optional_id};
use super::operation::{Operation, delete, get};
use super::people::{find_by_id, me};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::{Api, body};
use crate::auth::{Caller, TOKEN_PREFIX, hash_of, new_secret};
use crate::domain::access::{AccessScope, PLATFORM, PermissionSet};
use crate::domain::audit::Target;
use crate::domain::{Action, FieldError, FieldRefusal, Permission, Refusal, TokenId};
use crate::store::TokenView;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Longest life of a token that ends, ms: ten years.
const LIFE_MS_MAX: i64 = 3_653 * 86_400_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/tokens", "list_tokens", Permission::TokensRead, "API tokens of users of the caller's tenants, by id")
            .query::<TokenQuery>()
            .answers_page::<TokenOutput>("A page of tokens")
            .to(list),
        delete("/tokens/{id}", Action::RevokeToken, Permission::TokensRevoke, "Revoke an API token")
            .answers_nothing("Revoked")
            .to(revoke),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct TokenQuery {
    /// Only of this user.
    user: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// A token to create.
#[derive(Deserialize, ToSchema)]
#[schema(as = NewToken)]
#[serde(deny_unknown_fields)]
pub struct NewTokenInput {
    /// What it is for.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Permissions of the token; it never has more than its owner.
    #[schema(value_type = Vec<String>)]
    permissions: PermissionSet,
    /// Only in this tenant (name); wherever the owner has the permissions when absent.
    #[serde(default)]
    tenant: Option<String>,
    /// When it expires, epoch ms; at most ten years from now.
    expires_at: i64,
}

/// An API token, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = Token)]
pub struct TokenOutput {
    /// Id.
    id: String,
    /// Owner's id.
    user_id: String,
    /// Owner's name.
    user: String,
    /// What it is for.
    name: String,
    /// Only in this tenant (id).
    tenant_id: Option<String>,
    /// Permissions of the token; it never has more than its owner.
    permissions: Vec<&'static str>,
    /// Epoch ms.
    created_at: i64,
    /// When it expires, epoch ms.
    expires_at: i64,
    /// Last use, epoch ms, to the minute.
    used_at: Option<i64>,
}

impl From<TokenView> for TokenOutput {
    fn from(token: TokenView) -> Self {
        Self {
            id: token.id.to_string(),
            user_id: token.user_id.to_string(),
            user: token.user,
            name: token.name,
            tenant_id: (token.tenant_id != PLATFORM).then(|| token.tenant_id.to_string()),
            permissions: token.permissions.words(),
            created_at: token.created_at,
            expires_at: token.expires_at,
            used_at: (token.used_at != 0).then_some(token.used_at),
        }
    }
}

/// A token that was created, with its secret.
#[derive(Serialize, ToSchema)]
pub struct CreatedToken {
    #[serde(flatten)]
    token: TokenOutput,
    /// The token; never shown again.
    secret: String,
}

/// Creates a token of the caller's own.
pub async fn create_token(api: web::Data<Api>, caller: Caller, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let input: NewTokenInput = body::json(payload).await?;
    let user = me(&api, &caller).await?;
    let now = api.engine.clock.now_ms();
    let mut refused = Vec::new();
    if !(1..=100).contains(&input.name.trim().chars().count()) {
        refused.push(FieldError::length("name", 1, 100));
    }
    if input.permissions.is_empty() {
        refused.push(FieldError::new("permissions", FieldRefusal::PermissionsNeeded));
    }
    if input.expires_at <= now || input.expires_at - now > LIFE_MS_MAX {
        refused.push(FieldError::new("expires_at", FieldRefusal::WrongExpiry { years: 10 }));
    }
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let tenant_id = match &input.tenant {
        Some(tenant) => api.tenant(&caller, Permission::TenantsRead, tenant).await?.id,
        None => PLATFORM,
    };
    let secret = new_secret(TOKEN_PREFIX).map_err(Problem::internal)?;
    let token = TokenView {
        id: api.engine.ids.next(now),
        user_id: user.id,
        user: user.name,
        name: input.name,
        tenant_id,
        permissions: input.permissions,
        created_at: now,
        expires_at: input.expires_at,
        used_at: 0,
    };
    let after = serde_json::to_string(&TokenOutput::from(token.clone())).ok();
    let note = api.note(&caller, Action::CreateMyToken, user.tenant_id, target(token.id, &token.name), (None, after));
    api.store.noting(vec![note]).create_token(&token, &hash_of(&secret)).await?;
    Ok(HttpResponse::Created().json(CreatedToken { token: token.into(), secret }))
}

/// A token as a target in the audit.
pub fn target(id: TokenId, name: &str) -> Target {
    Target { kind: "token", id: id.to_string(), name: name.to_owned() }
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<TokenQuery>) -> Result<HttpResponse, Problem> {
    let TokenQuery { user, after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let user = parse_optional_id("user", user.as_ref())?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let tokens = api.store.list_tokens(&caller.access_scope(Permission::TokensRead), user, after, limit).await?;
    Ok(HttpResponse::Ok().json(page_of(tokens, limit)))
}

/// A page of at most `limit` of them.
pub fn page_of(tokens: Vec<TokenView>, limit: u64) -> Page<TokenOutput> {
    let items = tokens.into_iter().map(TokenOutput::from).collect();
    Page::new(items, limit, |token: &TokenOutput| token.id.clone())
}

async fn revoke(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let id: TokenId = parse_id("id", &id)?;
    let access_scope = caller.access_scope(Permission::TokensRevoke);
    // The token after the preceding id is the wanted one, if it is within the access scope.
    let found = api.store.list_tokens(&access_scope, None, TokenId(id.0.saturating_sub(1)), 1).await?;
    let token = found.into_iter().find(|token| token.id == id);
    let token = token.ok_or_else(|| Refusal::not_found("token", id))?;
    let user = find_by_id(&api, &AccessScope::All, token.user_id).await?;
    if user.as_ref().is_some_and(|user| !caller.access.covers(&user.access())) {
        return Err(RequestRefusal::UserAboveCaller.into());
    }
    let home = user.map_or(PLATFORM, |user| user.tenant_id);
    let before = serde_json::to_string(&TokenOutput::from(token.clone())).ok();
    let note = api.note(&caller, Action::RevokeToken, home, target(id, &token.name), (before, None));
    api.store.noting(vec![note]).revoke_token(token.user_id, id, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::NoContent().finish())
}
