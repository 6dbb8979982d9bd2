//! The web console as a node serves it: the page, its files, and what stays others'.

use carillon_protocol::Code;
use carillon_tests::{Kind, Node, World, http};
use flate2::read::GzDecoder;
use reqwest::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderName, IF_NONE_MATCH, VARY,
};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

scenario!(paths_of_the_console_lead_to_its_page: sqlite);
scenario!(files_are_compressed_and_kept_for_ever: sqlite);
scenario!(paths_outside_the_console_are_not_taken_over: sqlite);
scenario!(loading_pages_is_not_counted_as_calls: sqlite);

/// Whether this node's binary holds the console. One built without is what `CARILLON_WITHOUT_CONSOLE` asks for, and serves
/// its page of advice.
pub async fn is_there(node: &Node) -> bool {
    let page = text(get(node, "/")).await;
    if page.contains("id=\"root\"") {
        return true;
    }
    assert!(
        std::env::var_os("CARILLON_WITHOUT_CONSOLE").is_some(),
        "the node was built without the console: run ./scripts/console build, then build it again"
    );
    assert!(page.contains("npm ci"), "{page}");
    false
}

fn get(node: &Node, path: &str) -> RequestBuilder {
    http::shared().get(format!("{}{path}", node.url))
}

async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap()
}

async fn text(request: RequestBuilder) -> String {
    let answer = send(request).await;
    assert_eq!(answer.status(), 200, "{}", answer.url());
    answer.text().await.unwrap()
}

fn header(answer: &Response, name: impl Into<HeaderName>) -> &str {
    let name = name.into();
    answer.headers().get(&name).map_or("", |value| value.to_str().unwrap())
}

/// Paths of the files that the page names.
fn files_of(page: &str) -> Vec<String> {
    let named = page.split('"').filter(|text| text.starts_with('/'));
    named.map(str::to_owned).collect()
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => panic!("the page names {path}"),
    }
}

/// The status of a path that clients would tidy up before they send it.
async fn status_of(node: &Node, path: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", node.port)).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", node.port);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap().parse().unwrap()
}

async fn paths_of_the_console_lead_to_its_page(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    if !is_there(&node).await {
        return;
    }
    let mut nonces = BTreeSet::new();
    let paths = ["/", "/", "/tasks/123?x=1", "/index.html", "/sign-in?error=state", "/tasks/%E6%9C%88"];
    for path in paths {
        let answer = send(get(&node, path)).await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(header(&answer, CONTENT_TYPE), "text/html; charset=utf-8");
        assert_eq!(header(&answer, CACHE_CONTROL), "no-store");
        assert_eq!(header(&answer, HeaderName::from_static("x-content-type-options")), "nosniff");
        assert_eq!(header(&answer, HeaderName::from_static("referrer-policy")), "no-referrer");
        assert_eq!(header(&answer, HeaderName::from_static("cross-origin-opener-policy")), "same-origin");
        assert_eq!(header(&answer, HeaderName::from_static("cross-origin-resource-policy")), "same-origin");
        let policy = header(&answer, CONTENT_SECURITY_POLICY).to_owned();
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        assert_eq!(nonce.len(), 22, "128 bits: {nonce}");
        assert_eq!(
            policy,
            format!(
                "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; \
                 font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
            )
        );
        let page = answer.text().await.unwrap();
        assert!(page.contains(&nonce) && !page.contains("%CSP_NONCE%"), "{page}");
        nonces.insert(nonce);
    }
    assert_eq!(nonces.len(), paths.len(), "a nonce is used once");

    let head = send(http::shared().head(format!("{}/tasks", node.url))).await;
    assert_eq!(head.status(), 200);
    assert!(header(&head, CONTENT_LENGTH).parse::<usize>().unwrap() > 100);
    assert_eq!(head.bytes().await.unwrap().len(), 0);
    world.assert_quiet(&[]);
}

