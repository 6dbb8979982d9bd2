//! Runs to come, as a timeline shows them: what has ended is no part of them, and few are not lost among many.

use crate::fixture::World;
use carillon::domain::access::TenantScope;
use carillon::domain::{AccessScope, LogId, Owner, Reason, Run, Status};
use carillon::store::{SqlStore, UpcomingFilter, UpcomingRuns};
use carillon_simulation::store::admin::new_task;
use carillon_tests::tenants::make_app;

databases!(ended_runs_take_no_room, late_ones_are_those_that_wait, few_are_not_lost_among_many);

/// Looks at that many rows ahead.
async fn upcoming(world: &World, store: &SqlStore, access_scope: &AccessScope, rows: u64) -> UpcomingRuns {
    let (late_from, from, until) = (world.now - 10_000, world.now, world.now + 60_000);
    let filter = UpcomingFilter { late_from, from, until, rows, ..UpcomingFilter::default() };
    store.upcoming_runs(access_scope, &filter).await.unwrap()
}

fn ids(runs: &[Run]) -> Vec<LogId> {
    runs.iter().map(|run| run.id).collect()
}

fn found(upcoming: &UpcomingRuns) -> Vec<LogId> {
    upcoming.runs.iter().map(|run| run.id).collect()
}

async fn write(world: &World, owner: Owner, fire_times: impl IntoIterator<Item = i64>) -> Vec<Run> {
    let task = new_task(world.id(), owner, World::every_second(&format!("task-{}", world.number())));
    world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
    world.write(&world.task(task.id).await, fire_times).await
}

async fn ended_runs_take_no_room(world: World, store: SqlStore) {
    let past = write(&world, world.owner, (1..=8).map(|second| world.now - second * 1_000)).await;
    for run in &past {
        world.moved(run, Status::Expired, Reason::Expired).await;
    }
    let ahead = write(&world, world.owner, (1..=6).map(|second| world.now + second * 1_000)).await;
    let told = upcoming(&world, &store, &AccessScope::All, 4).await;
    assert_eq!((found(&told), told.until), (ids(&ahead[..4]), ahead[4].fire_time));
    assert!(!told.is_complete);
    let all = upcoming(&world, &store, &AccessScope::All, 6).await;
    assert_eq!((found(&all), all.until, all.is_complete), (ids(&ahead), world.now + 60_000, true));
}

async fn late_ones_are_those_that_wait(world: World, store: SqlStore) {
    let late = write(&world, world.owner, (1..=4).map(|second| world.now - second * 2_000)).await;
    let oldest = write(&world, world.owner, [world.now - 20_000]).await;
    world.dispatched(1, vec![late[1].clone()], 7).await;
    let failed = world.dispatched(1, vec![late[2].clone()], 7).await.remove(0);
    world.moved(&failed, Status::Retry, Reason::HandlerFailed).await;
    let told = upcoming(&world, &store, &AccessScope::tenant(world.owner.tenant_id), 100).await;
    let mut waiting = vec![late[0].clone(), late[2].clone(), late[3].clone()];
    waiting.sort_by_key(|run| run.fire_time);
    assert_eq!(found(&told), ids(&waiting), "not the one that runs, not {}", oldest[0].id);
}

async fn few_are_not_lost_among_many(world: World, store: SqlStore) {
    let busy = make_app(&store, [world.id(), world.id()], "busy", "app").await;
    write(&world, busy, (1..=40).map(|step| world.now + step * 100)).await;
    let other = make_app(&store, [world.id(), world.id()], "other", "app").await;
    let mut few = write(&world, world.owner, [world.now + 30_000]).await;
    few.extend(write(&world, other, [world.now + 31_000]).await);
    let place = |owner: Owner| TenantScope { tenant_id: owner.tenant_id, apps: Vec::new() };
    let both = AccessScope::Of(vec![place(world.owner), place(other)]);
    let told = upcoming(&world, &store, &both, 10).await;
    assert_eq!((found(&told), told.is_complete), (ids(&few), true));
    // Of three, each has its share, and the list ends where one of them does.
    let three = AccessScope::Of(vec![place(world.owner), place(other), place(busy)]);
    let told = upcoming(&world, &store, &three, 30).await;
    assert_eq!((told.runs.len(), told.until, told.is_complete), (10, world.now + 1_100, false));
}
