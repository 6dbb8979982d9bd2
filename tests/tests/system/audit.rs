//! The audit: one entry for each change, written with it or not at all, without secrets, in chains
//! that break when they are tampered with.

use carillon::domain::TenantId;
use carillon::domain::UserId;
use carillon::domain::audit::{AuditEntry, Chain};
use carillon_tests::api::{id_of, whole_calendar};
use carillon_tests::people::{FIRST_PASSWORD, PASSWORD};
use carillon_tests::{Api, Kind, World, await_until, http, now_ms};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

scenario!(each_change_has_one_entry: sqlite mariadb postgres);
scenario!(without_its_entry_nothing_is_changed: sqlite mariadb postgres);
scenario!(tampering_is_found: sqlite mariadb postgres);
scenario!(unrequested_runs_are_noted: sqlite mariadb postgres);
scenario!(a_cancel_that_fails_is_not_noted: sqlite);
scenario!(a_deleted_tenant_leaves_its_chain: sqlite mariadb postgres);
scenario!(a_killed_node_leaves_data_and_chain_in_step: sqlite mariadb postgres);

/// Kills of the node that writes.
const KILLS: usize = 4;

/// An entry as the API shows it, as the program hashes it.
fn entry(shown: &Value) -> AuditEntry {
    let text = |at: &str| shown[at].as_str().unwrap_or_default().to_owned();
    let maybe = |at: &str| shown[at].as_str().map(str::to_owned);
    AuditEntry {
        id: id_of(&shown["id"]).unwrap(),
        tenant_id: TenantId(id_of(&shown["tenant_id"]).unwrap_or(0)),
        seq: shown["seq"].as_i64().unwrap(),
        at: shown["at"].as_i64().unwrap(),
        actor_kind: text("actor_kind"),
        actor_id: UserId(id_of(&shown["actor_id"]).unwrap_or(0)),
        actor: text("actor"),
        address: text("address"),
        action: text("action"),
        target_kind: text("target_kind"),
        target_id: text("target_id"),
        target: text("target"),
        before: maybe("before"),
        after: maybe("after"),
        previous: text("previous"),
        hash: text("hash"),
    }
}

/// Reads a chain (the platform's without a tenant), page by page, and checks every link and the end.
async fn verify(api: &Api, tenant: Option<&str>) -> Result<Vec<AuditEntry>, String> {
    let of = tenant.map(|tenant| format!("&tenant={tenant}")).unwrap_or_default();
    let (mut chain, mut entries) = (Chain::default(), Vec::new());
    loop {
        let page = api.get(&format!("/audit/chain?limit=7&after={}{of}", chain.seq)).await;
        let items = page["items"].as_array().unwrap();
        for item in items {
            let entry = entry(item);
            chain.take(&entry)?;
            entries.push(entry);
        }
        if items.is_empty() {
            let end =
                Chain { seq: page["last_seq"].as_i64().unwrap(), hash: page["last_hash"].as_str().unwrap().to_owned() };
            return if chain == end { Ok(entries) } else { Err(format!("{chain:?} is not the end {end:?}")) };
        }
    }
}

