//! The statements of statistics, rendered once per database.
//!
//! Logs become figures within the database: `INSERT … SELECT`, which at READ COMMITTED locks no row
//! that it reads. A row of figures only ever gives way to one of as many fires or more, so that
//! counting again what retention has begun to delete takes nothing away.

use crate::domain::Status;
use crate::domain::statistics::{BOUNDS_MS, BUCKETS, Grain, HOUR_MS, MINUTE_MS};
use crate::store::dialect::Dialect;
use crate::store::sql::ID;

const TASK_MINUTE: i32 = Grain::TaskMinute as i32;
const TASK_HOUR: i32 = Grain::TaskHour as i32;
const TENANT_MINUTE: i32 = Grain::TenantMinute as i32;
const TENANT_HOUR: i32 = Grain::TenantHour as i32;

/// A time of the log `l`, ms; null where it is not known. One that cannot be (after the year 9999), which earlier releases stored as
/// executors told it, is not: what such times add up to has room in no column, and would stop the count.
macro_rules! known {
    ($time:literal) => {
        concat!("CASE WHEN l.", $time, " BETWEEN 1 AND 253402300799999 THEN l.", $time, " END")
    };
}

/// Lateness and duration of the log `l`, ms; null where they are not known.
const LATE: &str = concat!(known!("started_at"), " - l.due_time");
const TOOK: &str = concat!(known!("finished_at"), " - ", known!("started_at"));

