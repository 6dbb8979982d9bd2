//! What a change of a task revokes, what it lets go on, and how its fires are counted.

use crate::fixture::{World, dispatch_of, edit, edit_to, node, pause, start, stop, success};
use carillon::domain::plan::{Fire, Plan, Window, plan};
use carillon::domain::task::{NEVER, Routing, ScheduleKind, TaskSpec};
use carillon::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, TaskId, Transition, Trigger};
use carillon::store::{DueRange, NewRun, TaskChange, TaskView, Writer};

cases!(
    an_edit_keeps_what_no_schedule_names,
    copies_of_what_an_edit_keeps_lose_at_the_version,
    a_stop_a_pause_and_a_delete_keep_nothing,
    an_edit_that_shards_or_unshards_keeps_nothing,
    a_fire_taken_over_has_origin_number_and_priority_of_its_plan,
    a_task_is_paused_with_a_note_and_goes_on,
    a_fixed_rate_counts_from_its_start_or_its_last_change,
    a_fire_revoked_by_an_edit_counts_once,
    a_fire_revoked_by_a_pause_does_not_count,
    a_task_that_was_stopped_begins_to_count_again,
    fires_planned_again_count_once,
    only_fires_of_the_schedule_count,
    what_has_fired_for_the_last_time_has_no_next_fire,
    runs_that_executors_hold_become_links_of_a_fixed_delay,
    of_a_sharded_fire_the_parent_becomes_the_link,
);

/// Runs of each trigger, due in a minute, in the order of [`UNSCHEDULED`].
async fn unscheduled(world: &World, task: &TaskView) -> Vec<Run> {
    for trigger in UNSCHEDULED {
        let run = NewRun { trigger, ..NewRun::manual(world.id(), world.now + 60_000) };
        world.admin.start_run(task, &run).await.unwrap();
    }
    let runs = world.rows(task.id).await.into_iter().map(|row| row.dispatched.run);
    runs.filter(|run| !run.trigger.is_scheduled()).collect()
}

const UNSCHEDULED: [Trigger; 4] = [Trigger::Manual, Trigger::Parent, Trigger::Backfill, Trigger::Manual];

/// Waiting runs of every kind: fresh, claimed, tried before, and with an executor.
async fn in_every_state(world: &World, task: &TaskView) -> Vec<Run> {
    let runs = unscheduled(world, task).await;
    world.store.claim(NodeId(1), vec![runs[1].clone()], world.now).await.unwrap();
    let tried = world.dispatched(1, vec![runs[2].clone()], 7).await.remove(0);
    world.moved(&tried, Status::Retry, Reason::HandlerFailed).await;
    world.dispatched(1, vec![runs[3].clone()], 7).await;
    let mut now = Vec::new();
    for run in &runs {
        now.push(world.row(run).await.dispatched.run);
    }
    now
}

async fn an_edit_keeps_what_no_schedule_names(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let scheduled = world.write(&task, [world.now]).await;
    let runs = in_every_state(&world, &task).await;
    let held = world.change(edit(&task), world.now).await.unwrap();
    assert_eq!(held.iter().map(|dispatched| dispatched.run.id).collect::<Vec<_>>(), [runs[3].id]);
    let cancelled = world.row(&scheduled[0]).await.dispatched.run;
    assert_eq!((cancelled.status, cancelled.reason), (Status::Cancelled, Reason::TaskEdited));
    let states = [Status::Init, Status::Init, Status::Retry];
    for (before, status) in runs.iter().zip(states) {
        let expected = Run { status, revision: 2, version: before.version + 1, ..before.clone() };
        assert_eq!(world.row(before).await.dispatched.run, expected, "was {before:?}");
    }
    let version = runs[3].version + 1;
    assert_eq!(world.row(&runs[3]).await.dispatched.run, Run { version, ..runs[3].clone() }, "an executor has it");
    let claimable = world.store.claimable(None, DueRange::until(NEVER), 10).await.unwrap();
    assert_eq!(claimable.len(), 3);
    assert!(claimable.iter().all(|run| run.revision == 2), "{claimable:?}");
}

async fn copies_of_what_an_edit_keeps_lose_at_the_version(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let runs = unscheduled(&world, &task).await;
    let copies = world.store.claim(NodeId(1), runs, world.now).await.unwrap();
    world.change(edit(&task), world.now).await.unwrap();
    let items: Vec<_> = copies.iter().map(|run| dispatch_of(run, ExecutorId(7), world.now)).collect();
    assert!(world.store.dispatch(NodeId(1), &items).await.unwrap().is_empty());
    let waits = copies.iter().map(|run| Transition::of(run, Status::Retry, Reason::NoExecutor)).collect::<Vec<_>>();
    assert!(world.store.change(&waits).await.unwrap().is_empty());
}

