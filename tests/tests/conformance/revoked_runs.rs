//! What becomes of runs that a change of their task revoked before they started: decided in one transaction, by what the
//! database says then.

use crate::fixture::{World, edit, edit_to, pause, start, stop, success};
use carillon::domain::plan::Plan;
use carillon::domain::task::{Delivery, Routing, ScheduleKind, TaskSpec};
use carillon::domain::{LogId, NodeId, Reason, Run, Status, TaskId, Transition};
use carillon::store::{NewRun, TaskChange, TaskView, Writer};
use std::collections::HashSet;

cases!(
    what_an_edit_revokes_goes_on_where_the_new_definition_names_it,
    a_stop_a_pause_and_a_delete_end_what_they_revoked,
    the_last_word_counts,
    what_has_started_is_left_alone,
    only_what_a_change_revoked_is_settled,
    what_comes_back_after_an_edit_goes_on,
    a_retry_does_not_go_on_unless_its_outcome_is_unknown,
    what_no_schedule_named_outlives_an_edit_with_the_tries_it_has_left,
    nothing_outlives_a_stop,
    shards_begin_again_as_a_whole,
    a_revoked_shard_is_stopped_with_its_parent,
    a_run_that_must_stop_does_not_go_on,
    shards_of_a_parent_that_must_stop_do_not_go_on,
    shards_of_a_run_that_goes_on_outlive_a_change_of_shape,
    shards_go_on_beside_those_that_run,
    a_parent_that_waits_for_no_shard_keeps_its_definition,
    a_parent_ends_with_the_last_of_its_shards,
    a_fixed_delay_goes_on_with_what_it_adopted,
    a_fire_makes_room_when_its_task_is_sharded_and_when_it_is_no_longer,
    what_goes_on_has_the_consequences_of_the_new_definition,
);

const EVERY_MINUTE: &str = "0 * * * * ?";

/// The next whole minute, and the second after it.
fn instants(world: &World) -> [i64; 2] {
    let minute = (world.now / 60_000 + 1) * 60_000;
    [minute, minute + 1_000]
}

/// A task that fires each second, two of whose runs an executor holds.
async fn held(world: &World, name: &str) -> (TaskView, Vec<Run>) {
    let task = world.started(&World::every_second(name)).await;
    let runs = world.write(&task, instants(world)).await;
    let held = world.dispatched(1, runs, 7).await;
    (task, held)
}

async fn changed(world: &World, change: TaskChange) -> TaskView {
    let id = change.before.id;
    world.change(change, world.now).await.unwrap();
    world.task(id).await
}

/// Executors have dropped these.
async fn settle(world: &World, runs: &[Run]) -> HashSet<LogId> {
    let mut now = Vec::new();
    for run in runs {
        now.push(world.row(run).await.dispatched.run);
    }
    world.store.settle_revoked(&now, world.now + 5).await.unwrap()
}

async fn states(world: &World, runs: &[Run]) -> Vec<(Status, Reason)> {
    let mut states = Vec::new();
    for run in runs {
        let run = world.row(run).await.dispatched.run;
        states.push((run.status, run.reason));
    }
    states
}

/// The runs that are marked, in their order.
async fn marks(world: &World, task: TaskId) -> Vec<Reason> {
    world.rows(task).await.iter().map(|row| row.dispatched.stopping).collect()
}

const GOES_ON: (Status, Reason) = (Status::Retry, Reason::GivenBack);
const EDITED: (Status, Reason) = (Status::Cancelled, Reason::TaskEdited);

