//! TLS: who is trusted, who must show a certificate, and files that change or cannot be used.

use carillon_protocol::{Code, Reply};
use carillon_tests::certificates::{Authority, Files, text};
use carillon_tests::executor::Options;
use carillon_tests::fires::assert_all;
use carillon_tests::node::TOKEN;
use carillon_tests::process::Process;
use carillon_tests::wait::when;
use carillon_tests::{Executor, Kind, Node, Status, World, await_until, command, folder};
use reqwest::tls::TlsInfo;
use serde_json::json;
use std::path::Path;

scenario!(executors_show_certificates_and_people_do_not: mariadb);
scenario!(client_certificates_are_required_of_all: sqlite);
scenario!(a_certificate_is_reloaded_while_the_node_runs: sqlite);
scenario!(the_command_asks_over_tls: sqlite);

fn with_tls<'a>(files: &'a Files, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let own = [("server.tls.certificate", text(&files.certificate)), ("server.tls.key", text(&files.key))];
    own.into_iter().chain(more.iter().copied()).collect()
}

fn https(node: &Node) -> String {
    format!("https://127.0.0.1:{}", node.port)
}

/// Waits until the node answers `client`.
async fn ready(node: &Node, client: &reqwest::Client) {
    await_until(&format!("node {} is ready", node.name), 60, || async {
        assert!(node.process.is_running(), "{}", node.process.log_digest());
        when(get(client, &format!("{}/readyz", https(node))).await == Some(200))
    })
    .await;
}

/// The status of `GET url` with the API token; `None` without an answer.
async fn get(client: &reqwest::Client, url: &str) -> Option<u16> {
    client.get(url).bearer_auth(TOKEN).send().await.ok().map(|reply| reply.status().as_u16())
}

async fn executors_show_certificates_and_people_do_not(kind: Kind) {
    let world = World::new(kind).await;
    let (authority, stranger) = (Authority::new("authority"), Authority::new("stranger"));
    let (own, shown, forged) = (authority.issue("node"), authority.issue("executor"), stranger.issue("executor"));
    let settings = with_tls(&own, &[("server.tls.client_ca", text(&authority.file))]);
    let secure = world.unready_node("b", 0, &settings);
    ready(&secure, &authority.client(None)).await;
    // Without TLS, for the harness.
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let url = https(&secure);

    // People and programs need no certificate; executors are not heard without one.
    let person = authority.client(None);
    assert_eq!(get(&person, &format!("{url}/api/v1/apps")).await, Some(200));
    let secured = person.get(format!("{url}/healthz")).send().await.unwrap();
    assert_eq!(secured.headers().get("strict-transport-security").unwrap(), "max-age=31536000");
    let unheard = person.post(format!("{url}/openapi/executors/heartbeat")).body("{}").send().await.unwrap();
    assert_eq!(unheard.status().as_u16(), 403);
    let unheard: Reply<()> = serde_json::from_slice(&unheard.bytes().await.unwrap()).unwrap();
    assert_eq!(unheard.code, Code::Forbidden, "{}", unheard.msg);
    assert!(unheard.msg.contains("client certificate"), "{}", unheard.msg);
    let heard = authority.client(Some(&shown)).post(format!("{url}/openapi/executors/heartbeat")).body("{}").send();
    assert_eq!(heard.await.unwrap().status().as_u16(), 401, "heard, and asked for its signature");
    assert_eq!(get(&authority.client(Some(&forged)), &format!("{url}/readyz")).await, None, "another authority's");
    assert_eq!(get(&stranger.client(None), &format!("{url}/readyz")).await, None, "a client that trusts another");

    // An executor end to end, and two that are not let in.
    let urls = [url.clone()];
    let start = |name: &str, env: &[(&str, &str)]| {
        let executor = Executor::start(name, &app, &urls, &Options { env, ..Options::default() });
        assert!(executor.process.is_running());
        executor
    };
    let ca = ("CARILLON_CA_FILE", text(&authority.file));
    let certificate = ("CARILLON_CLIENT_CERTIFICATE", text(&shown.certificate));
    let key = ("CARILLON_CLIENT_KEY", text(&shown.key));
    let bare = start("bare", &[ca]);
    let mistrustful = start("mistrustful", &[("CARILLON_CA_FILE", text(&stranger.file)), certificate, key]);
    let env = [ca, certificate, key, ("CARILLON_SCHEDULERS", url.as_str())];
    let good = world.executor_with("good", &app, &Options { env: &env, ..Options::default() }).await;
    for task in crate::sharing::every_second(&api, &app, 2).await {
        world.await_successes(task, 5).await;
    }
    await_until("the one without a certificate says why", 30, || async {
        when(bare.process.log().contains("code 40300"))
    })
    .await;
    await_until("the one that trusts another says why", 30, || async {
        when(mistrustful.process.log().contains("UnknownIssuer"))
    })
    .await;
    assert_eq!(world.database.number("SELECT COUNT(*) FROM executor").await, 1, "only one was let in");
    let (rows, _) = world.settle_and_check().await;
    assert_all("without a failure", &rows, |row| row.failures == 0);
    assert!(rows.iter().any(|row| row.status == Status::Succeeded) && !good.starts().is_empty());
}

