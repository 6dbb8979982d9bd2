//! Other clusters, as a node shows them.

use carillon_tests::node::{Node, TOKEN};
use carillon_tests::wait::{await_until, when};
use carillon_tests::{Api, Kind, World, folder, now_ms};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

scenario!(others_are_shown_and_one_that_is_away_delays_nothing: sqlite mariadb);

/// An answer out of memory, and room for a machine that does other things meanwhile.
const AT_ONCE: Duration = Duration::from_millis(100);

async fn shown(api: &Api, name: &str) -> Value {
    let answer = api.get("/clusters").await;
    let found = answer["items"].as_array().unwrap().iter().find(|cluster| cluster["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no cluster {name} in {answer}"))
}

async fn await_state(api: &Api, name: &str, state: &str) -> Value {
    await_until(&format!("cluster {name} is {state}"), 60, || async {
        let shown = shown(api, name).await;
        (shown["state"] == state).then_some(shown)
    })
    .await
}

/// The quickest of a few: a machine may be busy for a moment, an answer that waits for something is always late.
async fn quickest(api: &Api) -> Duration {
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let since = Instant::now();
        api.get("/clusters").await;
        quickest = quickest.min(since.elapsed());
    }
    quickest
}

async fn others_are_shown_and_one_that_is_away_delays_nothing(kind: Kind) {
    let (near, far) = (World::new(kind).await, World::new(kind).await);
    let there = far.node("far", &[]).await;
    let app = far.api().make_app("retail", "orders").await;
    far.executor("orders-1", &app).await;
    // It takes connections, and never answers.
    let hung = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let folder = folder::fresh("clusters");
    for (file, token) in [("right", TOKEN), ("wrong", "another-token-that-nobody-guesses-0123456789")] {
        std::fs::write(folder.join(file), format!("{token}\n")).unwrap();
    }
    let mut config = String::new();
    let hung_url = format!("http://{}", hung.local_addr().unwrap());
    for (name, url, token) in [
        ("far", there.url.as_str(), "right"),
        ("hung", hung_url.as_str(), "right"),
        ("wary", there.url.as_str(), "wrong"),
        ("nowhere", "http://127.0.0.1:9", "right"),
    ] {
        let file = folder.join(token);
        writeln!(config, "[[clusters]]\nname = \"{name}\"\nurl = \"{url}\"\ntoken_file = \"{}\"", file.display())
            .unwrap();
    }
    config.push_str("[cluster]\nname = \"near\"\n");
    let file = folder.join("node.toml");
    std::fs::write(&file, config).unwrap();
    near.node("near", &[("config", file.to_str().unwrap())]).await;
    let api = near.api();
    let answer = api.get("/clusters").await;
    assert_eq!(answer["this"]["name"], "near");
    let names: Vec<&Value> = answer["items"].as_array().unwrap().iter().map(|cluster| &cluster["name"]).collect();
    assert_eq!(names, ["far", "hung", "wary", "nowhere"]);

    let heard = await_state(&api, "far", "current").await;
    let figures = &heard["figures"];
    for (name, value) in [("nodes", json!(1)), ("nodes_online", json!(1)), ("overloaded", json!(false))] {
        assert_eq!(figures[name], value, "{name} in {figures}");
    }
    await_until("its executor is counted", 30, || async {
        when(shown(&api, "far").await["figures"]["executors"] == 1)
    })
    .await;
    for name in ["fires", "succeeded", "failed", "expired"] {
        assert!(figures[name].is_u64(), "{name} in {figures}");
    }
    // What it says of itself is what is said of it.
    await_until("both say the same", 30, || async {
        let own = far.api().get("/clusters").await["this"]["figures"].clone();
        when(own.is_object() && shown(&api, "far").await["figures"] == own)
    })
    .await;
    for (name, why) in [("hung", "timed out"), ("wary", "401"), ("nowhere", "refused")] {
        let away = await_state(&api, name, "away").await;
        let problem = away["problem"].as_str().unwrap();
        assert!(problem.contains(why) && !problem.contains("token-that"), "{away}");
        assert_eq!((&away["figures"], &away["read_at"]), (&Value::Null, &Value::Null));
    }
    assert!(quickest(&api).await < AT_ONCE);

    there.process.kill9().await;
    let away = await_state(&api, "far", "away").await;
    assert!(away["figures"]["nodes_online"] == 1 && away["problem"] != "", "as it was: {away}");
    let (since, read_at) = (away["since"].as_i64().unwrap(), away["read_at"].as_i64().unwrap());
    assert!(read_at <= since && since > now_ms() - 60_000, "{away}");
    assert!(quickest(&api).await < AT_ONCE);
    let back: Node = far.unready_node("far", there.port, &[]);
    back.ready().await;
    assert_eq!(await_state(&api, "far", "current").await["problem"], "");
    let shown = api.get("/settings").await.to_string();
    assert!(!shown.contains(TOKEN) && !near.node_logs().contains(TOKEN), "no token is shown");
}
