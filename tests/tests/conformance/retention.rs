//! What is old goes, in bounded batches.

use crate::fixture::World;
use carillon::domain::plan::Plan;
use carillon::domain::{IdSource, Reason, Run, Status};
use carillon::store::NodeInfo;

cases!(only_ended_old_logs_go_and_at_most_so_many, only_silent_members_go);

/// Runs whose ids were made at `at`.
async fn runs_made_at(world: &World, at: i64, count: i64) -> Vec<Run> {
    let source = IdSource::new(2);
    let task = world.started(&World::every_second(&format!("made-at-{at}"))).await;
    let mut plan: Plan = world.plan(&task, (0..count).map(|i| at + i * 1_000));
    for fire in &mut plan.fires {
        fire.id = source.next(at);
    }
    world.store.write_ahead(None, &[plan], world.now).await.unwrap();
    world.rows(task.id).await.into_iter().map(|row| row.handed.run).collect()
}

async fn only_ended_old_logs_go_and_at_most_so_many(world: World) {
    let day = 86_400_000;
    let old = runs_made_at(&world, world.now - 6 * day, 7).await;
    let young = runs_made_at(&world, world.now - 4 * day, 2).await;
    for run in old[..5].iter().chain(&young) {
        world.moved(run, Status::Cancelled, Reason::CancelledByHand).await;
    }
    world.store.claim(1, vec![old[5].clone()], world.now).await.unwrap();
    let before = world.now - 5 * day;
    assert_eq!(world.store.purge(before, 3).await.unwrap(), 3);
    assert_eq!(world.store.purge(before, 3).await.unwrap(), 2);
    assert_eq!(world.store.purge(before, 3).await.unwrap(), 0);
    let left: Vec<i64> = world.rows(old[0].task_id).await.iter().map(|row| row.handed.run.id).collect();
    assert_eq!(left, [old[5].id, old[6].id], "however old, what has not ended stays");
    assert_eq!(world.rows(young[0].task_id).await.len(), 2);
}

async fn only_silent_members_go(world: World) {
    let info = NodeInfo { name: "a".to_owned(), ..NodeInfo::default() };
    world.store.join(&info).await.unwrap();
    assert_eq!(world.store.purge_members(world.now - 60_000).await.unwrap(), 0);
    assert_eq!(world.store.nodes().await.unwrap().len(), 1);
    assert_eq!(world.store.purge_members(world.now + 60_000).await.unwrap(), 1);
    assert!(world.store.nodes().await.unwrap().is_empty());
}
