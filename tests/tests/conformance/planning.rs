//! Tasks that fall due, and their runs written ahead.

use crate::fixture::{World, edit, ids, stop};
use carillon::domain::plan::Plan;
use carillon::domain::task::{NEVER, TaskSpec};
use carillon::domain::{LogId, NodeId, Reason, Status, TaskId, TenantId, Trigger};
use carillon::store::{NewTask, SqlStore, StoreErrorKind, TaskChange, Writer};
use carillon_tests::every_field::every_field;
use futures_util::future::join_all;
use std::sync::Arc;

cases!(
    due_tasks_come_earliest_first_within_instant_and_limit,
    a_task_is_read_as_it_was_entered,
    the_same_plan_twice_writes_each_fire_once,
    two_writers_of_the_same_fires_write_each_once,
    a_plan_of_another_revision_or_watermark_writes_nothing,
    what_is_written_as_missed_ended_then,
    a_change_of_an_old_revision_is_a_conflict,
);

databases!(the_watermark_is_the_earliest_fire_not_yet_written, an_id_that_another_fire_has_loses_no_fire);

async fn due_tasks_come_earliest_first_within_instant_and_limit(world: World) {
    let mut expected = Vec::new();
    for (name, cron) in [("c", "0 0 12 1 1 ? 2099"), ("b", "0 0 12 1 1 ? 2098"), ("a", "* * * * * ?")] {
        expected.insert(0, world.started(&World::cron(name, cron)).await);
    }
    world.stopped(&World::every_second("stopped")).await;

    let names = |tasks: Vec<carillon::domain::Task>| tasks.into_iter().map(|task| task.spec.name).collect::<Vec<_>>();
    let due = |until, limit| world.store.tasks_due(until, &[], limit);
    assert_eq!(names(due(NEVER - 1, 10).await.unwrap()), ["a", "b", "c"]);
    assert_eq!(names(due(NEVER - 1, 2).await.unwrap()), ["a", "b"]);
    let second = expected[1].next_fire_at;
    assert_eq!(names(due(second, 10).await.unwrap()), ["a", "b"], "the instant itself counts");
    assert_eq!(names(due(second - 1, 10).await.unwrap()), ["a"]);
    let other = world.admin.make_app([world.id(), world.id()], "two", "app").await;
    let spec = World::every_second("d");
    world.admin.apply(&[NewTask { owner: other, ..world.new_task(&spec, true) }], &[], world.now).await.unwrap();
    let besides = async |tenants: &[TenantId]| names(world.store.tasks_due(NEVER - 1, tenants, 10).await.unwrap());
    assert_eq!(besides(&[world.owner.tenant_id]).await, ["d"]);
    assert_eq!(besides(&[other.tenant_id]).await, ["a", "b", "c"]);
    assert_eq!(besides(&[other.tenant_id, world.owner.tenant_id]).await, [] as [&str; 0]);
}

async fn a_task_is_read_as_it_was_entered(world: World) {
    let text = |text: &str| text.to_owned();
    let plain = World::every_second("Ünicode \u{1f514}");
    let every = TaskSpec {
        name: text("every field"),
        description: text("line\nline \u{1f514}"),
        params: text("{\"a\":\"b'c\\\"d\"}"),
        valid_until: 7_258_118_399_999,
        max_fires: 1 << 40,
        // Only one that exists; `rules` has a case for it.
        calendar: String::new(),
        tags_any: vec![text("a'b"), text("\u{1f514}")],
        parents: Vec::new(),
        ..every_field()
    };
    for spec in [plain, every] {
        let entered = world.stopped(&spec).await;
        assert_eq!(entered.spec, spec);
        let read = world.store.tasks(&[entered.id, TaskId(entered.id.0 + 1)]).await.unwrap();
        assert_eq!(read.len(), 1, "a stopped task is read too, an absent one is left out");
        let task = &read[0];
        assert_eq!((task.revision, task.next_fire_at, task.written_until), (1, NEVER, 0));
        assert_eq!((task.fires, task.turn, task.has_children), (0, 0, false));
        assert_eq!(task.spec, spec);

        // An edit leaves nothing of it behind.
        let name = spec.name.clone();
        let bare = TaskSpec { name, handler: text("bare"), ..TaskSpec::default() };
        world.change(TaskChange { spec: bare.clone(), ..edit(&entered) }, world.now).await.unwrap();
        assert_eq!(world.task(entered.id).await.spec, bare);
    }
}

