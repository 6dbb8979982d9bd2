//! Of `./scripts/test --long`.

use super::galera::{begin, lost_and_back};
use super::load::{Load, await_going_on};
use crate::clocks::wall_clock_off_by;
use carillon_tests::node::{QUICK, TOKEN};
use carillon_tests::server::galera::Galera;
use carillon_tests::server::standby::Replicated;
use carillon_tests::wait::when;
use carillon_tests::{Database, World, await_until, http};

#[tokio::test]
async fn a_member_is_paused() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let cluster = Galera::start().await;
    let (world, nodes, load) = begin(&cluster).await;
    let lost = || async { cluster.members[2].process().signal("STOP") };
    let back = || async { cluster.members[2].process().signal("CONT") };
    lost_and_back(&cluster, &world, &nodes, load, lost, back).await;
}

#[tokio::test]
async fn a_member_is_partitioned() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let cluster = Galera::start().await;
    let (world, nodes, load) = begin(&cluster).await;
    let lost = || async {
        cluster.isolate(2).await;
        cluster.await_refusing(2).await;
    };
    lost_and_back(&cluster, &world, &nodes, load, lost, || cluster.connect(2)).await;
}

/// The primary hangs, and another takes its place. When it goes on, it is not the primary any more, and no node uses it.
#[tokio::test]
async fn primary_hangs_and_goes_on_after_its_standby_was_promoted() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let servers = Replicated::start().await;
    let mut world = World::on(Database::of_replicated(&servers).await);
    let node = world.nodes(QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let mut load = Load::begin(&world, &api, &app).await;

    load.look(&world).await;
    servers.first.signal_all("STOP");
    await_until("the node says that its database is away", 30, || async {
        when(node.probe("/readyz").await == Some(503))
    })
    .await;
    servers.promote().await;
    world.database = world.database.read_anew();
    await_until("the node is ready again", 60, || async { when(node.probe("/readyz").await == Some(200)) }).await;
    await_going_on(&world).await;
    servers.first.signal_all("CONT");
    // A commit that waits for the standby holds its session; nobody waits for its answer any more.
    let sessions = "SELECT COUNT(*)::text FROM pg_stat_activity WHERE datname LIKE 'scenario%' AND \
                    wait_event IS DISTINCT FROM 'SyncRep'";
    await_until("no node uses the former primary", 60, || async {
        when(servers.first.ask(sessions).await.as_deref() == Some("0"))
    })
    .await;
    await_going_on(&world).await;
    load.check(&world).await;
}

/// The clock of one member is wrong: the nodes that use the others say so.
#[tokio::test]
async fn a_members_clock_is_ahead() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let cluster = Galera::start_with(|number| if number == 2 { wall_clock_off_by("+0.9") } else { Vec::new() }).await;
    let world = World::on(Database::of_galera(&cluster).await);
    let behind = world.node_on("behind", &world.database.on_member(&cluster.members[0]), QUICK).await;
    let ahead = world.node_on("ahead", &world.database.on_member(&cluster.members[2]), QUICK).await;
    let spread = async |url: &str| {
        let asked = http::client().build().unwrap().get(format!("{url}/metrics")).bearer_auth(TOKEN).send().await;
        let page = asked.unwrap().text().await.unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix("carillon_database_clock_spread_seconds "));
        line.expect("the metric is there").parse::<f64>().unwrap()
    };
    await_until("the node behind shows the difference", 60, || async { when(spread(&behind.url).await > 0.1) }).await;
    let shown = spread(&behind.url).await;
    assert!(shown <= 0.9, "clocks do not differ by {shown} s");
    assert!(
        behind.process.log().contains("clocks of the database's servers differ"),
        "{}",
        behind.process.log_digest()
    );
    let other = spread(&ahead.url).await;
    assert!(other.abs() < 1e-9, "the member behind cannot be ahead, too: {other}");
}
