//! What those who hold keys may use of a node that all share.

use carillon_protocol::sign::header;
use carillon_protocol::{BODY_BYTES_MAX, Code, Register, Results};
use carillon_tests::node::TOKEN;
use carillon_tests::wait::when;
use carillon_tests::wire::Request;
use carillon_tests::{App, FakeExecutor, Kind, Node, World, await_until, http, now_ms};
use std::cell::RefCell;
use std::fmt::Write as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

scenario!(an_app_has_only_so_many_executors_online: sqlite);
scenario!(large_bodies_share_what_a_node_reads_at_once: sqlite);

const ONLINE_MAX: i64 = 2_000;

/// A body up to this size always passes.
const SMALL_BYTES: usize = 64 * 1024;

async fn an_app_has_only_so_many_executors_online(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let (app, other) = (api.make_app("retail", "orders").await, api.make_app("insurance", "orders").await);
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    // With these, as many as there may be. They were heard of as late as a database lets its nodes believe.
    let columns = "tenant_id, app_id, key_id, handlers, capacity, tags, host_name, pid, version, description, held, \
                   running, draining, registered_at, described_at, gone_at";
    let heard = now_ms() + 50_000;
    let crowd = format!(
        "WITH RECURSIVE crowd (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM crowd WHERE n < {ONLINE_MAX} - 1) \
         INSERT INTO executor (id, instance, address, heartbeat_at, {columns}) \
         SELECT n, 'i' || n, 'http://127.0.0.1:' || n, {heard}, {columns} FROM executor, crowd"
    );
    assert_eq!(world.database.execute(&crowd).await, ONLINE_MAX as u64 - 1);
    await_until("the node knows all of them", 30, || async {
        let page = http::shared().get(format!("{}/metrics", node.url)).bearer_auth(TOKEN).send().await.unwrap();
        let page = page.text().await.unwrap();
        when(page.contains(&format!("\ncarillon_executors_online {ONLINE_MAX}\n")))
    })
    .await;

    let register = async |app: &App, instance: &str, address: &str| {
        let message = Register { instance: instance.into(), address: address.into(), ..fake.description() };
        let answer = Request::new(app, &node.url, "/openapi/executors/register", &message).send().await;
        assert!(answer.is_signed, "{answer:?}");
        let reply = answer.reply::<serde_json::Value>();
        (reply.code, reply.msg)
    };
    let known = || world.database.number("SELECT COUNT(*) FROM executor");
    let (before, free) = (known().await, "http://127.0.0.1:30000");
    let (code, text) = register(&app, "one more", free).await;
    assert_eq!(code, Code::TooMany, "{text}");
    assert!(text.contains("2000 executors online"), "{text}");
    assert_eq!(known().await, before, "a registration that is refused leaves a row");
    assert_eq!(register(&other, "of another app", free).await.0, Code::Ok);
    assert_eq!(register(&app, "in its place", "http://127.0.0.1:7").await.0, Code::Ok);
    assert_eq!(register(&app, fake.instance(), &fake.description().address).await.0, Code::Ok, "it is there already");
    world.assert_quiet(&[]);
}

/// A request of `app` whose body, as large as may be, has been sent save its last byte; or a part of it, if the node
/// refused it midway.
async fn nearly_sent(node: &Node, app: &App, number: usize) -> TcpStream {
    let mut head = format!("POST /openapi/results HTTP/1.1\r\nhost: node\r\ncontent-length: {BODY_BYTES_MAX}\r\n");
    for (name, value) in [
        (header::TENANT, app.tenant.as_str()),
        (header::APP, app.name.as_str()),
        (header::KEY, app.key.id.as_str()),
        (header::TIMESTAMP, &now_ms().to_string()),
        (header::NONCE, &format!("0123456789abcd{number:02}")),
        (header::SIGN_METHOD, "HMAC-SHA256"),
        (header::SIGN, "0123"),
    ] {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let mut stream = TcpStream::connect(("127.0.0.1", node.port)).await.unwrap();
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let _refused = stream.write_all(&vec![b' '; BODY_BYTES_MAX - 1]).await;
    stream
}

async fn large_bodies_share_what_a_node_reads_at_once(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let app = world.api().make_app("retail", "orders").await;
    let nothing = Results { executor_id: 1, results: Vec::new() };
    let of_size = async |bytes: usize| {
        let request = Request::new(&app, &node.url, "/openapi/results", &nothing);
        request.with(|request| request.body.resize(bytes, b' ')).send().await
    };
    assert_eq!(of_size(SMALL_BYTES + 1).await.code(), Code::Ok);
    // One by one: a large body that is read meanwhile may be why one of them is refused.
    let lines = RefCell::new(Vec::new());
    let busy = await_until("no other large body is read", 30, || async {
        let answer = of_size(SMALL_BYTES + 1).await;
        if answer.code() == Code::TooMany {
            return Some(answer);
        }
        let number = lines.borrow().len();
        let line = nearly_sent(&node, &app, number).await;
        lines.borrow_mut().push(line);
        None
    })
    .await;
    assert!(busy.status == 429 && busy.retry_after.is_some() && !busy.is_signed, "{busy:?}");
    assert_eq!(of_size(SMALL_BYTES).await.code(), Code::Ok, "small ones always pass");
    drop(lines);
    await_until("large bodies are read again", 20, || async {
        when(of_size(SMALL_BYTES + 1).await.code() == Code::Ok)
    })
    .await;
    world.assert_quiet(&[]);
}
