//! What changes, told to pages that are open.

use carillon_tests::events::{Event, Events};
use carillon_tests::people::PASSWORD;
use carillon_tests::wait::when;
use carillon_tests::{Api, Kind, Outage, World, await_until};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

scenario!(a_change_at_one_node_is_told_at_the_other: mariadb postgres);
scenario!(subscribers_see_only_what_they_may_read: sqlite mariadb postgres);
scenario!(a_stream_outlives_an_outage_of_the_database: mariadb postgres);
scenario!(streams_end_with_rights_and_sessions: sqlite);
scenario!(streams_are_bounded_and_do_not_hold_up_a_stop: sqlite);

/// Listens; the first hello has come.
async fn listen(api: &Api, query: &str) -> Events {
    let reply = api.open(&format!("/events{query}"), None).await;
    assert_eq!(reply.status().as_u16(), 200);
    assert_eq!(reply.headers()["content-type"], "text/event-stream");
    let mut events = Events::of(reply);
    let hello = events.next().await.expect("a hello");
    assert_eq!(hello.kind, "hello");
    assert!(hello.data["cluster_time"].as_i64().is_some_and(|ms| ms > 1_700_000_000_000), "{hello:?}");
    assert!(hello.data["node"].is_string() && hello.data["version"].is_string(), "{hello:?}");
    events
}

