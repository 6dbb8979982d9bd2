//! What the door of plain executors must not do, whoever asks: it refuses, writes it down, and changes nothing.

use super::{TOKEN, await_runs, by_hand, registered, stand_with};
use carillon_tests::plain_executor::{await_door, open_door};
use carillon_tests::{Kind, LogRow, World, http};
use serde_json::{Value, json};

scenario!(what_is_not_allowed_is_refused_and_changes_nothing: sqlite mariadb postgres);

const OTHERS_TOKEN: &str = "another-token-that-nobody-guesses";

/// As the door's limit on bodies.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A message, and what is to come of it.
struct Abuse {
    what: &'static str,
    path: &'static str,
    token: String,
    body: String,
    /// Of the answer.
    code: i64,
    /// In the answer's text if it is a refusal, and in the node's log.
    why: &'static str,
}

fn registry(what: &'static str, token: &str, fields: &Value, why: &'static str) -> Abuse {
    let mut body =
        json!({ "registryGroup": "EXECUTOR", "registryKey": "orders", "registryValue": "http://127.0.0.1:9/" });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    Abuse { what, path: "registry", token: token.to_owned(), body: body.to_string(), code: 500, why }
}

fn callback(what: &'static str, token: &str, body: impl Into<String>, code: i64, why: &'static str) -> Abuse {
    Abuse { what, path: "callback", token: token.to_owned(), body: body.into(), code, why }
}

