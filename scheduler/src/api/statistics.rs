//! Statistics: numbers of fires, their outcomes, lateness and duration.

use super::Api;
use super::input::{Query, known_word, parse_optional_id};
use super::operation::{Operation, get};
use super::problem::Problem;
use super::refusal::RequestRefusal;
use super::words::StatisticsStep;
use crate::auth::Caller;
use crate::domain::Permission;
use crate::domain::statistics::{BOUNDS_MS, DAY_MS, Figures, Histogram, MINUTE_MS, STEPS, Step};
use crate::store::FiguresFilter;
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Longest range, ms.
const RANGE_MAX_MS: i64 = 91 * DAY_MS;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get("/statistics", "read_statistics", Permission::StatisticsRead, "Figures of tenants or of a task over time")
            .says(
                "A fire counts in the minute of its fire time, a sharded run as one. Figures of a minute are available \
                 about half a minute after its end, and change while its runs end later. Without `tenant` and `task` \
                 they cover every tenant that the caller may see completely. Points without fires are omitted.",
            )
            .query::<StatisticsQuery>()
            .answers::<Statistics>(200, "The figures")
            .to(read),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct StatisticsQuery {
    /// Only in this tenant (name).
    tenant: Option<String>,
    /// Only of this task.
    task: Option<String>,
    /// From this instant, epoch ms; rounded down to a minute or, from steps of an hour on, an hour.
    from: i64,
    /// Up to this instant, epoch ms, at most 91 days later; rounded up.
    until: i64,
    /// Length of a step: `1m`, `5m`, `1h` or `1d`, counted from `from`. At most 2,000 points.
    #[param(inline, value_type = StatisticsStep)]
    step: String,
}

/// A histogram of times.
#[derive(Serialize, ToSchema)]
struct Times {
    /// Number of values.
    count: u64,
    /// Sum of all values, ms.
    sum_ms: u64,
    /// The average, ms.
    mean_ms: Option<f64>,
    /// Median, ms; like the other percentiles, an estimate within its bucket.
    p50_ms: Option<f64>,
    /// 90th percentile, ms.
    p90_ms: Option<f64>,
    /// 99th percentile, ms.
    p99_ms: Option<f64>,
    /// The largest, ms.
    max_ms: Option<u64>,
    /// Number of values in each bucket of `bounds_ms`, and above the last bound.
    buckets: Vec<u64>,
}

/// Figures of one period.
#[derive(Serialize, ToSchema)]
struct Point {
    /// When it starts, epoch ms.
    start: i64,
    /// Fires.
    fires: u64,
    /// Runs that succeeded.
    succeeded: u64,
    /// Runs that failed with no attempts left.
    failed: u64,
    /// Runs that failed and whose task discards failures.
    discarded: u64,
    /// Runs that were too late.
    expired: u64,
    /// Runs that were revoked or stopped.
    cancelled: u64,
    /// Runs that had not ended when they were last counted.
    open: u64,
    /// Failed attempts, including those that were retried.
    failures: u64,
    /// From the due time of the last attempt to its start.
    lateness: Times,
    /// From the start of the last attempt to its end.
    duration: Times,
}

/// Figures over time.
#[derive(Serialize, ToSchema)]
struct Statistics {
    /// Where the first point starts, epoch ms.
    from: i64,
    /// Where the last one ends, epoch ms.
    until: i64,
    /// Length of a step, ms.
    step_ms: i64,
    /// Minutes before this instant have been counted, epoch ms.
    counted_until: i64,
    /// Upper bound of each bucket but the last, ms.
    bounds_ms: Vec<i64>,
    /// Oldest first.
    items: Vec<Point>,
    /// The totals of the whole range.
    total: Point,
}

async fn read(api: web::Data<Api>, caller: Caller, query: Query<StatisticsQuery>) -> Result<HttpResponse, Problem> {
    const NEEDS: Permission = Permission::StatisticsRead;
    let StatisticsQuery { tenant, task, from, until, step } = query.0;
    let step = known_word("step", &step, Step::parse(&step), || STEPS.map(|(_, word)| word).join(", "))?;
    let (from, until) = rounded(from, until, step)?;
    let access_scope = caller.access_scope(NEEDS);
    let task_id = parse_optional_id("task", task.as_ref())?;
    let tenant_id = match (&tenant, task_id) {
        (None, _) => None,
        (Some(tenant), Some(_)) => Some(api.tenant(&caller, NEEDS, tenant).await?.id),
        // Figures of a tenant cover all its apps.
        (Some(tenant), None) => Some(api.whole_tenant(&caller, NEEDS, tenant).await?.id),
    };
    if task_id.is_some() && step.period_ms() == MINUTE_MS && from < api.engine.aggregator.task_minutes_since() {
        return Err(RequestRefusal::NotKeptThatLong.into());
    }
    let filter = FiguresFilter { tenant_id, task_id, from, until, step };
    let figures = api.store.figures(&access_scope, &filter).await?;
    let mut total = Figures::default();
    for (_, of_point) in &figures {
        total.merge(of_point);
    }
    Ok(HttpResponse::Ok().json(Statistics {
        from,
        until,
        step_ms: step.ms(),
        counted_until: api.store.statistics_until().await?,
        bounds_ms: BOUNDS_MS.to_vec(),
        items: figures.iter().map(|(start, figures)| point(*start, figures)).collect(),
        total: point(from, &total),
    }))
}

/// A range rounded to whole stored periods.
fn rounded(from: i64, until: i64, step: Step) -> Result<(i64, i64), Problem> {
    let (period, most) = (step.period_ms(), RANGE_MAX_MS);
    if from < 0 || until <= from || until.saturating_sub(from) > most || until > i64::MAX - most {
        return Err(RequestRefusal::WrongRange { most_days: RANGE_MAX_MS / 86_400_000 }.into());
    }
    Ok((from - from % period, (until + period - 1) / period * period))
}

fn point(start: i64, figures: &Figures) -> Point {
    Point {
        start,
        fires: figures.fires,
        succeeded: figures.succeeded,
        failed: figures.failed,
        discarded: figures.discarded,
        expired: figures.expired,
        cancelled: figures.cancelled,
        open: figures.open,
        failures: figures.failures,
        lateness: times(&figures.lateness),
        duration: times(&figures.duration),
    }
}

fn times(histogram: &Histogram) -> Times {
    let count = histogram.count();
    Times {
        count,
        sum_ms: histogram.sum_ms,
        mean_ms: histogram.mean_ms(),
        p50_ms: histogram.quantile_ms(0.5),
        p90_ms: histogram.quantile_ms(0.9),
        p99_ms: histogram.quantile_ms(0.99),
        max_ms: (count > 0).then_some(histogram.max_ms),
        buckets: histogram.counts.to_vec(),
    }
}
