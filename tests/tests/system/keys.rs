//! Keys of executors: rotated, revoked, used, and signed with as the app demands.

use carillon_protocol::sign::{Key, SignMethod};
use carillon_protocol::{Code, Results, RunStatus, Verdict};
use carillon_tests::api::id_of;
use carillon_tests::fake::{empty_heartbeat, result};
use carillon_tests::fires::assert_all;
use carillon_tests::wait::when;
use carillon_tests::wire::Request;
use carillon_tests::{Api, App, FakeExecutor, Kind, Status, World, await_until};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(rotation_under_load_loses_and_refuses_nothing: sqlite mariadb);
scenario!(an_executor_changes_its_key_and_keeps_what_it_has: sqlite postgres);
scenario!(a_revoked_key_is_refused_everywhere: sqlite mariadb);
scenario!(an_app_demands_how_everything_is_signed: sqlite mariadb);
scenario!(a_secret_is_shown_once_and_uses_are_noted: sqlite);

/// The app's path under `/api/v1`.
async fn path_of(api: &Api, app: &App) -> String {
    let apps = api.get("/apps").await["items"].as_array().cloned().unwrap_or_default();
    let found = apps.iter().find(|one| one["tenant"] == *app.tenant && one["name"] == *app.name);
    format!("/apps/{}", found.and_then(|app| id_of(&app["id"])).expect("the app is listed"))
}

/// The key in an answer that makes one.
fn key_of(made: &Value) -> Key {
    let text = |at: &str| made[at].as_str().unwrap_or_else(|| panic!("no {at} in {made}")).to_owned();
    Key { id: text("id"), secret: text("secret") }
}

async fn rotate(api: &Api, app: &App, overlap_ms: i64) -> App {
    let path = format!("{}/keys/rotate", path_of(api, app).await);
    let made =
        api.expect(201, Method::POST, &path, Some(&json!({ "overlap_ms": overlap_ms, "note": "rotated" }))).await;
    App { key: key_of(&made), ..app.clone() }
}

async fn revoke(api: &Api, key: &Key) {
    api.expect(204, Method::DELETE, &format!("/keys/{}", key.id), None).await;
}

/// The app's listed keys by id.
async fn listed(api: &Api, app: &App, id: &str) -> Value {
    let keys = api.get(&format!("{}/keys", path_of(api, app).await)).await;
    let found = keys["items"].as_array().into_iter().flatten().find(|key| key["id"] == *id);
    found.unwrap_or_else(|| panic!("no key {id} in {keys}")).clone()
}

/// A heartbeat of an unknown executor: the reply tells whether the key is valid.
async fn code_with(app: &App, url: &str) -> Code {
    let beat = empty_heartbeat(1, "nobody");
    Request::new(app, url, "/openapi/executors/heartbeat", &beat).send().await.code()
}

/// The way an operator does it: a new key, executors restarted one after another, the old key ends
/// by itself.
async fn rotation_under_load_loses_and_refuses_nothing(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let api = world.api();
    let old = api.make_app("retail", "orders").await;
    let leaving = [world.executor("old 1", &old).await, world.executor("old 2", &old).await];
    let tasks = crate::sharing::every_second(&api, &old, 20).await;
    for task in &tasks {
        world.await_successes(*task, 3).await;
    }
    let new = rotate(&api, &old, 20_000).await;
    for (number, executor) in leaving.iter().enumerate() {
        world.executor(&format!("new {number}"), &new).await;
        assert_eq!(executor.process.sigterm(60).await, Some(0), "{}", executor.process.log_digest());
    }
    await_until("the overlap is over", 60, || async {
        when(listed(&api, &old, &old.key.id).await["state"] == "expired")
    })
    .await;
    let before = world.starts().len();
    await_until("many more have run", 60, || async { when(world.starts().len() > before + 100) }).await;
    for url in world.node_urls() {
        assert_eq!(code_with(&old, &url).await, Code::UnknownKey, "the old key at {url}");
        assert_eq!(code_with(&new, &url).await, Code::RegisterAgain, "the new key at {url}");
    }
    let (rows, _) = world.end_well().await;
    let ended =
        |row: &carillon_tests::LogRow| row.failures == 0 && matches!(row.status, Status::Succeeded | Status::Cancelled);
    assert_all("without a failure, save those that the stop at the end took back", &rows, ended);
    for executor in leaving {
        let log = executor.process.log();
        assert!(!log.contains("without_valid_signature"), "refused while its key was valid: {log}");
    }
}

