//! Which tasks were imported, and of what, and the numbers that they keep.

use crate::fixture::World;
use carillon::domain::import::RunEnd;
use carillon::domain::{AccessScope, AppId, LogId, TaskId, TenantId};
use carillon::store::{
    GroupFilter, JobNumberStore as _, OldRun, OutcomeStore as _, SqlStore, StoreErrorKind, TaskOrigin,
};

databases!(
    origins_are_noted_and_listed,
    a_task_has_one_origin_and_an_origin_one_task,
    numbers_are_kept_where_they_are_free,
    a_foreign_task_gets_no_origin,
    apps_keep_the_numbers_of_their_groups,
    old_runs_are_written_once_and_nothing_claims_them,
);

async fn tasks(world: &World, count: usize) -> Vec<TaskId> {
    let mut tasks = Vec::new();
    for at in 0..count {
        tasks.push(world.started(&World::every_second(&format!("task {at}"))).await.id);
    }
    tasks
}

fn origin(task_id: TaskId, origin: &str, number: i32) -> TaskOrigin {
    TaskOrigin { task_id, origin: origin.to_owned(), number }
}

async fn listed(world: &World, store: &SqlStore) -> Vec<TaskOrigin> {
    store.origins(world.owner.tenant_id, TaskId(0), 500).await.unwrap()
}

async fn set(world: &World, store: &SqlStore, origins: &[TaskOrigin]) {
    store.set_origins(world.owner.tenant_id, origins, &[]).await.unwrap();
}

async fn origins_are_noted_and_listed(world: World, store: SqlStore) {
    let tasks = tasks(&world, 3).await;
    let noted: Vec<_> =
        tasks.iter().zip(7..).map(|(id, number)| origin(*id, &format!("old#{number}"), number)).collect();
    set(&world, &store, &noted).await;
    set(&world, &store, &[]).await;
    assert_eq!(listed(&world, &store).await, noted);
    let page = store.origins(world.owner.tenant_id, tasks[0], 1).await.unwrap();
    assert_eq!(page, noted[1..2]);
    let other = TenantId(world.owner.tenant_id.0 + 1);
    assert!(store.origins(other, TaskId(0), 500).await.unwrap().is_empty());
    // A task that is gone has none, and its origin is free.
    let gone = world.task(tasks[0]).await;
    world.admin.delete_task(&gone, world.now).await.unwrap();
    assert_eq!(listed(&world, &store).await, noted[1..]);
    set(&world, &store, &[origin(tasks[1], "old#7", 0)]).await;
    assert_eq!(listed(&world, &store).await[0], origin(tasks[1], "old#7", 8));
}

async fn a_task_has_one_origin_and_an_origin_one_task(world: World, store: SqlStore) {
    let tasks = tasks(&world, 2).await;
    set(&world, &store, &[origin(tasks[0], "old#7", 0)]).await;
    set(&world, &store, &[origin(tasks[0], "new#1", 0)]).await;
    assert_eq!(listed(&world, &store).await, [origin(tasks[0], "new#1", 0)]);
    set(&world, &store, &[origin(tasks[1], "new#1", 0)]).await;
    assert_eq!(listed(&world, &store).await, [origin(tasks[1], "new#1", 0)]);
}

async fn numbers_are_kept_where_they_are_free(world: World, store: SqlStore) {
    let tasks = tasks(&world, 5).await;
    let [numbered, first, second, late, last] = tasks[..] else { panic!("five tasks") };
    assert_eq!(store.job_numbers(world.owner, &[numbered]).await.unwrap()[&numbered], 1);
    // The number of a task never changes, and none is given twice.
    let origins = [origin(numbered, "old#5", 5), origin(first, "old#1", 1), origin(second, "old#40", 40)];
    set(&world, &store, &origins).await;
    let numbers: Vec<_> = listed(&world, &store).await.into_iter().map(|origin| origin.number).collect();
    assert_eq!(numbers, [1, 0, 40]);
    set(&world, &store, &[origin(late, "old#41", 40), origin(last, "old#42", 40)]).await;
    let numbers = store.job_numbers(world.owner, &[first, late]).await.unwrap();
    let mut numbers = [numbers[&first], numbers[&late]];
    numbers.sort_unstable();
    assert_eq!(numbers, [41, 42], "they count on from the largest");
}

