//! Executors that are online, and the rules that people set for them.

use super::input::{Page, Query, etag, given, if_match, limit, parse_id, parse_optional_id, refuse_stale};
use super::operation::{Operation, get, patch};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::executor::{Executor, WEIGHT_MAX};
use crate::domain::{Action, AppId, FieldError, Owner, Permission, Refusal};
use crate::store::{ExecutorAddress, ExecutorRule};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Longest note, characters.
const NOTE_CHARS_MAX: usize = 1_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/executors", "list_executors", P::ExecutorsRead, "Executors that are online, by id")
            .query::<ExecutorQuery>()
            .answers_page::<ExecutorOutput>("A page of executors")
            .to(list),
        get("/executors/{id}", "show_executor", P::ExecutorsRead, "An executor that is online")
            .answers::<ExecutorOutput>(200, "The executor")
            .to(show),
        patch("/executors/{id}", Action::EditExecutor, P::ExecutorsEdit, "Disable an executor, or set its weight")
            .says("The setting belongs to the address: a new process there inherits it.")
            .if_match()
            .changes::<ExecutorPatch>()
            .answers::<ExecutorOutput>(200, "The executor")
            .to(edit),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ExecutorQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only in this app (name).
    app: Option<String>,
    /// `next` of the previous page.
    after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u64>,
}

/// Editable fields of an executor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorPatch {
    /// Takes no new runs.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    disabled: Option<bool>,
    /// Share of the runs relative to the other executors; with 0 it takes none.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 0, maximum = 100)]
    weight: Option<i32>,
    /// Why.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 1000)]
    note: Option<String>,
}

/// An executor.
#[derive(Serialize, ToSchema)]
#[schema(as = Executor)]
struct ExecutorOutput {
    /// Id, one per process start.
    id: String,
    /// Tenant's id.
    tenant_id: String,
    /// App's id.
    app_id: String,
    /// Tenant's name.
    tenant: String,
    /// App's name.
    app: String,
    /// Where it listens.
    address: String,
    /// Version of its own software, as reported; empty when it reports none.
    version: String,
    /// The node that received its last heartbeat.
    node: Option<String>,
    /// Tags.
    tags: BTreeSet<String>,
    /// Handlers; a plain one does not tell them.
    handlers: BTreeSet<String>,
    /// It speaks xxl-job's protocol: its `version` is what it calls with, and its `capacity` has no bound.
    plain: bool,
    /// Last heartbeat, epoch ms.
    heartbeat_at: i64,
    /// Takes no new runs, because it is shutting down.
    draining: bool,
    /// Takes no new runs, because a person disabled it.
    disabled: bool,
    /// Share of the runs relative to the other executors.
    weight: i32,
    /// Why it is disabled or weighted, as a person noted.
    note: String,
    /// Revision of `disabled`, `weight` and `note`; increases with every change.
    revision: i64,
    /// Maximum number of runs at once.
    capacity: i32,
    /// Runs accepted and not started.
    held: i32,
    /// Runs started and not ended.
    running: i32,
}

fn output(executor: &Executor, name: Option<&(String, String)>, rule: &ExecutorRule) -> ExecutorOutput {
    let (tenant, app) = name.cloned().unwrap_or_default();
    let ExecutorRule { weight, disabled, note, revision } = rule.clone();
    ExecutorOutput {
        id: executor.id.to_string(),
        tenant_id: executor.tenant_id.to_string(),
        app_id: executor.app_id.to_string(),
        tenant,
        app,
        address: executor.address.clone(),
        version: executor.version.clone(),
        node: (!executor.node_id.is_none()).then(|| executor.node_id.to_string()),
        tags: executor.tags.iter().cloned().collect(),
        handlers: executor.handlers.iter().cloned().collect(),
        plain: executor.plain,
        heartbeat_at: executor.heartbeat_at,
        draining: executor.draining,
        disabled,
        weight,
        note,
        revision,
        capacity: executor.capacity,
        held: executor.held,
        running: executor.running,
    }
}

fn place(executor: &Executor) -> ExecutorAddress {
    (executor.tenant_id, executor.app_id, executor.address.clone())
}

/// With names and current rules, read from the database: the node's own copy is up to a second older.
async fn outputs(api: &Api, executors: &[Arc<Executor>]) -> Result<Vec<ExecutorOutput>, Problem> {
    let names = api.store.app_names(&apps_of(executors)).await?;
    let places: Vec<ExecutorAddress> = executors.iter().map(|executor| place(executor)).collect();
    let rules = api.store.executor_rules(&places).await?;
    let unsaid = ExecutorRule::default();
    let with_place = executors.iter().zip(&places);
    let output = with_place
        .map(|(executor, place)| output(executor, names.get(&executor.app_id), rules.get(place).unwrap_or(&unsaid)));
    Ok(output.collect())
}

