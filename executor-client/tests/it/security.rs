//! Only holders of the key are served, and nothing unsigned is trusted.

use crate::client::{Call, call, dispatch, http, item, signed_with};
use crate::harness::{Running, SECRET, Seen, builder, eventually};
use crate::node::{EXECUTOR_ID, Mode, TestNode};
use carillon_protocol::sign::{SignMethod, header};
use carillon_protocol::{AskHealth, BODY_BYTES_MAX, Code, Health, Reply};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn setup() -> (TestNode, tempfile::TempDir, Arc<Seen>, Running) {
    let node = TestNode::start().await;
    let journal = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let running = Running::registered(builder(&[&node], &journal, &seen), &node).await;
    (node, journal, seen, running)
}

async fn expect(what: &str, call: Call, code: Code) {
    let got = call.send().await;
    assert_eq!(got.code, code, "{what}");
    assert!(!got.signed, "{what}: a refusal must not be signed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_not_right_in_every_part_are_refused() {
    let (node, _journal, seen, running) = setup().await;
    let now = node.now_ms();
    let message = dispatch(vec![item(1, "quick", now)]);
    let honest = || call(running.port, "/dispatch", &message, now);
    let port = running.port;

    let mut tampered = honest();
    tampered.body = serde_json::to_vec(&dispatch(vec![item(2, "quick", now)])).unwrap();
    expect("another body", tampered, Code::WrongSignature).await;
    for query in ["?secret=x", "?tenant=other", "?"] {
        let mut injected = honest();
        injected.query = query.to_owned();
        let got = injected.send().await;
        // An empty query is the same request.
        if query != "?" {
            assert_eq!(got.code, Code::WrongSignature);
        }
    }
    expect("no signature", honest().without(header::SIGN), Code::Unsigned).await;
    expect("no nonce", honest().without(header::NONCE), Code::Unsigned).await;
    let tenant = honest().with(header::TENANT, "wholesale");
    expect("another tenant", tenant, Code::UnknownKey).await;
    let app = honest().with(header::APP, "billing");
    expect("another app", app, Code::UnknownKey).await;
    let key = honest().with(header::KEY, "key-2");
    expect("another key", key, Code::UnknownKey).await;
    let hmac = SignMethod::HmacSha256;
    let guessed = signed_with(port, "/dispatch", &message, now, "guess", hmac);
    expect("another secret", guessed, Code::WrongSignature).await;
    let weaker = signed_with(port, "/dispatch", &message, now, SECRET, SignMethod::Md5);
    expect("another method", weaker, Code::SignMethod).await;
    let old = call(port, "/dispatch", &message, now - 400_000);
    expect("an old timestamp", old, Code::ClockSkew).await;
    let nonce = honest().with(header::NONCE, "0123456789&path=/x");
    expect("a nonce with a field", nonce, Code::BadRequest).await;
    let mut elsewhere = honest();
    elsewhere.path = "/cancel".into();
    expect("another path", elsewhere, Code::WrongSignature).await;
    let mut nowhere = honest();
    nowhere.path = "/admin".into();
    expect("an unknown path", nowhere, Code::NotFound).await;
    let mut twice = honest();
    twice.headers.push((header::TENANT, "wholesale".into()));
    expect("a header given twice", twice, Code::Unsigned).await;
    assert!(!seen.has_started(2));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_is_refused() {
    let (node, _journal, _seen, running) = setup().await;
    let message = dispatch(vec![item(1, "quick", node.now_ms())]);
    let once = call(running.port, "/dispatch", &message, node.now_ms());
    let first = once.send().await;
    assert_eq!((first.code, first.status, first.signed), (Code::Ok, 200, true));
    expect("the same again", once, Code::Replayed).await;
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_another_process_or_without_sense_are_refused_signed() {
    let (node, _journal, _seen, running) = setup().await;
    let now = node.now_ms();
    let mut other = dispatch(vec![item(1, "quick", now)]);
    other.executor_id += 1;
    let got = call(running.port, "/dispatch", &other, now).send().await;
    assert_eq!((got.code, got.signed), (Code::WrongExecutor, true));
    let got = call(running.port, "/dispatch", &"nonsense", now).send().await;
    assert_eq!((got.code, got.signed), (Code::BadRequest, true));
    let got = call(running.port, "/logs", &"{}", now).send().await;
    assert_eq!((got.code, got.signed), (Code::BadRequest, true));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_announced_too_large_is_not_read() {
    let (node, _journal, _seen, running) = setup().await;
    let honest = call(running.port, "/dispatch", &"x", node.now_ms());
    let mut head = format!("POST /dispatch HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n", BODY_BYTES_MAX + 1);
    for (name, value) in &honest.headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.push_str("\r\n");
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", running.port)).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 32];
    let read = stream.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 413"));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_to_nodes_of_the_app_signed() {
    let (node, _journal, _seen, running) = setup().await;
    let honest = || call(running.port, "/health", &AskHealth {}, node.now_ms());
    let got = honest().send().await;
    assert_eq!((got.code, got.signed), (Code::Ok, true));
    let health: Health = serde_json::from_value(got.data).unwrap();
    assert_eq!((health.executor_id, health.running), (EXECUTOR_ID, 0));
    assert_eq!(health.instance, node.state().registers[0].instance);
    expect("no signature", honest().without(header::SIGN), Code::Unsigned).await;
    expect("another app", honest().with(header::APP, "billing"), Code::UnknownKey).await;
    let guessed = signed_with(running.port, "/health", &AskHealth {}, node.now_ms(), "guess", SignMethod::HmacSha256);
    expect("another secret", guessed, Code::WrongSignature).await;
    running.stopped().await;
}

/// Nodes of carillon 0.1 ask so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_to_older_nodes_unsigned_and_without_the_secret() {
    let (_node, _journal, _seen, running) = setup().await;
    let url = format!("http://127.0.0.1:{}/health", running.port);
    let text = http().get(url).send().await.unwrap().text().await.unwrap();
    let reply: Reply<Health> = serde_json::from_str(&text).unwrap();
    assert_eq!(reply.data.unwrap().running, 0);
    assert!(!text.contains(SECRET));
    running.stopped().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_acknowledgement_is_not_believed() {
    let (node, _journal, _seen, running) = setup().await;
    node.set(Mode::Forged);
    running.dispatch(vec![item(1, "quick", node.now_ms())], &node).await;
    eventually("result sent twice", || node.state().result_requests >= 2).await;
    node.set(Mode::Normal);
    eventually("result delivered", || node.result(1).is_some()).await;
    running.stopped().await;
}