async fn a_foreign_task_gets_no_origin(world: World, store: SqlStore) {
    let tasks = tasks(&world, 1).await;
    let other = TenantId(world.owner.tenant_id.0 + 1);
    let refused = store.set_origins(other, &[origin(tasks[0], "old#7", 7)], &[]).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotFound);
    let known = [origin(tasks[0], "old#7", 7), origin(TaskId(1), "old#8", 8)];
    assert!(store.set_origins(world.owner.tenant_id, &known, &[]).await.is_err());
    assert!(listed(&world, &store).await.is_empty(), "all or none");
}

async fn apps_keep_the_numbers_of_their_groups(world: World, store: SqlStore) {
    let mut owners = Vec::new();
    for name in ["orders", "stocks", "billing"] {
        owners.push(world.admin.make_app([world.number(), world.number()], "elsewhere", name).await);
    }
    let (tenant, apps) = (owners[0].tenant_id, owners.iter().map(|owner| owner.app_id).collect::<Vec<_>>());
    let [first, second, third] = apps[..] else { panic!("three apps") };
    let numbers = async || -> Vec<i32> {
        let filter = GroupFilter { limit: 10, ..GroupFilter::default() };
        let (_, groups) = store.job_groups(&AccessScope::tenant(tenant), &filter).await.unwrap();
        let number = |app: &AppId| groups.iter().find(|group| group.owner.app_id == *app).unwrap().number;
        apps.iter().map(number).collect()
    };
    store.set_origins(world.owner.tenant_id, &[], &[(first, 3)]).await.unwrap();
    store.set_origins(tenant, &[], &[(first, 5), (second, 2)]).await.unwrap();
    store.set_origins(tenant, &[], &[(first, 7), (third, 5)]).await.unwrap();
    assert_eq!(
        numbers().await,
        [5, 2, 8],
        "the first number stays, a taken one is given to nobody else, and others count on"
    );
}

async fn old_runs_are_written_once_and_nothing_claims_them(world: World, store: SqlStore) {
    let task = tasks(&world, 1).await[0];
    let (tenant, day) = (world.owner.tenant_id, 86_400_000);
    let run = |fire_time: i64, end: RunEnd| OldRun {
        id: LogId(world.number()),
        task_id: task,
        fire_time,
        finished_at: fire_time + 5,
        end,
        message: "as it was\0".to_owned(),
    };
    let ends = [RunEnd::Succeeded, RunEnd::Failed, RunEnd::TimedOut, RunEnd::NotSent, RunEnd::Unknown];
    let runs = || ends.iter().zip(1..).map(|(end, number)| run(world.now - number * day, *end)).collect::<Vec<_>>();
    let other = TenantId(tenant.0 + 1);
    assert_eq!(store.add_old_runs(other, &runs()).await.unwrap(), 0, "another tenant's task");
    let foreign = OldRun { task_id: TaskId(1), ..run(world.now - 9 * day, RunEnd::Failed) };
    let first = runs();
    assert_eq!(store.add_old_runs(tenant, &[&first[..], &[foreign]].concat()).await.unwrap(), 5);
    assert_eq!(store.add_old_runs(tenant, &runs()).await.unwrap(), 0, "again");
    let ids: Vec<LogId> = first.iter().map(|run| run.id).collect();
    let mut here = store.runs(None, &ids).await.unwrap();
    here.sort_by_key(|row| -row.run.fire_time);
    let shown: Vec<_> = here.iter().map(|row| (row.run.fire_time, row.run.status, row.finished_at)).collect();
    let expected = first.iter().map(|run| (run.fire_time, run.end.here().0, run.finished_at));
    assert_eq!(shown, expected.collect::<Vec<_>>());
}
