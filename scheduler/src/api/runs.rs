//! Starting runs that no schedule names.

use super::problem::Problem;
use super::tasks::{find, parse_id};
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::task::{SPAN_MS_MAX, ScheduleKind, check_params, params_text};
use crate::store::{Backfill, NewRun};
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest idempotency key, characters.
const KEY_CHARS_MAX: usize = 255;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/tasks/{id}/run", web::post().to(run))
        .service(web::resource("/tasks/{id}/backfills").get(list_backfills).post(backfill))
        .route("/tasks/{id}/backfills/{backfill}", web::delete().to(cancel_backfill));
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RunInput {
    params: Option<Value>,
    /// Start so many ms from now.
    delay_ms: Option<i64>,
    /// Start at this instant, epoch ms.
    at: Option<i64>,
    priority: Option<i32>,
    idempotency_key: Option<String>,
}

async fn run(api: web::Data<Api>, id: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let input: RunInput = body::json(payload).await?;
    let task = find(&api, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let wanted = input.read(api.engine.ids.next(now), now)?;
    let started = api.store.start_run(&task, &wanted).await?;
    api.poke.notify_one();
    let answer =
        json!({ "log": started.log.to_string(), "fire_time": started.fire_time, "repeated": started.is_repeated });
    Ok(HttpResponse::Accepted().json(answer))
}

impl RunInput {
    fn read(self, id: i64, now: i64) -> Result<NewRun, Problem> {
        let mut refused = Vec::new();
        let params = self.params.map(params_text);
        refused.extend(check_params(params.as_deref().unwrap_or_default()).err());
        let mut unless = |holds: bool, field: &str, message: &str| {
            if !holds {
                refused.push(FieldError::new(field, message));
            }
        };
        unless(self.delay_ms.is_none() || self.at.is_none(), "at", "not allowed together with `delay_ms`");
        let at = self.at.unwrap_or_else(|| now.saturating_add(self.delay_ms.unwrap_or(0)));
        let field = if self.at.is_some() { "at" } else { "delay_ms" };
        unless((now..=now + SPAN_MS_MAX).contains(&at), field, "now to 2592000000 ms (30 days) from now is allowed");
        unless(self.priority.is_none_or(|priority| (1..=9).contains(&priority)), "priority", "1 to 9 are allowed");
        let key = &self.idempotency_key;
        let is_key = key.as_ref().is_none_or(|key| (1..=KEY_CHARS_MAX).contains(&key.chars().count()));
        unless(is_key, "idempotency_key", "1 to 255 characters are allowed");
        if !refused.is_empty() {
            return Err(Problem::fields(refused));
        }
        Ok(NewRun { params, at, priority: self.priority, key: self.idempotency_key, ..NewRun::by_hand(id, now) })
    }
}

/// Longest range of a backfill, ms: a leap year.
const RANGE_MS_MAX: i64 = 366 * 86_400_000;

/// Runs of a backfill at once at most.
const BACKFILL_CONCURRENT_MAX: i32 = 1_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BackfillInput {
    /// First instant, epoch ms.
    from: i64,
    /// First instant after the range, epoch ms.
    until: i64,
    #[serde(default = "one")]
    max_concurrent: i32,
    #[serde(default)]
    params: Option<Value>,
}

fn one() -> i32 {
    1
}

/// Runs for the fires of a range that has passed. Live fires go first.
async fn backfill(api: web::Data<Api>, id: web::Path<String>, payload: web::Payload) -> Result<HttpResponse, Problem> {
    let input: BackfillInput = body::json(payload).await?;
    let task = find(&api, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let mut refused = Vec::new();
    let mut unless = |holds: bool, field: &str, message: &str| {
        if !holds {
            refused.push(FieldError::new(field, message));
        }
    };
    let has_instants = matches!(task.spec.schedule, ScheduleKind::Cron | ScheduleKind::FixedRate);
    unless(has_instants, "schedule", "only a task with a cron or fixed-rate schedule has fires to fill in");
    let is_range = input.from >= 0 && input.from < input.until && input.until - input.from <= RANGE_MS_MAX;
    unless(is_range, "from", "an instant before `until`, at most 366 days, is allowed");
    unless(input.until <= now, "until", "an instant that has passed is allowed; what is to come fires by itself");
    let is_bound = (1..=BACKFILL_CONCURRENT_MAX).contains(&input.max_concurrent);
    unless(is_bound, "max_concurrent", "1 to 1000 are allowed");
    let params = input.params.map(params_text);
    refused.extend(check_params(params.as_deref().unwrap_or_default()).err());
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let backfill = Backfill {
        id: api.engine.ids.next(now),
        tenant_id: task.scope.tenant_id,
        task_id: task.id,
        range_from: input.from,
        range_until: input.until,
        next_at: input.from,
        max_concurrent: input.max_concurrent,
        params,
        status: "open".to_owned(),
        written: 0,
        existing: 0,
        created_at: now,
        finished_at: 0,
    };
    api.store.create_backfill(&backfill, now).await?;
    Ok(HttpResponse::Accepted().json(backfill_output(&backfill)))
}

async fn list_backfills(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let task = find(&api, parse_id("id", &id)?).await?;
    let items: Vec<Value> = api.store.backfills_of(task.id).await?.iter().map(backfill_output).collect();
    Ok(HttpResponse::Ok().json(json!({ "items": items })))
}

async fn cancel_backfill(api: web::Data<Api>, path: web::Path<(String, String)>) -> Result<HttpResponse, Problem> {
    let (task, id) = (parse_id("id", &path.0)?, parse_id("backfill", &path.1)?);
    api.store.cancel_backfill(task, id, api.engine.clock.now_ms()).await?;
    Ok(HttpResponse::NoContent().finish())
}

fn backfill_output(backfill: &Backfill) -> Value {
    json!({
        "id": backfill.id.to_string(),
        "task": backfill.task_id.to_string(),
        "from": backfill.range_from,
        "until": backfill.range_until,
        "next_at": backfill.next_at,
        "max_concurrent": backfill.max_concurrent,
        "params": backfill.params,
        "status": backfill.status,
        "written": backfill.written,
        "existing": backfill.existing,
        "created_at": backfill.created_at,
        "finished_at": (backfill.finished_at != 0).then_some(backfill.finished_at),
    })
}
