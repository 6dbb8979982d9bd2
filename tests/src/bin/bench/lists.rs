//! How long the lists of task logs take that people look at, among many rows.

use crate::options::Kind;
use crate::stand::{Bench, Stand};
use crate::{progress, report};
use anyhow::{Context, Result, ensure};
use carillon_tests::now_ms;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::time::Instant;

/// Rows written by one statement.
const BATCH: u32 = 500_000;

/// How often each list is asked for.
const ROUNDS: usize = 20;

/// Days that the rows are spread over: less than retention keeps.
const DAYS: i64 = 4;

/// How ids tell when they were made: ms since the start of 2025, above these bits.
const ID_EPOCH_MS: i64 = 1_735_689_600_000;
const ID_BITS: i64 = 22;

/// The tenant that has four fifths of all rows; the others share the rest.
const LARGE: i64 = 1_001;
/// A tenant that has a thousandth.
const SMALL: i64 = 1_049;
/// A tenant that has ten rows, all of them failures.
const TINY: i64 = 1_050;

/// Tasks of each tenant.
const TASKS: i64 = 200;

/// Writes `count` ended logs and asks for lists of them.
pub async fn measure(bench: &Bench, count: u32) -> Result<Value> {
    let span = DAYS * 86_400_000;
    let from = now_ms() - span;
    let stand = filled(bench, count, from, span).await?;
    let mut lists = Map::new();
    for (name, path) in questions(from, span) {
        lists.insert(name.to_owned(), ask(&stand, &path).await.with_context(|| path.clone())?);
    }
    let database = stand.kill_node().await;
    bench.server.remove(database).await?;
    Ok(json!({ "logs": count, "rounds": ROUNDS, "lists_ms": lists, "machine": report::machine() }))
}

/// Writes `count` ended logs, says where the node is, and keeps it until standard input ends.
pub async fn hold(bench: &Bench, count: u32) -> Result<Value> {
    let span = DAYS * 86_400_000;
    let stand = filled(bench, count, now_ms() - span, span).await?;
    println!("{}", stand.address());
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink())).await??;
    let database = stand.kill_node().await;
    bench.server.remove(database).await?;
    Ok(json!({ "logs": count }))
}

/// A node over `count` ended logs with fire times from `from` on for `span` ms.
async fn filled(bench: &Bench, count: u32, from: i64, span: i64) -> Result<Stand> {
    let stand = Stand::raise(bench, 180).await?;
    progress(&format!("{count} logs"));
    let begun = Instant::now();
    for tenant in LARGE..=TINY {
        let insert = format!(
            "INSERT INTO tenant (id, name, created_at, revision, max_concurrent) VALUES ({tenant}, 't{tenant}', 1, 1, 0)"
        );
        stand.database.execute(&insert).await?;
    }
    for first in (0..count).step_by(BATCH as usize) {
        let last = (first + BATCH).min(count) - 1;
        stand.database.execute(&rows_sql(bench.server.kind, first, last, from, span / i64::from(count))).await?;
        progress(&format!("{} logs after {} s", last + 1, begun.elapsed().as_secs()));
    }
    for at in 0..10 {
        let fire = from + at * 3_600_000;
        let id = ((fire - ID_EPOCH_MS) << ID_BITS) + 4_000_000 + at;
        let row = row_sql(&id.to_string(), &TINY.to_string(), "1", &fire.to_string(), "11");
        stand.database.execute(&format!("INSERT INTO task_log ({COLUMNS}) {row}")).await?;
    }
    if bench.server.kind != Kind::Sqlite {
        stand.database.execute(&format!("ANALYZE {}task_log", table_word(bench.server.kind))).await?;
    }
    Ok(stand)
}

fn table_word(kind: Kind) -> &'static str {
    if kind == Kind::Mariadb { "TABLE " } else { "" }
}

