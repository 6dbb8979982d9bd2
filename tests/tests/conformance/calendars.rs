//! Changes of calendars, and the tasks that follow them, whoever has come how far.

use crate::fixture::{World, connect, edit, edit_to, over, stop};
use async_trait::async_trait;
use carillon::cluster::ClusterClock;
use carillon::dispatch::{Presence, SendError, Transport};
use carillon::domain::calendar::CalendarSpec;
use carillon::domain::task::{NEVER, TaskSpec};
use carillon::domain::{CalendarId, Executor, TaskId};
use carillon::node::{NodeCore, engine_settings};
use carillon::settings::Settings;
use carillon::store::{CalendarChange, ExecutorEnd, NodeInfo, SqlStore, StoreErrorKind, TaskView};
use carillon_protocol::{Cancel, CancelAck, Dispatch, DispatchAck, OutputPage, Probe, ProbeAck, ReadOutput};
use carillon_tests::proxy::Proxy;
use carillon_tests::wait::when;
use carillon_tests::{Kind, await_until};
use std::sync::Arc;
use std::time::Duration;

cases!(tasks_are_behind_until_each_follows);

databases!(
    what_a_node_leaves_half_way_another_finishes,
    a_node_that_changes_a_calendar_is_left_alone_for_a_while,
    more_tasks_than_one_transaction_takes_follow,
);

servers!(
    a_task_that_is_edited_meanwhile_follows_with_the_others,
    a_task_that_begins_to_name_a_calendar_while_that_changes_follows,
    a_calendar_that_a_task_begins_to_name_is_not_deleted,
);

const DAY_MS: i64 = 86_400_000;

/// Longer than others leave the one alone who has changed a calendar, ms.
const LONG_MS: i64 = 60_000;

/// A calendar without the days of these instants.
fn without(days: &[i64]) -> CalendarSpec {
    let day = |at: &i64| chrono::DateTime::from_timestamp_millis(*at).unwrap().format("%Y-%m-%d").to_string();
    CalendarSpec { excluded_days: days.iter().map(day).collect(), ..CalendarSpec::default() }
}

/// A definition that fires every noon of a day that the calendar `work` allows.
fn noons(name: &str) -> TaskSpec {
    TaskSpec { calendar: "work".to_owned(), ..World::cron(name, "0 0 12 * * ?") }
}

async fn put(world: &World, id: CalendarId, spec: &CalendarSpec, current: i64, now: i64) -> CalendarChange {
    // Each version has an id of its own.
    let id = if current == 0 { id } else { world.id() };
    world.admin.put_calendar((id, world.owner.tenant_id), "work", spec, current, now).await.unwrap()
}

async fn tasks_are_behind_until_each_follows(world: World) {
    let (id, now) = (world.id(), world.now);
    let refused = world.admin.apply(&[world.new_task(&noons("early"), true)], &[], now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Invalid, "there is no such calendar");
    let first = put(&world, id, &CalendarSpec::default(), 0, now).await;
    assert_eq!(first, CalendarChange { id, version: 1, since: now });
    assert_eq!(world.admin.calendar_changes(10).await, [first], "a new one is no exception");
    world.admin.end_calendar_change(&first).await;
    assert_eq!(world.admin.calendar_changes(10).await, []);

    let (one, two) = (world.started(&noons("one")).await, world.started(&noons("two")).await);
    let (other, resting) = (world.started(&World::every_second("other")).await, world.stopped(&noons("resting")).await);
    let behind = async |after: TaskId, limit: u64| world.admin.tasks_behind(id, after, limit).await;
    assert_eq!(behind(TaskId::NONE, 10).await, []);
    let fire = one.next_fire_at;
    assert!(fire <= now + DAY_MS);

    // Both have their next fire from the version before.
    let second = put(&world, id, &without(&[fire]), 1, now + 5).await;
    let tenant = world.owner.tenant_id;
    let stale = world.admin.put_calendar((id, tenant), "work", &without(&[]), 1, now).await.unwrap_err();
    assert_eq!((second.version, second.since, stale.kind()), (2, now + 5, StoreErrorKind::Conflict));
    assert_eq!(behind(TaskId::NONE, 10).await, [one.id, two.id]);
    assert_eq!(behind(TaskId::NONE, 1).await, [one.id]);
    assert_eq!(behind(one.id, 10).await, [two.id]);
    world.change(edit(&one), now).await.unwrap();
    assert_eq!(world.task(one.id).await.next_fire_at, fire + DAY_MS);
    assert_eq!(behind(TaskId::NONE, 10).await, [two.id]);
    world.admin.end_calendar_change(&second).await;
    assert_eq!(world.admin.calendar_changes(10).await, [second], "one of them is behind");

    // What begins to fire now, or by it, follows the version that is there.
    world.change(crate::fixture::start(&resting), now).await.unwrap();
    world.change(edit_to(&other, |spec| "work".clone_into(&mut spec.calendar)), now).await.unwrap();
    assert_eq!(behind(TaskId::NONE, 10).await, [two.id]);
    world.change(stop(&two), now).await.unwrap();
    assert_eq!(behind(TaskId::NONE, 10).await, [], "it fires nothing");
    let third = put(&world, id, &without(&[]), 2, now + 9).await;
    world.admin.end_calendar_change(&second).await;
    assert_eq!(world.admin.calendar_changes(10).await, [third], "that was not its end");
    let mut wanted = vec![one.id, other.id, resting.id];
    wanted.sort_unstable();
    assert_eq!(behind(TaskId::NONE, 10).await, wanted);
    for task in wanted {
        world.change(edit(&world.task(task).await), now).await.unwrap();
    }
    world.change(crate::fixture::start(&world.task(two.id).await), now).await.unwrap();
    for task in [one.id, two.id] {
        assert_eq!(world.task(task).await.next_fire_at, fire);
    }
    world.admin.end_calendar_change(&third).await;
    assert_eq!(world.admin.calendar_changes(10).await, []);
    assert_eq!(world.admin.tasks_behind(world.id(), TaskId::NONE, 10).await, [], "there is no such calendar");
}

