//! Calendars of tenants. A new version counts for every task that names the calendar, at once.

use super::problem::Problem;
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::calendar::CalendarSpec;
use crate::redefine::change_of;
use crate::store::CalendarView;
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Tasks redefined in one transaction.
const TASKS_BATCH: u64 = 100;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/calendars/{tenant}", web::get().to(list))
        .service(web::resource("/calendars/{tenant}/{name}").get(show).put(put).delete(delete));
}

async fn list(api: web::Data<Api>, tenant: web::Path<String>) -> Result<HttpResponse, Problem> {
    let calendars = api.store.list_calendars(&tenant, None).await?;
    let items: Vec<Value> = calendars.iter().map(output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    version: Option<i64>,
}

async fn show(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
    wanted: web::Query<Wanted>,
) -> Result<HttpResponse, Problem> {
    let (tenant, name) = path.into_inner();
    let found = match wanted.version {
        Some(version) => api.store.calendar_version(&tenant, &name, version).await?,
        None => api.store.list_calendars(&tenant, Some(&name)).await?.into_iter().next(),
    };
    let calendar =
        found.ok_or_else(|| Problem::not_found(format!("there is no calendar `{name}` (of that version)")))?;
    Ok(HttpResponse::Ok().json(output(&calendar)))
}

async fn put(
    api: web::Data<Api>,
    path: web::Path<(String, String)>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let (tenant, name) = path.into_inner();
    let spec: CalendarSpec = body::json(payload).await?;
    let mut refused = Vec::new();
    if !(1..=128).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        refused.push(FieldError::new("name", "1 to 128 printable characters are allowed"));
    }
    refused.extend(spec.compile(&name, 1).err().into_iter().flatten());
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let now = api.engine.clock.now_ms();
    let version = api.store.put_calendar(api.engine.ids.next(now), &tenant, &name, &spec, now).await?;
    let tasks = redefine_tasks(&api, &tenant, &name).await?;
    let view = CalendarView { name, version, spec, updated_at: now };
    Ok(HttpResponse::Ok().json(json!({ "calendar": output(&view), "tasks": tasks })))
}

/// What was written ahead for the old version is taken back, and written for the new one.
async fn redefine_tasks(api: &Api, tenant: &str, name: &str) -> Result<usize, Problem> {
    let (mut after, mut count) = (0, 0);
    loop {
        let tasks = api.store.tasks_of_calendar(tenant, name, after, TASKS_BATCH).await?;
        let Some(last) = tasks.last() else { return Ok(count) };
        after = last.id;
        let started = tasks.into_iter().filter(|task| task.activity.started);
        let changes: Vec<_> = started
            .map(|task| {
                let (spec, activity) = (task.spec.clone(), task.activity.clone());
                change_of(task, spec, activity)
            })
            .collect();
        count += changes.len();
        api.redefiner.apply(&[], &changes).await?;
    }
}

async fn delete(api: web::Data<Api>, path: web::Path<(String, String)>) -> Result<HttpResponse, Problem> {
    let (tenant, name) = path.into_inner();
    api.store.delete_calendar(&tenant, &name).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn output(calendar: &CalendarView) -> Value {
    json!({
        "name": calendar.name,
        "version": calendar.version,
        "updated_at": calendar.updated_at,
        "excluded_weekdays": calendar.spec.excluded_weekdays,
        "excluded_days": calendar.spec.excluded_days,
        "workdays": calendar.spec.workdays,
        "excluded_hours": calendar.spec.excluded_hours,
        "description": calendar.spec.description,
    })
}
