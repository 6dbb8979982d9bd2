//! What a node says of itself to Prometheus and to orchestrators.

use carillon_protocol::{RunKey, RunResult, RunStatus, Verdict};
use carillon_tests::fake::result;
use carillon_tests::node::TOKEN;
use carillon_tests::wait::when;
use carillon_tests::{Api, FakeExecutor, Kind, Outage, Status, World, await_until, http};
use futures_util::future::join_all;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

scenario!(metrics_agree_with_what_ran: sqlite mariadb postgres);
scenario!(metrics_need_the_token_unless_they_are_public: sqlite);
scenario!(a_node_that_stops_is_not_ready: mariadb);
scenario!(results_that_come_too_late_are_counted: sqlite);
scenario!(claims_that_another_node_won_are_counted: mariadb postgres);
scenario!(probes_cost_the_database_little: sqlite);

async fn metrics_agree_with_what_ran(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "every second", "tick", json!({ "cron": "* * * * * ?" })).await;
    let fails = api.make_task(&app, "fails", "fatal", json!({ "cron": "0/2 * * * * ?", "max_retries": 0 })).await;
    world.await_successes(task, 8).await;
    let (rows, _) = world.settle_and_check().await;
    let count = |of: i64, status| rows.iter().filter(|row| row.task == of && row.status == status).count() as f64;
    let (succeeded, failed) = (count(task, Status::Succeeded), count(fails, Status::Failed));
    let page = scrape(&node.url, TOKEN).await.1;
    let samples = parse(&page);
    let of = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("no {name} in {page}"));
    let is = |name: &str, value: f64| assert!((of(name) - value).abs() < 1e-9, "{name} is {}, not {value}", of(name));
    is("carillon_results_total{outcome=\"succeeded\"}", succeeded);
    is("carillon_results_total{outcome=\"failed_for_good\"}", failed);
    let ended = |status, reason| {
        format!("carillon_runs_ended_total{{tenant=\"retail\",app=\"orders\",status=\"{status}\",reason=\"{reason}\"}}")
    };
    is(&ended("succeeded", ""), succeeded);
    is(&ended("failed", "handler_failed_for_good"), failed);
    is("carillon_results_stale_total", 0.0);
    is("carillon_database_clock_spread_seconds", 0.0);
    is("carillon_run_lateness_seconds_count", succeeded + failed);
    is("carillon_run_duration_seconds_count", succeeded + failed);
    let late: f64 =
        rows.iter().filter(|row| row.started_at > 0).map(|row| (row.started_at - row.due_time) as f64).sum();
    is("carillon_run_lateness_seconds_sum", late / 1_000.0);
    is("carillon_lease_held{lease=\"pregenerate\"}", 1.0);
    is("carillon_nodes_online", 1.0);
    is("carillon_executors_online", 1.0);
    is("carillon_store_up", 1.0);
    assert!(of("carillon_queue_depth") + of("carillon_queue_room") >= 1_000.0);
    is("carillon_claims_lost_total", 0.0);
    is("carillon_worker_rounds_failed_total{worker=\"load\"}", 0.0);
    assert!(of("carillon_dispatches_total{outcome=\"accepted\"}") >= succeeded + failed);
    assert!(of("carillon_claims_won_total") >= succeeded + failed);
    assert!(of("carillon_store_statements_total") >= of("carillon_store_statement_seconds_count"));
    assert!(of("carillon_store_statement_seconds_count") > 100.0);
    assert!(of("carillon_pregeneration_lag_seconds") < 60.0);
    assert!(of("carillon_clock_offset_seconds").abs() < 5.0);
    assert!(of("carillon_http_requests_total{status=\"2xx\"}") > 3.0);
    world.assert_quiet(&[]);
}

