//! Runs to come, as a timeline shows them: what has ended is no part of them, and few are not lost among many.

use crate::fixture::World;
use carillon::domain::access::Place;
use carillon::domain::{Reach, Reason, Run, Status};
use carillon::store::{ComingFilter, ComingRuns, Scope, SqlStore};
use carillon_tests::model::store::admin::new_task;
use carillon_tests::tenants::make_app;

databases!(what_has_ended_takes_no_room, late_ones_are_those_that_wait, few_are_not_lost_among_many);

/// Looks at that many rows ahead.
async fn coming(world: &World, store: &SqlStore, reach: &Reach, rows: u64) -> ComingRuns {
    let (late_from, from, until) = (world.now - 10_000, world.now, world.now + 60_000);
    let filter = ComingFilter { late_from, from, until, rows, ..ComingFilter::default() };
    store.coming_runs(reach, &filter).await.unwrap()
}

fn ids(runs: &[Run]) -> Vec<i64> {
    runs.iter().map(|run| run.id).collect()
}

fn found(coming: &ComingRuns) -> Vec<i64> {
    coming.runs.iter().map(|run| run.id).collect()
}

async fn write(world: &World, scope: Scope, fire_times: impl IntoIterator<Item = i64>) -> Vec<Run> {
    let task = new_task(world.id(), scope, World::every_second(&format!("task-{}", world.id())));
    world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
    world.write(&world.task(task.id).await, fire_times).await
}

async fn what_has_ended_takes_no_room(world: World, store: SqlStore) {
    let past = write(&world, world.scope, (1..=8).map(|second| world.now - second * 1_000)).await;
    for run in &past {
        world.moved(run, Status::Expired, Reason::Expired).await;
    }
    let ahead = write(&world, world.scope, (1..=6).map(|second| world.now + second * 1_000)).await;
    let told = coming(&world, &store, &Reach::All, 4).await;
    assert_eq!((found(&told), told.until), (ids(&ahead[..4]), ahead[4].fire_time));
    assert!(!told.is_complete);
    let all = coming(&world, &store, &Reach::All, 6).await;
    assert_eq!((found(&all), all.until, all.is_complete), (ids(&ahead), world.now + 60_000, true));
}

async fn late_ones_are_those_that_wait(world: World, store: SqlStore) {
    let late = write(&world, world.scope, (1..=4).map(|second| world.now - second * 2_000)).await;
    let oldest = write(&world, world.scope, [world.now - 20_000]).await;
    world.dispatched(1, vec![late[1].clone()], 7).await;
    let failed = world.dispatched(1, vec![late[2].clone()], 7).await.remove(0);
    world.moved(&failed, Status::Retry, Reason::HandlerFailed).await;
    let told = coming(&world, &store, &Reach::tenant(world.scope.tenant_id), 100).await;
    let mut waiting = vec![late[0].clone(), late[2].clone(), late[3].clone()];
    waiting.sort_by_key(|run| run.fire_time);
    assert_eq!(found(&told), ids(&waiting), "not the one that runs, not {}", oldest[0].id);
}

async fn few_are_not_lost_among_many(world: World, store: SqlStore) {
    let busy = make_app(&store, [world.id(), world.id()], "busy", "app").await;
    write(&world, busy, (1..=40).map(|step| world.now + step * 100)).await;
    let other = make_app(&store, [world.id(), world.id()], "other", "app").await;
    let mut few = write(&world, world.scope, [world.now + 30_000]).await;
    few.extend(write(&world, other, [world.now + 31_000]).await);
    let place = |scope: Scope| Place { tenant_id: scope.tenant_id, apps: Vec::new() };
    let both = Reach::Of(vec![place(world.scope), place(other)]);
    let told = coming(&world, &store, &both, 10).await;
    assert_eq!((found(&told), told.is_complete), (ids(&few), true));
    // Of three, each has its share, and the list ends where one of them does.
    let three = Reach::Of(vec![place(world.scope), place(other), place(busy)]);
    let told = coming(&world, &store, &three, 30).await;
    assert_eq!((told.runs.len(), told.until, told.is_complete), (10, world.now + 1_100, false));
}