async fn what_an_edit_revokes_goes_on_where_the_new_definition_names_it(world: World) {
    let (task, runs) = held(&world, "task").await;
    let to = edit_to(&task, |spec| (spec.cron, spec.priority) = (EVERY_MINUTE.to_owned(), 9));
    let task = changed(&world, to).await;
    assert_eq!(marks(&world, task.id).await, [Reason::TaskEdited; 2], "whatever becomes of the caller");
    assert_eq!(settle(&world, &runs).await, runs.iter().map(|run| run.id).collect());
    assert_eq!(states(&world, &runs).await, [GOES_ON, EDITED]);
    let on = world.row(&runs[0]).await.dispatched;
    assert_eq!((on.run.revision, on.run.priority, on.run.due_time), (2, 9, runs[0].fire_time));
    assert_eq!((on.run.attempt, on.run.failures, on.stopping), (1, 0, Reason::None));
    let ended = world.row(&runs[1]).await.dispatched;
    assert_eq!((ended.run.revision, ended.finished_at), (1, world.now + 5));
    assert_eq!(
        world.admin.attempts(world.owner.tenant_id, runs[0].id).await.len(),
        1,
        "what came of the first attempt"
    );
    assert!(world.store.settle_revoked(&runs, world.now).await.unwrap().is_empty(), "a repetition changes nothing");
    assert!(settle(&world, &runs).await.is_empty());
}

async fn a_stop_a_pause_and_a_delete_end_what_they_revoked(world: World) {
    for (name, reason) in
        [("stopped", Reason::TaskStopped), ("paused", Reason::TaskPaused), ("deleted", Reason::TaskDeleted)]
    {
        let (task, runs) = held(&world, name).await;
        assert_eq!(world.task(task.id).await.fires, 2);
        match reason {
            Reason::TaskStopped => drop(changed(&world, stop(&task)).await),
            Reason::TaskPaused => drop(changed(&world, pause(&task, "why")).await),
            _ => drop(world.admin.delete_task(&world.task(task.id).await, world.now).await.unwrap()),
        }
        assert_eq!(marks(&world, task.id).await, [reason; 2]);
        settle(&world, &runs).await;
        assert_eq!(states(&world, &runs).await, [(Status::Cancelled, reason); 2]);
        if reason != Reason::TaskDeleted {
            assert_eq!(world.task(task.id).await.fires, 0, "{name}: they never ran");
        }
    }
}

async fn the_last_word_counts(world: World) {
    let (task, runs) = held(&world, "task").await;
    let task = changed(&world, stop(&task)).await;
    // Between the two fires: the first was not to run, the second is.
    let between = world.now.max(runs[0].fire_time + 1);
    world.change(start(&task), between).await.unwrap();
    assert_eq!(marks(&world, task.id).await, [Reason::TaskStopped, Reason::TaskEdited]);
    settle(&world, &runs).await;
    assert_eq!(states(&world, &runs).await, [(Status::Cancelled, Reason::TaskStopped), GOES_ON]);
    assert_eq!(world.row(&runs[1]).await.dispatched.run.revision, 3);
}

async fn what_has_started_is_left_alone(world: World) {
    let (task, runs) = held(&world, "task").await;
    changed(&world, edit(&task)).await;
    let version = runs[0].version + 1;
    world.store.leave_running(&[(runs[0].id, version), (runs[1].id, version + 1)]).await.unwrap();
    assert_eq!(marks(&world, task.id).await, [Reason::None, Reason::TaskEdited]);
    assert_eq!(world.row(&runs[0]).await.dispatched.run, Run { version, ..runs[0].clone() });
    // A person's word is not taken back, and stands above that of an edit.
    let stopped = world.store.note_stop(&[(runs[0].id, version)], Reason::CancelledManually).await.unwrap();
    assert_eq!(stopped.len(), 1);
    world.store.leave_running(&[(runs[0].id, version + 1)]).await.unwrap();
    changed(&world, edit(&world.task(task.id).await)).await;
    assert_eq!(marks(&world, task.id).await, [Reason::CancelledManually, Reason::TaskEdited]);
}