fn kinds(event: &Event) -> Vec<&str> {
    event.data["kinds"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The stream lives on without the database, also when it is asked whether its session holds, and tells what came after.
async fn a_stream_outlives_an_outage_of_the_database(kind: Kind) {
    let world = World::private(kind).await;
    let node = world.node("a", &[]).await;
    let api = Api::new(&node.url);
    let app = api.make_app("retail", "orders").await;
    let mut events = listen(&api, "?tenant=retail").await;
    let outage = Outage::begin(&world.database).await;
    // Two hellos, ten seconds apart at least: each stream is checked again every fifteen.
    for _ in 0..2 {
        let hello = events.next().await.expect("it goes on without the database");
        assert_eq!(hello.kind, "hello", "{hello:?}");
    }
    outage.end().await;
    await_until("the node has its database again", 40, || async { when(node.probe("/readyz").await == Some(200)) })
        .await;
    api.make_task(&app, "after it", "tick", json!({ "started": false })).await;
    until(&mut events, Some("retail"), "tasks").await;
}

/// Everything that is told until something of this kind has changed in that tenant.
async fn until(events: &mut Events, tenant: Option<&str>, kind: &str) -> Vec<Event> {
    let begun = Instant::now();
    let mut told = Vec::new();
    loop {
        let event = events.next().await.expect("it goes on");
        let is_it = event.kind == "changed" && event.data["tenant"] == json!(tenant) && kinds(&event).contains(&kind);
        told.push(event);
        if is_it {
            return told;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing of {kind} in {tenant:?}: {told:?}");
    }
}

fn tenants(told: &[Event]) -> BTreeSet<String> {
    let changed = told.iter().filter(|event| event.kind == "changed");
    changed.map(|event| event.data["tenant"].to_string()).collect()
}

/// The second node hears what people do at the first, and what becomes of runs that the first has.
async fn a_change_at_one_node_is_told_at_the_other(kind: Kind) {
    let world = World::new(kind).await;
    let (first, second) = (world.node("a", &[]).await, world.node("b", &[]).await);
    let (api, other) = (Api::new(&first.url), Api::new(&second.url));
    let app = api.make_app("retail", "orders").await;
    let mut events = listen(&other, "").await;
    let mut of_the_tenant = listen(&other, "?tenant=retail").await;
    world.executor("e1", &app).await;
    until(&mut events, Some("retail"), "executors").await;
    let task = api.make_task(&app, "by hand", "tick", json!({})).await;
    until(&mut events, Some("retail"), "tasks").await;
    until(&mut of_the_tenant, Some("retail"), "tasks").await;
    api.put_calendar("/calendars/retail/closed", json!({ "excluded_weekdays": ["sun"] })).await;
    until(&mut events, Some("retail"), "calendars").await;
    let log = api.run(task, None).await;
    until(&mut events, Some("retail"), "task_logs").await;
    world.await_end(log).await;
    until(&mut of_the_tenant, Some("retail"), "task_logs").await;
    // A schedule fires by itself.
    let quiet = api.make_app("quiet", "orders").await;
    world.executor("e2", &quiet).await;
    api.make_task(&quiet, "often", "tick", json!({ "schedule": "fixed_rate", "interval_ms": 1_000 })).await;
    let mut of_the_quiet = listen(&other, "?tenant=quiet").await;
    for _ in 0..3 {
        until(&mut of_the_quiet, Some("quiet"), "task_logs").await;
    }
    until(&mut events, Some("quiet"), "task_logs").await;
    world.node("c", &[]).await;
    until(&mut events, None, "nodes").await;
    world.assert_quiet(&[]);
}

/// No caller gets hints about another tenant, or about kinds that they may not read.
async fn subscribers_see_only_what_they_may_read(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let (near, far) = (api.make_app("near", "orders").await, api.make_app("far", "orders").await);
    let ann = api.make_person("ann", Some("near")).await;
    api.grant(&ann, "viewer", Some("near")).await;
    api.make_role("planner", Some("near"), &["tasks.read"]).await;
    let pia = api.make_person("pia", Some("near")).await;
    api.grant(&pia, "planner", Some("near")).await;
    let nobody = api.make_person("nobody", Some("near")).await;
    let mut of_ann = listen(&ann.api, "").await;
    let mut of_pia = listen(&pia.api, "?tenant=near").await;
    let mut of_nobody = listen(&nobody.api, "").await;
    let mut of_all = listen(&api, "").await;

    api.make_task(&far, "theirs", "tick", json!({})).await;
    until(&mut of_all, Some("far"), "tasks").await;
    api.make_role("other", Some("near"), &["tasks.read"]).await;
    api.make_task(&near, "ours", "tick", json!({})).await;
    let told = until(&mut of_ann, Some("near"), "tasks").await;
    assert!(!tenants(&told).contains("\"far\""), "{told:?}");
    let told = until(&mut of_pia, Some("near"), "tasks").await;
    let all: BTreeSet<&str> = told.iter().flat_map(kinds).collect();
    assert_eq!(all, ["tasks"].into(), "{told:?}");
    // The next that nobody hears is that it lives.
    let next = of_nobody.next().await.expect("it goes on");
    assert_eq!(next.kind, "hello", "{next:?}");

    for (who, tenant, status) in [(&ann.api, "far", 404), (&ann.api, "none", 404), (&nobody.api, "near", 404)] {
        who.expect(status, Method::GET, &format!("/events?tenant={tenant}"), None).await;
    }
    api.expect(400, Method::GET, "/events?app=1", None).await;
    let newcomer = api.make_new_person("newcomer", Some("near")).await;
    let refused = newcomer.api.expect(403, Method::GET, "/events", None).await;
    assert_eq!(refused["code"], "password_change_required");
    world.assert_quiet(&[]);
}

fn end_of(events: &[Event]) -> &Value {
    let last = events.last().expect("an end");
    assert_eq!(last.kind, "end", "{events:?}");
    &last.data["why"]
}

async fn streams_end_with_rights_and_sessions(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    api.make_app("near", "orders").await;
    let ann = api.make_person("ann", Some("near")).await;
    let grant = api.grant(&ann, "viewer", Some("near")).await;
    let (again, _) = api.sign_in("ann", PASSWORD).await;
    let (narrowed, ended) = (listen(&ann.api, "").await, listen(&again, "").await);
    again.expect(204, Method::POST, "/logout", None).await;
    let begun = Instant::now();
    assert_eq!(end_of(&ended.rest().await), "access_changed");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    api.expect(204, Method::DELETE, &format!("/users/{}/grants/{grant}", ann.id), None).await;
    assert_eq!(end_of(&narrowed.rest().await), "access_changed");
    assert_eq!(again.open("/events", None).await.status().as_u16(), 401);
    world.assert_quiet(&[]);
}

async fn streams_are_bounded_and_do_not_hold_up_a_stop(kind: Kind) {
    const OF_ONE: usize = 16;
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let mut streams = Vec::new();
    for _ in 0..OF_ONE {
        streams.push(listen(&api, "").await);
    }
    let refused = api.open("/events", None).await;
    assert_eq!(refused.status().as_u16(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let text = refused.text().await.unwrap();
    assert!(text.contains("you have 16 event streams"), "{text}");
    streams.pop();
    let last = await_until("its place is free again", 30, || async {
        let reply = api.open("/events", None).await;
        (reply.status().as_u16() == 200).then(|| Events::of(reply))
    })
    .await;
    node.process.signal("TERM");
    assert_eq!(end_of(&last.rest().await), "node_stops");
    for stream in streams {
        assert_eq!(end_of(&stream.rest().await), "node_stops");
    }
    node.process.wait_exit(20).await;
    world.assert_quiet(&[]);
}
