//! Tasks that run after others: which end counts, whose output they get, how often they run.

use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, App, Kind, LogRow, Start, Status, World, await_until, pass};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};

scenario!(ends_outputs_and_chains: sqlite mariadb);
scenario!(edited_stopped_and_deleted: sqlite mariadb);
scenario!(graphs_are_checked: sqlite mariadb);
scenario!(one_child_per_parent_although_a_node_dies: mariadb);

/// Runs of a task that its parents made, by time.
async fn children(world: &World, task: i64) -> Vec<LogRow> {
    world.database.logs(&format!("task_id = {task} AND trigger_kind = 'parent' AND parent_id = 0")).await
}

async fn await_children(world: &World, task: i64, count: usize) -> Vec<LogRow> {
    await_until(&format!("{count} runs of {task} after its parents have ended"), 40, || async {
        let rows = children(world, task).await;
        (rows.len() >= count && rows.iter().all(|row| row.status.is_terminal())).then_some(rows)
    })
    .await
}

#[allow(clippy::needless_pass_by_value)] // callers make it in place
fn after(parents: Value) -> Value {
    json!({ "parents": parents, "parent_output": true, "schedule": "none" })
}

async fn ends_outputs_and_chains(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let ledger = api.make_app("retail", "ledger").await;
    world.executor("e1", &app).await;
    world.executor("e2", &ledger).await;
    let good = api.make_task(&app, "good", "echo", json!({ "params": "plain text" })).await;
    let bad = json!({ "max_retries": 1, "retry_interval_ms": 100 });
    let bad = api.make_task(&app, "bad", "fail", bad).await;
    let mut of: HashMap<String, i64> = HashMap::new();
    for parent in ["good", "bad"] {
        for on in ["success", "failure", "always"] {
            let name = format!("{on} of {parent}");
            let fields = after(json!([{ "task": parent, "on": on }]));
            of.insert(name.clone(), api.make_task(&app, &name, "echo", fields).await);
        }
    }
    let elsewhere = after(json!([{ "task": "orders/good" }]));
    let elsewhere = api.make_task(&ledger, "elsewhere", "echo", elsewhere).await;
    let third = api.make_task(&ledger, "third", "echo", after(json!([{ "task": "elsewhere" }]))).await;
    let own = api.make_task(&app, "own", "echo", json!({ "parents": [{ "task": "good" }], "params": "own" })).await;
    let mut stopped = after(json!([{ "task": "good" }]));
    stopped["started"] = false.into();
    let stopped = api.make_task(&app, "at rest", "echo", stopped).await;
    let tell = api.make_task(&app, "json", "output", json!({})).await;
    let both = |rule: &str| {
        let mut fields = after(json!([{ "task": "good" }, { "task": "json" }]));
        fields["parent_rule"] = rule.into();
        fields
    };
    let all = api.make_task(&app, "after all", "echo", both("all")).await;
    let any = api.make_task(&app, "after any", "echo", both("any")).await;
    let large = api.make_task(&app, "large", "echo", json!({ "params": "x".repeat(10_000) })).await;
    let also = api.make_task(&app, "also large", "echo", json!({ "params": "y".repeat(10_000) })).await;
    let too_large = after(json!([{ "task": "large" }, { "task": "also large" }]));
    let too_large = api.make_task(&app, "too large", "echo", too_large).await;
    let shown = api.task(elsewhere).await;
    assert_eq!(shown["parents"], json!([{ "task": "orders/good", "on": "success" }]), "{shown}");

    let good_log = api.run(good, None).await;
    api.run(bad, None).await;
    for name in ["success of good", "always of good", "failure of bad", "always of bad"] {
        let rows = await_children(&world, of[name], 1).await;
        let output = if name.ends_with("good") { "plain text" } else { "" };
        assert_eq!(
            (rows.len(), rows[0].status, rows[0].output.as_str()),
            (1, Status::Succeeded, output),
            "{name}: {rows:?}"
        );
    }
    let rows = await_children(&world, third, 1).await;
    assert_eq!(rows[0].output, "plain text", "handed on from one to the next: {rows:?}");
    let rows = await_children(&world, own, 1).await;
    assert_eq!(rows[0].output, "own", "not asked for the parents' output: {rows:?}");
    let log = api.log(children(&world, elsewhere).await[0].id).await;
    assert_eq!(log["trigger"], "parent");
    assert!(log["message"].as_str().is_some_and(|text| text.contains(&good_log.to_string())), "{log}");

    let rows = await_children(&world, any, 1).await;
    assert_eq!((rows.len(), rows[0].output.as_str()), (1, "plain text"), "{rows:?}");
    assert_eq!(children(&world, all).await, [], "one of two has ended");
    let told = world.await_end(api.run(tell, None).await).await;
    let rows = await_children(&world, all, 1).await;
    let input: Value = serde_json::from_str(&rows[0].output).unwrap();
    let output: Value = serde_json::from_str(&told.output).unwrap();
    assert_eq!(input, json!({ "good": "plain text", "json": output }));
    assert_eq!(await_children(&world, any, 2).await.len(), 2);
    // They start over.
    api.run(tell, None).await;
    await_children(&world, any, 3).await;
    assert_eq!(children(&world, all).await.len(), 1);

    for task in [large, also] {
        api.run(task, None).await;
    }
    let rows = await_children(&world, too_large, 1).await;
    let input: Value = serde_json::from_str(&rows[0].output).unwrap();
    let nulls = input.as_object().unwrap().values().filter(|value| value.is_null()).count();
    assert_eq!((input.as_object().unwrap().len(), nulls), (2, 1), "the second does not fit");

    for name in ["failure of good", "success of bad"] {
        assert_eq!(children(&world, of[name]).await, [], "{name}");
    }
    assert_eq!(children(&world, stopped).await, [], "stopped");
    world.end_well().await;
}

