//! The coming fires of any schedule, saved or not, and what is skipped in between.

use super::problem::Problem;
use super::tasks::{defaults, find, parse_id};
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::schedule::Schedule;
use crate::domain::task::TaskSpec;
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Fires in one preview at most.
const COUNT_MAX: usize = 1_000;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config.route("/tasks/{id}/preview", web::get().to(of_task)).route("/schedules/preview", web::post().to(of_spec));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    count: Option<i64>,
    after: Option<i64>,
}

async fn of_task(
    api: web::Data<Api>,
    id: web::Path<String>,
    wanted: web::Query<Wanted>,
) -> Result<HttpResponse, Problem> {
    let task = find(&api, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let anchor = if task.activity.started { task.anchor_at } else { now };
    let schedule = ready(&api, &task.tenant, &task.spec, anchor, task.id).await?;
    let left = if task.spec.max_fires > 0 { task.spec.max_fires - task.fires } else { i64::MAX };
    Ok(answer(&schedule, wanted.after.unwrap_or(now), checked(wanted.count)?, left))
}

/// Body: the fields of a task that say when, and `tenant` for its calendars, `count`, `after`.
async fn of_spec(api: web::Data<Api>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let mut fields: Map<String, Value> = body::json(payload).await?;
    let mut beside = |name: &str| fields.remove(name);
    let (tenant, count, after) = (beside("tenant"), beside("count"), beside("after"));
    let mut refused = Vec::new();
    let mut number = |field: &str, value: Option<Value>| {
        let number = value.as_ref().and_then(Value::as_i64);
        if value.is_some() && number.is_none() {
            refused.push(FieldError::new(field, "a whole number is allowed"));
        }
        number
    };
    let (count, after) = (number("count", count), number("after", after));
    let count = checked(count).map_err(|error| refused.push(error)).unwrap_or_default();
    if tenant.as_ref().is_some_and(|tenant| !tenant.is_string()) {
        refused.push(FieldError::new("tenant", "the name of a tenant is allowed"));
    }
    // A preview needs no name and no handler.
    for field in ["name", "handler"] {
        fields.entry(field).or_insert_with(|| Value::from("preview"));
    }
    let spec = defaults(&api).read(&fields).map_err(|wrong| refused.extend(wrong));
    let (true, Ok(spec)) = (refused.is_empty(), spec) else {
        return Err(Problem::fields(refused));
    };
    let tenant = tenant.as_ref().and_then(Value::as_str).unwrap_or_default();
    let now = api.engine.clock.now_ms();
    let schedule = ready(&api, tenant, &spec, now, 0).await?;
    let left = if spec.max_fires > 0 { spec.max_fires } else { i64::MAX };
    Ok(answer(&schedule, after.unwrap_or(now), count, left))
}

/// How many fires are wanted.
fn checked(count: Option<i64>) -> Result<usize, FieldError> {
    let count = usize::try_from(count.unwrap_or(10)).ok().filter(|count| (1..=COUNT_MAX).contains(count));
    count.ok_or_else(|| FieldError::new("count", format!("1 to {COUNT_MAX} are allowed")))
}

async fn ready(api: &Api, tenant: &str, spec: &TaskSpec, anchor: i64, seed: i64) -> Result<Schedule, Problem> {
    let mut schedule = spec.to_schedule(anchor, seed)?;
    if !spec.calendar.is_empty() {
        schedule.calendar = Some(api.store.ready_calendar(tenant, &spec.calendar).await?);
    }
    Ok(schedule)
}

fn answer(schedule: &Schedule, after: i64, count: usize, left: i64) -> HttpResponse {
    let count = count.min(usize::try_from(left).unwrap_or(0));
    let items = if count == 0 { Vec::new() } else { schedule.preview(after, count) };
    HttpResponse::Ok().json(json!({ "items": items }))
}
