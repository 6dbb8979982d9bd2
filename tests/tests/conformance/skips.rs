//! Single coming fires that people cancel: whatever writes runs leaves them alone, until they are let come.

use crate::fixture::{World, edit, edit_to, start, stop};
use carillon::domain::plan::{Window, plan};
use carillon::domain::task::{Routing, ScheduleKind, TaskSpec};
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{NodeId, Reason, Run, Status};
use carillon::store::{DueRange, SKIPS_MAX, Skip, Skipped, StoreErrorKind, TaskView, Writer};

cases!(
    a_cancelled_fire_is_not_written,
    it_stays_cancelled_whatever_becomes_of_the_task,
    a_cancelled_fire_can_be_restored,
    a_fire_passed_over_is_planned_and_counted_once,
    written_past_and_foreign_fires_are_refused,
    of_shards_the_whole_fire_is_cancelled,
    a_fixed_delay_forgets_them,
    a_cancelled_run_forks_no_successor,
    there_are_only_so_many,
    retention_keeps_it_until_its_time_has_come,
    missed_fires_are_reported,
);

const BY_HAND: (Status, Reason) = (Status::Cancelled, Reason::CancelledManually);
const INIT: (Status, Reason) = (Status::Init, Reason::None);

fn second(world: &World, number: i64) -> i64 {
    (world.now / 1_000 + number) * 1_000
}

async fn skip(world: &World, task: &TaskView, fire_time: i64) -> carillon::store::Result<Skipped> {
    let skip = Skip { id: world.id(), fire_time, message: "stocktaking".to_owned() };
    world.admin.skip_fire(&world.task(task.id).await, &skip, world.now).await
}

async fn restore(world: &World, task: &TaskView, fire_time: i64) -> carillon::store::Result<()> {
    world.admin.restore_fire(&world.task(task.id).await, fire_time, true, world.now).await
}

/// Writes the task's fires up to that instant, as pre-generation does.
async fn write_until(world: &World, task: &TaskView, until: i64) {
    let task = world.store.tasks(&[task.id]).await.unwrap().remove(0);
    let window = Window { now: world.now, until, misfire_after_ms: 30_000, fires_max: 1_000, doubted_until: i64::MIN };
    let Some(plan) = plan(&task, window, || world.id()) else { return };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
}

async fn a_cancelled_fire_is_not_written(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let at = second(&world, 3);
    assert_eq!(skip(&world, &task, at).await.unwrap(), Skipped::Written);
    let row = world.rows(task.id).await.remove(0);
    assert_eq!((row.dispatched.run.fire_time, row.dispatched.finished_at), (at, at), "it ends at its instant");
    assert_eq!((row.message.as_str(), row.dispatched.run.attempt), ("stocktaking", 0));
    write_until(&world, &task, second(&world, 5)).await;
    assert_eq!(world.states(task.id).await, [INIT, INIT, BY_HAND, INIT, INIT]);
    let claimable = world.store.claimable(None, DueRange::until(i64::MAX), 10).await.unwrap();
    assert!(claimable.iter().all(|run| run.fire_time != at));
    assert_eq!(world.task(task.id).await.fires, 5, "as one that is cancelled after it was written");
}

async fn it_stays_cancelled_whatever_becomes_of_the_task(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let at = second(&world, 2);
    skip(&world, &task, at).await.unwrap();
    for round in 0..3 {
        let task = world.task(task.id).await;
        if round == 1 {
            world.change(stop(&task), world.now).await.unwrap();
            world.change(start(&world.task(task.id).await), world.now).await.unwrap();
        } else {
            world.change(edit(&task), world.now).await.unwrap();
        }
        write_until(&world, &task, second(&world, 3)).await;
        assert_eq!(world.states(task.id).await, [INIT, BY_HAND, INIT], "round {round}");
    }
}

async fn a_cancelled_fire_can_be_restored(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let at = second(&world, 2);
    skip(&world, &task, at).await.unwrap();
    restore(&world, &task, at).await.unwrap();
    assert!(world.rows(task.id).await.is_empty());
    write_until(&world, &task, second(&world, 3)).await;
    assert_eq!(world.states(task.id).await, [INIT, INIT, INIT]);
    assert_eq!(world.task(task.id).await.fires, 3);

    // And of a task that rests.
    let resting = world.stopped(&World::every_second("resting")).await;
    assert_eq!(skip(&world, &resting, at).await.unwrap(), Skipped::Written);
    restore(&world, &resting, at).await.unwrap();
    assert!(world.rows(resting.id).await.is_empty());
}

