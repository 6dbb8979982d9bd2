//! Figures as the management API shows them.

use super::super::{Result, SqlStore, StoreError, StoreErrorKind};
use super::{first, numbers_json};
use crate::domain::statistics::{ALL_TENANTS, BUCKETS, Figures, Grain, HOUR_MS, Histogram, MINUTE_MS, Step};
use sea_orm::{DbErr, QueryResult};

const ACTION: &str = "read statistics";

/// Points in one answer at most.
pub const POINTS_MAX: i64 = 2_000;

/// Rows of figures that one answer is made of at most.
const ROWS_MAX: i64 = 200_000;

/// Whose figures, and when.
#[derive(Debug, Clone)]
pub struct FiguresFilter {
    /// Of these tenants; `None`: of all together.
    pub tenants: Option<Vec<i64>>,
    /// Only of this task, if it is one of theirs.
    pub task: Option<i64>,
    /// From this instant, ms, a multiple of the rows' period …
    pub from: i64,
    /// … up to this one, ms.
    pub until: i64,
    /// Width of a point; the first starts at `from`.
    pub step: Step,
}

impl SqlStore {
    /// Figures by the start of their point, ms, oldest first; a point without fires is left out.
    pub async fn figures(&self, filter: &FiguresFilter) -> Result<Vec<(i64, Figures)>> {
        let subjects = match (&filter.task, &filter.tenants) {
            (Some(task), _) => vec![*task],
            (None, Some(tenants)) => tenants.clone(),
            (None, None) => vec![ALL_TENANTS],
        };
        let hours_until = match filter.step.period_ms() {
            HOUR_MS => self.hours_until().await?.clamp(filter.from, filter.until.max(filter.from)),
            _ => filter.from,
        };
        let rows = (hours_until - filter.from) / HOUR_MS + (filter.until - hours_until) / MINUTE_MS;
        if rows * subjects.len() as i64 > ROWS_MAX || (filter.until - filter.from) / filter.step.ms() > POINTS_MAX {
            let detail = format!(
                "that is more than {POINTS_MAX} points or {ROWS_MAX} minutes or hours of tenants; ask for a shorter range, \
                 or in larger steps"
            );
            return Err(StoreError::new(StoreErrorKind::Invalid, ACTION, detail));
        }
        let (minute, hour) = match filter.task {
            Some(_) => (Grain::TaskMinute, Grain::TaskHour),
            None => (Grain::TenantMinute, Grain::TenantHour),
        };
        let mut points = self.figures_of(hour, &subjects, filter, filter.from, hours_until).await?;
        for (at, figures) in self.figures_of(minute, &subjects, filter, hours_until, filter.until).await? {
            match points.last_mut() {
                Some((last, before)) if *last == at => before.merge(&figures),
                _ => points.push((at, figures)),
            }
        }
        Ok(points)
    }

    /// Minutes before this instant have been counted, ms; 0 when none has.
    pub async fn statistics_until(&self) -> Result<i64> {
        let listed: Vec<i64> = self.query(ACTION, &self.sql.statistics.state, [], first).await?;
        let waiting: Vec<Option<i64>> =
            self.query(ACTION, &self.sql.statistics.first_uncounted, [], |row| row.try_get_by_index(0)).await?;
        let listed = listed.first().copied().unwrap_or(0);
        Ok(waiting.first().copied().flatten().unwrap_or(listed).min(listed))
    }

    /// Hours before this instant have been added up, ms.
    async fn hours_until(&self) -> Result<i64> {
        let until = self.statistics_until().await?;
        let waiting: Vec<Option<i64>> =
            self.query(ACTION, &self.sql.statistics.hours_until, [], |row| row.try_get_by_index(0)).await?;
        let hour = waiting.first().copied().flatten().unwrap_or(until).min(until);
        Ok(hour - hour.rem_euclid(HOUR_MS))
    }

    async fn figures_of(
        &self,
        grain: Grain,
        subjects: &[i64],
        filter: &FiguresFilter,
        from: i64,
        until: i64,
    ) -> Result<Vec<(i64, Figures)>> {
        let starts: Vec<i64> = (from..until).step_by(grain.period_ms() as usize).collect();
        if starts.is_empty() || subjects.is_empty() {
            return Ok(Vec::new());
        }
        let values = [
            numbers_json(&starts)?.into(),
            numbers_json(subjects)?.into(),
            (grain as i32).into(),
            filter.from.into(),
            filter.step.ms().into(),
            i32::from(filter.tenants.is_some()).into(),
            numbers_json(filter.tenants.as_deref().unwrap_or_default())?.into(),
        ];
        self.query(ACTION, &self.sql.statistics.read, values, point).await
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