async fn files_are_compressed_and_kept_for_ever(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    if !is_there(&node).await {
        return;
    }
    let files = files_of(&text(get(&node, "/")).await);
    let assets: Vec<_> = files.iter().filter(|path| path.starts_with("/assets/")).collect();
    assert!(assets.iter().any(|path| kind_of(path).contains("javascript")), "{files:?}");
    for path in assets {
        let plain = send(get(&node, path)).await;
        assert_eq!(plain.status(), 200, "{path}");
        let kind = kind_of(path);
        assert_eq!(header(&plain, CONTENT_TYPE), kind, "{path}");
        assert_eq!(header(&plain, CACHE_CONTROL), "public, max-age=31536000, immutable");
        assert_eq!(header(&plain, CONTENT_ENCODING), "");
        let (tag, vary) = (header(&plain, ETAG).to_owned(), header(&plain, VARY).to_owned());
        let plain = plain.bytes().await.unwrap();
        // What is tiny gains nothing.
        if plain.len() < 1_000 {
            continue;
        }
        assert_eq!(vary, "accept-encoding", "{path}");

        let packed = send(get(&node, path).header(ACCEPT_ENCODING, "gzip, deflate, br")).await;
        assert_eq!((header(&packed, VARY), header(&packed, CONTENT_ENCODING)), ("accept-encoding", "gzip"));
        assert_eq!(header(&packed, CONTENT_TYPE), kind);
        assert_ne!(header(&packed, ETAG), tag);
        let packed = packed.bytes().await.unwrap();
        assert!(packed.len() < plain.len(), "{path}");
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain, "{path}");

        let again = send(get(&node, path).header(IF_NONE_MATCH, &tag)).await;
        assert_eq!((again.status().as_u16(), header(&again, ETAG)), (304, tag.as_str()));
        let head = send(http::shared().head(format!("{}{path}", node.url))).await;
        assert_eq!((head.status().as_u16(), header(&head, CONTENT_LENGTH)), (200, plain.len().to_string().as_str()));
    }
    // Its name stays when it changes.
    let bell = send(get(&node, "/bell.svg")).await;
    assert_eq!((header(&bell, CONTENT_TYPE), header(&bell, CACHE_CONTROL)), ("image/svg+xml", "no-cache"));
    world.assert_quiet(&[]);
}

async fn paths_outside_the_console_are_not_taken_over(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    // A script that is not there is no page; nothing of the disk is served; doors stay what they are.
    for path in [
        "/assets/missing-0.js",
        "/assets/",
        "/assets/../../Cargo.toml",
        "/assets/..%2f..%2fCargo.toml",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%5c..%5cetc/passwd",
        "/api/v2/tasks",
        "/api",
        "/healthz/x",
    ] {
        assert_eq!(status_of(&node, path).await, 404, "{path}");
    }
    assert_eq!(status_of(&node, "/api/v1/nothing").await, 401, "unauthenticated callers do not learn what exists");
    let (status, problem) = world.api().send(Method::GET, "/nothing", None).await;
    assert_eq!((status, &problem["detail"]), (404, &Value::from("there is no such route")));
    for path in ["/", "/tasks", "/assets/x.js"] {
        let answer = send(http::shared().post(format!("{}{path}", node.url)).body("x")).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(header(&answer, CONTENT_TYPE), "application/problem+json");
    }
    // Executors are told in their own words.
    for path in ["/openapi", "/openapi/nothing", "/openapi/results"] {
        let answer = send(get(&node, path)).await;
        assert_eq!(answer.status(), Code::NotFound.http_status(), "{path}");
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], u32::from(Code::NotFound), "{path}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(status_of(&node, path).await, 200);
    }
    assert_eq!(status_of(&node, "/metrics").await, 401);
    world.assert_quiet(&[]);
}

/// A page is some twenty files; an office behind one address opens many.
async fn loading_pages_is_not_counted_as_calls(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[("api.requests_per_second", "1")]).await;
    if !is_there(&node).await {
        return;
    }
    let files = files_of(&text(get(&node, "/")).await);
    for _ in 0..100 {
        for path in files.iter().map(String::as_str).chain(["/tasks"]) {
            assert_eq!(send(get(&node, path)).await.status(), 200, "{path}");
        }
    }
    let login = send(get(&node, "/api/v1/login")).await;
    assert_eq!(login.status(), 200, "the address has asked the API nothing yet");
}
