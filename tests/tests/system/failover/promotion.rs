//! PostgreSQL: a synchronous standby is promoted.

use super::load::{Load, assert_held_started, await_going_on};
use carillon_tests::node::QUICK;
use carillon_tests::server::standby::Replicated;
use carillon_tests::wait::when;
use carillon_tests::{Database, World, await_until, now_ms};

/// The primary is killed under load, and the standby is promoted; the address leads to it.
#[tokio::test]
async fn primary_is_killed_and_its_synchronous_standby_promoted() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let servers = Replicated::start().await;
    let world = World::on(Database::of_replicated(&servers).await);
    let node = world.nodes(QUICK).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let mut load = Load::begin(&world, &api, &app).await;

    let held = load.look(&world).await;
    servers.first.process().kill9().await;
    let gone_at = now_ms();
    await_until("the node says that its database is away", 30, || async {
        when(node.probe("/readyz").await == Some(503))
    })
    .await;
    await_until("what executors held is due", 10, || async { when(now_ms() > gone_at + 2_500) }).await;
    assert_held_started(&executor.starts(), &held, gone_at + 200..gone_at + 2_000);
    servers.promote().await;

    await_until("the node is ready again", 40, || async { when(node.probe("/readyz").await == Some(200)) }).await;
    await_going_on(&world).await;
    load.check(&world).await;
}
