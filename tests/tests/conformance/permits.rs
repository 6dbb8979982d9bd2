//! Permits of runs that may only run so many at once; what routing remembers; stops.

use crate::fixture::{World, connect, dispatch_of, ids, success};
use carillon::domain::permit::{Bounds, Granted, Limit, PermitRequest};
use carillon::domain::routing::{Use, UseChange};
use carillon::domain::{AppId, ExecutorId, LogId, NodeId, Reason, Run, Status, TaskId, TenantId, Transition};
use carillon::store::{FROM_THE_FIRST, PermitStore as _, RunDispatch};
use carillon_tests::wait::when;
use carillon_tests::{Database, Kind, await_until};
use sea_orm::ConnectionTrait as _;
use std::collections::{BTreeSet, HashMap};

cases!(
    a_bound_of_one_gives_one_permit_until_its_run_has_ended,
    a_permit_of_a_row_that_moved_on_does_not_count,
    a_copy_of_a_run_that_was_dispatched_lets_no_other_pass,
    a_copy_that_was_left_behind_takes_no_permit_away,
    a_copy_beside_an_earlier_run_takes_no_permit_away,
    bounds_of_app_and_tenant_hold_beside_the_tasks,
    two_that_ask_at_once_get_no_more_than_the_bound,
    in_order_no_run_passes_an_earlier_one_that_waits,
    what_waits_no_longer_holds_no_later_run_up,
    what_has_waited_long_goes_before_less_urgent_runs_of_other_nodes,
    a_place_in_line_ends_with_what_it_waits_for,
    dead_permits_count_nowhere_and_are_deleted_when_they_are_many,
    waiting_runs_learn_and_report_the_reason,
    uses_add_up_and_keep_their_floor,
    fires_that_wait_too_long_are_found,
    a_stop_is_noted_once_and_found_until_the_run_has_ended,
);

servers!(scopes_are_locked_in_the_order_of_their_ids);

const ONE: Bounds = Bounds { task: Some(1), app: None, tenant: None };

/// A run that asks when it is due, in no order.
pub fn ask(run: &Run, bounds: Bounds) -> PermitRequest {
    let Run { id, version, tenant_id, app_id, task_id, priority, due_time, .. } = *run;
    PermitRequest {
        id,
        version,
        tenant_id,
        app_id,
        task_id,
        bounds,
        priority,
        due_time,
        stands_in_line: false,
        in_order: false,
        is_early: false,
    }
}

/// Runs of one task, queued for node 1.
async fn queued(world: &World, count: i64) -> Vec<Run> {
    let runs = world.runs(count).await;
    world.store.claim(NodeId(1), runs, world.now).await.unwrap()
}

async fn acquire(world: &World, runs: &[&Run], bounds: Bounds) -> Vec<LogId> {
    let asks: Vec<PermitRequest> = runs.iter().map(|run| ask(run, bounds)).collect();
    let granted = world.store.acquire(&asks).await.unwrap();
    runs.iter().map(|run| run.id).filter(|id| has_permit(&granted, *id)).collect()
}

fn has_permit(granted: &Granted, id: LogId) -> bool {
    !granted.held_up.contains_key(&id) && !granted.outdated.contains(&id)
}

async fn a_bound_of_one_gives_one_permit_until_its_run_has_ended(world: World) {
    let runs = queued(&world, 3).await;
    assert_eq!(acquire(&world, &[&runs[0], &runs[1]], ONE).await, [runs[0].id]);
    assert_eq!(acquire(&world, &[&runs[0]], ONE).await, [runs[0].id], "its own permit does not block it");
    assert!(acquire(&world, &[&runs[1]], ONE).await.is_empty());
    let items: Vec<RunDispatch> = vec![dispatch_of(&runs[0], ExecutorId(100), world.now)];
    world.store.dispatch(NodeId(1), &items).await.unwrap();
    assert!(acquire(&world, &[&runs[1], &runs[2]], ONE).await.is_empty(), "it runs");
    let holders = world.store.holders(&[runs[0].task_id]).await.unwrap();
    assert_eq!(holders.iter().map(|holder| holder.run.id).collect::<Vec<_>>(), [runs[0].id]);
    let done = success(&runs[0], 1);
    assert_eq!(world.store.succeed(world.owner, &[&done]).await.unwrap(), 1);
    assert_eq!(acquire(&world, &[&runs[1], &runs[2]], ONE).await, [runs[1].id], "its end gave it back");
    world.store.release(&[runs[1].id], false).await.unwrap();
    assert_eq!(acquire(&world, &[&runs[2]], ONE).await, [runs[2].id]);
    assert!(world.store.holders(&[runs[0].task_id]).await.unwrap().is_empty());
}

