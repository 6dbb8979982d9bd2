//! Runs that wait for the end of their tenant's maintenance window, and go on when it is taken away.

use crate::fixture::World;
use carillon::domain::quota::Quotas;
use carillon::domain::rules::{MaintenanceWindow, RuleChange, WindowAction};
use carillon::domain::{LogId, NodeId, Owner, Reason, Run, Status, TenantId, Transition};
use carillon::store::{BATCH_MAX, DueRange, LogView, NewTask, SqlStore, StoreErrorKind, TaskView};

cases!(
    postponed_runs_go_on_when_their_window_is_taken_away,
    only_what_waits_for_that_window_goes_on,
    however_many_wait_all_go_on,
    bounds_and_windows_are_read_when_they_change,
);

databases!(a_window_of_a_later_release_postpones);

/// Queues runs and puts them back until the end of a window, as the dispatcher does.
async fn postponed(world: &World, runs: &[Run], ends_at: i64) -> Vec<Run> {
    put_back(world, runs, Reason::Maintenance, ends_at).await
}

async fn put_back(world: &World, runs: &[Run], reason: Reason, until: i64) -> Vec<Run> {
    let queued = world.store.claim(NodeId(1), runs.to_vec(), world.now).await.unwrap();
    let step = |run: &Run| {
        let to = if run.attempt > 0 { Status::Retry } else { Status::Init };
        Transition { due_time: until, message: "the disks are changed".to_owned(), ..Transition::of(run, to, reason) }
    };
    let steps: Vec<Transition> = queued.iter().map(step).collect();
    assert_eq!(world.store.change(&steps).await.unwrap().len(), runs.len());
    let ids: Vec<LogId> = runs.iter().map(|run| run.id).collect();
    let rows = world.rows(runs[0].task_id).await.into_iter().map(|row| row.dispatched.run);
    rows.filter(|run| ids.contains(&run.id)).collect()
}

async fn postponed_runs_go_on_when_their_window_is_taken_away(world: World) {
    let mut runs = world.runs(4).await;
    let tried = world.dispatched(1, vec![runs[1].clone()], 7).await.remove(0);
    let failed = Transition { failures: 1, ..Transition::of(&tried, Status::Retry, Reason::HandlerFailed) };
    assert_eq!(world.store.change(&[failed]).await.unwrap().len(), 1);
    runs[1] = world.row(&tried).await.dispatched.run;
    let ends_at = world.now + 60_000;
    let before = postponed(&world, &runs, ends_at).await;
    assert!(world.store.claimable(None, DueRange::until(ends_at - 1), 10).await.unwrap().is_empty());

    // Two of them were due before, one just now, one is still to come.
    let now = world.now + 2_000;
    assert_eq!(world.store.resume(world.owner.tenant_id, ends_at, now).await.unwrap(), 4);
    let due = [now, now, now, world.now + 3_000];
    let status = [Status::Init, Status::Retry, Status::Init, Status::Init];
    for (at, before) in before.iter().enumerate() {
        let (due_time, status, version) = (due[at], status[at], before.version + 1);
        let row = world.row(before).await;
        assert_eq!(row.dispatched.run, Run { due_time, status, version, reason: Reason::None, ..before.clone() });
        assert_eq!(row.message, "the disks are changed", "what it waited for can still be read");
    }
    assert_eq!(world.store.claimable(None, DueRange::until(now), 10).await.unwrap().len(), 3);
    assert_eq!(world.store.resume(world.owner.tenant_id, ends_at, now).await.unwrap(), 0, "once");

    // A copy from before loses at the version.
    assert!(world.store.claim(NodeId(2), before.clone(), now).await.unwrap().is_empty());
}

async fn only_what_waits_for_that_window_goes_on(world: World) {
    let ends_at = world.now + 60_000;
    let runs = world.runs(6).await;
    postponed(&world, &runs[..1], ends_at + 1).await;
    put_back(&world, &runs[1..2], Reason::OverQuota, ends_at).await;
    let queued = postponed(&world, &runs[2..3], ends_at).await;
    world.store.claim(NodeId(1), queued, world.now).await.unwrap();
    let ended = postponed(&world, &runs[3..4], ends_at).await.remove(0);
    world.moved(&ended, Status::Expired, Reason::Maintenance).await;
    // Two wait for nothing, and one fires at that very instant.
    let task = world.task(runs[0].task_id).await;
    world.write(&task, [ends_at]).await;
    let other = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let theirs = task_of(&world, other).await;
    let of_others = world.write(&theirs, [world.now]).await;
    let of_others = postponed(&world, &of_others, ends_at).await;

    let all = async || {
        let mut rows = world.rows(task.id).await;
        rows.extend(world.rows(theirs.id).await);
        rows.into_iter().map(|row| row.dispatched).collect::<Vec<_>>()
    };
    let before = all().await;
    let resume = async |tenant: TenantId| world.store.resume(tenant, ends_at, world.now).await.unwrap();
    assert_eq!(resume(world.owner.tenant_id).await, 0);
    assert_eq!(all().await, before);
    assert_eq!(resume(TenantId(other.tenant_id.0 + 1)).await, 0);
    assert_eq!(resume(other.tenant_id).await, 1);
    assert_eq!(world.row(&of_others[0]).await.dispatched.run.due_time, world.now);
    assert_eq!(all().await[..before.len() - 1], before[..before.len() - 1]);
}

