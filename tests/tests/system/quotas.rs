//! Quotas of tenants: what is over them is refused or delayed, and says so.

use carillon_tests::fires::assert_all;
use carillon_tests::node::Settings;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, App, Kind, Node, Start, Status, World, await_until, now_ms};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(fires_over_the_quota_are_delayed_and_all_run: sqlite mariadb);
scenario!(another_quota_and_impatient_tasks: sqlite mariadb);
scenario!(tasks_over_the_quota_are_refused: sqlite mariadb postgres);
scenario!(waiting_runs_report_the_reason: sqlite);

/// How late an executor may start a run; by that the starts of a minute may move into the next, s.
const LATE_S: i64 = 5;

async fn limit(api: &Api, tenant: &str, quotas: Value) -> Value {
    api.patch(&format!("/tenants/{tenant}/quotas"), quotas).await
}

/// Two nodes where the database may be shared.
async fn both(world: &World, settings: Settings<'_>) -> Vec<Node> {
    let mut nodes = vec![world.node("a", settings).await];
    if world.database.kind != Kind::Sqlite {
        nodes.push(world.node("b", settings).await);
    }
    nodes
}

async fn count(world: &World, condition: &str) -> i64 {
    world.database.number(&format!("SELECT COUNT(*) FROM task_log WHERE {condition}")).await
}

/// The clients of all nodes, in turn.
fn nodes(world: &World) -> Vec<Api> {
    world.node_urls().iter().map(|url| Api::new(url)).collect()
}

/// Most starts in any minute, but for what may have started late.
fn most_in_a_minute(starts: &[Start]) -> usize {
    let at = |start: &Start| start.started_at_us / 1_000_000;
    let within = |begin: i64| starts.iter().filter(|s| (begin..begin + 60 - LATE_S).contains(&at(s))).count();
    starts.iter().map(|start| within(at(start))).max().unwrap_or(0)
}

/// On `MariaDB` with two nodes, one of which dies in the middle; another one joins.
async fn fires_over_the_quota_are_delayed_and_all_run(kind: Kind) {
    const QUOTA: usize = 60;
    const BURST: usize = 75;
    let world = World::new(kind).await;
    let started = both(&world, &[]).await;
    let api = Api::new(&started[0].url);
    let app = api.make_app("retail", "orders").await;
    let free = api.make_app("free", "orders").await;
    let given = limit(&api, "retail", json!({ "max_fires_per_minute": QUOTA })).await;
    assert_eq!((&given["max_fires_per_minute"], &given["max_tasks"]), (&json!(QUOTA), &json!(0)), "{given}");
    for (number, app) in [&app, &app, &free].into_iter().enumerate() {
        world.executor(&format!("e{number}"), app).await;
    }
    let manual = api.make_task(&app, "by hand", "tick", json!({})).await;
    let strict = json!({ "misfire_strategy": "skip", "expired_strategy": "discard", "expire_after_ms": 20_000 });
    let strict = api.make_task(&app, "strict", "tick", strict).await;
    let unbounded = api.make_task(&free, "unbounded", "tick", json!({})).await;
    world.await_rules().await;
    let mut logs = Vec::new();
    for (number, node) in nodes(&world).iter().cycle().take(BURST).enumerate() {
        logs.push(node.run(manual, None).await);
        if number % 5 == 0 {
            logs.push(node.run(unbounded, None).await);
        }
    }
    let cron = api.edit(strict, json!({ "cron": "* * * * * ?", "schedule": "cron", "max_fires": 5 })).await;
    assert_eq!(cron["task"]["started"], true, "{cron}");

    // Each says why it waits, and until when.
    let waits = "status IN (0, 1) AND reason = 'over_quota'";
    let over = (BURST + 5 - QUOTA) as i64;
    await_until("what is over the quota waits", 30, || async { when(count(&world, waits).await == over) }).await;
    let waiting = world.database.logs(waits).await;
    assert_all("delayed", &waiting, |row| row.due_time > now_ms() && row.message.contains("60 fires in a minute"));
    let mut dues: Vec<i64> = waiting.iter().map(|row| row.due_time).collect();
    dues.sort_unstable();
    assert!(dues.windows(2).all(|two| two[1] - two[0] >= 1_000), "they go out evenly: {dues:?}");
    let shown = api.log(waiting[0].id).await;
    assert_eq!((&shown["reason"], &shown["status"]), (&json!("over_quota"), &json!("init")), "{shown}");
    let used = api.get("/tenants/retail/quotas").await["used"].clone();
    assert_eq!((&used["delayed"], &used["fires_last_minute"]), (&json!(over), &json!(QUOTA)), "{used}");
    let tasks = "SELECT COUNT(*) FROM task WHERE tenant_id = (SELECT id FROM tenant WHERE name = 'retail')";
    assert_eq!(used["tasks"].as_i64(), Some(world.database.number(tasks).await), "{used}");
    assert_eq!(used["delayed_until"], json!(dues.last()), "{used}");

    if let Some(victim) = started.get(1) {
        victim.process.kill9().await;
        world.node("c", &[]).await;
    }
    for node in nodes(&world).iter().cycle().take(5) {
        logs.push(node.run(manual, None).await);
    }
    // Longer than a wait for one run may take.
    carillon_tests::pass(30.0).await;
    let rows = world.await_ends(&logs).await;
    assert_all("run in the end, once", &rows, |row| row.status == Status::Succeeded && row.failures == 0);
    world.await_successes(strict, 5).await;
    let (_, starts) = world.settle_and_check().await;
    let (bounded, free): (Vec<Start>, Vec<Start>) = starts.into_iter().partition(|start| start.task != unbounded);
    assert_eq!((bounded.len(), free.len()), (BURST + 10, BURST / 5));
    let most = most_in_a_minute(&bounded);
    assert!(most <= QUOTA, "{most} in a minute: {}", sample(&bounded));
    let slow: Vec<&Start> = free.iter().filter(|start| start.late_ms() > 20_000).collect();
    assert!(slow.is_empty(), "another tenant's wait: {}", sample(&slow));
}

