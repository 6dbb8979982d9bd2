//! No user can extend their own permissions: by roles, grants, passwords, apps, tenants.

use carillon_tests::api::{id_of, whole_calendar};
use carillon_tests::people::Person;
use carillon_tests::{Api, Kind, World, now_ms};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

scenario!(no_one_can_raise_their_own_permissions: sqlite mariadb postgres);
scenario!(apps_narrow_what_is_granted: sqlite mariadb postgres);
scenario!(parents_in_other_apps_must_be_seen: sqlite);
scenario!(grants_of_other_tenants_are_hidden: sqlite mariadb postgres);

/// What a user can do, as the node tells them.
async fn access(of: &Api) -> Value {
    of.get("/session").await["access"].clone()
}

async fn no_one_can_raise_their_own_permissions(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    for tenant in ["near", "far"] {
        admin.make_app(tenant, "orders").await;
    }
    let words = [
        "users.read",
        "users.create",
        "users.edit",
        "users.delete",
        "roles.read",
        "roles.create",
        "roles.edit",
        "roles.delete",
        "grants.create",
        "grants.delete",
        "tasks.read",
    ];
    admin.make_role("people", Some("near"), &words).await;
    let ann = admin.make_person("ann", Some("near")).await;
    admin.grant(&ann, "people", Some("near")).await;
    let before = access(&ann.api).await;
    assert_eq!(before[0]["tenant"], "near", "where she is she knows, without seeing tenants");

    by_roles(&admin, &ann).await;
    by_grants(&admin, &ann).await;
    by_accounts(&admin, &ann).await;
    assert_eq!(access(&ann.api).await, before, "she has become more");
    world.assert_quiet(&[]);
}

async fn by_roles(admin: &Api, ann: &Person) {
    let own = admin.role("people").await;
    let wider = json!({ "permissions": ["tasks.read", "tasks.edit"] });
    // The role that she has herself, with one more.
    let answer = ann.api.expect(403, Method::PATCH, &format!("/roles/{own}"), Some(&wider)).await;
    assert!(answer["detail"].as_str().unwrap().contains("tasks.edit"), "{answer}");
    // A new one, in her tenant, for all, in another tenant.
    let new = |tenant: Option<&str>, permissions: &[&str]| json!({ "name": "more", "tenant": tenant, "permissions": permissions });
    ann.api.expect(403, Method::POST, "/roles", Some(&new(Some("near"), &["tasks.edit"]))).await;
    ann.api.expect(403, Method::POST, "/roles", Some(&new(None, &["tasks.read"]))).await;
    ann.api.expect(404, Method::POST, "/roles", Some(&new(Some("far"), &["tasks.read"]))).await;
    // Roles that are mightier than she, of another tenant, of all, built in.
    let mighty = admin.make_role("mighty", Some("near"), &["tasks.edit"]).await;
    let far = admin.make_role("far one", Some("far"), &["tasks.read"]).await;
    let of_all = admin.make_role("of all", None, &["tasks.read"]).await;
    for (role, edit, delete) in
        [(&mighty, 403, 403), (&far, 404, 404), (&of_all, 403, 403), (&"1".to_owned(), 409, 409)]
    {
        let path = format!("/roles/{role}");
        ann.api.expect(edit, Method::PATCH, &path, Some(&json!({ "permissions": ["tasks.read"] }))).await;
        ann.api.expect(delete, Method::DELETE, &path, None).await;
    }
}

async fn by_grants(admin: &Api, ann: &Person) {
    let path = format!("/users/{}/grants", ann.id);
    let role = |name: &'static str| admin.role(name);
    for (role, tenant, status) in [
        (role("tenant admin").await, Some("near"), 403),
        (role("platform admin").await, None, 403),
        (role("platform admin").await, Some("near"), 403),
        (role("mighty").await, Some("near"), 403),
        (role("people").await, None, 400),
        (role("people").await, Some("far"), 404),
        (role("of all").await, None, 403),
        (role("far one").await, Some("near"), 404),
    ] {
        let body = json!({ "role": role, "tenant": tenant });
        ann.api.expect(status, Method::POST, &path, Some(&body)).await;
    }
    // A role of another tenant is granted nowhere else, not even by who may everything.
    let body = json!({ "role": role("far one").await, "tenant": "near" });
    admin.expect(400, Method::POST, &path, Some(&body)).await;
    // What she does hold, she gives.
    let bob = admin.make_person("bob", Some("near")).await;
    let body = json!({ "role": role("people").await, "tenant": "near" });
    ann.api.expect(201, Method::POST, &format!("/users/{}/grants", bob.id), Some(&body)).await;
    // And takes nothing that is mightier.
    let mighty = admin.grant(&bob, "mighty", Some("near")).await;
    ann.api.expect(403, Method::DELETE, &format!("/users/{}/grants/{mighty}", bob.id), None).await;
    // When a role gains permissions, so do its users, and she can no longer manage them.
    assert_eq!(ann.api.send(Method::DELETE, &format!("/users/{}", bob.id), None).await.0, 403);
}