/// What a person looks at: the newest, the failures, a task, a day, deep pages, rare things.
fn questions(from: i64, span: i64) -> Vec<(&'static str, String)> {
    let (day, middle) = (86_400_000, from + span / 2);
    let task = LARGE * 1_000 + 7;
    vec![
        ("newest of all tenants", "/task-logs?limit=50".to_owned()),
        ("newest, 500 rows", "/task-logs?limit=500".to_owned()),
        ("oldest of all tenants", "/task-logs?order=oldest".to_owned()),
        ("a deep page of all tenants", format!("/task-logs?limit=50&before={middle}-1-1")),
        ("newest of the large tenant", format!("/task-logs?tenant=t{LARGE}")),
        ("newest of the small tenant", format!("/task-logs?tenant=t{SMALL}")),
        ("oldest of the large tenant", format!("/task-logs?tenant=t{LARGE}&order=oldest")),
        ("a deep page of the large tenant", format!("/task-logs?tenant=t{LARGE}&before={middle}-1")),
        (
            "a deep page of the large tenant, oldest first",
            format!("/task-logs?tenant=t{LARGE}&order=oldest&before={middle}-1"),
        ),
        ("a day of the small tenant", format!("/task-logs?tenant=t{SMALL}&from={from}&until={}", from + day)),
        ("failures of all tenants", "/task-logs?status=failed".to_owned()),
        ("failures of the large tenant", format!("/task-logs?tenant=t{LARGE}&status=failed")),
        ("oldest failures of the large tenant", format!("/task-logs?tenant=t{LARGE}&status=failed&order=oldest")),
        ("failures of the tiny tenant", format!("/task-logs?tenant=t{TINY}&status=failed")),
        ("expired of the small tenant (none)", format!("/task-logs?tenant=t{SMALL}&status=expired")),
        ("successes of the small tenant", format!("/task-logs?tenant=t{SMALL}&status=succeeded")),
        ("running, of all tenants", "/task-logs?status=dispatched".to_owned()),
        ("a task", format!("/task-logs?task={task}")),
        ("failures of a task", format!("/task-logs?task={task}&status=failed")),
        ("an app of the large tenant (none)", format!("/task-logs?tenant=t{LARGE}&app=77")),
        ("a reason among all (none)", "/task-logs?reason=handler_panicked".to_owned()),
        ("a reason among all, oldest first (none)", "/task-logs?reason=handler_panicked&order=oldest".to_owned()),
        ("what an executor had (none)", "/task-logs?executor=77".to_owned()),
        ("by hand, in the large tenant (none)", format!("/task-logs?tenant=t{LARGE}&trigger=manual")),
    ]
}

/// The time of a request in its rounds, ms.
async fn ask(stand: &Stand, path: &str) -> Result<Value> {
    let mut times = Vec::with_capacity(ROUNDS);
    let mut found = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let (status, answer) = stand.api.send(Method::GET, path, None).await;
        ensure!(status == 200, "{status} {answer}\n{}", stand.node_log());
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        found = answer["items"].as_array().context("no items")?.len();
    }
    times.sort_by(f64::total_cmp);
    let rounded = |ms: f64| report::rounded(ms, 1);
    Ok(json!({ "p50": rounded(times[ROUNDS / 2]), "max": rounded(times[ROUNDS - 1]), "rows": found }))
}

const COLUMNS: &str = "id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, fire_time, \
     due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, started_at, \
     finished_at, reason, message, output, params, trigger_kind, seq, priority, stopping";

/// The columns of one log, as a SELECT.
fn row_sql(id: &str, tenant: &str, task: &str, fire: &str, status: &str) -> String {
    format!(
        "SELECT {id}, {tenant}, {tenant} * 10, {task}, 1, 0, 0, 1, 1, {fire}, {fire}, {status}, 4, 1, 0, 1, 5, {fire}, \
         {fire}, {fire} + 2, {fire} + 40, CASE WHEN {status} = 11 THEN 'handler_failed' ELSE '' END, NULL, 'done', NULL, \
         'schedule', 1, 5, ''"
    )
}

/// Writes rows `first` to `last`, `step` ms apart: 96 of 100 succeeded, three failed, one was cancelled.
fn rows_sql(kind: Kind, first: u32, last: u32, from: i64, step: i64) -> String {
    let step = step.max(1);
    let remainder = |of: &str, by: i64| match kind {
        Kind::Mariadb => format!("({of} MOD {by})"),
        _ => format!("({of} % {by})"),
    };
    let tenant = format!(
        "CASE WHEN {} < 8 THEN {LARGE} WHEN {} = 9 THEN {SMALL} ELSE {LARGE} + 1 + {} END",
        remainder("n.n", 10),
        remainder("n.n", 1_000),
        remainder("n.n", 47),
    );
    let status = format!(
        "CASE WHEN {} < 96 THEN 10 WHEN {} < 99 THEN 11 ELSE 14 END",
        remainder("n.n", 100),
        remainder("n.n", 100)
    );
    let task = format!("({tenant}) * 1000 + {}", remainder("n.n", TASKS));
    // As the unique index wants it, no two of a task at one instant.
    let fire = format!("({from} + n.n * {step})");
    // Many rows may share a millisecond.
    let id = format!("({fire} - {ID_EPOCH_MS}) * {} + n.n", 1 << ID_BITS);
    let row = row_sql(&id, &tenant, &task, &fire, &format!("({status})"));
    let numbers = match kind {
        Kind::Mariadb => format!("(SELECT seq AS n FROM seq_{first}_to_{last}) n"),
        Kind::Postgres => format!("(SELECT CAST(g AS BIGINT) AS n FROM generate_series({first}, {last}) g) n"),
        Kind::Sqlite => {
            format!(
                "(WITH RECURSIVE c(n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM c WHERE n < {last}) SELECT n FROM c) n"
            )
        }
    };
    format!("INSERT INTO task_log ({COLUMNS}) {row} FROM {numbers}")
}
