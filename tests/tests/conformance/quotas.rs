//! Quotas of tenants: tasks, and fires in a minute.

use crate::executors::{process, signer};
use crate::fixture::World;
use carillon::domain::plan::Plan;
use carillon::domain::quota::Quotas;
use carillon::domain::rate_limit::{Slot, SlotRequest};
use carillon::domain::rules::RuleChange;
use carillon::domain::task::TaskSpec;
use carillon::domain::{Executor, NodeId, Reason, Run, Status};
use carillon::store::{NewTask, StoreErrorKind, Writer};
use carillon_tests::{Database, Kind};

cases!(
    runs_over_the_rate_are_put_back_until_their_slot,
    the_urgent_change_places_with_those_that_wait,
    what_is_urgent_and_cannot_wait_takes_no_slot,
    two_nodes_share_one_rate,
    another_rate_lets_delayed_runs_ask_again,
    whoever_comes_later_lets_delayed_runs_ask_again,
    tasks_beyond_the_quota_are_refused_as_a_whole,
    many_creators_at_once_make_no_more_tasks_than_the_quota,
    handlers_beyond_the_quota_get_no_task_and_their_executor_is_registered,
);

const MINUTE: i64 = 60_000;

async fn limit(world: &World, quotas: Quotas) {
    world.admin.set_quotas(world.owner.tenant_id, &quotas, world.now).await;
}

async fn limit_fires(world: &World, max_fires_per_minute: i32) {
    limit(world, Quotas { max_fires_per_minute, ..Quotas::default() }).await;
}

/// Asks for a slot now.
fn request(world: &World, run: &Run) -> SlotRequest {
    SlotRequest {
        id: run.id,
        version: run.version,
        failures: run.failures,
        tenant_id: run.tenant_id,
        priority: run.priority,
        at: world.now,
        latest: i64::MAX,
        back_to: Status::Init,
    }
}

async fn queued(world: &World, count: i64) -> Vec<Run> {
    let runs = world.runs(count).await;
    world.store.claim(NodeId(1), runs, world.now).await.unwrap()
}

async fn take_rate_slots(world: &World, runs: &[Run]) -> Vec<Slot> {
    let requests: Vec<SlotRequest> = runs.iter().map(|run| request(world, run)).collect();
    world.store.take_rate_slots(&requests, world.now).await.unwrap()
}

async fn runs_over_the_rate_are_put_back_until_their_slot(world: World) {
    let runs = queued(&world, 6).await;
    assert_eq!(take_rate_slots(&world, &runs[..2]).await, [Slot::Now; 2], "without a quota");
    limit_fires(&world, 2).await;
    let mut requests: Vec<SlotRequest> = runs.iter().map(|run| request(&world, run)).collect();
    requests[4].version -= 1;
    requests[5].latest = world.now + MINUTE;
    let slots = world.store.take_rate_slots(&requests, world.now).await.unwrap();
    let later = |ms: i64| Slot::Later(world.now + ms);
    assert_eq!(slots[..5], [Slot::Now, Slot::Now, later(MINUTE), later(MINUTE + 30_000), later(2 * MINUTE)]);
    assert_eq!(slots[5], Slot::Never);
    let rows = world.rows(runs[0].task_id).await;
    for at in [0, 1, 4, 5] {
        assert_eq!(rows[at].dispatched.run, runs[at], "untouched");
    }
    for at in [2, 3] {
        let Slot::Later(due_time) = slots[at] else { panic!("{slots:?}") };
        let run = &rows[at].dispatched.run;
        assert_eq!((run.status, run.reason, run.due_time), (Status::Init, Reason::OverQuota, due_time));
        assert_eq!((run.version, run.attempt, run.failures), (runs[at].version + 1, 0, 0));
        assert!(rows[at].message.contains("max_fires_per_minute") && rows[at].message.contains(" 2 fires"), "{rows:?}");
        assert!(run.has_slot());
    }
    assert!(world.store.take_rate_slots(&[], world.now).await.unwrap().is_empty());
}

