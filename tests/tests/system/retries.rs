//! What follows a failure.

use carillon_tests::executor::Options;
use carillon_tests::wait::sample;
use carillon_tests::{Api, App, Executor, Kind, LogRow, Start, Status, World};
use serde_json::{Value, json};

scenario!(failures_are_retried_by_policy: sqlite mariadb);
scenario!(attempts_come_when_the_policy_says: sqlite mariadb);
scenario!(lost_runs: sqlite mariadb);

/// Runs once: (handler, definition) → the row that it must end as.
struct Case {
    name: &'static str,
    handler: &'static str,
    fields: Value,
    status: Status,
    reason: &'static str,
    /// Dispatches, failures.
    counts: (i32, i32),
}

fn case(
    name: &'static str,
    handler: &'static str,
    fields: Value,
    end: (Status, &'static str),
    counts: (i32, i32),
) -> Case {
    Case { name, handler, fields, status: end.0, reason: end.1, counts }
}

async fn check(world: &World, api: &Api, app: &App, cases: Vec<Case>) {
    let mut logs = Vec::new();
    for case in &cases {
        let mut fields = json!({ "retry_interval_ms": 100, "max_retries": 2, "no_executor_timeout_ms": 0 });
        fields.as_object_mut().unwrap().extend(case.fields.as_object().unwrap().clone());
        let task = api.make_task(app, case.name, case.handler, fields).await;
        logs.push(api.run(task, None).await);
    }
    for (log, case) in logs.into_iter().zip(cases) {
        let row = world.await_end(log).await;
        let end = (row.status, row.reason.as_str(), row.attempt, row.failures);
        assert_eq!(end, (case.status, case.reason, case.counts.0, case.counts.1), "{}: {row:?}", case.name);
    }
}

/// Every class of failure, with and without it in `retry_on`. H16: a long run is not retried while
/// it runs.
async fn failures_are_retried_by_policy(kind: Kind) {
    use Status::{Discarded, Failed, Succeeded};
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let first = world.executor_with("e1", &app, &Options { tags: "one", ..Options::default() }).await;
    let second = world.executor_with("e2", &app, &Options { tags: "two", ..Options::default() }).await;
    let slow = r#"{"ms": 30000}"#;
    let cases = vec![
        case("fails", "fail", json!({}), (Failed, "handler_failed"), (3, 3)),
        case("mends", "fail_n", json!({ "params": { "times": 2 }, "routing": "first" }), (Succeeded, ""), (3, 2)),
        case("not at all", "fail", json!({ "max_retries": 0 }), (Failed, "handler_failed"), (1, 1)),
        case("panics", "panic", json!({}), (Failed, "handler_panicked"), (3, 3)),
        case("for good", "fatal", json!({ "max_retries": 9 }), (Failed, "handler_failed_for_good"), (1, 1)),
        case("discards", "fail", json!({ "failure_strategy": "discard" }), (Discarded, "handler_failed"), (1, 1)),
        case("not this", "fail", json!({ "retry_on": ["timed_out", "lost"] }), (Failed, "handler_failed"), (1, 1)),
        case("just this", "fail", json!({ "retry_on": ["failed"] }), (Failed, "handler_failed"), (3, 3)),
        case("slow", "sleep", json!({ "params": slow, "timeout_ms": 300 }), (Failed, "timed_out"), (3, 3)),
        case(
            "slow and heavy",
            "overlap",
            json!({ "params": { "ms": 30_000, "blocking": true }, "timeout_ms": 300, "retry_on": ["timed_out"] }),
            (Failed, "timed_out"),
            (3, 3),
        ),
        case(
            "slow once",
            "sleep",
            json!({ "params": slow, "timeout_ms": 300, "retry_on": ["failed", "not_sent"] }),
            (Failed, "timed_out"),
            (1, 1),
        ),
        case("in time", "sleep", json!({ "params": "300", "timeout_ms": 20_000 }), (Succeeded, ""), (1, 0)),
        case("nobody", "tick", json!({ "tags": ["three"] }), (Failed, "no_executor"), (0, 3)),
        case(
            "nobody at all",
            "tick",
            json!({ "tags": ["three"], "retry_on": ["failed", "lost", "timed_out"] }),
            (Failed, "no_executor"),
            (0, 1),
        ),
        case(
            "nobody, never mind",
            "tick",
            json!({ "tags": ["three"], "failure_strategy": "discard" }),
            (Discarded, "no_executor"),
            (0, 1),
        ),
    ];
    check(&world, &api, &app, cases).await;

    let [elsewhere, alone, here] = [
        ("elsewhere", json!({ "retry_elsewhere": true })),
        ("alone", json!({ "retry_elsewhere": true, "tags": ["one"] })),
        ("here", json!({})),
    ]
    .map(|(name, more)| {
        let mut fields = json!({ "routing": "first", "retry_interval_ms": 100, "max_retries": 3 });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (name, fields)
    });
    let mut tasks = Vec::new();
    for (name, fields) in [elsewhere, alone, here] {
        let task = api.make_task(&app, name, "fail", fields).await;
        world.await_end(api.run(task, None).await).await;
        tasks.push(task);
    }
    let (rows, starts) = world.settle_and_check().await;
    let [one, two] = [&first, &second].map(|executor: &Executor| executor.starts()[0].executor.clone());
    for (task, path) in tasks.into_iter().zip([[&one, &two, &one, &two], [&one; 4], [&one; 4]]) {
        let tried: Vec<&String> = attempts(&starts, task).into_iter().map(|start| &start.executor).collect();
        assert_eq!(tried, path);
    }
    for row in rows.iter().filter(|row| row.attempt > 0) {
        assert_told(&api, row, &starts).await;
    }
    for row in rows.iter().filter(|row| row.reason == "timed_out") {
        assert!(row.message.contains("300 ms"), "it says how long it was allowed: {row:?}");
    }
    // The demo panics on purpose.
    world.assert_quiet(&["demo/handlers.rs"]);
}

/// A run tells of each of its attempts: those that really started did at that executor, in their order.
async fn assert_told(api: &Api, row: &LogRow, starts: &[Start]) {
    let shown = api.log(row.id).await;
    let told = shown["attempts"].as_array().unwrap();
    let numbers: Vec<i64> = told.iter().map(|attempt| attempt["attempt"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (1..=i64::from(row.attempt)).collect::<Vec<_>>(), "{shown}");
    let (last, before) = told.split_last().unwrap();
    assert_eq!((&last["status"], &last["reason"]), (&shown["status"], &shown["reason"]));
    assert_eq!(last["started_at"], shown["started_at"]);
    for attempt in before {
        assert_eq!(attempt["status"], "retry", "{shown}");
        assert!(!attempt["reason"].as_str().unwrap().is_empty(), "{shown}");
    }
    for (at, attempt) in told.iter().enumerate() {
        assert!(attempt["executor"].is_string() && attempt["executor_address"].is_string(), "{shown}");
        assert!(attempt["node"].is_string() && attempt["dispatched_at"].is_i64(), "{shown}");
        if let Some(start) = starts.iter().find(|start| (start.log, start.attempt) == (row.id, at as i32 + 1)) {
            assert_eq!(attempt["due_time"].as_i64(), Some(start.due_time), "{shown}");
            assert!(attempt["started_at"].is_i64(), "{shown}");
        }
    }
    let listed = api.get(&format!("/task-logs?task={}", row.task)).await;
    assert!(listed["items"][0].get("attempts").is_none(), "lists do without: {listed}");
}

/// A task's starts in the order of attempts.
fn attempts(starts: &[Start], task: i64) -> Vec<&Start> {
    let mut of_task: Vec<&Start> = starts.iter().filter(|start| start.task == task).collect();
    of_task.sort_by_key(|start| (start.log, start.attempt));
    of_task
}

/// Intervals, by the due times that the attempts had. An attempt is due the interval after its
/// forerunner's result was taken in, which a busy machine may delay, but never advance.
async fn attempts_come_when_the_policy_says(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let make = |name: &'static str, retries: i32, more: Value| {
        let mut fields = json!({ "max_retries": retries });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (api, app) = (&api, &app);
        async move { api.make_task(app, name, "fail", fields).await }
    };
    let fixed = make("fixed", 3, json!({ "retry_interval_ms": 700 })).await;
    let fields = json!({ "retry_interval_ms": 100, "retry_backoff": "exponential", "retry_max_interval_ms": 800 });
    let growing = make("growing", 8, fields).await;
    let scattered = make("scattered", 1, json!({ "retry_interval_ms": 3_000, "retry_jitter_percent": 50 })).await;
    let mut logs = vec![api.run(fixed, None).await, api.run(growing, None).await];
    for _ in 0..16 {
        logs.push(api.run(scattered, None).await);
    }
    world.await_ends(&logs).await;
    let (rows, starts) = world.settle_and_check().await;
    assert_eq!(gaps(&starts, fixed).len(), 3);
    assert!(gaps(&starts, fixed).iter().all(|gap| *gap >= 700), "{:?}", gaps(&starts, fixed));
    let grown = gaps(&starts, growing);
    let least = [100, 200, 400, 800, 800, 800, 800, 800];
    assert_eq!(grown.len(), least.len());
    assert!(grown.iter().zip(least).all(|(gap, least)| *gap >= least), "{grown:?}");
    // Without the bound the last one would be 12.8 s.
    assert!(grown[7] < 10_000, "{grown:?}");
    let scatter = gaps(&starts, scattered);
    assert!(scatter.iter().all(|gap| *gap >= 1_500), "below the jitter's window: {scatter:?}");
    assert!(scatter.iter().any(|gap| *gap < 3_000), "never sooner than the interval: {scatter:?}");
    assert!(scatter.iter().any(|gap| *gap > 3_300), "never later than the interval: {scatter:?}");
    let of_growing: Vec<&LogRow> = rows.iter().filter(|row| row.task == growing).collect();
    assert_eq!((of_growing[0].failures, of_growing[0].attempt), (9, 9), "{}", sample(&of_growing));
    world.assert_quiet(&[]);
}

/// From one attempt's due time to the next one's, ms, of every run of the task.
fn gaps(starts: &[Start], task: i64) -> Vec<i64> {
    let tried = attempts(starts, task);
    let pairs = tried.windows(2).filter(|pair| pair[0].log == pair[1].log);
    pairs.map(|pair| pair[1].due_time - pair[0].due_time).collect()
}

/// The executor is killed: what it ran is repeated, or not, by policy; never before it is known to
/// be dead.
async fn lost_runs(kind: Kind) {
    let world = World::new(kind).await;
    let settings =
        [("executors.heartbeat_interval", "1s"), ("executors.offline_after", "4s"), ("executors.abandon_after", "8s")];
    world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let dying = world.executor("e1", &app).await;
    let heir = world.executor("e2", &app).await;
    let make = |name: &'static str, more: Value| {
        let mut fields = json!({ "routing": "first", "params": { "ms": 3000 }, "retry_interval_ms": 100 });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (api, app) = (&api, &app);
        async move { api.make_task(app, name, "overlap", fields).await }
    };
    let tasks = [
        (make("again", json!({ "retry_on": ["lost"] })).await, Status::Succeeded, 2),
        (make("not again", json!({ "retry_on": ["failed", "timed_out", "not_sent"] })).await, Status::Failed, 1),
        (make("at most once", json!({ "delivery": "at_most_once" })).await, Status::Failed, 1),
        // At least once outranks discard: it is unknown whether it failed.
        (make("discard", json!({ "failure_strategy": "discard" })).await, Status::Succeeded, 2),
    ];
    let mut logs = Vec::new();
    // All at once: on a busy machine the first would end before the last begins.
    for (task, _, _) in tasks {
        logs.push(api.run(task, None).await);
    }
    for (task, _, _) in tasks {
        world.await_inside(task, 1).await;
    }
    world.kill9(&dying).await;
    for ((task, status, attempt), log) in tasks.into_iter().zip(logs) {
        let row = world.await_end(log).await;
        assert_eq!((row.status, row.attempt, row.failures), (status, attempt, 1), "{row:?}");
        let visits = world.visits(task);
        assert_eq!(visits.len() as i32, attempt, "{visits:?}");
        carillon_tests::visits::assert_apart("a lost run and its repetition", &visits);
        if status == Status::Failed {
            assert_eq!(row.reason, "outcome_unknown", "{row:?}");
        } else {
            assert_eq!(visits[1].pid, heir.process.pid());
        }
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}
