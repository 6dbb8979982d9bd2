//! Every operation of the OpenAPI document that a node serves: refused without a login, without the
//! permission, with the permission in another tenant only; allowed for each built-in role as the
//! docs say. An operation that is new and not told here how to be called fails these tests, and so
//! does one that needs no permission and is not on the short list.

mod calls;

use calls::{Call, Elsewhere, TenantFixture, call_of, own_calls};
use carillon_tests::node::Settings;
use carillon_tests::openapi::{Operation, operations, roles_of_the_docs};
use carillon_tests::people::PASSWORD;
use carillon_tests::{Api, Kind, World, now_ms};
use reqwest::Method;
use sea_orm::{ConnectionTrait, DatabaseConnection, FromQueryResult, JsonValue, Statement};
use serde_json::json;
use std::collections::BTreeMap;

scenario!(without_a_login_nothing_is_shown: sqlite);
scenario!(without_the_permission_nothing_is_shown: sqlite mariadb postgres);
scenario!(another_tenants_things_are_not_there: sqlite mariadb postgres);
scenario!(roles_in_a_tenant_allow_what_the_docs_say: sqlite mariadb postgres);
scenario!(roles_on_the_platform_allow_what_the_docs_say: sqlite);
scenario!(a_password_that_must_be_changed_comes_first: sqlite);
scenario!(a_token_does_nothing_to_its_owners_account: sqlite);
scenario!(every_changing_operation_is_audited: sqlite);

/// What unauthenticated callers may request.
const PUBLIC: [&str; 11] = [
    "begin_cluster_sign_in",
    "begin_single_sign_on",
    "finish_cluster_sign_in",
    "finish_single_sign_on",
    "list_logins",
    "show_openapi",
    "show_reference",
    "show_reference_script",
    "show_reference_style",
    "sign_in",
    "sign_in_elsewhere",
];

/// Operations that need no permission.
const FREE: [&str; 3] = ["public", "signed_in", "session"];

/// What is no GET, and changes nothing.
const CHANGE_NOTHING: [&str; 1] = ["preview_schedule"];

/// What may find nothing left to change: a backfill without fires soon ends by itself.
const COME_TOO_LATE: [&str; 1] = ["cancel_backfill"];

/// These tests ask quickly.
const FAST: Settings<'static> = &[("api.requests_per_second", "10000")];

/// The permission is missing.
const REFUSED: u16 = 403;

/// Two tenants and the operations.
struct Walk {
    world: World,
    near: TenantFixture,
    far: TenantFixture,
    operations: Vec<Operation>,
}

impl Walk {
    async fn new(kind: Kind) -> Self {
        let world = World::new(kind).await;
        let node = world.node("a", FAST).await;
        let operations = operations(&node.url).await;
        assert!(operations.len() > 60, "the document has {} operations", operations.len());
        let (near, far) = (TenantFixture::new(&world, "near").await, TenantFixture::new(&world, "far").await);
        Self { world, near, far, operations }
    }

    /// Operations that need a permission.
    fn guarded(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| !FREE.contains(&operation.permission.as_str()))
    }

    /// Operations about one's own account.
    fn own(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.permission == "session")
    }

    /// A right call of the operation about fresh things in `place`.
    async fn call(&self, operation: &Operation, place: &TenantFixture) -> Call {
        let Operation { id, method, path, .. } = operation;
        let call = call_of(id, &self.world, place).await;
        call.unwrap_or_else(|| {
            panic!("{id} is not tested ({method} {path}): say in every_operation/calls.rs how it is called")
        })
    }

    async fn send(&self, api: &Api, operation: &Operation, call: &Call) -> (u16, serde_json::Value) {
        api.send(operation.method.clone(), &address(operation, call), call.body.as_ref()).await
    }

    /// Sends it, and fails when it does not succeed, or is not in the audit though it changes something.
    async fn must_be_noted(&self, rows: &Rows, api: &Api, operation: &Operation, call: &Call) {
        let before = rows.entries(&operation.id).await;
        let (status, answer) = self.send(api, operation, call).await;
        assert!(operation.successes.contains(&status), "{}: {status} {answer}", operation.id);
        let id = operation.id.as_str();
        let is_change = operation.method != Method::GET && !CHANGE_NOTHING.contains(&id);
        let added = rows.entries(id).await - before;
        assert!((added > 0) == is_change || COME_TOO_LATE.contains(&id), "{id} adds {added} entries to the audit");
    }

    /// Sends it, and fails when it is not answered with `status`, or changes anything though refused.
    async fn must_be_refused(&self, rows: &Rows, status: u16, api: &Api, operation: &Operation, call: &Call) {
        let before = rows.picture().await;
        let (got, answer) = self.send(api, operation, call).await;
        let what = format!("{} ({} {})", operation.id, operation.method, address(operation, call));
        assert_eq!(got, status, "{what}: {answer}");
        assert_eq!(answer["status"], status, "{what} answers no problem document: {answer}");
        for (table, rows) in rows.picture().await {
            assert_eq!(rows, before[&table], "{what} was refused and changed {table}");
        }
    }
}

