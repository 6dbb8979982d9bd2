//! When tasks fire: rates, one-offs, windows, zones, jitter and spread, over a death of the node.

use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, App, Fires, Kind, LogRow, Status, World, await_until, now_ms};
use chrono::{TimeZone, Timelike};
use serde_json::json;
use std::collections::{BTreeMap, HashMap, HashSet};

scenario!(instants_over_a_death_of_the_node: sqlite mariadb);
scenario!(spread_is_stable_over_a_restart: sqlite mariadb);

const RATE_MS: i64 = 1_500;
const JITTER_MS: i64 = 400;

struct Tasks {
    rate: i64,
    once: i64,
    none: i64,
    /// Cron and fixed rate in one validity window.
    windowed: [i64; 2],
    window: (i64, i64),
    jitter: i64,
    /// The same local time in two zones, and when it is in the first.
    zoned: [i64; 2],
    zoned_at: i64,
    once_at: i64,
}

async fn make(api: &Api, app: &App) -> Tasks {
    let now = now_ms();
    let window = (now + 5_250, now + 10_250);
    let zoned_at = (now + 9_000) / 1_000 * 1_000;
    let local = chrono_tz::Asia::Kolkata.timestamp_millis_opt(zoned_at).unwrap();
    let cron = format!("{} {} {} * * ?", local.second(), local.minute(), local.hour());
    let valid = |mut fields: serde_json::Value| {
        fields["valid_from"] = window.0.into();
        fields["valid_until"] = window.1.into();
        fields
    };
    let rate = json!({ "schedule": "fixed_rate", "interval_ms": RATE_MS });
    let jitter = json!({ "cron": "* * * * * ?", "jitter_ms": JITTER_MS });
    let second_rate = valid(json!({ "schedule": "fixed_rate", "interval_ms": 1_000 }));
    let india = json!({ "cron": cron, "time_zone": "Asia/Kolkata" });
    Tasks {
        rate: api.make_task(app, "rate", "tick", rate).await,
        once: api.make_task(app, "once", "tick", json!({ "schedule": "once", "fire_at": now + 4_321 })).await,
        none: api.make_task(app, "none", "tick", json!({ "schedule": "none" })).await,
        windowed: [
            api.make_task(app, "cron in a window", "tick", valid(json!({ "cron": "* * * * * ?" }))).await,
            api.make_task(app, "rate in a window", "tick", second_rate).await,
        ],
        window,
        jitter: api.make_task(app, "jitter", "tick", jitter).await,
        zoned: [
            api.make_task(app, "in India", "tick", india).await,
            api.make_task(app, "in Greenwich", "tick", json!({ "cron": cron, "time_zone": "UTC" })).await,
        ],
        zoned_at,
        once_at: now + 4_321,
    }
}

