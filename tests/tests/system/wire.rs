//! Who may talk to whom: forged, replayed, cross-tenant and unsigned requests.

use carillon_protocol::sign::{SignMethod, header};
use carillon_protocol::{
    BlockStrategy, Code, Dispatch, DispatchItem, Heartbeat, HeartbeatAck, Register, Registered, Results, ResultsAck,
    RunKey, RunStatus, Unregister, Unregistered, Verdict,
};
use carillon_tests::executor::Options;
use carillon_tests::fake::{empty_heartbeat, result};
use carillon_tests::fires::assert_all;
use carillon_tests::wire::Request;
use carillon_tests::{App, Executor, FakeExecutor, Kind, Node, Status, World, now_ms, now_us};
use serde_json::json;

scenario!(executor_that_signs_with_md5: sqlite);
scenario!(executors_with_either_of_two_keys: sqlite);
scenario!(wire_refuses_forged_replayed_cross_tenant_unsigned: sqlite mariadb postgres);
scenario!(what_is_repeated_at_another_node_or_after_a_restart_does_nothing: mariadb postgres);
scenario!(executors_are_only_where_they_may_be: sqlite);

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
            Code::RegisterAgain | Code::NotFound => vec![Verdict::Unknown],
            other => panic!("a result of another tenant's run: {other:?}"),
        };
        assert_eq!(verdicts, [Verdict::Unknown]);
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
async fn what_is_repeated_at_another_node_or_after_a_restart_does_nothing(kind: Kind) {
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
            assert!(!again.is_signed, "a refusal that could pass for the answer to the first");
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
    let task = api.make_task(&app, "by hand", "job", json!({})).await;
    let run = api.run(task, None).await;
    let row = world.await_end(run).await;
    assert_eq!(row.status, Status::Failed, "{row:?}");
    assert_eq!(fake.offered(), [], "something was sent to where executors may not be");
    assert!(strict.process.log().contains("executors.allowed_networks"), "{}", strict.process.log_digest());
    assert_eq!(at(&strict.url, "127.0.0.1").send().await.code(), Code::BadRequest);
    assert_eq!(at(&strict.url, "10.1.2.3").send().await.code(), Code::Ok);
}