async fn the_urgent_change_places_with_those_that_wait(world: World) {
    limit_fires(&world, 1).await;
    let patient = queued(&world, 3).await;
    let impatient = TaskSpec { wait_timeout_ms: 3_600_000, ..World::every_second("impatient") };
    let impatient = world.started(&impatient).await;
    let impatient = world.write(&impatient, [world.now]).await;
    let impatient = world.store.claim(NodeId(1), impatient, world.now).await.unwrap();
    let urgent = urgent_runs(&world, 9, 3).await;
    let at = |minutes: i64| Slot::Later(world.now + minutes * MINUTE);
    assert_eq!(
        take_rate_slots(&world, &[&patient[..1], &impatient, &patient[1..]].concat()).await,
        [Slot::Now, at(1), at(2), at(3)]
    );
    // Behind the one that waits only so long, before the others, and then there is no less urgent run.
    assert_eq!(take_rate_slots(&world, &urgent).await, [at(2), at(3), at(6)]);
    let due = async |run: &Run| {
        let run = world.row(run).await.dispatched.run;
        assert_eq!((run.status, run.reason), (Status::Init, Reason::OverQuota));
        (run.due_time - world.now) / MINUTE
    };
    assert_eq!([due(&impatient[0]).await, due(&patient[1]).await, due(&patient[2]).await], [1, 4, 5]);
    assert_eq!([due(&urgent[0]).await, due(&urgent[1]).await, due(&urgent[2]).await], [2, 3, 6]);
    // What a node has claimed keeps its slot.
    let claimed = world.row(&patient[1]).await.dispatched.run;
    world.store.claim(NodeId(1), vec![claimed], world.now).await.unwrap();
    assert_eq!(take_rate_slots(&world, &urgent_runs(&world, 8, 2).await).await, [at(5), at(8)]);
}

/// Whether or not a less urgent run waits with which it could change places in time.
async fn what_is_urgent_and_cannot_wait_takes_no_slot(world: World) {
    limit_fires(&world, 1).await;
    let at = |minutes: i64| Slot::Later(world.now + minutes * MINUTE);
    let (now, later) = (world.now, |minutes: i64| world.now + minutes * MINUTE);
    let patient = queued(&world, 4).await;
    assert_eq!(take_rate_slots(&world, &patient[..3]).await, [Slot::Now, at(1), at(2)]);
    let urgent = urgent_runs(&world, 9, 6).await;
    let requests = |latest: [i64; 3], runs: &[Run]| {
        let request = |(run, latest): (&Run, i64)| SlotRequest { latest, ..request(&world, run) };
        runs.iter().zip(latest).map(request).collect::<Vec<_>>()
    };
    let hasty = requests([now + 2_000; 3], &urgent[..3]);
    assert_eq!(world.store.take_rate_slots(&hasty, now).await.unwrap(), [Slot::Never; 3]);
    // They have taken none. Of the next the first changes places with one that goes to the end, the second could only with
    // one that comes too late, and the third leaves its own slot.
    let urgent = requests([later(1), later(1), later(3)], &urgent[3..]);
    assert_eq!(world.store.take_rate_slots(&urgent, now).await.unwrap(), [at(1), Slot::Never, at(2)]);
    let due = async |run: &Run| (world.row(run).await.dispatched.run.due_time - now) / MINUTE;
    assert_eq!([due(&patient[1]).await, due(&patient[2]).await], [4, 3]);
    assert_eq!(take_rate_slots(&world, &patient[3..]).await, [at(5)]);
}

/// Queued runs of a task of that priority.
async fn urgent_runs(world: &World, priority: i32, count: i64) -> Vec<Run> {
    let task = world.started(&TaskSpec { priority, ..World::every_second(&format!("urgent-{priority}")) }).await;
    let plan = world.plan(&task, (0..count).map(|at| world.now + at));
    world.store.write_ahead(Writer::Node(NodeId(1)), &[Plan { priority, ..plan }], world.now).await.unwrap();
    let runs = world.rows(task.id).await.into_iter().map(|log| log.dispatched.run).collect();
    world.store.claim(NodeId(1), runs, world.now).await.unwrap()
}