/// The same process goes over to another key: what it holds and runs stays its own, and nodes sign
/// with the key that it has now.
async fn an_executor_changes_its_key_and_keeps_what_it_has(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let old = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&old, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let task = api.make_task(&old, "by hand", "job", json!({})).await;
    api.run(task, None).await;
    let running = fake.next_running(task, &[]).await;
    assert_eq!(fake.last_signed(), (old.key.id.clone(), "HMAC-SHA256"));
    let held = api.run_log_with(task, json!({ "delay_ms": 3_000 })).await;
    await_until("the delayed run is held", 30, || async { when(fake.offered().iter().any(|item| item.log == held)) })
        .await;

    let new = rotate(&api, &old, 3_600_000).await;
    fake.take_key(new.key.clone()).await;
    revoke(&api, &old.key).await;
    assert_eq!(fake.heartbeat().await.cancel, [], "nothing is taken away");
    assert_eq!(fake.send_results(&[result(running, RunStatus::Succeeded)]).await, [Verdict::Applied]);
    let later = fake.next_running(task, &[running]).await;
    assert_eq!((later.0, later.1), (held, 1), "what was held starts, at its first attempt");
    assert_eq!(fake.send_results(&[result(later, RunStatus::Succeeded)]).await, [Verdict::Applied]);
    api.run(task, None).await;
    let next = fake.next_running(task, &[running, later]).await;
    assert_eq!(fake.last_signed(), (new.key.id.clone(), "HMAC-SHA256"), "signed with the key that it has now");
    assert_eq!(fake.send_results(&[result(next, RunStatus::Succeeded)]).await, [Verdict::Applied]);
    let (rows, _) = world.settle_and_check_with(|| fake.starts()).await;
    assert_all("one attempt each", &rows, |row| (row.attempt, row.failures) == (1, 0));
}

async fn a_revoked_key_is_refused_everywhere(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.nodes(&[("executors.abandon_after", "20s")]).await;
    let api = world.api();
    let stolen = api.make_app("retail", "orders").await;
    let good = rotate(&api, &stolen, 3_600_000).await;
    let thief = FakeExecutor::start(&stolen, &node.url, &["job"], true).await;
    thief.script(|script| script.auto_results = false);
    let task = api.make_task(&good, "by hand", "job", json!({})).await;
    api.run(task, None).await;
    let taken = thief.next_running(task, &[]).await;
    thief.script(|script| script.beats = false);

    for url in world.node_urls() {
        await_until("each node knows the key", 10, || async {
            when(code_with(&stolen, &url).await == Code::RegisterAgain)
        })
        .await;
    }
    revoke(&api, &stolen.key).await;
    let revoked = std::time::Instant::now();
    let urls = world.node_urls();
    // The node that was asked; `world.api()` asks the last one.
    let here = urls.last().expect("a node runs");
    assert_eq!(code_with(&stolen, here).await, Code::UnknownKey, "at once where it was revoked");
    for url in &urls {
        await_until("the other nodes refuse it", 10, || async {
            when(code_with(&stolen, url).await == Code::UnknownKey)
        })
        .await;
    }
    eprintln!("refused everywhere after {:?}", revoked.elapsed());
    for url in &urls {
        let wish = Results { executor_id: thief.executor_id(), results: vec![result(taken, RunStatus::Succeeded)] };
        let answer = Request::new(&stolen, url, "/openapi/results", &wish).send().await;
        assert_eq!((answer.code(), answer.is_signed), (Code::UnknownKey, false));
        let again = Request::new(&stolen, url, "/openapi/executors/register", &thief.description()).send().await;
        assert_eq!(again.code(), Code::UnknownKey);
    }
    assert_eq!(world.database.log(taken.0).await.status, Status::Dispatched, "its result does not count");

    // It is heard no more, and nothing is sent to it, while it still counts as online.
    let honest = FakeExecutor::start(&good, &node.url, &["job"], true).await;
    let offered = thief.offered().len();
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(api.run(task, None).await);
    }
    let rows = world.await_ends(&runs).await;
    assert_all("run by the honest one", &rows, |row| row.status == Status::Succeeded);
    assert_eq!(honest.starts().len(), 20);
    assert_eq!(thief.offered().len(), offered, "something was sent to the holder of a revoked key");
    drop(thief);
    world.await_end(taken.0).await;
}

