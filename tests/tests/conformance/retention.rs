//! What is old goes, in bounded batches.

use crate::executors::{process, register};
use crate::fixture::{World, success};
use crate::shards::expanded;
use carillon::domain::plan::Plan;
use carillon::domain::quota::Quotas;
use carillon::domain::routing::UseChange;
use carillon::domain::task::TaskSpec;
use carillon::domain::{IdSource, LogId, NodeId, Owner, Reason, Run, Status, TaskId, Transition};
use carillon::store::{ClusterStore as _, HousekeepingStore as _, NewTask, NodeInfo, SqlStore, Writer};
use carillon_tests::Database;

cases!(
    only_ended_old_logs_go_and_at_most_so_many,
    shards_stay_while_their_run_goes_on,
    each_tenant_keeps_its_logs_as_long_as_it_says,
    only_silent_members_go,
    uses_go_with_their_address_or_task,
);

databases!(
    what_lies_beside_logs_goes_with_them,
    what_lies_beside_logs_that_are_gone_goes_part_by_part,
    members_go_part_by_part,
    scopes_of_permits_go_with_their_task_app_or_tenant,
    backfills_go_when_they_have_been_over_for_long,
);

const DAY_MS: i64 = 86_400_000;

/// Runs whose ids were made at `at`.
async fn runs_made_at(world: &World, at: i64, count: i64) -> Vec<Run> {
    runs_of(world, &World::every_second(&format!("made-at-{at}")), world.owner, at, count).await
}

async fn runs_of(world: &World, spec: &TaskSpec, owner: Owner, at: i64, count: i64) -> Vec<Run> {
    let source = IdSource::new(NodeId(2 + world.number() % 1_000));
    let task = NewTask { owner, ..world.new_task(spec, true) };
    world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
    let task = world.task(task.id).await;
    let mut plan: Plan = world.plan(&task, (0..count).map(|i| at + i * 1_000));
    for fire in &mut plan.fires {
        fire.id = source.next(at);
    }
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    world.rows(task.id).await.into_iter().map(|row| row.dispatched.run).collect()
}