async fn by_accounts(admin: &Api, ann: &Person) {
    // Mightier in her own tenant; of the platform; of another tenant, seen here for a role here.
    let chief = admin.make_person("chief", Some("near")).await;
    admin.grant(&chief, "tenant admin", Some("near")).await;
    let owner = admin.make_person("owner", None).await;
    admin.grant(&owner, "people", Some("near")).await;
    let guest = admin.make_person("guest", Some("far")).await;
    admin.grant(&guest, "people", Some("near")).await;
    let stranger = admin.make_person("stranger", Some("far")).await;
    // Hers, and with a role elsewhere that she does not hold there.
    let both = admin.make_person("both", Some("near")).await;
    admin.grant(&both, "viewer", Some("far")).await;
    for (person, status) in [(&chief, 403), (&owner, 403), (&guest, 403), (&stranger, 404), (&both, 403)] {
        let path = format!("/users/{}", person.id);
        let edit = json!({ "disabled": true });
        ann.api.expect(status, Method::PATCH, &path, Some(&edit)).await;
        ann.api.expect(status, Method::DELETE, &path, None).await;
        ann.api.expect(status, Method::POST, &format!("{path}/password"), None).await;
        ann.api.expect(status, Method::DELETE, &format!("{path}/sessions"), None).await;
        person.api.get("/session").await;
    }
    // Creating a user of the platform, or of another tenant.
    ann.api.expect(400, Method::POST, "/users", Some(&json!({ "name": "x" }))).await;
    ann.api.expect(404, Method::POST, "/users", Some(&json!({ "name": "x", "tenant": "far" }))).await;
}

