//! Rules of tenants, apps and executors: bounds on runs at once, maintenance windows, weights. A
//! node knows of a change within a second or two.

use super::problem::Problem;
use super::tasks::parse_id;
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::executor::WEIGHT_MAX;
use crate::domain::quota::COUNT_MAX;
use crate::domain::rules::{MaintenanceWindow, WindowAction};
use crate::store::{ExecutorRule, Scope};
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest maintenance window, ms: thirty days.
const WINDOW_MS_MAX: i64 = 30 * 86_400_000;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/tenants/{tenant}/apps/{app}/limits", web::put().to(bound_app))
        .service(web::resource("/tenants/{tenant}/maintenance").get(list_windows).post(add_window))
        .route("/tenants/{tenant}/maintenance/{id}", web::delete().to(drop_window))
        .route("/executors/{id}", web::put().to(set_executor));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    max_concurrent: i32,
}

impl Limits {
    fn check(&self) -> Result<(), FieldError> {
        if (0..=COUNT_MAX).contains(&self.max_concurrent) {
            return Ok(());
        }
        Err(FieldError::new("max_concurrent", "0 (no bound) to 1000000 are allowed"))
    }
}

async fn bound_app(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let limits: Limits = body::json(payload).await?;
    limits.check()?;
    api.store.bound_app(&path.0, &path.1, limits.max_concurrent).await?;
    Ok(HttpResponse::Ok().json(json!({ "max_concurrent": limits.max_concurrent })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowInput {
    /// Epoch ms; now when absent.
    #[serde(default)]
    starts_at: Option<i64>,
    ends_at: i64,
    #[serde(default)]
    action: WindowAction,
    #[serde(default)]
    note: String,
}

async fn add_window(
    api: web::Data<Api>,
    tenant: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let input: WindowInput = body::json(payload).await?;
    let now = api.engine.clock.now_ms();
    let window = MaintenanceWindow {
        id: api.engine.ids.next(now),
        tenant_id: 0,
        starts_at: input.starts_at.unwrap_or(now),
        ends_at: input.ends_at,
        action: input.action,
        note: input.note,
    };
    let mut refused = Vec::new();
    if window.ends_at <= window.starts_at.max(now) || window.ends_at - window.starts_at > WINDOW_MS_MAX {
        refused.push(FieldError::new(
            "ends_at",
            "an instant after `starts_at` and now, at most 30 days later, is allowed",
        ));
    }
    if window.note.chars().count() > 1_000 {
        refused.push(FieldError::new("note", "at most 1000 characters are allowed"));
    }
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    api.store.add_window(&tenant, &window, now).await?;
    Ok(HttpResponse::Created().json(output(&window)))
}

async fn list_windows(api: web::Data<Api>, tenant: web::Path<String>) -> Result<HttpResponse, Problem> {
    let windows = api.store.windows(&tenant, api.engine.clock.now_ms()).await?;
    let items: Vec<Value> = windows.iter().map(output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

async fn drop_window(api: web::Data<Api>, path: web::Path<(String, String)>) -> Result<HttpResponse, Problem> {
    api.store.drop_window(&path.0, parse_id("id", &path.1)?).await?;
    // What was postponed is due now; the other nodes look every second.
    api.engine.look().await?;
    api.poke.notify_one();
    Ok(HttpResponse::NoContent().finish())
}

fn output(window: &MaintenanceWindow) -> Value {
    json!({
        "id": window.id.to_string(),
        "starts_at": window.starts_at,
        "ends_at": window.ends_at,
        "action": window.action,
        "note": window.note,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutorInput {
    #[serde(default)]
    disabled: Option<bool>,
    #[serde(default)]
    weight: Option<i32>,
    #[serde(default)]
    note: String,
}

/// What a person says about an executor holds for its address: a new process there inherits it.
async fn set_executor(
    api: web::Data<Api>,
    id: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let input: ExecutorInput = body::json(payload).await?;
    let id = parse_id("id", &id)?;
    let executor = api.engine.registry.find(id);
    let executor = executor.ok_or_else(|| Problem::not_found(format!("there is no executor {id} online")))?;
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
    api.store.set_executor_rule(api.engine.ids.next(now), scope, &executor.address, &rule, now).await?;
    api.engine.look().await?;
    Ok(HttpResponse::Ok().json(json!({
        "id": id.to_string(),
        "address": executor.address,
        "weight": rule.weight,
        "disabled": rule.disabled,
        "note": rule.note,
    })))
}
