//! The main job: tasks of every kind on one node and two executors.

use carillon_tests::executor::Options;
use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::wait::when;
use carillon_tests::{Api, App, FakeExecutor, Fires, Kind, LogRow, Start, Status, World, await_until, now_ms, pass};
use serde_json::json;

scenario!(main_job: sqlite mariadb postgres);

/// A busy machine is granted this much; early is never granted anything.
const LATE_MS_MAX: i64 = 1_500;

struct Periodic {
    every_second: i64,
    every_ten: i64,
    sharded: i64,
    flaky: i64,
    tagged: i64,
}

async fn make_periodic(api: &Api, app: &App) -> Periodic {
    let cron = |cron: &str| json!({ "cron": cron });
    let sharded = json!({ "cron": "0/2 * * * * ?", "routing": "sharding" });
    let flaky = json!({
        "cron": "0/5 * * * * ?", "params": "{\"succeed_at\": 3}", "max_retries": 5, "retry_interval_ms": 300,
    });
    let tagged = json!({ "cron": "0/3 * * * * ?", "tags": ["gpu", "eu"] });
    Periodic {
        every_second: api.make_task(app, "every second", "tick", cron("* * * * * ?")).await,
        every_ten: api.make_task(app, "every ten", "tick", cron("0/10 * * * * ?")).await,
        sharded: api.make_task(app, "all of you", "sharded", sharded).await,
        flaky: api.make_task(app, "third time lucky", "flaky", flaky).await,
        tagged: api.make_task(app, "only there", "tick", tagged).await,
    }
}

async fn main_job(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor_with("e1", &app, &Options { tags: "gpu-large,eu", ..Options::default() }).await;
    let e2 = world.executor_with("e2", &app, &Options { tags: "eu,gpu", ..Options::default() }).await;
    // H18: an executor of the app that lacks the handlers takes itself out, and no other.
    let other = FakeExecutor::start(&app, &node.url, &["unrelated"], true).await;
    handlers_have_become_stopped_tasks(&api).await;

    let made_from = now_ms();
    let tasks = make_periodic(&api, &app).await;
    let manual_from = now_ms();
    manual_runs(&world, &api, &app).await;
    pass((20_000 - (now_ms() - manual_from)).max(1_000) as f64 / 1_000.0).await;
    lists_go_page_by_page(&api, tasks.every_second).await;

    assert_eq!(other.offered(), [], "runs for an executor that lacks the handler");
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    let of = |task: i64| -> Vec<LogRow> { rows.iter().filter(|row| row.task == task).cloned().collect() };
    let fires = |task: i64, period_s: i64| {
        let from = made_from + 2_000;
        Fires::every(period_s, &of(task)).assert_no_gap().between(from, until)
    };
    for (what, task, period_s) in [
        ("every second", tasks.every_second, 1),
        ("every ten seconds", tasks.every_ten, 10),
        ("sharded", tasks.sharded, 2),
        ("failing with retry", tasks.flaky, 5),
        ("with tags", tasks.tagged, 3),
    ] {
        let due = fires(task, period_s);
        assert_all(&format!("succeeded ({what})"), &due, |row| row.status == Status::Succeeded);
        let steady = fired_within(&due, made_from + 6_000, until);
        assert_on_time(what, &steady, &starts, LATE_MS_MAX);
    }
    assert_all("succeeded at once", &fires(tasks.every_second, 1), |row| (row.attempt, row.failures) == (1, 0));
    assert_all("third attempt", &fires(tasks.flaky, 5), |row| (row.attempt, row.failures) == (3, 2));
    shards_add_up(&fires(tasks.sharded, 2), &of(tasks.sharded), &starts);
    let e2_logs: Vec<i64> = e2.starts().iter().map(|start| start.log).collect();
    assert_all("run where both tags are (H12)", &fires(tasks.tagged, 3), |row| e2_logs.contains(&row.id));
}

/// "Registering a handler makes a task that is stopped, once": both executors registered nine.
async fn handlers_have_become_stopped_tasks(api: &Api) {
    let tasks = api.tasks().await;
    let handlers = ["tick", "sharded", "flaky", "sleep", "panic", "fail", "fatal", "echo", "output"];
    for handler in handlers {
        let made: Vec<_> = tasks.iter().filter(|task| task["handler"] == handler).collect();
        assert_eq!(made.len(), 1, "tasks of handler {handler}: {made:?}");
        assert_eq!(made[0]["started"], false, "{made:?}");
    }
}

/// H13: every shard is there, each executor had one, and the parent sums them up.
fn shards_add_up(parents: &[LogRow], rows: &[LogRow], starts: &[Start]) {
    for parent in parents {
        assert!(parent.is_parent(), "{parent:?}");
        let shards: Vec<&LogRow> = rows.iter().filter(|row| row.parent == parent.id).collect();
        let indexes: Vec<_> = shards.iter().map(|row| (row.shard_index, row.shard_total)).collect();
        assert_eq!(indexes, [(0, 2), (1, 2)], "shards of {parent:?}");
        assert_ne!(shards[0].executor, shards[1].executor, "both shards on one executor: {shards:?}");
        for shard in shards {
            assert_eq!(shard.status, Status::Succeeded, "{shard:?}");
            assert_eq!(shard.output, format!("shard {} of 2", shard.shard_index));
            assert!(starts.iter().any(|s| s.log == shard.id && s.shard_index == shard.shard_index));
        }
    }
}

