//! Rules and calendars: what the databases have of them beyond the model.

use crate::executors::process;
use crate::fixture::World;
use carillon::domain::calendar::CalendarSpec;
use carillon::domain::quota::Quotas;
use carillon::domain::rules::{MaintenanceWindow, WindowAction};
use carillon::domain::task::TaskSpec;
use carillon::domain::{AccessScope, TaskId, TenantId};
use carillon::store::{
    AppFilter, AppView, ClusterStore, ExecutorRule, ExecutorStore, PlanStore, RuleStore, Signer, SqlStore,
    StoreErrorKind,
};
use std::collections::HashMap;

databases!(
    rules_are_read_when_they_change,
    executors_keep_what_a_person_said_of_their_address,
    calendars_have_versions_and_reach_their_tasks,
    windows_and_calendars_come_page_by_page,
);

async fn rules_are_read_when_they_change(world: World, store: SqlStore) {
    let before = store.rule_version().await.unwrap();
    let clock = store.now_us().await.unwrap() / 1_000;
    let tenant = world.owner.tenant_id;
    let seven = Quotas { max_concurrent: 7, ..Quotas::default() };
    store.set_quotas(tenant, None, &seven, world.now).await.unwrap();
    let filter = AppFilter { id: Some(world.owner.app_id), limit: 1, ..AppFilter::default() };
    let app = store.list_apps(&AccessScope::tenant(tenant), &filter).await.unwrap().remove(0);
    assert!(!store.rules(world.now).await.unwrap().allows_scripts(app.id), "off until it is allowed");
    store.edit_app(&app, &AppView { max_concurrent: 3, scripts: true, ..app.clone() }).await.unwrap();
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
    assert!(rules.version >= clock, "the number of a change that was lost may come again");
    assert_eq!(rules.concurrent(world.owner.tenant_id), Some(7));
    assert_eq!(rules.apps.get(&world.owner.app_id), Some(&3));
    assert!(rules.allows_scripts(world.owner.app_id));
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
    assert_eq!((put("sat", 0).await.unwrap().version, put("sun", 1).await.unwrap().version), (1, 2));
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
    let change = put("mon", 2).await.unwrap();
    let read = store.tasks(&[task.id]).await.unwrap().remove(0);
    assert_eq!(read.schedule.calendar.as_ref().map(|calendar| calendar.version), Some(3));
    assert_eq!(store.tasks_behind(change.id, TaskId::NONE, 10).await.unwrap().len(), 1);
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
