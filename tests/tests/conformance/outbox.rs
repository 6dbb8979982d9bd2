//! Consequences of the end of runs: exactly once, whichever node comes first.

use crate::fixture::{World, connect, edit, node, success};
use carillon::domain::plan::{Plan, Window, plan};
use carillon::domain::task::{NEVER, ParentLink, ParentOutcome, ParentRule, Routing, ScheduleKind, TaskSpec};
use carillon::domain::{LogId, NodeId, Reason, Run, Status, TaskId, Trigger};
use carillon::store::{
    EndedRun, NewRun, OutboxRound, OutboxStore as _, PausedTask, PlanStore as _, TaskState, TaskView, Writer,
};
use carillon_protocol::RunResult;
use carillon_tests::proxy::Proxy;
use carillon_tests::{Database, Kind};
use std::time::Duration;

cases!(
    a_child_runs_once_for_each_end_that_meets,
    the_outbox_is_looked_through_part_by_part,
    undispatched_runs_are_cancelled_without_a_message,
    what_is_skipped_after_a_restore_starts_no_child,
    a_child_of_several_waits_for_all_and_gets_their_output,
    output_that_retention_has_taken_is_left_out,
    a_child_that_is_stopped_runs_after_nobody,
    two_followers_at_once_follow_each_end_once,
    a_fixed_delay_moves_on_from_the_end,
    a_fixed_delay_does_not_go_back_with_the_clock,
    a_fixed_delay_goes_on_beside_what_was_started_by_hand,
    a_fixed_delay_takes_no_instant_twice,
    failures_in_a_row_are_counted,
    a_task_that_fails_too_often_pauses,
    a_fire_taken_over_keeps_its_consequences,
    a_run_that_has_ended_keeps_its_consequences_when_its_fire_is_planned_again,
);

servers!(what_is_taken_over_meanwhile_keeps_its_consequences);

fn after(parents: &[&str], on: ParentOutcome) -> Vec<ParentLink> {
    parents.iter().map(|task| ParentLink { task: (*task).to_owned(), on }).collect()
}

/// A started task that fires only after others.
async fn child(world: &World, name: &str, spec: TaskSpec) -> TaskView {
    let spec = TaskSpec { schedule: ScheduleKind::None, cron: String::new(), ..spec };
    world.started(&TaskSpec { name: name.to_owned(), handler: "handler".to_owned(), ..spec }).await
}

/// A handed-over run of the task whose end counts.
async fn dispatched(world: &World, task: &TaskView, at: i64) -> Run {
    let task = world.task(task.id).await;
    let plan = Plan { outbox: true, ..world.plan(&task, [at]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&plan), world.now).await.unwrap().unwrap();
    let run =
        world.rows(task.id).await.into_iter().map(|log| log.dispatched.run).find(|run| run.fire_time == at).unwrap();
    world.dispatched(1, vec![run], 100).await.remove(0)
}

async fn succeed(world: &World, run: &Run) {
    assert_eq!(world.store.succeed(world.owner, &[&success(run, 1)]).await.unwrap(), 1);
}

async fn follow(world: &World) -> OutboxRound {
    let ended = world.store.ended(LogId::NONE, 1_000).await.unwrap().ended;
    if ended.is_empty() {
        return OutboxRound::default();
    }
    world.store.process_outbox(&ended, &node(), &|| world.id(), world.now).await.unwrap().unwrap()
}

async fn runs_of(world: &World, task: &TaskView) -> Vec<Run> {
    world.rows(task.id).await.into_iter().map(|log| log.dispatched.run).collect()
}

