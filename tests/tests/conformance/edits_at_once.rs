//! Changes of a task while its fires are written ahead, and while its runs change.

use crate::fixture::{World, dispatch_of, edit, over};
use carillon::domain::plan::{Plan, Window, plan};
use carillon::domain::task::TaskSpec;
use carillon::domain::{ExecutorId, LogId, NodeId, Reason, Status, Transition};
use carillon::store::{NewRun, TaskView, Writer};
use carillon_tests::proxy::Proxy;
use carillon_tests::wait::when;
use carillon_tests::{Kind, await_until};
use std::sync::Arc;
use std::time::Duration;

servers!(
    fires_that_are_written_while_their_task_is_edited_count_once,
    a_run_that_is_given_back_while_its_task_is_edited_does_not_count,
    a_run_that_is_dispatched_while_its_task_is_edited_is_not_overlooked,
    a_run_that_is_cancelled_while_its_task_is_edited_counts,
);

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

/// Statements that wait for a row's lock.
fn locked(kind: Kind) -> &'static str {
    match kind {
        Kind::Postgres => waiting(kind),
        // InnoDB's own list is a tenth of a second old, and grows no younger while it is asked for.
        _ => {
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND \
             INFO LIKE '%task_log%' AND TIME_MS > 200"
        }
    }
}

/// The task's next five fires.
async fn coming(world: &World, task: &TaskView) -> Vec<Plan> {
    let window = Window {
        now: world.now,
        until: world.now + 5_000,
        misfire_after_ms: 30_000,
        fires_max: 100,
        doubted_until: i64::MIN,
    };
    let tasks = world.store.tasks(&[task.id]).await.unwrap();
    vec![plan(&tasks[0], window, || world.id()).unwrap()]
}

/// What PostgreSQL counts in a statement is what was there when that began, although it then waits for the row. A task that
/// may fire so many times would stop too early.
async fn fires_that_are_written_while_their_task_is_edited_count_once(kind: Kind) {
    let world = World::sql(kind).await;
    let task = world.started(&TaskSpec { max_fires: 9, ..World::every_second("task") }).await;
    let plans = coming(&world, &task).await;
    let database = world.database.as_ref().unwrap();
    let proxy = Proxy::to(&database.url).await;
    let (writer, now) = (over(&proxy, Duration::from_secs(8)).await, world.now);

    proxy.hold_before("COMMIT");
    let writing = tokio::spawn(async move {
        use carillon::store::PlanStore as _;
        writer.write_ahead(Writer::Node(NodeId(1)), &plans, now).await
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

/// An edit of `task` whose statement with these words comes to the database only after `meanwhile` is done, or waits for it.
async fn edited(
    world: &World,
    task: &TaskView,
    before: &'static str,
    meanwhile: impl Future<Output = usize> + Send + 'static,
) {
    let database = world.database.as_ref().unwrap();
    let proxy = Proxy::to(&database.url).await;
    let (writer, now, change) = (over(&proxy, Duration::from_secs(8)).await, world.now, edit(task));
    proxy.hold_before(before);
    let changing = tokio::spawn(async move { writer.apply_tasks(&[], &[change], now).await });
    proxy.held().await;
    let meanwhile = tokio::spawn(meanwhile);
    await_until("the run has moved, or waits", 10, || async {
        when(meanwhile.is_finished() || database.number(locked(database.kind)).await > 0)
    })
    .await;
    proxy.release();
    changing.await.unwrap().unwrap();
    meanwhile.await.unwrap();
}

/// A run that its executor gives back while its task is edited is given up whole, or stays with the executor as a revoked one.
async fn a_run_that_is_given_back_while_its_task_is_edited_does_not_count(kind: Kind) {
    let world = World::sql(kind).await;
    let task = world.started(&TaskSpec { max_fires: 9, ..World::every_second("task") }).await;
    let runs = world.write(&task, [world.now + 1_000]).await;
    let run = world.dispatched(1, runs, 7).await.remove(0);
    assert_eq!(world.task(task.id).await.fires, 1);
    let store = Arc::clone(&world.store);
    let back = Transition::of(&run, Status::Retry, Reason::GivenBack);
    edited(&world, &task, "SET stopping = CASE", async move { store.change(&[back]).await.unwrap().len() }).await;
    let row = world.row(&run).await.dispatched;
    let fires = world.task(task.id).await.fires;
    match row.run.status {
        Status::Cancelled => assert_eq!(fires, 0, "it will be planned, and counted, again"),
        status => assert_eq!((status, row.stopping, fires), (Status::Dispatched, Reason::TaskEdited, 1)),
    }
}

/// A run by hand that is dispatched while its task is edited is revoked, or was not dispatched.
async fn a_run_that_is_dispatched_while_its_task_is_edited_is_not_overlooked(kind: Kind) {
    let world = World::sql(kind).await;
    let task = world.started(&World::every_second("task")).await;
    let run: LogId = world.id();
    world.admin.start_run(&task, &NewRun::manual(run, world.now)).await.unwrap();
    let run = world.rows(task.id).await.remove(0).dispatched.run;
    let run = world.store.claim(NodeId(1), vec![run], world.now).await.unwrap().remove(0);
    let (store, item) = (Arc::clone(&world.store), dispatch_of(&run, ExecutorId(7), world.now));
    edited(&world, &task, "revision = (SELECT revision", async move {
        store.dispatch(NodeId(1), &[item]).await.unwrap().len()
    })
    .await;
    let row = world.row(&run).await.dispatched;
    match row.run.status {
        Status::Dispatched => assert_eq!(row.stopping, Reason::TaskEdited, "{row:?}"),
        status => assert_eq!((status, row.run.revision), (Status::Init, world.task(task.id).await.revision)),
    }
}

/// A fire that a person cancels while its task is edited counts for `max_fires`, or is given up by the edit.
async fn a_run_that_is_cancelled_while_its_task_is_edited_counts(kind: Kind) {
    let world = World::sql(kind).await;
    let task = world.started(&TaskSpec { max_fires: 9, ..World::every_second("task") }).await;
    world.store.write_ahead(Writer::Node(NodeId(1)), &coming(&world, &task).await, world.now).await.unwrap();
    let run = world.rows(task.id).await.remove(0).dispatched.run;
    assert_eq!(world.task(task.id).await.fires, 5);
    let store = Arc::clone(&world.store);
    let cancelled = Transition::of(&run, Status::Cancelled, Reason::CancelledManually);
    edited(
        &world,
        &task,
        "failures = 0 AND fire_time <",
        async move { store.change(&[cancelled]).await.unwrap().len() },
    )
    .await;
    let (row, fires) = (world.row(&run).await.dispatched.run, world.task(task.id).await.fires);
    assert!(
        matches!((row.reason, fires), (Reason::CancelledManually, 1) | (Reason::TaskEdited, 0)),
        "{row:?}, {fires}"
    );
}