async fn a_stop_a_pause_and_a_delete_keep_nothing(world: World) {
    for reason in [Reason::TaskStopped, Reason::TaskPaused, Reason::TaskDeleted] {
        let task = world.started(&World::every_second(reason.as_str())).await;
        let runs = in_every_state(&world, &task).await;
        let held = match reason {
            Reason::TaskStopped => world.change(stop(&task), world.now).await,
            Reason::TaskPaused => world.change(pause(&task, "why"), world.now).await,
            _ => world.admin.delete_task(&task, world.now).await,
        };
        assert_eq!(held.unwrap().len(), 1);
        let cancelled = (Status::Cancelled, reason);
        let with_executor = (Status::Dispatched, Reason::None);
        assert_eq!(world.states(task.id).await, [cancelled, cancelled, cancelled, with_executor], "{runs:?}");
    }
}

/// Shards and single runs of one instant cannot become each other.
async fn an_edit_that_shards_or_unshards_keeps_nothing(world: World) {
    for (from, to) in [(Routing::Random, Routing::Sharding), (Routing::Sharding, Routing::Random)] {
        let spec = TaskSpec { routing: from, ..World::every_second(&format!("from {from:?}")) };
        let task = world.started(&spec).await;
        unscheduled(&world, &task).await;
        let spec = TaskSpec { routing: to, ..spec };
        world.change(TaskChange { spec, ..edit(&task) }, world.now).await.unwrap();
        assert_eq!(world.states(task.id).await, [(Status::Cancelled, Reason::TaskEdited); 4]);
    }
}

async fn a_fire_taken_over_has_origin_number_and_priority_of_its_plan(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let runs = world.write(&task, [world.now]).await;
    assert_eq!((runs[0].trigger, runs[0].seq, runs[0].priority), (Trigger::Schedule, 0, 5));
    world.change(edit(&task), world.now).await.unwrap();
    let task = world.task(task.id).await;
    let mut plan = Plan { takes_over: true, priority: 9, ..world.plan(&task, [world.now]) };
    let fire = &mut plan.fires[0];
    *fire = Fire {
        trigger: Trigger::Misfire,
        seq: 77,
        due_time: world.now + 5,
        message: "late".to_owned(),
        ..fire.clone()
    };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    let row = world.row(&runs[0]).await;
    let run = &row.dispatched.run;
    assert_eq!((run.trigger, run.seq, run.priority, run.due_time), (Trigger::Misfire, 77, 9, world.now + 5));
    assert_eq!((run.version, run.revision, row.message.as_str()), (3, 2, "late"));

    // They stay what they are to the end, and so does what is said of a run that is late on purpose.
    let dispatched = world.dispatched(1, vec![run.clone()], 7).await.remove(0);
    assert_eq!((dispatched.trigger, dispatched.seq, dispatched.priority), (Trigger::Misfire, 77, 9));
    world.store.succeed(world.owner, &[&crate::fixture::success(&dispatched, 1)]).await.unwrap();
    let row = world.row(&dispatched).await;
    assert_eq!((row.dispatched.run.trigger, row.dispatched.run.reason), (Trigger::Misfire, Reason::None));
    assert_eq!(row.message, "late");
}

async fn a_task_is_paused_with_a_note_and_goes_on(world: World) {
    let task = world.started(&World::every_second("task")).await;
    world.write(&task, [world.now]).await;
    world.change(pause(&task, "the till is closed"), world.now + 7).await.unwrap();
    let paused = world.task(task.id).await;
    assert_eq!(paused.activity.pause_note.as_deref(), Some("the till is closed"));
    assert_eq!((paused.activity.started, paused.paused_at, paused.next_fire_at), (false, world.now + 7, NEVER));
    assert_eq!(world.states(task.id).await, [(Status::Cancelled, Reason::TaskPaused)]);

    world.change(pause(&paused, "still"), world.now + 9).await.unwrap();
    let paused = world.task(task.id).await;
    assert_eq!((paused.activity.pause_note.as_deref(), paused.paused_at), (Some("still"), world.now + 7));
    world.change(start(&paused), world.now + 11).await.unwrap();
    let going = world.task(task.id).await;
    assert_eq!((going.activity.pause_note.as_deref(), going.paused_at, going.revision), (None, 0, 4));
    assert!(going.next_fire_at < NEVER);
}

