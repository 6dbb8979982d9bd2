//! Lists of task logs: whatever the filters and the reach, paging through finds each row once, in
//! order, and no other.

use crate::fixture::World;
use carillon::domain::access::TenantScope;
use carillon::domain::{AccessScope, ExecutorId, LogId, Order, Reason, Run, Status, TenantId, Trigger};
use carillon::store::{LogFilter, SqlStore};
use carillon_migrations::{Migrator, MigratorTrait};
use carillon_simulation::store::admin::new_task;
use carillon_tests::connect;
use carillon_tests::tenants::make_app;
use sea_orm::{ConnectionTrait, DatabaseBackend, Statement};
use std::collections::BTreeSet;
use std::time::Duration;

databases!(every_filter_finds_its_rows_page_by_page);

const PHASE_IS_1: &str =
    "(CASE WHEN status IN (0, 3) THEN 0 WHEN status IN (1, 2) THEN 1 WHEN status > 10 THEN status END) = 1";

/// Orders of lists, and of what statistics look for: table, what goes before, order; SQLite tells from
/// the schema alone whether an index serves them.
const ORDERS: [(&str, &str, &str); 16] = [
    ("task_log", "1 = 1", "fire_time DESC, task_id DESC, id DESC"),
    ("task_log", "1 = 1", "fire_time, task_id, id"),
    ("task_log", "fire_time >= 1 AND fire_time < 2", "fire_time"),
    ("task_log", "fire_time >= 1 AND fire_time < 2", "fire_time, task_id"),
    ("task_log", "tenant_id = 1", "fire_time DESC, id DESC"),
    ("task_log", "tenant_id = 1", "fire_time, id"),
    ("task_log", "task_id = 1", "fire_time DESC"),
    ("task_log", "task_id = 1", "fire_time"),
    ("task_log", PHASE_IS_1, "due_time DESC, tenant_id DESC, priority DESC, id DESC"),
    ("task_log", PHASE_IS_1, "due_time, tenant_id, priority, id"),
    ("task_log", "tenant_id = 1 AND (CASE WHEN status > 10 THEN status END) = 11", "due_time DESC, id DESC"),
    ("task_log", "id > 1", "id"),
    ("app_key", "app_id = 1", "created_at DESC, id DESC"),
    ("backfill", "task_id = 1 AND tenant_id = 1", "id DESC"),
    ("maintenance_window", "tenant_id = 1 AND ends_at >= 1", "ends_at, id"),
    ("calendar", "tenant_id = 1 AND name > 'a'", "name"),
];

#[tokio::test]
async fn an_index_serves_every_order() {
    let database = connect("sqlite::memory:", Duration::from_secs(10)).await.unwrap();
    Migrator::up(&database, None).await.unwrap();
    for (table, condition, order) in ORDERS {
        let sql = format!("EXPLAIN QUERY PLAN SELECT id FROM {table} WHERE {condition} ORDER BY {order} LIMIT 50");
        let plan = database.query_all_raw(Statement::from_string(DatabaseBackend::Sqlite, sql)).await.unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.try_get("", "detail").unwrap()).collect();
        let is_served =
            plan.iter().any(|step| step.contains("USING")) && !plan.iter().any(|step| step.contains("TEMP"));
        assert!(is_served, "{table}: {condition} … {order}: {plan:?}");
    }
}

/// Rows of a task at a few instants, many at the same one, in every state.
async fn fill(world: &World, tenant: &str, app: &str, scope_is_home: bool, store: &SqlStore) {
    let owner = if scope_is_home { world.owner } else { make_app(store, [world.id(), world.id()], tenant, app).await };
    for name in ["one", "two"] {
        let spec = World::every_second(&format!("{app}-{name}"));
        let task = new_task(world.id(), owner, spec);
        world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
        let task = world.task(task.id).await;
        let runs = world.write(&task, (0..12).map(|at| world.now + at / 2 * 1_000 + at % 2)).await;
        for (at, run) in runs.iter().enumerate() {
            match at % 6 {
                0 => {}
                1 => world.moved(run, Status::Cancelled, Reason::TaskStopped).await,
                2 => world.moved(run, Status::Expired, Reason::Expired).await,
                _ => {
                    let running = world.dispatched(1, vec![run.clone()], 100 + at as i64).await.remove(0);
                    match at % 6 {
                        3 => world.moved(&running, Status::Failed, Reason::HandlerFailed).await,
                        4 => world.moved(&running, Status::Succeeded, Reason::None).await,
                        _ => {}
                    }
                }
            }
        }
    }
}

