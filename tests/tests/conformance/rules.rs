//! Rules, calendars and backfills: the databases only, since the model has none of them.

use crate::executors::process;
use crate::fixture::{World, node};
use carillon::domain::calendar::CalendarSpec;
use carillon::domain::plan::Plan;
use carillon::domain::quota::Quotas;
use carillon::domain::rules::{MaintenanceWindow, WindowAction};
use carillon::domain::task::{ParentLink, ParentOutcome, TaskSpec};
use carillon::domain::{AccessScope, LogId, NodeId, Reason, Run, Status, TaskId, TenantId, Transition, Trigger};
use carillon::store::{
    AppFilter, AppView, Backfill, BackfillStore, ClaimStore, ExecutorRule, ExecutorStore, LogView, PlanStore,
    RuleStore, Signer, SqlStore, StoreErrorKind, TaskView,
};
use std::collections::HashMap;

databases!(
    rules_are_read_when_they_change,
    executors_keep_what_a_person_said_of_their_address,
    calendars_have_versions_and_reach_their_tasks,
    a_backfill_writes_so_many_at_a_time_and_leaves_out_what_exists,
    a_backfill_gives_a_run_to_fires_that_never_ran,
    ends_of_backfilled_runs_are_followed_where_they_matter,
    a_backfill_is_found_however_many_are_newer,
    windows_and_calendars_come_page_by_page,
);

async fn rules_are_read_when_they_change(world: World, store: SqlStore) {
    let before = store.rule_version().await.unwrap();
    let tenant = world.owner.tenant_id;
    let seven = Quotas { max_concurrent: 7, ..Quotas::default() };
    store.set_quotas(tenant, None, &seven, world.now).await.unwrap();
    let filter = AppFilter { id: Some(world.owner.app_id), limit: 1, ..AppFilter::default() };
    let app = store.list_apps(&AccessScope::tenant(tenant), &filter).await.unwrap().remove(0);
    store.edit_app(&app, &AppView { max_concurrent: 3, ..app.clone() }).await.unwrap();
    assert_eq!(store.edit_app(&app, &app).await.unwrap_err().kind(), StoreErrorKind::Conflict);
    let window = |id, starts_at, ends_at| MaintenanceWindow {
        id,
        tenant_id: tenant,
        starts_at,
        ends_at,
        action: WindowAction::Postpone,
        note: "disks".to_owned(),
    };
    store.add_window(&window(world.id(), world.now - 9, world.now - 1), world.now).await.unwrap();
    let open = window(world.id(), world.now, world.now + 50);
    store.add_window(&open, world.now).await.unwrap();
    let rules = store.rules(world.now).await.unwrap();
    assert!(rules.version > before && rules.version == store.rule_version().await.unwrap());
    assert_eq!(rules.concurrent(world.owner.tenant_id), Some(7));
    assert_eq!(rules.apps.get(&world.owner.app_id), Some(&3));
    let found = rules.window_at(world.owner.tenant_id, world.now + 10).unwrap();
    assert_eq!((found.id, found.action, found.note.as_str()), (open.id, WindowAction::Postpone, "disks"));
    assert_eq!(store.windows(tenant, world.now, None, 50).await.unwrap().len(), 1);
    store.drop_window(tenant, open.id).await.unwrap();
    assert_eq!(store.drop_window(tenant, open.id).await.unwrap_err().kind(), StoreErrorKind::NotFound);
    store.set_quotas(tenant, None, &Quotas::default(), world.now).await.unwrap();
    let rules = store.rules(world.now).await.unwrap();
    assert!(rules.tenants.is_empty() && rules.windows.is_empty());
    let refused = store.set_quotas(world.id(), None, &seven, world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotFound);
    let stale = store.set_quotas(tenant, Some(1), &seven, world.now).await.unwrap_err();
    assert_eq!(stale.kind(), StoreErrorKind::Conflict);
}