async fn only_what_a_change_revoked_is_settled(world: World) {
    let (task, runs) = held(&world, "task").await;
    assert!(settle(&world, &runs).await.is_empty(), "no one changed their task");
    changed(&world, edit(&task)).await;
    let older = world.store.settle_revoked(&runs, world.now).await.unwrap();
    assert!(older.is_empty(), "a decision by the old definition");
    let done = success(&runs[0], 1);
    world.store.succeed(world.owner, &[&done]).await.unwrap();
    settle(&world, &runs).await;
    assert_eq!(states(&world, &runs).await, [(Status::Succeeded, Reason::None), GOES_ON]);
    assert!(settle(&world, &runs).await.is_empty(), "what goes on is of the present definition");
}

/// An executor gives a run back after the edit, and a node claims it.
async fn comes_back(world: &World, run: &Run, change: impl FnOnce(&mut Transition)) -> Run {
    let mut back = Transition::of(run, Status::Retry, Reason::GivenBack);
    change(&mut back);
    assert_eq!(world.store.change(&[back]).await.unwrap().len(), 1);
    let run = world.row(run).await.dispatched.run;
    world.store.claim(NodeId(1), vec![run], world.now).await.unwrap().remove(0)
}

async fn what_comes_back_after_an_edit_goes_on(world: World) {
    let (task, runs) = held(&world, "task").await;
    changed(&world, edit_to(&task, |spec| EVERY_MINUTE.clone_into(&mut spec.cron))).await;
    for run in &runs {
        let run = world.row(run).await.dispatched.run;
        let queued = comes_back(&world, &run, |_| {}).await;
        assert_eq!(queued.status, Status::Queued);
    }
    settle(&world, &runs).await;
    assert_eq!(states(&world, &runs).await, [GOES_ON, EDITED]);
}

async fn a_retry_does_not_go_on_unless_its_outcome_is_unknown(world: World) {
    for (delivery, reason, expected) in [
        (Delivery::AtLeastOnce, Reason::HandlerFailed, EDITED),
        (Delivery::AtLeastOnce, Reason::OutcomeUnknown, GOES_ON),
        (Delivery::AtMostOnce, Reason::OutcomeUnknown, EDITED),
    ] {
        let spec = TaskSpec { delivery, ..World::every_second(&format!("{delivery:?} {reason:?}")) };
        let task = world.started(&spec).await;
        let runs = world.write(&task, instants(&world)).await;
        let run = world.dispatched(1, runs, 7).await.remove(0);
        changed(&world, edit(&task)).await;
        let run = world.row(&run).await.dispatched.run;
        comes_back(&world, &run, |back| (back.reason, back.failures) = (reason, 1)).await;
        settle(&world, std::slice::from_ref(&run)).await;
        assert_eq!(states(&world, std::slice::from_ref(&run)).await, [expected], "{delivery:?} {reason:?}");
        assert_eq!(world.row(&run).await.dispatched.run.failures, i32::from(expected == EDITED));
    }
}

/// A run that a person has started, and an executor holds.
async fn by_hand(world: &World, task: &TaskView) -> Run {
    let new = NewRun::manual(world.id(), instants(world)[0]);
    world.admin.start_run(task, &new).await.unwrap();
    let rows = world.rows(task.id).await;
    let run = rows.into_iter().map(|row| row.dispatched.run).find(|run| run.id == new.id).unwrap();
    world.dispatched(1, vec![run], 7).await.remove(0)
}

/// It runs, and its executor says so; then it fails.
async fn fails_under_way(world: &World, run: &Run) -> Run {
    let row = world.row(run).await.dispatched.run;
    world.store.leave_running(&[(row.id, row.version)]).await.unwrap();
    let row = world.row(run).await.dispatched.run;
    comes_back(world, &row, |back| (back.reason, back.failures) = (Reason::HandlerFailed, 1)).await
}