async fn every_filter_finds_its_rows_page_by_page(world: World, store: SqlStore) {
    fill(&world, "retail", "orders", true, &store).await;
    fill(&world, "retail", "billing", false, &store).await;
    fill(&world, "finance", "ledger", false, &store).await;
    let everything = LogFilter { limit: 10_000, ..LogFilter::default() };
    let all: Vec<Run> = store
        .list_logs(&AccessScope::All, &everything)
        .await
        .unwrap()
        .logs
        .into_iter()
        .map(|log| log.dispatched.run)
        .collect();
    assert_eq!(all.len(), 72);
    let tenants: BTreeSet<TenantId> = all.iter().map(|run| run.tenant_id).collect();
    let (home, other) = (world.owner.tenant_id, *tenants.iter().find(|id| **id != world.owner.tenant_id).unwrap());
    let reaches = [
        AccessScope::All,
        AccessScope::tenant(home),
        AccessScope::Of(vec![TenantScope { tenant_id: home, apps: vec![world.owner.app_id] }]),
        AccessScope::Of(vec![
            TenantScope { tenant_id: home, apps: Vec::new() },
            TenantScope { tenant_id: other, apps: Vec::new() },
        ]),
        AccessScope::Of(Vec::new()),
    ];
    let plain = LogFilter { limit: 7, ..LogFilter::default() };
    let mut filters = vec![plain.clone()];
    for status in [Status::Init, Status::Dispatched, Status::Succeeded, Status::Failed, Status::Expired] {
        filters.push(LogFilter { status: Some(status), ..plain.clone() });
    }
    filters.push(LogFilter { reason: Some(Reason::HandlerFailed), ..plain.clone() });
    filters.push(LogFilter { trigger: Some(Trigger::Schedule), ..plain.clone() });
    filters.push(LogFilter { trigger: Some(Trigger::Manual), ..plain.clone() });
    filters.push(LogFilter { executor_id: Some(ExecutorId(103)), ..plain.clone() });
    filters.push(LogFilter { from: Some(world.now + 1_000), until: Some(world.now + 4_000), ..plain.clone() });
    let of = |filter: &LogFilter| {
        let (tenant, app, task) = (Some(home), Some(world.owner.app_id), Some(all[0].task_id));
        [
            LogFilter { tenant_id: tenant, ..filter.clone() },
            LogFilter { app_id: app, ..filter.clone() },
            LogFilter { task_id: task, ..filter.clone() },
        ]
    };
    let narrower: Vec<LogFilter> = filters.iter().flat_map(of).collect();
    for filter in filters.iter().chain(&narrower) {
        for access_scope in &reaches {
            let wanted: BTreeSet<LogId> =
                all.iter().filter(|run| fits(run, access_scope, filter)).map(|run| run.id).collect();
            let found = pages(&store, access_scope, filter).await;
            let ids: BTreeSet<LogId> = found.iter().map(|run| run.id).collect();
            assert_eq!(ids.len(), found.len(), "a row twice: {filter:?} {access_scope:?}");
            assert_eq!(ids, wanted, "{filter:?} {access_scope:?}");
            assert!(found.windows(2).all(|pair| pair[0].fire_time >= pair[1].fire_time), "{filter:?} {access_scope:?}");
            let oldest_first = LogFilter { order: Order::Oldest, ..filter.clone() };
            let backwards: Vec<LogId> =
                pages(&store, access_scope, &oldest_first).await.iter().rev().map(|run| run.id).collect();
            let ids: Vec<LogId> = found.iter().map(|run| run.id).collect();
            assert_eq!(backwards, ids, "the other way: {filter:?} {access_scope:?}");
        }
    }
}

fn fits(run: &Run, access_scope: &AccessScope, filter: &LogFilter) -> bool {
    access_scope.has(run.tenant_id, run.app_id)
        && filter.tenant_id.is_none_or(|id| id == run.tenant_id)
        && filter.app_id.is_none_or(|id| id == run.app_id)
        && filter.task_id.is_none_or(|id| id == run.task_id)
        && filter.status.is_none_or(|status| status == run.status)
        && filter.reason.is_none_or(|reason| reason == run.reason)
        && filter.trigger.is_none_or(|trigger| trigger == run.trigger)
        && filter.executor_id.is_none_or(|id| id == run.executor_id)
        && filter.from.is_none_or(|from| run.fire_time >= from)
        && filter.until.is_none_or(|until| run.fire_time < until)
}

async fn pages(store: &SqlStore, access_scope: &AccessScope, filter: &LogFilter) -> Vec<Run> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_logs(access_scope, &LogFilter { after, ..filter.clone() }).await.unwrap();
        assert!(page.logs.len() as u64 <= filter.limit);
        found.extend(page.logs.into_iter().map(|log| log.dispatched.run));
        after = page.next;
        if after.is_none() {
            return found;
        }
    }
}