async fn two_nodes_share_one_rate(world: World) {
    limit_fires(&world, 30).await;
    let runs = queued(&world, 60).await;
    let requests: Vec<SlotRequest> = runs.iter().map(|run| request(&world, run)).collect();
    let take_rate_slots = async |requests: &[SlotRequest], is_rival: bool| {
        let store = if is_rival { &world.rival } else { &world.store };
        let mut slots = Vec::new();
        for batch in requests.chunks(5) {
            slots.extend(store.take_rate_slots(batch, world.now).await.unwrap());
        }
        slots
    };
    let (mine, theirs) = tokio::join!(take_rate_slots(&requests[..30], false), take_rate_slots(&requests[30..], true));
    let instant = |slot: &Slot| match slot {
        Slot::Now => world.now,
        Slot::Later(at) => *at,
        Slot::Never => panic!("there is no bound"),
    };
    let mut instants: Vec<i64> = mine.iter().chain(&theirs).map(instant).collect();
    instants.sort_unstable();
    assert_eq!(instants.iter().filter(|at| **at == world.now).count(), 30);
    for begin in &instants {
        let within = instants.iter().filter(|at| (*begin..begin + MINUTE).contains(*at)).count();
        assert!(within <= 30, "{within} from {begin} on: {instants:?}");
    }
    let states = world.states(runs[0].task_id).await;
    assert_eq!(states.iter().filter(|state| **state == (Status::Init, Reason::OverQuota)).count(), 30);
}

async fn another_rate_lets_delayed_runs_ask_again(world: World) {
    limit_fires(&world, 1).await;
    let runs = queued(&world, 4).await;
    take_rate_slots(&world, &runs).await;
    limit_fires(&world, 3).await;
    let rows = world.rows(runs[0].task_id).await;
    let again: Vec<Run> = rows[1..].iter().map(|row| row.dispatched.run.clone()).collect();
    for run in &again {
        assert_eq!((run.status, run.reason, run.version), (Status::Init, Reason::None, 4), "{run:?}");
        assert_eq!(run.due_time, run.fire_time.max(world.now));
    }
    let again = world.store.claim(NodeId(1), again, world.now).await.unwrap();
    let slots = take_rate_slots(&world, &again).await;
    assert_eq!(slots[..2], [Slot::Now; 2], "one went out under the old quota");
    assert_eq!(slots[2], Slot::Later(world.now + MINUTE));
    limit_fires(&world, 0).await;
    let last = world.row(&again[2]).await.dispatched.run;
    assert_eq!((last.reason, last.status), (Reason::None, Status::Init));
    let last = world.store.claim(NodeId(1), vec![last], world.now).await.unwrap();
    assert_eq!(take_rate_slots(&world, &last).await, [Slot::Now]);
}

/// The process that changed the quota has died before it came to that.
async fn whoever_comes_later_lets_delayed_runs_ask_again(world: World) {
    limit_fires(&world, 1).await;
    let runs = queued(&world, 4).await;
    take_rate_slots(&world, &runs).await;
    let changes = async || world.store.rules(world.now).await.unwrap().changes;
    assert_eq!(changes().await, [], "all have followed the first one");
    let Some(database) = &world.database else { return };
    let tenant = world.owner.tenant_id;
    let left = RuleChange { id: tenant.0, tenant_id: tenant, ends_at: 0, changed_at: world.now };
    let note = format!(
        "INSERT INTO rule_change (id, tenant_id, ends_at, changed_at) VALUES ({tenant}, {tenant}, 0, {})",
        world.now
    );
    database.execute(&note).await;
    assert_eq!(changes().await, [left]);
    assert_eq!(world.store.ask_again(&left, world.now).await.unwrap(), 3);
    assert_eq!(changes().await, []);
    assert_eq!(world.states(runs[0].task_id).await[1..], [(Status::Init, Reason::None); 3]);
}

fn tasks(world: &World, prefix: &str, count: usize) -> Vec<NewTask> {
    (0..count).map(|at| world.new_task(&World::every_second(&format!("{prefix}-{at}")), false)).collect()
}

async fn count(world: &World, names: &[NewTask]) -> usize {
    let mut found = 0;
    for task in names {
        found += world.admin.tasks_named("retail", &task.spec.name).await.len();
    }
    found
}

