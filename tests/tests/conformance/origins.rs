//! Which tasks were imported, and of what, and the numbers that they keep.

use crate::fixture::World;
use carillon::domain::{TaskId, TenantId};
use carillon::store::{JobNumberStore as _, SqlStore, StoreErrorKind, TaskOrigin};

databases!(
    origins_are_noted_and_listed,
    a_task_has_one_origin_and_an_origin_one_task,
    numbers_are_kept_where_they_are_free,
    a_foreign_task_gets_no_origin,
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
    store.set_origins(world.owner.tenant_id, origins).await.unwrap();
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
    let refused = store.set_origins(other, &[origin(tasks[0], "old#7", 7)]).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotFound);
    let known = [origin(tasks[0], "old#7", 7), origin(TaskId(1), "old#8", 8)];
    assert!(store.set_origins(world.owner.tenant_id, &known).await.is_err());
    assert!(listed(&world, &store).await.is_empty(), "all or none");
}