async fn edited_stopped_and_deleted(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let parent = api.make_task(&app, "parent", "tick", json!({ "cron": "* * * * * ?" })).await;
    let child =
        api.make_task(&app, "child", "tick", json!({ "parents": [{ "task": "parent", "on": "always" }] })).await;
    await_children(&world, child, 2).await;
    // Rows are cancelled and taken over again and again; none of that is an end.
    for round in 0..12 {
        api.edit(parent, json!({ "description": format!("edit {round}") })).await;
        pass(0.13 * f64::from(round % 4)).await;
    }
    let before = children(&world, child).await.len();
    await_children(&world, child, before + 3).await;
    let late = format!(
        "SELECT COUNT(*) FROM outbox f JOIN task_log l ON l.id = f.id WHERE l.status >= 10 AND f.task_id = {parent}"
    );

    // Stopped, the parent's runs make children still, the cancelled ones do not.
    api.stop(parent).await;
    await_until("every end is followed up", 20, || async { when(world.database.number(&late).await == 0) }).await;
    let ran = world.database.logs(&format!("task_id = {parent} AND status = 10")).await;
    let made = await_children(&world, child, ran.len()).await;
    assert_eq!(made.len(), ran.len(), "one child run for each run of the parent");

    // The child is stopped, and then gone; then the parent.
    api.stop(child).await;
    world.await_end(api.run(parent, None).await).await;
    await_until("the end is followed up", 20, || async { when(world.database.number(&late).await == 0) }).await;
    assert_eq!(children(&world, child).await.len(), made.len(), "the child is stopped");
    api.start(child).await;
    let second = api.make_task(&app, "second", "tick", json!({})).await;
    api.edit(child, json!({ "parents": [{ "task": "parent" }, { "task": "second" }] })).await;
    api.delete(parent).await;
    let shown = api.task(child).await;
    assert_eq!(shown["parents"], json!([{ "task": "second", "on": "success" }]), "{shown}");
    api.run(second, None).await;
    await_children(&world, child, made.len() + 1).await;
    api.delete(child).await;
    let log = api.run(second, None).await;
    assert_eq!(world.await_end(log).await.status, Status::Succeeded);
    world.end_well().await;
}

