//! Which tasks were imported, and of what: with it an import knows its tasks again, whatever they are named by then.

use super::input::{AfterQuery, Page, Query, limit, parse_id, parse_optional_id};
use super::operation::{Operation, get, put};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::domain::audit::Target;
use crate::domain::import::{JOB_NUMBER_MAX, is_origin};
use crate::domain::{Action, AppId, FieldError, FieldRefusal, Permission, TenantId};
use crate::store::{ALARM_EMAIL_CHARS_MAX, AUTHOR_CHARS_MAX, Beside, JobWords, ORIGINS_MAX, TaskOrigin, TenantView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/tenants/{tenant}/origins", "list_origins", Permission::TasksRead, "Where tasks were imported from")
            .query::<AfterQuery>()
            .answers_page::<OriginOutput>("A page of origins, by the task's id")
            .to(list),
        put(
            "/tenants/{tenant}/origins",
            Action::SetOrigins,
            Permission::TasksApply,
            "Note where tasks were imported from",
        )
        .says(
            "`carillon import` does. A number is given to a task, or an app, that has none, if no other one of the tenant has it; \
             numbers never change.",
        )
        .body::<Origins>()
        .answers_nothing("Noted")
        .to(set),
    ]
}

/// Where a task was imported from.
#[derive(Serialize, ToSchema)]
#[schema(as = TaskOrigin)]
struct OriginOutput {
    /// The task's id.
    task: String,
    /// Its identity there: the name of the source, and the id within it.
    origin: String,
    /// The number by which executors and scripts of xxl-job know it; null when it has none yet.
    number: Option<i32>,
}

/// Where tasks were imported from.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Origins {
    /// Up to 500 tasks.
    #[schema(max_items = 500)]
    items: Vec<OriginInput>,
    /// Up to 500 apps with the numbers by which scripts of xxl-job know them.
    #[serde(default)]
    #[schema(max_items = 500)]
    apps: Vec<AppNumberInput>,
}

/// The number of an app.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AppNumber)]
struct AppNumberInput {
    /// The app's id.
    app: String,
    /// The number by which scripts of xxl-job know it: the id of its group.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    number: i32,
}

/// Where a task was imported from.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewTaskOrigin)]
struct OriginInput {
    /// The task's id.
    task: String,
    /// Its identity there: the name of the source, and the id within it (`old#7`).
    #[schema(max_length = 96)]
    origin: String,
    /// The number by which executors and scripts of xxl-job know it.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    number: Option<i32>,
    /// Who is responsible for it, as portals of xxl-job show it; nothing goes by it.
    #[serde(default)]
    #[schema(max_length = 64)]
    author: String,
    /// Where alarms went, as portals of xxl-job show it; nothing is sent there.
    #[serde(default)]
    #[schema(max_length = 255)]
    alarm_email: String,
}

async fn list(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    query: Query<AfterQuery>,
) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let after = parse_optional_id("after", after.as_ref())?.unwrap_or_default();
    let tenant = api.whole_tenant(&caller, Permission::TasksRead, &tenant).await?;
    let items = api.store.origins(tenant.id, after, limit).await?.into_iter().map(|origin| OriginOutput {
        task: origin.task_id.to_string(),
        origin: origin.origin,
        number: (origin.number != 0).then_some(origin.number),
    });
    Ok(HttpResponse::Ok().json(Page::new(items.collect(), limit, |item: &OriginOutput| item.task.clone())))
}

async fn set(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let Origins { items, apps } = body::json(payload).await?;
    let tenant = api.whole_tenant(&caller, Permission::TasksApply, &tenant).await?;
    let (origins, words) = read(items, tenant.id)?;
    let numbers = app_numbers(apps)?;
    let TenantView { id, name, .. } = tenant;
    let target = Target { kind: "tenant", id: id.to_string(), name };
    let after = serde_json::json!({ "tasks": origins.len(), "first": origins.first().map(|first| &first.origin) });
    let note = api.note(&caller, Action::SetOrigins, id, target, (None, Some(after.to_string())));
    let beside = Beside { words, ..Beside::default() };
    api.store.noting_beside(vec![note], beside).set_origins(id, &origins, &numbers).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// The origins, each of another task, and what is kept of those tasks for people.
fn read(items: Vec<OriginInput>, tenant_id: TenantId) -> Result<(Vec<TaskOrigin>, Vec<JobWords>), Problem> {
    if !(1..=ORIGINS_MAX).contains(&items.len()) {
        return Err(FieldError::range("items", 1, ORIGINS_MAX as i64).into());
    }
    let (mut tasks, mut origins) = (HashSet::new(), HashSet::new());
    let (mut read, mut words) = (Vec::with_capacity(items.len()), Vec::new());
    for (at, OriginInput { task, origin, number, author, alarm_email }) in items.into_iter().enumerate() {
        let wrong = |field: &str, refusal| Problem::from(FieldError::new(format!("items[{at}].{field}"), refusal));
        let task_id = parse_id("task", &task)?;
        if !is_origin(&origin) || !origins.insert(origin.clone()) || !tasks.insert(task_id) {
            let allowed = "a source and an id within it (`old#7`), each once and of one task".to_owned();
            return Err(wrong("origin", FieldRefusal::WrongChoice { given: origin, allowed }));
        }
        let number = number.unwrap_or(0);
        if !(0..=JOB_NUMBER_MAX).contains(&number) {
            return Err(wrong("number", FieldRefusal::OutOfRange { least: 1, most: JOB_NUMBER_MAX.into() }));
        }
        for (field, text, most) in
            [("author", &author, AUTHOR_CHARS_MAX), ("alarm_email", &alarm_email, ALARM_EMAIL_CHARS_MAX)]
        {
            if text.chars().count() > most {
                return Err(wrong(field, FieldRefusal::TooLong { most: most as i64 }));
            }
        }
        read.push(TaskOrigin { task_id, origin, number });
        if !author.is_empty() || !alarm_email.is_empty() {
            words.push(JobWords { task_id, tenant_id, author, alarm_email });
        }
    }
    Ok((read, words))
}

/// The numbers, each of another app.
fn app_numbers(apps: Vec<AppNumberInput>) -> Result<Vec<(AppId, i32)>, Problem> {
    if apps.len() > ORIGINS_MAX {
        return Err(FieldError::range("apps", 0, ORIGINS_MAX as i64).into());
    }
    let (mut known, mut numbers) = (HashSet::new(), HashSet::new());
    let mut read = Vec::with_capacity(apps.len());
    for (at, AppNumberInput { app, number }) in apps.into_iter().enumerate() {
        let wrong = |field: &str, refusal| Problem::from(FieldError::new(format!("apps[{at}].{field}"), refusal));
        let app_id = parse_id("app", &app)?;
        if !known.insert(app_id) {
            let allowed = "ids of apps, each once".to_owned();
            return Err(wrong("app", FieldRefusal::WrongChoice { given: app, allowed }));
        }
        if !(1..=JOB_NUMBER_MAX).contains(&number) || !numbers.insert(number) {
            return Err(wrong("number", FieldRefusal::OutOfRange { least: 1, most: JOB_NUMBER_MAX.into() }));
        }
        read.push((app_id, number));
    }
    Ok(read)
}
