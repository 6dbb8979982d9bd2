//! Executors that are online, and what people say of them.

use super::input::{Page, Query, parse_id};
use super::operation::{Operation, get, put};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::access::Reach;
use crate::domain::audit::Target;
use crate::domain::executor::{Executor, WEIGHT_MAX};
use crate::domain::{FieldError, Permission};
use crate::store::{AppFilter, ExecutorRule, Scope};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// What can be done.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/executors", "list_executors", P::ExecutorsRead, "Executors that are online, by id")
            .query::<ExecutorQuery>()
            .answers_page::<ExecutorOutput>("The executors")
            .to(list),
        get("/executors/{id}", "show_executor", P::ExecutorsRead, "An executor that is online")
            .answers::<ExecutorOutput>(200, "The executor")
            .to(show),
        put("/executors/{id}", "edit_executor", P::ExecutorsEdit, "Disable or weigh an executor")
            .says("It holds for its address: a new process there inherits it. What is not named stays as it is.")
            .body::<ExecutorInput>()
            .answers::<ExecutorOutput>(200, "The executor")
            .to(edit),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct ExecutorQuery {
    /// Only of the tenant of this name.
    tenant: Option<String>,
    /// Only of the app of this name.
    app: Option<String>,
}

/// What can be said of an executor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ExecutorInput {
    /// Takes no new runs.
    #[serde(default)]
    disabled: Option<bool>,
    /// Share of the runs compared with the others'; with 0 it takes none.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 100)]
    weight: Option<i32>,
    /// Why.
    #[serde(default)]
    #[schema(max_length = 1000)]
    note: String,
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
    /// Tags.
    tags: BTreeSet<String>,
    /// Handlers.
    handlers: BTreeSet<String>,
    /// Last heartbeat, epoch ms.
    heartbeat_at: i64,
    /// Takes no new runs, because it is about to leave.
    draining: bool,
    /// Takes no new runs, because a person said so.
    disabled: bool,
    /// Share of the runs compared with the others'.
    weight: i32,
    /// Runs at once at most.
    capacity: i32,
    /// Runs accepted and not started.
    held: i32,
    /// Runs started and not ended.
    running: i32,
}

type Names = HashMap<i64, (String, String)>;

fn output(executor: &Executor, names: &Names) -> ExecutorOutput {
    let (tenant, app) = names.get(&executor.app_id).cloned().unwrap_or_default();
    ExecutorOutput {
        id: executor.id.to_string(),
        tenant_id: executor.tenant_id.to_string(),
        app_id: executor.app_id.to_string(),
        tenant,
        app,
        address: executor.address.clone(),
        tags: executor.tags.iter().cloned().collect(),
        handlers: executor.handlers.iter().cloned().collect(),
        heartbeat_at: executor.heartbeat_at,
        draining: executor.draining,
        disabled: executor.disabled,
        weight: executor.weight,
        capacity: executor.capacity,
        held: executor.held,
        running: executor.running,
    }
}

/// Names of tenant and app by the app's id.
async fn names(api: &Api, reach: &Reach) -> Result<Names, Problem> {
    let filter = AppFilter { limit: 10_000, ..AppFilter::default() };
    let apps = api.store.list_apps(reach, &filter).await?;
    Ok(apps.into_iter().map(|app| (app.id, (app.tenant, app.name))).collect())
}

async fn list(api: web::Data<Api>, caller: Caller, query: Query<ExecutorQuery>) -> Result<HttpResponse, Problem> {
    let reach = caller.reach(Permission::ExecutorsRead);
    let names = names(&api, &reach).await?;
    let ExecutorQuery { tenant, app } = query.0;
    let mut online: Vec<_> = api.engine.registry.ids();
    online.sort_unstable();
    let found = online.iter().filter_map(|id| api.engine.registry.find(*id));
    let items = found
        .filter(|executor| reach.has(executor.tenant_id, executor.app_id))
        .map(|executor| output(&executor, &names))
        .filter(|executor| tenant.as_ref().is_none_or(|tenant| *tenant == executor.tenant))
        .filter(|executor| app.as_ref().is_none_or(|app| *app == executor.app));
    Ok(HttpResponse::Ok().json(Page::whole(items.collect())))
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let executor = find(&api, &caller, Permission::ExecutorsRead, &id)?;
    let names = names(&api, &Reach::All).await?;
    Ok(HttpResponse::Ok().json(output(&executor, &names)))
}

fn find(api: &Api, caller: &Caller, needs: Permission, id: &str) -> Result<Arc<Executor>, Problem> {
    let id = parse_id("id", id)?;
    let reach = caller.reach(needs);
    let executor = api.engine.registry.find(id).filter(|executor| reach.has(executor.tenant_id, executor.app_id));
    executor.ok_or_else(|| Problem::not_found(format!("there is no executor {id} online")))
}

async fn edit(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let input: ExecutorInput = body::json(payload).await?;
    let executor = find(&api, &caller, Permission::ExecutorsEdit, &id)?;
    let rule = ExecutorRule {
        weight: input.weight.unwrap_or(executor.weight),
        disabled: input.disabled.unwrap_or(executor.disabled),
        note: input.note,
    };
    if !(0..=WEIGHT_MAX).contains(&rule.weight) {
        return Err(FieldError::new("weight", "0 (takes nothing) to 100 are allowed").into());
    }
    if rule.note.chars().count() > 1_000 {
        return Err(FieldError::new("note", "at most 1000 characters are allowed").into());
    }
    let scope = Scope { tenant_id: executor.tenant_id, app_id: executor.app_id };
    let now = api.engine.clock.now_ms();
    let say = |weight: i32, disabled: bool, note: &str| {
        Some(serde_json::json!({ "weight": weight, "disabled": disabled, "note": note }).to_string())
    };
    let change = (say(executor.weight, executor.disabled, ""), say(rule.weight, rule.disabled, &rule.note));
    let target = Target { kind: "executor", id: executor.address.clone(), name: executor.address.clone() };
    let note = api.note(&caller, "edit_executor", scope.tenant_id, target, change);
    let store = api.store.noting(vec![note]);
    store.set_executor_rule(api.engine.ids.next(now), scope, &executor.address, &rule, now).await?;
    api.engine.look().await?;
    let names = names(&api, &Reach::All).await?;
    let mut answer = output(&executor, &names);
    (answer.weight, answer.disabled) = (rule.weight, rule.disabled);
    Ok(HttpResponse::Ok().json(answer))
}
