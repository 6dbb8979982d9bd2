//! Figures as the management API shows them.

use super::super::conditions::Conditions;
use super::super::{Result, SqlStore, StoreError};
use super::{first, numbers_json};
use crate::domain::statistics::{ALL_TENANTS, BUCKETS, Figures, Grain, HOUR_MS, Histogram, MINUTE_MS, Step};
use crate::domain::{AccessScope, AppId, Refusal, TaskId, TenantId};
use sea_orm::{DbErr, QueryResult};

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
    /// of tenants are of all apps, so they are for whoever may see all of them.
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
        let listed: Vec<i64> = self.query(ACTION, &super::sql::STATE, [], first).await?;
        let waiting: Vec<Option<i64>> =
            self.query(ACTION, &super::sql::FIRST_UNCOUNTED, [], |row| row.try_get_by_index(0)).await?;
        let listed = listed.first().copied().unwrap_or(0);
        Ok(waiting.first().copied().flatten().unwrap_or(listed).min(listed))
    }

    /// Hours before this instant have been added up, ms.
    async fn hours_until(&self) -> Result<i64> {
        let until = self.statistics_until().await?;
        let waiting: Vec<Option<i64>> =
            self.query(ACTION, &super::sql::HOURS_UNTIL, [], |row| row.try_get_by_index(0)).await?;
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
        self.query_raw(ACTION, statement, |row| row.try_get_by_index(0)).await
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
            numbers_json(&starts)?.into(),
            numbers_json(&within.subjects)?.into(),
            (grain as i32).into(),
            filter.from.into(),
            filter.step.ms().into(),
            i32::from(within.tenants.is_some()).into(),
            numbers_json(within.tenants.as_deref().unwrap_or_default())?.into(),
        ];
        self.query(ACTION, &super::sql::READ, values, point).await
    }
}

fn point(row: &QueryResult) -> std::result::Result<(i64, Figures), DbErr> {
    let number = |at: usize| row.try_get_by_index::<Option<i64>>(at).map(|number| number.unwrap_or(0) as u64);
    let histogram = |at: usize| {
        let mut histogram =
            Histogram { sum_ms: number(at + BUCKETS)?, max_ms: number(at + BUCKETS + 1)?, ..Histogram::default() };
        for (bucket, count) in histogram.counts.iter_mut().enumerate() {
            *count = number(at + bucket)?;
        }
        Ok::<_, DbErr>(histogram)
    };
    let figures = Figures {
        fires: number(1)?,
        succeeded: number(2)?,
        failed: number(3)?,
        discarded: number(4)?,
        expired: number(5)?,
        cancelled: number(6)?,
        open: number(7)?,
        failures: number(8)?,
        lateness: histogram(9)?,
        duration: histogram(9 + BUCKETS + 2)?,
    };
    Ok((row.try_get_by_index(0)?, figures))
}