async fn an_app_demands_how_everything_is_signed(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let path = path_of(&api, &app).await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    let task = api.make_task(&app, "by hand", "job", json!({})).await;
    let answer_to = async |method| {
        let beat = empty_heartbeat(1, "nobody");
        let request = Request::new(&app, &node.url, "/openapi/executors/heartbeat", &beat);
        request.with(|request| request.method = method).send().await
    };
    for (demanded, admitted, refused) in [
        ("MD5", SignMethod::Md5, Some(SignMethod::HmacSha256)),
        ("HMAC-SHA256", SignMethod::HmacSha256, Some(SignMethod::Md5)),
        ("", SignMethod::Md5, None),
        ("", SignMethod::HmacSha256, None),
    ] {
        api.patch(&path, json!({ "sign_method": demanded })).await;
        assert_eq!(
            answer_to(admitted).await.code(),
            Code::RegisterAgain,
            "{admitted:?} where `{demanded}` is demanded"
        );
        if let Some(other) = refused {
            let answer = answer_to(other).await;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            assert_eq!((answer.code(), answer.status), (Code::SignMethod, 401), "{text}");
            assert!(text.contains(&format!("requires signatures by {demanded}")), "{text}");
            assert!(!answer.is_signed);
        }
        // Nodes sign as the app demands, too.
        let run = api.run(task, None).await;
        await_until("the run is offered", 30, || async { when(fake.offered().iter().any(|item| item.log == run)) })
            .await;
        let expected = if demanded.is_empty() { "HMAC-SHA256" } else { demanded };
        assert_eq!(fake.last_signed().1, expected);
    }
    let errors = api.refused(400, Method::PATCH, &path, &json!({ "sign_method": "SHA1" })).await;
    assert_eq!(errors[0].0, "sign_method");
}

async fn a_secret_is_shown_once_and_uses_are_noted(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let keys = format!("{}/keys", path_of(&api, &app).await);
    let made = api.expect(201, Method::POST, &keys, Some(&json!({ "note": "of the batch cluster" }))).await;
    let second = App { key: key_of(&made), ..app.clone() };
    let first = listed(&api, &app, &app.key.id).await;
    assert_eq!((first["state"].as_str(), &first["last_used_at"]), (Some("valid"), &Value::Null));
    assert_eq!(listed(&api, &app, &second.key.id).await["note"], "of the batch cluster");
    assert_eq!(code_with(&second, &node.url).await, Code::RegisterAgain, "it counts at once");
    for listing in [api.get(&keys).await, api.get("/apps").await] {
        let text = listing.to_string();
        assert!(!text.contains(&app.key.secret) && !text.contains(&second.key.secret), "{text}");
    }
    for (path, body, field) in [
        (keys.clone(), json!({ "note": "x".repeat(161) }), "note"),
        (format!("{keys}/rotate"), json!({ "overlap_ms": -1 }), "overlap_ms"),
        (format!("{keys}/rotate"), json!({ "overlap_ms": 31 * 86_400_000i64 }), "overlap_ms"),
        (format!("{keys}/rotate"), json!({ "overlap": 1 }), "overlap"),
    ] {
        assert_eq!(api.refused(400, Method::POST, &path, &body).await[0].0, field, "{path} {body}");
    }
    for _ in 0..8 {
        api.expect(201, Method::POST, &keys, Some(&json!({}))).await;
    }
    api.refused(409, Method::POST, &keys, &json!({})).await;
    api.refused(404, Method::POST, "/apps/1/keys", &json!({})).await;
    api.expect(404, Method::DELETE, "/keys/ck_nobody", None).await;

    // Uses are written down now and then, and when the node leaves.
    assert_eq!(node.process.sigterm(60).await, Some(0));
    let log = node.process.log();
    assert!(!log.contains(&app.key.secret) && !log.contains(&second.key.secret), "a secret in the node's log");
    world.node("a", &[]).await;
    let api = world.api();
    assert!(listed(&api, &app, &second.key.id).await["last_used_at"].is_i64());
    assert_eq!(listed(&api, &app, &app.key.id).await["last_used_at"], Value::Null, "it was not used");
}
