//! Who may talk to whom: forged, replayed, cross-tenant and unsigned requests.

use carillon_protocol::sign::{SignMethod, header};
use carillon_protocol::{
    BlockStrategy, Code, Dispatch, DispatchItem, Heartbeat, HeartbeatAck, Register, Registered, Results, ResultsAck,
    RunKey, RunStatus, Unregister, Unregistered, Verdict,
};
use carillon_tests::executor::Options;
use carillon_tests::fake::{empty_heartbeat, result};
use carillon_tests::fires::assert_all;
use carillon_tests::wait::when;
use carillon_tests::wire::Request;
use carillon_tests::{App, Executor, FakeExecutor, Kind, Node, Status, World, await_until, now_ms, now_us};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

scenario!(executor_that_signs_with_md5: sqlite);
scenario!(executors_with_either_of_two_keys: sqlite);
scenario!(wire_refuses_forged_replayed_cross_tenant_unsigned: sqlite mariadb postgres);
scenario!(replays_at_another_node_or_after_a_restart_do_nothing: mariadb postgres);
scenario!(executors_are_only_where_they_may_be: sqlite);
scenario!(a_bad_head_is_refused_before_the_body_is_read: sqlite);
scenario!(unauthenticated_callers_are_rate_limited_and_logged_sparsely: sqlite);
scenario!(executors_told_to_wait_lose_nothing: sqlite mariadb);

/// The source design's signature, beside an executor with ours.
async fn executor_that_signs_with_md5(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let env = [("CARILLON_SIGN_METHOD", "MD5")];
    let options = Options { env: &env, ..Options::default() };
    let md5 = world.executor_with("md5", &app, &options).await;
    world.executor("hmac", &app).await;
    let tasks = crate::sharing::every_second(&api, &app, 2).await;
    for task in tasks {
        world.await_successes(task, 8).await;
    }
    let (rows, _) = world.settle_and_check().await;
    assert!(!md5.starts().is_empty(), "the executor that signs with MD5 got nothing");
    assert_all("without a failure", &rows, |row| row.failures == 0);
}

/// Two keys of an app are valid at once, so that keys are changed without a stop.
async fn executors_with_either_of_two_keys(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let secret = "0123456789abcdef0123456789abcdef";
    let second = format!(
        "INSERT INTO app_key (id, tenant_id, app_id, secret, created_at, revoked_at) \
         SELECT 'ck_second', tenant_id, app_id, '{secret}', created_at, revoked_at FROM app_key"
    );
    assert_eq!(world.database.execute(&second).await, 1);
    let key = carillon_protocol::sign::Key { id: "ck_second".into(), secret: secret.into() };
    let executors =
        [world.executor("old key", &app).await, world.executor("new key", &App { key, ..app.clone() }).await];
    for task in crate::sharing::every_second(&api, &app, 3).await {
        world.await_successes(task, 8).await;
    }
    let (rows, _) = world.settle_and_check().await;
    for executor in executors {
        assert!(!executor.starts().is_empty(), "the executor with the {} got nothing", executor.name);
    }
    assert_all("without a failure", &rows, |row| row.failures == 0);
}

struct Parties {
    world: World,
    node: Node,
    app: App,
    stranger: App,
    fake: FakeExecutor,
    run: RunKey,
}

