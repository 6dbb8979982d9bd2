//! Calendars of tenants: named sets of days and hours, in versions.

use super::dialect::Kind;
use super::entity::{calendar, calendar_version, task};
#[allow(clippy::wildcard_imports)] // the words of the query builder
use super::query::*;
use super::ready_calendars::CalendarKey;
use super::row::{Read, column, from_row};
use super::sql_store::{Transaction, retrying};
use super::values::to_json;
use super::{CalendarChange, FoundTasks, Result, SqlStore, StoreError, StoreErrorKind, TaskView};
use crate::domain::calendar::{Calendar, CalendarSpec};
use crate::domain::schedule::Schedule;
use crate::domain::task::TaskSpec;
use crate::domain::{CalendarId, FieldError, FieldRefusal, Refusal, Task, TenantId};
use sea_orm::{QueryResult, Select};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

statements!(
    CALENDARS = |d| format!(
        "SELECT c.tenant_id, c.name, c.version, c.body FROM {} calendar c ON c.tenant_id = v.n_tenant_id \
         AND c.name = v.n_name",
        d.batch(1, &[("tenant_id", Kind::Big), ("name", Kind::Text)])
    ),
);

/// Calendars kept ready at most; when full, they are made ready again.
const READY_MAX: usize = 1_000;

/// Versions kept of a calendar.
const VERSIONS_MAX: i64 = 100;

/// A calendar as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, DerivePartialModel)]
#[sea_orm(entity = "calendar::Entity")]
pub struct CalendarView {
    /// Id.
    pub id: CalendarId,
    /// Name, unique within the tenant.
    pub name: String,
    /// Grows with every change.
    pub version: i64,
    /// What it says.
    #[sea_orm(from_col = "body")]
    pub spec: CalendarSpec,
    /// ms.
    pub updated_at: i64,
}

struct Row {
    place: CalendarKey,
    version: i64,
    body: String,
}

const ACTION: &str = "read calendars";

impl SqlStore {
    /// Nodes look at one number to learn that limits, windows, rules or calendars have changed;
    /// a change of one of them holds that row until its commit. It follows the clock: where a standby takes over that
    /// lacks a change, the next one does not get the lost one's number, which nodes may have seen.
    pub(super) async fn bump_rules(&self, tx: &Transaction<'_>) -> Result<()> {
        let sql = sql!(
            "UPDATE rule_version SET version = CASE WHEN version < {now} THEN {now} ELSE version + 1 END WHERE id = 1"
        );
        tx.execute(&sql, []).await.map(drop)
    }

    /// Gives a schedule the calendar that its task names.
    ///
    /// # Errors
    /// There is no such calendar.
    pub(super) async fn add_calendar(
        &self,
        tx: &Transaction<'_>,
        tenant_id: TenantId,
        spec: &TaskSpec,
        schedule: &mut Schedule,
    ) -> Result<()> {
        if spec.calendar.is_empty() {
            return Ok(());
        }
        let place = (tenant_id, spec.calendar.clone());
        let places = to_json(ACTION, &[&place])?;
        let rows = tx.query(&CALENDARS, [places.into()]).await?;
        let found = rows.into_iter().next().map(|row| self.ready(row)).transpose()?;
        schedule.calendar = Some(found.ok_or_else(|| unknown(&spec.calendar))?);
        Ok(())
    }

    /// Refuses a definition whose calendar the tenant does not have; also of a task that is not
    /// started, so that no one learns of it only then.
    pub(super) async fn know_calendar(&self, tx: &Transaction<'_>, tenant_id: TenantId, spec: &TaskSpec) -> Result<()> {
        self.add_calendar(tx, tenant_id, spec, &mut Schedule::none()).await
    }

    /// Gives tasks the calendars that they name.
    pub(super) async fn fill_calendars(&self, found: &mut FoundTasks) -> Result<()> {
        let Some(places) = places_of(found.tasks.iter().map(named))? else { return Ok(()) };
        let rows = self.query(ACTION, &CALENDARS, [places.into()]).await?;
        self.fill(found, rows);
        Ok(())
    }

    /// The same in a transaction.
    pub(super) async fn fill_calendars_in(&self, tx: &Transaction<'_>, found: &mut FoundTasks) -> Result<()> {
        let Some(places) = places_of(found.tasks.iter().map(named))? else { return Ok(()) };
        let rows = tx.query(&CALENDARS, [places.into()]).await?;
        self.fill(found, rows);
        Ok(())
    }

    fn fill(&self, found: &mut FoundTasks, rows: Vec<Row>) {
        let calendars = self.ready_all(rows);
        let FoundTasks { tasks, unreadable } = found;
        tasks.retain_mut(|task| {
            if task.spec.calendar.is_empty() {
                return true;
            }
            let calendar = calendars.get(&(task.tenant_id, task.spec.calendar.clone()));
            if calendar.is_none() {
                // To fire on every holiday would be worse than not to fire. It cannot be read; or it is gone, by other means
                // than carillon's, which deletes none that tasks name.
                tracing::error!(task = task.id.0, calendar = task.spec.calendar, "no calendar; the task rests");
                unreadable.push(task.id);
            }
            task.schedule.calendar = calendar.map(Arc::clone);
            calendar.is_some()
        });
    }