async fn only_ended_old_logs_go_and_at_most_so_many(world: World) {
    let old = runs_made_at(&world, world.now - 6 * DAY_MS, 7).await;
    let young = runs_made_at(&world, world.now - 4 * DAY_MS, 2).await;
    for run in old[..5].iter().chain(&young) {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    world.store.claim(NodeId(1), vec![old[5].clone()], world.now).await.unwrap();
    let before = world.now - 5 * DAY_MS;
    assert_eq!(world.store.purge(before, 3).await.unwrap().deleted, 3);
    assert_eq!(world.store.purge(before, 3).await.unwrap().deleted, 2);
    assert_eq!(world.store.purge(before, 3).await.unwrap().deleted, 0);
    let left: Vec<LogId> = world.rows(old[0].task_id).await.iter().map(|row| row.dispatched.run.id).collect();
    assert_eq!(left, [old[5].id, old[6].id], "however old, what has not ended stays");
    assert_eq!(world.rows(young[0].task_id).await.len(), 2);
}

/// A sharded run may go on for longer than logs are kept, or wait for its next attempt: it counts its shards at its end.
async fn shards_stay_while_their_run_goes_on(world: World) {
    let (parent, shards) = expanded(&world, 4).await;
    let good = shards[..2].iter().map(|shard| success(shard, 1)).collect::<Vec<_>>();
    world.store.succeed(world.owner, &good.iter().collect::<Vec<_>>()).await.unwrap();
    world.moved(&shards[2], Status::Retry, Reason::HandlerFailed).await;
    let behind = runs_made_at(&world, world.now + 60_000, 3).await;
    for run in &behind {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    let later = world.now + DAY_MS;
    let purge = async |limit| world.store.purge(later, limit).await.unwrap().deleted;
    assert_eq!(world.store.purge_of(0, later, 2).await.unwrap().deleted, 0, "the parent and a shard");
    assert_eq!(world.store.purge_of(0, later, 3).await.unwrap().deleted, 0, "nothing but shards");
    assert_eq!(world.store.purge_of(0, later, 10).await.unwrap().deleted, 3, "what is behind them");
    let behind = runs_made_at(&world, world.now + 61_000, 3).await;
    for run in &behind {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    assert_eq!(purge(2).await, 2, "they take no place in a batch");
    assert_eq!(purge(2).await, 1);
    assert_eq!(world.rows(parent.task_id).await.len(), 5);

    let waiting = world.row(&shards[2]).await.dispatched.run;
    world.moved(&waiting, Status::Cancelled, Reason::CancelledManually).await;
    world.store.succeed(world.owner, &[&success(&shards[3], 1)]).await.unwrap();
    assert_eq!(purge(10).await, 0, "its end is still to be written");
    assert_eq!(world.store.settle_parents(&[parent.id], world.now).await.unwrap(), 1);
    assert_eq!(purge(1).await, 1);
    assert_eq!(purge(10).await, 4, "with or without their parent");
}

async fn each_tenant_keeps_its_logs_as_long_as_it_says(world: World) {
    let other = world.admin.make_app([world.id(), world.id()], "brief", "orders").await;
    let spec = World::every_second("work");
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for days in [9, 6, 3, 1] {
        mine.extend(
            runs_of(&world, &World::every_second(&format!("{days}")), world.owner, world.now - days * DAY_MS, 2).await,
        );
        let spec = TaskSpec { name: format!("theirs-{days}"), ..spec.clone() };
        theirs.extend(runs_of(&world, &spec, other, world.now - days * DAY_MS, 2).await);
    }
    // Ended at once, save one of the oldest.
    for run in mine.iter().chain(&theirs).filter(|run| run.id != theirs[0].id) {
        let change = Transition {
            finished_at: run.fire_time + 1,
            ..Transition::of(run, Status::Cancelled, Reason::TaskStopped)
        };
        assert_eq!(world.store.change(&[change]).await.unwrap().len(), 1);
    }
    assert_eq!(world.store.retentions().await.unwrap(), [0]);
    let keep = |retain_days| Quotas { retain_days, ..Quotas::default() };
    world.admin.set_quotas(other.tenant_id, &keep(2), world.now).await;
    assert_eq!(world.store.retentions().await.unwrap(), [0, 2]);
    let of = async |days: i32, age: i64| {
        let (mut looks, mut deleted) = (0, 0);
        loop {
            let purged = world.store.purge_of(days, world.now - age * DAY_MS, 3).await.unwrap();
            (looks, deleted) = (looks + 1, deleted + purged.deleted);
            assert!(purged.deleted <= 3);
            if !purged.is_more {
                return (looks, deleted);
            }
        }
    };
    let left = async |runs: &[Run]| {
        let mut left = 0;
        for run in runs {
            left += world.rows(run.task_id).await.iter().filter(|log| log.dispatched.run.id == run.id).count();
        }
        left
    };
    assert_eq!(of(2, 2).await, (5, 5), "twelve looked at, three at a time");
    assert_eq!((left(&mine).await, left(&theirs).await), (8, 3));
    assert_eq!(of(2, 2).await, (1, 0), "it goes on where it ended");
    // The other way round: they keep theirs longer than the default.
    world.admin.set_quotas(other.tenant_id, &keep(30), world.now).await;
    assert_eq!(of(0, 5).await.1, 4);
    assert_eq!((left(&mine).await, left(&theirs).await), (4, 3));
    // A tenant that comes back is looked at from the beginning.
    world.moved(&theirs[0], Status::Cancelled, Reason::CancelledManually).await;
    world.admin.set_quotas(other.tenant_id, &keep(0), world.now).await;
    assert_eq!((of(0, 5).await.1, left(&theirs).await), (1, 2));
}

async fn only_silent_members_go(world: World) {
    let info = NodeInfo { name: "a".to_owned(), ..NodeInfo::default() };
    world.store.join(&info).await.unwrap();
    assert_eq!(world.store.purge_members(world.now - 60_000, 10).await.unwrap(), 0);
    assert_eq!(world.store.nodes().await.unwrap().len(), 1);
    assert_eq!(world.store.purge_members(world.now + 60_000, 10).await.unwrap(), 1);
    assert!(world.store.nodes().await.unwrap().is_empty());
}

/// Tables with rows beside logs, and their column of the log.
const BESIDE: [(&str, &str); 5] =
    [("outbox", "id"), ("permit", "id"), ("backfill_run", "id"), ("run_key", "log_id"), ("task_log_attempt", "log_id")];

/// Writes a row of each table beside these logs.
async fn write_beside(database: &Database, logs: impl IntoIterator<Item = LogId>) {
    for log in logs {
        for row in [
            format!("outbox (id, task_id) VALUES ({log}, 7)"),
            format!("permit (id, tenant_id, app_id, task_id, version) VALUES ({log}, 7, 7, 7, 1)"),
            format!("backfill_run (id, backfill_id) VALUES ({log}, 7)"),
            format!("run_key (id, task_id, log_id) VALUES ('7:{log}', 7, {log})"),
            format!(
                "task_log_attempt (log_id, attempt, executor_id, address, node_id, due_time, dispatched_at, started_at, \
                 finished_at, status, reason, message) VALUES ({log}, 1, 7, '', 1, 1, 1, 1, 1, 6, '', '')"
            ),
        ] {
            database.execute(&format!("INSERT INTO {row}")).await;
        }
    }
}

/// Batch by batch: where there are always more logs, nothing comes after them.
async fn what_lies_beside_logs_goes_with_them(world: World, store: SqlStore) {
    let database = world.database.clone().unwrap();
    let runs = runs_made_at(&world, world.now - 6 * DAY_MS, 5).await;
    for run in &runs {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    write_beside(&database, runs.iter().map(|run| run.id)).await;
    for left in [3, 1, 0] {
        store.purge(world.now - 5 * DAY_MS, 2).await.unwrap();
        assert_eq!(world.rows(runs[0].task_id).await.len(), left);
        for (table, _) in BESIDE {
            let rows = database.number(&format!("SELECT COUNT(*) FROM {table}")).await;
            assert_eq!(rows, left as i64, "{table}");
        }
    }
}

/// A node that has died between the deletion of logs and of what lies beside them leaves that behind.
async fn what_lies_beside_logs_that_are_gone_goes_part_by_part(world: World, store: SqlStore) {
    let database = world.database.clone().unwrap();
    let (old, source) = (world.now - 6 * DAY_MS, IdSource::new(NodeId(1_001)));
    let there = runs_made_at(&world, old, 1).await.remove(0).id;
    let gone: Vec<LogId> = (0..5).map(|_| source.next(old)).collect();
    let young: LogId = source.next(world.now - 4 * DAY_MS);
    write_beside(&database, gone.iter().chain([&there, &young]).copied()).await;
    for left in [3, 1, 0, 0] {
        assert_eq!(store.purge(world.now - 5 * DAY_MS, 2).await.unwrap().deleted, 0, "no log");
        for (table, log) in BESIDE {
            let left_in = format!("SELECT COUNT(*) FROM {table} WHERE {log}");
            let of_gone = database.number(&format!("{left_in} NOT IN ({there}, {young})")).await;
            assert_eq!(of_gone, left, "{table}");
            let of_others = database.number(&format!("{left_in} IN ({there}, {young})")).await;
            assert_eq!(of_others, 2, "{table}: its log is there, or is not old");
        }
    }
}

/// How many go with each call until none does, two of a table at most.
async fn gone_by_two(store: &SqlStore, before: i64) -> Vec<u64> {
    let mut gone = Vec::new();
    while gone.last() != Some(&0) {
        gone.push(store.purge_members(before, 2).await.unwrap());
    }
    gone
}

async fn members_go_part_by_part(world: World, store: SqlStore) {
    for name in ["a", "b", "c"] {
        store.join(&NodeInfo { name: name.to_owned(), ..NodeInfo::default() }).await.unwrap();
        register(&world, &process(name, name, &["pay"])).await;
    }
    assert_eq!(gone_by_two(&store, world.now - DAY_MS).await, [0]);
    assert_eq!(gone_by_two(&store, world.now + DAY_MS).await, [4, 2, 0]);
}

async fn scopes_of_permits_go_with_their_task_app_or_tenant(world: World, store: SqlStore) {
    let database = world.database.clone().unwrap();
    let task = world.started(&World::every_second("bounded")).await;
    let mut owners = [task.id.0, world.owner.app_id.0, world.owner.tenant_id.0];
    for scope in owners.into_iter().chain([7, 8, 9]) {
        database.execute(&format!("INSERT INTO permit_scope (id, turn) VALUES ({scope}, 1)")).await;
    }
    assert_eq!(gone_by_two(&store, world.now).await, [2, 1, 0]);
    owners.sort_unstable();
    let left = database.query("SELECT id FROM permit_scope ORDER BY id", |row| row.try_get_by_index::<i64>(0)).await;
    assert_eq!(left, owners);
}

async fn backfills_go_when_they_have_been_over_for_long(world: World, store: SqlStore) {
    let database = world.database.clone().unwrap();
    let before = world.now - 5 * DAY_MS;
    for (id, finished_at) in [(1, before - 1), (2, before - 1), (3, before - 1), (4, before), (5, 0)] {
        database
            .execute(&format!(
                "INSERT INTO backfill (id, tenant_id, task_id, range_from, range_until, next_at, max_concurrent, status, \
                 written, existing, created_at, finished_at) \
                 VALUES ({id}, 7, 7, 0, 1, 1, 1, 'done', 0, 0, 1, {finished_at})"
            ))
            .await;
    }
    assert_eq!(gone_by_two(&store, before).await, [2, 1, 0]);
    let left = database.query("SELECT id FROM backfill ORDER BY id", |row| row.try_get_by_index::<i64>(0)).await;
    assert_eq!(left, [4, 5], "not so old, and open");
}

/// However old a use is: it counts until its address, or its task, is no more.
async fn uses_go_with_their_address_or_task(world: World) {
    let run = runs_made_at(&world, world.now, 1).await.remove(0);
    register(&world, &process("one", "here", &["pay"])).await;
    let used = |task_id, address: &str| UseChange { task_id, address: address.into(), floor: 0, added: 1, last: 5 };
    let (here, gone) = ("http://here:1", "http://gone:1");
    let changes = [used(run.task_id, here), used(run.task_id, gone), used(TaskId(7), here)];
    world.store.add_uses(&changes, &|| world.id()).await.unwrap();
    assert_eq!(world.store.purge_members(world.now - 60_000, 10).await.unwrap(), 2);
    let left = world.store.uses(&[run.task_id, TaskId(7)]).await.unwrap();
    assert_eq!(
        left.iter().map(|(task, address, _)| (*task, address.as_str())).collect::<Vec<_>>(),
        [(run.task_id, here)]
    );
}