/// H21, H23, X13.
async fn wire_refuses_forged_replayed_cross_tenant_unsigned(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let stranger = api.make_app("insurance", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let task = api.make_task(&app, "by hand", "job", json!({})).await;
    api.run(task, None).await;
    let run = fake.next_running(task, &[]).await;
    let parties = Parties { world, node, app, stranger, fake, run };

    let before = parties.picture().await;
    parties.badly_signed_requests_are_refused().await;
    parties.replayed_requests_are_refused().await;
    parties.oversized_and_broken_bodies_are_refused().await;
    parties.another_tenant_sees_nothing().await;
    assert_eq!(parties.picture().await, before, "a refused request changed something");
    parties.an_executor_refuses_too().await;

    let done = result(parties.run, RunStatus::Succeeded);
    assert_eq!(parties.fake.send_results(&[done]).await, [Verdict::Applied], "the honest executor is heard");
    let fake = &parties.fake;
    parties.world.settle_and_check_with(|| fake.starts()).await;
}

impl Parties {
    /// The result that every forger would like to have applied.
    fn wish(&self) -> Results {
        Results { executor_id: self.fake.executor_id(), results: vec![result(self.run, RunStatus::Succeeded)] }
    }

    fn request(&self) -> Request {
        Request::new(&self.app, &self.node.url, "/openapi/results", &self.wish())
    }

    /// What must not change: the runs, the executors, the tasks, the recorded results.
    async fn picture(&self) -> (Vec<carillon_tests::LogRow>, Vec<String>, Vec<i64>) {
        let database = &self.world.database;
        let executors = "SELECT address, handlers, tags, instance FROM executor WHERE gone_at = 0 ORDER BY id";
        let read = |row: &sea_orm::QueryResult| -> Result<String, sea_orm::DbErr> {
            (0..4).map(|at| row.try_get_by_index::<String>(at)).collect::<Result<Vec<_>, _>>().map(|all| all.join(" "))
        };
        let mut counts = Vec::new();
        for table in ["task", "stale_result", "handler", "app_key", "tenant", "app"] {
            counts.push(database.number(&format!("SELECT COUNT(*) FROM {table}")).await);
        }
        (database.logs("1 = 1").await, database.query(executors, read).await, counts)
    }

    async fn refused(&self, what: &str, request: Request, code: Code) {
        let answer = request.send().await;
        assert_eq!(answer.code(), code, "{what}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(answer.status, code.http_status(), "{what}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.contains(&self.app.key.secret), "{what}: the refusal tells the secret");
    }

    async fn badly_signed_requests_are_refused(&self) {
        for name in [header::SIGN, header::KEY, header::TENANT, header::APP, header::TIMESTAMP, header::NONCE] {
            let request = self.request().with(|r| r.without = vec![name]);
            self.refused(&format!("without {name}"), request, Code::Unsigned).await;
        }
        for name in [header::SIGN, header::KEY, header::TENANT, header::NONCE] {
            let request = self.request().with(|r| r.beside = vec![(name, "another".into())]);
            self.refused(&format!("with two of {name}"), request, Code::Unsigned).await;
        }
        let other_secret = |r: &mut Request| r.secret = "guessed".into();
        self.refused("signed with a guess", self.request().with(other_secret), Code::WrongSignature).await;
        let empty = |r: &mut Request| r.secret = String::new();
        self.refused("signed with nothing", self.request().with(empty), Code::WrongSignature).await;
        let unknown = |r: &mut Request| r.key = "nobody".into();
        self.refused("an unknown key", self.request().with(unknown), Code::UnknownKey).await;
        let old = |r: &mut Request| r.timestamp -= 6 * 60 * 1_000;
        self.refused("six minutes old", self.request().with(old), Code::ClockSkew).await;
        let early = |r: &mut Request| r.timestamp += 6 * 60 * 1_000;
        self.refused("six minutes early", self.request().with(early), Code::ClockSkew).await;
        let method = |r: &mut Request| r.instead = vec![(header::SIGN_METHOD, "PLAIN".into())];
        self.refused("an unknown method", self.request().with(method), Code::SignMethod).await;
        let swapped = |r: &mut Request| {
            r.body = b"{}".to_vec();
            r.sent_body = serde_json::to_vec(&self.wish()).ok();
        };
        self.refused("another body than signed", self.request().with(swapped), Code::WrongSignature).await;
        // H23: the caller's own query replaced the secret.
        let injected = |r: &mut Request| {
            r.query = "_signKey_=x&secret=x".into();
            r.secret = "x".into();
        };
        self.refused("a secret in the query", self.request().with(injected), Code::WrongSignature).await;
        let weak = |r: &mut Request| {
            r.method = SignMethod::Md5;
            r.secret = "x".into();
        };
        self.refused("a guess in MD5", self.request().with(weak), Code::WrongSignature).await;
    }

    async fn replayed_requests_are_refused(&self) {
        let beat = empty_heartbeat(self.fake.executor_id(), "another process");
        let request = Request::new(&self.app, &self.node.url, "/openapi/executors/heartbeat", &beat);
        let first = request.send().await;
        assert_eq!(first.code(), Code::RegisterAgain, "another process of the executor is unknown");
        self.refused("the same request again", request.clone(), Code::Replayed).await;
        let changed = request.with(|r| r.body = serde_json::to_vec(&self.wish()).unwrap_or_default());
        self.refused("the same nonce with another body", changed, Code::Replayed).await;
    }

    async fn oversized_and_broken_bodies_are_refused(&self) {
        let huge = self.request().with(|r| r.body = vec![b' '; carillon_protocol::BODY_BYTES_MAX + 1]);
        // A server may close before it has read everything; then there is no answer to look at.
        if let Some(answer) = huge.try_send().await {
            assert_eq!(answer.status, 413, "{}", String::from_utf8_lossy(&answer.body));
        }
        let broken = self.request().with(|r| r.body = b"{\"executor_id\": ".to_vec());
        self.refused("a body that is no JSON", broken, Code::BadRequest).await;
        let too_many = Results {
            executor_id: self.fake.executor_id(),
            results: vec![result(RunKey(1, 1), RunStatus::Failed); carillon_protocol::RESULT_ITEMS_MAX + 1],
        };
        let too_many = Request::new(&self.app, &self.node.url, "/openapi/results", &too_many);
        self.refused("more results than allowed", too_many, Code::BadRequest).await;
        // What each executor names stays in the node's memory until its next heartbeat.
        let runs = vec![RunKey(1, 1); carillon_protocol::EXECUTOR_RUNS_MAX + 1];
        let (id, instance) = (self.fake.executor_id(), self.fake.instance());
        let beat = Heartbeat { unacknowledged: runs.clone(), ..empty_heartbeat(id, instance) };
        let beat = Request::new(&self.app, &self.node.url, "/openapi/executors/heartbeat", &beat);
        self.refused("a heartbeat with more runs than allowed", beat, Code::BadRequest).await;
        let farewell = Unregister { executor_id: id, instance: instance.to_owned(), held: runs, running: Vec::new() };
        let farewell = Request::new(&self.app, &self.node.url, "/openapi/executors/unregister", &farewell);
        self.refused("a farewell with more runs than allowed", farewell, Code::BadRequest).await;
    }

    /// Promise 8: another tenant's things are as good as absent.
    async fn another_tenant_sees_nothing(&self) {
        let url = &self.node.url;
        let claims = |r: &mut Request| {
            r.tenant.clone_from(&self.app.tenant);
        };
        let theirs = Request::new(&self.stranger, url, "/openapi/results", &self.wish());
        self.refused("their key for our tenant", theirs.clone().with(claims), Code::UnknownKey).await;
        // Rightly signed as the other tenant, about our run: it does not exist for them.
        let answer = theirs.send().await;
        let verdicts = match answer.code() {
            Code::Ok => answer.data::<ResultsAck>().verdicts,
            Code::RegisterAgain | Code::NotFound => vec![Verdict::Again],
            other => panic!("a result of another tenant's run: {other:?}"),
        };
        assert_eq!(verdicts, [Verdict::Again], "as of a run that is not there");
        let beat = empty_heartbeat(self.fake.executor_id(), self.fake.instance());
        let beat = Request::new(&self.stranger, url, "/openapi/executors/heartbeat", &beat);
        self.refused("a heartbeat for our executor", beat, Code::RegisterAgain).await;
        // Their registration at our executor's address must not make ours gone.
        let hijack = self.fake.description();
        let hijack = carillon_protocol::Register { instance: "b".repeat(32), handlers: Vec::new(), ..hijack };
        let hijack = Request::new(&self.stranger, url, "/openapi/executors/register", &hijack).send().await;
        if hijack.code() == Code::Ok {
            let theirs = hijack.data::<Registered>().executor_id;
            assert_ne!(theirs, self.fake.executor_id());
            self.world.database.execute(&format!("DELETE FROM executor WHERE id = {theirs}")).await;
        }
        let HeartbeatAck { cancel, .. } = self.fake.heartbeat().await;
        assert_eq!(cancel, [], "ours is still ours");
        assert_eq!(self.world.database.log(self.run.0).await.status, Status::Dispatched);
    }

    /// The other direction: a run that no node sent.
    async fn an_executor_refuses_too(&self) {
        let executor = self.world.executor("e1", &self.app).await;
        let id = self.world.database.executor_at(executor.port).await;
        let url = format!("http://127.0.0.1:{}", executor.port);
        let honest = Request::new(&self.app, &url, "/dispatch", &forged_run(id, 1));
        for (what, request, code) in [
            ("unsigned", honest.clone().with(|r| r.without = vec![header::SIGN]), Code::Unsigned),
            ("a guess", honest.clone().with(|r| r.secret = "guessed".into()), Code::WrongSignature),
            ("another tenant", Request::new(&self.stranger, &url, "/dispatch", &forged_run(id, 1)), Code::UnknownKey),
            ("old", honest.clone().with(|r| r.timestamp -= 6 * 60 * 1_000), Code::ClockSkew),
            (
                "for another process",
                Request::new(&self.app, &url, "/dispatch", &forged_run(id + 1, 1)),
                Code::WrongExecutor,
            ),
        ] {
            self.refused(&format!("a run to an executor, {what}"), request, code).await;
        }
        let cancel = carillon_protocol::Cancel { executor_id: id, runs: Vec::new(), unstarted_only: false };
        let cancel = Request::new(&self.app, &url, "/cancel", &cancel);
        assert_eq!(cancel.send().await.code(), Code::Ok);
        self.refused("the same cancel again", cancel, Code::Replayed).await;
        nothing_ran_on(&executor);
    }
}

fn nothing_ran_on(executor: &Executor) {
    assert_eq!(executor.starts(), [], "a forged run started");
    assert!(executor.process.is_running());
}

fn forged_run(executor_id: i64, log: i64) -> Dispatch {
    Dispatch {
        executor_id,
        cluster_time_us: now_us(),
        items: vec![DispatchItem {
            log,
            attempt: 1,
            task: 1,
            task_name: "forged".into(),
            handler: "tick".into(),
            params: String::new(),
            fire_time: now_ms(),
            due_time: now_ms(),
            accept_until: now_ms() + 3_000,
            shard_index: 0,
            shard_total: 1,
            timeout_ms: 0,
            block_strategy: BlockStrategy::Concurrent,
            wait_timeout_ms: 0,
            priority: carillon_protocol::PRIORITY_DEFAULT,
            trace: String::new(),
        }],
    }
}

/// A repetition at another node, or at one that has forgotten the nonces, with the signature still
/// in its window.
async fn replays_at_another_node_or_after_a_restart_do_nothing(kind: Kind) {
    let world = World::new(kind).await;
    let a = world.node("a", &[]).await;
    let b = world.node("b", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &a.url, &["job"], true).await;
    fake.script(|script| (script.auto_results, script.beats) = (false, false));
    let task = api.make_task(&app, "by hand", "job", json!({ "max_retries": 1, "retry_interval_ms": 0 })).await;
    api.run(task, None).await;
    let first = fake.next_running(task, &[]).await;
    let executor_id = fake.executor_id();

    // Each as the executor sent it, and heard; then what followed.
    let register = Request::new(&app, &a.url, "/openapi/executors/register", &fake.description());
    assert_eq!(register.send().await.code(), Code::Ok);
    let newer = Register { description: "newer".into(), tags: vec!["gpu".into()], ..fake.description() };
    assert_eq!(Request::new(&app, &a.url, "/openapi/executors/register", &newer).send().await.code(), Code::Ok);
    let draining = Heartbeat { draining: true, running: vec![first], ..empty_heartbeat(executor_id, fake.instance()) };
    let heartbeat = Request::new(&app, &a.url, "/openapi/executors/heartbeat", &draining);
    assert_eq!(heartbeat.send().await.code(), Code::Ok);
    let back = Heartbeat { draining: false, ..draining };
    assert_eq!(Request::new(&app, &a.url, "/openapi/executors/heartbeat", &back).send().await.code(), Code::Ok);
    let failed = Results { executor_id, results: vec![result(first, RunStatus::Failed)] };
    let failed = Request::new(&app, &a.url, "/openapi/results", &failed);
    assert_eq!(failed.send().await.data::<ResultsAck>().verdicts, [Verdict::Applied]);
    fake.forget(first);
    let second = fake.next_running(task, &[first]).await;
    assert_eq!(second.0, first.0, "the second attempt of the same run");
    let leaver = Register { instance: "l".repeat(32), address: "http://127.0.0.1:1".into(), ..fake.description() };
    let left = Request::new(&app, &a.url, "/openapi/executors/register", &leaver)
        .send()
        .await
        .data::<Registered>()
        .executor_id;
    let leave =
        Unregister { executor_id: left, instance: leaver.instance.clone(), held: vec![second], running: Vec::new() };
    let unregister = Request::new(&app, &a.url, "/openapi/executors/unregister", &leave);
    assert_eq!(unregister.send().await.data::<Unregistered>().returned, 0, "what is another's stays there");
    assert_eq!(
        Request::new(&app, &a.url, "/openapi/executors/register", &leaver).send().await.code(),
        Code::Ok,
        "the leaver comes back"
    );
    let next = Register { instance: "n".repeat(32), address: leaver.address.clone(), ..fake.description() };
    let next = Request::new(&app, &a.url, "/openapi/executors/register", &next);
    let slow = next.with(|request| request.timestamp -= 60_000).send().await;
    assert_eq!(slow.code(), Code::Conflict, "a process after it comes with an older time");
    let told: Value = serde_json::from_slice(&slow.body).unwrap();
    assert!(slow.is_signed && told["data"]["cluster_time_us"].is_i64(), "it learns the time: {told}");

    let picture = async || {
        let executors = "SELECT instance, address, tags, description, key_id, CAST(heartbeat_at AS CHAR(20)), \
             CAST(gone_at AS CHAR(20)), CAST(draining AS CHAR(20)) FROM executor ORDER BY id";
        let read = |row: &sea_orm::QueryResult| -> Result<Vec<String>, sea_orm::DbErr> {
            (0..8).map(|at| row.try_get_by_index::<String>(at)).collect()
        };
        (world.database.query(executors, read).await, world.database.logs("1 = 1").await)
    };
    let before = picture().await;
    for (what, url) in [("another node", &b.url), ("a node that has forgotten", &a.url)] {
        if url == &a.url {
            assert_eq!(a.process.sigterm(60).await, Some(0));
            world.unready_node("a", a.port, &[]).ready().await;
        }
        for (message, code) in [(&register, Code::Replayed), (&heartbeat, Code::Replayed)] {
            let again = message.clone().with(|request| request.url.clone_from(url)).send().await;
            assert_eq!(again.code(), code, "{} repeated at {what}", message.path);
            assert!(again.is_signed, "a caller whose clock is behind learns the time from it");
        }
        let again = unregister.clone().with(|request| request.url.clone_from(url)).send().await;
        assert_eq!(again.data::<Unregistered>().returned, 0, "unregister repeated at {what}");
        let again = failed.clone().with(|request| request.url.clone_from(url)).send().await;
        assert_eq!(again.data::<ResultsAck>().verdicts, [Verdict::Stale], "result repeated at {what}");
        assert_eq!(picture().await, before, "{what}");
    }
    assert_eq!(fake.send_results(&[result(second, RunStatus::Succeeded)]).await, [Verdict::Applied]);
    world.settle_and_check_with(|| fake.starts()).await;
}

/// At registration; and what is stored is judged by the setting of today before anything is sent.
async fn executors_are_only_where_they_may_be(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    let at = |url: &str, host: &str| {
        let address = format!("http://{host}:8527");
        let message = Register { instance: "x".repeat(32), address, ..fake.description() };
        Request::new(&app, url, "/openapi/executors/register", &message)
    };
    for host in [
        "169.254.169.254",
        "0xa9fea9fe",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "192.0.0.192",
        "0.0.0.0",
        "224.0.0.1",
        "8.8.8.8",
    ] {
        let answer = at(&node.url, host).send().await;
        assert_eq!(answer.code(), Code::BadRequest, "{host}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains("is refused"), "{text}");
    }
    let known = world.database.number("SELECT COUNT(*) FROM executor").await;
    assert_eq!(known, 1, "a refused address was stored");

    assert_eq!(node.process.sigterm(60).await, Some(0));
    let only_ten = [("executors.allowed_networks", "10.0.0.0/8,fd00::/8")];
    let strict = world.unready_node("a", node.port, &only_ten);
    strict.ready().await;
    let task = api.make_task(&app, "by hand", "job", json!({ "no_executor_timeout_ms": 0, "max_retries": 0 })).await;
    let run = api.run(task, None).await;
    let row = world.await_end(run).await;
    assert_eq!(row.status, Status::Failed, "{row:?}");
    assert_eq!(fake.offered(), [], "something was sent to where executors may not be");
    assert!(strict.process.log().contains("executors.allowed_networks"), "{}", strict.process.log_digest());
    assert_eq!(at(&strict.url, "127.0.0.1").send().await.code(), Code::BadRequest);
    assert_eq!(at(&strict.url, "10.1.2.3").send().await.code(), Code::Ok);
}

/// The answer to a head that announces a large body, of which not a byte is sent.
async fn code_before_the_body(node: &Node, headers: &[(&str, &str)]) -> Code {
    let mut stream = TcpStream::connect(("127.0.0.1", node.port)).await.unwrap();
    let mut head = "POST /openapi/results HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000\r\n".to_owned();
    for (name, value) in headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = async {
        loop {
            let mut chunk = [0; 1024];
            let count = stream.read(&mut chunk).await.unwrap();
            answer.extend_from_slice(&chunk[..count]);
            let text = String::from_utf8_lossy(&answer);
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
            if let Some(Ok(reply)) = body.map(|body| serde_json::from_str::<Value>(&body)) {
                return reply["code"].as_u64().unwrap();
            }
            assert!(count > 0, "the connection ended after {text}");
        }
    };
    let code = tokio::time::timeout(Duration::from_secs(30), read).await.expect("the node answers");
    Code::from(u32::try_from(code).unwrap())
}

/// A caller without a valid key cannot make a node wait for, or keep, what it sends.
async fn a_bad_head_is_refused_before_the_body_is_read(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let apps = api.get("/apps").await;
    let path = format!("/apps/{}", carillon_tests::api::id_of(&apps["items"][0]["id"]).unwrap());
    api.patch(&path, json!({ "sign_method": "HMAC-SHA256" })).await;
    let now = now_ms().to_string();
    let right = [
        (header::TENANT, app.tenant.as_str()),
        (header::APP, app.name.as_str()),
        (header::KEY, app.key.id.as_str()),
        (header::TIMESTAMP, now.as_str()),
        (header::NONCE, "0123456789abcdef"),
        (header::SIGN_METHOD, "HMAC-SHA256"),
        (header::SIGN, "0123"),
    ];
    let with =
        |name: &str, value: &'static str| right.map(|(known, own)| (known, if known == name { value } else { own }));
    for (what, headers, code) in [
        ("nothing is signed", &[][..], Code::Unsigned),
        ("an unknown key", &with(header::KEY, "nobody"), Code::UnknownKey),
        ("another tenant", &with(header::TENANT, "insurance"), Code::UnknownKey),
        ("another method than demanded", &with(header::SIGN_METHOD, "MD5"), Code::SignMethod),
        ("no time", &with(header::TIMESTAMP, "noon"), Code::BadRequest),
        ("a short nonce", &with(header::NONCE, "0123"), Code::BadRequest),
    ] {
        let began = Instant::now();
        assert_eq!(code_before_the_body(&node, headers).await, code, "{what}");
        // A body that does not come is given up after ten seconds.
        assert!(began.elapsed() < Duration::from_secs(9), "{what}: after {:?}", began.elapsed());
    }
    world.assert_quiet(&[]);
}

/// Sends until the node has enough of that address; how often it was told why before.
async fn until_turned_away(request: &Request) -> usize {
    let mut refused = 0;
    for _ in 0..60 {
        for answer in join_all((0..50).map(|_| request.send())).await {
            if answer.code() == Code::TooMany {
                assert_eq!((answer.status, answer.retry_after), (429, Some(1)));
                assert!(!answer.is_signed, "a refusal that could pass for the answer to another request");
                return refused;
            }
            refused += 1;
        }
    }
    panic!("one address may send as much nonsense as it likes");
}

async fn unauthenticated_callers_are_rate_limited_and_logged_sparsely(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("server.trusted_proxies", "127.0.0.0/8")]).await;
    let api = world.api();
    let (app, other) = (api.make_app("retail", "orders").await, api.make_app("insurance", "orders").await);
    let began = Instant::now();
    let beat = empty_heartbeat(1, "nobody");
    let of = |app: &App, address: &str| {
        let request = Request::new(app, &node.url, "/openapi/executors/heartbeat", &beat);
        request.with(|request| request.instead = vec![("x-forwarded-for", address.to_owned())])
    };
    let unknown = |address: &str| {
        let long = "z".repeat(300);
        of(&app, address).with(|request| (request.tenant, request.key) = (long.clone(), long))
    };
    let guess = |address: &str| of(&app, address).with(|request| request.secret = "guessed".into());

    let mut sent = until_turned_away(&unknown("198.51.100.7")).await;
    assert_eq!(of(&app, "198.51.100.7").send().await.code(), Code::RegisterAgain, "who signs rightly is heard");
    assert_eq!(unknown("198.51.100.8").send().await.code(), Code::UnknownKey, "another address");
    // Within a network of IPv6 everyone has as many addresses as they like. On a busy machine some time has passed.
    sent += until_turned_away(&unknown("2001:db8::1")).await;
    let neighbours = until_turned_away(&unknown("2001:db8::ffff")).await;
    assert!(neighbours < 100, "a rate of its own: {neighbours}");
    sent += neighbours;
    assert_eq!(unknown("2001:db8:0:1::1").send().await.code(), Code::UnknownKey, "another network");

    sent += until_turned_away(&guess("198.51.100.9")).await;
    assert_eq!(of(&other, "198.51.100.9").send().await.code(), Code::RegisterAgain, "another key, the same address");
    assert_eq!(of(&app, "198.51.100.9").send().await.code(), Code::RegisterAgain, "who guesses locks no one out");
    let large = of(&app, "198.51.100.9").with(|request| request.body = vec![b' '; 100 * 1024]);
    // On a busy machine the address may have regained some of its rate meanwhile.
    await_until("a large request of an address that guesses is turned away", 20, || async {
        until_turned_away(&guess("198.51.100.9")).await;
        when(large.send().await.code() == Code::TooMany)
    })
    .await;
    assert_eq!(of(&app, "198.51.100.10").send().await.code(), Code::RegisterAgain, "the same key, another address");

    let lines = || {
        let log = node.process.log();
        log.lines().filter(|line| line.contains("signed request refused")).map(str::to_owned).collect::<Vec<_>>()
    };
    let written = lines().len();
    // Five at once from each of the five addresses, and one a second.
    let most = 5 * (5 + 1 + usize::try_from(began.elapsed().as_secs()).unwrap());
    assert!(written <= most && written > 0, "{written} lines about {sent} requests, in {:?}", began.elapsed());
    await_until("a line tells how many were left out", 20, || async {
        guess("198.51.100.9").send().await;
        when(lines().iter().any(|line| line.contains("left_out=") && !line.contains("left_out=0")))
    })
    .await;
    let log = lines().join("\n");
    assert!(
        log.contains(&"z".repeat(64)) && !log.contains(&"z".repeat(65)),
        "texts of unauthenticated callers are cut"
    );
    assert!(log.contains("2001:db8::1"), "lines name the whole address");
    world.assert_quiet(&[]);
}

/// A node that takes two requests a second: what it does not take comes later.
async fn executors_told_to_wait_lose_nothing(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[("executors.requests_per_second", "2")]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let task = api.make_task(&app, "by hand", "tick", json!({ "max_retries": 0 })).await;
    let is_told_to_wait = || {
        let log = executor.process.log();
        log.lines().any(|line| line.contains("results.not_acknowledged") && line.contains("code 42900"))
    };
    let began = Instant::now();
    let mut runs = Vec::new();
    while runs.len() < 40 || !is_told_to_wait() {
        assert!(began.elapsed() < Duration::from_mins(1), "this executor is not slowed down");
        runs.push(api.run(task, None).await);
    }
    let rows = world.await_ends(&runs).await;
    assert_all("ran once, and well", &rows, |row| row.status == Status::Succeeded && row.attempt == 1);
    let (rows, starts) = world.end_well().await;
    assert_eq!((rows.len(), starts.len()), (runs.len(), runs.len()));
}