/// Nobody is there to ask.
struct NoExecutors;

#[async_trait]
impl Transport for NoExecutors {
    async fn dispatch(&self, _: &Executor, _: &Dispatch, _: &[i64]) -> Result<DispatchAck, SendError> {
        Err(SendError::NotDelivered(String::new()))
    }

    async fn cancel(&self, _: &Executor, _: &Cancel, _: bool) -> Result<CancelAck, SendError> {
        Err(SendError::NotDelivered(String::new()))
    }

    async fn ask(&self, _: &Executor, _: &Probe) -> Result<ProbeAck, SendError> {
        Err(SendError::NotDelivered(String::new()))
    }

    async fn read_output(&self, _: &Executor, _: &ReadOutput) -> Result<OutputPage, SendError> {
        Err(SendError::NotDelivered(String::new()))
    }

    async fn probe(&self, _: &ExecutorEnd) -> Presence {
        Presence::Unknown
    }
}

/// A node over that store, none of whose workers is turned.
async fn node(store: SqlStore) -> NodeCore<SqlStore> {
    let clock = Arc::new(ClusterClock::synchronised(&store).await.unwrap());
    let settings = engine_settings(&Settings::load(None).unwrap());
    let info = NodeInfo { name: "another".to_owned(), ..NodeInfo::default() };
    NodeCore::join(store, clock, Arc::new(NoExecutors), &info, settings).await.unwrap()
}

/// The calendar's change is committed, and the node dies. A new holiday, and a day that is no longer one, count all the same.
async fn what_a_node_leaves_half_way_another_finishes(world: World, store: SqlStore) {
    let (id, now) = (world.id(), world.now);
    put(&world, id, &CalendarSpec::default(), 0, now - LONG_MS).await;
    let task = world.started(&noons("daily")).await;
    let ends_before = TaskSpec { valid_until: task.next_fire_at + 1, ..noons("once more") };
    let last = world.started(&ends_before).await;
    let other = node(store).await.parts.definitions.clone();
    let state = async |of: &TaskView| {
        let task = world.task(of.id).await;
        (task.next_fire_at, task.revision)
    };
    for (days, fires, revision) in [
        // A holiday; nothing is left of what ends before the next day.
        (vec![task.next_fire_at], (task.next_fire_at + DAY_MS, NEVER), 2),
        // Not that one, but the day after. What had come to its end begins again.
        (vec![task.next_fire_at + DAY_MS], (task.next_fire_at, task.next_fire_at), 3),
    ] {
        put(&world, id, &without(&days), revision - 1, now - LONG_MS).await;
        for _ in 0..2 {
            other.follow_calendars().await.unwrap();
            assert_eq!(state(&task).await, (fires.0, revision), "and no second time");
            assert_eq!(state(&last).await, (fires.1, revision));
        }
        assert_eq!(world.admin.calendar_changes(10).await, []);
    }
}

async fn a_node_that_changes_a_calendar_is_left_alone_for_a_while(world: World, store: SqlStore) {
    let id = world.id();
    put(&world, id, &CalendarSpec::default(), 0, world.now - LONG_MS).await;
    let task = world.started(&noons("daily")).await;
    let other = node(store).await.parts.definitions.clone();
    // By a clock that was set back since, too.
    for (since, version) in [(world.now, 1), (world.now + LONG_MS, 2)] {
        let change = put(&world, id, &without(&[task.next_fire_at]), version, since).await;
        other.follow_calendars().await.unwrap();
        let is_left_alone = world.task(task.id).await.revision == version;
        assert_eq!(is_left_alone, since == world.now);
        assert_eq!(other.follow_calendar(&change).await.unwrap().tasks, usize::from(is_left_alone));
        assert_eq!(other.follow_calendar(&change).await.unwrap().tasks, 0, "all have followed");
        assert_eq!(world.admin.calendar_changes(10).await, []);
    }
}