/// One run by hand per way to end.
async fn manual_runs(world: &World, api: &Api, app: &App) {
    let once = json!({ "max_retries": 0 });
    let make = |name: &'static str, handler: &'static str, fields| api.make_task(app, name, handler, fields);
    let echo = make("say", "echo", once.clone()).await;
    let output = make("tell", "output", once.clone()).await;
    let panics = make("break", "panic", json!({ "failure_strategy": "discard" })).await;
    let fails = make("fail twice", "fail", json!({ "max_retries": 1, "retry_interval_ms": 200 })).await;
    let fatal = make("give up", "fatal", json!({ "max_retries": 5 })).await;
    let slow = json!({ "params": "20000", "timeout_ms": 500, "max_retries": 0 });
    let slow = make("too slow", "sleep", slow).await;
    let endless = make("endless", "sleep", json!({ "params": "60000" })).await;
    let sharded = make("all fail", "fail", json!({ "max_retries": 0, "routing": "sharding" })).await;

    let echo = api.run(echo, Some("hello, 世界 🔔")).await;
    let output = api.run(output, None).await;
    let panics = api.run(panics, None).await;
    let fails = api.run(fails, None).await;
    let fatal = api.run(fatal, None).await;
    let slow = api.run(slow, None).await;
    let endless = api.run(endless, None).await;
    let sharded = api.run(sharded, None).await;

    let row = ended(world, echo).await;
    assert_eq!((row.status, row.output.as_str()), (Status::Succeeded, "hello, 世界 🔔"), "{row:?}");
    let row = ended(world, output).await;
    assert!(row.output.contains(&output.to_string()), "{row:?}");
    let row = ended(world, panics).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Discarded, "handler_panicked"), "{row:?}");
    assert!(row.message.contains("panics on purpose"), "{row:?}");
    let row = ended(world, fails).await;
    assert_eq!((row.status, row.reason.as_str(), row.attempt), (Status::Failed, "handler_failed", 2), "{row:?}");
    let row = ended(world, fatal).await;
    let expected = (Status::Failed, "handler_failed_for_good", 1);
    assert_eq!((row.status, row.reason.as_str(), row.attempt), expected, "{row:?}");
    let row = ended(world, slow).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "timed_out"), "{row:?}");
    assert!((500..8_000).contains(&(row.finished_at - row.started_at)), "{row:?}");
    let row = ended(world, sharded).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "shard_failed"), "{row:?}");
    cancel_while_it_runs(world, api, endless).await;
    the_api_shows_what_the_row_says(world, api, echo).await;
}

/// H17: a run can be stopped.
async fn cancel_while_it_runs(world: &World, api: &Api, log: i64) {
    await_until("the endless run is dispatched", 30, || async {
        when(world.database.log(log).await.status == Status::Dispatched)
    })
    .await;
    pass(0.5).await;
    let asked_at = now_ms();
    api.cancel(log).await;
    let row = ended(world, log).await;
    assert_eq!((row.status, row.reason.as_str()), (Status::Cancelled, "cancelled_manually"), "{row:?}");
    assert!(row.finished_at - asked_at < 10_000, "{row:?}");
}

async fn the_api_shows_what_the_row_says(world: &World, api: &Api, log: i64) {
    let row = world.database.log(log).await;
    let shown = api.log(log).await;
    assert_eq!(shown["id"], row.id.to_string());
    assert_eq!(shown["status"], "succeeded");
    assert_eq!(shown["tenant"], "retail");
    assert_eq!(shown["output"], row.output);
    assert_eq!(shown["fire_time"], row.fire_time);
    assert_eq!(shown["attempt"], 1);
}

async fn ended(world: &World, log: i64) -> LogRow {
    await_until(&format!("log {log} has ended"), 40, || async {
        let row = world.database.log(log).await;
        row.status.is_terminal().then_some(row)
    })
    .await
}

async fn lists_go_page_by_page(api: &Api, task: i64) {
    let first = api.get(&format!("/task-logs?task={task}&status=succeeded&limit=3")).await;
    let ids = |page: &serde_json::Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap();
        items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&first).len(), 3, "{first}");
    let next = first["next"].as_str().unwrap_or_else(|| panic!("no cursor in {first}"));
    let second = api.get(&format!("/task-logs?task={task}&status=succeeded&limit=3&before={next}")).await;
    assert_eq!(ids(&second).len(), 3, "{second}");
    assert!(ids(&second).iter().all(|id| !ids(&first).contains(id)), "{first} {second}");
}