async fn executors_keep_what_a_person_said_of_their_address(world: World, store: SqlStore) {
    let register = |instance: &str| process(instance, "10.0.0.1", &[]);
    let new_id = || world.id();
    let signer = |signed_at| Signer { owner: world.owner, key_id: "key", signed_at };
    store.register(&signer(1), &register("one"), &new_id, world.now).await.unwrap();
    let seen = async || {
        let found = store.executors(0).await.unwrap();
        found.iter().map(|executor| (executor.weight, executor.disabled, executor.capacity)).collect::<Vec<_>>()
    };
    assert_eq!(seen().await, [(1, false, 4)]);
    let rule = |weight, disabled, revision| ExecutorRule { weight, disabled, note: "why".to_owned(), revision };
    let address = "http://10.0.0.1:1";
    let set =
        async |rule: &ExecutorRule| store.set_executor_rule(world.id(), world.owner, address, rule, world.now).await;
    let place = (world.owner.tenant_id, world.owner.app_id, address.to_owned());
    let elsewhere = (TenantId(world.owner.tenant_id.0 + 1), world.owner.app_id, address.to_owned());
    let said = async || store.executor_rules(&[elsewhere.clone(), place.clone()]).await.unwrap();
    assert!(said().await.is_empty());
    assert_eq!(set(&rule(9, true, 3)).await.unwrap_err().kind(), StoreErrorKind::Conflict, "of what is not there");
    set(&rule(40, true, 0)).await.unwrap();
    assert_eq!(said().await, HashMap::from([(place.clone(), rule(40, true, 1))]));
    for stale in [0, 2] {
        assert_eq!(set(&rule(9, false, stale)).await.unwrap_err().kind(), StoreErrorKind::Conflict);
    }
    assert_eq!(seen().await, [(40, true, 4)]);
    store.register(&signer(2), &register("two"), &new_id, world.now).await.unwrap();
    assert_eq!(seen().await, [(40, true, 4)], "the next process at the address inherits it");
    set(&rule(2, false, 1)).await.unwrap();
    assert_eq!(said().await[&place], rule(2, false, 2));
    assert_eq!(seen().await, [(2, false, 4)]);
}

async fn calendars_have_versions_and_reach_their_tasks(world: World, store: SqlStore) {
    let spec = |weekday: &str| CalendarSpec { excluded_weekdays: vec![weekday.to_owned()], ..CalendarSpec::default() };
    let tenant = world.owner.tenant_id;
    let put = async |weekday: &str, current: i64| {
        store.put_calendar(world.id(), tenant, "work", &spec(weekday), current, world.now).await
    };
    assert_eq!((put("sat", 0).await.unwrap(), put("sun", 1).await.unwrap()), (1, 2));
    for stale in [0, 1, 3] {
        let refused = put("fri", stale).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Conflict, "another caller has written it in the meantime");
    }
    let listed = store.list_calendars(tenant, "", 50).await.unwrap();
    assert_eq!(listed.iter().map(|view| (view.version, view.spec.clone())).collect::<Vec<_>>(), [(2, spec("sun"))]);
    let old = store.calendar_version(tenant, "work", 1).await.unwrap().unwrap();
    assert_eq!(old.spec, spec("sat"));
    let task = world.started(&TaskSpec { calendar: "work".to_owned(), ..World::every_second("planned") }).await;
    let read = store.tasks(&[task.id]).await.unwrap().remove(0);
    assert_eq!(read.schedule.calendar.as_ref().map(|calendar| calendar.version), Some(2));
    put("mon", 2).await.unwrap();
    let read = store.tasks(&[task.id]).await.unwrap().remove(0);
    assert_eq!(read.schedule.calendar.as_ref().map(|calendar| calendar.version), Some(3));
    assert_eq!(store.tasks_of_calendar(tenant, "work", TaskId::NONE, 10).await.unwrap().len(), 1);
    assert_eq!(store.delete_calendar(tenant, "work").await.unwrap_err().kind(), StoreErrorKind::Conflict);
    world.change(crate::fixture::edit_to(&task, |spec| spec.calendar.clear()), world.now).await.unwrap();
    store.delete_calendar(tenant, "work").await.unwrap();
    assert!(store.list_calendars(tenant, "", 50).await.unwrap().is_empty());
    assert_eq!(store.calendar(tenant, "work").await.unwrap(), None);
    let lost = world.change(
        crate::fixture::edit_to(&world.task(task.id).await, |spec| "work".clone_into(&mut spec.calendar)),
        world.now,
    );
    let refused = lost.await.unwrap_err();
    assert!(refused.kind() == StoreErrorKind::Invalid && refused.to_string().contains("calendar"), "{refused}");
}

/// Of five seconds from then on.
fn backfill(world: &World, task: &TaskView, from: i64, max_concurrent: i32) -> Backfill {
    Backfill {
        id: world.id(),
        tenant_id: world.owner.tenant_id,
        task_id: task.id,
        range_from: from,
        range_until: from + 5_000,
        next_at: from,
        max_concurrent,
        params: Some("again".to_owned()),
        status: "open".to_owned(),
        written: 0,
        existing: 0,
        created_at: world.now,
        finished_at: 0,
    }
}

