//! The audit: searching it, and reading a chain from its beginning to verify it.

use super::Api;
use super::input::{Page, Query, limit, parse_optional_id};
use super::operation::{Operation, get};
use super::problem::Problem;
use crate::auth::Caller;
use crate::domain::Permission;
use crate::domain::access::PLATFORM;
use crate::domain::audit::AuditEntry;
use crate::store::AuditFilter;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What can be done.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/audit", "search_audit", Permission::AuditRead, "Who changed what, newest first")
            .query::<AuditQuery>()
            .answers_page::<Entry>("A page of entries")
            .to(search),
        get(
            "/audit/chain",
            "read_audit_chain",
            Permission::AuditRead,
            "A tenant's chain of entries, from its beginning",
        )
        .says("With the hashes that `carillon audit verify` checks, and where the chain ends.")
        .query::<ChainQuery>()
        .answers::<ChainPage>(200, "A page of the chain")
        .to(chain),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct AuditQuery {
    /// Only of the tenant of this name; `-` is the platform.
    tenant: Option<String>,
    /// Only about the thing of this id.
    target: Option<String>,
    /// Only about this kind of thing: `task`, `user` …
    kind: Option<String>,
    /// Only what this user (id) did.
    actor: Option<String>,
    /// Only this operation: `edit_task` …
    action: Option<String>,
    /// From this instant on, epoch ms.
    from: Option<i64>,
    /// Before this instant, epoch ms.
    until: Option<i64>,
    /// `next` of the page before.
    before: Option<String>,
    /// Items in the page, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ChainQuery {
    /// Name of the tenant; the platform's chain when absent.
    tenant: Option<String>,
    /// After this place in the chain.
    after: Option<i64>,
    /// Items in the page, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// An entry.
#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry)]
struct Entry {
    /// Id.
    id: String,
    /// Tenant's id; null is the platform.
    tenant_id: Option<String>,
    /// Place in its chain, from 1.
    seq: i64,
    /// When, epoch ms.
    at: i64,
    /// `user`, `token`, `setting`, `node` or `oidc`.
    actor_kind: String,
    /// The user's id.
    actor_id: Option<String>,
    /// Who, by name.
    actor: String,
    /// From where.
    address: String,
    /// Operation.
    action: String,
    /// Kind of thing.
    target_kind: String,
    /// Its id.
    target_id: String,
    /// Its name.
    target: String,
    /// What it was, as JSON.
    before: Option<String>,
    /// What it became, as JSON.
    after: Option<String>,
    /// Hash of the entry before it.
    previous: String,
    /// Its own hash.
    hash: String,
}

/// A page of a chain, and where the chain ends.
#[derive(Serialize, ToSchema)]
struct ChainPage {
    items: Vec<Entry>,
    /// Whose chain (id); null is the platform's.
    tenant_id: Option<String>,
    /// Place of its last entry.
    last_seq: i64,
    /// Hash of its last entry.
    last_hash: String,
}

impl From<AuditEntry> for Entry {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            tenant_id: (entry.tenant_id != PLATFORM).then(|| entry.tenant_id.to_string()),
            seq: entry.seq,
            at: entry.at,
            actor_kind: entry.actor_kind,
            actor_id: (entry.actor_id != 0).then(|| entry.actor_id.to_string()),
            actor: entry.actor,
            address: entry.address,
            action: entry.action,
            target_kind: entry.target_kind,
            target_id: entry.target_id,
            target: entry.target,
            before: entry.before,
            after: entry.after,
            previous: entry.previous,
            hash: entry.hash,
        }
    }
}

/// The chain that a query names.
async fn chain_of(api: &Api, caller: &Caller, tenant: Option<&str>) -> Result<i64, Problem> {
    match tenant {
        Some(tenant) if tenant != "-" => Ok(api.whole_tenant(caller, Permission::AuditRead, tenant).await?.id),
        _ if caller.access.holds(Permission::AuditRead, PLATFORM, 0) => Ok(PLATFORM),
        _ => Err(Problem::forbidden(Permission::AuditRead)),
    }
}

async fn search(api: web::Data<Api>, caller: Caller, query: Query<AuditQuery>) -> Result<HttpResponse, Problem> {
    let AuditQuery { tenant, target, kind, actor, action, from, until, before, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let tenant_id = match &tenant {
        Some(tenant) => Some(chain_of(&api, &caller, Some(tenant)).await?),
        None => None,
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
    let entries = api.store.list_audit(&caller.reach(Permission::AuditRead), &filter).await?;
    let items = entries.into_iter().map(Entry::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |entry: &Entry| entry.id.clone())))
}

async fn chain(api: web::Data<Api>, caller: Caller, query: Query<ChainQuery>) -> Result<HttpResponse, Problem> {
    let ChainQuery { tenant, after, limit: wanted } = query.0;
    let tenant_id = chain_of(&api, &caller, tenant.as_deref()).await?;
    // The end first: entries that come in between are seen as well, and never missed.
    let end = api.store.audit_end(tenant_id).await?;
    let entries = api.store.audit_chain(tenant_id, after.unwrap_or(0), limit(wanted)?).await?;
    Ok(HttpResponse::Ok().json(ChainPage {
        items: entries.into_iter().map(Entry::from).collect(),
        tenant_id: (tenant_id != PLATFORM).then(|| tenant_id.to_string()),
        last_seq: end.seq,
        last_hash: end.hash,
    }))
}
