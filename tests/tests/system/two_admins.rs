//! Two admins change one thing: one wins, the other is told and loses nothing.

use carillon_tests::api::whole_calendar;
use carillon_tests::wait::when;
use carillon_tests::{Api, Kind, World, await_until, http};
use reqwest::Method;
use reqwest::header::{ETAG, IF_MATCH};
use serde_json::{Value, json};

scenario!(of_two_edits_of_a_task_one_wins: sqlite mariadb postgres);
scenario!(everything_with_a_revision_refuses_to_be_overwritten: sqlite mariadb postgres);
scenario!(no_edit_is_lost_in_silence: sqlite mariadb postgres);

/// Pairs of edits at the same moment.
const ROUNDS: usize = 10;

/// By what the fields of a thing are edited.
fn edits(path: &str) -> Method {
    if path.starts_with("/calendars/") { Method::PUT } else { Method::PATCH }
}

/// An edit with `If-Match`: status, `ETag`, answer.
async fn put_if(api: &Api, path: &str, etag: &str, body: &Value) -> (u16, String, Value) {
    let request = http::shared()
        .request(edits(path), api.address(path))
        .bearer_auth(api.token())
        .header(IF_MATCH, etag)
        .json(body);
    let answer = request.send().await.unwrap();
    let etag = answer.headers().get(ETAG).map(|etag| etag.to_str().unwrap().to_owned());
    (answer.status().as_u16(), etag.unwrap_or_default(), answer.json().await.unwrap())
}

async fn etag_of(api: &Api, path: &str) -> String {
    let answer = http::shared().get(api.address(path)).bearer_auth(api.token()).send().await.unwrap();
    answer.headers()[ETAG].to_str().unwrap().to_owned()
}

async fn of_two_edits_of_a_task_one_wins(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let urls = world.node_urls();
    let admin = world.api();
    let app = admin.make_app("near", "orders").await;
    let task = admin.make_task(&app, "close", "tick", json!({ "cron": "0 0 9 * * ?" })).await;
    let path = format!("/tasks/{task}");
    let (ann, bob) = (Api::new(&urls[0]), Api::new(&urls[urls.len() - 1]));
    for round in 0..ROUNDS {
        let etag = etag_of(&ann, &path).await;
        let revision: i64 = etag.trim_matches('"').parse().unwrap();
        let of = |who: &str| json!({ "description": format!("{who} {round}"), "max_retries": round + 1 });
        let mut in_the_body = of("bob");
        in_the_body["revision"] = json!(revision);
        let ann_body = of("ann");
        let by_ann = put_if(&ann, &path, &etag, &ann_body);
        let by_bob = bob.send(Method::PATCH, &path, Some(&in_the_body));
        let ((by_ann, _, ann_answer), (by_bob, bob_answer)) = tokio::join!(by_ann, by_bob);
        let now = admin.task(task).await;
        let (winner, loser) = if by_ann == 200 { ("ann", &bob_answer) } else { ("bob", &ann_answer) };
        let mut statuses = [by_ann, by_bob];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{ann_answer} {bob_answer}");
        assert_eq!(now["description"], format!("{winner} {round}"));
        assert_eq!(now["revision"], revision + 1, "the loser changed nothing");
        assert!(loser["detail"].as_str().unwrap().contains("has changed in the meantime"), "{loser}");
        // The loser reads again and goes on.
        let (status, ..) =
            put_if(&bob, &path, &etag_of(&bob, &path).await, &json!({ "retry_interval_ms": 1_000 + round })).await;
        assert_eq!(status, 200);
        assert_eq!(admin.task(task).await["description"], format!("{winner} {round}"), "both edits are there");
    }
    // Both ways count when both are given.
    let etag = etag_of(&ann, &path).await;
    let revision: i64 = etag.trim_matches('"').parse().unwrap();
    let body = json!({ "description": "x", "revision": revision });
    assert_eq!(put_if(&ann, &path, &format!("\"{}\"", revision - 1), &body).await.0, 409);
    assert_eq!(put_if(&ann, &path, "\"nonsense\"", &body).await.0, 400);
    assert_eq!(put_if(&ann, &path, "*", &body).await.0, 200);
    // One entry for each edit that was made.
    let edits = admin.get(&format!("/audit?target={task}&action=edit_task&limit=500")).await;
    assert_eq!(edits["items"].as_array().unwrap().len(), 2 * ROUNDS + 1, "{edits}");
    world.assert_quiet(&[]);
}