async fn a_fixed_rate_counts_from_its_start_or_its_last_change(world: World) {
    let (schedule, interval_ms) = (ScheduleKind::FixedRate, 60_000);
    let spec = TaskSpec { schedule, interval_ms, ..World::cron("task", "") };
    let mut task = world.started(&spec).await;
    let mut anchors = vec![task.anchor_at];
    let longer = TaskSpec { interval_ms: 90_000, ..spec.clone() };
    let described = TaskSpec { description: "the same instants".to_owned(), ..longer.clone() };
    for (at, spec) in [(5, longer), (10, described)] {
        world.change(TaskChange { spec, ..edit(&task) }, world.now + at).await.unwrap();
        task = world.task(task.id).await;
        anchors.push(task.anchor_at);
    }
    for (at, change) in [(15, stop as fn(&TaskView) -> TaskChange), (20, start)] {
        world.change(change(&task), world.now + at).await.unwrap();
        task = world.task(task.id).await;
        anchors.push(task.anchor_at);
    }
    let since: Vec<i64> = anchors.iter().map(|anchor| anchor - world.now).collect();
    assert_eq!(since, [0, 5, 5, 5, 20]);
}

/// Fires ten times, once a second.
fn ten_times(name: &str) -> TaskSpec {
    TaskSpec { max_fires: 10, ..World::every_second(name) }
}

/// Writes all that falls into the next minute, as pre-generation does.
async fn pregenerate(world: &World, id: TaskId) {
    let window = Window {
        now: world.now,
        until: world.now + 60_000,
        misfire_after_ms: 30_000,
        fires_max: 1_000,
        doubted_until: i64::MIN,
    };
    let task = world.store.tasks(&[id]).await.unwrap().remove(0);
    let Some(plan) = plan(&task, window, || world.id()) else { return };
    assert_eq!(world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap(), Some([id].into()));
}

/// Fires that happened or will.
async fn kept(world: &World, task: TaskId) -> Vec<i64> {
    let runs = world.rows(task).await.into_iter().map(|row| row.dispatched.run);
    let kept = runs.filter(|run| run.trigger.is_scheduled() && !run.reason.is_given_up());
    kept.map(|run| run.fire_time).collect()
}

/// Whatever its schedule. More fires later are fires again.
async fn what_has_fired_for_the_last_time_has_no_next_fire(world: World) {
    let every_second = TaskSpec { max_fires: 1, ..World::every_second("cron") };
    let spec = TaskSpec { name: "delay".to_owned(), cron: String::new(), ..every_second.clone() };
    let delayed = TaskSpec { schedule: ScheduleKind::FixedDelay, interval_ms: 1_000, ..spec };
    for spec in [every_second, delayed] {
        let task = world.started(&spec).await;
        pregenerate(&world, task.id).await;
        let runs: Vec<Run> = world.rows(task.id).await.into_iter().map(|row| row.dispatched.run).collect();
        assert_eq!(runs.len(), 1);
        let run = world.dispatched(1, runs, 100).await.remove(0);
        world.store.succeed(world.owner, &[&success(&run, 1)]).await.unwrap();
        let now = run.fire_time + 10;
        let changes: [fn(&TaskView) -> TaskChange; 3] = [edit, |task| pause(task, "for a while"), start];
        for change in changes {
            world.change(change(&world.task(task.id).await), now).await.unwrap();
            let stands = world.task(task.id).await;
            assert_eq!((stands.next_fire_at, stands.fires), (NEVER, 1), "{}", spec.name);
        }
        let more = edit_to(&world.task(task.id).await, |spec| spec.max_fires = 2);
        world.change(more, now).await.unwrap();
        let next = world.task(task.id).await.next_fire_at;
        assert!((now + 1..=now + 1_000).contains(&next), "{}: {next}", spec.name);
        pregenerate(&world, task.id).await;
        assert_eq!((kept(&world, task.id).await, world.task(task.id).await.fires), (vec![run.fire_time, next], 2));
    }
}