async fn a_permit_of_a_row_that_moved_on_does_not_count(world: World) {
    let runs = queued(&world, 2).await;
    assert_eq!(acquire(&world, &[&runs[0]], ONE).await, [runs[0].id]);
    // Its node died: it is back with all nodes, and queued by another.
    world.moved(&runs[0], Status::Init, Reason::None).await;
    assert_eq!(acquire(&world, &[&runs[1]], ONE).await, [runs[1].id]);
    world.store.release(&[runs[1].id], false).await.unwrap();
    let again = world.row(&runs[0]).await.dispatched.run;
    let again = world.store.claim(NodeId(2), vec![again], world.now).await.unwrap();
    assert_eq!(acquire(&world, &[&runs[1]], ONE).await, [runs[1].id], "the old permit is not for this version");
    assert!(acquire(&world, &[&again[0]], ONE).await.is_empty());
}

/// Of three serial runs the first is dispatched; `stale` is a copy of it from before.
async fn one_dispatched(world: &World) -> (Vec<Run>, Run) {
    let runs = queued(world, 3).await;
    assert_eq!(acquire(world, &[&runs[0]], ONE).await, [runs[0].id]);
    let items = [dispatch_of(&runs[0], ExecutorId(100), world.now)];
    assert_eq!(world.store.dispatch(NodeId(1), &items).await.unwrap().len(), 1);
    let stale = runs[0].clone();
    (runs, stale)
}

async fn a_copy_of_a_run_that_was_dispatched_lets_no_other_pass(world: World) {
    let (runs, stale) = one_dispatched(&world).await;
    assert!(acquire(&world, &[&runs[1], &stale], ONE).await.is_empty(), "the first one runs");
    let granted = world.store.acquire(&[ask(&stale, ONE)]).await.unwrap();
    assert_eq!(granted, Granted { outdated: [stale.id].into(), ..Granted::default() });
}

async fn a_copy_that_was_left_behind_takes_no_permit_away(world: World) {
    let runs = queued(&world, 2).await;
    let stale = runs[0].clone();
    // Its node was taken for dead, and another has it now.
    world.moved(&stale, Status::Init, Reason::None).await;
    let again = world.row(&stale).await.dispatched.run;
    let again = world.store.claim(NodeId(2), vec![again], world.now).await.unwrap();
    assert_eq!(acquire(&world, &[&again[0]], ONE).await, [stale.id]);
    assert!(acquire(&world, &[&stale], ONE).await.is_empty());
    assert!(acquire_in_order(&world, &[&stale], ONE).await.is_empty());
    assert!(acquire(&world, &[&runs[1]], ONE).await.is_empty(), "the other node's permit counts");
    assert_eq!(acquire(&world, &[&again[0]], ONE).await, [stale.id]);
}

async fn a_copy_beside_an_earlier_run_takes_no_permit_away(world: World) {
    let (runs, _) = one_dispatched(&world).await;
    assert_eq!(world.store.succeed(world.owner, &[&success(&runs[0], 1)]).await.unwrap(), 1);
    assert_eq!(acquire_in_order(&world, &[&runs[2]], ONE).await, [runs[2].id]);
    // A second copy of it asks together with an earlier run.
    assert_eq!(acquire_in_order(&world, &[&runs[1], &runs[2]], ONE).await, [runs[2].id], "its permit stays");
    assert!(acquire_in_order(&world, &[&runs[1]], ONE).await.is_empty(), "and counts");
}