async fn tasks_beyond_the_quota_are_refused_as_a_whole(world: World) {
    limit(&world, Quotas { max_tasks: 3, ..Quotas::default() }).await;
    let (first, second) = (tasks(&world, "first", 2), tasks(&world, "second", 2));
    world.admin.apply(&first, &[], world.now).await.unwrap();
    let refused = world.admin.apply(&second, &[], world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Invalid, "{refused}");
    assert_eq!((count(&world, &first).await, count(&world, &second).await), (2, 0));
    world.admin.apply(&second[..1], &[], world.now).await.unwrap();
    assert!(world.admin.apply(&second[1..], &[], world.now).await.is_err());
    let view = world.task(first[0].id).await;
    world.change(crate::fixture::start(&view), world.now).await.unwrap();
    let view = world.task(first[0].id).await;
    world.admin.delete_task(&view, world.now).await.unwrap();
    world.admin.apply(&second[1..], &[], world.now).await.unwrap();
}

async fn many_creators_at_once_make_no_more_tasks_than_the_quota(world: World) {
    limit(&world, Quotas { max_tasks: 10, ..Quotas::default() }).await;
    let all = tasks(&world, "task", 20);
    let create = |(at, task): (usize, &NewTask)| {
        let (admin, task, now) = (if at % 2 == 0 { &world.admin } else { &world.rival_admin }, task.clone(), world.now);
        async move { admin.apply(&[task], &[], now).await }
    };
    let made = futures_util::future::join_all(all.iter().enumerate().map(create)).await;
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 10, "{made:?}");
    assert_eq!(count(&world, &all).await, 10);
}

async fn handlers_beyond_the_quota_get_no_task_and_their_executor_is_registered(world: World) {
    limit(&world, Quotas { max_tasks: 3, ..Quotas::default() }).await;
    world.stopped(&World::every_second("c")).await;
    let register = |instance: &str| process(instance, &format!("{instance}.internal"), &["a", "b", "c", "d"]);
    let made = async || {
        let mut made = Vec::new();
        for name in ["a", "b", "c", "d"] {
            made.push(world.admin.tasks_named("retail", name).await.len());
        }
        made
    };
    let new_id = || world.id();
    let registered = async |instance: &str| {
        let signer = signer(&world);
        world.store.register(&signer, &register(instance), &new_id, world.now).await.unwrap()
    };
    let first = registered("one").await;
    assert_eq!(made().await, [1, 1, 1, 0], "there was a task `c` already");
    assert_eq!(first.left_out, ["d"]);
    let online = world.store.executors(0).await.unwrap();
    let has_all = |executor: &Executor| executor.id == first.executor_id && executor.handlers.len() == 4;
    assert!(online.iter().any(has_all), "{online:?}");
    for instance in ["one", "two", "one"] {
        assert_eq!(registered(instance).await.left_out, ["d"], "each time it is told");
        assert_eq!(made().await, [1, 1, 1, 0]);
    }
    limit(&world, Quotas::default()).await;
    assert_eq!(registered("two").await.left_out, [""; 0], "without any news");
    assert_eq!(made().await, [1, 1, 1, 1]);
    let made_once = world.admin.tasks_named("retail", "d").await.remove(0);
    world.admin.delete_task(&made_once, world.now).await.unwrap();
    registered("two").await;
    assert_eq!(made().await, [1, 1, 1, 0], "it is known now");
}

/// Names that someone makes up fill neither the table nor the audit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_so_many_handlers_are_remembered_as_left_out() {
    const MOST: i64 = 2_000;
    let database = Database::fresh(Kind::Sqlite).await;
    let world = World::over_database(&database).await;
    world.stopped(&World::every_second("task")).await;
    limit(&world, Quotas { max_tasks: 1, ..Quotas::default() }).await;
    for round in 0..3 {
        let names: Vec<String> = (0..MOST).map(|number| format!("handler-{round}-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let register = process(&format!("process-{round}"), &format!("{round}.internal"), &names);
        let signer = signer(&world);
        let registered = world.store.register(&signer, &register, &|| world.id(), world.now).await.unwrap();
        assert_eq!(registered.left_out.len(), 2_000, "each is told");
        assert_eq!(database.number("SELECT COUNT(*) FROM handler").await, MOST);
        let noted = database.number("SELECT COUNT(*) FROM audit_entry WHERE action = 'register_handlers'").await;
        assert_eq!(noted, 1);
    }
}
