//! What most handlers do first: find the object that the caller names, within their permissions; and last:
//! record the change in the audit.

use super::Api;
use super::input::parse_id;
use super::problem::Problem;
use crate::auth::Caller;
use crate::domain::audit::{AuditNote, Target};
use crate::domain::{Action, AppId, Owner, Permission, Refusal, TenantId};
use crate::store::{AppFilter, AppView, TenantView};

impl Api {
    /// The tenant with that name, if the caller holds the permission there or in some of its apps.
    pub async fn tenant(&self, caller: &Caller, needs: Permission, name: &str) -> Result<TenantView, Problem> {
        let found = self.store.list_tenants(&caller.access_scope(needs), Some(name), "", 1).await?;
        found.into_iter().next().ok_or_else(|| Refusal::not_found("tenant", name).into())
    }

    /// The tenant of that name, if the caller holds the permission for all of it.
    pub async fn whole_tenant(&self, caller: &Caller, needs: Permission, name: &str) -> Result<TenantView, Problem> {
        let tenant = self.tenant(caller, needs, name).await?;
        if caller.access.holds(needs, tenant.id, AppId::NONE) {
            return Ok(tenant);
        }
        Err(Problem::forbidden(needs))
    }

    /// The app of that name, if the caller holds the permission there.
    pub async fn owner(&self, caller: &Caller, needs: Permission, tenant: &str, app: &str) -> Result<Owner, Problem> {
        Ok(self.store.owner(&caller.access_scope(needs), tenant, app).await?)
    }

    /// The audit note of a change: its state before and after.
    pub fn note(
        &self,
        caller: &Caller,
        action: Action,
        tenant_id: TenantId,
        target: Target,
        (before, after): (Option<String>, Option<String>),
    ) -> AuditNote {
        let at = self.engine.clock.now_ms();
        let actor = caller.actor.clone();
        AuditNote { id: self.engine.ids.next(at), tenant_id, at, actor, action, target, before, after }
    }
}

/// The app of that id, where the caller holds the permission.
pub async fn find_app(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<AppView, Problem> {
    let id = parse_id("id", id)?;
    let filter = AppFilter { id: Some(id), limit: 1, ..AppFilter::default() };
    let found = api.store.list_apps(&caller.access_scope(needs), &filter).await?;
    found.into_iter().next().ok_or_else(|| Refusal::not_found("app", id).into())
}