async fn apps_narrow_what_is_granted(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let orders = admin.make_app("near", "orders").await;
    let ledger = admin.make_app("near", "ledger").await;
    let far = admin.make_app("far", "orders").await;
    let id = |app: &'static str, tenant: &'static str| {
        let admin = admin.clone();
        async move { admin.get(&format!("/apps?tenant={tenant}&name={app}")).await["items"][0]["id"].clone() }
    };
    let (orders_id, ledger_id, far_id) =
        (id("orders", "near").await, id("ledger", "near").await, id("orders", "far").await);
    let task = |app| admin.make_task(app, "count", "tick", json!({ "started": false }));
    let (in_orders, in_ledger, in_far) = (task(&orders).await, task(&ledger).await, task(&far).await);

    let ann = admin.make_person("ann", Some("near")).await;
    let narrow = |apps: Value| json!({ "role": "2", "tenant": "near", "apps": apps });
    let grants = format!("/users/{}/grants", ann.id);
    // Apps of another tenant narrow nothing.
    admin.expect(400, Method::POST, &grants, Some(&narrow(json!([far_id])))).await;
    let grant = admin.expect(201, Method::POST, &grants, Some(&narrow(json!([orders_id])))).await;

    let run = json!({ "delay_ms": 86_400_000 });
    for (task, status) in [(in_orders, 202), (in_ledger, 404), (in_far, 404)] {
        ann.api.expect(status, Method::POST, &format!("/tasks/{task}/run"), Some(&run)).await;
    }
    assert_eq!(ann.api.get("/tasks").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(ann.api.get("/apps").await["items"].as_array().unwrap().len(), 1);
    let logs = ann.api.get("/task-logs").await;
    assert_eq!(logs["items"].as_array().unwrap().len(), 1, "{logs}");
    admin.expect(202, Method::POST, &format!("/tasks/{in_ledger}/run"), Some(&run)).await;
    assert_eq!(ann.api.get("/task-logs").await, logs, "the other app's runs are not hers");
    // What belongs to the tenant as a whole is out of reach.
    let window = json!({ "ends_at": now_ms() + 60_000 });
    ann.api.expect(403, Method::POST, "/tenants/near/maintenance", Some(&window)).await;
    ann.api.expect(403, Method::POST, "/apps", Some(&json!({ "tenant": "near", "name": "third" }))).await;
    ann.api.expect(403, Method::POST, "/users", Some(&json!({ "name": "x", "tenant": "near" }))).await;
    ann.api.expect(403, Method::PUT, "/calendars/near/c", Some(&whole_calendar(json!({})))).await;
    ann.api.expect(403, Method::GET, "/audit?tenant=near", None).await;
    assert_eq!(ann.api.get("/audit").await["items"], json!([]));
    // Widening: for herself, for the tenant, for the other app; taking what is wider.
    for apps in [json!([]), json!([ledger_id]), json!([orders_id, ledger_id])] {
        ann.api.expect(403, Method::POST, &grants, Some(&narrow(apps))).await;
    }
    // Whether an app that is not hers is there does not show.
    let refused = ann.api.expect(403, Method::POST, &grants, Some(&narrow(json!([ledger_id])))).await;
    for app in [json!("4242"), far_id] {
        assert_eq!(ann.api.expect(403, Method::POST, &grants, Some(&narrow(json!([app])))).await, refused);
    }
    let bob = admin.make_person("bob", Some("near")).await;
    let wide = admin.grant(&bob, "tenant admin", Some("near")).await;
    ann.api.expect(403, Method::DELETE, &format!("/users/{}/grants/{wide}", bob.id), None).await;
    ann.api.expect(403, Method::POST, &format!("/users/{}/password", bob.id), None).await;
    ann.api.expect(403, Method::PATCH, &format!("/users/{}", ann.id), Some(&json!({ "display_name": "A" }))).await;
    // Within her app she gives what she holds.
    let viewer = json!({ "role": "4", "tenant": "near", "apps": [orders_id] });
    ann.api.expect(201, Method::POST, &format!("/users/{}/grants", bob.id), Some(&viewer)).await;
    let id = id_of(&grant["grants"][0]["id"]).unwrap();
    admin.expect(204, Method::DELETE, &format!("{grants}/{id}"), None).await;
    ann.api.expect(403, Method::GET, "/tasks", None).await;
    world.assert_quiet(&[]);
}

/// A task that follows another hears when that one ends, and what it answered.
async fn parents_in_other_apps_must_be_seen(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    let orders = admin.make_app("near", "orders").await;
    let ledger = admin.make_app("near", "ledger").await;
    admin.make_task(&ledger, "prices", "tick", json!({ "started": false })).await;
    admin.make_task(&orders, "first", "tick", json!({ "started": false })).await;
    let ids = |name: &'static str| {
        let admin = admin.clone();
        async move { admin.get(&format!("/apps?tenant=near&name={name}")).await["items"][0]["id"].clone() }
    };
    let (orders_id, ledger_id) = (ids("orders").await, ids("ledger").await);
    let ann = admin.make_person("ann", Some("near")).await;
    let path = format!("/users/{}/grants", ann.id);
    let narrow = |role: String, app: &Value| json!({ "role": role, "tenant": "near", "apps": [app] });
    let manages = narrow(admin.role("tenant admin").await, &orders_id);
    admin.expect(201, Method::POST, &path, Some(&manages)).await;

    let task = |name: &str, fields: Value| {
        let mut task = json!({ "tenant": "near", "app": "orders", "name": name, "handler": "tick", "schedule": "none", "started": false });
        task.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        task
    };
    let file = |task: Value| json!({ "version": 1, "task": [task] });
    let made = ann.api.expect(201, Method::POST, "/tasks", Some(&task("child", json!({})))).await;
    let child = format!("/tasks/{}", made["id"].as_str().unwrap());
    let follow = |of: &str, output: bool| json!({ "parents": [{ "task": of }], "parent_output": output });
    // Out of reach: as good as not there, whichever way.
    let (mut answers, mut of_files) = (BTreeSet::new(), BTreeSet::new());
    for of in ["ledger/prices", "ledger/nothing", "nowhere/prices"] {
        for output in [false, true] {
            let (_, answer) = ann.api.send(Method::POST, "/tasks", Some(&task("x", follow(of, output)))).await;
            answers.insert(answer["errors"][0]["message"].to_string().replace(of, "…"));
            let (status, answer) = ann.api.send(Method::PATCH, &child, Some(&follow(of, output))).await;
            assert_eq!(status, 400, "{answer}");
            answers.insert(answer["errors"][0]["message"].to_string().replace(of, "…"));
        }
        for name in ["child", "x"] {
            let wrong = [task(name, follow(of, false)), task("wrong", json!({ "parents": [{ "task": "nobody" }] }))];
            let wrong = json!({ "version": 1, "task": wrong });
            let answer = ann.api.expect(400, Method::POST, "/tasks/apply", Some(&wrong)).await;
            of_files.insert(answer["errors"].to_string().replace(of, "…").replace(name, "…"));
        }
    }
    assert_eq!(answers.len(), 1, "what is hidden and what is not there answer alike: {answers:?}");
    assert_eq!(of_files.len(), 1, "in files, too: {of_files:?}");
    // A cycle through a task that she does not see, by links that others made.
    admin.expect(201, Method::POST, "/tasks", Some(&task("second", json!({})))).await;
    let beyond = json!({ "tenant": "near", "app": "ledger", "name": "beyond", "handler": "tick", "schedule": "none",
        "started": false, "parents": [{ "task": "orders/second" }] });
    admin.expect(201, Method::POST, "/tasks", Some(&beyond)).await;
    admin.expect(200, Method::PATCH, &child, Some(&follow("ledger/beyond", false))).await;
    let cycle = file(task("second", follow("child", false)));
    let answer = ann.api.expect(400, Method::POST, "/tasks/apply", Some(&cycle)).await.to_string();
    assert!(answer.contains("follows_itself") && !answer.contains("beyond"), "{answer}");
    // Her own app's, as before.
    ann.api.expect(200, Method::PATCH, &child, Some(&follow("first", true))).await;
    ann.api.expect(200, Method::PATCH, &child, Some(&follow("orders/first", false))).await;

    // Users who see the task may follow it; for its output they must see its runs.
    let looks = admin.make_role("looks", Some("near"), &["tasks.read"]).await;
    admin.expect(201, Method::POST, &path, Some(&narrow(looks, &ledger_id))).await;
    ann.api.expect(400, Method::PATCH, &child, Some(&follow("ledger/prices", true))).await;
    ann.api.expect(200, Method::PATCH, &child, Some(&follow("ledger/prices", false))).await;
    // It stays as it is, and no more than that.
    ann.api.expect(200, Method::PATCH, &child, Some(&json!({ "description": "after the prices" }))).await;
    ann.api.expect(400, Method::PATCH, &child, Some(&json!({ "parent_output": true }))).await;
    let applied = file(task("child", follow("ledger/prices", true)));
    ann.api.expect(400, Method::POST, "/tasks/apply", Some(&applied)).await;
    let reads = admin.make_role("reads", Some("near"), &["task_logs.read"]).await;
    admin.expect(201, Method::POST, &path, Some(&narrow(reads, &ledger_id))).await;
    ann.api.expect(200, Method::PATCH, &child, Some(&json!({ "parent_output": true }))).await;
    ann.api.expect(200, Method::POST, "/tasks/apply", Some(&applied)).await;
    world.assert_quiet(&[]);
}

