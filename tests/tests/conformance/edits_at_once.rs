//! Changes of a task while a node writes its fires ahead.

use crate::fixture::{World, edit, over};
use carillon::domain::plan::{Window, plan};
use carillon::domain::task::TaskSpec;
use carillon_tests::proxy::Proxy;
use carillon_tests::wait::when;
use carillon_tests::{Kind, await_until};
use std::sync::Arc;
use std::time::Duration;

servers!(fires_that_are_written_while_their_task_is_edited_count_once);

/// Statements that wait for a lock, or go on for another reason.
fn waiting(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => {
            "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        }
        _ => {
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND INFO LIKE 'UPDATE task SET%'"
        }
    }
}

/// What PostgreSQL counts in a statement is what was there when that began, although it then waits for the row. A task that
/// may fire so many times would stop too early.
async fn fires_that_are_written_while_their_task_is_edited_count_once(kind: Kind) {
    let world = World::sql(kind).await;
    let task = world.started(&TaskSpec { max_fires: 9, ..World::every_second("task") }).await;
    let window = Window { now: world.now, until: world.now + 5_000, misfire_after_ms: 30_000, fires_max: 100 };
    let tasks = world.store.tasks(&[task.id]).await.unwrap();
    let plans = vec![plan(&tasks[0], window, || world.id()).unwrap()];
    let database = world.database.as_ref().unwrap();
    let proxy = Proxy::to(&database.url).await;
    let (writer, now) = (over(&proxy, Duration::from_secs(8)).await, world.now);

    proxy.hold_before("COMMIT");
    let writing = tokio::spawn(async move {
        use carillon::store::PlanStore as _;
        writer.write_ahead(None, &plans, now).await
    });
    proxy.held().await;
    let (admin, change) = (Arc::clone(&world.admin), edit(&task));
    let changing = tokio::spawn(async move { admin.apply(&[], &[change], now).await });
    await_until("the edit waits for the task", 10, || async { when(database.number(waiting(kind)).await > 0) }).await;
    proxy.release();
    assert_eq!(writing.await.unwrap().unwrap().map(|moved| moved.len()), Some(1));
    changing.await.unwrap().unwrap();
    assert_eq!(world.rows(task.id).await.len(), 5, "they were written");
    assert_eq!(world.task(task.id).await.fires, 0, "none has run, and all are planned, and counted, again");
}