/// Where it is sent: the path with its parameters, and the query.
fn address(operation: &Operation, call: &Call) -> String {
    let mut values = call.path.iter();
    let mut part = |part: &str| match part.strip_prefix('{') {
        Some(name) => values.next().unwrap_or_else(|| panic!("{} lacks {name}", operation.id)).clone(),
        None => part.to_owned(),
    };
    let path = operation.path.split('/').map(&mut part).collect::<Vec<_>>().join("/");
    assert!(values.next().is_none(), "{} has fewer parameters than that", operation.id);
    if call.query.is_empty() { path } else { format!("{path}?{}", call.query) }
}

/// Everything that the database holds and no engine changes by itself.
struct Rows {
    connection: DatabaseConnection,
}

/// Tables that nobody's request is needed for to change.
const RESTLESS: [&str; 10] = [
    "access_lock",
    "executor",
    "lease",
    "migration_lock",
    "node",
    "seaql_migrations",
    "statistic",
    "statistic_state",
    "statistic_work",
    "outbox",
];

impl Rows {
    async fn new(world: &World) -> Self {
        Self { connection: world.database.connect().await }
    }

    async fn read(&self, sql: &str) -> Vec<JsonValue> {
        let statement = Statement::from_string(self.connection.get_database_backend(), sql);
        let rows = JsonValue::find_by_statement(statement).all(&self.connection).await;
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// How many entries of the audit have this action.
    async fn entries(&self, action: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM audit_entry WHERE action = '{action}'");
        let statement = Statement::from_string(self.connection.get_database_backend(), sql);
        let found = self.connection.query_one_raw(statement).await.unwrap().unwrap();
        found.try_get_by_index(0).unwrap()
    }

    async fn tables(&self) -> Vec<String> {
        let sql = match self.connection.get_database_backend() {
            sea_orm::DatabaseBackend::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table'",
            sea_orm::DatabaseBackend::MySql => {
                "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()"
            }
            _ => "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
        };
        let names = self.read(sql).await.into_iter().map(|row| row["name"].as_str().unwrap().to_owned());
        names.filter(|name| !RESTLESS.contains(&name.as_str()) && !name.starts_with("sqlite_")).collect()
    }

    /// The rows of every table, as text.
    async fn picture(&self) -> BTreeMap<String, Vec<String>> {
        let mut picture = BTreeMap::new();
        for table in self.tables().await {
            let mut rows = self.read(&format!("SELECT * FROM {table}")).await;
            for row in rows.iter_mut().filter_map(JsonValue::as_object_mut) {
                for field in engines_fields(&table) {
                    row.remove(*field).unwrap_or_else(|| panic!("{table} has no {field} any more"));
                }
            }
            let mut rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
            rows.sort_unstable();
            picture.insert(table, rows);
        }
        picture
    }
}

/// What the engine writes into rows that people make.
fn engines_fields(table: &str) -> &'static [&'static str] {
    match table {
        "app_key" => &["last_used_at"],
        "api_token" => &["used_at"],
        "session" => &["used_at", "expires_at"],
        "backfill" => &["next_at", "written", "existing", "finished_at", "status"],
        "task" => &["turn"],
        _ => &[],
    }
}

/// A call about nothing that is there.
fn anything(operation: &Operation) -> Call {
    Call { path: vec!["1".to_owned(); operation.path.matches('{').count()], ..Call::default() }
}

async fn without_a_login_nothing_is_shown(kind: Kind) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let stranger = walk.world.api().carrying("");
    let liar = walk.world.api().carrying("carillon_0000000000000000000000000000000000000000000000000000000000000000");
    let mut public = Vec::new();
    for operation in &walk.operations {
        match operation.permission.as_str() {
            "public" => public.push(operation.id.as_str()),
            "signed_in" | "session" => {
                for api in [&stranger, &liar] {
                    walk.must_be_refused(&rows, 401, api, operation, &anything(operation)).await;
                }
            }
            _ => {
                let call = walk.call(operation, &walk.near).await;
                for api in [&stranger, &liar] {
                    walk.must_be_refused(&rows, 401, api, operation, &call).await;
                }
            }
        }
    }
    public.sort_unstable();
    assert_eq!(public, PUBLIC, "who made these public, or no longer so?");
    // What is not there looks the same.
    for path in ["/no-such-thing", "/tasks/1/no-such-thing", "/users/1/password/x"] {
        assert_eq!(stranger.send(Method::GET, path, None).await.0, 401, "{path}");
    }
}

