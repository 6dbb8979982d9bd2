//! A right call of every operation, about things that are made for it and used up by it.

use carillon_protocol::sign::sha256_hex;
use carillon_tests::api::{id_of, whole_calendar};
use carillon_tests::people::FIRST_PASSWORD;
use carillon_tests::{Api, App, Executor, World, now_ms};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

/// A call: the values of the path's `{parameters}`, in their order, the query, the body.
#[derive(Debug, Clone, Default)]
pub struct Call {
    pub path: Vec<String>,
    pub query: String,
    pub body: Option<Value>,
    /// The response to a caller who holds the permission in another tenant only.
    pub elsewhere: Elsewhere,
}

/// What is said of another tenant's things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Elsewhere {
    /// 404.
    #[default]
    Absent,
    /// 200, without them.
    LeftOut,
    /// 400: names in a task file are refused field by field.
    Refused,
}

/// A tenant with an app and an executor.
#[derive(Debug)]
pub struct TenantFixture {
    pub tenant: String,
    pub app: App,
    pub app_id: i64,
    pub executor: i64,
    /// What lists show of it, and of nothing else.
    pub marks: Vec<String>,
    _process: Executor,
}

/// Names are used once.
static NEXT: AtomicU32 = AtomicU32::new(1);

fn fresh(what: &str) -> String {
    format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl TenantFixture {
    pub async fn new(world: &World, tenant: &str) -> Self {
        let api = world.api();
        let app = api.make_app(tenant, "orders").await;
        let process = world.executor(&format!("{tenant}-1"), &app).await;
        let apps = api.get(&format!("/apps?tenant={tenant}&name=orders")).await;
        let mut place = Self {
            tenant: tenant.to_owned(),
            app_id: id_of(&apps["items"][0]["id"]).unwrap(),
            executor: world.database.executor_at(process.port).await,
            app,
            marks: vec![format!("\"{tenant}\"")],
            _process: process,
        };
        let ids = [
            place.app_id,
            place.executor,
            place.task(&api).await,
            place.task_log(&api).await,
            place.user(&api).await,
            place.role(&api).await,
            place.token(world).await,
        ];
        place.marks.extend(ids.map(|id| format!("\"{id}\"")));
        place
    }

    async fn task(&self, api: &Api) -> i64 {
        api.make_task(&self.app, &fresh("task"), "tick", json!({ "cron": "0 0 9 * * ?", "started": false })).await
    }

    async fn task_log(&self, api: &Api) -> i64 {
        let task = self.task(api).await;
        api.run_log_with(task, json!({ "delay_ms": 86_400_000 })).await
    }

    async fn user(&self, api: &Api) -> i64 {
        made(api, "/users", json!({ "name": fresh("user"), "tenant": self.tenant, "password": FIRST_PASSWORD })).await
    }

    /// A user who is signed in.
    async fn visitor(&self, api: &Api) -> i64 {
        let user = self.user(api).await;
        let name = api.get(&format!("/users/{user}")).await["name"].clone();
        api.sign_in(name.as_str().unwrap(), FIRST_PASSWORD).await;
        user
    }

    async fn granted(&self, api: &Api) -> (i64, i64) {
        let user = self.user(api).await;
        let body = json!({ "role": api.role("viewer").await, "tenant": self.tenant });
        let answer = api.expect(201, Method::POST, &format!("/users/{user}/grants"), Some(&body)).await;
        (user, id_of(&answer["grants"][0]["id"]).unwrap())
    }

    async fn app(&self, api: &Api) -> i64 {
        made(api, "/apps", json!({ "tenant": self.tenant, "name": fresh("app") })).await
    }

    /// A key of an app that has another one beside it.
    async fn key(&self, api: &Api) -> String {
        let path = format!("/apps/{}/keys", self.app(api).await);
        let made = api.expect(201, Method::POST, &path, Some(&json!({}))).await;
        made["id"].as_str().unwrap_or_else(|| panic!("no id in {made}")).to_owned()
    }

    async fn role(&self, api: &Api) -> i64 {
        let permissions = ["tasks.read"];
        made(api, "/roles", json!({ "name": fresh("role"), "tenant": self.tenant, "permissions": permissions })).await
    }

    /// A token of a user of the tenant, past the API: only its owner could make it.
    async fn token(&self, world: &World) -> i64 {
        let user = self.user(&world.api()).await;
        let id = now_ms() * 1_000 + i64::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let sql = format!(
            "INSERT INTO api_token (id, hash, user_id, name, tenant_id, permissions, created_at, expires_at, used_at, \
             revoked_at) VALUES ({id}, 'h{id}', {user}, 'ci', 0, '[\"tasks.read\"]', 1, {}, 0, 0)",
            now_ms() + 86_400_000
        );
        world.database.execute(&sql).await;
        id
    }

    async fn calendar(&self, api: &Api) -> String {
        let name = fresh("calendar");
        api.put_calendar(&format!("/calendars/{}/{name}", self.tenant), json!({ "excluded_weekdays": ["sun"] })).await;
        name
    }

    async fn window(&self, api: &Api) -> i64 {
        made(api, &format!("/tenants/{}/maintenance", self.tenant), upcoming_window()).await
    }

    async fn backfill(&self, api: &Api) -> (i64, i64) {
        let task = self.task(api).await;
        let path = format!("/tasks/{task}/backfills");
        let answer = api.expect(202, Method::POST, &path, Some(&past_range())).await;
        (task, id_of(&answer["id"]).unwrap())
    }

    /// A task that fires once a day, and its fire after the next.
    async fn daily(&self, api: &Api) -> (i64, i64) {
        let mut body = self.new_task();
        body["cron"] = json!("0 0 3 * * ?");
        let task = made(api, "/tasks", body).await;
        let upcoming = api.get(&format!("/tasks/{task}/preview?count=2")).await;
        (task, upcoming["items"][1]["fire_time"].as_i64().unwrap())
    }

    /// A task that is a script, in an app of its own.
    async fn script(&self, api: &Api) -> i64 {
        let name = fresh("app");
        let app = made(api, "/apps", json!({ "tenant": self.tenant, "name": name })).await;
        api.put(&format!("/apps/{app}/scripts"), json!({ "allowed": true })).await;
        api.expect(201, Method::POST, &format!("/apps/{app}/keys"), Some(&json!({ "kind": "token" }))).await;
        let mut body = self.new_task();
        body["app"] = json!(name);
        let task = made(api, "/tasks", body).await;
        let script = json!({ "glue_type": "GLUE_SHELL", "source": "echo" });
        api.put(&format!("/tasks/{task}/script"), script).await;
        task
    }

    fn new_task(&self) -> Value {
        json!({ "tenant": self.tenant, "app": self.app.name, "name": fresh("task"), "handler": "tick" })
    }
}

async fn made(api: &Api, path: &str, body: Value) -> i64 {
    let answer = api.expect(201, Method::POST, path, Some(&body)).await;
    id_of(&answer["id"]).unwrap_or_else(|| panic!("no id in {answer}"))
}

fn upcoming_window() -> Value {
    let starts_at = now_ms() + 86_400_000;
    json!({ "starts_at": starts_at, "ends_at": starts_at + 3_600_000 })
}

/// A minute that has no fire: nothing is written for it.
fn past_range() -> Value {
    json!({ "from": 1_760_000_000_000_i64, "until": 1_760_000_060_000_i64 })
}

/// A right call of the operation of that id, about fresh things in `place`; `None` when nobody has
/// written down how it is called.
#[allow(clippy::too_many_lines)] // a list, one entry per operation
pub async fn call_of(id: &str, world: &World, place: &TenantFixture) -> Option<Call> {
    let api = &world.api();
    let tenant = place.tenant.as_str();
    let about = |path: &[&dyn std::fmt::Display]| Call {
        path: path.iter().map(ToString::to_string).collect(),
        ..Call::default()
    };
    let listing = |query: &str| Call { query: query.to_owned(), elsewhere: Elsewhere::LeftOut, ..Call::default() };
    let with = |call: Call, body: Value| Call { body: Some(body), ..call };
    Some(match id {
        "list_executors" | "list_roles" | "list_apps" | "list_users" | "list_tokens" | "list_tasks"
        | "list_tenants" | "list_task_logs" | "search_audit" | "list_audit_chains" => listing("limit=500"),
        "export_tasks" | "read_audit_chain" | "list_upcoming_fires" | "forecast_fires" => {
            Call { query: format!("tenant={tenant}"), ..Call::default() }
        }
        "list_nodes" | "list_settings" | "list_silences" | "list_clusters" => Call::default(),
        "redeem_sign_in" => {
            let (code, verifier) = (fresh("code"), fresh("verifier"));
            let hash = |text: &str| sha256_hex(text.as_bytes());
            let (user, over) = (place.user(api).await, now_ms() + 600_000);
            let (id, challenge) = (hash(&code), hash(&verifier));
            let kept = format!("INSERT INTO sign_in_code VALUES ('{id}', {user}, 'far', '{challenge}', {over})");
            world.database.execute(&kept).await;
            with(Call::default(), json!({ "code": code, "verifier": verifier }))
        }
        "resume_cluster" => {
            let from = NEXT.fetch_add(1, Ordering::Relaxed);
            let held = format!("INSERT INTO silence VALUES ({from}, {from} + 1, 1, 'a test', '')");
            world.database.execute(&held).await;
            with(Call::default(), json!({ "past": "run" }))
        }

        "create_tenant" => with(Call::default(), json!({ "name": fresh("tenant") })),
        "show_tenant" | "show_quotas" | "list_windows" | "list_calendars" | "list_origins" => about(&[&tenant]),
        "edit_tenant" => with(about(&[&tenant]), json!({ "description": fresh("about") })),
        "delete_tenant" => {
            let name = fresh("tenant");
            made(api, "/tenants", json!({ "name": name })).await;
            about(&[&name])
        }
        "set_origins" => {
            let origin = fresh("source") + "#7";
            let item = json!({ "task": place.task(api).await.to_string(), "origin": origin });
            with(about(&[&tenant]), json!({ "items": [item] }))
        }
        "import_runs" => {
            let at = now_ms() - 86_400_000;
            let task = place.task(api).await.to_string();
            let item = json!({ "task": task, "fire_time": at, "finished_at": at, "end": "succeeded" });
            with(about(&[&tenant]), json!({ "items": [item] }))
        }
        "edit_quotas" => with(about(&[&tenant]), json!({ "max_tasks": 100_000 })),
        "add_window" => with(about(&[&tenant]), upcoming_window()),
        "drop_window" => about(&[&tenant, &place.window(api).await]),

        "create_app" => with(Call::default(), json!({ "tenant": tenant, "name": fresh("app") })),
        "show_app" | "list_keys" | "show_discovery" => about(&[&place.app_id]),
        "edit_app" => with(about(&[&place.app_id]), json!({ "description": fresh("about") })),
        "allow_scripts" => with(about(&[&place.app_id]), json!({ "allowed": true })),
        "delete_app" => about(&[&place.app(api).await]),
        "put_discovery" => {
            let port = NEXT.fetch_add(1, Ordering::Relaxed);
            let spec = json!({ "addresses": [format!("http://127.0.0.1:{port}")], "nacos": null });
            with(about(&[&place.app_id]), spec)
        }
        "create_key" => with(about(&[&place.app_id]), json!({ "note": "second" })),
        "rotate_keys" => with(about(&[&place.app(api).await]), json!({ "overlap_ms": 60_000 })),
        "revoke_key" => about(&[&place.key(api).await]),
        "show_executor" => about(&[&place.executor]),
        "edit_executor" => with(about(&[&place.executor]), json!({ "weight": 2 })),

        "show_calendar" | "delete_calendar" => about(&[&tenant, &place.calendar(api).await]),
        "put_calendar" => {
            with(about(&[&tenant, &fresh("calendar")]), whole_calendar(json!({ "excluded_weekdays": ["sun"] })))
        }

        "create_task" => with(Call::default(), place.new_task()),
        "show_task" | "delete_task" | "start_task" | "stop_task" | "preview_task" | "show_task_graph"
        | "list_backfills" => about(&[&place.task(api).await]),
        "show_script" | "list_script_versions" => about(&[&place.script(api).await]),
        "show_script_version" => about(&[&place.script(api).await, &1]),
        "put_script" => {
            let script = json!({ "glue_type": "GLUE_PYTHON", "source": "print()" });
            with(about(&[&place.script(api).await]), script)
        }
        "explain_task" => Call { query: "at=03:00".to_owned(), ..about(&[&place.task(api).await]) },
        "edit_task" => with(about(&[&place.task(api).await]), json!({ "description": fresh("about") })),
        "replace_task" => {
            let task = place.task(api).await;
            let mut whole = api.get(&format!("/tasks/{task}")).await;
            whole["description"] = json!(fresh("about"));
            with(about(&[&task]), whole)
        }
        "pause_task" => with(about(&[&place.task(api).await]), json!({ "note": "moving house" })),
        "run_task" => with(about(&[&place.task(api).await]), json!({ "delay_ms": 86_400_000 })),
        "skip_fire" => {
            let (task, fire_time) = place.daily(api).await;
            with(about(&[&task]), json!({ "fire_time": fire_time, "note": "stocktaking" }))
        }
        "restore_fire" => {
            let (task, fire_time) = place.daily(api).await;
            let body = json!({ "fire_time": fire_time });
            api.expect(200, Method::POST, &format!("/tasks/{task}/skip"), Some(&body)).await;
            with(about(&[&task]), body)
        }
        "apply_tasks" => {
            let call = with(Call::default(), json!({ "version": 1, "task": [place.new_task()] }));
            Call { elsewhere: Elsewhere::Refused, ..call }
        }
        "preview_schedule" => {
            let body = json!({ "cron": "0 0 9 * * ?", "tenant": tenant, "calendar": place.calendar(api).await });
            with(Call::default(), body)
        }
        "create_backfill" => with(about(&[&place.task(api).await]), past_range()),
        "cancel_backfill" => {
            let (task, backfill) = place.backfill(api).await;
            about(&[&task, &backfill])
        }
        "follow_log_output" => {
            // Of a run that never started there is nothing to follow.
            let log = place.task_log(api).await;
            api.cancel(log).await;
            about(&[&log])
        }
        "read_statistics" => {
            let query = format!("tenant={tenant}&from=1795000000000&until=1795003600000&step=1h");
            Call { query, ..Call::default() }
        }
        "show_task_log" | "read_log_output" | "cancel_run" => about(&[&place.task_log(api).await]),

        "create_user" => with(Call::default(), json!({ "name": fresh("user"), "tenant": tenant })),
        "show_user" | "delete_user" | "reset_password" => about(&[&place.user(api).await]),
        "end_user_sessions" => about(&[&place.visitor(api).await]),
        "edit_user" => with(about(&[&place.user(api).await]), json!({ "display_name": fresh("Ann") })),
        "create_grant" => {
            let body = json!({ "role": api.role("viewer").await, "tenant": tenant });
            with(about(&[&place.user(api).await]), body)
        }
        "delete_grant" => {
            let (user, grant) = place.granted(api).await;
            about(&[&user, &grant])
        }
        "create_role" => {
            let body = json!({ "name": fresh("role"), "tenant": tenant, "permissions": ["tasks.read"] });
            with(Call::default(), body)
        }
        "show_role" | "delete_role" => about(&[&place.role(api).await]),
        "edit_role" => with(about(&[&place.role(api).await]), json!({ "description": fresh("about") })),
        "revoke_token" => about(&[&place.token(world).await]),
        _ => return None,
    })
}

/// Operations of one's own account, in an order in which each still can be done: the last ends the
/// session.
pub async fn own_calls(me: &Api, password: &str) -> Vec<(&'static str, Call)> {
    let id_in = |list: Value| list["items"].as_array().and_then(|all| all.last()).and_then(|one| id_of(&one["id"]));
    let token = json!({ "name": "ci", "permissions": ["tasks.read"], "expires_at": now_ms() + 3_600_000 });
    me.expect(201, Method::POST, "/account/tokens", Some(&token)).await;
    let my_token = id_in(me.get("/account/tokens").await).unwrap();
    let name = me.get("/session").await["name"].as_str().unwrap().to_owned();
    me.sign_in(&name, password).await;
    let sessions = me.get("/account/sessions").await;
    let other = sessions["items"].as_array().unwrap().iter().find(|session| session["current"] == false).unwrap();
    let about = |id: i64| Call { path: vec![id.to_string()], ..Call::default() };
    let with = |body: Value| Call { body: Some(body), ..Call::default() };
    vec![
        ("show_session", Call::default()),
        ("follow_events", Call::default()),
        ("list_sessions", Call::default()),
        ("end_session", about(id_of(&other["id"]).unwrap())),
        ("list_my_tokens", Call::default()),
        ("create_my_token", with(token)),
        ("revoke_my_token", about(my_token)),
        ("change_password", with(json!({ "current": password, "new": "nine lost coins in grass" }))),
        ("sign_out", Call::default()),
    ]
}
