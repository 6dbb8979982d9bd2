//! Statistics match the task log, whichever node dies in the meantime.

use carillon_tests::node::Settings;
use carillon_tests::wait::when;
use carillon_tests::{Api, App, Kind, LogRow, Node, Status, World, await_until, now_ms};
use reqwest::Method;
use serde_json::json;
use std::collections::BTreeMap;

scenario!(figures_say_what_the_task_log_says: sqlite mariadb postgres);
scenario!(the_api_adds_up_what_is_counted: sqlite);
scenario!(old_figures_are_dropped: sqlite mariadb postgres);

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

/// Written down here again on purpose: another bound makes stored figures mean something else.
const BOUNDS_MS: [i64; 22] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 10_800_000, 43_200_000,
];

/// A minute that is over is counted as soon as it can be.
const SOON: Settings = &[("data.statistics_interval", "1s")];

/// Columns of figures, in this order: eight counts, then buckets, sum and maximum of lateness, and
/// of duration.
type Row = Vec<i64>;

async fn figures_say_what_the_task_log_says(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(SOON).await;
    let api = world.api();
    for (tenant, executor) in [("retail", "e1"), ("finance", "e2")] {
        let app = api.make_app(tenant, "orders").await;
        world.executor(executor, &app).await;
        make_tasks(&api, &app).await;
    }
    let listed = "SELECT listed_until FROM statistic_state";
    let counted = await_until("a minute is counted", 120, || async {
        let until = world.database.number(listed).await;
        (until > 0).then_some(until)
    })
    .await;
    kill_the_counter(&world, kind).await;
    // Runs of the minute that was counted still go on; the next one is counted by any node.
    await_until("another minute is counted", 180, || async { when(world.database.number(listed).await > counted) })
        .await;
    world.settle().await;
    let until = now_ms();
    await_until("everything is counted", 240, || async {
        let left = world.database.number("SELECT COUNT(*) FROM statistic_work WHERE grain = 1").await;
        when(left == 0 && world.database.number(listed).await > until)
    })
    .await;
    // What was written ahead and cancelled lies in minutes to come.
    let counted = world.database.number(listed).await;
    let rows = world.database.logs(&format!("fire_time < {counted}")).await;
    let tenants: BTreeMap<i64, i64> = world
        .database
        .query("SELECT id, tenant_id FROM task", |row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?)))
        .await
        .into_iter()
        .collect();
    assert!(rows.len() > 100 && rows.iter().any(|row| row.finished_at > row.fire_time + 50_000), "{}", rows.len());
    assert_same(&stored(&world, 1).await, &expected(&rows, |row| vec![row.task]));
    assert_same(&stored(&world, 3).await, &expected(&rows, |row| vec![0, tenants[&row.task]]));
}