async fn bounds_of_app_and_tenant_hold_beside_the_tasks(world: World) {
    let (first, second) = (queued(&world, 2).await, queued(&world, 2).await);
    let app = Bounds { task: None, app: Some(3), tenant: None };
    let all: Vec<&Run> = first.iter().chain(&second).collect();
    assert_eq!(acquire(&world, &all, app).await, ids(&all[..3].iter().map(|run| (*run).clone()).collect::<Vec<_>>()));
    let tenant = Bounds { task: None, app: None, tenant: Some(4) };
    assert_eq!(acquire(&world, &[all[3]], tenant).await, [all[3].id]);
    let both = Bounds { task: Some(9), app: Some(9), tenant: Some(3) };
    world.store.release(&[all[3].id], false).await.unwrap();
    assert!(acquire(&world, &[all[3]], both).await.is_empty());
}

async fn two_that_ask_at_once_get_no_more_than_the_bound(world: World) {
    let two = Bounds { task: Some(2), ..ONE };
    for _ in 0..5 {
        let runs = queued(&world, 10).await;
        let asks: Vec<PermitRequest> = runs.iter().map(|run| ask(run, two)).collect();
        let (mine, theirs) = tokio::join!(world.store.acquire(&asks[..5]), world.rival.acquire(&asks[5..]));
        let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
        assert_eq!(mine.held_up.len() + theirs.held_up.len(), 8, "{mine:?} {theirs:?}");
    }
}

/// Those that get a permit in order; the others are held up by their task.
async fn acquire_in_order(world: &World, runs: &[&Run], bounds: Bounds) -> Vec<LogId> {
    let asks = runs.iter().map(|run| PermitRequest { in_order: true, ..ask(run, bounds) });
    let granted = world.rival.acquire(&asks.collect::<Vec<_>>()).await.unwrap();
    assert!(granted.held_up.values().all(|limit| *limit == Limit::Task), "{granted:?}");
    runs.iter().map(|run| run.id).filter(|id| has_permit(&granted, *id)).collect()
}

async fn in_order_no_run_passes_an_earlier_one_that_waits(world: World) {
    let (runs, others) = (queued(&world, 4).await, queued(&world, 2).await);
    assert_eq!(acquire_in_order(&world, &[&runs[2], &runs[1]], ONE).await, [runs[1].id], "by due time, not by place");
    // The last one waits now. Nothing runs any more.
    world.store.release(&[runs[1].id], true).await.unwrap();
    for _ in 0..2 {
        assert!(acquire_in_order(&world, &[&runs[2]], ONE).await.is_empty(), "the one that gave it back comes first");
        assert!(acquire_in_order(&world, &[&runs[3], &runs[2]], ONE).await.is_empty());
    }
    let wide = Bounds { task: Some(9), ..ONE };
    assert!(acquire_in_order(&world, &[&runs[3]], wide).await.is_empty(), "whatever the bound");
    assert_eq!(acquire_in_order(&world, &[&runs[0]], wide).await, [runs[0].id], "an earlier one passes");
    world.store.release(&[runs[0].id], true).await.unwrap();
    assert_eq!(acquire_in_order(&world, &[&others[1]], ONE).await, [others[1].id], "each task has its own line");
    assert!(acquire(&world, &[&runs[3]], ONE).await.is_empty(), "nor does a run that keeps no order");
    assert_eq!(acquire(&world, &[&runs[0]], ONE).await, [runs[0].id], "an earlier one does");
    assert!(acquire_in_order(&world, &[&runs[1]], ONE).await.is_empty(), "and its permit counts");
}

