//! Calendars of tenants. A new version applies at once to every started task that uses the calendar.

use super::input::{AfterQuery, Page, Query, etag, if_match, limit, refuse_stale};
use super::operation::{self, Operation, delete, get};
use super::problem::Problem;
use super::{Api, body};
use crate::auth::Caller;
use crate::definitions::{FollowedCalendar, NotRevoked};
use crate::domain::audit::Target;
use crate::domain::calendar::CalendarSpec;
use crate::domain::{Action, FieldError, Permission, Refusal, TenantId};
use crate::store::{CalendarChange, CalendarView};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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
    /// Logs of their runs that are still running.
    running: Vec<String>,
    /// Logs of their runs whose executor could not be asked; they may still start.
    unreachable: Vec<String>,
}

impl From<CalendarView> for CalendarOutput {
    fn from(calendar: CalendarView) -> Self {
        let CalendarView { name, version, spec, updated_at, .. } = calendar;
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
    let change = match before {
        // What is repeated after an error changes nothing; it only waits for what it had begun.
        Some(CalendarView { id, version, updated_at: since, spec: known, .. }) if known == spec => {
            CalendarChange { id, version, since }
        }
        before => write(&api, &caller, tenant, &name, before, &spec).await?,
    };
    let FollowedCalendar { tasks, not_revoked } = api.definitions.follow_calendar(&change).await?;
    let CalendarChange { version, since: updated_at, .. } = change;
    let calendar = CalendarOutput { name, version, updated_at, spec };
    let NotRevoked { running, unreachable } = not_revoked;
    let answer = PutCalendar { calendar, tasks, running, unreachable };
    Ok(HttpResponse::Ok().insert_header(etag(version)).json(answer))
}

async fn write(
    api: &Api,
    caller: &Caller,
    tenant: TenantId,
    name: &str,
    before: Option<CalendarView>,
    spec: &CalendarSpec,
) -> Result<CalendarChange, Problem> {
    let current = before.as_ref().map_or(0, |calendar| calendar.version);
    let change = (before.map(|calendar| audited(&calendar.spec)), Some(audited(spec)));
    let note = api.note(caller, Action::PutCalendar, tenant, target(name), change);
    let now = api.engine.clock.now_ms();
    let store = api.store.noting(vec![note]);
    Ok(store.put_calendar(api.engine.ids.next(now), tenant, name, spec, current, now).await?)
}

fn target(name: &str) -> Target {
    Target { kind: "calendar", id: name.to_owned(), name: name.to_owned() }
}

fn audited(spec: &CalendarSpec) -> String {
    serde_json::to_string(spec).unwrap_or_default()
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
