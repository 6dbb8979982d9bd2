//! Calendars of tenants. A new version applies at once to every task that uses the calendar.

use super::input::{AfterQuery, Page, Query, etag, if_match, limit, refuse_stale};
use super::operation::{self, Operation, delete, get};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::definitions::change_of;
use crate::domain::audit::Target;
use crate::domain::calendar::CalendarSpec;
use crate::domain::{Action, FieldError, Permission, Refusal, TaskId, TenantId};
use crate::store::CalendarView;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Tasks redefined in one transaction.
const TASKS_BATCH: u64 = 100;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/calendars/{tenant}", "list_calendars", P::CalendarsRead, "A tenant's calendars, by name")
            .query::<AfterQuery>()
            .answers_page::<CalendarOutput>("A page of calendars")
            .to(list),
        get("/calendars/{tenant}/{name}", "show_calendar", P::CalendarsRead, "A calendar, or an earlier version of it")
            .query::<Wanted>()
            .answers::<CalendarOutput>(200, "The calendar")
            .to(show),
        operation::put(
            "/calendars/{tenant}/{name}",
            Action::PutCalendar,
            P::CalendarsEdit,
            "Write a calendar's next version",
        )
        .says("Every field is required.")
        .if_match()
        .body::<CalendarSpec>()
        .answers::<PutCalendar>(200, "The calendar, and the number of started tasks that use it")
        .to(put),
        delete(
            "/calendars/{tenant}/{name}",
            Action::DeleteCalendar,
            P::CalendarsDelete,
            "Delete a calendar that no task uses",
        )
        .answers_nothing("Deleted")
        .to(remove),
    ]
}

/// A calendar.
#[derive(Serialize, ToSchema)]
#[schema(as = CalendarVersion)]
struct CalendarOutput {
    /// Name, unique within the tenant.
    name: String,
    /// Increases with every change.
    version: i64,
    /// Epoch ms.
    updated_at: i64,
    #[serde(flatten)]
    spec: CalendarSpec,
}

/// A calendar that was written.
#[derive(Serialize, ToSchema)]
struct PutCalendar {
    calendar: CalendarOutput,
    /// Started tasks that were redefined.
    tasks: usize,
}

impl From<CalendarView> for CalendarOutput {
    fn from(calendar: CalendarView) -> Self {
        let CalendarView { name, version, spec, updated_at } = calendar;
        Self { name, version, updated_at, spec }
    }
}

async fn list(
    api: web::Data<Api>,
    caller: Caller,
    tenant: web::Path<String>,
    query: Query<AfterQuery>,
) -> Result<HttpResponse, Problem> {
    let AfterQuery { after, limit: wanted } = query.0;
    let limit = limit(wanted)?;
    let tenant = api.tenant(&caller, Permission::CalendarsRead, &tenant).await?;
    let calendars = api.store.list_calendars(tenant.id, &after.unwrap_or_default(), limit).await?;
    let items = calendars.into_iter().map(CalendarOutput::from).collect();
    Ok(HttpResponse::Ok().json(Page::new(items, limit, |calendar: &CalendarOutput| calendar.name.clone())))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// This version; the current one when absent.
    version: Option<i64>,
}

async fn show(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
    wanted: Query<Wanted>,
) -> Result<HttpResponse, Problem> {
    let (tenant, name) = path.into_inner();
    let tenant = api.tenant(&caller, Permission::CalendarsRead, &tenant).await?;
    let found = match wanted.0.version {
        Some(version) => api.store.calendar_version(tenant.id, &name, version).await?,
        None => api.store.calendar(tenant.id, &name).await?,
    };
    let calendar = found.ok_or_else(|| Refusal::not_found("calendar", name))?;
    Ok(HttpResponse::Ok().insert_header(etag(calendar.version)).json(CalendarOutput::from(calendar)))
}

async fn put(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let (tenant, name) = path.into_inner();
    let spec: CalendarSpec = body::whole(payload).await?;
    let mut refused = Vec::new();
    if !(1..=128).contains(&name.chars().count()) || name.chars().any(char::is_control) {
        refused.push(FieldError::name("name", 128));
    }
    refused.extend(spec.compile(&name, 1).err().into_iter().flatten());
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let tenant = api.whole_tenant(&caller, Permission::CalendarsEdit, &tenant).await?.id;
    let before = api.store.calendar(tenant, &name).await?;
    let current = before.as_ref().map_or(0, |calendar| calendar.version);
    refuse_stale(if_match(&request)?, current)?;
    let change = (before.map(|calendar| audited(&calendar.spec)), Some(audited(&spec)));
    let note = api.note(&caller, Action::PutCalendar, tenant, target(&name), change);
    let now = api.engine.clock.now_ms();
    let store = api.store.noting(vec![note]);
    let version = store.put_calendar(api.engine.ids.next(now), tenant, &name, &spec, current, now).await?;
    let tasks = redefine_tasks(&api, tenant, &name).await?;
    let calendar = CalendarOutput { name, version, updated_at: now, spec };
    Ok(HttpResponse::Ok().insert_header(etag(version)).json(PutCalendar { calendar, tasks }))
}

fn target(name: &str) -> Target {
    Target { kind: "calendar", id: name.to_owned(), name: name.to_owned() }
}

fn audited(spec: &CalendarSpec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
}

/// Revokes the runs that were written ahead for the old version, and writes those of the new one.
async fn redefine_tasks(api: &Api, tenant: TenantId, name: &str) -> Result<usize, Problem> {
    let (mut after, mut count) = (TaskId::NONE, 0);
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
        api.definitions.apply(&[], &changes).await?;
    }
}

async fn remove(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (tenant, name) = path.into_inner();
    let tenant = api.whole_tenant(&caller, Permission::CalendarsDelete, &tenant).await?.id;
    let before = api.store.calendar(tenant, &name).await?;
    let change = (before.map(|calendar| audited(&calendar.spec)), None);
    let note = api.note(&caller, Action::DeleteCalendar, tenant, target(&name), change);
    api.store.noting(vec![note]).delete_calendar(tenant, &name).await?;
    Ok(HttpResponse::NoContent().finish())
}