async fn a_fire_passed_over_is_planned_and_counted_once(world: World) {
    let spec = TaskSpec { max_fires: 4, ..World::every_second("task") };
    let task = world.started(&spec).await;
    let at = second(&world, 2);
    skip(&world, &task, at).await.unwrap();
    write_until(&world, &task, second(&world, 9)).await;
    assert_eq!(world.states(task.id).await, [INIT, BY_HAND, INIT, INIT], "the four that it may have");
    restore(&world, &task, at).await.unwrap();
    assert_eq!(world.task(task.id).await.next_fire_at, at);
    write_until(&world, &task, second(&world, 9)).await;
    assert_eq!(world.states(task.id).await, [INIT; 4]);
    assert_eq!(world.task(task.id).await.fires, 4);

    // One that was cancelled after it was written comes, too.
    let run = world.rows(task.id).await[2].dispatched.run.clone();
    world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
    restore(&world, &task, run.fire_time).await.unwrap();
    write_until(&world, &task, second(&world, 9)).await;
    assert_eq!((world.states(task.id).await, world.task(task.id).await.fires), (vec![INIT; 4], 4));

    // Where the schedule names the instant no more, nothing comes.
    let run = world.rows(task.id).await[2].dispatched.run.clone();
    world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
    world.admin.restore_fire(&world.task(task.id).await, run.fire_time, false, world.now).await.unwrap();
    write_until(&world, &task, second(&world, 9)).await;
    assert_eq!(world.states(task.id).await, [INIT; 3]);
}

async fn written_past_and_foreign_fires_are_refused(world: World) {
    let task = world.started(&World::every_second("task")).await;
    write_until(&world, &task, second(&world, 2)).await;
    let run = world.rows(task.id).await[0].dispatched.run.clone();
    assert_eq!(skip(&world, &task, run.fire_time).await.unwrap(), Skipped::There(run.id));
    let kind = |result: carillon::store::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(restore(&world, &task, run.fire_time).await), StoreErrorKind::Conflict, "it was not cancelled");
    assert_eq!(kind(restore(&world, &task, second(&world, 9)).await), StoreErrorKind::NotFound);
    let early = skip(&world, &task, second(&world, -5)).await.unwrap_err();
    assert_eq!(early.kind(), StoreErrorKind::Conflict, "nothing will be written there");

    // One that an executor had.
    let had = world.dispatched(1, vec![run.clone()], 7).await.remove(0);
    world.moved(&had, Status::Cancelled, Reason::CancelledManually).await;
    assert_eq!(kind(restore(&world, &task, run.fire_time).await), StoreErrorKind::Conflict);

    // By an older look.
    let old = world.task(task.id).await;
    world.change(edit(&old), world.now).await.unwrap();
    let wanted = Skip { id: world.id(), fire_time: second(&world, 9), message: String::new() };
    let refused = world.admin.skip_fire(&old, &wanted, world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Conflict);
    assert_eq!(
        kind(world.admin.restore_fire(&old, second(&world, 9), true, world.now).await),
        StoreErrorKind::Conflict
    );
}

async fn of_shards_the_whole_fire_is_cancelled(world: World) {
    let sharded = |task: &TaskView, routing| edit_to(task, |spec| spec.routing = routing);
    let spec = TaskSpec { routing: Routing::Sharding, ..World::every_second("task") };
    let task = world.started(&spec).await;
    let at = second(&world, 2);
    skip(&world, &task, at).await.unwrap();
    let shards = async || {
        let rows = world.rows(task.id).await.into_iter().map(|row| row.dispatched.run);
        rows.map(|run: Run| (run.shard_index, run.shard_total, run.status)).collect::<Vec<_>>()
    };
    assert_eq!(shards().await, [(PARENT_SHARD, 0, Status::Cancelled)]);
    // It goes with the task's routing.
    world.change(sharded(&world.task(task.id).await, Routing::Random), world.now).await.unwrap();
    assert_eq!(shards().await, [(0, 1, Status::Cancelled)]);
    world.change(sharded(&world.task(task.id).await, Routing::Sharding), world.now).await.unwrap();
    write_until(&world, &task, second(&world, 3)).await;
    let parent = |status| (PARENT_SHARD, 0, status);
    assert_eq!(shards().await, [parent(Status::Init), parent(Status::Cancelled), parent(Status::Init)]);
}