/// A quota that is raised lets go what it held; who does not wait long ends instead.
async fn another_quota_and_impatient_tasks(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    limit(&api, "retail", json!({ "max_fires_per_minute": 1 })).await;
    world.executor("e1", &app).await;
    let patient = api.make_task(&app, "patient", "tick", json!({})).await;
    let impatient = json!({ "wait_timeout_ms": 2_000, "max_retries": 0 });
    let impatient = api.make_task(&app, "impatient", "tick", impatient).await;
    world.await_rules().await;
    let mut logs = Vec::new();
    for node in nodes(&world).iter().cycle().take(6) {
        logs.push(node.run(patient, None).await);
    }
    await_until("five wait", 30, || async { when(count(&world, "reason = 'over_quota'").await == 5) }).await;
    let gives_up = world.await_end(api.run(impatient, None).await).await;
    assert_eq!((gives_up.status, gives_up.reason.as_str()), (Status::Failed, "wait_timed_out"), "{gives_up:?}");
    assert!(gives_up.message.contains("max_fires_per_minute"), "{gives_up:?}");
    let until = api.get("/tenants/retail/quotas").await["used"]["delayed_until"].as_i64().unwrap();
    assert!(until > now_ms() + 200_000, "the last of them waits for five minutes: {until}");
    limit(&api, "retail", json!({ "max_fires_per_minute": 600 })).await;
    let rows = world.await_ends(&logs).await;
    assert_all("run", &rows, |row| row.status == Status::Succeeded && row.finished_at < until);
    for field in ["max_fires_per_minute", "max_tasks", "max_concurrent", "retain_days"] {
        let errors = api.refused(400, Method::PATCH, "/tenants/retail/quotas", &json!({ field: -1 })).await;
        assert!(errors.len() == 1 && errors[0].0 == field, "{errors:?}");
    }
    assert_eq!(api.send(Method::PATCH, "/tenants/nobody/quotas", Some(&json!({}))).await.0, 404);
    world.end_well().await;
}

fn task(app: &App, name: &str) -> Value {
    json!({ "tenant": app.tenant, "app": app.name, "name": name, "handler": "tick" })
}