async fn what_waits_no_longer_holds_no_later_run_up(world: World) {
    let runs = queued(&world, 4).await;
    assert_eq!(acquire_in_order(&world, &[&runs[0]], ONE).await, [runs[0].id]);
    assert!(acquire_in_order(&world, &[&runs[1]], ONE).await.is_empty());
    assert!(acquire_in_order(&world, &[&runs[2]], ONE).await.is_empty());
    world.store.dispatch(NodeId(1), &[dispatch_of(&runs[0], ExecutorId(100), world.now)]).await.unwrap();
    assert_eq!(world.store.succeed(world.owner, &[&success(&runs[0], 1)]).await.unwrap(), 1);
    assert!(acquire_in_order(&world, &[&runs[3]], ONE).await.is_empty(), "two of them come first");
    // One goes back to all nodes, the other ends.
    world.moved(&runs[1], Status::Init, Reason::None).await;
    world.moved(&runs[2], Status::Cancelled, Reason::CancelledManually).await;
    assert_eq!(acquire_in_order(&world, &[&runs[3]], ONE).await, [runs[3].id]);
    // The first comes back under another version: it has not asked yet.
    let again = world.row(&runs[1]).await.dispatched.run;
    let again = world.store.claim(NodeId(2), vec![again], world.now).await.unwrap();
    assert_eq!(acquire_in_order(&world, &[&runs[3]], ONE).await, [runs[3].id]);
    assert!(acquire_in_order(&world, &[&again[0]], ONE).await.is_empty());
    assert_eq!(acquire_in_order(&world, &[&runs[3]], ONE).await, [runs[3].id], "what has a permit keeps it");
    world.store.release(&[runs[3].id], true).await.unwrap();
    assert!(acquire_in_order(&world, &[&runs[3]], ONE).await.is_empty(), "now the first comes first");
}

const SCOPES: [Bounds; 3] = [
    Bounds { task: Some(2), app: None, tenant: None },
    Bounds { task: None, app: Some(2), tenant: None },
    Bounds { task: None, app: None, tenant: Some(2) },
];

/// Those that get a permit; the others have waited for long, and stand in line from now on.
async fn acquire_in_line(world: &World, runs: &[&Run], bounds: Bounds) -> Vec<LogId> {
    let asks = runs.iter().map(|run| PermitRequest { stands_in_line: true, ..ask(run, bounds) });
    let granted = world.rival.acquire(&asks.collect::<Vec<_>>()).await.unwrap();
    runs.iter().map(|run| run.id).filter(|id| has_permit(&granted, *id)).collect()
}

/// Ends a run that has a permit.
async fn end(world: &World, run: &Run) {
    world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
}

async fn what_has_waited_long_goes_before_less_urgent_runs_of_other_nodes(world: World) {
    for two in SCOPES {
        let runs = queued(&world, 6).await;
        assert_eq!(acquire(&world, &[&runs[0], &runs[1]], two).await, ids(&runs[..2]), "{two:?}");
        // One that has just become due leaves nothing behind; one that has waited does.
        assert!(acquire(&world, &[&runs[2]], two).await.is_empty());
        assert!(acquire_in_line(&world, &[&runs[3]], two).await.is_empty());
        end(&world, &runs[0]).await;
        assert!(acquire(&world, &[&runs[4], &runs[5]], two).await.is_empty(), "the free one is kept: {two:?}");
        assert_eq!(acquire(&world, &[&runs[2]], two).await, [runs[2].id], "not from what is more urgent: {two:?}");
        end(&world, &runs[1]).await;
        assert!(acquire(&world, &[&runs[4]], two).await.is_empty(), "{two:?}");
        assert_eq!(acquire(&world, &[&runs[3], &runs[4]], two).await, [runs[3].id], "it gets it: {two:?}");
        end(&world, &runs[2]).await;
        assert_eq!(acquire(&world, &[&runs[4]], two).await, [runs[4].id], "and its place is gone: {two:?}");
        for run in [&runs[3], &runs[4]] {
            end(&world, run).await;
        }
    }
}