async fn grants_of_other_tenants_are_hidden(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let admin = world.api();
    for tenant in ["near", "far"] {
        admin.make_app(tenant, "orders").await;
    }
    let far_id = admin.get("/tenants/far").await["id"].as_str().unwrap().to_owned();
    let chief = admin.make_person("chief", Some("near")).await;
    admin.grant(&chief, "tenant admin", Some("near")).await;
    admin.make_role("secret project", Some("far"), &["tasks.read"]).await;
    let both = admin.make_person("both", Some("near")).await;
    admin.grant(&both, "viewer", Some("near")).await;
    let elsewhere = admin.grant(&both, "secret project", Some("far")).await;
    for path in ["/users".to_owned(), format!("/users/{}", both.id), "/audit?limit=500".to_owned()] {
        let seen = chief.api.get(&path).await.to_string();
        assert!(seen.contains("viewer"), "{seen}");
        assert!(
            !seen.contains("secret project") && !seen.contains(&far_id),
            "{path} tells of the other tenant: {seen}"
        );
    }
    chief.api.expect(404, Method::DELETE, &format!("/users/{}/grants/{elsewhere}", both.id), None).await;
    // An admin of both sees both, and a deletion is reported to both.
    assert!(admin.get(&format!("/users/{}", both.id)).await.to_string().contains("secret project"));
    admin.expect(204, Method::DELETE, &format!("/users/{}", both.id), None).await;
    for tenant in ["near", "far"] {
        let told = admin.get(&format!("/audit?tenant={tenant}&action=delete_user")).await;
        assert_eq!(told["items"].as_array().unwrap().len(), 1, "{tenant}: {told}");
        assert_eq!(told.to_string().contains("secret project"), tenant == "far", "{told}");
    }
    // Creating started is starting.
    admin.make_role("drafts", Some("near"), &["tasks.read", "tasks.create", "tasks.edit"]).await;
    let writer = admin.make_person("writer", Some("near")).await;
    admin.grant(&writer, "drafts", Some("near")).await;
    let task = |started: bool| json!({ "tenant": "near", "app": "orders", "name": "t", "handler": "tick", "started": started });
    writer.api.expect(403, Method::POST, "/tasks", Some(&task(true))).await;
    let made = writer.api.expect(201, Method::POST, "/tasks", Some(&task(false))).await;
    let path = format!("/tasks/{}", made["id"].as_str().unwrap());
    writer.api.expect(403, Method::PATCH, &path, Some(&json!({ "started": true }))).await;
    writer.api.expect(403, Method::PATCH, &path, Some(&json!({ "pause_note": "no" }))).await;
    world.assert_quiet(&[]);
}
