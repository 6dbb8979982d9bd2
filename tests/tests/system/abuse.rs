//! Bounds on what a caller may cost: size, time, rate, pages; and what every answer carries.

use bytes::Bytes;
use carillon_tests::api::whole_calendar;
use carillon_tests::{Api, Kind, World, await_until, http};
use http_body_util::StreamBody;
use hyper::body::Frame;
use reqwest::Method;
use reqwest::header::{ALLOW, HeaderMap, RETRY_AFTER};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

scenario!(slow_clients_are_cut_off: sqlite);
scenario!(large_requests_are_refused: sqlite);
scenario!(callers_and_addresses_have_a_rate: sqlite);
scenario!(pages_are_bounded: sqlite mariadb postgres);
scenario!(every_answer_carries_its_headers: sqlite);
scenario!(strange_text_is_no_fault: sqlite mariadb postgres);

/// Heads and bodies may take ten seconds, and a busy machine some more.
const CUT_OFF_S: u64 = 25;

/// Sends `text` at once and then a byte of `rest` every half second; what came back when the node
/// had enough, and after how long.
async fn drip(port: u16, text: &str, rest: &str) -> (String, Duration) {
    let began = Instant::now();
    let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let text = text.to_owned();
    let rest = rest.to_owned().into_bytes();
    let sender = tokio::spawn(async move {
        // Errors mean that the node has cut the line, which is what is waited for below.
        if write.write_all(text.as_bytes()).await.is_err() {
            return;
        }
        for byte in rest.into_iter().cycle() {
            tokio::time::sleep(Duration::from_millis(500)).await;
            if write.write_all(&[byte]).await.is_err() {
                return;
            }
        }
        // The line stays open without a word.
        std::future::pending::<()>().await;
    });
    let mut answer = Vec::new();
    let end = tokio::time::timeout(Duration::from_secs(CUT_OFF_S), async {
        let mut chunk = [0; 1024];
        loop {
            match read.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(count) => answer.extend_from_slice(&chunk[..count]),
            }
        }
    })
    .await;
    sender.abort();
    assert!(end.is_ok(), "after {CUT_OFF_S} s the node still listens; so far {}", String::from_utf8_lossy(&answer));
    (String::from_utf8_lossy(&answer).into_owned(), began.elapsed())
}

async fn slow_clients_are_cut_off(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let head = "POST /api/v1/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200\r\n";
    let token = carillon_tests::node::TOKEN;
    let known = format!(
        "POST /api/v1/tenants HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n"
    );
    let whole = format!("{head}\r\n");
    let chunked = whole.replace("Content-Length: 200", "Transfer-Encoding: chunked");
    let (head_only, first_line, silent, body, of_known, chunks) = tokio::join!(
        drip(node.port, head, "X-A: b\r\n"),
        drip(node.port, "GET /heal", "a"),
        drip(node.port, "", ""),
        drip(node.port, &whole, " "),
        drip(node.port, &known, " "),
        drip(node.port, &chunked, "1\r\n \r\n"),
    );
    for (what, (answer, after)) in [("head", &head_only), ("first line", &first_line), ("silence", &silent)] {
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{what}: {answer}");
        assert!(after.as_secs() >= 1, "{what}: cut off after {after:?}");
    }
    for (what, (answer, _)) in [("body", &body), ("body of a known caller", &of_known), ("chunks", &chunks)] {
        assert!(answer.starts_with("HTTP/1.1 408"), "{what}: {answer}");
        assert!(answer.contains("application/problem+json"), "{what}: {answer}");
    }
    // Meanwhile, and afterwards, others are served.
    assert_eq!(node.probe("/readyz").await, Some(200));
    world.assert_quiet(&[]);
}

