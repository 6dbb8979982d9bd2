//! A fire belongs to the definition that is valid at its instant: what an edit or a stop gave
//! up, the next revision takes over. Nothing else.

use crate::fixture::{World, dispatch_of, edit, start, stop};
use carillon::domain::plan::Plan;
use carillon::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, Transition};
use carillon::store::{DueRange, TaskChange, TaskView, Writer};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

cases!(
    an_edit_cancels_undispatched_runs_and_names_dispatched_ones,
    an_edit_misses_nothing_that_comes_back_meanwhile,
    an_edit_misses_nothing_that_is_dispatched_meanwhile,
    the_next_revision_takes_over_what_an_edit_or_a_stop_cancelled,
    fires_missed_by_the_next_revision_stay_missed,
    what_ended_otherwise_is_not_taken_over,
    a_deleted_task_leaves_its_logs_and_cancels_what_is_open,
);

/// Changes a task of which no executor has anything.
async fn changed(world: &World, change: TaskChange) -> TaskView {
    let id = change.before.id;
    assert!(world.change(change, world.now).await.unwrap().is_empty());
    world.task(id).await
}

async fn take_over(world: &World, task: &TaskView, runs: &[Run]) {
    let plan = Plan { takes_over: true, ..world.plan(task, runs.iter().map(|run| run.fire_time)) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
}

async fn an_edit_cancels_undispatched_runs_and_names_dispatched_ones(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let runs = world.write(&task, (0..5).map(|i| world.now + i * 1_000)).await;
    world.store.claim(NodeId(1), vec![runs[1].clone()], world.now).await.unwrap();
    let dispatched = world.dispatched(1, runs[2..5].to_vec(), 7).await;
    world.moved(&dispatched[0], Status::Retry, Reason::HandlerFailed).await;
    world.store.succeed(world.owner, &[&crate::fixture::success(&dispatched[1], 1)]).await.unwrap();

    let held = world.change(edit(&task), world.now + 9).await.unwrap();
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].run.id, held[0].run.executor_id, held[0].run.attempt), (dispatched[2].id, ExecutorId(7), 1));
    let edited = (Status::Cancelled, Reason::TaskEdited);
    let expected = [edited, edited, edited, (Status::Succeeded, Reason::None), (Status::Dispatched, Reason::None)];
    assert_eq!(world.states(task.id).await, expected);
    let rows = world.rows(task.id).await;
    assert_eq!((rows[0].dispatched.run.version, rows[0].dispatched.finished_at), (2, world.now + 9));
    let after = world.task(task.id).await;
    assert_eq!(after.revision, 2);
    let read = world.store.tasks(&[task.id]).await.unwrap().remove(0);
    assert_eq!(read.written_until, task.next_fire_at, "logs of the old revision may exist up to its watermark");
}

/// Runs that executors give back while the task is edited are either found with the executor,
/// and named, or found waiting, and cancelled.
async fn an_edit_misses_nothing_that_comes_back_meanwhile(world: World) {
    let back = |run: &Run| Transition::of(run, Status::Retry, Reason::GivenBack);
    for round in 0..6 {
        let (task, runs) = task_with_runs(&world, round).await;
        let dispatched = world.dispatched(1, runs, 7).await;
        let rival = Arc::clone(&world.rival);
        let returning = async move {
            for batch in dispatched.chunks(5) {
                rival.change(&batch.iter().map(back).collect::<Vec<_>>()).await.unwrap();
            }
        };
        nothing_is_missed(&world, &task, returning).await;
    }
}

/// The same for runs that are dispatched while the task is edited.
async fn an_edit_misses_nothing_that_is_dispatched_meanwhile(world: World) {
    for round in 0..6 {
        let (task, runs) = task_with_runs(&world, round).await;
        let claimed = world.store.claim(NodeId(1), runs, world.now).await.unwrap();
        let (rival, now) = (Arc::clone(&world.rival), world.now);
        let dispatching = async move {
            for batch in claimed.chunks(5) {
                let items: Vec<_> = batch.iter().map(|run| dispatch_of(run, ExecutorId(7), now)).collect();
                rival.dispatch(NodeId(1), &items).await.unwrap();
            }
        };
        nothing_is_missed(&world, &task, dispatching).await;
    }
}

async fn task_with_runs(world: &World, number: i32) -> (TaskView, Vec<Run>) {
    let task = world.started(&World::every_second(&format!("task-{number}"))).await;
    let runs = world.write(&task, (0..150).map(|i| world.now + i * 1_000)).await;
    (task, runs)
}

