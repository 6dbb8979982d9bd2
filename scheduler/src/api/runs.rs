//! Starting runs that no schedule names.

use super::problem::Problem;
use super::tasks::{find, parse_id};
use super::{Api, body};
use crate::domain::FieldError;
use crate::domain::task::{SPAN_MS_MAX, check_params, params_text};
use crate::store::NewRun;
use actix_web::{HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest idempotency key, characters.
const KEY_CHARS_MAX: usize = 255;

/// Routes.
pub fn routes(config: &mut web::ServiceConfig) {
    config.route("/tasks/{id}/run", web::post().to(run));
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