async fn what_no_schedule_named_outlives_an_edit_with_the_tries_it_has_left(world: World) {
    // Also of a task that is stopped: people may run it by hand.
    for started in [true, false] {
        let spec = World::every_second(&format!("started: {started}"));
        let task = if started { world.started(&spec).await } else { world.stopped(&spec).await };
        let (held, runs) = (by_hand(&world, &task).await, by_hand(&world, &task).await);
        let task = changed(&world, edit(&task)).await;
        settle(&world, std::slice::from_ref(&held)).await;
        assert_eq!(states(&world, std::slice::from_ref(&held)).await, [GOES_ON], "started: {started}");
        // Under way, it is of the present definition as soon as its executor says so.
        let failed = fails_under_way(&world, &runs).await;
        assert_eq!((failed.revision, failed.failures), (task.revision, 1), "started: {started}");
        assert!(settle(&world, &[failed]).await.is_empty(), "nothing has revoked it");

        let again = by_hand(&world, &task).await;
        let back = Transition { failures: 1, ..Transition::of(&again, Status::Retry, Reason::HandlerFailed) };
        assert_eq!(world.store.change(&[back]).await.unwrap().len(), 1);
        let once = world.row(&again).await.dispatched.run;
        let held = world.dispatched(1, vec![once], 7).await.remove(0);
        let task = changed(&world, edit(&task)).await;
        settle(&world, std::slice::from_ref(&held)).await;
        let run = world.row(&held).await.dispatched.run;
        assert_eq!((run.revision, run.failures), (task.revision, 1), "started: {started}");
    }
}

async fn nothing_outlives_a_stop(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let [held, runs, came_back] = [(); 3].map(|()| by_hand(&world, &task));
    let (held, runs, came_back) = (held.await, runs.await, came_back.await);
    changed(&world, stop(&task)).await;
    settle(&world, std::slice::from_ref(&held)).await;
    let failed = fails_under_way(&world, &runs).await;
    settle(&world, std::slice::from_ref(&failed)).await;
    let back = world.row(&came_back).await.dispatched.run;
    let back = comes_back(&world, &back, |_| {}).await;
    settle(&world, std::slice::from_ref(&back)).await;
    let stopped = (Status::Cancelled, Reason::TaskStopped);
    assert_eq!(states(&world, &[held, runs, came_back]).await, [stopped; 3]);
}

