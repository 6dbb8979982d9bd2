//! Runs that no schedule names.

use crate::fixture::World;
use carillon::domain::task::{Routing, ScheduleKind, TaskSpec};
use carillon::domain::task_log::PARENT_SHARD;
use carillon::domain::{ExecutorId, LogId, Reason, Run, Status, Trigger};
use carillon::store::{NewRun, StartedRun, StoreErrorKind, TaskView};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;

cases!(
    a_run_is_started_as_it_was_asked_for,
    runs_started_manually_at_one_instant_each_get_their_own,
    a_run_takes_the_next_free_millisecond,
    a_run_leaves_whole_seconds_to_schedules,
    runs_started_at_once_each_get_their_own,
    a_key_starts_one_run_of_each_task,
    a_key_used_by_many_at_once_starts_one_run,
    a_key_whose_run_is_gone_starts_another,
    a_deleted_task_starts_nothing,
);

async fn start(world: &World, task: &TaskView, run: NewRun) -> StartedRun {
    world.admin.start_run(task, &run).await.unwrap()
}

fn keyed(world: &World, key: &str) -> NewRun {
    NewRun { key: Some(key.to_owned()), ..NewRun::manual(world.id(), world.now) }
}

async fn a_run_is_started_as_it_was_asked_for(world: World) {
    let task = world.stopped(&TaskSpec { priority: 3, ..World::every_second("task") }).await;
    let run = NewRun {
        params: Some("{\"a\":1}".to_owned()),
        at: world.now + 5_000,
        priority: Some(9),
        trigger: Trigger::Backfill,
        message: "for the books".to_owned(),
        ..NewRun::manual(world.id(), world.now)
    };
    let started = start(&world, &task, run.clone()).await;
    assert_eq!(started, StartedRun { log: run.id, fire_time: run.at, is_repeated: false });
    let row = world.rows(task.id).await.remove(0);
    let expected = Run {
        id: run.id,
        version: 1,
        tenant_id: world.owner.tenant_id,
        app_id: world.owner.app_id,
        task_id: task.id,
        revision: 1,
        parent_id: LogId::NONE,
        shard_index: 0,
        shard_total: 1,
        fire_time: run.at,
        due_time: run.at,
        attempt: 0,
        failures: 0,
        status: Status::Init,
        reason: Reason::None,
        params: run.params,
        trigger: Trigger::Backfill,
        seq: 1,
        priority: 9,
        executor_id: ExecutorId::NONE,
        queued_at: 0,
        has_rate_slot: false,
    };
    assert_eq!((row.dispatched.run, row.message.as_str()), (expected, "for the books"));

    let plain = start(&world, &task, NewRun::manual(world.id(), world.now)).await;
    let rows = world.rows(task.id).await;
    let row = rows.iter().find(|row| row.dispatched.run.id == plain.log).unwrap();
    let run = &row.dispatched.run;
    assert_eq!((run.trigger, run.seq, run.priority, &run.params), (Trigger::Manual, 2, 3, &None));
    assert_eq!(row.message, "");
    assert_eq!(world.store.tasks(&[task.id]).await.unwrap()[0].turn, 2);
}

/// An instant with some beside it that are no whole seconds.
fn amid_a_second(world: &World) -> i64 {
    world.now - world.now % 1_000 + 100
}

async fn runs_started_manually_at_one_instant_each_get_their_own(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let (now, mut fires) = (amid_a_second(&world), Vec::new());
    for _ in 0..3 {
        fires.push(start(&world, &task, NewRun::manual(world.id(), now)).await.fire_time);
    }
    assert_eq!(fires, [now, now + 1, now + 2]);
    let rows = world.rows(task.id).await;
    assert!(
        rows.iter()
            .all(|row| row.dispatched.run.trigger == Trigger::Manual && row.dispatched.run.reason == Reason::None)
    );
    assert_eq!(rows.iter().map(|row| row.dispatched.run.due_time).collect::<Vec<_>>(), fires);
}

async fn a_run_takes_the_next_free_millisecond(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let now = amid_a_second(&world);
    world.write(&task, [now, now + 1, now + 3, now + 4]).await;
    let mut fires = Vec::new();
    for at in [now, now, now + 2, now - 1] {
        fires.push(start(&world, &task, NewRun { at, ..NewRun::manual(world.id(), now) }).await.fire_time);
    }
    assert_eq!(fires, [now + 2, now + 5, now + 6, now - 1]);

    let other = world.started(&World::every_second("other")).await;
    assert_eq!(start(&world, &other, NewRun::manual(world.id(), now)).await.fire_time, now, "a task of its own");

    // The parent of shards is in its own place.
    let sharded = world.started(&TaskSpec { routing: Routing::Sharding, ..World::every_second("sharded") }).await;
    for expected in [now, now + 1] {
        assert_eq!(start(&world, &sharded, NewRun::manual(world.id(), now)).await.fire_time, expected);
    }
    let run = world.rows(sharded.id).await.remove(0).dispatched.run;
    assert_eq!((run.shard_index, run.shard_total), (PARENT_SHARD, 0));
}