async fn a_child_runs_once_for_each_end_that_meets(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    let parents = |on| TaskSpec { parents: after(&["parent"], on), parent_output: true, ..TaskSpec::default() };
    let good = child(&world, "good", parents(ParentOutcome::Success)).await;
    let bad = child(&world, "bad", parents(ParentOutcome::Failure)).await;
    let always = child(&world, "always", parents(ParentOutcome::Always)).await;
    let first = dispatched(&world, &parent, world.now + 1_000).await;
    let second = dispatched(&world, &parent, world.now + 2_000).await;
    assert!(world.store.has_outbox_entries().await.unwrap());
    assert_eq!(follow(&world).await, OutboxRound::default(), "nothing has ended");
    succeed(&world, &first).await;
    assert_eq!(follow(&world).await.started, 2);
    world.moved(&second, Status::Failed, Reason::HandlerFailed).await;
    assert_eq!(follow(&world).await.started, 2);
    assert_eq!(follow(&world).await, OutboxRound::default(), "each end once");
    let counts = [runs_of(&world, &good).await, runs_of(&world, &bad).await, runs_of(&world, &always).await];
    assert_eq!(counts.each_ref().map(Vec::len), [1, 1, 2]);
    let run = &counts[0][0];
    assert_eq!((run.trigger, run.status, run.params.as_deref()), (Trigger::Parent, Status::Init, Some("done")));
    assert_eq!(counts[1][0].params, None, "a failed run has no output");
    assert!(!world.store.has_outbox_entries().await.unwrap(), "children without children end it");
}

async fn the_outbox_is_looked_through_part_by_part(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    child(&world, "child", TaskSpec { parents: after(&["parent"], ParentOutcome::Always), ..TaskSpec::default() })
        .await;
    let mut runs = Vec::new();
    for at in 1..=5 {
        runs.push(dispatched(&world, &parent, world.now + at * 1_000).await);
    }
    let ids = |ended: &[EndedRun]| ended.iter().map(|run| run.log).collect::<Vec<_>>();
    let part = async |after, rows| {
        let page = world.store.ended(after, rows).await.unwrap();
        (ids(&page.ended), page.rows, page.next)
    };
    let all: Vec<LogId> = runs.iter().map(|run| run.id).collect();
    assert_eq!(part(LogId::NONE, 2).await, (vec![], 2, Some(all[1])), "nothing has ended; there is more");
    for at in [1, 4] {
        succeed(&world, &runs[at]).await;
    }
    assert_eq!(part(LogId::NONE, 2).await, (vec![all[1]], 2, Some(all[1])));
    assert_eq!(part(all[1], 2).await, (vec![], 2, Some(all[3])));
    assert_eq!(part(all[3], 2).await, (vec![all[4]], 1, None), "the end");
    assert_eq!(part(all[4], 2).await, (vec![], 0, None));
    assert_eq!(part(LogId::NONE, 100).await, (vec![all[1], all[4]], 5, None));

    let among = async |ids_of: &[LogId]| ids(&world.store.ended_among(ids_of).await.unwrap());
    assert_eq!(among(&all).await, [all[1], all[4]]);
    assert_eq!(among(&[all[4], all[0], LogId(1)]).await, [all[4]]);
    assert!(among(&[]).await.is_empty());
    follow(&world).await;
    assert!(among(&all).await.is_empty(), "what is followed has no row any more");
    assert_eq!(part(LogId::NONE, 100).await, (vec![], 3, None));
}

async fn undispatched_runs_are_cancelled_without_a_message(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    let parents = TaskSpec { parents: after(&["parent"], ParentOutcome::Always), ..TaskSpec::default() };
    let always = child(&world, "always", parents).await;
    let task = world.task(parent.id).await;
    let plan = Plan { outbox: true, ..world.plan(&task, [world.now + 1_000]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&plan), world.now).await.unwrap().unwrap();
    let waiting = runs_of(&world, &parent).await.remove(0);
    world.moved(&waiting, Status::Cancelled, Reason::CancelledManually).await;
    assert_eq!(follow(&world).await, OutboxRound::default());
    assert!(!world.store.has_outbox_entries().await.unwrap(), "its end is dealt with");

    let killed = dispatched(&world, &parent, world.now + 2_000).await;
    world.moved(&killed, Status::Cancelled, Reason::CancelledManually).await;
    assert_eq!(follow(&world).await.started, 1);
    assert_eq!(runs_of(&world, &always).await.len(), 1);
}

