//! An executor dies, or cannot be reached.

use crate::sharing::every_second;
use carillon_protocol::{Code, Register};
use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::node::QUICK;
use carillon_tests::wait::{sample, when};
use carillon_tests::{FakeExecutor, Fires, Kind, LogRow, OnHealth, Status, World, await_until, now_ms, pass};
use serde_json::json;

scenario!(executor_killed_between_acceptance_and_due: sqlite mariadb postgres);
scenario!(executor_unreachable_means_another_at_once: sqlite mariadb postgres);
scenario!(a_proxy_that_refuses_proves_nothing: sqlite mariadb);
scenario!(only_a_process_of_its_app_proves_that_it_is_gone: sqlite mariadb);
scenario!(executor_restarted_on_the_same_port_leaves_nothing_running: sqlite mariadb postgres);

async fn executor_killed_between_acceptance_and_due(kind: Kind) {
    let world = World::new(kind).await;
    // Soon after the executor is offline its running handlers count as stopped, too.
    let settings = [QUICK, &[("schedulers.before_interval", "3s"), ("executors.abandon_after", "5s")]].concat();
    world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let victim = world.executor("e1", &app).await;
    world.executor("e2", &app).await;
    let often = every_second(&api, &app, 4).await;
    let mut once = Vec::new();
    for number in 0..2 {
        let fields = json!({ "cron": "* * * * * ?", "delivery": "at_most_once" });
        once.push(api.make_task(&app, &format!("at most once {number}"), "tick", fields).await);
    }
    let made_at = now_ms();
    pass(5.0).await;
    let id = world.database.executor_at(victim.port).await;
    let held = format!("status = 2 AND executor_id = {id}");
    let held = await_until("the executor holds runs that are not due", 20, || async {
        let held = world.database.logs(&format!("{held} AND due_time > {}", now_ms() + 1_500)).await;
        (!held.is_empty()).then_some(held)
    })
    .await;
    world.kill9(&victim).await;
    pass(6.0).await;
    for row in &held {
        its_runs_went_elsewhere(&world, row).await;
    }
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    let fires = |task: i64| {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        Fires::every(1, &of_task).assert_no_gap().between(made_at + 4_000, until)
    };
    for task in often {
        assert_all("succeeded", &fires(task), |row| row.status == Status::Succeeded);
    }
    for task in once {
        assert_all("ended well, or failed because the outcome is unknown", &fires(task), |row| {
            row.status == Status::Succeeded || (row.status == Status::Failed && row.reason == "outcome_unknown")
        });
        for row in rows.iter().filter(|row| row.task == task) {
            let count = starts.iter().filter(|start| start.log == row.id).count();
            assert!(count <= 1, "an at-most-once run started {count} times: {row:?}");
        }
    }
}

async fn its_runs_went_elsewhere(world: &World, before: &LogRow) {
    let row = await_until(&format!("log {} has ended", before.id), 60, || async {
        let row = world.database.log(before.id).await;
        row.status.is_terminal().then_some(row)
    })
    .await;
    let is_lost = row.status == Status::Failed && row.reason == "outcome_unknown";
    assert!(
        is_lost || (row.status == Status::Succeeded && row.executor != before.executor && row.attempt > before.attempt),
        "held by the dead executor:\n  {before:?}\n  {row:?}"
    );
}

/// X10: a dead address must not swallow runs; the lead is long enough for another executor.
async fn executor_unreachable_means_another_at_once(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let fake = FakeExecutor::start(&app, &node.url, &["tick"], false).await;
    let tasks = every_second(&api, &app, 4).await;
    let made_at = now_ms();
    pass(11.0).await;
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    let mut fires = Vec::new();
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        fires.extend(Fires::every(1, &of_task).assert_no_gap().between(made_at + 2_000, until));
    }
    assert_all("succeeded", &fires, |row| row.status == Status::Succeeded && row.failures == 0);
    let late = fired_within(&fires, made_at + 6_000, until);
    assert_on_time("one of two executors unreachable", &late, &starts, 1_500);
    let steady: Vec<_> = starts.iter().filter(|start| start.fire_time > made_at + 6_000).collect();
    let tardy: Vec<_> = steady.iter().filter(|start| start.late_ms() > 1_500).collect();
    assert!(tardy.is_empty(), "late after a failed dispatch: {}", sample(&tardy));
    assert_all("never with the unreachable one at the end", &fires, |row| row.executor != fake.executor_id());
}