/// By the API, twenty at once, by a file, and by an executor that registers its handlers.
async fn tasks_over_the_quota_are_refused(kind: Kind) {
    let world = World::new(kind).await;
    let started = both(&world, &[("executors.metadata_interval", "500ms")]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    limit(&api, "retail", json!({ "max_tasks": 10 })).await;
    let all = nodes(&world);
    let create = async |number: usize| {
        let body = task(&app, &format!("task-{number}"));
        all[number % all.len()].send(Method::POST, "/tasks", Some(&body)).await
    };
    let made = futures_util::future::join_all((0..20).map(create)).await;
    let (created, refused): (Vec<_>, Vec<_>) = made.into_iter().partition(|(status, _)| *status == 201);
    assert_eq!((created.len(), api.tasks().await.len()), (10, 10), "{refused:?}");
    for (status, answer) in &refused {
        let error = &answer["errors"][0];
        assert_eq!((*status, &error["field"]), (400, &json!("tenant")), "{answer}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("max_tasks") && message.contains("may have 10") && message.contains("has 10"));
    }
    let gone = carillon_tests::api::id_of(&created[0].1["id"]).unwrap();
    api.delete(gone).await;
    let file = |names: &[&str]| {
        let tasks: Vec<Value> = names.iter().map(|name| json!({ "name": name, "handler": "tick" })).collect();
        json!({ "version": 1, "tenant": "retail", "app": "orders", "task": tasks })
    };
    for dry in ["?dry_run=true", ""] {
        let path = format!("/tasks/apply{dry}");
        let errors = api.refused(400, Method::POST, &path, &file(&["x", "y"])).await;
        assert!(errors.len() == 1 && errors[0].1.contains("max_tasks"), "{errors:?}");
    }
    assert_eq!(api.tasks().await.len(), 9, "nothing of the file was created");
    api.expect(200, Method::POST, "/tasks/apply", Some(&file(&["x"]))).await;

    let executor = world.executor("e1", &app).await;
    let tasks = api.tasks().await;
    assert_eq!(tasks.len(), 10, "none of its handlers fits");
    // The tenant's users see it, once, whichever executor registers them again.
    world.executor("e2", &app).await;
    let told = api.get("/audit?tenant=retail&action=register_handlers").await["items"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!((&told[0]["actor_kind"], &told[0]["actor"]), (&json!("executor"), &json!(app.key.id)));
    assert_eq!((&told[0]["target_kind"], &told[0]["target"]), (&json!("app"), &json!("orders")));
    let after: Value = serde_json::from_str(told[0]["after"].as_str().unwrap()).unwrap();
    let named = after["left_out"].as_array().unwrap();
    assert!(named.contains(&json!("tick")) && after["count"] == json!(named.len()), "{after}");
    assert!(after["why"].as_str().unwrap().contains("may have 10 tasks (its quota max_tasks)"), "{after}");
    let log = api.run(carillon_tests::api::id_of(&tasks[0]["id"]).unwrap(), None).await;
    assert_eq!(world.await_end(log).await.status, Status::Succeeded, "the executor works all the same");
    let said = |node: &Node| node.process.log().matches("no tasks made for new handlers").count();
    // Registrations repeat, and ask again; what changes is said, once.
    carillon_tests::pass(2.0).await;
    assert_eq!(started.iter().map(said).sum::<usize>(), 1, "{}", started[0].process.log_digest());
    assert_eq!(executor.process.log().matches("executor.handlers_left_out").count(), 1);
    assert_eq!(api.get("/audit?tenant=retail&action=register_handlers").await["items"], told);
    limit(&api, "retail", json!({ "max_tasks": 0 })).await;
    await_until("the handlers have their tasks", 30, || async {
        let handlers: Vec<Value> = api.tasks().await.iter().map(|task| task["handler"].clone()).collect();
        when(named.iter().all(|name| handlers.contains(name)))
    })
    .await;
    await_until("the executor knows it", 30, || async {
        when(executor.process.log().contains("executor.handlers_have_tasks"))
    })
    .await;
    world.end_well().await;
}

async fn waiting_runs_report_the_reason(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    limit(&api, "retail", json!({ "max_concurrent": 2 })).await;
    world.executor("e1", &app).await;
    let staying = json!({ "params": r#"{"ms": 4000}"# });
    let free = api.make_task(&app, "free", "overlap", staying.clone()).await;
    let mut bounded = staying;
    bounded["max_concurrent"] = json!(1);
    let bounded = api.make_task(&app, "bounded", "overlap", bounded).await;
    world.await_rules().await;
    let first = api.run(bounded, None).await;
    world.await_inside(bounded, 1).await;
    let of_task = api.run(bounded, None).await;
    let second = api.run(free, None).await;
    world.await_inside(free, 1).await;
    let of_tenant = api.run(free, None).await;
    for (log, reason) in [(of_task, "task_limit"), (of_tenant, "tenant_limit")] {
        await_until(&format!("log {log} says {reason}"), 20, || async {
            let shown = api.log(log).await;
            when(shown["reason"] == json!(reason) && shown["status"] == json!("queued"))
        })
        .await;
    }
    let rows = world.await_ends(&[first, of_task, second, of_tenant]).await;
    assert_all("done, and nothing to explain", &rows, |row| row.status == Status::Succeeded && row.reason.is_empty());
    world.end_well().await;
}