async fn instants_over_a_death_of_the_node(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let tasks = make(&api, &app).await;
    let made_at = now_ms();
    world.await_successes(tasks.rate, 3).await;
    node.process.kill9().await;
    world.unready_node("a", node.port, &[]).ready().await;
    world.await_successes(tasks.zoned[0], 1).await;
    world.await_successes(tasks.windowed[1], 5).await;
    world.await_successes(tasks.rate, 9).await;
    let until = now_ms() - 3_000;
    let anchor = api.task(tasks.rate).await["created_at"].as_i64().unwrap();
    for task in [tasks.once, tasks.windowed[0], tasks.windowed[1]] {
        let task = api.task(task).await;
        assert!(task["next_fire_at"].is_null() && task["state"] == "started", "nothing comes any more: {task}");
    }
    let (rows, _) = world.end_well().await;
    let of = |task: i64| -> Vec<LogRow> { rows.iter().filter(|row| row.task == task).cloned().collect() };
    let fires = |task: i64| -> Vec<i64> { of(task).iter().map(|row| row.fire_time).collect() };

    let rate: Vec<i64> = fires(tasks.rate);
    let expected: Vec<i64> = (1..).map(|k| anchor + k * RATE_MS).take(rate.len()).collect();
    assert_eq!(rate, expected, "the instants of a fixed rate, from {anchor}");
    let past: Vec<LogRow> = of(tasks.rate).into_iter().filter(|row| row.fire_time < until).collect();
    assert!(past.len() >= 6, "{}", sample(&past));
    assert_all("run at a fixed rate", &past, |row| row.status == Status::Succeeded);

    let once = of(tasks.once);
    assert_eq!(once.len(), 1, "{once:?}");
    assert_eq!((once[0].fire_time, once[0].status), (tasks.once_at, Status::Succeeded), "{once:?}");
    assert_eq!(fires(tasks.none), Vec::<i64>::new());

    let (from, end) = tasks.window;
    let seconds: Vec<i64> = (from / 1_000 + 1..=(end - 1) / 1_000).map(|second| second * 1_000).collect();
    assert_eq!(fires(tasks.windowed[0]), seconds, "each second of {from}..{end}");
    let from_its_start: Vec<i64> = (from..end).step_by(1_000).collect();
    assert_eq!(fires(tasks.windowed[1]), from_its_start, "a rate counts from the start of its window");
    for task in tasks.windowed {
        assert_all("run in its window", &of(task), |row| row.status == Status::Succeeded);
    }

    let jitter = of(tasks.jitter);
    let _ = Fires::every(1, &jitter).assert_no_gap().between(made_at + 1_000, until);
    let delays: HashSet<i64> = jitter.iter().map(|row| row.due_time - row.fire_time).collect();
    assert!(delays.iter().all(|delay| (0..=JITTER_MS).contains(delay)), "{delays:?}");
    assert!(delays.len() > 3, "hardly any jitter: {delays:?}");

    let past = |task| -> Vec<i64> { fires(task).into_iter().filter(|at| *at <= until + 60_000).collect() };
    assert_eq!(past(tasks.zoned[0]), [tasks.zoned_at], "by the clock of India");
    assert_eq!(past(tasks.zoned[1]), Vec::<i64>::new(), "by the clock of Greenwich");
}

const SPREAD_MS: i64 = 5_000;

async fn spread_is_stable_over_a_restart(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [("schedulers.task_pre_generation_max_time", "7s"), ("schedulers.pre_generation_interval", "1s")];
    let node = world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let mut offsets: BTreeMap<i64, i64> = BTreeMap::new();
    for number in 0..20 {
        let fields = json!({ "cron": "0/5 * * * * ?", "spread_ms": SPREAD_MS });
        let task = api.make_task(&app, &format!("task {number}"), "tick", fields).await;
        let preview = api.get(&format!("/tasks/{task}/preview?count=1")).await;
        let fire = preview["items"][0]["fire_time"].as_i64().unwrap_or_else(|| panic!("{preview}"));
        offsets.insert(task, fire % SPREAD_MS);
    }
    let different: HashSet<i64> = offsets.values().copied().collect();
    assert!(different.len() >= 15, "{different:?}");
    let (least, most) = (different.iter().min().unwrap(), different.iter().max().unwrap());
    assert!(most - least > SPREAD_MS / 2, "hardly spread: {different:?}");

    assert_eq!(node.process.sigterm(30).await, Some(0), "{}", node.process.log_digest());
    world.unready_node("a", node.port, &settings).ready().await;
    let up_at = now_ms();
    let later =
        format!("SELECT COUNT(DISTINCT task_id) FROM task_log WHERE status = 10 AND fire_time > {}", up_at + SPREAD_MS);
    await_until("every task fires after the restart", 40, || async { when(world.database.number(&later).await == 20) })
        .await;
    let (rows, _) = world.end_well().await;
    assert_all("shifted by its task's own offset", &rows, |row| row.fire_time % SPREAD_MS == offsets[&row.task]);
    let mut by_task: HashMap<i64, Vec<i64>> = HashMap::new();
    for row in &rows {
        by_task.entry(row.task).or_default().push(row.fire_time);
    }
    for (task, fires) in by_task {
        assert!(fires.windows(2).all(|pair| pair[1] - pair[0] == SPREAD_MS), "task {task}: {fires:?}");
    }
    let due: Vec<LogRow> = rows.into_iter().filter(|row| row.fire_time < up_at).collect();
    assert_all("run", &due, |row| row.status == Status::Succeeded);
}