/// Who is refused at the address of an executor's own machine knows that it is gone; a proxy refuses while the executor behind it
/// is well.
async fn a_proxy_that_refuses_proves_nothing(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", QUICK).await;
    let api = world.api();
    let mut silent = Vec::new();
    for own_address in [true, false] {
        let name = if own_address { "direct" } else { "behind-a-proxy" };
        let app = api.make_app("retail", name).await;
        let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
        fake.script(|script| script.auto_results = false);
        let task = api.make_task(&app, name, "job", json!({ "max_retries": 0 })).await;
        let log = api.run(task, None).await;
        fake.next_running(task, &[]).await;
        fake.script(|script| script.beats = false);
        // Nobody listens there any more.
        let address = "http://127.0.0.1:1".to_owned();
        let moved = Register { address, own_address, ..fake.description() };
        assert_eq!(fake.send("/openapi/executors/register", &moved).await.code(), Code::Ok);
        silent.push((fake, log));
    }
    let reason = async |log: i64| {
        let row = world.database.log(log).await;
        (row.status, row.reason)
    };
    let gone = (Status::Failed, "outcome_unknown".to_owned());
    await_until("the direct one is known to be gone", 60, || async { when(reason(silent[0].1).await == gone) }).await;
    assert_eq!(reason(silent[1].1).await.0, Status::Dispatched, "nobody knows of the one behind a proxy");
    // It ends its run itself when it has heard nothing for so long.
    await_until("the time has passed", 60, || async { when(reason(silent[1].1).await == gone) }).await;
}

/// Whoever else answers at its address, by mistake or on purpose, says nothing of it.
async fn only_a_process_of_its_app_proves_that_it_is_gone(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.node("a", QUICK).await;
    let api = world.api();
    let stranger = world.executor("stranger", &api.make_app("retail", "stranger").await).await;
    let strangers_port = format!("http://127.0.0.1:{}", stranger.port);
    let mut silent = Vec::new();
    for (name, on_health) in [
        ("successor", OnHealth::Successor),
        ("forger", OnHealth::Forged),
        ("older", OnHealth::Older),
        ("mute", OnHealth::Drop),
        ("taken-over", OnHealth::Drop),
    ] {
        let app = api.make_app("retail", name).await;
        let fake = FakeExecutor::start(&app, &node.url, &["job"], true).await;
        fake.script(|script| (script.auto_results, script.on_health) = (false, on_health));
        let task = api.make_task(&app, name, "job", json!({ "max_retries": 0 })).await;
        let log = api.run(task, None).await;
        fake.next_running(task, &[]).await;
        if name == "taken-over" {
            let moved = Register { address: strangers_port.clone(), ..fake.description() };
            assert_eq!(fake.send("/openapi/executors/register", &moved).await.code(), Code::Ok);
        }
        silent.push((name, fake, log));
    }
    for (_, fake, _) in &silent {
        fake.script(|script| script.beats = false);
    }
    let gone = async |log: i64| world.database.log(log).await.reason == "outcome_unknown";
    let (successor, others) = silent.split_first().expect("five of them");
    await_until("the replaced one is known to be gone", 60, || async { when(gone(successor.2).await) }).await;
    for (name, _, log) in others {
        assert_eq!(world.database.log(*log).await.status, Status::Dispatched, "{name} proves nothing");
    }
    for (name, _, log) in others {
        await_until(&format!("the time of {name} has passed"), 60, || async { when(gone(*log).await) }).await;
    }
}

/// X8: "address gone" is not "run gone", nor the other way round: an executor that is killed and
/// started again at once on its port has forgotten its runs, and they run again.
async fn executor_restarted_on_the_same_port_leaves_nothing_running(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let victim = world.executor("e1", &app).await;
    let fields = json!({ "params": "4000", "max_retries": 3, "retry_interval_ms": 100 });
    let task = api.make_task(&app, "long", "sleep", fields).await;
    let log = api.run(task, None).await;
    await_until("the run goes on", 30, || async { when(world.database.log(log).await.status == Status::Dispatched) })
        .await;
    pass(1.0).await;
    let before = world.database.log(log).await;
    world.kill9(&victim).await;
    let killed_at = now_ms();
    let options = carillon_tests::executor::Options { port: victim.port, ..Default::default() };
    world.executor_with("e1 again", &app, &options).await;
    let row = await_until("the run has ended", 60, || async {
        let row = world.database.log(log).await;
        row.status.is_terminal().then_some(row)
    })
    .await;
    assert_eq!((row.status, row.attempt, row.failures), (Status::Succeeded, 2, 1), "{row:?}");
    assert_ne!(row.executor, before.executor, "{row:?}");
    assert!(row.finished_at - killed_at < 40_000, "noticed late: {row:?}");
    world.settle_and_check().await;
}
