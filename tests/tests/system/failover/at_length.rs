//! Of `./scripts/test --long`.

use super::galera::{begin, lost_and_back};
use carillon_tests::server::galera::Galera;

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
