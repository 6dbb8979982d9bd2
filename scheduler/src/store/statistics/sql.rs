//! The statements of statistics, rendered once per database.
//!
//! Logs become figures within the database: `INSERT … SELECT`, which at READ COMMITTED locks no row
//! that it reads. A row of figures only ever gives way to one of as many fires or more, so that
//! counting again what retention has begun to delete takes nothing away.

use crate::domain::Status;
use crate::domain::statistics::{BOUNDS_MS, BUCKETS, Grain, HOUR_MS, MINUTE_MS};
use crate::store::dialect::{Dialect, Kind, Sql};

const ID: &[(&str, Kind)] = &[("id", Kind::Big)];

const TASK_MINUTE: i32 = Grain::TaskMinute as i32;
const TASK_HOUR: i32 = Grain::TaskHour as i32;
const TENANT_MINUTE: i32 = Grain::TenantMinute as i32;
const TENANT_HOUR: i32 = Grain::TenantHour as i32;

/// Lateness and duration of the log `l`, ms; null where they are not known.
const LATE: &str = "NULLIF(l.started_at, 0) - l.due_time";
const TOOK: &str = "NULLIF(l.finished_at, 0) - NULLIF(l.started_at, 0)";

/// The statements.
#[derive(Debug)]
pub struct Statements {
    pub state: Sql,
    pub listed: Sql,
    pub next_fire: Sql,
    pub count_again: Sql,
    pub due: Sql,
    pub tasks_fired: Sql,
    pub tasks_open: Sql,
    pub open_runs: Sql,
    pub count_tasks: Sql,
    pub sum_tenants: Sql,
    pub sum_all: Sql,
    pub rows_of_hour: Sql,
    pub sum_task_hours: Sql,
    pub sum_tenant_hours: Sql,
    pub done: Sql,
    pub put_off: Sql,
    pub mark_hour: Sql,
    pub purge_until: Sql,
    pub purge_part: Sql,
    pub purge_rest: Sql,
    pub first_uncounted: Sql,
    pub hours_until: Sql,
    pub read: Sql,
}

impl Statements {
    /// Renders all of them for `backend`.
    pub fn new(backend: Dialect) -> Self {
        let sql = |template: &str| Sql::new(backend, template);
        let join = backend.join_in_order();
        let on_work = backend.or_update("grain, start");
        Self {
            state: sql("SELECT listed_until FROM statistic_state WHERE id = 1"),
            listed: sql("UPDATE statistic_state SET listed_until = {1} WHERE id = 1"),
            next_fire: sql("SELECT fire_time FROM task_log WHERE fire_time >= {1} ORDER BY fire_time LIMIT 1"),
            count_again: sql(&format!(
                "INSERT INTO statistic_work (grain, start, marks, is_full, due_at, tries) \
                 SELECT {TASK_MINUTE}, v.n_id, 1, 1, {{2}}, 0 FROM {} WHERE 1 = 1 {on_work} \
                 marks = statistic_work.marks + 1, is_full = 1, due_at = {}, tries = 0",
                backend.rows(1, ID),
                backend.incoming("due_at")
            )),
            due: sql("SELECT grain, start, marks, is_full, tries FROM statistic_work WHERE due_at <= {1} \
                 ORDER BY grain, start LIMIT {2}"),
            tasks_fired: sql(&format!(
                "SELECT l.task_id, COUNT(*) FROM task_log l WHERE l.fire_time >= {{1}} AND l.fire_time < {{1}} + {MINUTE_MS} \
                 GROUP BY l.task_id ORDER BY l.task_id"
            )),
            tasks_open: sql(&format!(
                "SELECT s.subject, s.fires FROM statistic s WHERE s.grain = {TASK_MINUTE} AND s.start = {{1}} AND s.open_runs > 0 \
                 ORDER BY s.subject"
            )),
            open_runs: sql(&format!(
                "SELECT {} FROM statistic s WHERE s.grain = {TASK_MINUTE} AND s.start = {{1}}",
                backend.big("COALESCE(SUM(s.open_runs), 0)")
            )),
            count_tasks: sql(&insert(
                backend,
                &format!("{TASK_MINUTE}, {{2}}, l.task_id, MIN(l.tenant_id), {}", counted().join(", ")),
                &format!(
                    "{} {join} task_log l ON l.task_id = v.n_id AND l.fire_time >= {{2}} AND l.fire_time < {{2}} + {MINUTE_MS} \
                     WHERE l.parent_id = 0 GROUP BY l.task_id",
                    backend.rows(1, ID)
                ),
            )),
            sum_tenants: sql(&insert(
                backend,
                &format!("{TENANT_MINUTE}, s.start, s.tenant_id, s.tenant_id, {}", summed().join(", ")),
                &format!("statistic s WHERE s.grain = {TASK_MINUTE} AND s.start = {{1}} GROUP BY s.start, s.tenant_id"),
            )),
            sum_all: sql(&insert(
                backend,
                &format!("{TENANT_MINUTE}, s.start, 0, 0, {}", summed().join(", ")),
                &format!(
                    "statistic s WHERE s.grain = {TENANT_MINUTE} AND s.start = {{1}} AND s.subject > 0 GROUP BY s.start"
                ),
            )),
            rows_of_hour: sql(&format!(
                "SELECT COUNT(*) FROM statistic s WHERE s.grain = {TASK_MINUTE} AND s.start >= {{1}} AND s.start < {{1}} + {HOUR_MS}"
            )),
            sum_task_hours: sql(&insert(
                backend,
                &format!("{TASK_HOUR}, {{1}}, s.subject, MIN(s.tenant_id), {}", summed().join(", ")),
                &format!(
                    "statistic s WHERE s.grain = {TASK_MINUTE} AND s.start >= {{1}} AND s.start < {{1}} + {HOUR_MS} \
                     AND s.subject % {{2}} = {{3}} GROUP BY s.subject"
                ),
            )),
            sum_tenant_hours: sql(&insert(
                backend,
                &format!("{TENANT_HOUR}, {{1}}, s.subject, s.subject, {}", summed().join(", ")),
                &format!(
                    "statistic s WHERE s.grain = {TENANT_MINUTE} AND s.start >= {{1}} AND s.start < {{1}} + {HOUR_MS} \
                     GROUP BY s.subject"
                ),
            )),
            done: sql("DELETE FROM statistic_work WHERE grain = {1} AND start = {2} AND marks = {3}"),
            put_off: sql("UPDATE statistic_work SET is_full = 0, due_at = {4}, tries = tries + 1 \
                 WHERE grain = {1} AND start = {2} AND marks = {3}"),
            // One that waits already comes when it was to come.
            mark_hour: sql(&format!(
                "INSERT INTO statistic_work (grain, start, marks, is_full, due_at, tries) \
                 VALUES ({TASK_HOUR}, {{1}}, 1, 1, {{2}}, 0) {on_work} marks = statistic_work.marks + 1"
            )),
            purge_until: sql("SELECT start, subject FROM statistic WHERE grain = {1} AND start < {2} \
                 ORDER BY start, subject LIMIT 1 OFFSET {3}"),
            purge_part: sql(
                "DELETE FROM statistic WHERE grain = {1} AND (start < {2} OR (start = {2} AND subject <= {3}))",
            ),
            purge_rest: sql("DELETE FROM statistic WHERE grain = {1} AND start < {2}"),
            first_uncounted: sql(&format!(
                "SELECT MIN(w.start) FROM statistic_work w WHERE w.grain = {TASK_MINUTE} AND w.is_full = 1"
            )),
            hours_until: sql(&format!(
                "SELECT MIN(w.start) FROM statistic_work w WHERE w.grain = {TASK_HOUR} AND NOT EXISTS (SELECT 1 FROM statistic s \
                 WHERE s.grain = {TENANT_HOUR} AND s.start = w.start AND s.subject = 0)"
            )),
            read: sql(&read(backend)),
        }
    }
}