    /// The schedules of these tasks, with the calendars that they name; what cannot be read never fires, as in the
    /// engine, which says so in its log.
    pub async fn schedules_of(&self, tasks: &[TaskView]) -> Result<Vec<Schedule>> {
        let calendar = |task: &TaskView| (task.owner.tenant_id, task.spec.calendar.clone());
        let found = match places_of(tasks.iter().map(|task| (task.owner.tenant_id, task.spec.calendar.as_str())))? {
            Some(places) => self.ready_all(self.query(ACTION, &CALENDARS, [places.into()]).await?),
            None => HashMap::new(),
        };
        let schedule = |task: &TaskView| {
            let mut schedule = task.spec.to_schedule(task.anchor_at, task.id).ok()?;
            if !task.spec.calendar.is_empty() {
                schedule.calendar = Some(Arc::clone(found.get(&calendar(task))?));
            }
            Some(schedule)
        };
        Ok(tasks.iter().map(|task| schedule(task).unwrap_or_else(Schedule::none)).collect())
    }

    /// One that a later release wrote, and this one cannot read, must not keep tasks with others from firing.
    fn ready_all(&self, rows: Vec<Row>) -> HashMap<CalendarKey, Arc<Calendar>> {
        let ready = |row: Row| {
            let place = row.place.clone();
            let ready = self.ready(row).inspect_err(|error| {
                tracing::error!(tenant = place.0.0, calendar = place.1, %error, "a calendar cannot be read");
            });
            Some((place, ready.ok()?))
        };
        rows.into_iter().filter_map(ready).collect()
    }

    fn ready(&self, row: Row) -> Result<Arc<Calendar>> {
        if let Some(ready) = self.calendars.get(&row.place).filter(|ready| ready.version == row.version) {
            return Ok(Arc::clone(&ready));
        }
        let calendar = compile(&row.body, &row.place.1, row.version)?;
        if self.calendars.len() > READY_MAX {
            self.calendars.clear();
        }
        self.calendars.insert(row.place, Arc::clone(&calendar));
        Ok(calendar)
    }

    /// Writes a calendar's next version, if `current` is the version that is there (0: none is). It notes that the tasks that
    /// name it have to follow; whoever comes first has them do so.
    pub async fn put_calendar(
        &self,
        id: CalendarId,
        tenant_id: TenantId,
        name: &str,
        spec: &CalendarSpec,
        current: i64,
        now: i64,
    ) -> Result<CalendarChange> {
        retrying(|| self.put_calendar_once(id, tenant_id, name, spec, current, now)).await
    }

    #[allow(clippy::too_many_arguments)] // one thought: a version and what it follows
    async fn put_calendar_once(
        &self,
        id: CalendarId,
        tenant_id: TenantId,
        name: &str,
        spec: &CalendarSpec,
        current: i64,
        now: i64,
    ) -> Result<CalendarChange> {
        const ACTION: &str = "write a calendar";
        let body = to_json(ACTION, spec)?;
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        let known: Option<calendar::Model> = tx.one(named_so(tenant_id, name)).await?;
        if current != known.as_ref().map_or(0, |calendar| calendar.version) {
            return Err(StoreError::of(ACTION, Refusal::changed("calendar", name)));
        }
        let (calendar_id, version) = known.as_ref().map_or((id, 1), |known| (known.id, known.version + 1));
        if known.is_none() {
            let (name, body) = (name.to_owned(), body.clone());
            let (updated_at, changing_since, task_turn) = (now, now, 0);
            tx.insert(calendar::Model { id, tenant_id, name, version, body, updated_at, changing_since, task_turn })
                .await?;
        } else {
            let update = calendar::Entity::update_many()
                .col_expr(calendar::Column::Version, version.into())
                .col_expr(calendar::Column::Body, body.as_str().into())
                .col_expr(calendar::Column::UpdatedAt, now.into())
                .col_expr(calendar::Column::ChangingSince, now.into())
                .filter(calendar::Column::Id.eq(calendar_id))
                .filter(calendar::Column::TenantId.eq(tenant_id));
            tx.run(&update).await?;
        }
        tx.insert(calendar_version::Model { id: id.0, calendar_id, version, body, created_at: now }).await?;
        let forget = calendar_version::Entity::delete_many()
            .filter(calendar_version::Column::CalendarId.eq(calendar_id))
            .filter(calendar_version::Column::Version.lte(version - VERSIONS_MAX));
        tx.run(&forget).await?;
        tx.commit().await?;
        Ok(CalendarChange { id: calendar_id, version, since: now })
    }

