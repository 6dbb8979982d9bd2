//! What runs log, read and followed through nodes from where it lies.

use carillon_tests::events::{Event, Events};
use carillon_tests::executor::Options;
use carillon_tests::people::PASSWORD;
use carillon_tests::wait::when;
use carillon_tests::{Api, FakeExecutor, Kind, World, await_until, folder, now_ms};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(followed_while_it_runs_and_read_when_it_has_ended: sqlite mariadb postgres);
scenario!(gone_with_its_executor_and_back_with_it: sqlite mariadb);
scenario!(earlier_attempts_and_shards: sqlite mariadb);
scenario!(followers_are_bounded_and_leave_their_places: sqlite);
scenario!(for_those_who_may_and_their_tenants: sqlite mariadb);
scenario!(executors_that_keep_none_or_do_not_answer: sqlite);
scenario!(followers_end_with_rights_and_sessions: sqlite);

const SHORT: [(&str, &str); 4] = [
    ("executors.heartbeat_interval", "1s"),
    ("executors.offline_after", "4s"),
    ("executors.abandon_after", "20s"),
    ("schedulers.offline_after", "6s"),
];

fn talk(lines: u32, ms: u64) -> String {
    json!({ "lines": lines, "ms": ms, "width": 100 }).to_string()
}

async fn page(api: &Api, log: i64, query: &str) -> Value {
    api.get(&format!("/task-logs/{log}/output{query}")).await
}

fn state(page: &Value) -> &str {
    page["state"].as_str().unwrap_or_else(|| panic!("no state in {page}"))
}

fn text(page: &Value) -> &str {
    page["text"].as_str().unwrap_or_else(|| panic!("no text in {page}"))
}

/// Reads page by page, as long as there is more.
async fn whole(api: &Api, log: i64, attempt: i32, limit: u32) -> (String, Value) {
    let (mut all, mut offset) = (String::new(), 0);
    loop {
        let page = page(api, log, &format!("?attempt={attempt}&offset={offset}&bytes={limit}")).await;
        all.push_str(text(&page));
        offset = page["next"].as_u64().unwrap();
        if page["more"] == false {
            return (all, page);
        }
    }
}

async fn follow(api: &Api, log: i64, last: Option<&str>) -> Events {
    let reply = api.open(&format!("/task-logs/{log}/output/stream"), last).await;
    assert_eq!(reply.status().as_u16(), 200);
    assert_eq!(reply.headers()["content-type"], "text/event-stream");
    Events::of(reply)
}

fn said(events: &[Event]) -> String {
    events.iter().filter(|event| event.kind == "message").map(|event| text(&event.data)).collect()
}

/// Each line of the demo's `talk`, in order and once.
fn assert_talk(output: &str, attempt: i32, lines: u32) {
    let found: Vec<&str> = output.lines().collect();
    assert_eq!(found.len(), lines as usize, "{output}");
    for (line, number) in found.iter().zip(1..) {
        assert!(line.contains(&format!("attempt {attempt} line {number} of {lines} äöü€😀 ~~")), "{number}: {line}");
        assert_eq!(&line[23..30], "Z INFO ", "{line}");
    }
}

