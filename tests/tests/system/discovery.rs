//! Executors of xxl-job that do not register themselves: at fixed addresses, and as instances of a service in Nacos. Nacos is
//! scripted by its published interface; in one scenario a published client of it registers.

use carillon_tests::command;
use carillon_tests::folder;
use carillon_tests::nacos::{NacosServer, OnList};
use carillon_tests::node::QUICK;
use carillon_tests::plain_executor::{PlainExecutor, open_door};
use carillon_tests::process::Process;
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, App, Kind, Status, World, now_ms, pass};
use reqwest::Method;
use serde_json::{Value, json};

scenario!(an_instance_comes_and_goes_within_a_second: sqlite mariadb postgres);
scenario!(who_registers_by_a_published_client_is_found: sqlite mariadb);
scenario!(a_run_goes_on_while_its_instance_flaps: sqlite mariadb);
scenario!(only_healthy_and_enabled_instances_of_the_named_service_count: sqlite);
scenario!(a_nacos_that_is_away_changes_nothing: sqlite mariadb);
scenario!(answers_that_are_none_change_nothing: sqlite);
scenario!(either_version_of_its_interface_is_read: sqlite);
scenario!(a_login_is_used_and_its_token_replaced: sqlite);
scenario!(of_two_nodes_one_asks: mariadb postgres);
scenario!(fixed_addresses_are_executors_until_they_are_taken_away: sqlite mariadb postgres);
scenario!(nothing_is_asked_where_nothing_is_named: sqlite);
scenario!(what_may_be_nobodys_is_refused: sqlite);
scenario!(who_registers_itself_stays: sqlite postgres);

const TOKEN: &str = "a-token-that-nobody-guesses";

/// The bound of the issue, and room for a machine that does other things meanwhile.
const WITHIN_MS: i64 = 1_000;

struct Stand {
    world: World,
    api: Api,
    app: App,
    id: String,
    nacos: NacosServer,
}

impl Stand {
    async fn new(kind: Kind, settings: &[(&str, &str)]) -> Self {
        let nacos = NacosServer::start().await;
        let mut all = vec![("nacos.servers", nacos.url.as_str())];
        all.extend(settings);
        let world = World::new(kind).await;
        world.node("a", &all).await;
        let api = world.api();
        let app = api.make_app("retail", "orders").await;
        open_door(&api, &app, TOKEN).await;
        let id = app_id(&api, "orders").await;
        Self { world, api, app, id, nacos }
    }

    async fn put(&self, spec: Value) -> Value {
        self.api.expect(200, Method::PUT, &format!("/apps/{}/discovery", self.id), Some(&spec)).await
    }

    async fn follow_nacos(&self) {
        self.put(json!({ "addresses": [], "nacos": { "service": "orders" } })).await;
        self.await_state("current").await;
    }

    async fn shown(&self) -> Value {
        self.api.get(&format!("/apps/{}/discovery", self.id)).await
    }

    async fn await_state(&self, state: &str) -> Value {
        await_until(&format!("Nacos is {state}"), 60, || async {
            let shown = self.shown().await;
            (shown["nacos_state"] == state).then_some(shown)
        })
        .await
    }

    /// Where the node knows executors, with their tags.
    async fn executors(&self) -> Vec<(String, Vec<String>)> {
        let shown = self.api.get("/executors?app=orders&tenant=retail").await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let all = shown["items"].as_array().unwrap().iter();
        let mut all: Vec<_> = all
            .map(|one| (text(&one["address"]), one["tags"].as_array().unwrap().iter().map(text).collect()))
            .collect();
        all.sort();
        all
    }

    async fn addresses(&self) -> Vec<String> {
        self.executors().await.into_iter().map(|(address, _)| address).collect()
    }

    /// Waits until the node knows executors at these addresses alone; how long that took, ms.
    async fn await_addresses(&self, expected: &[&PlainExecutor]) -> i64 {
        let mut expected: Vec<String> = expected.iter().map(|one| bare(one)).collect();
        expected.sort();
        let since = now_ms();
        await_until(&format!("executors are at {expected:?}"), 60, || async {
            when(self.addresses().await == expected)
        })
        .await;
        now_ms() - since
    }