async fn client_certificates_are_required_of_all(kind: Kind) {
    let world = World::new(kind).await;
    let authority = Authority::new("authority");
    let (own, shown) = (authority.issue("node"), authority.issue("client"));
    let all = [("server.tls.client_ca", text(&authority.file)), ("server.tls.client_certificates", "all")];
    let node = world.unready_node("a", 0, &with_tls(&own, &all));
    ready(&node, &authority.client(Some(&shown))).await;
    for path in ["/healthz", "/api/v1/apps"] {
        let url = format!("{}{path}", https(&node));
        assert_eq!(get(&authority.client(Some(&shown)), &url).await, Some(200), "{path} with one");
        assert_eq!(get(&authority.client(None), &url).await, None, "{path} without one");
    }
}

async fn a_certificate_is_reloaded_while_the_node_runs(kind: Kind) {
    let world = World::new(kind).await;
    let authority = Authority::new("authority");
    let (own, renewed) = (authority.issue("node"), authority.issue("renewed"));
    let node = world.unready_node("a", 0, &with_tls(&own, &[("server.tls.reload_interval", "1s")]));
    ready(&node, &authority.client(None)).await;
    let shown = async || {
        // Each look on a connection of its own.
        let reply = authority.client(None).get(format!("{}/healthz", https(&node))).send().await.unwrap();
        let info = reply.extensions().get::<TlsInfo>().expect("TLS");
        info.peer_certificate().expect("a certificate").to_vec()
    };
    let first = shown().await;
    std::fs::write(&own.certificate, "no certificate any more").unwrap();
    await_until("the node says that it cannot use it", 30, || async {
        when(node.process.log().contains("the old TLS certificate stays in use"))
    })
    .await;
    assert_eq!(shown().await, first);
    own.become_like(&renewed);
    await_until("the node shows the new certificate", 30, || async { when(shown().await != first) }).await;
    let told = node.process.log().matches("it holds no certificate").count();
    assert_eq!(told, 1, "a fault is told once");
}

async fn the_command_asks_over_tls(kind: Kind) {
    let world = World::new(kind).await;
    let (authority, stranger) = (Authority::new("authority"), Authority::new("stranger"));
    let own = authority.issue("node");
    let node = world.unready_node("a", 0, &with_tls(&own, &[]));
    let client = authority.client(None);
    ready(&node, &client).await;
    let made =
        client.post(format!("{}/api/v1/tenants", https(&node))).bearer_auth(TOKEN).json(&json!({ "name": "retail" }));
    assert_eq!(made.send().await.unwrap().status().as_u16(), 201);
    let export = async |ca_file: &Path| {
        let folder = folder::fresh("export");
        let mut command = command::carillon();
        command.args(["tasks", "export", "--tenant", "retail", "--url", &https(&node)]).env("CARILLON_TOKEN", TOKEN);
        command.current_dir(&folder).args(["--ca-file", text(ca_file)]);
        let process = Process::start("carillon", command, &folder.join("output.log"));
        (process.wait_exit(60).await.success(), process.log())
    };
    let (done, output) = export(&authority.file).await;
    assert!(done, "{output}");
    let (done, output) = export(&stranger.file).await;
    assert!(!done && output.contains("UnknownIssuer"), "{output}");
    let (done, output) = export(&own.key).await;
    assert!(!done && output.contains("--ca-file") && output.contains("no certificate"), "{output}");
    let (done, output) = export(Path::new("/nowhere.pem")).await;
    assert!(!done && output.contains("/nowhere.pem"), "{output}");
}