async fn each_change_has_one_entry(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let app = admin.make_app("near", "orders").await;
    let ann = admin.make_person("ann", Some("near")).await;
    let grant = admin.grant(&ann, "tenant admin", Some("near")).await;
    let task = json!({ "tenant": "near", "app": "orders", "name": "close", "handler": "tick" });
    let task = ann.api.expect(201, Method::POST, "/tasks", Some(&task)).await["id"].as_str().unwrap().to_owned();
    let path = format!("/tasks/{task}");
    ann.api.patch(&path, json!({ "description": "first" })).await;
    ann.api.patch(&path, json!({ "description": "second" })).await;
    ann.api.expect(200, Method::POST, &format!("{path}/start"), None).await;
    // Refused, each in its own way: no entry.
    ann.api.expect(400, Method::PATCH, &path, Some(&json!({ "cron": "nonsense" }))).await;
    ann.api.expect(409, Method::PATCH, &path, Some(&json!({ "description": "third", "revision": 1 }))).await;
    ann.api.expect(403, Method::POST, "/tenants", Some(&json!({ "name": "mine" }))).await;
    ann.api.expect(404, Method::DELETE, "/tasks/1", None).await;
    ann.api.expect(409, Method::POST, "/apps", Some(&json!({ "tenant": "near", "name": "orders" }))).await;
    admin.expect(409, Method::DELETE, "/tenants/near", None).await;
    // Nothing to do: no entry either.
    ann.api.expect(200, Method::POST, &format!("{path}/start"), None).await;

    let token = json!({ "name": "ci", "permissions": ["tasks.run"], "expires_at": now_ms() + 60_000 });
    let token = ann.api.expect(201, Method::POST, "/account/tokens", Some(&token)).await;
    let program = ann.api.carrying(token["secret"].as_str().unwrap());
    program.expect(202, Method::POST, &format!("{path}/run"), Some(&json!({ "delay_ms": 60_000 }))).await;
    let reset = admin.expect(200, Method::POST, &format!("/users/{}/password", ann.id), None).await;
    admin.expect(204, Method::DELETE, &format!("/users/{}/grants/{grant}", ann.id), None).await;

    let entries = verify(&admin, Some("near")).await.unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    let expected = [
        "create_app",
        "create_user",
        "sign_in",
        "change_password",
        "create_grant",
        "create_task",
        "edit_task",
        "edit_task",
        "start_task",
        "create_my_token",
        "run_task",
        "reset_password",
        "delete_grant",
    ];
    assert_eq!(actions, expected);
    assert_eq!(
        verify(&admin, None).await.unwrap().iter().map(|entry| entry.action.as_str()).collect::<Vec<_>>(),
        ["create_user", "create_grant", "create_tenant"],
        "the first user is the node's work"
    );
    // Who, from where, before and after.
    let edit = &entries[7];
    assert_eq!((edit.actor_kind.as_str(), edit.actor.as_str(), edit.actor_id), ("user", "ann", UserId(ann.id)));
    assert_eq!(
        (edit.address.as_str(), edit.target_id.as_str(), edit.target.as_str()),
        ("127.0.0.1", task.as_str(), "close")
    );
    let said =
        |text: &Option<String>| serde_json::from_str::<Value>(text.as_ref().unwrap()).unwrap()["description"].clone();
    assert_eq!((said(&edit.before), said(&edit.after)), (json!("first"), json!("second")));
    let run = entries.iter().find(|entry| entry.action == "run_task").unwrap();
    assert_eq!((run.actor_kind.as_str(), run.actor.as_str(), run.actor_id), ("token", "ann (ci)", UserId(ann.id)));
    assert_eq!(entries[0].actor_kind, "setting");
    // Found by what it is about.
    for query in [
        format!("target={task}&action=edit_task"),
        format!("actor={}&action=edit_task", ann.id),
        "kind=task&action=edit_task&tenant=near".to_owned(),
    ] {
        assert_eq!(admin.get(&format!("/audit?{query}")).await["items"].as_array().unwrap().len(), 2, "{query}");
    }
    // No secret, neither in the entries nor in what the node wrote down.
    let text = format!("{entries:?} {}", admin.get("/audit?limit=500").await);
    let secrets = [
        PASSWORD,
        FIRST_PASSWORD,
        reset["password"].as_str().unwrap(),
        token["secret"].as_str().unwrap(),
        app.key.secret.as_str(),
        ann.api.token(),
        carillon_tests::node::TOKEN,
        "argon2",
    ];
    let log = world.node_logs();
    for secret in secrets {
        assert!(!text.contains(secret), "the audit tells a secret: {secret}");
        assert!(!log.contains(secret), "the log tells a secret: {secret}");
    }
    world.assert_quiet(&[]);
}