/// Tokens and apps of others.
fn of_strangers(app_secret: &str, mine: i64) -> Vec<Abuse> {
    let wrong = "The access token is wrong.";
    let ended = format!(r#"[{{"logId":{mine},"logDateTim":1,"handleCode":200,"handleMsg":"stolen"}}]"#);
    let foreign = "results of runs that are not known to this token's apps";
    vec![
        registry("a wrong token", "a-token-that-somebody-guessed", &json!({}), wrong),
        registry("no token", "", &json!({}), wrong),
        registry("xxl-job's own token", "default_token", &json!({}), wrong),
        registry("the key that executors of ours sign with", app_secret, &json!({}), wrong),
        registry("a foreign group", TOKEN, &json!({ "registryKey": "stocks" }), "the token is of no app `stocks`"),
        registry("a group that is not there", TOKEN, &json!({ "registryKey": "x" }), "the token is of no app `x`"),
        callback("a wrong token", "a-token-that-somebody-guessed", ended.clone(), 500, wrong),
        callback("another tenant's run", OTHERS_TOKEN, ended, 200, foreign),
        callback(
            "a run that is not there",
            TOKEN,
            format!(r#"[{{"logId":{},"handleCode":200}}]"#, mine + 1),
            200,
            foreign,
        ),
    ]
}

/// Addresses at which no executor is.
fn of_places(node: &str) -> Vec<Abuse> {
    let at = |what, address: &str, why| registry(what, TOKEN, &json!({ "registryValue": address }), why);
    let port = node.rsplit_once(':').unwrap().1;
    let (never, own) = ("are never executors", "a node of this cluster listens there");
    let path = "its path must have at most 64 characters";
    vec![
        at("the node itself", node, own),
        at("the node by another name", &format!("http://localhost:{port}/"), own),
        at("the node by another number", &format!("http://0x7f000001:{port}/"), own),
        at("the node with a path", &format!("{node}/xxl-job-admin"), own),
        at("a metadata service", "http://169.254.169.254:80/", never),
        at("the same with a path", "http://169.254.169.254/latest/meta-data", never),
        at("the same as a number", "http://2852039166/", never),
        at("the same inside IPv6", "http://[::ffff:169.254.169.254]:80/", never),
        at("another cloud's", "http://100.100.100.200:80/", never),
        at("everywhere", "http://0.0.0.0:9999/", never),
        at("somewhere outside", "http://8.8.8.8:9999/", "executors.allowed_networks"),
        at("a password", "http://user:secret@127.0.0.1:9/", "must not carry a user name"),
        at("a query", "http://127.0.0.1:9/job?x=1", "without a query"),
        at("a fragment", "http://127.0.0.1:9/job#x", "without a query"),
        at("a path that goes up", "http://127.0.0.1:9/job/../admin", path),
        at("an escaped path", "http://127.0.0.1:9/a%2e%2e", path),
        at("a long path", &format!("http://127.0.0.1:9/{}", "x".repeat(65)), path),
        at("a long name", &format!("http://{}:9/", "x".repeat(200)), "at most 128 characters"),
        at("another scheme", "file:///etc/passwd", "must begin with http://"),
        at("TLS", "https://127.0.0.1:9/", "must begin with http://"),
        at("no URL", "127.0.0.1:9", "is not a URL"),
        at("too much of it", &format!("http://127.0.0.1:9/{}", "x".repeat(300)), "has more than 255 characters"),
    ]
}

/// Bodies that say nothing, or too much.
fn of_nonsense(mine: i64) -> Vec<Abuse> {
    let many = vec![r#"{"logId":1,"handleCode":200}"#; 20_001].join(",");
    let item = |fields: &str| format!("[{{{fields}}}]");
    let unreadable = "can be read; the first";
    let raw = |what, body: &str, why| Abuse {
        what,
        path: "registry",
        token: TOKEN.to_owned(),
        body: body.to_owned(),
        code: 500,
        why,
    };
    vec![
        registry("a node of xxl-job", TOKEN, &json!({ "registryGroup": "ADMIN" }), "`registryGroup` is not EXECUTOR"),
        registry("an app that is no text", TOKEN, &json!({ "registryKey": ["orders"] }), "`registryKey` is missing"),
        raw("no body", "", "the body is empty"),
        raw("no JSON", "registryGroup=EXECUTOR", "the body cannot be read"),
        raw("another form", "[]", "the body is not a registration"),
        callback("no body", TOKEN, "", 500, "the body is empty"),
        callback("no JSON", TOKEN, "<xml/>", 500, "the body cannot be read"),
        callback("half of it", TOKEN, format!(r#"[{{"logId":{mine},"handleCode":200"#), 500, "the body cannot be read"),
        callback("another form", TOKEN, "42", 500, "the body is not a list of ended runs"),
        callback("nothing that has ended", TOKEN, "{}", 500, "`callbackList` is missing"),
        callback("no run", TOKEN, item(r#""handleCode":200"#), 500, unreadable),
        callback("no code", TOKEN, item(&format!(r#""logId":{mine}"#)), 500, unreadable),
        callback("no number", TOKEN, item(r#""logId":"all of them","handleCode":200"#), 500, unreadable),
        callback("a number that is too large", TOKEN, item(r#""logId":1e300,"handleCode":200"#), 500, unreadable),
        callback(
            "a code that is none",
            TOKEN,
            item(&format!(r#""logId":{mine},"handleCode":{{"all":200}}"#)),
            500,
            unreadable,
        ),
        callback(
            "a negative number",
            TOKEN,
            item(r#""logId":-1,"handleCode":200"#),
            200,
            "not known to this token's apps",
        ),
        callback("half a number", TOKEN, item(&format!(r#""logId":{mine}.5,"handleCode":200"#)), 500, unreadable),
        callback("more than anybody has", TOKEN, format!("[{many}]"), 500, "more than 20000 items"),
        callback("deeper than anybody reads", TOKEN, "[".repeat(100_000), 500, "the body cannot be read"),
        callback(
            "an oversized body",
            TOKEN,
            " ".repeat(BODY_BYTES_MAX + 1),
            500,
            "the body is larger than 8388608 bytes",
        ),
    ]
}

/// Everything that messages of executors change.
async fn state(world: &World) -> (Vec<LogRow>, Vec<i64>) {
    let mut counts = Vec::new();
    for sql in [
        "SELECT COUNT(*) FROM executor",
        "SELECT COUNT(*) FROM executor WHERE gone_at = 0",
        "SELECT COUNT(*) FROM executor WHERE version = 'Java/17'",
        "SELECT COUNT(*) FROM stale_result",
        "SELECT COUNT(*) FROM xxljob_task",
        "SELECT COUNT(*) FROM xxljob_attempt",
        "SELECT COUNT(*) FROM audit_entry",
    ] {
        counts.push(world.database.number(sql).await);
    }
    (world.database.logs("1 = 1").await, counts)
}

/// The answer; `None` where the line was cut before it could be read, which may happen to what is too long to be read.
async fn said(node: &str, abuse: &Abuse) -> Option<Value> {
    let url = format!("{node}/xxl-job-admin/api/{}", abuse.path);
    let request = http::shared().post(url).header("XXL-JOB-ACCESS-TOKEN", &abuse.token);
    let answer = request.header("Content-Type", "application/json").body(abuse.body.clone()).send().await;
    if answer.is_err() && abuse.body.len() > BODY_BYTES_MAX {
        return None;
    }
    let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", abuse.what));
    assert_eq!(answer.status(), 200, "{}: as clients expect", abuse.what);
    Some(answer.json().await.unwrap())
}

async fn what_is_not_allowed_is_refused_and_changes_nothing(kind: Kind) {
    let stand = stand_with(kind, &[]).await;
    let executor = registered(&stand).await;
    executor.script(|script| script.calls_back = None);
    let others = stand.api.make_app("wholesale", "stocks").await;
    open_door(&stand.api, &others, OTHERS_TOKEN).await;
    await_door(&stand.world.node_urls(), OTHERS_TOKEN).await;
    let task = by_hand(&stand, "mine", json!({})).await;
    let log = stand.api.run(task, None).await;
    let mine = await_runs(&executor, "mine", 1).await[0];
    let job = executor.job("mine");
    executor.script(|script| script.busy = vec![job]);
    let node = stand.world.node_urls().remove(0);
    let before = state(&stand.world).await;
    let abuses = [of_strangers(&stand.app.key.secret, mine), of_places(&node), of_nonsense(mine)];
    for abuse in abuses.iter().flatten() {
        let logged = stand.world.node_logs().len();
        let expected = json!({ "code": abuse.code, "msg": abuse.why });
        let answer = said(&node, abuse).await.unwrap_or(expected);
        assert_eq!(answer["code"], abuse.code, "{} ({}): {answer}", abuse.what, abuse.path);
        if abuse.code != 200 {
            let text = answer["msg"].as_str().unwrap_or_default();
            assert!(text.contains(abuse.why), "{} ({}): {answer}", abuse.what, abuse.path);
            assert!(!text.contains(TOKEN), "{}: a secret is told", abuse.what);
        }
        assert_eq!(state(&stand.world).await, before, "{} ({}) changed something", abuse.what, abuse.path);
        let logs = stand.world.node_logs();
        assert!(logs.len() > logged && logs.contains(abuse.why), "{} ({}) is not written down", abuse.what, abuse.path);
        assert!(!logs.contains(TOKEN) && !logs.contains(OTHERS_TOKEN), "{}: a secret is logged", abuse.what);
    }
    // One who takes off what is another's.
    let mut body = json!({ "registryGroup": "EXECUTOR", "registryKey": "stocks", "registryValue": executor.address });
    let of_others = |body: &Value| Abuse {
        what: "a farewell for another's executor",
        path: "registryRemove",
        token: OTHERS_TOKEN.to_owned(),
        body: body.to_string(),
        code: 200,
        why: "",
    };
    said(&node, &of_others(&body)).await;
    body["registryKey"] = json!("orders");
    assert_eq!(said(&node, &of_others(&body)).await.unwrap()["code"], 500);
    assert_eq!(state(&stand.world).await, before);
    // And its own goes on.
    assert_eq!(executor.call_back(&[(mine, 200, "well")]).await["code"], 200);
    assert_eq!(stand.world.await_end(log).await.output, "well");
    stand.world.assert_quiet(&[]);
}
