//! Attempts that did not end their run are kept, once, as they were; what a run ends with is in its log.

use crate::fixture::{World, dispatch_of, edit, success};
use carillon::domain::plan::Plan;
use carillon::domain::{ExecutorId, NodeId, Reason, Run, Status, TenantId, Transition};
use carillon::store::{ATTEMPTS_KEPT_MAX, KeptAttempt, MESSAGE_CHARS_MAX, RefusedAttempt, RunDispatch, Writer};

cases!(
    a_failure_that_is_retried_is_kept_once,
    what_ends_a_run_is_not_kept,
    only_what_the_step_moved_is_kept,
    a_refused_dispatch_is_kept,
    what_a_new_definition_takes_over_is_kept,
    only_the_latest_are_kept,
    they_go_with_their_logs,
);

fn failed(run: &Run, message: &str) -> Transition {
    Transition {
        due_time: run.due_time + 10_000,
        failures: run.failures + 1,
        message: message.to_owned(),
        started_at: run.due_time + 1,
        finished_at: run.due_time + 2,
        ..Transition::of(run, Status::Retry, Reason::HandlerFailed)
    }
}

/// Claims a waiting run again, and hands it to that executor.
async fn again(world: &World, run: &Run, executor_id: ExecutorId) -> Run {
    let waiting = world.row(run).await.dispatched.run;
    world.dispatched(2, vec![waiting], executor_id.0).await.remove(0)
}

async fn a_failure_that_is_retried_is_kept_once(world: World) {
    let runs = world.runs(2).await;
    let run = world.dispatched(1, vec![runs[0].clone()], 7).await.remove(0);
    let long = "ä".repeat(MESSAGE_CHARS_MAX + 1);
    for _ in 0..2 {
        let other = Transition::of(&runs[1], Status::Cancelled, Reason::CancelledManually);
        assert_eq!(world.store.change(&[failed(&run, &long), other]).await.unwrap().len(), 2);
    }
    let first = KeptAttempt {
        number: 1,
        executor_id: ExecutorId(7),
        address: String::new(),
        node_id: NodeId(1),
        due_time: run.due_time,
        dispatched_at: world.now,
        started_at: run.due_time + 1,
        finished_at: run.due_time + 2,
        status: Status::Retry,
        reason: Reason::HandlerFailed,
        message: "ä".repeat(MESSAGE_CHARS_MAX),
    };
    let tenant = world.owner.tenant_id;
    assert_eq!(world.admin.attempts(tenant, run.id).await, std::slice::from_ref(&first));
    assert!(world.admin.attempts(TenantId(tenant.0 + 1), run.id).await.is_empty(), "they are the tenant's");

    // The next one leaves it as it is, and comes after it.
    let second = again(&world, &run, ExecutorId(8)).await;
    world.moved(&second, Status::Retry, Reason::GivenBack).await;
    let kept = world.admin.attempts(tenant, run.id).await;
    assert_eq!((kept.len(), &kept[0]), (2, &first));
    let KeptAttempt { number, executor_id, node_id, due_time, started_at, reason, ref message, .. } = kept[1];
    assert_eq!((number, executor_id, node_id), (2, ExecutorId(8), NodeId(2)));
    assert_eq!((due_time, started_at, reason), (run.due_time + 10_000, 0, Reason::GivenBack));
    assert_eq!(message, "", "that of another attempt is not its own");

    // A run that waits and is given back by a queue has no attempt to keep.
    let waiting =
        world.store.claim(NodeId(1), vec![world.row(&run).await.dispatched.run], world.now).await.unwrap().remove(0);
    world.moved(&waiting, Status::Retry, Reason::NoExecutor).await;
    assert_eq!(world.admin.attempts(tenant, run.id).await, kept);
}

async fn what_ends_a_run_is_not_kept(world: World) {
    let runs = world.dispatched(1, world.runs(4).await, 7).await;
    world.store.succeed(world.owner, &[&success(&runs[0], 1)]).await.unwrap();
    for (run, to) in runs[1..].iter().zip([Status::Failed, Status::Discarded, Status::Cancelled]) {
        world.moved(run, to, Reason::HandlerFailed).await;
    }
    for run in &runs {
        assert!(world.admin.attempts(world.owner.tenant_id, run.id).await.is_empty(), "{run:?}");
    }
}

async fn only_what_the_step_moved_is_kept(world: World) {
    let runs = world.dispatched(1, world.runs(2).await, 7).await;
    world.store.succeed(world.owner, &[&success(&runs[0], 1)]).await.unwrap();
    let late = [failed(&runs[0], "too late"), failed(&runs[1], "in time")];
    assert_eq!(world.store.change(&late).await.unwrap(), [runs[1].id].into());
    let tenant = world.owner.tenant_id;
    assert!(world.admin.attempts(tenant, runs[0].id).await.is_empty(), "it succeeded");
    assert_eq!(world.admin.attempts(tenant, runs[1].id).await.len(), 1);
}