fn apps_of(executors: &[Arc<Executor>]) -> Vec<AppId> {
    executors.iter().map(|executor| executor.app_id).collect::<BTreeSet<_>>().into_iter().collect()
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<ExecutorQuery>) -> Result<HttpResponse, Problem> {
    let ExecutorQuery { tenant, app, after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let access_scope = caller.access_scope(Permission::ExecutorsRead);
    let mut online = api.engine.registry.everyone();
    online.retain(|executor| executor.id > after && access_scope.has(executor.tenant_id, executor.app_id));
    if let Some(tenant) = tenant {
        let found = api.store.list_tenants(&access_scope, Some(&tenant), "", 1).await?.pop();
        online.retain(|executor| found.as_ref().is_some_and(|tenant| tenant.id == executor.tenant_id));
    }
    if let Some(app) = app {
        let names = api.store.app_names(&apps_of(&online)).await?;
        online.retain(|executor| names.get(&executor.app_id).is_some_and(|(_, name)| *name == app));
    }
    online.sort_unstable_by_key(|executor| executor.id);
    online.truncate(limit as usize);
    let items = outputs(&api, &online).await?;
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |executor: &ExecutorOutput| executor.id.clone())))
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let executor = find(&api, &caller, Permission::ExecutorsRead, &id)?;
    answer(&api, &executor, &rule(&api, &executor).await?).await
}

/// The rule that people have set for it.
async fn rule(api: &Api, executor: &Executor) -> Result<ExecutorRule, Problem> {
    let place = place(executor);
    Ok(api.store.executor_rules(std::slice::from_ref(&place)).await?.remove(&place).unwrap_or_default())
}

async fn answer(api: &Api, executor: &Executor, rule: &ExecutorRule) -> Result<HttpResponse, Problem> {
    let names = api.store.app_names(&[executor.app_id]).await?;
    let output = output(executor, names.get(&executor.app_id), rule);
    Ok(HttpResponse::Ok().insert_header(etag(rule.revision)).json(output))
}

fn find(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<Arc<Executor>, Problem> {
    let id = parse_id("id", id)?;
    let access_scope = caller.access_scope(needs);
    let executor =
        api.engine.registry.find(id).filter(|executor| access_scope.has(executor.tenant_id, executor.app_id));
    executor.ok_or_else(|| Refusal::not_found("executor online", id).into())
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let ExecutorPatch { disabled, weight, note } = body::json(payload).await?;
    let executor = find(&api, &caller, Permission::ExecutorsEdit, &id)?;
    // Read from the database, not from this node's copy: omitted fields must keep what another caller has just set.
    let before = rule(&api, &executor).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let after = ExecutorRule {
        weight: weight.unwrap_or(before.weight),
        disabled: disabled.unwrap_or(before.disabled),
        note: note.unwrap_or_else(|| before.note.clone()),
        revision: before.revision,
    };
    if !(0..=WEIGHT_MAX).contains(&after.weight) {
        return Err(FieldError::range("weight", 0, WEIGHT_MAX.into()).into());
    }
    if after.note.chars().count() > NOTE_CHARS_MAX {
        return Err(FieldError::too_long("note", NOTE_CHARS_MAX).into());
    }
    let owner = Owner { tenant_id: executor.tenant_id, app_id: executor.app_id };
    let address = &executor.address;
    let now = api.engine.clock.now_ms();
    let target = Target { kind: "executor", id: address.clone(), name: address.clone() };
    let note = api.note(&caller, Action::EditExecutor, owner.tenant_id, target, (audited(&before), audited(&after)));
    let store = api.store.noting(vec![note]);
    store.set_executor_rule(api.engine.ids.next(now), owner, address, &after, now).await?;
    // This node knows it at once, the others with its next heartbeat.
    let (app, since) = ((owner.tenant_id, owner.app_id), api.engine.executors_alive_since());
    api.engine.registry.refresh_one(&api.store, executor.id, (app, Some(address)), since).await?;
    answer(&api, &executor, &ExecutorRule { revision: after.revision + 1, ..after }).await
}

fn audited(rule: &ExecutorRule) -> Option<String> {
    let ExecutorRule { weight, disabled, note, .. } = rule;
    Some(json!({ "weight": weight, "disabled": disabled, "note": note }).to_string())
}
