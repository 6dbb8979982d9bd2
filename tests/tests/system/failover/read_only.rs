//! MariaDB can only be read for a while, as in a switch-over.

use super::load::{Load, assert_held_started, await_going_on};
use carillon_tests::node::QUICK;
use carillon_tests::wait::when;
use carillon_tests::{Database, Kind, World, await_until, now_ms, pass};

/// Executors hold what is due in the next ten seconds, and may be silent for six: they start what comes later only because nodes
/// go on to answer them.
const PATIENT: &[(&str, &str)] =
    &[("schedulers.before_interval", "10s"), ("schedulers.offline_after", "6s"), ("executors.offline_after", "6s")];

/// For twice as long as nodes and executors may be silent, under load.
#[tokio::test]
async fn mariadb_is_made_read_only_and_back() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let database = Database::private(Kind::MariaDb).await;
    let server = database.server();
    // `read_only` does not bind an administrator.
    server.execute("CREATE USER plain@'%' IDENTIFIED BY 'plain'").await;
    let rights = "SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, REFERENCES";
    server.execute(&format!("GRANT {rights} ON `scenario%`.* TO plain@'%'")).await;
    let world = World::on(database.as_user("plain", "plain"));
    world.nodes(&[QUICK, PATIENT].concat()).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let mut load = Load::begin(&world, &api, &app).await;

    let held = load.look(&world).await;
    server.execute("SET GLOBAL read_only = 1").await;
    let gone_at = now_ms();
    await_until("what executors held is due", 20, || async { when(now_ms() > gone_at + 9_000) }).await;
    let starts = executor.starts();
    assert_held_started(&starts, &held, gone_at + 200..gone_at + 6_500);
    // By now a lease that nobody kept alive would be over.
    assert_held_started(&starts, &held, gone_at + 6_500..gone_at + 8_500);
    pass(4.5).await;
    server.execute("SET GLOBAL read_only = 0").await;

    await_going_on(&world).await;
    load.check(&world).await;
}