statements!(
    STATE = |_| "SELECT listed_until FROM statistic_state WHERE id = 1".into(),
    LISTED = |_| "UPDATE statistic_state SET listed_until = {1} WHERE id = 1".into(),
    NEXT_FIRE = |_| "SELECT fire_time FROM task_log WHERE fire_time >= {1} ORDER BY fire_time LIMIT 1".into(),
    COUNT_AGAIN = |d| format!(
        "INSERT INTO statistic_work (grain, start, marks, is_full, due_at, tries) \
         SELECT {TASK_MINUTE}, v.n_id, 1, 1, {{2}}, 0 FROM {} WHERE 1 = 1 {} \
         marks = statistic_work.marks + 1, is_full = 1, due_at = {}, tries = 0",
        d.rows(1, ID),
        d.or_update("grain, start"),
        d.incoming("due_at")
    ),
    DUE = |_| "SELECT grain, start, marks, is_full, tries FROM statistic_work WHERE due_at <= {1} \
     ORDER BY grain, start LIMIT {2}"
        .into(),
    TASKS_FIRED = |_| format!(
        "SELECT l.task_id, COUNT(*) FROM task_log l WHERE l.fire_time >= {{1}} AND l.fire_time < {{1}} + {MINUTE_MS} \
         GROUP BY l.task_id ORDER BY l.task_id"
    ),
    TASKS_OPEN = |_| format!(
        "SELECT s.subject, s.fires FROM statistic s WHERE s.grain = {TASK_MINUTE} AND s.start = {{1}} AND s.open_runs > 0 \
         ORDER BY s.subject"
    ),
    OPEN_RUNS = |d| format!(
        "SELECT {} FROM statistic s WHERE s.grain = {TASK_MINUTE} AND s.start = {{1}}",
        d.big("COALESCE(SUM(s.open_runs), 0)")
    ),
    COUNT_TASKS = |d| insert(
        d,
        &format!("{TASK_MINUTE}, {{2}}, l.task_id, MIN(l.tenant_id), {}", counted().join(", ")),
        &format!(
            "{} {} task_log l ON l.task_id = v.n_id AND l.fire_time >= {{2}} AND l.fire_time < {{2}} + {MINUTE_MS} \
             WHERE l.parent_id = 0 GROUP BY l.task_id",
            d.rows(1, ID),
            d.join_in_order()
        ),
    ),
    SUM_TENANTS = |d| insert(
        d,
        &format!("{TENANT_MINUTE}, s.start, s.tenant_id, s.tenant_id, {}", summed().join(", ")),
        &format!("statistic s WHERE s.grain = {TASK_MINUTE} AND s.start = {{1}} GROUP BY s.start, s.tenant_id"),
    ),
    SUM_ALL = |d| insert(
        d,
        &format!("{TENANT_MINUTE}, s.start, 0, 0, {}", summed().join(", ")),
        &format!("statistic s WHERE s.grain = {TENANT_MINUTE} AND s.start = {{1}} AND s.subject > 0 GROUP BY s.start"),
    ),
    ROWS_OF_HOUR = |_| format!(
        "SELECT COUNT(*) FROM statistic s WHERE s.grain = {TASK_MINUTE} AND s.start >= {{1}} AND s.start < {{1}} + {HOUR_MS}"
    ),
    SUM_TASK_HOURS = |d| insert(
        d,
        &format!("{TASK_HOUR}, {{1}}, s.subject, MIN(s.tenant_id), {}", summed().join(", ")),
        &format!(
            "statistic s WHERE s.grain = {TASK_MINUTE} AND s.start >= {{1}} AND s.start < {{1}} + {HOUR_MS} \
             AND s.subject % {{2}} = {{3}} GROUP BY s.subject"
        ),
    ),
    SUM_TENANT_HOURS = |d| insert(
        d,
        &format!("{TENANT_HOUR}, {{1}}, s.subject, s.subject, {}", summed().join(", ")),
        &format!(
            "statistic s WHERE s.grain = {TENANT_MINUTE} AND s.start >= {{1}} AND s.start < {{1}} + {HOUR_MS} \
             GROUP BY s.subject"
        ),
    ),
    DONE = |_| "DELETE FROM statistic_work WHERE grain = {1} AND start = {2} AND marks = {3}".into(),
    PUT_OFF = |_| "UPDATE statistic_work SET is_full = 0, due_at = {4}, tries = tries + 1 \
     WHERE grain = {1} AND start = {2} AND marks = {3}"
        .into(),
    // One that waits already comes when it was to come.
    MARK_HOUR = |d| format!(
        "INSERT INTO statistic_work (grain, start, marks, is_full, due_at, tries) \
         VALUES ({TASK_HOUR}, {{1}}, 1, 1, {{2}}, 0) {} marks = statistic_work.marks + 1",
        d.or_update("grain, start")
    ),
    PURGE_UNTIL = |_| "SELECT start, subject FROM statistic WHERE grain = {1} AND start < {2} \
     ORDER BY start, subject LIMIT 1 OFFSET {3}"
        .into(),
    PURGE_PART =
        |_| "DELETE FROM statistic WHERE grain = {1} AND (start < {2} OR (start = {2} AND subject <= {3}))".into(),
    PURGE_REST = |_| "DELETE FROM statistic WHERE grain = {1} AND start < {2}".into(),
    FIRST_UNCOUNTED =
        |_| format!("SELECT MIN(w.start) FROM statistic_work w WHERE w.grain = {TASK_MINUTE} AND w.is_full = 1"),
    HOURS_UNTIL = |_| format!(
        "SELECT MIN(w.start) FROM statistic_work w WHERE w.grain = {TASK_HOUR} AND NOT EXISTS (SELECT 1 FROM statistic s \
         WHERE s.grain = {TENANT_HOUR} AND s.start = w.start AND s.subject = 0)"
    ),
    READ = read,
);

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
fn insert(d: Dialect, select: &str, from: &str) -> String {
    let columns = columns();
    let list = format!("tenant_id, {}", columns.join(", "));
    let over = d.or_replace_smaller("statistic", "grain, start, subject", &columns);
    format!("INSERT INTO statistic (grain, start, subject, {list}) SELECT {select} FROM {from} {over}")
}

/// Figures of the subjects `{2}` in the periods that start at `{1}`, added up in steps of `{5}` ms
/// from `{4}` on. `{6}` is 1 when rows of other tenants than `{7}` are to be left out.
fn read(d: Dialect) -> String {
    let join = d.join_in_order();
    let sum = |(sum, column): (&String, String)| format!("{} AS {column}", d.big(sum));
    let sums: Vec<String> = summed().iter().zip(columns()).map(sum).collect();
    format!(
        "SELECT s.start - (s.start - {{4}}) % {{5}} AS point, {} FROM {} {} \
         {join} statistic s ON s.grain = {{3}} AND s.start = v.n_id AND s.subject = u.n_subject \
         WHERE {{6}} = 0 OR s.tenant_id IN (SELECT n_id FROM {}) GROUP BY point ORDER BY point",
        sums.join(", "),
        d.rows(1, ID),
        d.each_with(&format!("(SELECT n_id AS n_subject FROM {}) u", d.rows(2, ID))),
        d.rows(7, ID)
    )
}