async fn a_fixed_delay_forgets_them(world: World) {
    let task = world.started(&World::every_second("task")).await;
    skip(&world, &task, second(&world, 2)).await.unwrap();
    let to_delay = edit_to(&task, |spec| {
        (spec.schedule, spec.interval_ms) = (ScheduleKind::FixedDelay, 5_000);
        spec.cron.clear();
    });
    world.change(to_delay, world.now).await.unwrap();
    assert!(world.rows(task.id).await.is_empty(), "its chain must not meet one");
}

/// The next run of a fixed delay comes after the cancelled one; with both there would be two chains.
async fn a_cancelled_run_forks_no_successor(world: World) {
    let mut spec = World::every_second("task");
    (spec.schedule, spec.interval_ms) = (ScheduleKind::FixedDelay, 60_000);
    spec.cron.clear();
    let task = world.started(&spec).await;
    let at = world.task(task.id).await.next_fire_at;
    write_until(&world, &task, at + 1).await;
    let run = world.rows(task.id).await[0].dispatched.run.clone();
    world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
    let refused = world.admin.restore_fire(&world.task(task.id).await, run.fire_time, true, run.fire_time - 1).await;
    assert_eq!(refused.unwrap_err().kind(), StoreErrorKind::Conflict);
    assert_eq!(world.states(task.id).await, [BY_HAND]);
    assert_eq!(world.admin.watched(task.id).await, [run.id], "its end has its consequence");
}

async fn there_are_only_so_many(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let seen = world.task(task.id).await;
    for number in 1..=SKIPS_MAX {
        let skip = Skip { id: world.id(), fire_time: second(&world, number), message: String::new() };
        assert_eq!(world.admin.skip_fire(&seen, &skip, world.now).await.unwrap(), Skipped::Written);
    }
    let next = second(&world, SKIPS_MAX + 1);
    assert_eq!(skip(&world, &task, next).await.unwrap_err().kind(), StoreErrorKind::Conflict);
    restore(&world, &task, second(&world, 7)).await.unwrap();
    assert_eq!(skip(&world, &task, next).await.unwrap(), Skipped::Written);
}

async fn retention_keeps_it_until_its_time_has_come(world: World) {
    const DAY_MS: i64 = 86_400_000;
    let task = world.started(&World::cron("task", "0 0 0 * * ?")).await;
    let at = task.next_fire_at + 50 * DAY_MS;
    skip(&world, &task, at).await.unwrap();
    for before in [world.now + 30 * DAY_MS, at - 1] {
        assert_eq!(world.store.purge(before, 10).await.unwrap().deleted, 0);
        assert_eq!(world.store.purge_of(0, before, 10).await.unwrap().deleted, 0);
    }
    assert_eq!(world.store.purge(at + 1, 10).await.unwrap().deleted, 1);
}

async fn missed_fires_are_reported(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let fires = [2, 4].map(|number| second(&world, number));
    for at in fires {
        skip(&world, &task, at).await.unwrap();
    }
    let others = world.started(&World::every_second("others")).await;
    world.store.write_ahead(Writer::Node(NodeId(1)), &[world.plan(&others, [fires[0]])], world.now).await.unwrap();
    let since = [(task.id, world.now), (others.id, world.now)];
    let told = async |until, limit| world.store.skipped(&since, until, limit).await.unwrap();
    assert_eq!(told(fires[1] + 1, 10).await, [(task.id, fires[1]), (task.id, fires[0])]);
    assert_eq!(told(fires[1], 10).await, [(task.id, fires[0])], "the bound itself does not count");
    assert_eq!(told(fires[1] + 1, 1).await, [(task.id, fires[1])]);
    let later = [(task.id, fires[0] + 1)];
    assert_eq!(world.store.skipped(&later, i64::MAX, 10).await.unwrap(), [(task.id, fires[1])]);
}