/// A client that leaves in the middle and goes on at another node misses nothing and gets nothing twice.
async fn followed_while_it_runs_and_read_when_it_has_ended(kind: Kind) {
    const LINES: u32 = 20;
    let world = World::new(kind).await;
    let first = world.nodes(&[]).await;
    let (api, other) = (Api::new(&first.url), world.api());
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "talks", "talk", json!({})).await;
    let waiting = api.run_log_with(task, json!({ "delay_ms": 600_000 })).await;
    assert_eq!(state(&page(&api, waiting, "").await), "not_started");

    let log = api.run(task, Some(&talk(LINES, 200))).await;
    let mut events = follow(&api, log, None).await;
    let mut begun = Vec::new();
    while said(&begun).lines().count() < 3 {
        begun.push(events.next().await.expect("it goes on"));
    }
    drop(events);
    let now = page(&api, log, "").await;
    assert_eq!((state(&now), now["final"].as_bool()), ("running", Some(false)), "{now}");
    let last = begun.last().and_then(|event| event.id.clone()).expect("an id");
    let rest = follow(&other, log, Some(&last)).await.rest().await;
    let end = rest.last().expect("an end");
    assert_eq!((end.kind.as_str(), &end.data), ("end", &json!({ "why": "complete" })));
    let followed = said(&begun) + &said(&rest);
    assert_talk(&followed, 1, LINES);

    world.await_end(log).await;
    for limit in [4, 37, 262_144] {
        let (all, last) = whole(&api, log, 1, limit).await;
        assert_eq!(all, followed, "in pages of {limit}");
        assert_eq!((state(&last), &last["final"], &last["cut"]), ("ended", &json!(true), &json!(false)), "{last}");
    }
    let inside = followed.find('ä').unwrap() + 1;
    let cut_in = page(&api, log, &format!("?offset={inside}")).await;
    assert_eq!(text(&cut_in), &followed[inside + 1..], "in the middle of a character");
    let past = page(&api, log, "?offset=99999999").await;
    assert_eq!((text(&past), past["next"].as_u64()), ("", Some(followed.len() as u64)));
    let complete = follow(&other, log, None).await.rest().await;
    assert_eq!(said(&complete), followed, "followed after its end");
    assert_eq!(state(&page(&api, log, "?attempt=2").await), "never_started");

    for query in ["?attempt=0", "?bytes=3", "?bytes=262145", "?offset=-1", "?from=1"] {
        api.expect(400, Method::GET, &format!("/task-logs/{log}/output{query}"), None).await;
    }
    let stream = format!("/task-logs/{log}/output/stream");
    assert_eq!(api.open(&stream, Some("nonsense")).await.status().as_u16(), 400);
    for path in ["/task-logs/77/output", "/task-logs/77/output/stream"] {
        api.expect(404, Method::GET, path, None).await;
    }
    api.cancel(waiting).await;
    assert_eq!(state(&page(&api, waiting, "").await), "never_started");
    world.end_well().await;
}

/// Gone while the executor is, and back with a process at its place that has its files.
async fn gone_with_its_executor_and_back_with_it(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &SHORT).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let journal = folder::fresh("journal");
    let env = [("CARILLON_JOURNAL_DIR", journal.to_str().unwrap())];
    let first = world.executor_with("e1", &app, &Options { env: &env, ..Options::default() }).await;
    let task = api.make_task(&app, "talks", "talk", json!({ "max_retries": 0 })).await;
    let log = api.run(task, Some(&talk(3, 0))).await;
    world.await_end(log).await;
    let (before, _) = whole(&api, log, 1, 1_000).await;
    assert_talk(&before, 1, 3);

    world.kill9(&first).await;
    let gone = await_until("its executor counts as gone", 60, || async {
        let page = page(&api, log, "").await;
        let state = state(&page).to_owned();
        assert!(["unreachable", "executor_gone"].contains(&state.as_str()), "{page}");
        (state == "executor_gone").then_some(page)
    })
    .await;
    let address = format!("http://127.0.0.1:{}", first.port);
    assert_eq!(gone["executor"], address, "{gone}");
    assert!(gone["executor_heard_at"].as_i64().is_some_and(|at| at > 0), "{gone}");
    assert!(gone["detail"].as_str().is_some_and(|detail| detail.contains(&address)), "{gone}");
    let events = follow(&api, log, None).await.rest().await;
    let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["message", "end"]);
    assert_eq!(state(&events[0].data), "executor_gone");

    let there = Options { port: first.port, env: &env, ..Options::default() };
    let second = world.executor_with("e2", &app, &there).await;
    await_until("the next process answers for the one before it", 30, || async {
        when(whole(&api, log, 1, 1_000).await.0 == before)
    })
    .await;
    second.process.sigterm(30).await;
    // The same place, other files.
    world.executor_with("e3", &app, &Options { port: first.port, ..Options::default() }).await;
    assert_eq!(state(&page(&api, log, "").await), "executor_gone");
    world.settle_and_check().await;
}