async fn a_place_in_line_ends_with_what_it_waits_for(world: World) {
    let (runs, others) = (queued(&world, 4).await, queued(&world, 2).await);
    let of = |task, app| Bounds { task, app, tenant: None };
    assert_eq!(acquire(&world, &[&runs[0]], of(Some(1), Some(1))).await, [runs[0].id]);
    assert!(acquire_in_line(&world, &[&others[0]], of(Some(1), Some(1))).await.is_empty(), "it waits for its app");
    end(&world, &runs[0]).await;
    assert_eq!(acquire(&world, &[&others[1]], ONE).await, [others[1].id], "another run of its task begins");
    assert!(acquire(&world, &[&runs[1]], of(None, Some(2))).await.is_empty(), "one of two is kept");
    assert!(acquire_in_line(&world, &[&others[0]], of(Some(1), Some(2))).await.is_empty(), "it waits for its task");
    assert_eq!(acquire(&world, &[&runs[1]], of(None, Some(2))).await, [runs[1].id], "and keeps nothing of its app");
    end(&world, &runs[1]).await;
    assert!(acquire_in_line(&world, &[&runs[2]], of(None, Some(1))).await.is_empty());
    assert!(acquire(&world, &[&runs[3]], of(None, Some(2))).await.is_empty());
    world.moved(&runs[2], Status::Init, Reason::None).await;
    assert_eq!(
        acquire(&world, &[&runs[3]], of(None, Some(2))).await,
        [runs[3].id],
        "what is not queued stands nowhere"
    );
}

async fn dead_permits_count_nowhere_and_are_deleted_when_they_are_many(world: World) {
    const MANY: i64 = 101;
    let of = |task, app, tenant| Bounds { task, app, tenant };
    let others = queued(&world, 2).await;
    let (of_app, of_tenant) = (of(None, Some(1), None), of(None, None, Some(1)));
    for (bounds, other) in [(ONE, None), (of_app, Some(&others[0])), (of_tenant, Some(&others[1]))] {
        let runs = queued(&world, MANY + 1).await;
        let (dying, last) = runs.split_at(MANY as usize);
        assert_eq!(acquire(&world, &dying.iter().collect::<Vec<_>>(), of(Some(500), None, None)).await, ids(dying));
        let back: Vec<_> = dying.iter().map(|run| Transition::of(run, Status::Init, Reason::None)).collect();
        assert_eq!(world.store.change(&back).await.unwrap().len(), dying.len());
        // One of the same task, or of another one of the same app and tenant.
        let asking = other.unwrap_or(&last[0]);
        assert_eq!(acquire(&world, &[asking], bounds).await, [asking.id], "{bounds:?}");
        if let Some(database) = &world.database {
            assert_eq!(database.number("SELECT COUNT(*) FROM permit").await, 1, "{bounds:?}");
        }
        world.moved(asking, Status::Cancelled, Reason::CancelledManually).await;
    }
}

async fn waiting_runs_learn_and_report_the_reason(world: World) {
    let runs = queued(&world, 4).await;
    let of = |task, app, tenant| Bounds { task, app, tenant };
    let limit =
        async |run: &Run, bounds| world.store.acquire(&[ask(run, bounds)]).await.unwrap().held_up.get(&run.id).copied();
    assert_eq!(limit(&runs[0], of(Some(1), Some(1), Some(1))).await, None);
    assert_eq!(limit(&runs[1], of(None, None, Some(1))).await, Some(Limit::Tenant));
    assert_eq!(limit(&runs[1], of(None, Some(1), Some(1))).await, Some(Limit::App));
    assert_eq!(limit(&runs[1], of(Some(1), Some(1), Some(1))).await, Some(Limit::Task));
    world.store.dispatch(NodeId(1), &[dispatch_of(&runs[3], ExecutorId(100), world.now)]).await.unwrap();
    let stale = (runs[2].id, runs[2].version - 1, Reason::AppLimit);
    let waits = [(runs[1].id, runs[1].version, Reason::TaskLimit), stale, (runs[3].id, 3, Reason::AppLimit)];
    world.store.note_waits(&waits).await.unwrap();
    world.store.note_waits(&[(runs[1].id, runs[1].version, Reason::TenantLimit)]).await.unwrap();
    let seen: HashMap<LogId, (Reason, i64)> = world
        .rows(runs[0].task_id)
        .await
        .iter()
        .map(|log| &log.dispatched.run)
        .map(|r| (r.id, (r.reason, r.version)))
        .collect();
    assert_eq!(
        seen[&runs[1].id],
        (Reason::TaskLimit, runs[1].version),
        "the first word stays, and so does the version"
    );
    assert_eq!((seen[&runs[2].id].0, seen[&runs[3].id].0), (Reason::None, Reason::None));
    world.store.dispatch(NodeId(1), &[dispatch_of(&runs[1], ExecutorId(100), world.now)]).await.unwrap();
    assert_eq!(world.row(&runs[1]).await.dispatched.run.reason, Reason::None);
}

