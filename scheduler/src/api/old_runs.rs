//! Runs of another scheduler that an import brings.

use super::input::parse_id;
use super::operation::{Operation, post};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::import::{RUN_MESSAGE_CHARS_MAX, RunEnd};
use crate::domain::{Action, FieldError, FieldRefusal, Permission};
use crate::store::{OLD_RUNS_MAX, OldRun, TenantView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        post(
            "/tenants/{tenant}/origins/runs",
            Action::ImportRuns,
            Permission::TasksApply,
            "Write runs of another scheduler that have ended",
        )
        .says(
            "`carillon import` does. They stand among the runs of their tasks; nothing follows of them. Where a task has a run of that \
             instant already, it stays.",
        )
        .body::<OldRuns>()
        .answers::<OldRunsOutput>(200, "How many were written")
        .to(add),
    ]
}

/// Runs that have ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OldRuns {
    /// 1 to 500 runs.
    #[schema(min_items = 1, max_items = 500)]
    items: Vec<OldRunInput>,
}

/// A run that has ended.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ImportedRun)]
struct OldRunInput {
    /// The task's id.
    task: String,
    /// When it fired, epoch ms; not later than now.
    fire_time: i64,
    /// When it ended, epoch ms; from `fire_time` until now.
    finished_at: i64,
    /// How it ended.
    end: RunEnd,
    /// What was said of it.
    #[serde(default)]
    #[schema(max_length = 4000)]
    message: String,
}

/// What became of them.
#[derive(Serialize, ToSchema)]
#[schema(as = ImportedRuns)]
struct OldRunsOutput {
    /// Runs that were written; the others were there already, or are of tasks that are not.
    written: u64,
}

async fn add(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let OldRuns { items } = body::json(payload).await?;
    let TenantView { id, name, .. } = api.whole_tenant(&caller, Permission::TasksApply, &tenant).await?;
    if !(1..=OLD_RUNS_MAX).contains(&items.len()) {
        return Err(FieldError::range("items", 1, OLD_RUNS_MAX as i64).into());
    }
    let now = api.engine.clock.now_ms();
    let runs =
        items.into_iter().enumerate().map(|(at, item)| read(&api, at, item, now)).collect::<Result<Vec<_>, _>>()?;
    let target = Target { kind: "tenant", id: id.to_string(), name };
    let after = serde_json::json!({ "runs": runs.len() });
    let note = api.note(&caller, Action::ImportRuns, id, target, (None, Some(after.to_string())));
    let written = api.store.noting(vec![note]).add_old_runs(id, &runs).await?;
    Ok(HttpResponse::Ok().json(OldRunsOutput { written }))
}

fn read(api: &Api, at: usize, item: OldRunInput, now: i64) -> Result<OldRun, Problem> {
    let OldRunInput { task, fire_time, finished_at, end, message } = item;
    let wrong = |field: &str, refusal| Problem::from(FieldError::new(format!("items[{at}].{field}"), refusal));
    let task_id = parse_id("task", &task)?;
    for (field, value, least) in [("fire_time", fire_time, 1), ("finished_at", finished_at, fire_time)] {
        if !(least..=now).contains(&value) {
            return Err(wrong(field, FieldRefusal::OutOfRange { least, most: now }));
        }
    }
    if message.chars().count() > RUN_MESSAGE_CHARS_MAX {
        return Err(wrong("message", FieldRefusal::TooLong { most: RUN_MESSAGE_CHARS_MAX as i64 }));
    }
    Ok(OldRun { id: api.engine.ids.next(now), task_id, fire_time, finished_at, end, message })
}