/// Ten fires are written, the first four with executors: of these the first has ended, the second
/// has failed and waits, the third goes on.
async fn under_way(world: &World, name: &str) -> (TaskView, Vec<Run>) {
    let task = world.started(&ten_times(name)).await;
    pregenerate(world, task.id).await;
    let runs: Vec<Run> = world.rows(task.id).await.into_iter().map(|row| row.dispatched.run).collect();
    assert_eq!(runs.len(), 10);
    let before = world.task(task.id).await;
    assert_eq!((before.fires, before.next_fire_at), (10, NEVER));
    world.store.claim(NodeId(1), vec![runs[5].clone()], world.now).await.unwrap();
    let dispatched = world.dispatched(1, runs[..4].to_vec(), 7).await;
    world.store.succeed(world.owner, &[&crate::fixture::success(&dispatched[0], 1)]).await.unwrap();
    let failed = Transition { failures: 1, ..Transition::of(&dispatched[1], Status::Retry, Reason::HandlerFailed) };
    assert_eq!(world.store.change(&[failed]).await.unwrap().len(), 1);
    (before, runs)
}

/// Its executor has dropped it.
async fn settle(world: &World, run: &Run) {
    let held = world.row(run).await.dispatched.run;
    let moved = world.store.settle_revoked(std::slice::from_ref(&held), world.now).await.unwrap();
    assert_eq!(moved, [run.id].into());
}

async fn a_fire_revoked_by_an_edit_counts_once(world: World) {
    for (case, passes_first) in [("dropped first", false), ("planned first", true)] {
        let (task, runs) = under_way(&world, case).await;
        let last = runs[9].fire_time;
        // As if the first three had been due when it was edited.
        let now = runs[2].fire_time;
        assert_eq!(world.change(edit(&task), now).await.unwrap().len(), 2);
        // The first three have been: one ended, one was tried, one is with an executor.
        assert_eq!(world.task(task.id).await.fires, 3);
        if passes_first {
            pregenerate(&world, task.id).await;
            assert_eq!(world.task(task.id).await.fires, 10);
        }
        settle(&world, &runs[3]).await;
        assert_eq!(world.row(&runs[3]).await.dispatched.run.revision, 2, "{case}: it goes on");
        pregenerate(&world, task.id).await;
        let after = world.task(task.id).await;
        assert_eq!((after.fires, after.next_fire_at), (10, NEVER), "{case}");
        let kept = kept(&world, task.id).await;
        assert_eq!((kept.len(), kept.last()), (9, Some(&last)), "{case}: all but the one that was tried");
    }
}

async fn a_fire_revoked_by_a_pause_does_not_count(world: World) {
    let (task, runs) = under_way(&world, "task").await;
    let now = runs[2].fire_time;
    world.change(pause(&task, "why"), now).await.unwrap();
    let paused = world.task(task.id).await;
    assert_eq!(paused.fires, 4, "what executors were given counts until they have given it up");
    settle(&world, &runs[3]).await;
    let paused = world.task(task.id).await;
    assert_eq!(paused.fires, 3);
    world.change(start(&paused), now).await.unwrap();
    assert_eq!(world.task(task.id).await.fires, 3);
    pregenerate(&world, task.id).await;
    let after = world.task(task.id).await;
    assert_eq!((after.fires, after.next_fire_at), (10, NEVER));
    assert_eq!(kept(&world, task.id).await.last(), Some(&runs[9].fire_time));
}

async fn a_task_that_was_stopped_begins_to_count_again(world: World) {
    let (task, runs) = under_way(&world, "task").await;
    let now = runs[2].fire_time;
    world.change(stop(&task), now).await.unwrap();
    let stopped = world.task(task.id).await;
    assert_eq!(stopped.fires, 4);
    world.change(start(&stopped), now).await.unwrap();
    pregenerate(&world, task.id).await;
    let after = world.task(task.id).await;
    assert_eq!((after.fires, after.next_fire_at), (10, NEVER));
    assert_eq!(kept(&world, task.id).await.last(), Some(&(runs[2].fire_time + 10_000)));
}

async fn fires_planned_again_count_once(world: World) {
    let task = world.started(&ten_times("task")).await;
    pregenerate(&world, task.id).await;
    for at in [4, 0, 9] {
        let run = world.rows(task.id).await.remove(at).dispatched.run;
        let from = run.fire_time;
        world.moved(&run, Status::Cancelled, Reason::CancelledManually).await;
        world.admin.restore_fire(&world.task(task.id).await, from, true, world.now).await.unwrap();
        let moved = world.task(task.id).await;
        assert_eq!((moved.fires, moved.next_fire_at), (at as i64, from));
        pregenerate(&world, task.id).await;
        let after = world.task(task.id).await;
        assert_eq!((after.fires, after.next_fire_at), (10, NEVER));
        assert_eq!(world.rows(task.id).await.len(), 10);
    }
}