/// Edits the task in the middle of `moves`: whatever is not cancelled was named.
async fn nothing_is_missed(world: &World, task: &TaskView, moves: impl Future<Output = ()> + Send + 'static) {
    let meanwhile = tokio::spawn(moves);
    let (admin, before, now) = (Arc::clone(&world.admin), task.clone(), world.now);
    let editing = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        admin.apply(&[], &[edit(&before)], now).await.unwrap().remove(0)
    });
    let (done, held) = tokio::join!(meanwhile, editing);
    done.unwrap();
    let named: BTreeSet<LogId> = held.unwrap().iter().map(|dispatched| dispatched.run.id).collect();
    let missed = |run: &Run| run.status != Status::Cancelled && !named.contains(&run.id);
    let rows = world.rows(task.id).await.into_iter().map(|row| row.dispatched.run);
    let missed: Vec<Run> = rows.filter(missed).collect();
    assert!(missed.is_empty(), "{} rows are neither cancelled nor named: {:?}", missed.len(), missed[0]);
}

async fn the_next_revision_takes_over_what_an_edit_or_a_stop_cancelled(world: World) {
    for reason in [Reason::TaskEdited, Reason::TaskStopped] {
        let task = world.started(&World::every_second(reason.as_str())).await;
        let runs = world.write(&task, [world.now, world.now + 1_000]).await;
        let first = world.dispatched(1, vec![runs[0].clone()], 7).await.remove(0);
        world.moved(&first, Status::Retry, Reason::GivenBack).await;
        let is_stop = reason == Reason::TaskStopped;
        let mut task = changed(&world, if is_stop { stop(&task) } else { edit(&task) }).await;
        if is_stop {
            task = changed(&world, start(&task)).await;
        }
        take_over(&world, &task, &runs).await;
        let rows = world.rows(task.id).await;
        for (row, run) in rows.iter().zip(&runs) {
            let now = &row.dispatched.run;
            assert_eq!((now.id, now.status, now.reason), (run.id, Status::Init, Reason::None), "one row per fire");
            assert_eq!((now.revision, now.failures), (task.revision, 0));
            assert_eq!(
                (now.executor_id, row.dispatched.node_id, row.dispatched.finished_at),
                (ExecutorId::NONE, NodeId::NONE, 0)
            );
        }
        assert_eq!(rows[0].dispatched.run.attempt, 1, "attempts go on counting: they are fencing tokens");
        assert_eq!(rows[0].dispatched.run.version, first.version + 3);
    }
}

/// "Cancelled by an edit" would be half of the answer to why it did not run.
async fn fires_missed_by_the_next_revision_stay_missed(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let runs = world.write(&task, [world.now]).await;
    let task = changed(&world, edit(&task)).await;
    let mut plan = Plan { takes_over: true, ..world.plan(&task, [world.now]) };
    (plan.fires[0].status, plan.fires[0].reason) = (Status::Expired, Reason::MisfireSkipped);
    "missed".clone_into(&mut plan.fires[0].message);
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    let row = world.row(&runs[0]).await;
    assert_eq!(world.states(task.id).await, [(Status::Expired, Reason::MisfireSkipped)]);
    assert_eq!((row.message.as_str(), row.dispatched.run.revision), ("missed", 2));
    assert!(world.store.claimable(None, DueRange::until(i64::MAX), 10).await.unwrap().is_empty());
    let task = changed(&world, edit(&task)).await;
    take_over(&world, &task, &runs).await;
    assert_eq!(world.states(task.id).await, [(Status::Expired, Reason::MisfireSkipped)], "that is an end");
}

async fn what_ended_otherwise_is_not_taken_over(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let runs = world.write(&task, (0..4).map(|i| world.now + i * 1_000)).await;
    world.moved(&runs[0], Status::Cancelled, Reason::CancelledManually).await;
    world.moved(&runs[1], Status::Expired, Reason::Expired).await;
    let done = world.dispatched(1, vec![runs[2].clone()], 7).await.remove(0);
    world.store.succeed(world.owner, &[&crate::fixture::success(&done, 1)]).await.unwrap();
    let task = changed(&world, edit(&task)).await;
    take_over(&world, &task, &runs).await;
    let expected = [
        (Status::Cancelled, Reason::CancelledManually),
        (Status::Expired, Reason::Expired),
        (Status::Succeeded, Reason::None),
        (Status::Init, Reason::None),
    ];
    assert_eq!(world.states(task.id).await, expected);

    let last = world.row(&runs[3]).await.dispatched.run;
    world.moved(&last, Status::Cancelled, Reason::TaskEdited).await;
    take_over(&world, &task, &runs).await;
    let state = world.row(&runs[3]).await.dispatched.run.status;
    assert_eq!(state, Status::Cancelled, "a revision does not take over from itself");
}

async fn a_deleted_task_leaves_its_logs_and_cancels_what_is_open(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let runs = world.write(&task, [world.now, world.now + 1_000]).await;
    world.dispatched(1, vec![runs[0].clone()], 7).await;
    let held = world.admin.delete_task(&task, world.now).await.unwrap();
    assert_eq!(held.len(), 1);
    assert!(world.admin.task(task.id).await.is_none());
    assert!(world.store.tasks(&[task.id]).await.unwrap().is_empty());
    let expected = [(Status::Dispatched, Reason::None), (Status::Cancelled, Reason::TaskDeleted)];
    assert_eq!(world.states(task.id).await, expected);
}