/// A sharded run of three, with its executors.
async fn sharded(world: &World) -> (TaskView, Run, Vec<Run>) {
    let spec = TaskSpec { routing: Routing::Sharding, ..World::every_second(&format!("sharded-{}", world.number())) };
    let task = world.started(&spec).await;
    let plan = Plan { sharded: true, ..world.plan(&task, [instants(world)[0]]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    let parent = world.rows(task.id).await.remove(0).dispatched.run;
    let parent = world.store.claim(NodeId(1), vec![parent], world.now).await.unwrap().remove(0);
    let shards = world.shards_of(&parent, 3);
    assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap());
    (task, parent, shards)
}

async fn shards_begin_again_as_a_whole(world: World) {
    let (task, parent, shards) = sharded(&world).await;
    changed(&world, edit(&task)).await;
    assert_eq!(settle(&world, &shards).await.len(), 4);
    assert_eq!(states(&world, std::slice::from_ref(&parent)).await, [GOES_ON]);
    assert_eq!(states(&world, &shards).await, [EDITED; 3]);
    let again = world.row(&parent).await.dispatched.run;
    let again = world.store.claim(NodeId(1), vec![again], world.now).await.unwrap().remove(0);
    let fewer = world.shards_of(&again, 2);
    assert!(
        world.store.dispatch_shards(NodeId(1), &again, &fewer, world.now).await.unwrap(),
        "with those that fit now"
    );
    assert_eq!(world.rows(task.id).await.len(), 3);
}

/// A person's word reaches shards that are already asked for.
async fn a_revoked_shard_is_stopped_with_its_parent(world: World) {
    let (task, parent, shards) = sharded(&world).await;
    changed(&world, edit(&task)).await;
    let parent = world.row(&parent).await.dispatched.run;
    world.store.note_stop(&[(parent.id, parent.version)], Reason::CancelledManually).await.unwrap();
    let to_stop = world.store.shards_to_stop(10).await.unwrap();
    assert_eq!(to_stop.len(), shards.len());
}

/// Its executor was out of reach when it was killed, and has dropped it for the edit.
async fn a_run_that_must_stop_does_not_go_on(world: World) {
    let killed = (Status::Cancelled, Reason::CancelledManually);
    for (name, routing) in [("as before", Routing::Random), ("to shards", Routing::Sharding)] {
        let (task, runs) = held(&world, name).await;
        let noted = world.store.note_stop(&[(runs[0].id, runs[0].version)], Reason::CancelledManually).await.unwrap();
        assert_eq!(noted.len(), 1);
        let task = changed(&world, edit_to(&task, |spec| spec.routing = routing)).await;
        settle(&world, &runs[..1]).await;
        assert_eq!(states(&world, &runs[..1]).await, [killed], "{name}");
        assert_eq!(world.task(task.id).await.next_fire_at, task.next_fire_at, "{name}: it is not planned again");
    }
}

/// The kill is written down, and the node dies before it has told the shards: an edit that comes first does not undo it.
async fn shards_of_a_parent_that_must_stop_do_not_go_on(world: World) {
    let killed = (Status::Cancelled, Reason::CancelledManually);
    for routing in [Routing::Sharding, Routing::Random] {
        let (task, parent, shards) = sharded(&world).await;
        let noted = world.store.note_stop(&[(parent.id, parent.version + 1)], Reason::CancelledManually).await.unwrap();
        assert_eq!(noted.len(), 1);
        let task = changed(&world, edit_to(&task, |spec| spec.routing = routing)).await;
        assert_eq!(settle(&world, &shards[..1]).await.len(), 1);
        let open = world.row(&parent).await.dispatched;
        assert_eq!((open.run.status, open.stopping), (Status::Dispatched, Reason::CancelledManually));
        assert_eq!(world.store.shards_to_stop(10).await.unwrap().len(), 2);
        assert_eq!(settle(&world, &shards[1..]).await.len(), 3);
        assert_eq!(states(&world, &shards).await, [killed; 3]);
        assert_eq!(states(&world, std::slice::from_ref(&parent)).await, [killed]);
        assert_eq!(world.task(task.id).await.next_fire_at, task.next_fire_at, "it is not planned again");
    }
}

/// Of a run whose other shards executors hold, or run, none is taken away: it counts all of them.
async fn shards_of_a_run_that_goes_on_outlive_a_change_of_shape(world: World) {
    let (task, parent, shards) = sharded(&world).await;
    world.moved(&shards[0], Status::Retry, Reason::GivenBack).await;
    let task = changed(&world, edit_to(&task, |spec| spec.routing = Routing::Random)).await;
    assert_eq!(states(&world, &shards[..1]).await, [EDITED]);
    let plan = Plan { takes_over: true, ..world.plan(&task, [parent.fire_time]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    assert_eq!(world.rows(task.id).await.len(), 4, "no single run beside it");
    let done: Vec<_> = shards[1..].iter().map(|shard| success(shard, 1)).collect();
    assert_eq!(world.store.succeed(world.owner, &done.iter().collect::<Vec<_>>()).await.unwrap(), 2);
    assert_eq!(world.store.settle_parents(&[parent.id], world.now).await.unwrap(), 1);
    assert_eq!(states(&world, std::slice::from_ref(&parent)).await, [(Status::Failed, Reason::ShardFailed)]);

    // If they have not started either, the fire is planned again.
    let (task, _, shards) = sharded(&world).await;
    world.moved(&shards[0], Status::Retry, Reason::GivenBack).await;
    let task = changed(&world, edit_to(&task, |spec| spec.routing = Routing::Random)).await;
    assert_eq!(settle(&world, &shards[1..]).await.len(), 3);
    assert!(world.rows(task.id).await.is_empty());
    assert_eq!(world.task(task.id).await.next_fire_at, shards[0].fire_time.min(task.next_fire_at));
}

async fn shards_go_on_beside_those_that_run(world: World) {
    let (task, parent, shards) = sharded(&world).await;
    changed(&world, edit(&task)).await;
    settle(&world, &shards[1..]).await;
    assert_eq!(states(&world, &shards[1..]).await, [GOES_ON; 2]);
    let parent = world.row(&parent).await.dispatched.run;
    assert_eq!((parent.status, parent.revision), (Status::Dispatched, 2), "it counts them by the same definition");
}

async fn a_parent_that_waits_for_no_shard_keeps_its_definition(world: World) {
    let (task, parent, shards) = sharded(&world).await;
    changed(&world, edit(&task)).await;
    let parent = world.row(&parent).await.dispatched.run;
    world.moved(&parent, Status::Retry, Reason::HandlerFailed).await;
    settle(&world, &shards[1..]).await;
    assert_eq!(states(&world, &shards[1..]).await, [GOES_ON; 2]);
    let parent = world.row(&parent).await.dispatched.run;
    assert_eq!((parent.status, parent.revision), (Status::Retry, 1), "it counts them no longer");
}

async fn a_parent_ends_with_the_last_of_its_shards(world: World) {
    let (task, parent, shards) = sharded(&world).await;
    changed(&world, stop(&task)).await;
    settle(&world, &shards[..1]).await;
    assert_eq!(world.row(&parent).await.dispatched.run.status, Status::Dispatched);
    assert_eq!(settle(&world, &shards[1..]).await.len(), 3);
    let stopped = (Status::Cancelled, Reason::TaskStopped);
    assert_eq!(states(&world, std::slice::from_ref(&parent)).await, [stopped]);
    assert_eq!(states(&world, &shards).await, [stopped; 3]);
    assert_eq!(world.task(task.id).await.fires, 0, "one fire");
}

async fn a_fixed_delay_goes_on_with_what_it_adopted(world: World) {
    let (task, runs) = held(&world, "task").await;
    let to = edit_to(&task, |spec| {
        (spec.schedule, spec.interval_ms) = (ScheduleKind::FixedDelay, 5_000);
        spec.cron.clear();
    });
    let task = changed(&world, to).await;
    settle(&world, &runs).await;
    assert_eq!(states(&world, &runs).await, [GOES_ON; 2], "the next run comes after their end");
    let watched = world.admin.watched(task.id).await;
    assert_eq!(watched, runs.iter().map(|run| run.id).collect::<Vec<_>>());
}

async fn a_fire_makes_room_when_its_task_is_sharded_and_when_it_is_no_longer(world: World) {
    let (task, runs) = held(&world, "to shards").await;
    let task = changed(&world, edit_to(&task, |spec| spec.routing = Routing::Sharding)).await;
    settle(&world, &runs).await;
    assert!(world.rows(task.id).await.is_empty(), "a shard would have its place");
    assert_eq!(world.task(task.id).await.next_fire_at, runs[0].fire_time.min(task.next_fire_at), "planned again");

    let (task, _, shards) = sharded(&world).await;
    let task = changed(&world, edit_to(&task, |spec| spec.routing = Routing::Random)).await;
    settle(&world, &shards).await;
    assert!(world.rows(task.id).await.is_empty());
    assert_eq!(world.task(task.id).await.next_fire_at, shards[0].fire_time.min(task.next_fire_at));
}

async fn what_goes_on_has_the_consequences_of_the_new_definition(world: World) {
    let (task, runs) = held(&world, "task").await;
    assert!(world.admin.watched(task.id).await.is_empty());
    changed(&world, edit_to(&task, |spec| spec.pause_after_failures = 1)).await;
    settle(&world, &runs[..1]).await;
    assert_eq!(world.admin.watched(task.id).await, [runs[0].id]);
}
