//! Lists: every one has pages of a bounded size, and paging through finds each thing once.

use carillon_tests::openapi::operations;
use carillon_tests::people::PASSWORD;
use carillon_tests::wait::when;
use carillon_tests::{Api, Kind, World, api::id_of, await_until, now_ms};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::HashMap;

scenario!(every_list_comes_page_by_page: sqlite mariadb postgres);

/// So many are made of everything.
const COUNT: usize = 7;

/// Task files and the audit's chain have pages of their own kind.
const OTHERS: [&str; 2] = ["export_tasks", "read_audit_chain"];

/// Objects of each kind; the values in the lists' paths.
async fn fill(world: &World, admin: &Api, me: &Api) -> HashMap<&'static str, String> {
    let app = admin.make_app("near", "orders").await;
    for number in 0..2 {
        world.executor(&format!("e{number}"), &app).await;
    }
    await_until("both executors are known", 30, || async {
        when(admin.get("/executors").await["items"].as_array().is_some_and(|all| all.len() == 2))
    })
    .await;
    let app_id = admin.get("/apps").await["items"][0]["id"].as_str().unwrap().to_owned();
    let task = admin.make_task(&app, "daily", "tick", json!({ "cron": "0 0 9 * * ?", "started": false })).await;
    let starts_at = now_ms() + 86_400_000;
    for number in 0..COUNT {
        let name = format!("{number} of {COUNT}");
        admin.put_calendar(&format!("/calendars/near/{name}"), json!({ "description": name })).await;
        let ends_at = starts_at + 1_000 * (1 + number as i64 / 2);
        let window = json!({ "starts_at": starts_at, "ends_at": ends_at });
        admin.expect(201, Method::POST, "/tenants/near/maintenance", Some(&window)).await;
        let key = admin.expect(201, Method::POST, &format!("/apps/{app_id}/keys"), Some(&json!({}))).await;
        if number > 2 {
            let key = key["id"].as_str().unwrap();
            admin.expect(204, Method::DELETE, &format!("/keys/{key}"), None).await;
        }
        let range = json!({ "from": 1_760_000_000_000_i64, "until": 1_760_000_060_000_i64 });
        admin.expect(202, Method::POST, &format!("/tasks/{task}/backfills"), Some(&range)).await;
        admin.make_role(&name, Some("near"), &["tasks.read"]).await;
        admin.run_log_with(task, json!({ "delay_ms": 86_400_000 })).await;
        let user = json!({ "name": format!("user-{number}"), "tenant": "near" });
        admin.expect(201, Method::POST, "/users", Some(&user)).await;
        admin.make_app(&format!("tenant-{number}"), "orders").await;
        let made = admin.make_task(&app, &name, "tick", json!({ "started": false })).await;
        let origins = json!({ "items": [{ "task": made.to_string(), "origin": format!("old#{number}") }] });
        admin.expect(204, Method::PUT, "/tenants/near/origins", Some(&origins)).await;
        let token = json!({ "name": name, "permissions": ["tasks.read"], "expires_at": now_ms() + 3_600_000 });
        me.expect(201, Method::POST, "/account/tokens", Some(&token)).await;
        if number > 0 {
            me.sign_in("ann", PASSWORD).await;
        }
    }
    HashMap::from([
        ("list_keys", format!("/apps/{app_id}/keys")),
        ("list_backfills", format!("/tasks/{task}/backfills")),
        ("list_windows", "/tenants/near/maintenance".to_owned()),
        ("list_calendars", "/calendars/near".to_owned()),
        ("list_origins", "/tenants/near/origins".to_owned()),
    ])
}

/// What tells an item of a list from the others.
fn which(item: &Value) -> Value {
    let told = ["id", "name"].iter().map(|field| &item[*field]).find(|told| !told.is_null());
    told.unwrap_or(item).clone()
}

/// All of a list, so many at a time.
async fn pages(api: &Api, path: &str, cursor: &str, limit: usize) -> Vec<Value> {
    let (mut found, mut place) = (Vec::new(), String::new());
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let page = api.get(&format!("{path}{sign}limit={limit}{place}")).await;
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= limit, "{path}: {page}");
        found.extend(items.iter().map(which));
        let Some(next) = page["next"].as_str() else { return found };
        let next = next.replace('%', "%25").replace(' ', "%20").replace('&', "%26");
        place = format!("&{cursor}={next}");
    }
}

async fn every_list_comes_page_by_page(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("api.requests_per_second", "10000")]).await;
    let admin = world.api();
    let ann = admin.make_person("ann", None).await;
    admin.grant(&ann, "platform admin", None).await;
    let paths = fill(&world, &admin, &ann.api).await;
    let mut walked = 0;
    for operation in operations(&node.url).await {
        let has = |name: &str| operation.parameters.iter().any(|parameter| parameter == name);
        if operation.method != Method::GET || !has("limit") || OTHERS.contains(&operation.id.as_str()) {
            continue;
        }
        let path = paths.get(operation.id.as_str()).unwrap_or(&operation.path);
        assert!(!path.contains('{'), "say in this test how {} is called", operation.id);
        let cursor = if has("after") { "after" } else { "before" };
        let all = pages(&ann.api, path, cursor, 500).await;
        let least = if operation.id == "list_executors" { 2 } else { COUNT };
        assert!(all.len() >= least, "{path}: {all:?}");
        let mut once = all.clone();
        once.sort_by_key(ToString::to_string);
        once.dedup();
        assert_eq!(once.len(), all.len(), "{path}: something comes twice: {all:?}");
        for limit in [1, 3] {
            assert_eq!(pages(&ann.api, path, cursor, limit).await, all, "{path}, {limit} at a time");
        }
        for wrong in ["limit=0", "limit=501"] {
            ann.api.expect(400, Method::GET, &format!("{path}?{wrong}"), None).await;
        }
        if has("order") {
            let mut backwards = pages(&ann.api, &format!("{path}?order=oldest"), cursor, 3).await;
            backwards.reverse();
            assert_eq!(backwards, all, "{path}");
            ann.api.expect(400, Method::GET, &format!("{path}?order=best"), None).await;
        }
        walked += 1;
    }
    assert!(walked >= 16, "{walked} lists");
    keys_and_cursors(&ann.api, &paths["list_keys"], &paths["list_windows"]).await;
    world.assert_quiet(&[]);
}

/// Valid keys come first, though revoked ones are newer; an invented cursor is refused.
async fn keys_and_cursors(api: &Api, keys: &str, windows: &str) {
    let states: Vec<Value> =
        api.get(keys).await["items"].as_array().unwrap().iter().map(|key| key["state"].clone()).collect();
    let valid = states.iter().take_while(|state| **state == "valid").count();
    assert_eq!((valid, states.len()), (4, 1 + COUNT), "{states:?}");
    for wrong in ["x", "1-2", "2-1-ck", "1-x-ck"] {
        api.expect(400, Method::GET, &format!("{keys}?after={wrong}"), None).await;
    }
    for wrong in ["x", "1", "1-2-3", "1-x"] {
        api.expect(400, Method::GET, &format!("{windows}?after={wrong}"), None).await;
    }
    assert!(id_of(&api.get(windows).await["items"][0]["id"]).is_some());
}