async fn everything_with_a_revision_refuses_to_be_overwritten(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let orders = admin.make_app("near", "orders").await;
    let app = admin.get("/apps").await["items"][0]["id"].as_str().unwrap().to_owned();
    let role = admin.make_role("readers", Some("near"), &["tasks.read"]).await;
    let ann = admin.make_person("ann", Some("near")).await;
    admin.put_calendar("/calendars/near/cn", json!({ "excluded_weekdays": ["sun"] })).await;
    let process = world.executor("e1", &orders).await;
    let executor = world.database.executor_at(process.port).await;
    let (text, calendar) = (json!({ "description": "new" }), whole_calendar(json!({ "excluded_weekdays": ["sat"] })));
    for (path, body) in [
        ("/tenants/near".to_owned(), text.clone()),
        (format!("/apps/{app}"), text.clone()),
        (format!("/roles/{role}"), text.clone()),
        (format!("/users/{}", ann.id), json!({ "display_name": "new" })),
        ("/calendars/near/cn".to_owned(), calendar),
        ("/tenants/near/quotas".to_owned(), json!({ "max_tasks": 100 })),
        (format!("/executors/{executor}"), json!({ "weight": 7 })),
    ] {
        let read = etag_of(&admin, &path).await;
        let (status, next, answer) = put_if(&admin, &path, &read, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        assert_ne!(next, read, "{path}");
        let before = steady(&admin, &path).await;
        assert_eq!(put_if(&admin, &path, &read, &body).await.0, 409, "{path}");
        assert_eq!(steady(&admin, &path).await, before, "{path}");
        assert_eq!(etag_of(&admin, &path).await, next, "{path}: what an edit answers is what is then there");
    }
    world.assert_quiet(&[]);
}

/// A thing without what changes by itself.
async fn steady(api: &Api, path: &str) -> Value {
    let mut shown = api.get(path).await;
    for field in ["heartbeat_at", "held", "running"] {
        shown.as_object_mut().unwrap().remove(field);
    }
    shown
}

/// Two admins who do not say which revision they have read, at the same moment, at two nodes: who is
/// answered 200 is in what is then there, and what the audit says was there before was there.
async fn no_edit_is_lost_in_silence(kind: Kind) {
    let world = World::new(kind).await;
    world.nodes(&[]).await;
    let urls = world.node_urls();
    let admin = world.api();
    let app = admin.make_app("near", "orders").await;
    let process = world.executor("e1", &app).await;
    let executor = world.database.executor_at(process.port).await;
    let (ann, bob) = (Api::new(&urls[0]), Api::new(&urls[urls.len() - 1]));
    let executor_path = format!("/executors/{executor}");
    for node in [&ann, &bob] {
        await_until("every node has heard of the executor", 30, || async {
            when(node.send(Method::GET, &executor_path, None).await.0 == 200)
        })
        .await;
    }
    admin.patch(&executor_path, json!({ "note": "leaks memory" })).await;
    let mut kept = json!({ "weight": 1, "disabled": false, "note": "leaks memory" });
    for round in 0..ROUNDS {
        let weight = json!({ "weight": 10 + round });
        let disabled = json!({ "disabled": round % 2 == 0 });
        for edit in both(&ann, &bob, &executor_path, [&weight, &disabled]).await {
            kept.as_object_mut().unwrap().extend(edit.as_object().unwrap().clone());
        }
        let now = bob.get(&executor_path).await;
        for (field, value) in kept.as_object().unwrap() {
            assert_eq!(now[field], *value, "what is not named stays: {now}");
        }
        let calendar =
            |day: &str| whole_calendar(json!({ "excluded_weekdays": [day], "description": format!("round {round}") }));
        let days = [&calendar("sat"), &calendar("sun")];
        both(&ann, &bob, "/calendars/near/cn", days).await;
        let quotas = [&json!({ "max_tasks": 100 + round }), &json!({ "max_concurrent": 1 + round })];
        both(&ann, &bob, "/tenants/near/quotas", quotas).await;
    }
    for action in ["edit_executor", "put_calendar", "edit_quotas"] {
        let found = admin.get(&format!("/audit?action={action}&limit=500")).await;
        let mut entries = found["items"].as_array().unwrap().clone();
        entries.sort_by_key(|entry| entry["seq"].as_i64());
        assert!(entries.len() >= ROUNDS, "{action}: {found}");
        for pair in entries.windows(2) {
            assert_eq!(pair[1]["before"], pair[0]["after"], "{action}: the audit knows what was there");
        }
    }
    world.assert_quiet(&[]);
}

/// Two edits at once; those that were made.
async fn both<'a>(ann: &Api, bob: &Api, path: &str, bodies: [&'a Value; 2]) -> Vec<&'a Value> {
    let by_ann = ann.send(edits(path), path, Some(bodies[0]));
    let by_bob = bob.send(edits(path), path, Some(bodies[1]));
    let (by_ann, by_bob) = tokio::join!(by_ann, by_bob);
    let mut made = Vec::new();
    for ((status, answer), edit) in [by_ann, by_bob].into_iter().zip(bodies) {
        assert!([200, 409].contains(&status), "{path}: {status} {answer}");
        made.extend((status == 200).then_some(edit));
    }
    assert!(!made.is_empty(), "{path}: one of them wins");
    made
}