async fn a_backfill_writes_so_many_at_a_time_and_leaves_out_what_exists(world: World, store: SqlStore) {
    let task = world.started(&World::every_second("filled")).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    world.write(&task, [second + 1_000]).await;
    let backfill = backfill(&world, &task, second, 2);
    store.create_backfill(&backfill, world.now).await.unwrap();
    let advance = async || {
        let open = store.open_backfills(10).await.unwrap();
        let open = open.first()?;
        Some(store.advance(open, &|| world.id(), world.now).await.unwrap())
    };
    let filled = async |status: Status| {
        let rows = world.rows(task.id).await.into_iter().map(|log| log.dispatched.run);
        rows.filter(|run| run.trigger == Trigger::Backfill && run.status == status).collect::<Vec<_>>()
    };
    assert_eq!((advance().await, advance().await), (Some(2), Some(0)), "no more at once");
    let runs = filled(Status::Init).await;
    let seen: Vec<_> = runs.iter().map(|run| (run.fire_time - second, run.priority, run.due_time)).collect();
    assert_eq!(seen, [(0, 0, world.now), (2_000, 0, world.now)]);
    assert_eq!(runs[0].params.as_deref(), Some("again"));
    let stale = Backfill { next_at: second, ..backfill.clone() };
    assert_eq!(store.advance(&stale, &|| world.id(), world.now).await.unwrap(), 0, "another caller has moved on");
    for _ in 0..3 {
        for run in filled(Status::Init).await {
            let queued = store.claim(NodeId(1), vec![run], world.now).await.unwrap();
            world.moved(&queued[0], Status::Cancelled, carillon::domain::Reason::CancelledManually).await;
        }
        advance().await;
    }
    assert_eq!(advance().await, None, "done");
    let done = store.backfills_of(world.owner.tenant_id, task.id, None, 1).await.unwrap().remove(0);
    assert_eq!((done.status.as_str(), done.written, done.existing), ("done", 4, 1));
    assert_eq!(filled(Status::Cancelled).await.len(), 4);
}