async fn a_refused_dispatch_is_kept(world: World) {
    let runs = world.dispatched(1, world.runs(2).await, 7).await;
    let fresh = world.row(&runs[1]).await.dispatched.run;
    let refused = Some(RefusedAttempt { number: 1, executor_id: ExecutorId(7), dispatched_at: world.now - 9 });
    let of = |run| dispatch_of(run, ExecutorId(8), world.now + 1);
    let items = [RunDispatch { refused, ..of(&runs[0]) }, of(&fresh)];
    for _ in 0..2 {
        assert_eq!(world.store.dispatch(NodeId(1), &items).await.unwrap().len(), 2);
    }
    let tenant = world.owner.tenant_id;
    let kept = world.admin.attempts(tenant, runs[0].id).await;
    let expected = KeptAttempt {
        number: 1,
        executor_id: ExecutorId(7),
        address: String::new(),
        node_id: NodeId(1),
        due_time: runs[0].due_time,
        dispatched_at: world.now - 9,
        started_at: 0,
        finished_at: 0,
        status: Status::Retry,
        reason: Reason::NotAccepted,
        message: String::new(),
    };
    assert_eq!(kept, [expected]);
    assert!(world.admin.attempts(tenant, fresh.id).await.is_empty());

    // Who comes too late for the row keeps nothing.
    let refused = Some(RefusedAttempt { number: 5, executor_id: ExecutorId(9), dispatched_at: 1 });
    let late = RunDispatch { executor_id: ExecutorId(9), refused, ..items[0] };
    assert!(world.store.dispatch(NodeId(1), &[late]).await.unwrap().is_empty());
    assert_eq!(world.admin.attempts(tenant, runs[0].id).await.len(), 1);
}

async fn what_a_new_definition_takes_over_is_kept(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let run = world.write(&task, [world.now]).await.remove(0);
    let run = world.dispatched(1, vec![run], 7).await.remove(0);
    world.change(edit(&task), world.now).await.unwrap();
    let run = world.row(&run).await.dispatched.run;
    world.moved(&run, Status::Cancelled, Reason::TaskEdited).await;
    let tenant = world.owner.tenant_id;
    assert!(world.admin.attempts(tenant, run.id).await.is_empty());
    let task = world.task(task.id).await;
    let plan = Plan { takes_over: true, ..world.plan(&task, [world.now]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    let kept = world.admin.attempts(tenant, run.id).await;
    let seen: Vec<_> = kept.iter().map(|kept| (kept.number, kept.executor_id, kept.status, kept.reason)).collect();
    assert_eq!(seen, [(1, ExecutorId(7), Status::Cancelled, Reason::TaskEdited)]);
    assert_eq!(again(&world, &run, ExecutorId(8)).await.attempt, 2);
}

async fn only_the_latest_are_kept(world: World) {
    let mut run = world.dispatched(1, world.runs(1).await, 7).await.remove(0);
    for number in 1..=ATTEMPTS_KEPT_MAX + 3 {
        assert_eq!(run.attempt, number);
        world.moved(&run, Status::Retry, Reason::GivenBack).await;
        run = again(&world, &run, ExecutorId(7)).await;
    }
    let kept = world.admin.attempts(world.owner.tenant_id, run.id).await;
    let numbers: Vec<i32> = kept.iter().map(|kept| kept.number).collect();
    assert_eq!(numbers, (4..=ATTEMPTS_KEPT_MAX + 3).collect::<Vec<_>>());
}

async fn they_go_with_their_logs(world: World) {
    let runs = world.dispatched(1, world.runs(3).await, 7).await;
    for run in &runs {
        world.moved(run, Status::Retry, Reason::GivenBack).await;
    }
    for run in &runs[..2] {
        let waiting = world.row(run).await.dispatched.run;
        world.moved(&waiting, Status::Cancelled, Reason::CancelledManually).await;
    }
    let before = world.now + 60_000;
    assert_eq!(world.store.purge(before, 1).await.unwrap().deleted, 1);
    assert_eq!(world.admin.orphans().await, 0);
    assert_eq!(world.store.purge_of(0, before, 10).await.unwrap().deleted, 1);
    assert_eq!(world.admin.orphans().await, 0);
    assert_eq!(world.admin.attempts(world.owner.tenant_id, runs[2].id).await.len(), 1);
}
