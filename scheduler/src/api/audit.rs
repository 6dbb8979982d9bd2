//! The audit: searching entries, and reading a chain from its start to verify it.

use super::Api;
use super::input::{Page, Query, limit, parse_optional_id};
use super::operation::{Operation, get};
use super::problem::Problem;
use crate::auth::Caller;
use crate::domain::access::PLATFORM;
use crate::domain::action::AuditAction;
use crate::domain::audit::{AuditEntry, ChainPage};
use crate::domain::{AppId, FieldError, FieldRefusal, Permission, Refusal, TenantId};
use crate::store::{AuditFilter, AuditPage, ChainView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/audit", "search_audit", Permission::AuditRead, "Who changed what, newest first")
            .says(
                "A page that is not full can still have a `next`: the node stopped searching there. Continue from it.",
            )
            .query::<AuditQuery>()
            .answers_page::<AuditEntry>("A page of entries")
            .to(search),
        get("/audit/chains", "list_audit_chains", Permission::AuditRead, "The audit chains, and their last entries")
            .says(
                "One chain per tenant, by id, and the platform's. Platform callers also see those of deleted tenants.",
            )
            .query::<ChainsQuery>()
            .answers_page::<ChainEnd>("A page of chains")
            .to(chains),
        get("/audit/chain", "read_audit_chain", Permission::AuditRead, "A tenant's audit chain, from its start")
            .says("Includes the hashes that `carillon audit verify` checks, and the end of the chain.")
            .query::<ChainQuery>()
            .answers::<ChainPage>(200, "A page of the chain")
            .to(chain),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// Only in this tenant (name); `-` is the platform.
    tenant: Option<String>,
    /// Only in the tenant with this id, which may have been deleted.
    tenant_id: Option<String>,
    /// Only about the object with this id.
    target: Option<String>,
    /// Only about this kind of object: `task`, `user` …
    kind: Option<String>,
    /// Only what this user (id) did.
    actor: Option<String>,
    /// Only this operation: `edit_task` …; also `register_handlers`, from registrations of executors, and
    /// `rotate_encryption`, a command.
    #[param(inline, value_type = Option<AuditAction>)]
    action: Option<String>,
    /// From this instant on, epoch ms.
    from: Option<i64>,
    /// Before this instant, epoch ms.
    until: Option<i64>,
    /// `next` of the previous page.
    before: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ChainQuery {
    /// Name of the tenant; the platform's chain when absent.
    tenant: Option<String>,
    /// Id of the tenant, which may have been deleted, instead of its name.
    tenant_id: Option<String>,
    /// After this position in the chain.
    after: Option<i64>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ChainsQuery {
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// A chain, and where it ends.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditChain)]
struct ChainEnd {
    /// Tenant of the chain (id); null for the platform's.
    tenant_id: Option<String>,
    /// Name of the tenant; null for the platform, or a tenant that was deleted.
    tenant: Option<String>,
    /// Position of its last entry; 0 when it has none.
    last_seq: i64,
    /// Hash of its last entry.
    last_hash: String,
}

impl From<ChainView> for ChainEnd {
    fn from(chain: ChainView) -> Self {
        Self {
            tenant_id: (chain.tenant_id != PLATFORM).then(|| chain.tenant_id.to_string()),
            tenant: chain.tenant,
            last_seq: chain.end.seq,
            last_hash: chain.end.hash,
        }
    }
}

/// The chain that a query names, by its tenant's name or id.
async fn chain_of(api: &Api, caller: &Caller, tenant: Option<&str>, id: Option<&String>) -> Result<TenantId, Problem> {
    match (tenant, parse_optional_id::<TenantId>("tenant_id", id)?) {
        (Some(_), Some(_)) => Err(FieldError::new("tenant_id", FieldRefusal::not_with("tenant")).into()),
        (None, Some(id)) => {
            let access_scope = caller.access_scope(Permission::AuditRead);
            let found = api.store.audit_chains(&access_scope, TenantId(id.0.saturating_sub(1)), 1).await?;
            let found = found.first().filter(|chain| chain.tenant_id == id);
            found.map(|chain| chain.tenant_id).ok_or_else(|| Refusal::not_found("chain of", id).into())
        }
        (Some(tenant), None) if tenant != "-" => Ok(api.whole_tenant(caller, Permission::AuditRead, tenant).await?.id),
        _ if caller.access.holds(Permission::AuditRead, PLATFORM, AppId::NONE) => Ok(PLATFORM),
        _ => Err(Problem::forbidden(Permission::AuditRead)),
    }
}

async fn search(api: web::Data<Api>, caller: Caller, query: Query<AuditQuery>) -> Result<HttpResponse, Problem> {
    let AuditQuery { tenant, tenant_id, target, kind, actor, action, from, until, before, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let tenant_id = match (&tenant, &tenant_id) {
        (None, None) => None,
        (tenant, id) => Some(chain_of(&api, &caller, tenant.as_deref(), id.as_ref()).await?),
    };
    let filter = AuditFilter {
        tenant_id,
        target_id: target,
        target_kind: kind,
        actor_id: parse_optional_id("actor", actor.as_ref())?,
        action,
        from,
        until,
        before: parse_optional_id("before", before.as_ref())?,
        limit,
    };
    let AuditPage { entries, next } =
        api.store.search_audit(&caller.access_scope(Permission::AuditRead), &filter).await?;
    Ok(HttpResponse::Ok().json(Page { items: entries, next: next.map(|id| id.to_string()) }))
}

async fn chains(api: web::Data<Api>, caller: Caller, query: Query<ChainsQuery>) -> Result<HttpResponse, Problem> {
    let ChainsQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    // The platform's comes first.
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or(TenantId(PLATFORM.0 - 1));
    let chains = api.store.audit_chains(&caller.access_scope(Permission::AuditRead), after, limit).await?;
    let last = chains.last().map_or(PLATFORM, |chain| chain.tenant_id);
    let items = chains.into_iter().map(ChainEnd::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |_| last.to_string())))
}

async fn chain(api: web::Data<Api>, caller: Caller, query: Query<ChainQuery>) -> Result<HttpResponse, Problem> {
    let ChainQuery { tenant, tenant_id, after, limit: wanted } = query.0;
    let tenant_id = chain_of(&api, &caller, tenant.as_deref(), tenant_id.as_ref()).await?;
    // The end is read first: entries written in between are then read as well, and none is missed.
    let end = api.store.audit_end(tenant_id).await?;
    let items = api.store.audit_chain(tenant_id, after.unwrap_or(0), limit(wanted)?).await?;
    Ok(HttpResponse::Ok().json(ChainPage { items, tenant_id, last_seq: end.seq, last_hash: end.hash }))
}