async fn graphs_are_checked(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    api.make_app("finance", "ledger").await;
    let parent = |name: &str| json!([{ "task": name }]);
    let first = api.make_task(&app, "first", "tick", json!({})).await;
    let second = api.make_task(&app, "second", "tick", json!({ "parents": parent("first") })).await;
    api.make_task(&app, "third", "tick", json!({ "parents": parent("second") })).await;
    let refused =
        |method: Method, path: String, fields: Value, expected: &'static str, words: &'static [&'static str]| {
            let api = api.clone();
            async move {
                let errors = api.refused(400, method, &path, &fields).await;
                let named: Vec<&str> = errors.iter().map(|(field, _)| field.as_str()).collect();
                assert_eq!(named, [expected], "{fields}: {errors:?}");
                for word in words {
                    assert!(errors[0].1.contains(word), "nothing about {word}: {errors:?}");
                }
            }
        };
    let new = |parents: Value| body(&app, parents);
    let path = || "/tasks".to_owned();
    let edit = |task: i64| format!("/tasks/{task}");
    let put = |parents: Value| json!({ "parents": parents });
    refused(
        Method::PATCH,
        edit(first),
        put(parent("third")),
        "parents",
        &["first after third after second after first"],
    )
    .await;
    refused(Method::PATCH, edit(first), put(parent("first")), "parents", &["first after first"]).await;
    refused(Method::POST, path(), new(parent("new")), "parents", &["new after new"]).await;
    refused(Method::POST, path(), new(parent("nobody")), "parents[0].task", &["nobody"]).await;
    refused(Method::POST, path(), new(parent("ledger/first")), "parents[0].task", &["ledger/first"]).await;
    refused(Method::PATCH, edit(second), put(parent("a/b/c")), "parents[0].task", &["app/task"]).await;
    let twice = json!([{ "task": "first" }, { "task": "first", "on": "failure" }]);
    refused(Method::PATCH, edit(second), put(twice), "parents[1].task", &["once"]).await;
    let odd = json!([{ "task": "first", "on": "sunday" }]);
    refused(Method::PATCH, edit(second), put(odd), "parents[0].on", &["success", "failure", "always"]).await;
    assert_eq!(api.task(first).await["parents"], json!([]));
    assert_eq!(api.task(second).await["parents"], json!([{ "task": "first", "on": "success" }]));
    assert_eq!(world.database.number("SELECT COUNT(*) FROM task WHERE name = 'new'").await, 0);
    assert_eq!(world.database.number("SELECT COUNT(*) FROM task_parent").await, 2);
    world.end_well().await;
}

#[allow(clippy::needless_pass_by_value)] // callers make it in place
fn body(app: &App, parents: Value) -> Value {
    json!({ "tenant": app.tenant, "app": app.name, "name": "new", "handler": "tick", "parents": parents })
}

async fn one_child_per_parent_although_a_node_dies(kind: Kind) {
    let world = World::new(kind).await;
    let victim = world.node("a", &[]).await;
    let other = world.node("b", &[]).await;
    let api = Api::new(&other.url);
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let mut parents = Vec::new();
    for number in 0..8 {
        let fields = json!({ "cron": "* * * * * ?", "max_fires": 14, "started": false });
        let parent = api.make_task(&app, &format!("parent {number}"), "output", fields).await;
        let fields = after(json!([{ "task": format!("parent {number}") }]));
        api.make_task(&app, &format!("child {number}"), "echo", fields).await;
        api.start(parent).await;
        parents.push(parent);
    }
    world.await_successes(parents[7], 3).await;
    victim.process.kill9().await;
    let open = "SELECT COUNT(*) FROM outbox";
    await_until("every fire has been, and every end was followed up", 60, || async {
        let ended = "SELECT COUNT(*) FROM task_log WHERE trigger_kind = 'schedule' AND status = 10";
        when(world.database.number(ended).await == 8 * 14 && world.database.number(open).await == 0)
    })
    .await;
    let (rows, starts) = world.end_well().await;
    let outputs: HashSet<String> =
        rows.iter().filter(|row| row.trigger == "schedule").map(|row| row.output.clone()).collect();
    let made: Vec<&LogRow> = rows.iter().filter(|row| row.trigger == "parent").collect();
    assert_eq!(made.len(), 8 * 14, "children: {}", sample(&made));
    let given: HashSet<String> = made.iter().map(|row| row.output.clone()).collect();
    assert_eq!(given, outputs, "each parent run has its own child");
    let ran: HashSet<i64> = starts.iter().map(|start: &Start| start.log).collect();
    assert!(made.iter().all(|row| ran.contains(&row.id)));
}