    /// Calendars of a tenant by name, after `after`.
    pub async fn list_calendars(&self, tenant_id: TenantId, after: &str, limit: u64) -> Result<Vec<CalendarView>> {
        let calendars = calendar::Entity::find()
            .filter(calendar::Column::TenantId.eq(tenant_id))
            .filter(calendar::Column::Name.gt(after))
            .order_by_asc(calendar::Column::Name)
            .limit(limit);
        self.at(ACTION).all(calendars).await
    }

    /// The calendar of that name as it is now.
    pub async fn calendar(&self, tenant_id: TenantId, name: &str) -> Result<Option<CalendarView>> {
        self.at(ACTION).one(named_so(tenant_id, name)).await
    }

    /// An earlier version of a calendar.
    pub async fn calendar_version(
        &self,
        tenant_id: TenantId,
        name: &str,
        version: i64,
    ) -> Result<Option<CalendarView>> {
        let found = calendar_version::Entity::find()
            .join(JoinType::InnerJoin, calendar_version::Relation::Calendar.def())
            .filter(calendar::Column::TenantId.eq(tenant_id))
            .filter(calendar::Column::Name.eq(name))
            .filter(calendar_version::Column::Version.eq(version))
            .select_only()
            .columns([calendar::Column::Id, calendar::Column::Name])
            .column(calendar_version::Column::Version)
            .column_as(calendar_version::Column::Body, "spec")
            .column_as(calendar_version::Column::CreatedAt, "updated_at");
        Ok(self.at(ACTION).read(&found).await?.pop())
    }

    /// Deletes a calendar that no task names.
    pub async fn delete_calendar(&self, tenant_id: TenantId, name: &str) -> Result<()> {
        const ACTION: &str = "delete a calendar";
        let tx = self.begin(ACTION).await?;
        self.bump_rules(&tx).await?;
        // A task that begins to name it comes before, and is found, or finds it gone.
        self.hold_calendar(&tx, tenant_id, name).await?;
        let users = task::Entity::find()
            .filter(task::Column::TenantId.eq(tenant_id))
            .filter(task::Column::Calendar.eq(name))
            .limit(10);
        let users: Vec<String> = tx.column(users, task::Column::Name).await?;
        if !users.is_empty() {
            return Err(StoreError::of(ACTION, Refusal::CalendarInUse { tasks: users.join(", ") }));
        }
        let Some(id) = tx.column::<CalendarId, _>(named_so(tenant_id, name), calendar::Column::Id).await?.pop() else {
            return Err(StoreError::of(ACTION, Refusal::not_found("calendar", name)));
        };
        tx.run(&calendar_version::Entity::delete_many().filter(calendar_version::Column::CalendarId.eq(id))).await?;
        tx.run(&calendar::Entity::delete_many().filter(calendar::Column::Id.eq(id))).await?;
        tx.commit().await
    }

    /// The calendar of that name, ready; for a preview.
    pub async fn ready_calendar(&self, tenant_id: TenantId, name: &str) -> Result<Arc<Calendar>> {
        let view = self.calendar(tenant_id, name).await?.ok_or_else(|| unknown(name))?;
        let detail = |errors| StoreError::new(StoreErrorKind::Other, ACTION, format!("{errors:?}"));
        view.spec.compile(&view.name, view.version).map(Arc::new).map_err(detail)
    }
}

/// The tenant's calendar of that name.
fn named_so(tenant_id: TenantId, name: &str) -> Select<calendar::Entity> {
    calendar::Entity::find().filter(calendar::Column::TenantId.eq(tenant_id)).filter(calendar::Column::Name.eq(name))
}

fn unknown(name: &str) -> StoreError {
    StoreError::refused("read a calendar", FieldError::new("calendar", FieldRefusal::no_such("calendar", name)))
}

/// The tenant and the calendar that a task names; the name is empty where it names none.
fn named(task: &Task) -> (TenantId, &str) {
    (task.tenant_id, &task.spec.calendar)
}

fn places_of<'a>(named: impl Iterator<Item = (TenantId, &'a str)>) -> Result<Option<String>> {
    let places: BTreeSet<(TenantId, &str)> = named.filter(|(_, calendar)| !calendar.is_empty()).collect();
    if places.is_empty() { Ok(None) } else { to_json(ACTION, &places).map(Some) }
}

fn compile(body: &str, name: &str, version: i64) -> Result<Arc<Calendar>> {
    let wrong = |detail: String| StoreError::new(StoreErrorKind::Other, ACTION, detail);
    let spec: CalendarSpec = serde_json::from_str(body).map_err(|error| wrong(error.to_string()))?;
    spec.compile(name, version).map(Arc::new).map_err(|errors| wrong(format!("{errors:?}")))
}

from_row!(Row { place = place, version, body });

fn place(row: &QueryResult) -> Read<CalendarKey> {
    Ok((column(row, "tenant_id")?, column(row, "name")?))
}