    async fn executor(&self) -> PlainExecutor {
        PlainExecutor::start("orders", TOKEN, &self.world.node_urls()).await
    }
}

async fn app_id(api: &Api, name: &str) -> String {
    let found = api.get(&format!("/apps?tenant=retail&name={name}")).await;
    found["items"][0]["id"].as_str().unwrap().to_owned()
}

/// As it is known to a node.
fn bare(executor: &PlainExecutor) -> String {
    executor.address.trim_end_matches('/').to_owned()
}

async fn an_instance_comes_and_goes_within_a_second(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    stand.follow_nacos().await;
    let (one, other) = (stand.executor().await, stand.executor().await);
    let mut slowest = 0;
    for round in 0..3 {
        stand.nacos.register("orders", &one.address, &json!({ "zone": "b", "round": round })).await;
        slowest = slowest.max(stand.await_addresses(&[&one]).await);
        let tags = vec![format!("round={round}"), "zone=b".to_owned()];
        assert_eq!(stand.executors().await, [(bare(&one), tags)]);
        stand.nacos.register("orders", &other.address, &json!({})).await;
        slowest = slowest.max(stand.await_addresses(&[&one, &other]).await);
        stand.nacos.deregister("orders", &one.address).await;
        slowest = slowest.max(stand.await_addresses(&[&other]).await);
        stand.nacos.deregister("orders", &other.address).await;
        slowest = slowest.max(stand.await_addresses(&[]).await);
    }
    assert!(slowest <= WITHIN_MS, "{slowest} ms");
    // It runs what it is given, where its tags are asked for.
    stand.nacos.register("orders", &one.address, &json!({ "zone": "b" })).await;
    stand.nacos.register("orders", &other.address, &json!({ "zone": "c" })).await;
    stand.await_addresses(&[&one, &other]).await;
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099", "tags": ["zone=c"] });
    let task = stand.api.make_task(&stand.app, "found", "demo", fields).await;
    let log = stand.api.run(task, None).await;
    await_until("it succeeds", 60, || async { when(stand.api.log(log).await["status"] == "succeeded") }).await;
    assert_eq!((one.got("/run").len(), other.got("/run").len()), (0, 1));
    assert_eq!(other.got("/run")[0].token, TOKEN);
    // Metadata that changes changes the tags.
    stand.nacos.register("orders", &other.address, &json!({ "zone": "d" })).await;
    await_until("its tags change", 10, || async {
        when(stand.executors().await.contains(&(bare(&other), vec!["zone=d".to_owned()])))
    })
    .await;
}

