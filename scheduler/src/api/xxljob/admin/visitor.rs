//! Who asks, and in which tenant.

use super::reply::{CODE_UNKNOWN, Dialect, Refused, envelope};
use crate::api::Api;
use crate::api::client_address::client_address;
use crate::api::guard::{admit, refuse_foreign};
use crate::api::problem::Problem;
use crate::api::refusal::RequestRefusal;
use crate::auth::Caller;
use crate::domain::TenantId;
use crate::domain::access::{Access, AccessScope, PLATFORM, Permission, PermissionSet};
use crate::domain::xxljob::wire::{CODE_FAILED, TOKEN_HEADER};
use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use std::collections::BTreeSet;

/// The cookies that xxl-job's admins set, up to 3.1.1 and later.
pub const COOKIES: [&str; 2] = ["XXL_JOB_LOGIN_IDENTITY", "xxl_job_login_token"];

/// An authenticated caller within one tenant.
pub struct Visitor {
    /// Who, with what they may do in that tenant and nothing else.
    pub caller: Caller,
    /// The tenant; `None` for callers of the platform, who are refused.
    tenant_id: Option<TenantId>,
}

/// Whoever asks is not known, or asks too much.
pub struct Unknown(pub Problem);

impl Unknown {
    /// The answer, with the status that other clients know.
    pub fn respond(&self, dialect: Dialect) -> HttpResponse {
        let status = self.0.status_code();
        let code = if status == StatusCode::UNAUTHORIZED { CODE_UNKNOWN } else { CODE_FAILED };
        let mut response = HttpResponse::build(status);
        if status == StatusCode::UNAUTHORIZED {
            response.insert_header((WWW_AUTHENTICATE, "Bearer"));
        }
        response.json(envelope(dialect, code, Some(&self.0.to_string()), None))
    }
}

impl Visitor {
    /// The caller that the request's token or cookie identifies.
    pub async fn identify(api: &Api, request: &HttpRequest) -> Result<Self, Unknown> {
        let address = client_address(api, request);
        api.rates.addresses.admit_address(&address).map_err(|wait| Unknown(Problem::too_many(wait)))?;
        let (secret, is_cookie) = shown(request).ok_or_else(|| Unknown(Problem::unauthorised()))?;
        let now = api.engine.clock.now_ms();
        let caller = api.authenticator.identify(&secret, is_cookie, &address, now).await;
        let caller = caller.map_err(|denied| Unknown(denied.into()))?;
        admit(api, &caller).map_err(Unknown)?;
        Ok(Self::of(caller))
    }

    /// What this caller is here.
    pub fn of(mut caller: Caller) -> Self {
        let tenant_id = tenant_of(&caller);
        caller.access = match tenant_id {
            Some(tenant_id) => caller.access.narrowed(PermissionSet::all(), tenant_id),
            None => Access::default(),
        };
        Self { caller, tenant_id }
    }

    /// Refuses callers without a tenant, those who must choose another password first, and pages of other sites.
    pub fn may_ask(&self, request: &HttpRequest) -> Result<(), Refused> {
        if self.tenant_id.is_none() {
            return Err(Refused::new(
                "this interface works within one tenant, and the caller is of none: use a token that is made for a tenant, or a \
                 user of one",
            ));
        }
        if self.caller.must_change {
            return Err(Problem::from(RequestRefusal::PasswordChangeRequired).into());
        }
        if self.caller.csrf.is_some() {
            refuse_foreign(request)?;
        }
        Ok(())
    }

    /// The tenant of a caller who may ask.
    pub fn tenant_id(&self) -> TenantId {
        self.tenant_id.unwrap_or(PLATFORM)
    }

    /// Where the caller holds the permission, in this tenant.
    pub fn scope(&self, needs: Permission) -> Result<AccessScope, Refused> {
        self.caller.access.access_scope(needs).ok_or_else(|| Problem::forbidden(needs).into())
    }
}

/// The tenant for which the token is made, or the only one in which its owner may do anything, else that of the account.
fn tenant_of(caller: &Caller) -> Option<TenantId> {
    let tenants: BTreeSet<TenantId> = caller.access.grants().iter().map(|grant| grant.tenant_id).collect();
    let only = tenants.first().filter(|_| tenants.len() == 1).copied();
    [only, Some(caller.home_id)].into_iter().flatten().find(|tenant_id| *tenant_id != PLATFORM)
}

/// The token that a request carries, and whether it came as a cookie.
fn shown(request: &HttpRequest) -> Option<(String, bool)> {
    let only = |name: &str| {
        let mut values = request.headers().get_all(name);
        // A header that comes twice is none: a proxy might read the other one.
        values.next().filter(|_| values.next().is_none())?.to_str().ok()
    };
    if request.headers().contains_key(AUTHORIZATION) {
        return Some((only(AUTHORIZATION.as_str())?.strip_prefix("Bearer ")?.trim().to_owned(), false));
    }
    if request.headers().contains_key(TOKEN_HEADER) {
        return Some((only(TOKEN_HEADER)?.trim().to_owned(), false));
    }
    COOKIES.iter().find_map(|name| Some((request.cookie(name)?.value().to_owned(), true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::UserId;
    use crate::domain::access::Grant;
    use crate::domain::audit::Actor;

    /// The tenant of a caller at home in one, with grants in others.
    fn tenant(home: i64, grants: &[i64]) -> Option<i64> {
        let permissions = PermissionSet::all();
        let grant = |id: &i64| Grant { permissions, tenant_id: TenantId(*id), apps: Vec::new() };
        let actor = Actor { kind: "token", id: UserId(1), name: "ann".to_owned(), address: String::new() };
        let access = Access::new(grants.iter().map(grant).collect());
        let home_id = TenantId(home);
        let visitor = Visitor::of(Caller { actor, access, home_id, session: None, must_change: false, csrf: None });
        if let Some(tenant_id) = visitor.tenant_id {
            let others = visitor.caller.access.grants().iter().filter(|grant| grant.tenant_id != tenant_id);
            assert_eq!(others.count(), 0, "nothing is left of other tenants");
        }
        visitor.tenant_id.map(|id| id.0)
    }

    #[test]
    fn the_tenant_is_the_tokens_or_the_accounts() {
        assert_eq!(tenant(7, &[7]), Some(7));
        assert_eq!(tenant(7, &[7, 8]), Some(7));
        assert_eq!(tenant(7, &[]), Some(7));
        assert_eq!(tenant(0, &[8]), Some(8));
        assert_eq!(tenant(7, &[0]), Some(7), "what holds everywhere holds here, too");
        assert_eq!(tenant(0, &[0]), None);
        assert_eq!(tenant(0, &[7, 8]), None);
        assert_eq!(tenant(0, &[]), None);
    }
}