async fn a_backfill_gives_a_run_to_fires_that_never_ran(world: World, store: SqlStore) {
    let task = world.started(&World::every_second("filled")).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    let runs = world.write(&task, (1..4).map(|at| second + at * 1_000)).await;
    let tried = world.dispatched(1, vec![runs[1].clone()], 7).await.remove(0);
    for run in [&runs[0], &tried] {
        let step = Transition { finished_at: world.now, failures: 2, message: "late".to_owned(), ..expiry(run) };
        assert_eq!(world.store.change(&[step]).await.unwrap().len(), 1);
    }
    world.moved(&runs[2], Status::Cancelled, Reason::CancelledManually).await;
    world.change(crate::fixture::edit(&task), world.now).await.unwrap();
    let rows_now = async || world.rows(task.id).await;
    let before = rows_now().await;
    let asked = backfill(&world, &task, second, 2);
    store.create_backfill(&asked, world.now).await.unwrap();

    let advance = async |now| {
        let open = store.open_backfills(1).await.unwrap();
        store.advance(&open[0], &|| world.id(), now).await.unwrap()
    };
    assert_eq!(advance(world.now + 5).await, 2, "one of them counts as any other");
    let rows = rows_now().await;
    assert_eq!(rows.len(), 4, "the fire keeps its log");
    let row = &rows[1];
    let again = Run {
        status: Status::Init,
        reason: Reason::None,
        version: before[0].dispatched.run.version + 1,
        revision: 2,
        due_time: world.now + 5,
        failures: 0,
        trigger: Trigger::Backfill,
        priority: 0,
        params: Some("again".to_owned()),
        ..before[0].dispatched.run.clone()
    };
    assert_eq!((&row.dispatched.run, row.dispatched.finished_at, row.message.as_str()), (&again, 0, ""));
    let others = |rows: &[LogView]| rows.iter().map(|row| row.dispatched.clone()).collect::<Vec<_>>();
    assert_eq!(others(&rows[2..]), others(&before[1..]), "one was tried, one was cancelled");
    assert_eq!(advance(world.now + 6).await, 0, "both go on");
    for run in [&rows[0].dispatched.run, &again] {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    assert_eq!(advance(world.now + 7).await, 1);
    let stands = store.backfills_of(world.owner.tenant_id, task.id, None, 1).await.unwrap().remove(0);
    assert_eq!((stands.written, stands.existing), (3, 2));
    assert_eq!(others(&rows_now().await[2..4]), others(&before[1..]));
}

fn expiry(run: &Run) -> Transition {
    Transition::of(run, Status::Expired, Reason::Expired)
}

async fn ends_of_backfilled_runs_are_followed_where_they_matter(world: World, store: SqlStore) {
    let plain = world.started(&World::every_second("plain")).await;
    let careful = world.started(&TaskSpec { pause_after_failures: 2, ..World::every_second("careful") }).await;
    let parent = world.started(&World::every_second("parent")).await;
    let link = ParentLink { task: "parent".to_owned(), on: ParentOutcome::Success };
    world.started(&TaskSpec { parents: vec![link], ..World::every_second("child") }).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    for (task, is_watched) in [(&plain, false), (&careful, true), (&parent, true)] {
        let task = world.task(task.id).await;
        // Fires without a log, and one whose run never was.
        let missed = Plan { outbox: true, ..world.plan(&task, [second + 1_000]) };
        world.store.write_ahead(None, &[missed], world.now).await.unwrap();
        let run = world.rows(task.id).await.remove(0).dispatched.run;
        assert_eq!(world.store.change(&[expiry(&run)]).await.unwrap().len(), 1);
        let ended = world.store.ended(LogId::NONE, 1_000).await.unwrap().ended;
        world.store.process_outbox(&ended, &node(), &|| world.id(), world.now).await.unwrap().unwrap();
        assert!(world.admin.watched(task.id).await.is_empty());

        let asked = backfill(&world, &task, second, 3);
        store.create_backfill(&asked, world.now).await.unwrap();
        assert_eq!(store.advance(&asked, &|| world.id(), world.now).await.unwrap(), 3);
        let rows = world.rows(task.id).await;
        let mut written: Vec<LogId> = rows.iter().map(|row| row.dispatched.run.id).collect();
        written.sort_unstable();
        assert_eq!(world.admin.watched(task.id).await, if is_watched { written } else { Vec::new() });
    }
}

async fn a_backfill_is_found_however_many_are_newer(world: World, store: SqlStore) {
    let task = world.started(&World::every_second("filled")).await;
    let tenant = world.owner.tenant_id;
    let mut made = Vec::new();
    for _ in 0..110 {
        let backfill = backfill(&world, &task, 1_000, 1);
        store.create_backfill(&backfill, world.now).await.unwrap();
        made.insert(0, backfill.id);
    }
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = store.backfills_of(tenant, task.id, before, 40).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        listed.extend(page.iter().map(|backfill| backfill.id));
    }
    assert_eq!(listed, made);
    let oldest = made[109];
    let cancel = async |tenant, task| store.cancel_backfill(tenant, task, oldest, world.now).await;
    for nowhere in [cancel(TenantId(tenant.0 + 1), task.id).await, cancel(tenant, TaskId(task.id.0 + 1)).await] {
        assert_eq!(nowhere.unwrap_err().kind(), StoreErrorKind::NotFound);
    }
    assert_eq!(store.open_backfills(500).await.unwrap().len(), 110, "others' are left alone");
    cancel(tenant, task.id).await.unwrap();
    let open = store.open_backfills(500).await.unwrap();
    assert!(open.len() == 109 && open.iter().all(|backfill| backfill.id != oldest));
}

async fn windows_and_calendars_come_page_by_page(world: World, store: SqlStore) {
    let (tenant, now) = (world.owner.tenant_id, world.now);
    let mut windows = Vec::new();
    for number in 0..9 {
        let ends_at = now + number / 4; // the first four have ended, several end together
        let id = world.id();
        let window = MaintenanceWindow {
            id,
            tenant_id: tenant,
            starts_at: now - number,
            ends_at,
            action: WindowAction::Skip,
            note: String::new(),
        };
        store.add_window(&window, now).await.unwrap();
        assert_eq!(store.window(tenant, id).await.unwrap().as_ref(), Some(&window));
        assert_eq!(store.window(TenantId(tenant.0 + 1), id).await.unwrap(), None);
        windows.extend((ends_at > now).then_some(window));
    }
    for limit in [1, 2, 5] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.windows(tenant, now, after, limit).await.unwrap();
            let Some(last) = page.last() else { break };
            after = Some((last.ends_at, last.id.0));
            found.extend(page);
        }
        assert_eq!(found, windows, "{limit} at a time");
    }
    let names = ["Z", "a", "a b", "ä", "日"];
    for name in names {
        store.put_calendar(world.id(), tenant, name, &CalendarSpec::default(), 0, now).await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = store.list_calendars(tenant, &after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after.clone_from(&last.name);
        found.extend(page.into_iter().map(|calendar| calendar.name));
    }
    assert_eq!(found.iter().map(String::as_str).collect::<std::collections::BTreeSet<_>>(), names.into());
    assert_eq!(found.len(), names.len());
}
