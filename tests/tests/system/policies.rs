//! Too late: misfire after downtime, and expiry.

use carillon::domain::instant::local_words;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Fires, Kind, LogRow, Status, World, await_until, now_ms, pass};
use chrono_tz::Tz;
use serde_json::json;

scenario!(misfire_after_downtime: sqlite mariadb postgres);
scenario!(expired_runs_are_discarded: sqlite mariadb postgres);

/// H3, H4: every missed fire leaves a row that says why it did not run, or which run stands for it.
async fn misfire_after_downtime(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [
        ("schedulers.task_pre_generation_max_time", "6s"),
        ("schedulers.pre_generation_interval", "1s"),
        ("schedulers.misfire_after", "4s"),
    ];
    let node = world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let executor = world.executor("e1", &app).await;
    let make = |name: &'static str, strategy: &'static str| {
        let fields = json!({ "cron": "* * * * * ?", "misfire_strategy": strategy });
        api.make_task(&app, name, "tick", fields)
    };
    let skips = make("skip", "skip").await;
    let fires_once = make("fire once", "fire_once").await;
    world.await_successes(fires_once, 3).await;
    assert_eq!(node.process.sigterm(30).await, Some(0), "{}", node.process.log_digest());
    let down_at = now_ms();
    pass(16.0).await;
    let node = world.unready_node("a", node.port, &settings);
    node.ready().await;
    let up_at = now_ms();
    assert!(executor.process.is_running());
    let fresh =
        format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND task_id = {fires_once} AND fire_time > {up_at}");
    await_until("fires after the downtime succeed", 40, || async { when(world.database.number(&fresh).await > 2) })
        .await;
    let (rows, starts) = world.settle_and_check().await;

    let skipped = missed(&rows, skips, down_at, up_at);
    assert_all("skipped", &skipped, is_left_out);
    let made_up_for = missed(&rows, fires_once, down_at, up_at);
    let (last, before) = made_up_for.split_last().expect("some were missed");
    assert_eq!((last.status, last.reason.as_str()), (Status::Succeeded, ""), "{last:?}");
    assert!(starts.iter().any(|start| start.log == last.id), "{last:?}");
    assert_all("stood for by the last one", before, |row| {
        is_left_out(row) && row.message.contains(&format!("the run of {}", local_words(last.fire_time, Tz::UTC)))
    });
    let ran = |row: &LogRow| starts.iter().any(|start| start.log == row.id);
    assert_all("left out without a start", &[&skipped, before].concat(), |row| !ran(row));
}

fn is_left_out(row: &LogRow) -> bool {
    row.status == Status::Expired && row.reason == "misfire_skipped"
}

/// The rows of the missed fires, one after the other; no fire of the task is missing.
fn missed(rows: &[LogRow], task: i64, down_at: i64, up_at: i64) -> Vec<LogRow> {
    let of_task: Vec<LogRow> = rows.iter().filter(|row| row.task == task).cloned().collect();
    let _ = Fires::every(1, &of_task).assert_no_gap();
    let missed: Vec<LogRow> = of_task.into_iter().filter(|row| row.trigger == "misfire").collect();
    // Those of the first seconds had been written ahead; those of the last are merely late.
    assert!(missed.len() >= 3, "only {} were missed: {}", missed.len(), sample(&missed));
    assert_all("within the downtime", &missed, |row| (down_at..up_at).contains(&row.fire_time));
    assert!(missed.windows(2).all(|pair| pair[1].fire_time - pair[0].fire_time == 1_000), "{}", sample(&missed));
    missed
}

/// H11: expired is written where it belongs, and only there.
async fn expired_runs_are_discarded(kind: Kind) {
    const EXPIRE_AFTER_MS: i64 = 2_000;
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fields = json!({
        "cron": "* * * * * ?", "expired_strategy": "discard", "expire_after_ms": EXPIRE_AFTER_MS, "max_retries": 1000,
    });
    // No executor is there yet: the runs wait, and go bad.
    let task = api.make_task(&app, "fresh only", "tick", fields).await;
    let made_at = now_ms();
    pass(9.0).await;
    world.executor("e1", &app).await;
    let there_at = now_ms();
    world.await_successes(task, 5).await;
    pass(3.0).await;
    let until = now_ms() - 2_000;
    let (rows, starts) = world.settle_and_check().await;
    let fires = Fires::every(1, &rows).assert_no_gap().between(made_at + 1_000, until);
    let (bad, good): (Vec<_>, Vec<_>) = fires.into_iter().partition(|row| row.fire_time < there_at - 4_000);
    assert!(bad.len() > 2);
    assert_all("expired", &bad, |row| row.status == Status::Expired && row.reason == "expired");
    assert_all("expired after its time", &bad, |row| row.finished_at > row.fire_time + EXPIRE_AFTER_MS);
    let late: Vec<_> = starts.iter().filter(|start| start.late_ms() > EXPIRE_AFTER_MS + 1_500).collect();
    assert!(late.is_empty(), "run although expired: {}", sample(&late));
    let fresh: Vec<_> = good.into_iter().filter(|row| row.fire_time > there_at + 5_000).collect();
    assert_all("succeeded", &fresh, |row| row.status == Status::Succeeded);
}