async fn the_same_plan_twice_writes_each_fire_once(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let fires = [world.now, world.now + 1_000];
    let plan = Plan { to: task.next_fire_at + 5_000, ..world.plan(&task, fires) };
    for _ in 0..2 {
        let moved =
            world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&plan), world.now).await.unwrap();
        assert_eq!(moved, Some([task.id].into()), "a step that is done counts as done");
    }
    let moved_on = world.task(task.id).await;
    assert_eq!(moved_on.next_fire_at, plan.to);
    let overlapping = world.plan(&moved_on, [world.now + 1_000, world.now + 2_000]);
    world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&overlapping), world.now).await.unwrap();
    let rows = world.rows(task.id).await;
    let found: Vec<(i64, LogId)> =
        rows.iter().map(|row| (row.dispatched.run.fire_time, row.dispatched.run.id)).collect();
    let expected =
        [(fires[0], plan.fires[0].id), (fires[1], plan.fires[1].id), (world.now + 2_000, overlapping.fires[1].id)];
    assert_eq!(found, expected, "who came first stays");
    let run = &rows[0].dispatched.run;
    assert_eq!((run.status, run.version, run.attempt, run.shard_total), (Status::Init, 1, 0, 1));
    assert_eq!((run.tenant_id, run.app_id), (world.owner.tenant_id, world.owner.app_id));
}

async fn two_writers_of_the_same_fires_write_each_once(world: World) {
    let mut tasks = Vec::new();
    for number in 0..20 {
        tasks.push(world.started(&World::every_second(&format!("task-{number}"))).await);
    }
    let writes = (0..4).map(|writer| {
        let store = Arc::clone(if writer % 2 == 0 { &world.store } else { &world.rival });
        let advance =
            |task| Plan { to: world.now + 20_000, ..world.plan(task, (0..10).map(|i| world.now + i * 1_000)) };
        let plans: Vec<Plan> = tasks.iter().map(advance).collect();
        let now = world.now;
        tokio::spawn(async move { store.write_ahead(Writer::Node(NodeId(1)), &plans, now).await.unwrap() })
    });
    for written in join_all(writes).await {
        assert!(written.unwrap().is_some());
    }
    for task in &tasks {
        assert_eq!(world.rows(task.id).await.len(), 10);
    }
}

/// New rows, and those that an edit gave up and the next revision takes over.
async fn what_is_written_as_missed_ended_then(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let given_up = world.write(&task, [world.now, world.now + 1_000]).await;
    world.change(edit(&task), world.now + 1).await.unwrap();
    let task = world.task(task.id).await;
    let mut plan = Plan { takes_over: true, ..world.plan(&task, (0..4).map(|i| world.now + i * 1_000)) };
    for fire in plan.fires.iter_mut().step_by(2) {
        (fire.status, fire.reason, fire.trigger) = (Status::Expired, Reason::MisfireSkipped, Trigger::Misfire);
    }
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now + 2).await.unwrap();
    let mut rows = world.rows(task.id).await;
    rows.sort_by_key(|row| row.dispatched.run.fire_time);
    assert!(ids(&given_up).iter().all(|id| rows.iter().any(|row| row.dispatched.run.id == *id)), "taken over");
    let ends: Vec<_> = rows.iter().map(|row| (row.dispatched.run.status, row.dispatched.finished_at)).collect();
    let missed = (Status::Expired, world.now + 2);
    assert_eq!(ends, [missed, (Status::Init, 0), missed, (Status::Init, 0)]);
}