async fn large_requests_are_refused(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let url = format!("{}/api/v1/tenants", node.url);
    let large = json!({ "name": "x", "description": "y".repeat(300 * 1024) });
    api.refused(413, Method::POST, "/tenants", &large).await;
    // Without a length the size is not known in advance.
    let chunk = || Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(&[b' '; 4_096])));
    let chunks = StreamBody::new(futures_util::stream::iter((0..80).map(move |_| chunk())));
    let request = http::shared().post(&url).bearer_auth(api.token()).header("content-type", "application/json");
    let answer = request.body(reqwest::Body::wrap(chunks)).send().await;
    assert_eq!(answer.unwrap().status(), 413);
    // An unknown caller need not send it at all.
    let answer =
        http::shared().post(&url).header("content-type", "application/json").body(large.to_string()).send().await;
    // The line may be cut before the answer is read.
    assert!(answer.is_err() || answer.unwrap().status() == 401);
    // A head that never ends.
    let mut request = http::shared().get(&url).bearer_auth(api.token());
    for number in 0..200 {
        request = request.header(format!("x-{number}"), "z".repeat(2_000));
    }
    let answer = request.send().await;
    assert!(answer.is_err() || (400..500).contains(&answer.unwrap().status().as_u16()));
    let long = "z".repeat(100_000);
    let answer = http::shared().get(format!("{url}?after={long}")).bearer_auth(api.token()).send().await;
    assert!(answer.is_err() || (400..500).contains(&answer.unwrap().status().as_u16()));
    // Deep nesting is no way to exhaust the stack.
    let deep = format!("{{\"params\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let request = http::shared().post(format!("{}/api/v1/tasks", node.url)).bearer_auth(api.token());
    let answer = request.header("content-type", "application/json").body(deep).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(api.get("/tenants").await["items"], json!([]));
    assert_eq!(node.probe("/readyz").await, Some(200));
    world.assert_quiet(&[]);
}

async fn callers_and_addresses_have_a_rate(kind: Kind) {
    let world = World::new(kind).await;
    // One caller: 2 a second, 10 at once; one address: 4 a second, 20 at once.
    let node = world.node("a", &[("api.requests_per_second", "2")]).await;
    let ask = |token: &'static str| {
        let request = http::shared().get(format!("{}/api/v1/tenants", node.url)).bearer_auth(token);
        async move { request.send().await.unwrap() }
    };
    let first_refusal = |token: &'static str| async move {
        for _ in 0..200 {
            let answer = ask(token).await;
            if answer.status() == 429 {
                return answer;
            }
        }
        panic!("this caller is not stopped");
    };
    let refused = first_refusal(carillon_tests::node::TOKEN).await;
    let wait: u64 = refused.headers()[RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait), "{wait}");
    assert_eq!(refused.json::<serde_json::Value>().await.unwrap()["status"], 429);
    // Unknown callers have the address's rate, and so does looking for what there is.
    let refused = first_refusal("nobody").await;
    assert!(refused.headers().contains_key(RETRY_AFTER));
    for path in ["/api/v1/no-such-thing", "/api/v1/openapi.json", "/api/v1/login"] {
        await_until("the address has to wait", 20, || async {
            let answer = http::shared().get(format!("{}{path}", node.url)).send().await.unwrap();
            (answer.status() == 429).then_some(())
        })
        .await;
    }
    // Orchestrators are always answered.
    assert_eq!(node.probe("/healthz").await, Some(200));
    assert_eq!(node.probe("/readyz").await, Some(200));
    world.assert_quiet(&[]);
}

async fn pages_are_bounded(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("api.requests_per_second", "10000")]).await;
    let api = world.api();
    let insert = "INSERT INTO tenant (id, name, created_at, revision, max_concurrent) VALUES";
    let rows: Vec<String> = (1..=600).map(|id| format!("({id}, 'tenant-{id:04}', 1, 1, 0)")).collect();
    world.database.execute(&format!("{insert} {}", rows.join(", "))).await;
    let count = |query: &'static str| {
        let api = api.clone();
        async move { api.get(&format!("/tenants{query}")).await["items"].as_array().unwrap().len() }
    };
    assert_eq!(count("").await, 50);
    assert_eq!(count("?limit=1").await, 1);
    assert_eq!(count("?limit=500").await, 500);
    for wrong in ["501", "0", "-1", "18446744073709551615", "99999999999999999999999", "ten", ""] {
        api.expect(400, Method::GET, &format!("/tenants?limit={wrong}"), None).await;
    }
    // Every page, to the end, each row once.
    let mut names = Vec::new();
    let mut after = String::new();
    loop {
        let page = api.get(&format!("/tenants?limit=70{after}")).await;
        names.extend(page["items"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(names.len(), 600);
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    // Every list with a limit keeps to it, also those of one's own account.
    let ann = api.make_person("ann", None).await;
    api.grant(&ann, "platform admin", None).await;
    for operation in carillon_tests::openapi::operations(&node.url).await {
        if operation.method == Method::GET && operation.parameters.iter().any(|name| name == "limit") {
            let path = &operation.path;
            if !path.contains('{') {
                ann.api.expect(400, Method::GET, &format!("{path}?limit=501"), None).await;
                ann.api.expect(400, Method::GET, &format!("{path}?limit=0"), None).await;
            }
        }
    }
    world.assert_quiet(&[]);
}

fn assert_headers(what: &str, headers: &HeaderMap) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        let given: Vec<_> = headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(given, [value], "{what}: {name}");
    }
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{what}: {policy}");
    assert!(!headers.contains_key("access-control-allow-origin"), "{what}");
    assert!(!headers.contains_key("server") && !headers.contains_key("x-powered-by"), "{what}");
}