async fn metrics_need_the_token_unless_they_are_public(kind: Kind) {
    let world = World::new(kind).await;
    let closed = world.node("a", &[]).await;
    assert_eq!(scrape(&closed.url, "").await.0, 401);
    assert_eq!(scrape(&closed.url, "a-wrong-token-a-wrong-token-a-wrong-token").await.0, 401);
    let (status, page) = scrape(&closed.url, TOKEN).await;
    assert_eq!(status, 200);
    assert!(!page.contains(TOKEN));
    assert!(parse(&page)["carillon_http_requests_total{status=\"4xx\"}"] >= 2.0);
    assert_eq!(closed.process.sigterm(30).await, Some(0));
    let open = world.node("a", &[("metrics.public", "true")]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "close", "tick", json!({})).await;
    world.await_end(api.run(task, None).await).await;
    let (status, page) = scrape(&open.url, "").await;
    assert_eq!(status, 200);
    assert!(page.contains("carillon_runs_ended_total{status=\"succeeded\",reason=\"\"} 1"), "{page}");
    assert!(!page.contains("retail") && !page.contains("orders"), "public metrics name a tenant: {page}");
    assert!(scrape(&open.url, TOKEN).await.1.contains("tenant=\"retail\",app=\"orders\""), "with a token they do");
}

/// Giving back what it holds needs the database, which is away: the node stops for a while.
async fn a_node_that_stops_is_not_ready(kind: Kind) {
    let world = World::private(kind).await;
    let node = world.node("a", &[]).await;
    let outage = Outage::begin(&world.database).await;
    await_until("the node sees the outage", 30, || async { when(ready(&node.url).await.contains("does not answer")) })
        .await;
    node.process.signal("TERM");
    await_until("the node says that it stops", 10, || async { when(ready(&node.url).await.contains("stopping")) })
        .await;
    assert_eq!(node.probe("/readyz").await, Some(503));
    assert_eq!(node.probe("/healthz").await, Some(200));
    outage.end().await;
}

async fn results_that_come_too_late_are_counted(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
    fake.script(|script| script.auto_results = false);
    let fields = json!({ "max_retries": 3, "retry_interval_ms": 100 });
    let task = api.make_task(&app, "by hand", "job", fields).await;
    let log = api.run(task, None).await;
    let first = fake.next_running(task, &[]).await;
    assert_eq!(fake.send_results(&[result(first, RunStatus::Failed)]).await, [Verdict::Applied]);
    let second = fake.next_running(task, &[first]).await;
    let unknown = result(RunKey(log + 1, 1), RunStatus::Succeeded);
    let unknown = RunResult { finished_at: unknown.finished_at - 3_600_000, ..unknown };
    let late = [result(first, RunStatus::Succeeded), unknown];
    assert_eq!(fake.send_results(&late).await, [Verdict::Stale, Verdict::Unknown]);
    assert_eq!(fake.send_results(&[result(second, RunStatus::Succeeded)]).await, [Verdict::Applied]);
    let samples = parse(&scrape(&node.url, TOKEN).await.1);
    for (name, value) in [
        ("carillon_results_stale_total", 1.0),
        ("carillon_results_unknown_total", 1.0),
        ("carillon_results_total{outcome=\"succeeded\"}", 1.0),
    ] {
        assert!((samples[name] - value).abs() < 1e-9, "{name} is {}, not {value}", samples[name]);
    }
    world.settle_and_check_with(|| fake.starts()).await;
}

/// Runs that are due at once are claimed by the first node to see them; here many runs come, through both nodes.
async fn claims_that_another_node_won_are_counted(kind: Kind) {
    let world = World::new(kind).await;
    let fast = [("api.requests_per_second", "10000")];
    let nodes = [world.node("a", &fast).await, world.node("b", &fast).await];
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let task = api.make_task(&app, "by hand", "tick", json!({})).await;
    let sum = async |name: &str| {
        let mut sum = 0.0;
        for node in &nodes {
            sum += parse(&scrape(&node.url, TOKEN).await.1)[name];
        }
        sum
    };
    await_until("both nodes go for the same runs", 90, || async {
        let apis = nodes.iter().map(|node| Api::new(&node.url)).cycle().take(40).collect::<Vec<_>>();
        join_all(apis.iter().map(|api| api.run(task, None))).await;
        when(sum("carillon_claims_lost_total").await > 0.0)
    })
    .await;
    let (rows, _) = world.end_well().await;
    assert!(sum("carillon_claims_won_total").await >= rows.len() as f64, "fewer claims than {} runs", rows.len());
}