async fn earlier_attempts_and_shards(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &SHORT).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let params = json!({ "lines": 2, "width": 100, "fail": true }).to_string();
    let fields = json!({ "max_retries": 1, "retry_interval_ms": 100, "params": params });
    let failing = api.make_task(&app, "fails twice", "talk", fields).await;
    let log = api.run(failing, None).await;
    world.await_end(log).await;
    for attempt in 1..=2 {
        assert_talk(&whole(&api, log, attempt, 1_000).await.0, attempt, 2);
    }
    assert_eq!(page(&api, log, "").await["attempt"], 2, "the latest");

    let sharded = api.make_task(&app, "shards", "talk", json!({ "routing": "sharding" })).await;
    let parent = api.run(sharded, None).await;
    world.await_end(parent).await;
    assert_eq!(state(&page(&api, parent, "").await), "sharded");
    let shards = world.database.logs(&format!("parent_id = {parent}")).await;
    assert_eq!(whole(&api, shards[0].id, 1, 1_000).await.0.lines().count(), 3);

    let silent = api.make_task(&app, "silent", "tick", json!({})).await;
    let silent = api.run(silent, None).await;
    world.await_end(silent).await;
    let nothing = page(&api, silent, "").await;
    assert_eq!((text(&nothing), &nothing["final"]), ("", &json!(true)), "{nothing}");

    executor.process.sigterm(30).await;
    await_until("its executor is gone", 30, || async { when(state(&page(&api, log, "").await) == "executor_gone") })
        .await;
    assert_eq!(state(&page(&api, log, "?attempt=1").await), "executor_unknown");
    world.end_well().await;
}

/// A stream does not outlive what allowed it, while its run goes on.
async fn followers_end_with_rights_and_sessions(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "talks", "talk", json!({})).await;
    let log = api.run(task, Some(&talk(1_000, 1_000))).await;
    let ann = api.make_person("ann", None).await;
    let grant = api.grant(&ann, "platform admin", None).await;
    let (again, _) = api.sign_in("ann", PASSWORD).await;
    let ben = api.make_person("ben", None).await;
    api.grant(&ben, "platform admin", None).await;
    let (narrowed, ended) = (follow(&ann.api, log, None).await, follow(&again, log, None).await);
    let disabled = follow(&ben.api, log, None).await;
    let mut kept = follow(&api, log, None).await;
    again.expect(204, Method::POST, "/logout", None).await;
    api.expect(204, Method::DELETE, &format!("/users/{}/grants/{grant}", ann.id), None).await;
    api.patch(&format!("/users/{}", ben.id), json!({ "disabled": true })).await;
    for events in [ended, narrowed, disabled] {
        let events = events.rest().await;
        assert_eq!(
            events.last().map(|event| (event.kind.as_str(), &event.data["why"])),
            Some(("end", &json!("access_changed")))
        );
    }
    kept.next().await.expect("who may read goes on");
}