async fn without_the_permission_nothing_is_shown(kind: Kind) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let admin = walk.world.api();
    let nobody = admin.make_person("nobody", Some("near")).await;
    for operation in walk.guarded() {
        let call = walk.call(operation, &walk.near).await;
        walk.must_be_refused(&rows, REFUSED, &nobody.api, operation, &call).await;
        let word = &operation.permission;
        let (_, answer) = walk.send(&nobody.api, operation, &call).await;
        assert!(answer["detail"].as_str().is_some_and(|detail| detail.contains(word)), "{}: {answer}", operation.id);
    }
    // Users own their accounts: each of these does what it says, and only to the caller.
    let mut own: Vec<&str> = Vec::new();
    let others = others(&rows, nobody.id).await;
    for (id, call) in own_calls(&nobody.api, PASSWORD).await {
        let operation = walk.operations.iter().find(|operation| operation.id == id);
        let operation = operation.unwrap_or_else(|| panic!("there is no {id} any more"));
        let (status, answer) = walk.send(&nobody.api, operation, &call).await;
        assert!(operation.successes.contains(&status), "{id}: {status} {answer}");
        own.push(id);
    }
    assert_eq!(others, self::others(&rows, nobody.id).await, "another user's account was touched");
    let all =
        walk.operations.iter().filter(|operation| ["signed_in", "session"].contains(&operation.permission.as_str()));
    for operation in all {
        let id = operation.id.as_str();
        assert!(own.contains(&id), "{id} is not tested: say in every_operation/calls.rs how one calls it for oneself");
    }
}

/// Accounts, sessions and tokens that are not this user's.
async fn others(rows: &Rows, user: i64) -> Vec<String> {
    let mut found = Vec::new();
    for (table, column) in [("user_account", "id"), ("session", "user_id"), ("api_token", "user_id")] {
        let sql = format!("SELECT * FROM {table} WHERE {column} <> {user} ORDER BY id");
        found.extend(rows.read(&sql).await.iter().map(ToString::to_string));
    }
    found
}

async fn another_tenants_things_are_not_there(kind: Kind) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let admin = walk.world.api();
    let neighbour = admin.make_person("neighbour", Some("near")).await;
    admin.grant(&neighbour, "tenant admin", Some("near")).await;
    let held = &roles_of_the_docs()["tenant admin"];
    for operation in walk.guarded() {
        let call = walk.call(operation, &walk.far).await;
        if !held.contains(&operation.permission) {
            // Only the platform grants these.
            walk.must_be_refused(&rows, REFUSED, &neighbour.api, operation, &call).await;
            continue;
        }
        match call.elsewhere {
            Elsewhere::Absent => walk.must_be_refused(&rows, 404, &neighbour.api, operation, &call).await,
            Elsewhere::Refused => walk.must_be_refused(&rows, 400, &neighbour.api, operation, &call).await,
            Elsewhere::LeftOut => {
                let (_, everything) = walk.send(&admin, operation, &call).await;
                let (status, answer) = walk.send(&neighbour.api, operation, &call).await;
                assert_eq!(status, 200, "{}: {answer}", operation.id);
                let shown = |text: &str| walk.far.marks.iter().filter(|mark| text.contains(*mark)).cloned().collect();
                let (all, some): (Vec<String>, Vec<String>) =
                    (shown(&everything.to_string()), shown(&answer.to_string()));
                assert!(!all.is_empty(), "{} shows nothing of `far` to any caller: {everything}", operation.id);
                assert!(some.is_empty(), "{} shows {some:?} of `far` to a neighbour: {answer}", operation.id);
            }
        }
    }
}

async fn roles_in_a_tenant_allow_what_the_docs_say(kind: Kind) {
    roles_allow(kind, Some("near")).await;
}

async fn roles_on_the_platform_allow_what_the_docs_say(kind: Kind) {
    roles_allow(kind, None).await;
}

