//! Figures as the management API shows them.

use super::super::conditions::Conditions;
use super::super::row::{Column as _, FromRow, Read, from_row};
use super::super::values::list;
use super::super::{Result, SqlStore, StoreError};
use crate::domain::statistics::{ALL_TENANTS, Figures, Grain, HOUR_MS, Histogram, MINUTE_MS, Step};
use crate::domain::{AccessScope, AppId, Refusal, TaskId, TenantId};
use sea_orm::QueryResult;

const ACTION: &str = "read statistics";

/// Points in one answer at most.
pub const POINTS_MAX: i64 = 2_000;

/// Rows of figures that one answer is made of at most.
const ROWS_MAX: i64 = 200_000;

/// Whose figures, and when.
#[derive(Debug, Clone)]
pub struct FiguresFilter {
    /// Only of this tenant.
    pub tenant_id: Option<TenantId>,
    /// Only of this task.
    pub task_id: Option<TaskId>,
    /// From this instant, ms, a multiple of the rows' period …
    pub from: i64,
    /// … up to this one, ms.
    pub until: i64,
    /// Width of a point; the first starts at `from`.
    pub step: Step,
}

/// What lies within a caller's reach.
struct Within {
    /// Tasks, or tenants.
    subjects: Vec<i64>,
    /// Rows of other tenants are left out; `None`: there is nothing to leave out.
    tenants: Option<Vec<TenantId>>,
}

impl SqlStore {
    /// Figures by the start of their point, ms, oldest first; a point without fires is left out. Those
    /// of tenants are of all apps, so they are for callers who may see all of them.
    pub async fn figures(&self, access_scope: &AccessScope, filter: &FiguresFilter) -> Result<Vec<(i64, Figures)>> {
        let within = self.within(access_scope, filter).await?;
        let hours_until = match filter.step.period_ms() {
            HOUR_MS => self.hours_until().await?.clamp(filter.from, filter.until.max(filter.from)),
            _ => filter.from,
        };
        let rows = (hours_until - filter.from) / HOUR_MS + (filter.until - hours_until) / MINUTE_MS;
        if rows * within.subjects.len() as i64 > ROWS_MAX
            || (filter.until - filter.from) / filter.step.ms() > POINTS_MAX
        {
            let (most_points, most_rows) = (POINTS_MAX, ROWS_MAX);
            return Err(StoreError::of(ACTION, Refusal::TooMuchAsked { most_points, most_rows }));
        }
        let (minute, hour) = match filter.task_id {
            Some(_) => (Grain::TaskMinute, Grain::TaskHour),
            None => (Grain::TenantMinute, Grain::TenantHour),
        };
        let mut points = self.figures_of(hour, &within, filter, filter.from, hours_until).await?;
        for (at, figures) in self.figures_of(minute, &within, filter, hours_until, filter.until).await? {
            match points.last_mut() {
                Some((last, before)) if *last == at => before.merge(&figures),
                _ => points.push((at, figures)),
            }
        }
        Ok(points)
    }

    /// Minutes before this instant have been counted, ms; 0 when none has.
    pub async fn statistics_until(&self) -> Result<i64> {
        let listed: Vec<i64> = self.query(ACTION, &super::sql::STATE, []).await?;
        let waiting: Vec<Option<i64>> = self.query(ACTION, &super::sql::FIRST_UNCOUNTED, []).await?;
        let listed = listed.first().copied().unwrap_or(0);
        Ok(waiting.first().copied().flatten().unwrap_or(listed).min(listed))
    }

    /// Hours before this instant have been added up, ms.
    async fn hours_until(&self) -> Result<i64> {
        let until = self.statistics_until().await?;
        let waiting: Vec<Option<i64>> = self.query(ACTION, &super::sql::HOURS_UNTIL, []).await?;
        let hour = waiting.first().copied().flatten().unwrap_or(until).min(until);
        Ok(hour - hour.rem_euclid(HOUR_MS))
    }