async fn a_plan_of_another_revision_or_watermark_writes_nothing(world: World) {
    let task = world.started(&World::every_second("task")).await;
    let good = world.plan(&task, [world.now]);
    let wrong = [
        Plan { revision: task.revision + 1, ..good.clone() },
        Plan { revision: task.revision - 1, ..good.clone() },
        Plan { from: good.from + 1_000, to: good.to + 2_000, ..good.clone() },
        Plan { task_id: TaskId(task.id.0 + 1), ..good.clone() },
    ];
    for plan in wrong {
        let moved = world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
        assert_eq!(moved, Some([].into()));
    }
    assert!(world.rows(task.id).await.is_empty());
    assert_eq!(world.task(task.id).await.next_fire_at, task.next_fire_at);
}

async fn a_change_of_an_old_revision_is_a_conflict(world: World) {
    let before = world.started(&World::every_second("task")).await;
    world.change(edit(&before), world.now).await.unwrap();
    let late = world.change(stop(&before), world.now).await;
    assert_eq!(late.unwrap_err().kind(), StoreErrorKind::Conflict);
    let gone = world.admin.delete_task(&before, world.now).await;
    assert_eq!(gone.unwrap_err().kind(), StoreErrorKind::Conflict);
    let task = world.task(before.id).await;
    assert_eq!((task.revision, task.activity.started), (2, true));
}

/// Ids are unique unless clocks do what nobody foresaw. Then the plan fails as a whole, and comes again with others.
async fn an_id_that_another_fire_has_loses_no_fire(world: World, _: SqlStore) {
    let task = world.started(&World::every_second("task")).await;
    let other = world.started(&World::every_second("other")).await;
    let taken = world.write(&other, [world.now]).await.remove(0);
    let mut plan = Plan { to: task.next_fire_at + 5_000, ..world.plan(&task, [world.now, world.now + 1_000]) };
    let own = std::mem::replace(&mut plan.fires[1].id, taken.id);
    let write = async |plan: &Plan| {
        world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(plan), world.now).await
    };
    assert_eq!(write(&plan).await.unwrap_err().kind(), StoreErrorKind::Duplicate);
    assert_eq!(world.task(task.id).await.next_fire_at, task.next_fire_at, "the watermark has moved");
    assert!(world.rows(task.id).await.is_empty());
    plan.fires[1].id = own;
    assert_eq!(write(&plan).await.unwrap(), Some([task.id].into()));
    assert_eq!(world.rows(task.id).await.len(), 2);
    assert_eq!(world.rows(other.id).await.len(), 1);
}

async fn the_watermark_is_the_earliest_fire_not_yet_written(world: World, store: SqlStore) {
    let watermark = async || store.watermark().await.unwrap();
    assert_eq!(watermark().await, NEVER, "there is no task");
    world.stopped(&World::every_second("stopped")).await;
    assert_eq!(watermark().await, NEVER, "none fires");
    let late = world.started(&World::cron("late", "0 0 12 1 1 ? 2099")).await;
    assert_eq!(watermark().await, late.next_fire_at);
    // Of all tenants.
    let owner = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let early = NewTask { owner, ..world.new_task(&World::every_second("early"), true) };
    world.admin.apply(std::slice::from_ref(&early), &[], world.now).await.unwrap();
    let early = world.task(early.id).await;
    assert_eq!(watermark().await, early.next_fire_at);
    let plan = Plan { to: early.next_fire_at + 5_000, ..world.plan(&early, []) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    assert_eq!(watermark().await, early.next_fire_at + 5_000);
    world.change(stop(&world.task(early.id).await), world.now).await.unwrap();
    assert_eq!(watermark().await, late.next_fire_at);
}