async fn without_its_entry_nothing_is_changed(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let app = admin.make_app("near", "orders").await;
    let task = admin.make_task(&app, "close", "tick", json!({ "description": "first", "started": false })).await;
    let ann = admin.make_person("ann", Some("near")).await;
    world.database.execute("ALTER TABLE audit_entry RENAME TO audit_away").await;
    let text = json!({ "description": "second" });
    for (method, path, body) in [
        (Method::PATCH, format!("/tasks/{task}"), Some(text.clone())),
        (Method::POST, format!("/tasks/{task}/start"), None),
        (Method::DELETE, format!("/tasks/{task}"), None),
        (Method::PATCH, "/tenants/near".to_owned(), Some(text)),
        (Method::PUT, "/calendars/near/cn".to_owned(), Some(whole_calendar(json!({ "excluded_weekdays": ["sun"] })))),
        (Method::POST, "/apps".to_owned(), Some(json!({ "tenant": "near", "name": "ledger" }))),
        (Method::DELETE, format!("/users/{}", ann.id), None),
        (Method::POST, format!("/users/{}/password", ann.id), None),
        (Method::POST, format!("/users/{}/grants", ann.id), Some(json!({ "role": "4", "tenant": "near" }))),
        (Method::POST, "/roles".to_owned(), Some(json!({ "name": "r", "tenant": "near", "permissions": [] }))),
        (Method::POST, format!("/tasks/{task}/run"), Some(json!({ "delay_ms": 60_000 }))),
        (Method::POST, "/login".to_owned(), Some(json!({ "name": "ann", "password": PASSWORD }))),
    ] {
        let (status, answer) = admin.send(method.clone(), &path, body.as_ref()).await;
        assert_eq!(status, 500, "{method} {path}: {answer}");
        assert!(!answer.to_string().contains("audit"), "{answer}");
    }
    world.database.execute("ALTER TABLE audit_away RENAME TO audit_entry").await;
    let now = admin.task(task).await;
    assert_eq!((&now["description"], &now["state"], &now["revision"]), (&json!("first"), &json!("stopped"), &json!(1)));
    assert_eq!(admin.get("/tenants/near").await["description"], "");
    assert_eq!(admin.get("/calendars/near").await["items"], json!([]));
    assert_eq!(admin.get("/apps").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(admin.get("/task-logs").await["items"], json!([]));
    assert_eq!(admin.get(&format!("/users/{}", ann.id)).await["grants"], json!([]));
    ann.api.get("/session").await;
    verify(&admin, Some("near")).await.unwrap();
}

async fn tampering_is_found(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    admin.make_app("near", "orders").await;
    for number in 0..20 {
        admin.patch("/tenants/near", json!({ "description": format!("{number}") })).await;
    }
    let good = verify(&admin, Some("near")).await.unwrap();
    assert_eq!(good.len(), 21);
    let of = format!("tenant_id = {}", good[0].tenant_id);
    let columns = "tenant_id, at, actor_kind, actor_id, actor, address, action, target_kind, target_id, target, \
         before_json, after_json, previous, hash";
    for (what, doing, undoing) in [
        (
            "a changed text",
            format!("UPDATE audit_entry SET actor = 'bob' WHERE {of} AND seq = 9"),
            format!("UPDATE audit_entry SET actor = 'api.token' WHERE {of} AND seq = 9"),
        ),
        (
            "a changed time",
            format!("UPDATE audit_entry SET at = at + 1 WHERE {of} AND seq = 9"),
            format!("UPDATE audit_entry SET at = at - 1 WHERE {of} AND seq = 9"),
        ),
        (
            "a forgotten before",
            format!("UPDATE audit_entry SET before_json = NULL WHERE {of} AND seq = 9"),
            format!(
                "UPDATE audit_entry SET before_json = '{}' WHERE {of} AND seq = 9",
                good[8].before.as_ref().unwrap()
            ),
        ),
        (
            "a deleted row",
            format!("UPDATE audit_entry SET tenant_id = -7 WHERE {of} AND seq = 9"),
            "UPDATE audit_entry SET tenant_id = TENANT WHERE tenant_id = -7"
                .replace("TENANT", &good[0].tenant_id.to_string()),
        ),
        (
            "a deleted end",
            format!("UPDATE audit_entry SET tenant_id = -7 WHERE {of} AND seq = 21"),
            "UPDATE audit_entry SET tenant_id = TENANT WHERE tenant_id = -7"
                .replace("TENANT", &good[0].tenant_id.to_string()),
        ),
        (
            "an inserted row",
            format!(
                "INSERT INTO audit_entry (id, seq, {columns}) SELECT 7, 22, {columns} FROM audit_entry WHERE {of} AND seq = 21"
            ),
            "DELETE FROM audit_entry WHERE id = 7".to_owned(),
        ),
        (
            "two rows exchanged",
            format!("UPDATE audit_entry SET seq = CASE WHEN seq = 3 THEN -4 ELSE -3 END WHERE {of} AND seq IN (3, 4)"),
            format!("UPDATE audit_entry SET seq = CASE WHEN seq = -4 THEN 3 ELSE 4 END WHERE {of} AND seq < 0"),
        ),
    ] {
        assert!(world.database.execute(&doing).await > 0, "{what}: {doing}");
        assert!(verify(&admin, Some("near")).await.is_err(), "{what} is not found");
        assert!(world.database.execute(&undoing).await > 0, "{what}: {undoing}");
        assert_eq!(verify(&admin, Some("near")).await.as_ref(), Ok(&good), "{what} was not undone");
    }
    // The API has no way to do any of it.
    for method in [Method::PUT, Method::DELETE, Method::POST] {
        admin.expect(405, method, "/audit", None).await;
    }
    world.assert_quiet(&[]);
}

/// What a node does by itself, and what a registration brings about.
async fn unrequested_runs_are_noted(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let first = verify(&admin, None).await.unwrap();
    let admins: Vec<_> = first.iter().map(|e| (e.actor_kind.as_str(), e.action.as_str(), e.target.as_str())).collect();
    assert_eq!(admins, [("node", "create_user", "admin"), ("node", "create_grant", "admin")]);
    assert!(!first[0].actor.is_empty() && first[0].address.starts_with("http://"), "{first:?}");

    let app = admin.make_app("near", "orders").await;
    let executor = world.executor("e1", &app).await;
    let of_executor = async || {
        let entries = verify(&admin, Some("near")).await.unwrap();
        entries.into_iter().filter(|entry| entry.actor_kind == "executor").collect::<Vec<_>>()
    };
    let made = of_executor().await;
    let tasks = admin.tasks().await;
    assert_eq!(made.len(), tasks.len(), "one of each task");
    for task in &tasks {
        let entry = made.iter().find(|entry| json!(entry.target_id) == task["id"]).unwrap();
        assert_eq!((entry.action.as_str(), &entry.actor), ("create_task", &app.key.id));
        assert!(entry.address.ends_with(&format!(":{}", executor.port)), "{entry:?}");
        let after: Value = serde_json::from_str(entry.after.as_ref().unwrap()).unwrap();
        assert_eq!((&after["handler"], &after["started"]), (&task["handler"], &json!(false)));
    }
    // Another process of the same handlers makes no tasks, and no entries.
    world.executor("e2", &app).await;
    assert_eq!(of_executor().await, made);

    let fields =
        json!({ "schedule": "fixed_rate", "interval_ms": 3_600_000, "pause_after_failures": 1, "max_retries": 0 });
    let task = admin.make_task(&app, "failing", "fail", fields).await;
    world.await_end(admin.run(task, None).await).await;
    let path = format!("/audit?target={task}&action=pause_task");
    let paused = await_until("it pauses by itself", 30, || async {
        admin.get(&path).await["items"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!((&paused["actor_kind"], &paused["actor"]), (&json!("node"), &json!(first[0].actor)));
    let note = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["pause_note"].clone();
    assert_eq!(note(&paused["before"]), Value::Null);
    assert_eq!(note(&paused["after"]), "paused by itself after 1 failed runs in a row");
}

/// For a run without an executor, and for one that an executor runs: the entry comes with the change.
async fn a_cancel_that_fails_is_not_noted(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let app = admin.make_app("near", "orders").await;
    world.executor("e1", &app).await;
    let task = admin.make_task(&app, "long", "overlap", json!({ "params": r#"{"ms": 60000}"# })).await;
    let waiting = admin.run_log_with(task, json!({ "delay_ms": 86_400_000 })).await;
    let running = admin.run(task, None).await;
    world.await_inside(task, 1).await;
    let noted = async |log: i64| admin.get(&format!("/audit?target={log}&action=cancel_run")).await["items"].clone();
    let refuse = "CREATE TRIGGER no_change BEFORE UPDATE ON task_log BEGIN SELECT RAISE(ABORT, 'refused'); END";
    world.database.execute(refuse).await;
    for log in [waiting, running] {
        assert_eq!(admin.kill(log).await.0, 500);
        assert_eq!(noted(log).await, json!([]));
    }
    world.database.execute("DROP TRIGGER no_change").await;
    let said = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["status"].clone();
    for (log, from, to) in [(waiting, "init", "cancelled"), (running, "dispatched", "stopping")] {
        let status = admin.kill(log).await.0;
        assert!([200, 202].contains(&status), "{status}");
        let entries = noted(log).await;
        assert_eq!(entries.as_array().unwrap().len(), 1, "{entries}");
        assert_eq!((said(&entries[0]["before"]), said(&entries[0]["after"])), (json!(from), json!(to)));
        world.await_end(log).await;
    }
    // What has ended is not cancelled, and nothing is said.
    assert_eq!(admin.kill(waiting).await.0, 409);
    assert_eq!(noted(waiting).await.as_array().unwrap().len(), 1);
    verify(&admin, Some("near")).await.unwrap();
}

/// Who may read the audit on the platform reads it, and verifies it, by the tenant's id.
async fn a_deleted_tenant_leaves_its_chain(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    admin.make_app("near", "orders").await;
    let auditor = admin.make_person("auditor", Some("near")).await;
    admin.grant(&auditor, "tenant admin", Some("near")).await;
    let far = admin.expect(201, Method::POST, "/tenants", Some(&json!({ "name": "far" }))).await["id"].clone();
    let far = far.as_str().unwrap();
    admin.patch("/tenants/far", json!({ "description": "soon gone" })).await;
    admin.expect(204, Method::DELETE, "/tenants/far", None).await;
    admin.expect(404, Method::GET, "/audit/chain?tenant=far", None).await;

    let chains = admin.get("/audit/chains").await["items"].clone();
    let chain = chains.as_array().unwrap().iter().find(|chain| chain["tenant_id"] == far).unwrap();
    assert_eq!((&chain["tenant"], &chain["last_seq"]), (&Value::Null, &json!(1)), "{chains}");
    assert_eq!(chains[0]["tenant_id"], Value::Null, "the platform's comes first");
    assert_eq!(chains.as_array().unwrap().len(), 3, "{chains}");
    let page = admin.get(&format!("/audit/chain?tenant_id={far}")).await;
    assert_eq!((&page["last_hash"], &page["items"][0]["hash"]), (&chain["last_hash"], &chain["last_hash"]));
    assert_eq!(page["items"][0]["action"], "edit_tenant");
    let found = admin.get(&format!("/audit?tenant_id={far}")).await;
    assert_eq!(found["items"], page["items"]);
    // By pages.
    let first = admin.get("/audit/chains?limit=1").await;
    let rest = admin.get(&format!("/audit/chains?after={}", first["next"].as_str().unwrap())).await;
    assert_eq!(rest["items"].as_array().unwrap().len(), 2, "{rest}");
    for (status, path) in [
        (404, "/audit/chain?tenant_id=12".to_owned()),
        (400, "/audit/chain?tenant_id=far".to_owned()),
        (400, format!("/audit/chain?tenant=near&tenant_id={far}")),
        (400, format!("/audit?tenant=near&tenant_id={far}")),
    ] {
        admin.expect(status, Method::GET, &path, None).await;
    }

    // The user's own only.
    let own = auditor.api.get("/audit/chains").await["items"].clone();
    assert_eq!((own.as_array().unwrap().len(), &own[0]["tenant"]), (1, &json!("near")), "{own}");
    let id = own[0]["tenant_id"].as_str().unwrap();
    auditor.api.get(&format!("/audit/chain?tenant_id={id}")).await;
    for path in [
        format!("/audit/chain?tenant_id={far}"),
        format!("/audit?tenant_id={far}"),
        "/audit/chain?tenant_id=0".to_owned(),
    ] {
        auditor.api.expect(404, Method::GET, &path, None).await;
    }
}

async fn a_killed_node_leaves_data_and_chain_in_step(kind: Kind) {
    let world = World::new(kind).await;
    let mut node = world.node("a", &[]).await;
    let admin = world.api();
    let app = admin.make_app("near", "orders").await;
    let task = admin.make_task(&app, "close", "tick", json!({ "started": false })).await;
    let done = Arc::new(AtomicUsize::new(0));
    for kill in 1..=KILLS {
        let (api, counted) = (Api::new(&node.url), Arc::clone(&done));
        let writer = tokio::spawn(async move {
            let client = http::shared();
            for number in 0.. {
                let body = json!({ "description": format!("{kill}.{number}") });
                let request = client.patch(api.address(&format!("/tasks/{task}"))).bearer_auth(api.token()).json(&body);
                match request.send().await {
                    Ok(answer) => assert_eq!(answer.status(), 200),
                    Err(_) => return,
                }
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let enough = done.load(Ordering::SeqCst) + 10;
        await_until("some edits are made", 60, || async { (done.load(Ordering::SeqCst) > enough).then_some(()) }).await;
        node.process.kill9().await;
        writer.await.unwrap();
        node = world.node(&format!("after-{kill}"), &[]).await;
        let api = Api::new(&node.url);
        let now = api.task(task).await;
        let entries = verify(&api, Some("near")).await.unwrap();
        let edits: Vec<&AuditEntry> = entries.iter().filter(|entry| entry.action == "edit_task").collect();
        assert_eq!(now["revision"], json!(edits.len() + 1), "kill {kill}: as many entries as edits");
        let counted = done.load(Ordering::SeqCst);
        assert!((counted..=counted + kill).contains(&edits.len()), "{counted} answered, {} written", edits.len());
        let last: Value = serde_json::from_str(edits.last().unwrap().after.as_ref().unwrap()).unwrap();
        assert_eq!(last["description"], now["description"], "kill {kill}");
    }
}