/// Anyone may ask whether a node is ready and, if metrics are public, what it does.
async fn probes_cost_the_database_little(kind: Kind) {
    const PROBES: u32 = 4_000;
    let world = World::new(kind).await;
    let node = world.node("a", &[("metrics.public", "true")]).await;
    let statements = async || parse(&scrape(&node.url, "").await.1)["carillon_store_statements_total"];
    let before = statements().await;
    let client = carillon_tests::http::client().build().unwrap();
    for round in 0..PROBES / 50 {
        let path = if round % 2 == 0 { "readyz" } else { "metrics" };
        let asked = (0..50).map(|_| client.get(format!("{}/{path}", node.url)).send());
        for answer in join_all(asked).await {
            assert_eq!(answer.unwrap().status(), 200, "/{path}");
        }
    }
    // Most of these are the node's own.
    let sent = statements().await - before;
    assert!(sent < f64::from(PROBES) / 2.0, "{sent} statements for {PROBES} probes");
    world.assert_quiet(&[]);
}

async fn ready(url: &str) -> String {
    let asked = http::shared().get(format!("{url}/readyz")).send().await.expect("the node answers");
    asked.text().await.unwrap_or_default()
}

async fn scrape(url: &str, token: &str) -> (u16, String) {
    let mut request = http::shared().get(format!("{url}/metrics"));
    if !token.is_empty() {
        request = request.bearer_auth(token);
    }
    let reply = request.send().await.expect("the node answers");
    let kind = reply.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let status = reply.status().as_u16();
    assert!(status != 200 || kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    (status, reply.text().await.expect("read the page"))
}

/// Every sample by its name and labels. Panics over a line that Prometheus would not take, a metric
/// without its type, and a histogram that does not add up.
fn parse(page: &str) -> HashMap<String, f64> {
    let mut samples = HashMap::new();
    let mut kinds: BTreeMap<String, String> = BTreeMap::new();
    assert!(page.ends_with('\n'), "the last line is not ended");
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (what, name, text) = (words.next().unwrap(), words.next().unwrap(), words.next().expect(line));
            match what {
                "HELP" => assert!(!text.is_empty(), "{line}"),
                "TYPE" => assert!(kinds.insert(name.to_owned(), text.to_owned()).is_none(), "twice: {line}"),
                _ => panic!("neither help nor type: {line}"),
            }
            continue;
        }
        let (key, value) = line.rsplit_once(' ').expect(line);
        let name = key.split('{').next().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty(), "{line}");
        if let Some(labels) = key.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let inner = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).expect(line);
            let (label, value) = inner.split_once('=').expect(line);
            assert!(!label.is_empty() && value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{line}");
        }
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end).filter(|f| kinds.contains_key(*f)));
        let kind = kinds.get(family.unwrap_or(name)).unwrap_or_else(|| panic!("no type: {line}"));
        assert!(kind != "counter" || name.ends_with("_total"), "{line}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        assert!(samples.insert(key.to_owned(), value).is_none(), "twice: {line}");
    }
    for (name, _) in kinds.iter().filter(|(_, kind)| *kind == "histogram") {
        assert_histogram(page, name, samples[&format!("{name}_count")]);
    }
    samples
}

fn assert_histogram(page: &str, name: &str, count: f64) {
    let prefix = format!("{name}_bucket{{le=\"");
    let buckets: Vec<(f64, f64)> = page
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .map(|rest| rest.split_once("\"} ").expect(rest))
        .map(|(bound, value)| (bound.parse().expect(bound), value.parse().expect(value)))
        .collect();
    assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name}: {buckets:?}");
    assert_eq!(buckets.last().copied(), Some((f64::INFINITY, count)), "{name}");
}