    async fn within(&self, access_scope: &AccessScope, filter: &FiguresFilter) -> Result<Within> {
        if let Some(task) = filter.task_id {
            let tenants = self.tenant_of_task(access_scope, filter.tenant_id, task).await?;
            if tenants.is_empty() {
                return Err(StoreError::of(ACTION, Refusal::not_found("task", task)));
            }
            return Ok(Within { subjects: vec![task.0], tenants: Some(tenants) });
        }
        let tenants = match (access_scope, filter.tenant_id) {
            (AccessScope::All, None) => return Ok(Within { subjects: vec![ALL_TENANTS], tenants: None }),
            (access_scope, Some(tenant)) if access_scope.has(tenant, AppId::NONE) => vec![tenant],
            (_, Some(_)) => Vec::new(),
            (AccessScope::Of(places), None) => {
                places.iter().filter(|place| place.apps.is_empty()).map(|place| place.tenant_id).collect()
            }
        };
        Ok(Within { subjects: tenants.iter().map(|tenant| tenant.0).collect(), tenants: Some(tenants) })
    }

    /// The tenant of a task within reach; none when it is not.
    async fn tenant_of_task(
        &self,
        access_scope: &AccessScope,
        tenant_id: Option<TenantId>,
        task: TaskId,
    ) -> Result<Vec<TenantId>> {
        let mut wanted =
            Conditions::new("SELECT t.tenant_id FROM task t WHERE t.id = {1}".to_owned(), vec![task.into()]);
        wanted.within(access_scope, "t.tenant_id", Some("t.app_id"));
        wanted.and("t.tenant_id = ", tenant_id);
        let statement = wanted.finish(self, "", 1);
        self.query_raw(ACTION, statement).await
    }

    async fn figures_of(
        &self,
        grain: Grain,
        within: &Within,
        filter: &FiguresFilter,
        from: i64,
        until: i64,
    ) -> Result<Vec<(i64, Figures)>> {
        let starts: Vec<i64> = (from..until).step_by(grain.period_ms() as usize).collect();
        if starts.is_empty() || within.subjects.is_empty() {
            return Ok(Vec::new());
        }
        let values = [
            list(ACTION, &starts)?.into(),
            list(ACTION, &within.subjects)?.into(),
            (grain as i32).into(),
            filter.from.into(),
            filter.step.ms().into(),
            i32::from(within.tenants.is_some()).into(),
            list(ACTION, within.tenants.as_deref().unwrap_or_default())?.into(),
        ];
        let found: Vec<Point> = self.query(ACTION, &super::sql::READ, values).await?;
        Ok(found.into_iter().map(|point| (point.at, point.figures)).collect())
    }
}

/// Figures of one step.
struct Point {
    at: i64,
    figures: Figures,
}

from_row!(Point { at: "point", figures = FromRow::from_row });

from_row!(Figures {
    fires = number("fires"),
    succeeded = number("succeeded"),
    failed = number("failed"),
    discarded = number("discarded"),
    expired = number("expired"),
    cancelled = number("cancelled"),
    open = number("open_runs"),
    failures = number("failures"),
    lateness = histogram("late"),
    duration = histogram("took"),
});

/// A sum; 0 where there is nothing to add up.
fn number(name: impl AsRef<str>) -> impl Fn(&QueryResult) -> Read<u64> {
    move |row| Ok(i64::read(row, name.as_ref())?.unwrap_or(0) as u64)
}

fn histogram(name: &'static str) -> impl Fn(&QueryResult) -> Read<Histogram> {
    move |row| {
        let column = |what: &str| number(format!("{name}_{what}"))(row);
        let mut histogram = Histogram { sum_ms: column("ms")?, max_ms: column("max")?, ..Histogram::default() };
        for (bucket, count) in histogram.counts.iter_mut().enumerate() {
            *count = column(&bucket.to_string())?;
        }
        Ok(histogram)
    }
}