/// Of a sharded run, too, if a shard of it was skipped.
async fn what_is_skipped_after_a_restore_starts_no_child(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    let sharded = world.started(&TaskSpec { routing: Routing::Sharding, ..World::every_second("sharded") }).await;
    for (name, parent, on) in [
        ("always", "parent", ParentOutcome::Always),
        ("failure", "parent", ParentOutcome::Failure),
        ("always sharded", "sharded", ParentOutcome::Always),
    ] {
        child(&world, name, TaskSpec { parents: after(&[parent], on), ..TaskSpec::default() }).await;
    }
    let waiting = Plan { outbox: true, ..world.plan(&world.task(parent.id).await, [world.now + 1_000]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[waiting], world.now).await.unwrap().unwrap();
    world.moved(&runs_of(&world, &parent).await[0], Status::Cancelled, Reason::Restored).await;
    let lost = dispatched(&world, &parent, world.now + 2_000).await;
    world.moved(&lost, Status::Cancelled, Reason::Restored).await;

    let plan = world.plan(&world.task(sharded.id).await, [world.now + 1_000]);
    world
        .store
        .write_ahead(Writer::Node(NodeId(1)), &[Plan { outbox: true, sharded: true, ..plan }], world.now)
        .await
        .unwrap()
        .unwrap();
    let whole = runs_of(&world, &sharded).await.remove(0);
    let whole = world.store.claim(NodeId(1), vec![whole], world.now).await.unwrap().remove(0);
    let shards = world.shards_of(&whole, 3);
    assert!(world.store.dispatch_shards(NodeId(1), &whole, &shards, world.now).await.unwrap());
    let shards = runs_of(&world, &sharded).await.split_off(1);
    succeed(&world, &shards[0]).await;
    world.moved(&shards[1], Status::Failed, Reason::HandlerFailed).await;
    world.moved(&shards[2], Status::Cancelled, Reason::Restored).await;
    assert_eq!(world.store.settle_parents(&[whole.id], world.now).await.unwrap(), 1);
    let whole = world.row(&whole).await.dispatched.run;
    assert_eq!((whole.status, whole.reason), (Status::Cancelled, Reason::Restored));

    assert_eq!(world.store.ended(LogId::NONE, 10).await.unwrap().ended.len(), 3);
    assert_eq!(follow(&world).await, OutboxRound::default());
    assert!(!world.store.has_outbox_entries().await.unwrap(), "their ends are dealt with");
}

async fn a_child_of_several_waits_for_all_and_gets_their_output(world: World) {
    let one = world.started(&World::every_second("one")).await;
    let two = world.started(&World::every_second("two")).await;
    let spec = TaskSpec {
        parents: after(&["one", "two"], ParentOutcome::Success),
        parent_output: true,
        ..TaskSpec::default()
    };
    let all = child(&world, "all", spec.clone()).await;
    let any = child(&world, "any", TaskSpec { parent_rule: ParentRule::Any, ..spec }).await;
    for (task, at) in [(&one, 1_000), (&one, 2_000)] {
        succeed(&world, &dispatched(&world, task, world.now + at).await).await;
    }
    assert_eq!(follow(&world).await.started, 2, "any, for each");
    assert!(runs_of(&world, &all).await.is_empty());
    succeed(&world, &dispatched(&world, &two, world.now + 3_000).await).await;
    assert_eq!(follow(&world).await.started, 2);
    let runs = runs_of(&world, &all).await;
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].params.as_deref(), Some(r#"{"one":"done","two":"done"}"#));
    assert_eq!(runs_of(&world, &any).await.len(), 3);
    // And once more.
    succeed(&world, &dispatched(&world, &two, world.now + 4_000).await).await;
    follow(&world).await;
    assert_eq!(runs_of(&world, &all).await.len(), 1);
}

/// That is another thing than none.
async fn output_that_retention_has_taken_is_left_out(world: World) {
    let (one, two) =
        (world.started(&World::every_second("one")).await, world.started(&World::every_second("two")).await);
    let parents = after(&["one", "two"], ParentOutcome::Success);
    let all = child(&world, "all", TaskSpec { parents, parent_output: true, ..TaskSpec::default() }).await;
    succeed(&world, &dispatched(&world, &one, world.now + 1_000).await).await;
    follow(&world).await;
    assert_eq!(world.store.purge(world.now + 86_400_000, 1).await.unwrap().deleted, 1);
    let run = dispatched(&world, &two, world.now + 2_000).await;
    let silent = RunResult { output: String::new(), ..success(&run, 1) };
    world.store.succeed(world.owner, &[&silent]).await.unwrap();
    assert_eq!(follow(&world).await.started, 1);
    assert_eq!(runs_of(&world, &all).await[0].params.as_deref(), Some(r#"{"one":null,"two":""}"#));
}

async fn a_child_that_is_stopped_runs_after_nobody(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    let spec = TaskSpec { parents: after(&["parent"], ParentOutcome::Always), ..TaskSpec::default() };
    let resting = child(&world, "resting", spec).await;
    let stopped = crate::fixture::stop(&resting);
    world.change(stopped, world.now).await.unwrap();
    succeed(&world, &dispatched(&world, &parent, world.now + 1_000).await).await;
    assert_eq!(follow(&world).await, OutboxRound::default());
    assert!(runs_of(&world, &resting).await.is_empty());
}

async fn two_followers_at_once_follow_each_end_once(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    let spec = TaskSpec { parents: after(&["parent"], ParentOutcome::Success), ..TaskSpec::default() };
    let next = child(&world, "next", spec).await;
    for round in 1..=5 {
        succeed(&world, &dispatched(&world, &parent, world.now + round * 1_000).await).await;
        let ended: Vec<EndedRun> = world.store.ended(LogId::NONE, 1_000).await.unwrap().ended;
        assert_eq!(ended.len(), 1);
        let (new_id, node) = (|| world.id(), node());
        let (mine, theirs) = tokio::join!(
            world.store.process_outbox(&ended, &node, &new_id, world.now),
            world.rival.process_outbox(&ended, &node, &new_id, world.now)
        );
        let started = |followed: Option<OutboxRound>| followed.map_or(0, |followed| followed.started);
        assert_eq!(started(mine.unwrap()) + started(theirs.unwrap()), 1);
    }
    assert_eq!(runs_of(&world, &next).await.len(), 5);
}

/// A task with a delay of 5 s, and its first run, handed over.
async fn delayed(world: &World) -> (TaskView, Run) {
    let spec = TaskSpec {
        schedule: ScheduleKind::FixedDelay,
        interval_ms: 5_000,
        cron: String::new(),
        ..World::every_second("delay")
    };
    let task = world.started(&spec).await;
    assert_eq!(task.next_fire_at, world.now + 5_000);
    let plan = Plan { outbox: true, to: NEVER, ..world.plan(&task, [task.next_fire_at]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap().unwrap();
    let run = runs_of(world, &task).await.remove(0);
    (task, world.dispatched(1, vec![run], 100).await.remove(0))
}

async fn a_fixed_delay_moves_on_from_the_end(world: World) {
    let (task, run) = delayed(&world).await;
    succeed(&world, &run).await;
    assert_eq!(follow(&world).await.moved, [task.id]);
    assert_eq!(world.task(task.id).await.next_fire_at, success(&run, 1).finished_at + 5_000);
}

/// The clock was set back while the run went on, beyond the start of its task: one delay after that is an instant that the chain
/// has had.
async fn a_fixed_delay_does_not_go_back_with_the_clock(world: World) {
    let (task, run) = delayed(&world).await;
    let before = world.now - 30_000;
    let result = RunResult { started_at: before - 1, finished_at: before, ..success(&run, 1) };
    assert_eq!(world.store.succeed(world.owner, &[&result]).await.unwrap(), 1);
    assert_eq!(follow(&world).await.moved, [task.id]);
    assert_eq!(world.task(task.id).await.next_fire_at, run.fire_time + 5_000);
}

/// What pre-generation makes of the task's next fire.
async fn pregenerate(world: &World, id: TaskId) {
    let task = world.store.tasks(&[id]).await.unwrap().remove(0);
    let window = Window {
        now: world.now,
        until: task.next_fire_at + 1_000,
        misfire_after_ms: 1_000_000,
        fires_max: 100,
        doubted_until: i64::MIN,
    };
    let plan = plan(&task, window, || world.id()).unwrap();
    world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&plan), world.now).await.unwrap().unwrap();
    let stands = async || {
        let TaskView { next_fire_at, fires, .. } = world.task(id).await;
        (next_fire_at, fires)
    };
    let before = stands().await;
    // Once more, as when the planner does not know what came of it.
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap().unwrap();
    assert_eq!(stands().await, before);
}

/// A run by hand stands at the very instant of the next fire: before that is known, or only before it is written.
async fn a_fixed_delay_goes_on_beside_what_was_started_by_hand(world: World) {
    let (task, run) = delayed(&world).await;
    let result = success(&run, 1);
    let mut at = result.finished_at + 5_000;
    let by_hand = async |at: i64| {
        let run = NewRun { at, ..NewRun::manual(world.id(), world.now) };
        world.admin.start_run(&world.task(task.id).await, &run).await.unwrap().fire_time
    };
    at = by_hand(at).await;
    world.store.succeed(world.owner, &[&RunResult { finished_at: at - 5_000, ..result }]).await.unwrap();
    assert_eq!(follow(&world).await.moved, [task.id]);
    let free = if by_hand(at + 1).await == at + 1 { at + 2 } else { at + 1 };
    let fires = world.task(task.id).await.fires;
    for _ in 0..3 {
        pregenerate(&world, task.id).await;
        if world.task(task.id).await.next_fire_at == NEVER {
            break;
        }
    }
    let links = async || {
        let runs = runs_of(&world, &task).await.into_iter().filter(|run| run.trigger == Trigger::Schedule);
        runs.map(|run| run.fire_time).collect::<Vec<_>>()
    };
    assert_eq!(links().await, [run.fire_time, free]);
    assert_eq!((world.task(task.id).await.next_fire_at, world.task(task.id).await.fires), (NEVER, fires + 1));
    // An edit names an instant of its own.
    let edited_at = by_hand(world.now + 50_000).await - 5_000;
    world.change(edit(&world.task(task.id).await), edited_at).await.unwrap();
    assert_eq!(world.task(task.id).await.next_fire_at, edited_at + 5_000);
    pregenerate(&world, task.id).await;
    pregenerate(&world, task.id).await;
    assert_eq!(links().await.last(), Some(&(edited_at + 5_001)));
    let open = runs_of(&world, &task).await.into_iter().find(|run| run.fire_time == edited_at + 5_001).unwrap();
    assert!(world.admin.watched(task.id).await.contains(&open.id), "the chain would end with it");
}

/// The clock was set back, and the task edited then: the chain meets an instant at which it has run.
async fn a_fixed_delay_takes_no_instant_twice(world: World) {
    let (task, run) = delayed(&world).await;
    succeed(&world, &run).await;
    follow(&world).await;
    world.change(edit(&world.task(task.id).await), run.fire_time - 5_000).await.unwrap();
    assert_eq!(world.task(task.id).await.next_fire_at, run.fire_time);
    pregenerate(&world, task.id).await;
    assert_eq!(world.task(task.id).await.next_fire_at, run.fire_time + 1);
    pregenerate(&world, task.id).await;
    let fires: Vec<i64> = runs_of(&world, &task).await.iter().map(|run| run.fire_time).collect();
    assert_eq!(fires, [run.fire_time, run.fire_time + 1]);
}

async fn failures_in_a_row_are_counted(world: World) {
    let task = world.started(&TaskSpec { pause_after_failures: 2, ..World::every_second("failing") }).await;
    let mut seen = Vec::new();
    for (round, good) in [false, true, false, false].into_iter().enumerate() {
        let run = dispatched(&world, &task, world.now + 1_000 * (round as i64 + 1)).await;
        if good {
            succeed(&world, &run).await;
        } else {
            world.moved(&run, Status::Failed, Reason::TimedOut).await;
        }
        let paused = follow(&world).await.paused;
        seen.push((world.task(task.id).await.failures_in_row, paused.len()));
    }
    assert_eq!(seen, [(1, 0), (0, 0), (1, 0), (2, 1)]);
}

/// In one transaction with the failure that is one too many, so that no node's death comes between the two.
async fn a_task_that_fails_too_often_pauses(world: World) {
    let task = world.started(&TaskSpec { pause_after_failures: 1, ..World::every_second("failing") }).await;
    let failing = dispatched(&world, &task, world.now + 1_000).await;
    let held = dispatched(&world, &task, world.now + 2_000).await;
    let plan = Plan { outbox: true, ..world.plan(&world.task(task.id).await, [world.now + 3_000]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap().unwrap();
    world.moved(&failing, Status::Failed, Reason::TimedOut).await;
    let PausedTask { id, name, failures, held: revoked } = follow(&world).await.paused.remove(0);
    assert_eq!((id, name.as_str(), failures), (task.id, "failing", 1));
    let marked: Vec<_> = revoked.iter().map(|row| (row.run.id, row.stopping)).collect();
    assert_eq!(marked, [(held.id, Reason::TaskPaused)]);
    let paused = world.task(task.id).await;
    assert_eq!((paused.activity.state(), paused.revision), (TaskState::Paused, 2));
    assert!(paused.activity.pause_note.is_some_and(|note| note.contains("1 failed run")));
    let ahead = runs_of(&world, &task).await.pop().unwrap();
    assert_eq!((ahead.status, ahead.reason), (Status::Cancelled, Reason::TaskPaused));
    // Later failures of runs that went on pause nothing that rests, nor what was started again before they came.
    world.moved(&revoked[0].run, Status::Failed, Reason::TimedOut).await;
    assert_eq!(follow(&world).await.paused, []);
    assert_eq!(world.task(task.id).await.revision, 2);
}

/// A parent whose coming run an edit has cancelled; the plan that takes its instant over.
async fn taken_over(world: &World) -> (TaskView, Plan) {
    let parent = world.started(&World::every_second("parent")).await;
    let spec = TaskSpec { parents: after(&["parent"], ParentOutcome::Success), ..TaskSpec::default() };
    child(world, "next", spec).await;
    let parent = world.task(parent.id).await;
    let fire_time = parent.next_fire_at;
    let plan = Plan { outbox: true, ..world.plan(&parent, [fire_time]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap().unwrap();
    world.change(edit(&parent), world.now).await.unwrap();
    let again = world.task(parent.id).await;
    let plan = Plan { outbox: true, takes_over: true, ..world.plan(&again, [fire_time]) };
    (parent, plan)
}

async fn a_fire_taken_over_keeps_its_consequences(world: World) {
    let (parent, plan) = taken_over(&world).await;
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap().unwrap();
    let run = runs_of(&world, &parent).await.remove(0);
    assert_eq!((run.status, run.revision), (Status::Init, 2));
    assert_eq!(world.admin.watched(parent.id).await, [run.id]);
    assert_eq!(follow(&world).await, OutboxRound::default(), "it has not ended any more");
}

/// A fire before it was restored, or the planner does not know what came of its first try.
async fn a_run_that_has_ended_keeps_its_consequences_when_its_fire_is_planned_again(world: World) {
    let parent = world.started(&World::every_second("parent")).await;
    let parents = after(&["parent"], ParentOutcome::Success);
    child(&world, "child", TaskSpec { parents, ..TaskSpec::default() }).await;
    let run = dispatched(&world, &parent, world.now).await;
    succeed(&world, &run).await;
    let again = world.plan(&world.task(parent.id).await, [run.fire_time]);
    let again = Plan { outbox: true, takes_over: true, ..again };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[again], world.now).await.unwrap().unwrap();
    assert_eq!(world.admin.watched(parent.id).await, [run.id]);
    assert_eq!(follow(&world).await.started, 1);
}

/// The end of a run that an edit cancelled is processed while the new definition takes its instant over.
async fn what_is_taken_over_meanwhile_keeps_its_consequences(kind: Kind) {
    let database = Database::fresh(kind).await;
    let (world, store) = World::on(&database).await;
    let (parent, plan) = taken_over(&world).await;
    let ended = world.store.ended(LogId::NONE, 1_000).await.unwrap().ended;
    assert_eq!((ended.len(), ended[0].reason), (1, Reason::TaskEdited));

    let proxy = Proxy::to(&database.url).await;
    let slow = connect(&proxy.url).await;
    let now = world.now;
    proxy.hold_before("COMMIT");
    let taking_over = tokio::spawn(async move { slow.write_ahead(Writer::Node(NodeId(1)), &[plan], now).await });
    proxy.held().await;
    let mut following = tokio::spawn(async move {
        let new_id = || unreachable!("nothing follows a run that was given up");
        store.process_outbox(&ended, &node(), &new_id, now).await
    });
    // Either it has been processed by then, or it waits for what takes the run over.
    let done = tokio::time::timeout(Duration::from_secs(1), &mut following).await;
    proxy.release();
    assert_eq!(taking_over.await.unwrap().unwrap(), Some([parent.id].into()));
    if done.is_err() {
        following.await.unwrap().unwrap();
    }
    let run = runs_of(&world, &parent).await.remove(0);
    assert_eq!((run.status, run.revision), (Status::Init, 2));
    assert_eq!(world.admin.watched(parent.id).await, [run.id], "the child would never run");
}