/// Also to those of a later definition: the fire would be left out, or its place be taken.
async fn a_run_leaves_whole_seconds_to_schedules(world: World) {
    let spec = TaskSpec { schedule: ScheduleKind::None, cron: String::new(), ..World::every_second("task") };
    let task = world.started(&spec).await;
    let second = world.now / 1_000 * 1_000 + 60_000;
    let mut fires = Vec::new();
    for at in [second, second, second + 999, second + 999, second + 1_000] {
        fires.push(
            start(&world, &task, NewRun { at, ..NewRun::manual(world.id(), world.now) }).await.fire_time - second,
        );
    }
    assert_eq!(fires, [1, 2, 999, 1_001, 1_002]);
}

/// From both connections: one run each, in places of their own, numbered without a gap.
async fn runs_started_at_once_each_get_their_own(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let starts = (0..8).map(|number| {
        let admin = Arc::clone(if number % 2 == 0 { &world.admin } else { &world.rival_admin });
        let (task, run) = (task.clone(), NewRun::manual(world.id(), world.now));
        tokio::spawn(async move { admin.start_run(&task, &run).await.unwrap().fire_time })
    });
    let fires: BTreeSet<i64> = join_all(starts).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(fires, (world.now..world.now + 8).collect());
    let numbers: BTreeSet<i64> = world.rows(task.id).await.iter().map(|row| row.dispatched.run.seq).collect();
    assert_eq!(numbers, (1..=8).collect());
}

async fn a_key_starts_one_run_of_each_task(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let other = world.started(&World::every_second("other")).await;
    // Of any length and alphabet; keys that differ only in case differ.
    let long = "Schlüssel \u{1f511} ".repeat(12);
    let first = start(&world, &task, keyed(&world, &long)).await;
    assert!(!first.is_repeated);
    let late = NewRun { at: world.now + 9_000, params: Some("else".to_owned()), ..keyed(&world, &long) };
    let again = start(&world, &task, late).await;
    assert_eq!(again, StartedRun { is_repeated: true, ..first }, "the first one's log and instant");
    let of_other = start(&world, &other, keyed(&world, &long)).await;
    assert!(!of_other.is_repeated && of_other.log != first.log);
    for key in [long.to_uppercase(), long.trim_end().to_owned()] {
        assert!(!start(&world, &task, keyed(&world, &key)).await.is_repeated);
    }
    assert_eq!((world.rows(task.id).await.len(), world.rows(other.id).await.len()), (3, 1));

    // What has become of the run makes no difference.
    let run = world.rows(task.id).await.remove(0).dispatched.run;
    world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
    assert!(start(&world, &task, keyed(&world, &long)).await.is_repeated);
}

async fn a_key_used_by_many_at_once_starts_one_run(world: World) {
    for round in 0..5 {
        let task = world.started(&World::every_second(&format!("task-{round}"))).await;
        let starts = (0..6).map(|number| {
            let admin = Arc::clone(if number % 2 == 0 { &world.admin } else { &world.rival_admin });
            let (task, run) = (task.clone(), keyed(&world, "once"));
            tokio::spawn(async move { admin.start_run(&task, &run).await.unwrap() })
        });
        let started: Vec<StartedRun> = join_all(starts).await.into_iter().map(Result::unwrap).collect();
        let rows = world.rows(task.id).await;
        assert_eq!(rows.len(), 1, "{started:?}");
        assert!(started.iter().all(|one| one.log == rows[0].dispatched.run.id && one.fire_time == world.now));
        assert_eq!(started.iter().filter(|one| !one.is_repeated).count(), 1);
    }
}

async fn a_key_whose_run_is_gone_starts_another(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let first = start(&world, &task, keyed(&world, "key")).await;
    let run = world.rows(task.id).await.remove(0).dispatched.run;
    world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
    assert_eq!(world.store.purge(world.now + 86_400_000, 10).await.unwrap().deleted, 1);
    let second = start(&world, &task, keyed(&world, "key")).await;
    assert!(!second.is_repeated && second.log != first.log);
    assert_eq!(start(&world, &task, keyed(&world, "key")).await, StartedRun { is_repeated: true, ..second });
}

async fn a_deleted_task_starts_nothing(world: World) {
    let task = world.started(&World::every_second("task")).await;
    world.admin.delete_task(&task, world.now).await.unwrap();
    let refused = world.admin.start_run(&task, &keyed(&world, "key")).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotFound);
    assert!(world.rows(task.id).await.is_empty());
}
