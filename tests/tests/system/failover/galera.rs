//! Galera: of three members one is lost. The nodes that use it have no database for as long, the others go on.

use super::load::{Load, await_going_on};
use carillon_tests::node::QUICK;
use carillon_tests::server::galera::{Galera, MEMBERS};
use carillon_tests::wait::when;
use carillon_tests::{Api, Database, Node, World, await_until};

/// Nodes `a`, `b` and `c`, each on a member of its own; `c` is on the last one, which will be lost.
pub async fn begin(cluster: &Galera) -> (World, Vec<Node>, Load) {
    let world = World::on(Database::of_galera(cluster).await);
    let mut nodes = Vec::new();
    for (name, member) in ["a", "b", "c"].into_iter().zip(&cluster.members) {
        nodes.push(world.node_on(name, &world.database.on_member(member), QUICK).await);
    }
    let api = Api::new(&nodes[0].url);
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let load = Load::begin(&world, &api, &app).await;
    (world, nodes, load)
}

/// The last member is lost under load, and comes back.
pub async fn lost_and_back<L: Future<Output = ()>, B: Future<Output = ()>>(
    cluster: &Galera,
    world: &World,
    nodes: &[Node],
    mut load: Load,
    lost: impl FnOnce() -> L,
    back: impl FnOnce() -> B,
) {
    load.look(world).await;
    lost().await;
    await_probe(&nodes[2], 503).await;
    cluster.await_size(0, MEMBERS - 1).await;
    await_going_on(world).await;
    for node in &nodes[..2] {
        assert_eq!(node.probe("/readyz").await, Some(200), "{} uses another member", node.name);
    }
    assert_eq!(nodes[2].probe("/readyz").await, Some(503), "its member is lost");
    load.look(world).await;
    back().await;
    cluster.await_synced(2).await;
    await_probe(&nodes[2], 200).await;
    await_going_on(world).await;
    load.check(world).await;
}

async fn await_probe(node: &Node, status: u16) {
    let what = format!("node {} answers {status} to /readyz", node.name);
    await_until(&what, 60, || async { when(node.probe("/readyz").await == Some(status)) }).await;
}

#[tokio::test]
async fn a_member_is_killed() {
    let _cost = carillon_tests::cost::Cost::of_this_test();
    let cluster = Galera::start().await;
    let (world, nodes, load) = begin(&cluster).await;
    lost_and_back(&cluster, &world, &nodes, load, || cluster.kill(2), || cluster.rejoin(2, false)).await;
}