async fn roles_allow(kind: Kind, tenant: Option<&str>) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let admin = walk.world.api();
    let platform_only = platform_only();
    for (role, held) in roles_of_the_docs() {
        let person = admin.make_person(&role.replace(' ', "-"), Some("near")).await;
        admin.grant(&person, &role, tenant).await;
        for operation in walk.guarded() {
            let call = walk.call(operation, &walk.near).await;
            let outside_the_scope = tenant.is_some() && platform_only.contains(&operation.permission);
            if held.contains(&operation.permission) && !outside_the_scope {
                let (status, answer) = walk.send(&person.api, operation, &call).await;
                assert!(operation.successes.contains(&status), "{role}, {}: {status} {answer}", operation.id);
            } else {
                walk.must_be_refused(&rows, REFUSED, &person.api, operation, &call).await;
            }
        }
    }
    walk.world.assert_quiet(&["the database was restored"]);
}

/// Permissions that the docs call so.
fn platform_only() -> Vec<String> {
    use carillon::domain::access::{PERMISSIONS, PermissionLevel};
    let whole = PERMISSIONS.iter().filter(|(_, _, breadth, _)| *breadth == PermissionLevel::Platform);
    whole.map(|(_, word, ..)| (*word).to_owned()).collect()
}

async fn a_password_that_must_be_changed_comes_first(kind: Kind) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let admin = walk.world.api();
    let newcomer = admin.make_new_person("newcomer", None).await;
    admin.grant(&newcomer, "platform admin", None).await;
    for operation in walk.guarded() {
        let call = walk.call(operation, &walk.near).await;
        walk.must_be_refused(&rows, REFUSED, &newcomer.api, operation, &call).await;
        let (_, answer) = walk.send(&newcomer.api, operation, &call).await;
        assert_eq!(answer["code"], "password_change_required", "{}", operation.id);
    }
    for operation in walk.own() {
        walk.must_be_refused(&rows, REFUSED, &newcomer.api, operation, &anything(operation)).await;
    }
    assert_eq!(newcomer.api.get("/session").await["must_change_password"], true);
}

/// Each call that is no GET adds an entry whose action is the operation's id.
async fn every_changing_operation_is_audited(kind: Kind) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let admin = walk.world.api();
    for operation in walk.guarded() {
        let call = walk.call(operation, &walk.near).await;
        walk.must_be_noted(&rows, &admin, operation, &call).await;
    }
    let ann = admin.make_person("ann", Some("near")).await;
    for (id, call) in own_calls(&ann.api, PASSWORD).await {
        let operation = walk.operations.iter().find(|operation| operation.id == id);
        walk.must_be_noted(&rows, &ann.api, operation.unwrap_or_else(|| panic!("there is no {id}")), &call).await;
    }
    let body = json!({ "name": "ann", "password": "nine lost coins in grass" });
    let sign_in = walk.operations.iter().find(|operation| operation.id == "sign_in").unwrap();
    let call = Call { body: Some(body), ..Call::default() };
    walk.must_be_noted(&rows, &admin.carrying(""), sign_in, &call).await;
}

/// A found token must not give access to its owner's account.
async fn a_token_does_nothing_to_its_owners_account(kind: Kind) {
    let walk = Walk::new(kind).await;
    let rows = Rows::new(&walk.world).await;
    let admin = walk.world.api();
    let ann = admin.make_person("ann", None).await;
    admin.grant(&ann, "platform admin", None).await;
    let body = json!({ "name": "ci", "permissions": ["tasks.read"], "expires_at": now_ms() + 3_600_000 });
    let made = ann.api.expect(201, Method::POST, "/account/tokens", Some(&body)).await;
    let sessions = ann.api.get("/account/sessions").await;
    let token = admin.carrying(made["secret"].as_str().unwrap());
    for operation in walk.own() {
        let id = match operation.id.as_str() {
            "revoke_my_token" => made["id"].as_str().unwrap(),
            _ => sessions["items"][0]["id"].as_str().unwrap(),
        };
        let call = Call { path: vec![id.to_owned(); operation.path.matches('{').count()], ..Call::default() };
        walk.must_be_refused(&rows, REFUSED, &token, operation, &call).await;
    }
    assert_eq!(token.get("/session").await["kind"], "token");
}

/// Routes are made in one place, of the list that the document is made of.
#[test]
fn every_route_comes_from_the_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scheduler/src/api");
    let known = [
        ("mod.rs", "two scopes"),
        ("operation.rs", "the list"),
        ("wire.rs", "executors"),
        ("nodes.rs", "health"),
        ("metrics.rs", "for Prometheus"),
    ];
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if known.iter().any(|(known, _)| *known == name) || file.path().extension().is_none_or(|kind| kind != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(file.path()).unwrap();
        for way in [".route(", "web::resource(", "web::scope(", ".service(", "#[get(", "#[post("] {
            assert!(!text.contains(way), "{name} makes a route by itself ({way}…): it has no permission");
        }
    }
}