/// Names of the columns of figures after the tenant's, in the order in which they are written and read.
fn columns() -> Vec<String> {
    let counts = ["fires", "succeeded", "failed", "discarded", "expired", "cancelled", "open_runs", "failures"]
        .map(str::to_owned);
    let of = |name: &'static str| {
        (0..BUCKETS).map(move |at| format!("{name}_{at}")).chain(["ms", "max"].map(|what| format!("{name}_{what}")))
    };
    counts.into_iter().chain(of("late")).chain(of("took")).collect()
}

/// Those columns out of logs.
fn counted() -> Vec<String> {
    let with = |condition: &str| format!("SUM(CASE WHEN {condition} THEN 1 END)");
    let ended = [Status::Succeeded, Status::Failed, Status::Discarded, Status::Expired, Status::Cancelled];
    let mut list = vec!["COUNT(*)".to_owned()];
    list.extend(ended.map(|status| with(&format!("l.status = {}", status as i16))));
    list.push(with(&format!("l.status < {}", Status::Succeeded as i16)));
    list.push("NULLIF(SUM(l.failures), 0)".to_owned());
    for time in [LATE, TOOK] {
        for bucket in 0..BUCKETS {
            let above = bucket.checked_sub(1).map(|below| BOUNDS_MS[below] + 1);
            list.push(match (above, BOUNDS_MS.get(bucket)) {
                (None, Some(bound)) => with(&format!("{time} <= {bound}")),
                (Some(above), Some(bound)) => with(&format!("{time} BETWEEN {above} AND {bound}")),
                (above, None) => with(&format!("{time} >= {}", above.unwrap_or(0))),
            });
        }
        let bounded = format!("CASE WHEN {time} >= 0 THEN {time} WHEN {time} < 0 THEN 0 END");
        list.push(format!("SUM({bounded})"));
        list.push(format!("MAX({bounded})"));
    }
    list
}

/// Those columns out of figures.
fn summed() -> Vec<String> {
    let one = |column: &String| {
        let sum = if column.ends_with("_max") { "MAX" } else { "SUM" };
        format!("{sum}(s.{column})")
    };
    columns().iter().map(one).collect()
}

/// Writes the figures that `select … from` makes, each over an earlier row of no more fires.
fn insert(backend: Dialect, select: &str, from: &str) -> String {
    let columns = columns();
    let list = format!("tenant_id, {}", columns.join(", "));
    let over = backend.or_replace_smaller("statistic", "grain, start, subject", &columns);
    format!("INSERT INTO statistic (grain, start, subject, {list}) SELECT {select} FROM {from} {over}")
}

/// Figures of the subjects `{2}` in the periods that start at `{1}`, added up in steps of `{5}` ms
/// from `{4}` on. `{6}` is 1 when rows of other tenants than `{7}` are to be left out.
fn read(backend: Dialect) -> String {
    let join = backend.join_in_order();
    let sums: Vec<String> = summed().iter().map(|sum| backend.big(sum)).collect();
    format!(
        "SELECT s.start - (s.start - {{4}}) % {{5}} AS point, {} FROM {} {} \
         {join} statistic s ON s.grain = {{3}} AND s.start = v.n_id AND s.subject = u.n_subject \
         WHERE {{6}} = 0 OR s.tenant_id IN (SELECT n_id FROM {}) GROUP BY point ORDER BY point",
        sums.join(", "),
        backend.rows(1, ID),
        backend.each_with(&format!("(SELECT n_id AS n_subject FROM {}) u", backend.rows(2, ID))),
        backend.rows(7, ID)
    )
}