async fn assert_refused(api: &Api, log: i64, why: &str) {
    let refused = api.open(&format!("/task-logs/{log}/output/stream"), None).await;
    assert_eq!(refused.status().as_u16(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let text = refused.text().await.unwrap();
    assert!(text.contains(why), "{text}");
}

async fn followers_are_bounded_and_leave_their_places(kind: Kind) {
    const OF_ONE: usize = 8;
    const OF_A_TENANT: usize = 32;
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "talks", "talk", json!({})).await;
    let log = api.run(task, Some(&talk(1_000, 1_000))).await;
    let other = api.make_app("free", "orders").await;
    world.executor("e2", &other).await;
    let elsewhere = api.make_task(&other, "talks", "talk", json!({})).await;
    let elsewhere = api.run(elsewhere, Some(&talk(1_000, 1_000))).await;
    let stream = format!("/task-logs/{log}/output/stream");
    let mut callers = vec![api.clone()];
    for number in 1..=OF_A_TENANT / OF_ONE {
        let person = api.make_person(&format!("ann-{number}"), None).await;
        api.grant(&person, "platform admin", None).await;
        callers.push(person.api);
    }
    let last = callers.pop().expect("one more than fill the tenant's share");
    let mut followers = Vec::new();
    for caller in &callers {
        for _ in 0..OF_ONE {
            let mut events = follow(caller, log, None).await;
            events.next().await.expect("something");
            followers.push(events);
        }
        // Of whichever tenant.
        assert_refused(caller, elsewhere, "you already follow 8 outputs").await;
    }
    assert_eq!(followers.len(), OF_A_TENANT);
    assert_refused(&last, log, "32 outputs of this tenant").await;
    follow(&last, elsewhere, None).await.next().await.expect("something of another tenant");
    drop(followers);
    let mut events = await_until("places are free again", 60, || async {
        let reply = api.open(&stream, None).await;
        (reply.status().as_u16() == 200).then(|| Events::of(reply))
    })
    .await;
    events.next().await.expect("something");

    node.process.signal("TERM");
    let rest = events.rest().await;
    assert_eq!(rest.last().map(|event| &event.data), Some(&json!({ "why": "node_stops" })));
    node.process.wait_exit(20).await;
}

async fn executors_that_keep_none_or_do_not_answer(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let env = [("CARILLON_OUTPUT_BYTES_MAX", "0")];
    world.executor_with("e1", &app, &Options { env: &env, ..Options::default() }).await;
    let task = api.make_task(&app, "talks", "talk", json!({})).await;
    let log = api.run(task, None).await;
    world.await_end(log).await;
    let off = page(&api, log, "").await;
    assert_eq!((state(&off), &off["final"]), ("no_output", &json!(true)), "{off}");

    let other = api.make_app("retail", "stock").await;
    // It drops the connection of any caller that requests output.
    let fake = FakeExecutor::start(&other, &node.url, &["job"], true).await;
    let task = api.make_task(&other, "by hand", "job", json!({})).await;
    let log = api.run(task, None).await;
    world.await_end(log).await;
    let unreachable = page(&api, log, "").await;
    assert_eq!((state(&unreachable), &unreachable["final"]), ("unreachable", &json!(false)), "{unreachable}");
    // How it fails would tell a reader what listens in the node's network.
    assert_eq!(unreachable["detail"], "its executor does not answer now; the node's log says why");
    world.settle_and_check_with(|| fake.starts()).await;
}

/// Another tenant's run is as good as absent; without the permission there is nothing to see.
async fn for_those_who_may_and_their_tenants(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    api.make_app("insurance", "claims").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "talks", "talk", json!({})).await;
    let log = api.run(task, None).await;
    world.await_end(log).await;

    let mut viewers = Vec::new();
    for (name, tenant) in [("rita", "retail"), ("ivan", "insurance")] {
        let person = api.make_person(name, Some(tenant)).await;
        api.grant(&person, "viewer", Some(tenant)).await;
        viewers.push(person.api);
    }
    let [ours, theirs] = viewers.as_slice() else { unreachable!("two of them") };
    let soon = json!({ "name": "logs only", "permissions": ["task_logs.read"], "expires_at": now_ms() + 600_000 });
    let token = ours.expect(201, Method::POST, "/account/tokens", Some(&soon)).await;
    let narrow = Api::with_token(&node.url, token["secret"].as_str().unwrap_or_else(|| panic!("no secret in {token}")));
    let nobody = Api::with_token(&node.url, "nobody's");
    for path in ["output", "output/stream"].map(|path| format!("/task-logs/{log}/{path}")) {
        for (who, status) in [(ours, 200), (theirs, 404), (&narrow, 403), (&nobody, 401)] {
            let reply = who.open(&path, None).await;
            assert_eq!(reply.status().as_u16(), status, "{path}");
            let text = reply.text().await.unwrap();
            assert_eq!(text.contains("attempt 1 line 2"), status == 200, "{path}: {text}");
        }
    }
    world.end_well().await;
}