async fn who_registers_by_a_published_client_is_found(kind: Kind) {
    let word = "a password & more=of it";
    let stand = Stand::new(kind, &[("nacos.username", "reader"), ("nacos.password", word)]).await;
    stand.nacos.script(|script| script.login = Some(("reader".to_owned(), word.to_owned())));
    let nacos = json!({ "service": "orders", "group": "batch", "namespace": "ns-1" });
    stand.put(json!({ "addresses": [], "nacos": nacos })).await;
    let one = stand.executor().await;
    let folder = folder::fresh("nacos-client");
    let mut client = command::client("nacos");
    client.envs([
        ("NACOS_SERVERS", stand.nacos.url.as_str()),
        ("NACOS_NAMESPACE", "ns-1"),
        ("NACOS_GROUP", "batch"),
        ("NACOS_SERVICE", "orders"),
        ("NACOS_METADATA", r#"{"zone":"b","preserved.register.source":"SPRING_CLOUD"}"#),
        ("NACOS_USERNAME", "reader"),
        ("NACOS_PASSWORD", word),
        ("PROBE_IP", "127.0.0.1"),
        ("PROBE_PORT", bare(&one).rsplit(':').next().unwrap()),
    ]);
    client.env("NACOS_LOGS", &folder);
    let client = Process::start("client of Nacos", client, &folder.join("client.log"));
    let said = |event: &str| client.log().contains(&format!("\"event\": \"{event}\""));
    await_until("it says that it has registered", 60, || async {
        assert!(client.is_running(), "{}", client.log_digest());
        when(said("registered"))
    })
    .await;
    let came = stand.await_addresses(&[&one]).await;
    let tags = ["preserved.register.source=SPRING_CLOUD", "zone=b"].map(str::to_owned);
    assert_eq!(stand.executors().await, [(bare(&one), tags.to_vec())]);
    client.signal("TERM");
    await_until("it says that it has left", 60, || async { when(said("left")) }).await;
    let left = stand.await_addresses(&[]).await;
    assert!(came <= WITHIN_MS && left <= WITHIN_MS, "{came} ms, {left} ms");
}

async fn a_run_goes_on_while_its_instance_flaps(kind: Kind) {
    let stand = Stand::new(kind, QUICK).await;
    stand.follow_nacos().await;
    let one = stand.executor().await;
    one.script(|script| script.calls_back = None);
    stand.nacos.register("orders", &one.address, &json!({})).await;
    stand.await_addresses(&[&one]).await;
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099", "max_retries": 2, "retry_interval_ms": 500 });
    let task = stand.api.make_task(&stand.app, "long", "demo", fields).await;
    let log = stand.api.run(task, None).await;
    await_until("it runs", 60, || async { when(one.got("/run").len() == 1) }).await;
    let job = one.job("demo");
    one.script(|script| script.busy = vec![job]);
    for _ in 0..5 {
        stand.nacos.deregister("orders", &one.address).await;
        stand.await_addresses(&[]).await;
        stand.nacos.register("orders", &one.address, &json!({})).await;
        stand.await_addresses(&[&one]).await;
    }
    // Gone from Nacos, it still tells how its run has ended.
    stand.nacos.deregister("orders", &one.address).await;
    stand.await_addresses(&[]).await;
    let answer = one.call_back(&[(one.runs_of("demo")[0], 200, "done")]).await;
    assert_eq!(answer["code"], 200, "{answer}");
    let ended = stand.world.await_end(log).await;
    assert_eq!((ended.status, ended.attempt), (Status::Succeeded, 1));
    assert_eq!(one.got("/run").len(), 1, "it was sent once");
    assert_eq!(stand.world.database.number("SELECT COUNT(*) FROM executor").await, 1);
}

async fn only_healthy_and_enabled_instances_of_the_named_service_count(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    let (one, other) = (stand.executor().await, stand.executor().await);
    let place = [("groupName", "batch"), ("namespaceId", "ns-1")];
    let with = |more: (&'static str, &'static str)| [place[0], place[1], more];
    stand.nacos.register_with("orders", &one.address, &place).await;
    stand.nacos.register_with("orders", &other.address, &with(("healthy", "false"))).await;
    for (field, value) in [("groupName", "batch"), ("namespaceId", "ns-1")] {
        let elsewhere = stand.executor().await;
        stand.nacos.register_with("orders", &elsewhere.address, &[(field, value)]).await;
    }
    let nacos = json!({ "service": "orders", "group": "batch", "namespace": "ns-1" });
    stand.put(json!({ "addresses": [], "nacos": nacos })).await;
    stand.await_addresses(&[&one]).await;
    stand.nacos.register_with("orders", &other.address, &with(("enabled", "false"))).await;
    pass(1.5).await;
    assert_eq!(stand.addresses().await, [bare(&one)]);
    stand.nacos.register_with("orders", &other.address, &with(("enabled", "true"))).await;
    stand.await_addresses(&[&one, &other]).await;
    // The port of executors may be another than that of the service.
    let port = other.address.trim_end_matches('/').rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let nacos = json!({ "service": "orders", "group": "batch", "namespace": "ns-1", "port": port });
    stand.put(json!({ "addresses": [], "nacos": nacos })).await;
    stand.await_addresses(&[&other]).await;
    stand.put(json!({ "addresses": [], "nacos": null })).await;
    stand.await_addresses(&[]).await;
}

async fn a_nacos_that_is_away_changes_nothing(kind: Kind) {
    let mut stand = Stand::new(kind, QUICK).await;
    stand.follow_nacos().await;
    let (stays, dies) = (stand.executor().await, stand.executor().await);
    for one in [&stays, &dies] {
        stand.nacos.register("orders", &one.address, &json!({})).await;
    }
    stand.await_addresses(&[&stays, &dies]).await;
    stand.nacos.stop().await;
    let shown = stand.await_state("away").await;
    assert!(shown["nacos_problem"].as_str().unwrap().contains(&stand.nacos.url), "{shown}");
    assert!(shown["nacos_since"].as_i64().is_some_and(|since| since > now_ms() - 60_000), "{shown}");
    // Vouching decides who is alive.
    let dead = bare(&dies);
    drop(dies);
    stand.await_addresses(&[&stays]).await;
    // Nor does a node that begins meanwhile take anything away.
    if kind != Kind::Sqlite {
        let servers = stand.nacos.url.clone();
        let settings = [&[("nacos.servers", servers.as_str())], QUICK].concat();
        stand.world.node("b", &settings).await;
    }
    pass(4.0).await;
    assert_eq!(stand.addresses().await, [bare(&stays)]);
    let sql = format!("SELECT COUNT(*) FROM executor WHERE gone_at = 0 AND address IN ('{dead}', '{}')", bare(&stays));
    assert_eq!(stand.world.database.number(&sql).await, 2);
    let said = stand.world.node_logs().matches("Nacos does not say").count();
    assert!((1..=2).contains(&said), "said {said} times, once by each node that asks");
    stand.nacos.listen().await;
    stand.nacos.deregister("orders", &stays.address).await;
    stand.await_addresses(&[]).await;
    assert_eq!(stand.shown().await["nacos_state"], "current");
}

async fn answers_that_are_none_change_nothing(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    stand.follow_nacos().await;
    let one = stand.executor().await;
    stand.nacos.register("orders", &one.address, &json!({})).await;
    stand.await_addresses(&[&one]).await;
    let hosts: Vec<Value> =
        (1..=1_001).map(|port| json!({ "ip": "127.0.0.1", "port": port, "healthy": true })).collect();
    for (answer, why) in [
        (OnList::Text("<html>".to_owned()), "cannot be read"),
        (OnList::Text("{}".to_owned()), "cannot be read"),
        (OnList::Text(json!({ "hosts": hosts }).to_string()), "1001 instances"),
        (OnList::Flood(3 * 1024 * 1024), "more than 2097152 bytes"),
        (OnList::Status(500), "500"),
        (OnList::Status(302), "302"),
        (OnList::Hang, "timed out"),
    ] {
        stand.nacos.script(|script| script.on_list = answer.clone());
        let shown = stand.await_state("away").await;
        assert!(shown["nacos_problem"].as_str().unwrap().contains(why), "{shown}");
        assert_eq!(stand.addresses().await, [bare(&one)]);
        stand.nacos.script(|script| script.on_list = OnList::Answer);
        stand.await_state("current").await;
    }
    // The reason is that of now, since it does not answer at all.
    stand.nacos.script(|script| script.on_list = OnList::Status(500));
    let since = stand.await_state("away").await["nacos_since"].clone();
    stand.nacos.script(|script| script.on_list = OnList::Status(403));
    await_until("the new reason is told", 30, || async {
        let shown = stand.shown().await;
        assert_eq!(shown["nacos_since"], since);
        when(shown["nacos_problem"].as_str().unwrap().contains("403"))
    })
    .await;
    stand.nacos.script(|script| script.on_list = OnList::Answer);
    stand.await_state("current").await;
    // Hosts that may be nobody's leave the others alone.
    let mut hosts = vec![json!({ "ip": "127.0.0.1", "port": 0, "healthy": true })];
    let ips = ["169.254.169.254", "8.8.8.8", "a b", "", "x@127.0.0.1", "127.0.0.1/x", "100.100.100.200"];
    hosts.extend(ips.map(|ip| json!({ "ip": ip, "port": 9999, "healthy": true })));
    let port: u16 = bare(&one).rsplit(':').next().unwrap().parse().unwrap();
    hosts.push(json!({ "ip": "127.0.0.1", "port": port, "healthy": true, "metadata": { "zone": "b" } }));
    let node = stand.world.running_nodes()[0].port;
    hosts.push(json!({ "ip": "127.0.0.1", "port": node, "healthy": true }));
    stand.nacos.script(|script| script.on_list = OnList::Text(json!({ "hosts": hosts }).to_string()));
    await_until("it is read", 10, || async {
        when(stand.executors().await == [(bare(&one), vec!["zone=b".to_owned()])])
    })
    .await;
    assert!(stand.world.node_logs().contains("a node of this cluster listens there"));
}

async fn either_version_of_its_interface_is_read(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    stand.follow_nacos().await;
    let (one, other) = (stand.executor().await, stand.executor().await);
    stand.nacos.register("orders", &one.address, &json!({})).await;
    stand.await_addresses(&[&one]).await;
    assert!(stand.nacos.lists("orders").iter().all(|asked| asked.path == "/nacos/v1/ns/instance/list"));
    // A server that was upgraded.
    stand.nacos.script(|script| script.has_first = false);
    stand.nacos.register("orders", &other.address, &json!({})).await;
    stand.await_addresses(&[&one, &other]).await;
    let lists = stand.nacos.lists("orders");
    assert_eq!(lists.last().unwrap().path, "/nacos/v3/client/ns/instance/list");
    assert!(stand.shown().await["nacos_problem"] == "");
    // And one that was set back.
    stand.nacos.script(|script| (script.has_first, script.has_third) = (true, false));
    stand.nacos.deregister("orders", &other.address).await;
    stand.await_addresses(&[&one]).await;
}

async fn a_login_is_used_and_its_token_replaced(kind: Kind) {
    let word = "a password & more=of it";
    let stand = Stand::new(kind, &[("nacos.username", "reader"), ("nacos.password", word)]).await;
    stand.nacos.script(|script| script.login = Some(("reader".to_owned(), word.to_owned())));
    stand.follow_nacos().await;
    let logins = || stand.nacos.asked().iter().filter(|asked| asked.path.ends_with("/login")).count();
    assert_eq!(logins(), 1, "the token is used again");
    // The server forgets it, as with a restart; then it has the third version alone.
    let (one, other) = (stand.executor().await, stand.executor().await);
    stand.nacos.forget_tokens();
    stand.nacos.register("orders", &one.address, &json!({})).await;
    stand.await_addresses(&[&one]).await;
    assert_eq!(logins(), 2);
    stand.nacos.script(|script| script.has_first = false);
    stand.nacos.forget_tokens();
    stand.nacos.register("orders", &other.address, &json!({})).await;
    stand.await_addresses(&[&one, &other]).await;
    assert_eq!(stand.shown().await["nacos_problem"], "");
    // A password that is refused is a Nacos that does not say.
    let away = Stand::new(kind, &[("nacos.username", "reader"), ("nacos.password", word)]).await;
    away.nacos.script(|script| script.login = Some(("reader".to_owned(), "another".to_owned())));
    away.put(json!({ "addresses": [], "nacos": { "service": "orders" } })).await;
    let shown = away.await_state("away").await;
    assert!(shown["nacos_problem"].as_str().unwrap().contains("refused the login"), "{shown}");
    for stand in [&stand, &away] {
        assert!(!stand.world.node_logs().contains(word), "the password is in no line");
        assert!(stand.nacos.asked().iter().all(|asked| !asked.fields.contains_key("accessToken")));
    }
}

async fn of_two_nodes_one_asks(kind: Kind) {
    let stand = Stand::new(kind, QUICK).await;
    let second = stand.nacos.beside().await;
    let mut settings = vec![("nacos.servers", second.url.as_str())];
    settings.extend(QUICK);
    let b = stand.world.node("b", &settings).await;
    let nodes = [&stand.nacos, &second];
    for number in 0..8 {
        let name = format!("app-{number}");
        let app = stand.api.make_app("retail", &name).await;
        open_door(&stand.api, &app, &format!("{TOKEN}-{number}")).await;
        let spec = json!({ "addresses": [], "nacos": { "service": name } });
        let path = format!("/apps/{}/discovery", app_id(&stand.api, &name).await);
        stand.api.expect(200, Method::PUT, &path, Some(&spec)).await;
    }
    await_until("each app is followed", 60, || async {
        when((0..8).all(|number| stand.nacos.lists(&format!("app-{number}")).len() >= 4))
    })
    .await;
    // Both know of each other by now, and each follows its share.
    await_until("both ask", 60, || async { when(nodes.iter().all(|server| server.asked_here() > 0)) }).await;
    pass(4.0).await;
    let (before, from) = (stand.nacos.asked().len(), now_ms());
    pass(4.0).await;
    let rounds = (now_ms() - from) as usize / 500;
    let asked = stand.nacos.asked().len() - before;
    assert!((8 * (rounds - 2)..=8 * (rounds + 2)).contains(&asked), "{asked} questions in {rounds} rounds of 8 apps");
    // One that dies leaves its share to the other.
    b.process.kill9().await;
    let counts = || (0..8).map(|number| stand.nacos.lists(&format!("app-{number}")).len()).collect::<Vec<_>>();
    await_until("the other follows all of them", 60, || async {
        let before = counts();
        pass(2.0).await;
        when(counts().iter().zip(&before).all(|(now, before)| now > before))
    })
    .await;
}

async fn fixed_addresses_are_executors_until_they_are_taken_away(kind: Kind) {
    let stand = Stand::new(kind, QUICK).await;
    let (one, other) = (stand.executor().await, stand.executor().await);
    let shown = stand.put(json!({ "addresses": [one.address, other.address, bare(&one)], "nacos": null })).await;
    assert_eq!(shown["addresses"], json!([bare(&one), bare(&other)]), "each once, as it is announced");
    assert_eq!((&shown["nacos_state"], &shown["revision"]), (&json!("none"), &json!(1)));
    stand.await_addresses(&[&one, &other]).await;
    let fields = json!({ "cron": "0 0 0 1 1 ? 2099", "routing": "round" });
    let task = stand.api.make_task(&stand.app, "fixed", "demo", fields).await;
    for _ in 0..4 {
        let log = stand.api.run(task, None).await;
        await_until("it succeeds", 60, || async { when(stand.api.log(log).await["status"] == "succeeded") }).await;
    }
    assert_eq!((one.got("/run").len(), other.got("/run").len()), (2, 2));
    // One that does not answer is offline, and online when it does.
    other.script(|script| script.beats = false);
    stand.await_addresses(&[&one]).await;
    other.script(|script| script.beats = true);
    stand.await_addresses(&[&one, &other]).await;
    stand.put(json!({ "addresses": [bare(&other)], "nacos": null })).await;
    stand.await_addresses(&[&other]).await;
    // A door that is closed is closed for them, too.
    let keys = stand.api.get(&format!("/apps/{}/keys", stand.id)).await;
    let token = keys["items"].as_array().unwrap().iter().find(|key| key["kind"] == "token").unwrap();
    let path = format!("/keys/{}", token["id"].as_str().unwrap());
    stand.api.expect(204, Method::DELETE, &path, None).await;
    stand.await_addresses(&[]).await;
    open_door(&stand.api, &stand.app, "another-token-that-nobody-guesses").await;
    stand.await_addresses(&[&other]).await;
    let audit = stand.api.get("/audit?tenant=retail&action=put_discovery").await;
    assert_eq!(audit["items"].as_array().unwrap().len(), 2, "{audit}");
}

async fn nothing_is_asked_where_nothing_is_named(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    pass(2.0).await;
    assert_eq!(stand.nacos.asked_here(), 0);
    // An app without a token has no door that anyone could come in by.
    let closed = stand.api.make_app("retail", "closed").await;
    let path = format!("/apps/{}/discovery", app_id(&stand.api, &closed.name).await);
    let spec = json!({ "addresses": [], "nacos": { "service": "closed" } });
    stand.api.expect(200, Method::PUT, &path, Some(&spec)).await;
    pass(2.0).await;
    assert_eq!(stand.nacos.asked_here(), 0);
    // An app that is deleted takes what was found with it.
    let one = stand.executor().await;
    stand.nacos.register("orders", &one.address, &json!({})).await;
    stand.follow_nacos().await;
    stand.await_addresses(&[&one]).await;
    stand.api.expect(204, Method::DELETE, &format!("/apps/{}", stand.id), None).await;
    for table in ["executor_source WHERE app_id", "executor WHERE gone_at = 0 AND app_id"] {
        let sql = format!("SELECT COUNT(*) FROM {table} = {}", stand.id);
        assert_eq!(stand.world.database.number(&sql).await, 0, "{table}");
    }
    pass(2.0).await;
    let before = stand.nacos.asked_here();
    pass(2.0).await;
    assert_eq!(stand.nacos.asked_here(), before);
}

async fn what_may_be_nobodys_is_refused(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    let path = format!("/apps/{}/discovery", stand.id);
    for (address, why) in [
        ("http://169.254.169.254:80", "never executors"),
        ("http://8.8.8.8:80", "executors.allowed_networks"),
        ("http://127.0.0.1:9/xxl", "only http://host:port"),
        ("https://127.0.0.1:9", "must begin with http://"),
        ("nonsense", "not a URL"),
    ] {
        let spec = json!({ "addresses": ["http://127.0.0.1:9", address], "nacos": null });
        let errors = stand.api.refused(400, Method::PUT, &path, &spec).await;
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].0 == "addresses[1]" && errors[0].1.contains(why), "{errors:?}");
    }
    let spec = json!({ "addresses": [], "nacos": { "service": "a@@b" } });
    assert_eq!(stand.api.refused(400, Method::PUT, &path, &spec).await[0].0, "nacos.service");
    assert_eq!(stand.api.refused(400, Method::PUT, &path, &json!({ "nacos": null })).await[0].0, "addresses");
    assert_eq!(stand.shown().await["revision"], 0);
    // A node is no executor, whoever says so.
    let node = stand.world.running_nodes()[0].url.clone();
    stand.put(json!({ "addresses": [node], "nacos": null })).await;
    await_until("it is said", 10, || async {
        when(stand.world.node_logs().contains("a node of this cluster listens there"))
    })
    .await;
    assert!(stand.addresses().await.is_empty());
    assert_eq!(stand.world.database.number("SELECT COUNT(*) FROM executor").await, 0);
}