async fn task_of(world: &World, owner: Owner) -> TaskView {
    let task = NewTask { owner, ..world.new_task(&World::every_second("theirs"), true) };
    world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
    world.task(task.id).await
}

async fn however_many_wait_all_go_on(world: World) {
    let count = BATCH_MAX + 1;
    let runs = world.runs(count as i64).await;
    let ends_at = world.now + 86_400_000;
    for batch in runs.chunks(BATCH_MAX) {
        postponed(&world, batch, ends_at).await;
    }
    assert_eq!(world.store.resume(world.owner.tenant_id, ends_at, world.now).await.unwrap(), count as u64);
    let rows = world.rows(runs[0].task_id).await;
    let goes_on = |row: &LogView| {
        let run = &row.dispatched.run;
        (run.status, run.reason, run.due_time) == (Status::Init, Reason::None, run.fire_time)
    };
    assert!(rows.len() == count && rows.iter().all(goes_on));
}

async fn bounds_and_windows_are_read_when_they_change(world: World) {
    let (tenant, now) = (world.owner.tenant_id, world.now);
    let version = async || world.store.rule_version().await.unwrap();
    let before = version().await;
    world.admin.set_quotas(tenant, &Quotas { max_concurrent: 7, ..Quotas::default() }, now).await;
    world.admin.bound_app(world.owner, 3).await;
    let window = |starts_at, ends_at, action| MaintenanceWindow {
        id: world.id(),
        tenant_id: tenant,
        starts_at,
        ends_at,
        action,
        note: "disks".to_owned(),
    };
    let ended = window(now - 9, now, WindowAction::Skip);
    let (open, longer) = (window(now, now + 50, WindowAction::Postpone), window(now - 5, now + 90, WindowAction::Skip));
    for window in [&ended, &open, &longer] {
        let seen = version().await;
        world.admin.add_window(window, now).await;
        assert!(version().await > seen, "each change is seen");
    }
    let rules = world.store.rules(now).await.unwrap();
    assert!(rules.version > before && rules.version == version().await);
    assert_eq!((rules.concurrent(tenant), rules.apps.get(&world.owner.app_id)), (Some(7), Some(&3)));
    assert_eq!(rules.windows[&tenant], [longer.clone(), open.clone()], "by their beginning, those that have not ended");
    world.admin.drop_window(tenant, longer.id).await.unwrap();
    let left = RuleChange { id: longer.id.0, tenant_id: tenant, ends_at: longer.ends_at, changed_at: 0 };
    assert_eq!(world.store.rules(now).await.unwrap().changes, [left], "whoever comes later has to know");
    assert!(world.store.rules(longer.ends_at).await.unwrap().changes.is_empty(), "it would have ended by then");
    assert_eq!(world.admin.drop_window(tenant, longer.id).await.unwrap_err().kind(), StoreErrorKind::NotFound);
    let elsewhere = world.admin.drop_window(TenantId(tenant.0 + 1), open.id).await;
    assert_eq!(elsewhere.unwrap_err().kind(), StoreErrorKind::NotFound);
    world.admin.bound_app(world.owner, 0).await;
    world.admin.set_quotas(tenant, &Quotas::default(), now).await;
    let rules = world.store.rules(now).await.unwrap();
    assert_eq!((rules.windows[&tenant].clone(), rules.apps.len(), rules.tenants.len()), (vec![open], 0, 0));
}

/// A word that this release does not know keeps no node from reading its rules.
async fn a_window_of_a_later_release_postpones(world: World, _: SqlStore) {
    let (tenant_id, now) = (world.owner.tenant_id, world.now);
    let (action, note) = (WindowAction::Skip, "disks".to_owned());
    let window = MaintenanceWindow { id: world.id(), tenant_id, starts_at: now, ends_at: now + 50, action, note };
    world.admin.add_window(&window, now).await;
    let database = world.database.as_ref().unwrap();
    assert_eq!(database.execute("UPDATE maintenance_window SET action = 'drain_first'").await, 1);
    let rules = world.store.rules(now).await.unwrap();
    assert_eq!(rules.windows[&tenant_id], [MaintenanceWindow { action: WindowAction::Postpone, ..window }]);
}
