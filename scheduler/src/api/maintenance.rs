//! Maintenance windows: times in which a tenant's tasks do not run. Nodes learn of a change within a
//! second or two.

use super::input::{AfterQuery, Page, Query, limit, parse_cursor, parse_id};
use super::operation::{Operation, delete, get, post};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::rules::{MaintenanceWindow, WindowAction};
use crate::domain::{Action, FieldError, FieldRefusal, Permission, WindowId};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Longest maintenance window, ms: thirty days.
const WINDOW_MS_MAX: i64 = 30 * 86_400_000;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get(
            "/tenants/{tenant}/maintenance",
            "list_windows",
            P::MaintenanceRead,
            "Maintenance windows that have not ended",
        )
        .query::<AfterQuery>()
        .answers_page::<Window>("A page of windows, by their end")
        .to(list),
        post(
            "/tenants/{tenant}/maintenance",
            Action::AddWindow,
            P::MaintenanceCreate,
            "Create a maintenance window, from now on or in the future",
        )
        .body::<WindowInput>()
        .answers::<Window>(201, "The window")
        .to(add),
        delete(
            "/tenants/{tenant}/maintenance/{id}",
            Action::DropWindow,
            P::MaintenanceDelete,
            "End a maintenance window",
        )
        .says("Postponed runs become due at once.")
        .answers_nothing("Ended")
        .to(drop_window),
    ]
}

/// A maintenance window to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WindowInput {
    /// First instant, epoch ms; now when absent.
    #[serde(default)]
    starts_at: Option<i64>,
    /// First instant after it, epoch ms; at most 30 days later.
    ends_at: i64,
    /// What it does to runs that are due in it.
    #[serde(default)]
    action: WindowAction,
    /// Free text for people to read.
    #[serde(default)]
    #[schema(max_length = 1000)]
    note: String,
}

/// A maintenance window.
#[derive(Serialize, ToSchema)]
#[schema(as = MaintenanceWindow)]
struct Window {
    /// Id.
    id: String,
    /// First instant, epoch ms.
    starts_at: i64,
    /// First instant after it, epoch ms.
    ends_at: i64,
    /// What it does to runs that are due in it.
    action: WindowAction,
    /// Free text for people to read.
    note: String,
}

impl From<&MaintenanceWindow> for Window {
    fn from(window: &MaintenanceWindow) -> Self {
        let MaintenanceWindow { id, starts_at, ends_at, action, note, .. } = window;
        Self { id: id.to_string(), starts_at: *starts_at, ends_at: *ends_at, action: *action, note: note.clone() }
    }
}

async fn add(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let input: WindowInput = body::json(payload).await?;
    let tenant_id = api.whole_tenant(&caller, Permission::MaintenanceCreate, &tenant).await?.id;
    let now = api.engine.clock.now_ms();
    let window = MaintenanceWindow {
        id: api.engine.ids.next(now),
        tenant_id,
        starts_at: input.starts_at.unwrap_or(now),
        ends_at: input.ends_at,
        action: input.action,
        note: input.note,
    };
    let mut refused = Vec::new();
    if window.ends_at <= window.starts_at.max(now) || window.ends_at.saturating_sub(window.starts_at) > WINDOW_MS_MAX {
        refused.push(FieldError::new("ends_at", FieldRefusal::WrongEnd { days: WINDOW_MS_MAX / 86_400_000 }));
    }
    if window.note.chars().count() > 1_000 {
        refused.push(FieldError::too_long("note", 1_000));
    }
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let output = Window::from(&window);
    let after = serde_json::to_string(&output).ok();
    let note = api.note(&caller, Action::AddWindow, tenant_id, target(window.id), (None, after));
    api.store.noting(vec![note]).add_window(&window, now).await?;
    Ok(HttpResponse::Created().json(output))
}

async fn list(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    query: Query<AfterQuery>,
) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = after.map(|place| parse_cursor("after", &place, 2..=2)).transpose()?;
    let tenant = api.tenant(&caller, Permission::MaintenanceRead, &tenant).await?;
    let now = api.engine.clock.now_ms();
    let windows = api.store.windows(tenant.id, now, after.map(|place| (place[0], place[1])), limit).await?;
    let items = windows.iter().map(Window::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |window: &Window| format!("{}-{}", window.ends_at, window.id))))
}

async fn drop_window(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let tenant = api.whole_tenant(&caller, Permission::MaintenanceDelete, &path.0).await?;
    let id = parse_id("id", &path.1)?;
    let before = api.store.window(tenant.id, id).await?;
    let before = before.as_ref().map(Window::from).and_then(|window| serde_json::to_string(&window).ok());
    let note = api.note(&caller, Action::DropWindow, tenant.id, target(id), (before, None));
    api.store.noting(vec![note]).drop_window(tenant.id, id).await?;
    // Postponed runs are due now; the other nodes check every second.
    api.engine.look().await?;
    api.engine.follow_rules().await?;
    api.wake.notify_one();
    Ok(HttpResponse::NoContent().finish())
}

fn target(id: WindowId) -> Target {
    Target { kind: "maintenance_window", id: id.to_string(), name: String::new() }
}