async fn every_answer_carries_its_headers(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let client = http::shared();
    let token = carillon_tests::node::TOKEN;
    let at = |path: &str| format!("{}{path}", node.url);
    for (status, request) in [
        (200, client.get(at("/api/v1/tenants")).bearer_auth(token)),
        (400, client.get(at("/api/v1/tenants?limit=x")).bearer_auth(token)),
        (401, client.get(at("/api/v1/tenants"))),
        (401, client.get(at("/api/v1/nothing"))),
        (404, client.get(at("/api/v1/nothing")).bearer_auth(token)),
        (200, client.get(at("/"))),
        (404, client.get(at("/assets/passwd"))),
        (404, client.post(at("/etc/passwd"))),
        (405, client.patch(at("/api/v1/tenants"))),
        (415, client.post(at("/api/v1/tenants")).bearer_auth(token).header("content-type", "text/plain").body("{}")),
        (413, client.post(at("/api/v1/tenants")).bearer_auth(token).json(&json!({ "name": "x".repeat(300_000) }))),
        (200, client.get(at("/api/v1/openapi.json"))),
        (200, client.get(at("/api/v1/reference"))),
        (200, client.get(at("/healthz"))),
        (200, client.get(at("/readyz"))),
    ] {
        let what = format!("{request:?}");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), status, "{what}");
        assert_headers(&what, answer.headers());
        if status == 405 {
            assert_eq!(answer.headers()[ALLOW], "GET, POST");
        }
        if status == 401 {
            assert_eq!(answer.headers()["www-authenticate"], "Bearer");
        }
    }
    world.assert_quiet(&[]);
}

/// Whatever a path, a query or a body contains, the node does not fail on it.
async fn strange_text_is_no_fault(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("near", "orders").await;
    let task = api.make_task(&app, "t", "tick", json!({ "started": false })).await;
    strange_addresses(&api).await;
    strange_bodies(&api, task).await;
    strange_numbers(&api, task).await;
    let ann = api.make_person("ann", Some("near")).await;
    for text in ["a\0b", "ci \u{1f514}"] {
        let body =
            json!({ "name": text, "permissions": ["tasks.read"], "expires_at": carillon_tests::now_ms() + 60_000 });
        is_fine(&ann.api.send(Method::POST, "/account/tokens", Some(&body)).await, text);
    }
    let agent = http::shared().post(api.address("/login")).header("user-agent", "\u{1f514} bell");
    let agent = agent.json(&json!({ "name": "ann", "password": carillon_tests::people::PASSWORD }));
    assert_eq!(agent.send().await.unwrap().status(), 200);
    world.assert_quiet(&[]);
}

fn is_fine(answer: &(u16, serde_json::Value), what: &str) {
    assert!((200..500).contains(&answer.0), "{what}: {} {}", answer.0, answer.1);
}