/// Runs that no schedule names, shards, and rows that only say why there was no run.
async fn only_fires_of_the_schedule_count(world: World) {
    let parent = world.queued_parent().await;
    let shards = world.shards_of(&parent, 3);
    assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap());
    let task = world.task(parent.task_id).await;
    assert_eq!(task.fires, 1);
    for shard in &shards {
        world.moved(shard, Status::Retry, Reason::HandlerFailed).await;
    }
    unscheduled(&world, &task).await;
    let mut missed = world.plan(&task, [world.now - 1_000]);
    (missed.fires[0].status, missed.fires[0].reason) = (Status::Expired, Reason::MisfireSkipped);
    world.store.write_ahead(Writer::Node(NodeId(1)), &[missed], world.now).await.unwrap();
    assert_eq!(world.task(task.id).await.fires, 1);
    world.change(stop(&task), world.now).await.unwrap();
    let after = world.task(task.id).await;
    assert_eq!(after.fires, 1, "the fire has been; three shards and four other runs were cancelled");
}

/// An edit to a delay of five seconds.
fn to_delay(task: &TaskView) -> TaskChange {
    edit_to(task, |spec| {
        (spec.schedule, spec.interval_ms) = (ScheduleKind::FixedDelay, 5_000);
        spec.cron.clear();
    })
}

/// A task whose first two fires are with an executor, beside a run that no schedule names; one waits.
async fn held(world: &World) -> (TaskView, Vec<Run>) {
    let task = world.started(&World::every_second("task")).await;
    world.admin.start_run(&task, &NewRun::manual(world.id(), world.now + 100)).await.unwrap();
    world.write(&task, (0..3).map(|at| world.now + at * 1_000)).await;
    // By their instants: a fire, the other run, two fires.
    let runs: Vec<Run> = world.rows(task.id).await.into_iter().map(|row| row.dispatched.run).collect();
    let held = world.dispatched(1, runs[..3].to_vec(), 7).await;
    (task, held)
}

async fn runs_that_executors_hold_become_links_of_a_fixed_delay(world: World) {
    let (task, runs) = held(&world).await;
    assert!(world.admin.watched(task.id).await.is_empty());
    let links = [&runs[0], &runs[2]];
    for revision in [2, 3] {
        let task = world.task(task.id).await;
        assert_eq!(world.change(to_delay(&task), world.now).await.unwrap().len(), 3);
        assert_eq!(world.task(task.id).await.next_fire_at, NEVER, "the next run comes after their end");
        for run in links {
            let version = run.version + revision - 1;
            assert_eq!(world.row(run).await.dispatched.run, Run { revision, version, ..run.clone() });
        }
        assert_eq!(world.admin.watched(task.id).await, links.map(|run| run.id), "their ends have consequences");
        assert_eq!(world.row(&runs[1]).await.dispatched.run.revision, 1, "no link of the chain");
    }
    let mut moved = Vec::new();
    for run in links {
        world.store.succeed(world.owner, &[&success(run, 1)]).await.unwrap();
        let ended = world.store.ended(LogId::NONE, 1_000).await.unwrap().ended;
        let round = world.store.process_outbox(&ended, &node(), &|| world.id(), world.now).await.unwrap().unwrap();
        moved.push((round.moved, world.task(task.id).await.next_fire_at));
    }
    let next = success(links[0], 1).finished_at + 5_000;
    assert_eq!(moved, [(vec![task.id], next), (vec![], next)], "the chain goes on in one way only");
}

async fn of_a_sharded_fire_the_parent_becomes_the_link(world: World) {
    let parent = world.queued_parent().await;
    let shards = world.shards_of(&parent, 2);
    assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap());
    let task = world.task(parent.task_id).await;
    assert_eq!(world.change(to_delay(&task), world.now).await.unwrap().len(), 3);
    let rows = world.rows(task.id).await;
    assert!(rows.iter().all(|row| row.dispatched.run.revision == 2 && row.dispatched.run.status == Status::Dispatched));
    assert_eq!(world.admin.watched(task.id).await, [parent.id]);

    // What is stopped has no chain.
    world.change(stop(&world.task(task.id).await), world.now).await.unwrap();
    assert!(world.rows(task.id).await.iter().all(|row| row.dispatched.run.revision == 2));
}