/// Says which figures differ, and in what.
fn assert_same(stored: &BTreeMap<(i64, i64), Row>, expected: &BTreeMap<(i64, i64), Row>) {
    assert_eq!(stored.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (key, figures) in expected {
        let named = |row: &Row| columns().into_iter().zip(row.clone()).filter(|(_, n)| *n != 0).collect::<Vec<_>>();
        assert_eq!(named(&stored[key]), named(figures), "{key:?}");
    }
}

/// One that succeeds, one that fails and is tried again, one that goes on beyond its minute.
async fn make_tasks(api: &Api, app: &App) {
    api.make_task(app, "every second", "tick", json!({ "cron": "* * * * * ?" })).await;
    let fields = json!({
        "cron": "0/5 * * * * ?", "params": r#"{"succeed_at": 3}"#, "max_retries": 1, "retry_interval_ms": 1_000,
    });
    api.make_task(app, "fails at last", "flaky", fields).await;
    let fields = json!({ "cron": "0/20 * * * * ?", "params": r#"{"ms": 55000}"# });
    api.make_task(app, "takes long", "sleep", fields).await;
}

/// Kills the node that holds the lease of statistics; the only one is started again.
async fn kill_the_counter(world: &World, kind: Kind) {
    let holder = world.database.number("SELECT holder FROM lease WHERE name = 'statistics'").await;
    let mut victim: Option<Node> = None;
    for node in world.running_nodes() {
        if world.database.node_id(&node.name).await == holder {
            victim = Some(node);
        }
    }
    let victim = victim.expect("a node holds the lease");
    victim.process.kill9().await;
    if kind == Kind::Sqlite {
        world.unready_node(&victim.name, victim.port, SOON).ready().await;
    }
}

fn columns() -> Vec<String> {
    let mut columns = ["fires", "succeeded", "failed", "discarded", "expired", "cancelled", "open_runs", "failures"]
        .map(str::to_owned)
        .to_vec();
    for of in ["late", "took"] {
        columns.extend((0..=BOUNDS_MS.len()).map(|bucket| format!("{of}_{bucket}")));
        columns.extend(["ms", "max"].map(|what| format!("{of}_{what}")));
    }
    columns
}

/// The stored figures of one grain: (minute, of whom).
async fn stored(world: &World, grain: i32) -> BTreeMap<(i64, i64), Row> {
    let columns = columns();
    let list: Vec<String> = columns.iter().map(|name| format!("COALESCE({name}, 0) + 0 * start")).collect();
    let sql = format!("SELECT start, subject, {} FROM statistic WHERE grain = {grain}", list.join(", "));
    let rows = world.database.query(&sql, |row| {
        let figures = (0..columns.len()).map(|at| row.try_get_by_index(at + 2)).collect::<Result<Row, _>>()?;
        Ok(((row.try_get_by_index(0)?, row.try_get_by_index(1)?), figures))
    });
    rows.await.into_iter().collect()
}

fn expected(rows: &[LogRow], whose: impl Fn(&LogRow) -> Vec<i64>) -> BTreeMap<(i64, i64), Row> {
    let mut all: BTreeMap<(i64, i64), Row> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.parent == 0) {
        for subject in whose(row) {
            let figures = all
                .entry((row.fire_time - row.fire_time % MINUTE_MS, subject))
                .or_insert_with(|| vec![0; columns().len()]);
            add(figures, row);
        }
    }
    all
}

fn add(figures: &mut Row, row: &LogRow) {
    figures[0] += 1;
    let ended = [Status::Succeeded, Status::Failed, Status::Discarded, Status::Expired, Status::Cancelled];
    figures[1 + ended.iter().position(|status| *status == row.status).unwrap_or(ended.len())] += 1;
    figures[7] += i64::from(row.failures);
    let mut time = |first: usize, ms: i64| {
        let ms = ms.max(0);
        figures[first + BOUNDS_MS.iter().take_while(|bound| **bound < ms).count()] += 1;
        let sum = first + BOUNDS_MS.len() + 1;
        figures[sum] += ms;
        figures[sum + 1] = figures[sum + 1].max(ms);
    };
    if row.started_at > 0 {
        time(8, row.started_at - row.due_time);
    }
    if row.started_at > 0 && row.finished_at > 0 {
        time(8 + BOUNDS_MS.len() + 3, row.finished_at - row.started_at);
    }
}

/// Two tasks of two tenants in the same two minutes, counted by hand.
async fn the_api_adds_up_what_is_counted(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let mut tasks = Vec::new();
    for tenant in ["retail", "finance"] {
        let app = api.make_app(tenant, "orders").await;
        tasks.push(api.make_task(&app, "rarely", "tick", json!({ "cron": "0 0 0 1 1 ?" })).await);
    }
    let now = now_ms();
    let start = now - now % 3_600_000 - 3_600_000;
    for (at, task) in tasks.iter().enumerate() {
        let tenant = world.database.number(&format!("SELECT tenant_id FROM task WHERE id = {task}")).await;
        for minute in 0..2 {
            let (from, fires) = (start + minute * MINUTE_MS, 10 + at as i64);
            let of = |grain: i64, subject| {
                format!("({grain}, {from}, {subject}, {tenant}, {fires}, {fires}, {}, {}, 20, 9, 2)", fires - 1, fires)
            };
            let sql = "INSERT INTO statistic (grain, start, subject, tenant_id, fires, succeeded, late_0, took_3, late_ms, \
                       late_max, late_2) VALUES ";
            world.database.execute(&format!("{sql}{}, {}", of(1, *task), of(3, tenant))).await;
            let all = of(3, 0).replacen(&format!(", {tenant}, "), ", 0, ", 1);
            let more = "ON CONFLICT (grain, start, subject) DO UPDATE SET fires = fires + excluded.fires";
            world.database.execute(&format!("{sql}{all} {more}")).await;
        }
    }
    // The hour is still to be added up.
    let waits = format!("INSERT INTO statistic_work VALUES (2, {start}, 1, 1, {}, 0)", i64::MAX);
    world.database.execute(&waits).await;
    let read = async |query: &str| api.expect(200, Method::GET, &format!("/statistics?{query}"), None).await;
    let until = start + 2 * MINUTE_MS;
    let all = read(&format!("from={start}&until={until}&step=1m")).await;
    assert_eq!(all["items"].as_array().map(Vec::len), Some(2), "{all}");
    assert_eq!((&all["total"]["fires"], &all["items"][1]["start"]), (&json!(42), &json!(start + MINUTE_MS)), "{all}");
    let retail = read(&format!("from={start}&until={until}&step=5m&tenant=retail")).await;
    assert_eq!((&retail["total"]["fires"], &retail["step_ms"]), (&json!(20), &json!(300_000)), "{retail}");
    let of_task = read(&format!("from={start}&until={until}&step=1d&task={}", tasks[1])).await;
    let total = &of_task["total"];
    assert_eq!((&total["fires"], &total["succeeded"], &total["open"]), (&json!(22), &json!(22), &json!(0)), "{total}");
    assert_eq!((&total["lateness"]["count"], &total["lateness"]["max_ms"]), (&json!(24), &json!(9)), "{total}");
    assert_eq!(total["lateness"]["buckets"].as_array().map(Vec::len), Some(BOUNDS_MS.len() + 1));
    assert_eq!(of_task["bounds_ms"], json!(BOUNDS_MS));
    let median = total["duration"]["p50_ms"].as_f64();
    assert!(median.is_some_and(|ms| (5.0..=10.0).contains(&ms)), "{total}");
    let other = format!("from={start}&until={until}&step=1m&task={}&tenant=retail", tasks[1]);
    for (status, query) in [
        (404, other.as_str()),
        (404, &format!("from={start}&until={until}&step=1m&tenant=nobody")),
        (404, &format!("from={start}&until={until}&step=1m&task=7")),
        (400, &format!("from={start}&until={until}&step=2m")),
        (400, &format!("from={until}&until={start}&step=1m")),
        (400, &format!("from={start}&until={}&step=1m", start + 2 * DAY_MS)),
        (400, &format!("from={start}&until={}&step=1d", start + 92 * DAY_MS)),
        (400, &format!("from={}&until={}&step=1m&task={}", start - 9 * DAY_MS, start - 8 * DAY_MS, tasks[0])),
        (400, &format!("from={start}&until={}&step=1d", i64::MAX)),
        (400, &format!("from={start}&step=1d")),
    ] {
        api.expect(status, Method::GET, &format!("/statistics?{query}"), None).await;
    }
    world.assert_quiet(&[]);
}

async fn old_figures_are_dropped(kind: Kind) {
    let world = World::new(kind).await;
    let first = world.node("a", &[]).await;
    assert_eq!(first.process.sigterm(30).await, Some(0), "{}", first.process.log_digest());
    let day = |days: i64| {
        let at = now_ms() - days * DAY_MS;
        at - at % DAY_MS
    };
    // (grain, days ago): all figures go after 20 days, those of tasks' minutes after 3.
    let kept = [(1, 2), (1, 3), (2, 4), (2, 20), (3, 19), (4, 20)];
    let gone = [(1, 4), (1, 30), (2, 21), (3, 22), (4, 60)];
    for (grain, days) in kept.iter().chain(&gone) {
        let values: Vec<String> =
            (0..2_500).map(|subject| format!("({grain}, {}, {subject}, 1, 1)", day(*days))).collect();
        let sql = "INSERT INTO statistic (grain, start, subject, tenant_id, fires) VALUES ";
        world.database.execute(&format!("{sql}{}", values.join(", "))).await;
    }
    world.node("a", &[("data.statistics_days", "20"), ("data.statistics_task_minutes_days", "3")]).await;
    let left =
        format!("SELECT COUNT(*) FROM statistic WHERE (grain = 1 AND start < {}) OR start < {}", day(3), day(20));
    await_until("old figures are gone", 60, || async { when(world.database.number(&left).await == 0) }).await;
    let all = world.database.number("SELECT COUNT(*) FROM statistic").await;
    assert_eq!(all, 2_500 * kept.len() as i64);
    world.assert_quiet(&[]);
}