async fn strange_addresses(api: &Api) {
    let texts = [
        "%00",
        "a%00b",
        "%F0%9F%94%94",
        "%27%20OR%201%3D1",
        "%22",
        "%5C",
        "%25",
        "%ff",
        "..%2F..",
        "-1",
        "9223372036854775808",
    ];
    for text in texts {
        for path in [
            format!("/tenants/{text}"),
            format!("/tenants?after={text}"),
            format!("/apps?tenant={text}&name={text}"),
            format!("/calendars/near/{text}"),
            format!("/users?name={text}"),
            format!("/users/{text}"),
            format!("/audit?target={text}"),
            format!("/audit?kind={text}&action={text}"),
            format!("/audit?before={text}"),
            format!("/tasks?name={text}"),
            format!("/tasks?after={text}"),
            format!("/task-logs?before={text}"),
            format!("/executors?tenant={text}"),
            format!("/tasks/export?tenant={text}"),
            format!("/tokens?user={text}"),
        ] {
            is_fine(&api.send(Method::GET, &path, None).await, &path);
        }
        is_fine(
            &api.send(Method::PUT, &format!("/calendars/near/{text}"), Some(&whole_calendar(json!({})))).await,
            text,
        );
    }
}

async fn strange_bodies(api: &Api, task: i64) {
    for text in ["a\0b", "\u{10ffff}\u{fffe}", "bell \u{1f514}", "' OR 1=1 --", "\\", "\u{202e}txt"] {
        for (method, path, body) in [
            (Method::POST, "/tenants", json!({ "name": text })),
            (Method::PATCH, "/tenants/near", json!({ "description": text })),
            (Method::POST, "/apps", json!({ "tenant": text, "name": "x" })),
            (Method::POST, "/users", json!({ "name": "x", "display_name": text, "tenant": text })),
            (Method::POST, "/roles", json!({ "name": text, "description": text, "permissions": [] })),
            (Method::POST, "/login", json!({ "name": text, "password": text })),
            (Method::POST, "/tasks", json!({ "tenant": "near", "app": text, "name": text, "handler": text })),
            (
                Method::POST,
                "/tasks",
                json!({ "tenant": "near", "app": "orders", "name": text, "handler": "tick", "description": text, "calendar": text }),
            ),
            (
                Method::POST,
                "/tasks/apply",
                json!({ "version": 1, "task": [{ "tenant": text, "app": text, "name": text, "handler": "t" }] }),
            ),
            (Method::POST, "/schedules/preview", json!({ "cron": text, "tenant": text, "calendar": text })),
            (Method::POST, "/tenants/near/maintenance", json!({ "ends_at": i64::MAX, "note": text })),
        ] {
            is_fine(&api.send(method, path, Some(&body)).await, &format!("{path} {body}"));
        }
        for (path, body) in [
            ("run", json!({ "params": text, "idempotency_key": text, "delay_ms": 60_000 })),
            ("pause", json!({ "note": text })),
        ] {
            is_fine(&api.send(Method::POST, &format!("/tasks/{task}/{path}"), Some(&body)).await, path);
        }
    }
}

async fn strange_numbers(api: &Api, task: i64) {
    let numbers = [i64::MIN, -1, 0, 1, i64::MAX];
    for number in numbers {
        for path in [
            format!("/tasks/{task}/preview?after={number}"),
            format!("/tasks/{number}"),
            format!("/audit?from={number}&until={number}"),
            format!("/audit/chain?after={number}"),
            format!("/calendars/near/x?version={number}"),
            format!("/task-logs?before={number}-{number}"),
            format!("/tokens?after={number}"),
        ] {
            is_fine(&api.send(Method::GET, &path, None).await, &path);
        }
        is_fine(&api.send(Method::DELETE, &format!("/tokens/{number}"), None).await, "tokens");
        for other in numbers {
            for (path, body) in [
                (
                    "/schedules/preview".to_owned(),
                    json!({ "cron": "0 0 9 * * ?", "after": number, "count": 3, "valid_from": other }),
                ),
                (
                    "/schedules/preview".to_owned(),
                    json!({ "schedule": "fixed_rate", "interval_ms": 1_000, "after": number, "valid_until": other }),
                ),
                ("/schedules/preview".to_owned(), json!({ "schedule": "once", "fire_at": number, "after": other })),
                (format!("/tasks/{task}/backfills"), json!({ "from": number, "until": other })),
                (format!("/tasks/{task}/run"), json!({ "at": number })),
                (format!("/tasks/{task}/run"), json!({ "delay_ms": number, "priority": 1 })),
                ("/tenants/near/maintenance".to_owned(), json!({ "starts_at": number, "ends_at": other })),
            ] {
                is_fine(&api.send(Method::POST, &path, Some(&body)).await, &format!("{path} {body}"));
            }
        }
    }
}