async fn more_tasks_than_one_transaction_takes_follow(world: World, store: SqlStore) {
    let id = world.id();
    put(&world, id, &CalendarSpec::default(), 0, world.now).await;
    let tasks: Vec<_> = (0..230).map(|at| world.new_task(&noons(&format!("task {at}")), true)).collect();
    world.admin.apply(&tasks, &[], world.now).await.unwrap();
    let change = put(&world, id, &without(&[]), 1, world.now).await;
    let core = node(store).await;
    assert_eq!(core.parts.definitions.follow_calendar(&change).await.unwrap().tasks, 230);
    assert_eq!(world.admin.calendar_changes(10).await, []);
}

/// Tasks were read, and one of them is edited before they are changed: all follow, that one under its new definition.
async fn a_task_that_is_edited_meanwhile_follows_with_the_others(kind: Kind) {
    let world = World::sql(kind).await;
    let (id, now) = (world.id(), world.now);
    put(&world, id, &CalendarSpec::default(), 0, now).await;
    let (one, two) = (world.started(&noons("one")).await, world.started(&noons("two")).await);
    let (stopped, fire) = (world.started(&noons("stopped")).await, one.next_fire_at);
    let proxy = Proxy::to(&world.database.as_ref().unwrap().url).await;
    let core = node(over(&proxy, Duration::from_secs(8)).await).await;
    let change = put(&world, id, &without(&[fire]), 1, now).await;
    proxy.hold_before("SET task_turn");
    let definitions = core.parts.definitions.clone();
    let following = tokio::spawn(async move { definitions.follow_calendar(&change).await });
    proxy.held().await;
    let hourly = edit_to(&two, |spec| "0 30 12 * * ?".clone_into(&mut spec.cron));
    world.change(hourly, now).await.unwrap();
    world.change(stop(&stopped), now).await.unwrap();
    proxy.release();
    let followed = following.await.unwrap().unwrap();
    assert_eq!(followed.tasks, 1, "one of the others has followed by its edit");
    let (one, two) = (world.task(one.id).await, world.task(two.id).await);
    assert_eq!((one.next_fire_at, two.next_fire_at % DAY_MS), (fire + DAY_MS, DAY_MS / 48 * 25));
    assert_ne!(two.next_fire_at / DAY_MS, fire / DAY_MS);
    assert!(!world.task(stopped.id).await.activity.started);
    assert_eq!(world.admin.calendar_changes(10).await, []);
}

/// Statements that wait for a calendar.
async fn wait_for_calendar(world: &World, kind: Kind) {
    let waiting = match kind {
        Kind::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'UPDATE%calendar%' AND \
             TIME_MS > 100"
        }
    };
    let database = world.database.as_ref().unwrap();
    await_until("the calendar is waited for", 10, || async { when(database.number(waiting).await > 0) }).await;
}

/// A task that names the calendar is to be committed; it waits for `meanwhile`, which waits for it.
async fn named_meanwhile<T: Send + 'static>(
    world: &World,
    kind: Kind,
    meanwhile: impl Future<Output = T> + Send + 'static,
) -> (TaskId, T) {
    let proxy = Proxy::to(&world.database.as_ref().unwrap().url).await;
    let (writer, now, task) =
        (over(&proxy, Duration::from_secs(8)).await, world.now, world.new_task(&noons("new"), true));
    let id = task.id;
    proxy.hold_before("COMMIT");
    let writing = tokio::spawn(async move { writer.apply_tasks(&[task], &[], now).await });
    proxy.held().await;
    let meanwhile = tokio::spawn(meanwhile);
    wait_for_calendar(world, kind).await;
    proxy.release();
    writing.await.unwrap().unwrap();
    (id, meanwhile.await.unwrap())
}

async fn a_task_that_begins_to_name_a_calendar_while_that_changes_follows(kind: Kind) {
    let world = World::sql(kind).await;
    let (id, tenant, now) = (world.id(), world.owner.tenant_id, world.now);
    put(&world, id, &CalendarSpec::default(), 0, now).await;
    let (admin, next) = (Arc::clone(&world.admin), world.id());
    let change = async move { admin.put_calendar((next, tenant), "work", &without(&[]), 1, now).await.unwrap() };
    let (task, change) = named_meanwhile(&world, kind, change).await;
    assert_eq!(world.admin.tasks_behind(change.id, TaskId::NONE, 10).await, [task]);
    world.admin.end_calendar_change(&change).await;
    assert_eq!(world.admin.calendar_changes(10).await, [change]);
}

async fn a_calendar_that_a_task_begins_to_name_is_not_deleted(kind: Kind) {
    let world = World::sql(kind).await;
    put(&world, world.id(), &CalendarSpec::default(), 0, world.now).await;
    let (store, tenant) = (connect(&world.database.as_ref().unwrap().url).await, world.owner.tenant_id);
    let deleted = named_meanwhile(&world, kind, async move { store.delete_calendar(tenant, "work").await });
    assert_eq!(deleted.await.1.unwrap_err().kind(), StoreErrorKind::Conflict);
}