async fn uses_add_up_and_keep_their_floor(world: World) {
    let change = |address: &str, floor, added, last| UseChange {
        task_id: TaskId(7),
        address: address.into(),
        floor,
        added,
        last,
    };
    let new_id = || world.id();
    world.store.add_uses(&[change("a", 0, 3, 5), change("b", 2, 0, 1)], &new_id).await.unwrap();
    world.rival.add_uses(&[change("a", 1, 2, 4), change("b", 9, 1, 8)], &new_id).await.unwrap();
    let mut uses = world.store.uses(&[TaskId(7), TaskId(8)]).await.unwrap();
    uses.sort_by(|one, other| one.1.cmp(&other.1));
    let expected = [
        (TaskId(7), "a".to_owned(), Use { count: 5, last: 5 }),
        (TaskId(7), "b".to_owned(), Use { count: 10, last: 8 }),
    ];
    assert_eq!(uses, expected);
    assert!(world.store.uses(&[TaskId(8)]).await.unwrap().is_empty());
}

async fn fires_that_wait_too_long_are_found(world: World) {
    let runs = world.runs(6).await;
    let queued = world.store.claim(NodeId(1), runs[..3].to_vec(), world.now).await.unwrap();
    world.store.dispatch(NodeId(1), &[dispatch_of(&queued[2], ExecutorId(100), world.now)]).await.unwrap();
    world.moved(&runs[4], Status::Cancelled, Reason::CancelledManually).await;
    let found = |since: i64, before: i64, limit| {
        let (store, task) = (&world.store, runs[0].task_id);
        async move {
            let found = store.overdue(&[(task, since)], before, limit).await.unwrap();
            found.into_iter().map(|(_, fire_time)| fire_time).collect::<Vec<_>>()
        }
    };
    let at = |index: usize| runs[index].fire_time;
    assert_eq!(found(at(0), at(5), 10).await, [at(3), at(2), at(1), at(0)], "latest first; not what ended unrun");
    assert_eq!(found(at(1), at(5) + 1, 2).await, [at(5), at(3)]);
}

async fn a_stop_is_noted_once_and_found_until_the_run_has_ended(world: World) {
    let runs = world.runs(2).await;
    let dispatched = world.dispatched(1, runs, 100).await;
    let noted = |run: &Run, reason| {
        let (store, key) = (&world.store, (run.id, run.version));
        async move { store.note_stop(&[key], reason).await.unwrap().len() }
    };
    assert_eq!(noted(&dispatched[0], Reason::CancelledManually).await, 1);
    assert_eq!(noted(&dispatched[0], Reason::CancelledManually).await, 1, "as after an error");
    assert_eq!(noted(&dispatched[0], Reason::Covered).await, 0, "another reason comes too late");
    let stopping = world.store.stopping(i64::MAX, FROM_THE_FIRST, 10).await.unwrap();
    let seen: BTreeSet<_> =
        stopping.iter().map(|dispatched| (dispatched.run.id, dispatched.stopping, dispatched.run.version)).collect();
    assert_eq!(seen, BTreeSet::from([(dispatched[0].id, Reason::CancelledManually, dispatched[0].version + 1)]));
    let done = success(&dispatched[0], 1);
    assert_eq!(world.store.succeed(world.owner, &[&done]).await.unwrap(), 1, "it ended well before");
    assert!(world.store.stopping(i64::MAX, FROM_THE_FIRST, 10).await.unwrap().is_empty());
    assert_eq!(world.row(&dispatched[0]).await.dispatched.stopping, Reason::None);
}

