//! What pages show beside plain lists: coming fires, names in lists, neighbours of tasks.

use carillon_tests::{Api, Kind, World, api::ids_of, now_ms};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(coming_fires_are_counted_once_and_for_those_who_may: sqlite mariadb postgres);
scenario!(the_next_fire_is_shown_although_its_run_is_written: sqlite mariadb postgres);
scenario!(the_coming_day_is_counted_for_those_who_may: sqlite mariadb postgres);
scenario!(people_are_found_by_a_part_of_a_name: sqlite mariadb postgres);
scenario!(tasks_are_found_by_a_part_of_a_name: sqlite mariadb postgres);
scenario!(lists_by_state_handler_parent_and_calendar: sqlite mariadb postgres);
scenario!(neighbours_are_shown_as_far_as_one_may_see: sqlite mariadb postgres);

async fn viewer(api: &Api, name: &str, tenant: &str) -> Api {
    let person = api.make_person(name, Some(tenant)).await;
    api.grant(&person, "viewer", Some(tenant)).await;
    person.api
}

fn fires(seconds: &Value) -> i64 {
    seconds.as_array().into_iter().flatten().filter_map(|second| second["fires"].as_i64()).sum()
}

async fn coming_fires_are_counted_once_and_for_those_who_may(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let (near, far) = (api.make_app("near", "orders").await, api.make_app("far", "orders").await);
    world.executor("e1", &near).await;
    world.executor("e2", &near).await;
    let often = json!({ "schedule": "fixed_rate", "interval_ms": 10_000 });
    let often = api.make_task(&near, "often", "tick", often).await;
    let theirs = api.make_task(&far, "theirs", "tick", json!({})).await;
    let soon = api.run_log_with(theirs, json!({ "delay_ms": 60_000 })).await;
    let later = api.make_task(&near, "later", "tick", json!({})).await;
    let log = api.run_log_with(later, json!({ "delay_ms": 100_000 })).await;
    api.run_log_with(later, json!({ "delay_ms": 600_000 })).await;

    let all = api.get("/fires/upcoming?ms=150000").await;
    assert_eq!(all["complete"], true, "{all}");
    assert_eq!(all["until"].as_i64(), all["at"].as_i64().map(|at| at + 150_000), "{all}");
    let counted = all["counted"].as_i64().unwrap();
    assert_eq!(fires(&all["seconds"]), counted, "{all}");
    assert!((16..=18).contains(&counted), "two by hand, and one each ten seconds: {all}");
    let tasks = all["tasks"].as_array().unwrap();
    assert_eq!(
        tasks.iter().map(|task| task["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["often", "theirs", "later"]
    );
    assert_eq!((tasks[0]["task"].as_str(), &tasks[0]["app_name"]), (Some(&*often.to_string()), &json!("orders")));
    assert_eq!((&tasks[1]["tenant"], &tasks[1]["next"][0]["log"]), (&json!("far"), &json!(soon.to_string())));
    let fire = &tasks[2]["next"][0];
    assert_eq!(
        (&tasks[2]["fires"], &fire["log"], &fire["status"]),
        (&json!(1), &json!(log.to_string()), &json!("init"))
    );

    let ours = viewer(&api, "ann", "near").await;
    let seen = ours.get("/fires/upcoming").await;
    assert_eq!(seen["tasks"].as_array().map(Vec::len), Some(2), "{seen}");
    assert!(!seen.to_string().contains("theirs"), "{seen}");
    ours.expect(404, Method::GET, "/fires/upcoming?tenant=far", None).await;
    let one = ours.get(&format!("/fires/upcoming?tenant=near&task={later}&ms=110000")).await;
    assert_eq!((&one["counted"], fires(&one["seconds"])), (&json!(1), 1), "{one}");
    for wrong in ["ms=0", "ms=180001", "task=x", "from=1"] {
        api.expect(400, Method::GET, &format!("/fires/upcoming?{wrong}"), None).await;
    }

    // A sharded run is one, and its shards can be left out of lists.
    let shards = api.make_task(&near, "shards", "tick", json!({ "routing": "sharding" })).await;
    let parent = api.run(shards, None).await;
    world.await_end(parent).await;
    let every = api.get(&format!("/task-logs?task={shards}")).await;
    assert_eq!(every["items"].as_array().map(Vec::len), Some(3), "{every}");
    let runs = api.get(&format!("/task-logs?task={shards}&shards=false")).await;
    let runs = runs["items"].as_array().unwrap();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let told = (&runs[0]["id"], &runs[0]["task_name"], &runs[0]["app_name"]);
    assert_eq!(told, (&json!(parent.to_string()), &json!("shards"), &json!("orders")));
    assert_eq!(runs[0]["app"], tasks[0]["app"]);
    api.delete(shards).await;
    assert_eq!(api.log(parent).await["task_name"], Value::Null, "its task no longer exists");
    world.assert_quiet(&[]);
}

async fn the_next_fire_is_shown_although_its_run_is_written(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("near", "orders").await;
    api.put_calendar("/calendars/near/closed", json!({ "excluded_weekdays": ["sun"] })).await;
    let of = |schedule: &str, more: Value| {
        let mut fields = json!({ "schedule": schedule, "interval_ms": 100_000 });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let often = api.make_task(&app, "often", "tick", of("fixed_rate", json!({ "interval_ms": 10_000 }))).await;
    let single = api.make_task(&app, "single", "tick", of("fixed_rate", json!({ "max_fires": 1 }))).await;
    let chain = api.make_task(&app, "chain", "tick", of("fixed_delay", json!({}))).await;
    let daily = json!({ "cron": "0 0 9 * * ?", "calendar": "closed" });
    let daily = api.make_task(&app, "daily", "tick", daily).await;
    let stopped = api.make_task(&app, "stopped", "tick", of("fixed_rate", json!({ "started": false }))).await;
    let manual = api.make_task(&app, "by hand", "tick", json!({})).await;

    let page = api.get("/tasks").await;
    let listed = |task: i64, field: &str| -> Option<i64> {
        let items = page["items"].as_array().unwrap();
        items.iter().find(|item| item["id"] == json!(task.to_string())).unwrap()[field].as_i64()
    };
    let now = now_ms();
    let (next, written) = (listed(often, "next_fire_at").unwrap(), listed(often, "written_until").unwrap());
    assert!((now - 5_000..=now + 10_000).contains(&next), "{next} {now}");
    assert!(written > now + 150_000, "{written} {now}: three minutes are written");
    for task in [single, chain] {
        let shown = api.task(task).await;
        assert_eq!(shown["next_fire_at"].as_i64(), shown["created_at"].as_i64().map(|at| at + 100_000), "{shown}");
        assert_eq!(shown["written_until"], Value::Null, "its only known fire is written: {shown}");
        assert_eq!(listed(task, "next_fire_at"), shown["next_fire_at"].as_i64());
    }
    let preview = api.get(&format!("/tasks/{daily}/preview?count=1")).await;
    let fires = preview["items"].as_array().unwrap().iter().find(|line| line["kind"] == "fires").cloned().unwrap();
    assert_eq!(listed(daily, "next_fire_at"), fires["fire_time"].as_i64(), "{preview}");
    for task in [stopped, manual] {
        assert_eq!((listed(task, "next_fire_at"), listed(task, "written_until")), (None, None));
    }
    api.pause(often, "for the test").await;
    assert_eq!(api.task(often).await["next_fire_at"], Value::Null);
    world.assert_quiet(&[]);
}

async fn the_coming_day_is_counted_for_those_who_may(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let (near, far) = (api.make_app("near", "orders").await, api.make_app("far", "orders").await);
    let every = |cron: &str| json!({ "cron": cron });
    let second = api.make_task(&near, "second", "tick", every("* * * * * ?")).await;
    api.make_task(&far, "minute", "tick", every("0 * * * * ?")).await;
    let bounded = json!({ "cron": "30 * * * * ?", "max_fires": 100 });
    api.make_task(&far, "bounded", "tick", bounded).await;
    let written = json!({ "schedule": "fixed_rate", "interval_ms": 20_000, "max_fires": 3 });
    api.make_task(&far, "written", "tick", written).await;
    api.make_task(&far, "chain", "tick", json!({ "schedule": "fixed_delay", "interval_ms": 60_000 })).await;
    api.make_task(&far, "by hand", "tick", json!({})).await;
    api.make_task(&far, "stopped", "tick", json!({ "cron": "* * * * * ?", "started": false })).await;

    let sum = |told: &Value| -> i64 { told["minutes"].as_array().unwrap().iter().filter_map(Value::as_i64).sum() };
    let at = now_ms();
    let all = api.get("/fires/forecast").await;
    assert_eq!(all["minutes"].as_array().map(Vec::len), Some(1_440));
    assert_eq!((&all["tasks"], &all["left_out"]), (&json!(4), &json!(2)), "{}", all["peaks"]);
    assert!(
        (at - 65_000..at + 65_000).contains(&all["from"].as_i64().unwrap())
            && all["from"].as_i64().unwrap() % 60_000 == 0
    );
    let most = 86_400 + 1_440 + 100 + 3;
    assert!((most - 62..=most).contains(&sum(&all)), "{}", sum(&all));
    let peak = &all["peaks"][0];
    let first = json!({ "task": second.to_string(), "name": "second", "tenant": "near", "fires": 60 });
    assert_eq!(peak["tasks"][0], first, "{peak}");
    assert_eq!(all["peaks"].as_array().map(Vec::len), Some(10));

    // What is kept for one is not told to another.
    let ours = viewer(&api, "ann", "near").await;
    let seen = ours.get("/fires/forecast").await;
    assert_eq!((&seen["tasks"], &seen["left_out"]), (&json!(1), &json!(0)), "{}", seen["peaks"]);
    assert!(!seen.to_string().contains("far") && (86_339..=86_400).contains(&sum(&seen)));
    ours.expect(404, Method::GET, "/fires/forecast?tenant=far", None).await;
    assert_eq!(api.get("/fires/forecast?tenant=far").await["tasks"], 3);
    api.stop(second).await;
    assert_eq!(ours.get("/fires/forecast").await, seen, "kept for a while");
    api.expect(400, Method::GET, "/fires/forecast?app=1", None).await;
    world.assert_quiet(&[]);
}

async fn people_are_found_by_a_part_of_a_name(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    api.make_app("near", "orders").await;
    for (name, display_name) in [("ann_lee", "Ann Lee"), ("annxlee", "100 % Bo"), ("carl", "Carl ANNisfield!")] {
        let body = json!({ "name": name, "display_name": display_name, "tenant": "near" });
        api.expect(201, Method::POST, "/users", Some(&body)).await;
    }
    for (part, wanted) in [
        ("ANN", vec!["ann_lee", "annxlee", "carl"]),
        ("n_l", vec!["ann_lee"]),
        ("0%20%25", vec!["annxlee"]),
        ("field!", vec!["carl"]),
        ("%25%25", vec![]),
    ] {
        let found = api.get(&format!("/users?search={part}")).await;
        let names = found["items"].as_array().unwrap().iter().map(|user| user["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), wanted, "{part}");
    }
    for wrong in [String::new(), "x".repeat(101)] {
        api.expect(400, Method::GET, &format!("/users?search={wrong}"), None).await;
    }
    world.assert_quiet(&[]);
}

async fn tasks_are_found_by_a_part_of_a_name(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("near", "orders").await;
    let other = api.make_app("far", "orders").await;
    let stopped = json!({ "started": false });
    for (name, handler) in [("Close Books", "settle_day"), ("close_tills", "echo"), ("月报", "REPORT")] {
        api.make_task(&app, name, handler, stopped.clone()).await;
    }
    api.make_task(&other, "close shop", "echo", stopped).await;
    for (query, wanted) in [
        ("search=CLOSE&tenant=near", vec!["Close Books", "close_tills"]),
        ("search=e_t", vec!["close_tills"]),
        ("search=report", vec!["月报"]),
        ("search=%E6%9C%88", vec!["月报"]),
        ("search=close&handler=echo&limit=1", vec!["close_tills"]),
        ("search=%25", vec![]),
    ] {
        let found = api.get(&format!("/tasks?{query}")).await;
        let names = found["items"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap());
        assert_eq!(names.collect::<Vec<_>>(), wanted, "{query}");
    }
    api.expect(400, Method::GET, "/tasks?search=", None).await;
    world.assert_quiet(&[]);
}

fn found(page: &Value) -> Vec<i64> {
    let items = page["items"].as_array().cloned().unwrap_or_default();
    ids_of(&items.iter().map(|item| item["id"].clone()).collect())
}

async fn lists_by_state_handler_parent_and_calendar(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("near", "orders").await;
    api.put_calendar("/calendars/near/closed", json!({ "excluded_weekdays": ["sun"] })).await;
    let first = api.make_task(&app, "first", "tick", json!({})).await;
    let by = json!({ "calendar": "closed", "cron": "0 0 9 * * ?", "started": false });
    let second = api.make_task(&app, "second", "tock", by).await;
    let third = api.make_task(&app, "third", "tick", json!({ "parents": [{ "task": "first" }] })).await;
    let fourth = api.make_task(&app, "fourth", "tick", json!({ "parents": [{ "task": "first" }] })).await;
    api.pause(fourth, "for the test").await;
    let cases: [(String, Vec<i64>); 8] = [
        ("state=started".to_owned(), vec![first, third]),
        ("state=stopped".to_owned(), vec![second]),
        ("state=paused".to_owned(), vec![fourth]),
        ("handler=tick".to_owned(), vec![first, third, fourth]),
        ("calendar=closed".to_owned(), vec![second]),
        (format!("parent={first}"), vec![third, fourth]),
        (format!("parent={first}&state=paused&handler=tick"), vec![fourth]),
        ("handler=tick&calendar=closed".to_owned(), vec![]),
    ];
    for (query, wanted) in cases {
        assert_eq!(found(&api.get(&format!("/tasks?{query}")).await), wanted, "{query}");
    }
    let page = api.get("/tasks?handler=tick&limit=2").await;
    let next = page["next"].as_str().unwrap();
    assert_eq!(found(&api.get(&format!("/tasks?handler=tick&limit=2&after={next}")).await), [fourth]);
    for wrong in ["state=resting", "parent=x"] {
        api.expect(400, Method::GET, &format!("/tasks?{wrong}"), None).await;
    }
    world.assert_quiet(&[]);
}

fn task(graph: &Value, id: i64) -> Value {
    let all = graph["tasks"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|task| task["id"] == json!(id.to_string())).unwrap_or_else(|| panic!("no {id} in {graph}"))
}

async fn neighbours_are_shown_as_far_as_one_may_see(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let (orders, ledger) = (api.make_app("near", "orders").await, api.make_app("near", "ledger").await);
    world.executor("e1", &orders).await;
    let mut chain = vec![api.make_task(&orders, "t0", "tick", json!({})).await];
    for number in 1..6 {
        let parent = format!("orders/t{}", number - 1);
        let fields = json!({ "parents": [{ "task": parent, "on": "always" }], "started": false });
        chain.push(api.make_task(&orders, &format!("t{number}"), "tick", fields).await);
    }
    let books = json!({ "parents": [{ "task": "orders/t1" }], "started": false });
    let books = api.make_task(&ledger, "books", "tick", books).await;
    let log = api.run(chain[0], None).await;
    world.await_end(log).await;

    let graph = api.get(&format!("/tasks/{}/graph", chain[1])).await;
    assert_eq!(graph["complete"], false, "four links away there is one more: {graph}");
    assert_eq!(graph["tasks"].as_array().map(Vec::len), Some(6), "{graph}");
    assert_eq!(graph["links"].as_array().map(Vec::len), Some(5), "{graph}");
    let first = json!({ "from": chain[0].to_string(), "to": chain[1].to_string(), "on": "always" });
    assert!(graph["links"].as_array().unwrap().contains(&first), "{graph}");
    let parent = task(&graph, chain[0]);
    assert_eq!(
        (&parent["name"], &parent["state"], &parent["last_status"]),
        (&json!("t0"), &json!("started"), &json!("succeeded"))
    );
    assert!(parent["last_finished_at"].as_i64().is_some_and(|at| at <= now_ms()), "{parent}");
    assert_eq!(task(&graph, books)["app_name"], "ledger");
    let whole = api.get(&format!("/tasks/{}/graph", chain[2])).await;
    assert_eq!(whole["complete"], true, "{whole}");

    // Users who may see the ledger's tasks learn only of the others' existence.
    let apps = api.get("/apps?tenant=near&name=ledger").await;
    let person = api.make_person("lea", Some("near")).await;
    let body = json!({ "role": api.role("viewer").await, "tenant": "near", "apps": [apps["items"][0]["id"]] });
    api.expect(201, Method::POST, &format!("/users/{}/grants", person.id), Some(&body)).await;
    let part = person.api.get(&format!("/tasks/{books}/graph")).await;
    assert_eq!(part["tasks"].as_array().map(Vec::len), Some(2), "{part}");
    assert_eq!(task(&part, chain[1])["name"], Value::Null, "{part}");
    person.api.expect(404, Method::GET, &format!("/tasks/{}/graph", chain[1]), None).await;
    world.assert_quiet(&[]);
}