async fn who_registers_itself_stays(kind: Kind) {
    let stand = Stand::new(kind, &[]).await;
    stand.follow_nacos().await;
    let one = stand.executor().await;
    assert_eq!(one.register().await["code"], 200);
    stand.nacos.register("orders", &one.address, &json!({ "zone": "b" })).await;
    await_until("Nacos tags it", 10, || async {
        when(stand.executors().await == [(bare(&one), vec!["zone=b".to_owned()])])
    })
    .await;
    stand.nacos.deregister("orders", &one.address).await;
    await_until("its tags go with Nacos", 10, || async { when(stand.executors().await == [(bare(&one), Vec::new())]) })
        .await;
    pass(1.0).await;
    assert_eq!(stand.addresses().await, [bare(&one)]);
    assert_eq!(one.remove().await["code"], 200);
    stand.await_addresses(&[]).await;
    // One that Nacos names goes on when it stops to register, and is one all the time.
    stand.nacos.register("orders", &one.address, &json!({})).await;
    stand.await_addresses(&[&one]).await;
    assert_eq!(one.register().await["code"], 200);
    pass(1.5).await;
    assert_eq!(stand.addresses().await, [bare(&one)]);
    assert_eq!(stand.world.database.number("SELECT COUNT(*) FROM executor").await, 1);
}