/// However the rows happen to lie in the table: who waits for the first scope holds no later one. Otherwise two nodes wait for
/// each other, and all who ask for permits wait with them until the server finds out.
async fn scopes_are_locked_in_the_order_of_their_ids(kind: Kind) {
    let database = Database::fresh(kind).await;
    let store = connect(&database.url).await;
    store.migrate().await.unwrap();
    database.execute("INSERT INTO permit_scope (id, turn) VALUES (1, 0), (2, 0)").await;
    // PostgreSQL writes a changed row behind the others.
    database.execute("UPDATE permit_scope SET turn = 1 WHERE id = 1").await;
    let other = database.connect().await;
    for sql in ["BEGIN", "SELECT id FROM permit_scope WHERE id = 1 FOR UPDATE"] {
        other.execute_unprepared(sql).await.unwrap();
    }
    let ask = |task: i64| PermitRequest {
        id: LogId(task),
        version: 1,
        tenant_id: TenantId(1),
        app_id: AppId(1),
        task_id: TaskId(task),
        bounds: ONE,
        priority: 0,
        due_time: 0,
        stands_in_line: false,
        in_order: false,
        is_early: false,
    };
    let asks = [ask(1), ask(2)];
    // The wait for a lock is bounded; the one who looks may be slower on a busy machine.
    let asking = tokio::spawn(async move { while store.acquire(&asks).await.is_err() {} });
    let waits = match kind {
        // `innodb_trx` shows what it showed before to those who ask more often than ten times a second.
        Kind::MariaDb => {
            "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND time_ms > 200 \
             AND info LIKE '%permit_scope%' AND id <> CONNECTION_ID()"
        }
        _ => "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
    };
    await_until("the request waits for the first scope", 60, || async { when(database.number(waits).await > 0) }).await;
    let free =
        database.connect().await.execute_unprepared("SELECT id FROM permit_scope WHERE id = 2 FOR UPDATE NOWAIT").await;
    other.execute_unprepared("ROLLBACK").await.unwrap();
    asking.await.unwrap();
    assert!(free.is_ok(), "it waits for the first scope and holds the second: {free:?}");
}

/// PostgreSQL would take reading the whole of the log for cheaper than looking up those of some thousand waiting runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_reads_no_logs_but_those_of_permits() {
    let database = Database::fresh(Kind::Postgres).await;
    let store = connect(&database.url).await;
    store.migrate().await.unwrap();
    // Without reading the log: what a session has read may be counted a second later.
    for sql in [
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason) SELECT i, 1, 1, CASE WHEN i > 57700 THEN 7 ELSE 8 END, 1, 0, 0, 1, 0, i, i, \
         CASE WHEN i > 57700 THEN 1 ELSE 10 END, 2, 0, 0, 1, 0, 1, 0, 0, 0, '' FROM generate_series(1, 60000) i",
        "INSERT INTO permit (id, tenant_id, app_id, task_id, version) \
         SELECT i, 1, 1, 7, -2 FROM generate_series(57701, 60000) i",
        "ANALYZE",
    ] {
        database.execute(sql).await;
    }
    let read = async |what: &str| {
        let sql = format!("SELECT COALESCE({what}, 0) FROM pg_stat_user_tables WHERE relname = 'task_log'");
        database.number(&sql).await
    };
    let before = [read("seq_tup_read").await, read("idx_tup_fetch").await];
    let asks = [57_702, 57_701].map(|id| PermitRequest {
        id: LogId(id),
        version: 2,
        tenant_id: TenantId(1),
        app_id: AppId(1),
        task_id: TaskId(7),
        bounds: ONE,
        priority: 0,
        due_time: id,
        stands_in_line: false,
        in_order: true,
        is_early: false,
    });
    let granted = store.acquire(&asks).await.unwrap();
    assert_eq!(granted.held_up, HashMap::from([(LogId(57_702), Limit::Task)]), "the first of all goes first");
    // A session that ends tells what it has read.
    drop(store);
    await_until("the server counts what was read", 60, || async {
        when(read("seq_tup_read").await > before[0] || read("idx_tup_fetch").await > before[1])
    })
    .await;
    assert_eq!(read("seq_tup_read").await - before[0], 0, "read in sequence");
    let looked_up = read("idx_tup_fetch").await - before[1];
    assert!(looked_up <= 2_400, "2,300 permits, and {looked_up} logs looked up");
}
