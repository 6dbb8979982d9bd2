//! Runs that become an executor's, and guarded steps.

use crate::fixture::{World, dispatch_of};
use carillon::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, Transition};
use std::sync::Arc;

cases!(
    a_dispatch_repeated_counts_once,
    a_dispatch_loses_at_a_changed_version,
    a_refused_run_goes_to_another_under_a_new_attempt,
    a_change_is_guarded_by_the_version,
    a_change_repeated_counts_as_done,
    of_two_changes_at_once_one_wins,
);

async fn a_dispatch_repeated_counts_once(world: World) {
    let runs = world.store.claim(NodeId(1), world.runs(3).await, world.now).await.unwrap();
    let items: Vec<_> = runs.iter().map(|run| dispatch_of(run, ExecutorId(7), world.now + 5)).collect();
    for _ in 0..2 {
        let mine = world.store.dispatch(NodeId(1), &items).await.unwrap();
        assert_eq!(mine, runs.iter().map(|run| run.id).collect());
    }
    let row = world.row(&runs[0]).await.dispatched;
    assert_eq!((row.run.status, row.run.attempt, row.run.version), (Status::Dispatched, 1, runs[0].version + 1));
    assert_eq!((row.node_id, row.run.executor_id, row.dispatched_at), (NodeId(1), ExecutorId(7), world.now + 5));
    let later: Vec<_> = runs.iter().map(|run| dispatch_of(run, ExecutorId(7), world.now + 6)).collect();
    assert!(world.store.dispatch(NodeId(1), &later).await.unwrap().is_empty(), "a copy of the run comes too late");
    let elsewhere: Vec<_> = runs.iter().map(|run| dispatch_of(run, ExecutorId(8), world.now + 5)).collect();
    assert!(world.store.dispatch(NodeId(1), &elsewhere).await.unwrap().is_empty(), "another executor has them");
    assert!(world.store.dispatch(NodeId(2), &items).await.unwrap().is_empty(), "another node dispatched them");
}

async fn a_dispatch_loses_at_a_changed_version(world: World) {
    let runs = world.runs(4).await;
    let claimed = world.store.claim(NodeId(1), runs[..3].to_vec(), world.now).await.unwrap();
    world.moved(&claimed[0], Status::Init, Reason::None).await;
    world.moved(&claimed[1], Status::Cancelled, Reason::TaskStopped).await;
    let mut items: Vec<_> = claimed.iter().map(|run| dispatch_of(run, ExecutorId(7), world.now)).collect();
    // Current, but without an owner: only a claimed run is dispatched.
    items.push(dispatch_of(&runs[3], ExecutorId(7), world.now));
    let back = world.row(&claimed[0]).await.dispatched.run;
    items.push(dispatch_of(&back, ExecutorId(7), world.now));
    let mine = world.store.dispatch(NodeId(1), &items).await.unwrap();
    assert_eq!(mine, [claimed[2].id].into());
    let states: Vec<Status> = world.states(runs[0].task_id).await.into_iter().map(|(status, _)| status).collect();
    assert_eq!(states, [Status::Init, Status::Cancelled, Status::Dispatched, Status::Init]);
}

async fn a_refused_run_goes_to_another_under_a_new_attempt(world: World) {
    let run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    let mine = world.store.dispatch(NodeId(1), &[dispatch_of(&run, ExecutorId(8), world.now + 1)]).await.unwrap();
    assert_eq!(mine.len(), 1);
    let row = world.row(&run).await.dispatched;
    assert_eq!((row.run.attempt, row.run.executor_id, row.dispatched_at), (2, ExecutorId(8), world.now + 1));
}

fn failed(run: &Run) -> Transition {
    Transition {
        due_time: run.due_time + 10_000,
        failures: 1,
        message: "it broke".to_owned(),
        started_at: run.due_time + 1,
        finished_at: run.due_time + 2,
        ..Transition::of(run, Status::Retry, Reason::HandlerFailed)
    }
}

async fn a_change_is_guarded_by_the_version(world: World) {
    let run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    let late = Transition { version: run.version - 1, ..failed(&run) };
    let early = Transition { version: run.version + 1, ..failed(&run) };
    let absent = Transition { id: LogId(run.id.0 + 1), ..failed(&run) };
    assert!(world.store.change(&[late, early, absent]).await.unwrap().is_empty());
    assert_eq!(world.row(&run).await.dispatched.run, run);
}

async fn a_change_repeated_counts_as_done(world: World) {
    let run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    for _ in 0..2 {
        assert_eq!(world.store.change(&[failed(&run)]).await.unwrap(), [run.id].into());
    }
    let row = world.row(&run).await;
    assert_eq!((row.dispatched.run.status, row.dispatched.run.reason), (Status::Retry, Reason::HandlerFailed));
    assert_eq!((row.dispatched.run.version, row.dispatched.run.failures), (run.version + 1, 1));
    assert_eq!((row.dispatched.run.due_time, row.message.as_str()), (run.due_time + 10_000, "it broke"));

    // A later step keeps what it does not name.
    let waiting = row.dispatched.run.clone();
    world.moved(&waiting, Status::Cancelled, Reason::CancelledManually).await;
    let row = world.row(&run).await;
    assert_eq!((row.message.as_str(), row.started_at), ("it broke", run.due_time + 1));
    assert_eq!(row.dispatched.finished_at, 0);
    assert!(world.store.change(&[failed(&run)]).await.unwrap().is_empty(), "the row has moved on since");
}

async fn of_two_changes_at_once_one_wins(world: World) {
    let runs = world.store.claim(NodeId(1), world.runs(100).await, world.now).await.unwrap();
    let mover = |to: Status, reason: Reason, first: bool| {
        let store = Arc::clone(if first { &world.store } else { &world.rival });
        let changes: Vec<Transition> = runs.iter().map(|run| Transition::of(run, to, reason)).collect();
        tokio::spawn(async move {
            let mut moved = std::collections::BTreeSet::new();
            for batch in changes.chunks(10) {
                moved.extend(store.change(batch).await.unwrap());
            }
            moved
        })
    };
    let (back, ended) =
        tokio::join!(mover(Status::Init, Reason::None, true), mover(Status::Cancelled, Reason::TaskStopped, false));
    let (back, ended) = (back.unwrap(), ended.unwrap());
    assert!(back.is_disjoint(&ended));
    assert_eq!(back.len() + ended.len(), 100);
    for row in world.rows(runs[0].task_id).await {
        let expected = if back.contains(&row.dispatched.run.id) { Status::Init } else { Status::Cancelled };
        assert_eq!(row.dispatched.run.status, expected);
    }
}
