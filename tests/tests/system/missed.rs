//! Missed fires: each strategy, after a downtime in which nothing was written and one in which
//! everything was.

use carillon::domain::instant::local_words;
use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Fires, Kind, LogRow, Start, Status, World, await_until, now_ms, pass};
use chrono_tz::Tz;
use serde_json::{Value, json};
use std::collections::HashMap;

scenario!(nothing_was_written_ahead: sqlite mariadb);
scenario!(everything_was_written_ahead: sqlite mariadb);
scenario!(what_waited_for_its_turn_was_not_missed: sqlite postgres);

const MISFIRE_MS: i64 = 2_000;
const MAX_LATE_MS: i64 = 9_000;
const EXPIRE_MS: i64 = 4_000;

struct Outcome {
    rows: Vec<LogRow>,
    starts: Vec<Start>,
    /// Rows that had been written before the downtime were claimed later than this, ms.
    late_ms: i64,
    /// When each was claimed.
    queued_at: HashMap<i64, i64>,
    tasks: HashMap<&'static str, i64>,
    down_at: i64,
    up_at: i64,
}

impl Outcome {
    fn ran(&self, row: &LogRow) -> bool {
        self.starts.iter().any(|start| start.log == row.id)
    }

    /// Fires of the downtime that count as missed, and ran or not, by time.
    fn missed(&self, name: &str) -> (Vec<LogRow>, Vec<LogRow>) {
        let of_task: Vec<LogRow> = self.rows.iter().filter(|row| row.task == self.tasks[name]).cloned().collect();
        let _ = Fires::every(1, &of_task).assert_no_gap();
        let is_missed = |row: &LogRow| {
            (self.down_at..self.up_at).contains(&row.fire_time)
                && (row.trigger == "misfire" || row.fire_time < self.queued_at[&row.id] - self.late_ms)
        };
        let missed: Vec<LogRow> = of_task.into_iter().filter(is_missed).collect();
        assert!(missed.len() >= 4, "{name}: hardly anything was missed: {}", sample(&missed));
        let (ran, left_out): (Vec<_>, Vec<_>) = missed.into_iter().partition(|row| self.ran(row));
        for row in &ran {
            assert_eq!((row.status, row.reason.as_str()), (Status::Succeeded, ""), "{name}: {row:?}");
        }
        for row in &left_out {
            assert!(row.status == Status::Expired && !row.message.is_empty(), "{name}: {row:?}");
        }
        (ran, left_out)
    }

    /// All that was left out says one of `words`, and was before what ran.
    fn assert_left_out(&self, name: &str, words: &[&str]) -> Vec<LogRow> {
        let (ran, left_out) = self.missed(name);
        for row in &left_out {
            let says = words.iter().any(|word| row.message.contains(word));
            assert!(row.reason == "misfire_skipped" && says, "{name}: {row:?}");
        }
        if let (Some(first), Some(last)) = (ran.first(), left_out.last()) {
            assert!(last.fire_time < first.fire_time, "{name}: not the latest ran: {last:?} {first:?}");
        }
        ran
    }
}

fn strategies() -> Vec<(&'static str, Value)> {
    let every_second = |mut fields: Value| {
        fields["cron"] = "* * * * * ?".into();
        fields
    };
    vec![
        ("skip", every_second(json!({ "misfire_strategy": "skip" }))),
        ("once", every_second(json!({ "misfire_strategy": "fire_once" }))),
        ("three", every_second(json!({ "misfire_strategy": "fire_all", "misfire_max": 3 }))),
        (
            "not too late",
            every_second(json!({
                "misfire_strategy": "fire_all", "misfire_max": 100, "misfire_max_late_ms": MAX_LATE_MS,
            })),
        ),
        (
            "expiring",
            every_second(json!({
                "misfire_strategy": "fire_all", "misfire_max": 100, "expired_strategy": "discard",
                "expire_after_ms": EXPIRE_MS,
            })),
        ),
    ]
}

async fn after_downtime(
    kind: Kind,
    ahead: &str,
    late_ms: i64,
    downtime_s: f64,
    more: Vec<(&'static str, Value)>,
) -> Outcome {
    let world = World::new(kind).await;
    let settings = [
        ("schedulers.task_pre_generation_max_time", ahead),
        ("schedulers.pre_generation_interval", "1s"),
        ("schedulers.misfire_after", "2s"),
    ];
    let node = world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let mut tasks = HashMap::new();
    for (name, fields) in strategies().into_iter().chain(more) {
        tasks.insert(name, api.make_task(&app, name, "tick", fields).await);
    }
    world.await_successes(tasks["once"], 3).await;
    if let Some(rare) = tasks.get("rare") {
        world.await_successes(*rare, 1).await;
    }
    assert_eq!(node.process.sigterm(30).await, Some(0), "{}", node.process.log_digest());
    let down_at = now_ms();
    pass(downtime_s).await;
    let up_at = now_ms();
    world.unready_node("a", node.port, &settings).ready().await;
    let fresh = now_ms();
    for task in tasks.values() {
        let fresh = format!("task_id = {task} AND status = 10 AND fire_time > {fresh}");
        await_until("it fires after the downtime", 60, || async {
            when(!world.database.logs(&fresh).await.is_empty())
        })
        .await;
    }
    let (rows, starts) = world.end_well().await;
    let queued = world.database.query("SELECT id, queued_at FROM task_log", |row| {
        Ok((row.try_get_by_index::<i64>(0)?, row.try_get_by_index::<i64>(1)?))
    });
    let queued_at = queued.await.into_iter().collect();
    Outcome { rows, starts, late_ms, queued_at, tasks, down_at, up_at }
}

/// Rows of the first seconds were written, those of the rest were not.
async fn nothing_was_written_ahead(kind: Kind) {
    let rare = json!({ "schedule": "fixed_delay", "interval_ms": 8_500, "misfire_strategy": "skip" });
    // What was just not missed when the node came up may be by the time it is claimed: that is not looked at.
    let outcome = after_downtime(kind, "7s", 2 * MISFIRE_MS, 16.0, vec![("rare", rare)]).await;
    assert_eq!(outcome.assert_left_out("skip", &["skipped by policy"]), []);

    let once = outcome.assert_left_out("once", &["stands for it"]);
    assert_eq!(once.len(), 1, "one run for all that were missed: {}", sample(&once));
    let (_, left_out) = outcome.missed("once");
    let says = format!("the run of {}", local_words(once[0].fire_time, Tz::UTC));
    assert!(left_out.last().unwrap().message.contains(&says), "{left_out:?}");

    let three = outcome.assert_left_out("three", &["only the latest 3"]);
    assert_eq!(three.len(), 3, "{}", sample(&three));
    assert_eq!(three[2].fire_time - three[0].fire_time, 2_000, "the latest three: {}", sample(&three));

    let not_too_late = outcome.assert_left_out("not too late", &["late"]);
    assert!(!not_too_late.is_empty());
    let late = |row: &LogRow| row.due_time.max(outcome.up_at) - row.fire_time;
    assert!(late(&not_too_late[0]) <= MAX_LATE_MS, "{:?}", not_too_late[0]);

    // Fires that were not written are caught up by policy, and do not expire for being late.
    let (ran, left_out) = outcome.missed("expiring");
    assert!(ran.iter().all(|row| row.trigger == "misfire") && ran.len() > 3, "{}", sample(&ran));
    assert!(left_out.iter().all(|row| row.reason == "expired" && row.trigger == "schedule"), "{}", sample(&left_out));
    // The chain of a fixed delay does not break at the fire that was left out.
    let rare: Vec<&LogRow> = outcome.rows.iter().filter(|row| row.task == outcome.tasks["rare"]).collect();
    assert!(rare.iter().any(|row| row.reason == "misfire_skipped"), "{rare:?}");
}

/// Every row was there; the node came too late to claim it.
async fn everything_was_written_ahead(kind: Kind) {
    let outcome = after_downtime(kind, "3m", MISFIRE_MS, 12.0, Vec::new()).await;
    assert!(outcome.rows.iter().all(|row| row.trigger == "schedule"));
    assert_eq!(outcome.assert_left_out("skip", &["skipped by policy"]), []);
    let once = outcome.assert_left_out("once", &["a later fire stands for it"]);
    assert_eq!(once.len(), 1, "{}", sample(&once));
    let three = outcome.assert_left_out("three", &["only the latest 3"]);
    assert_eq!(three.len(), 3, "{}", sample(&three));
    let not_too_late = outcome.assert_left_out("not too late", &["not made up for"]);
    let late = |row: &LogRow| outcome.queued_at[&row.id] - row.fire_time;
    assert!(not_too_late.iter().all(|row| late(row) <= MAX_LATE_MS), "{}", sample(&not_too_late));
    assert!(!not_too_late.is_empty());
    let (ran, left_out) = outcome.missed("expiring");
    assert!(left_out.iter().all(|row| row.reason == "expired"), "{}", sample(&left_out));
    assert!(left_out.iter().all(|row| row.finished_at > row.fire_time + EXPIRE_MS), "{}", sample(&left_out));
    assert!(!left_out.is_empty() && ran.len() <= 4, "{} {}", sample(&ran), sample(&left_out));
}

/// A serial backlog of which every run has waited for longer than a missed fire is late: it waits on at the next process of its
/// node, however the one before it ended.
async fn what_waited_for_its_turn_was_not_missed(kind: Kind) {
    let world = World::new(kind).await;
    let settings = [("schedulers.misfire_after", "2s")];
    let mut node = world.node("a", &settings).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    world.executor("e1", &app).await;
    let go_on = carillon_tests::folder::fresh("backlog").join("go on");
    let fields = json!({
        "cron": "* * * * * ?", "misfire_strategy": "skip", "block_strategy": "serial", "block_scope": "app",
        "params": json!({ "ms": 300_000, "until": go_on }).to_string(),
    });
    let task = api.make_task(&app, "serial", "overlap", fields).await;
    world.await_inside(task, 1).await;
    let mut backlog: Vec<LogRow> = Vec::new();
    for is_asked_to_end in [true, false] {
        let waiting = || async {
            let rows = world.database.logs_of(task).await;
            let (before, since): (Vec<_>, Vec<_>) =
                rows.into_iter().partition(|row| backlog.iter().any(|before| before.id == row.id));
            assert_all("waits on", &before, |row| !row.status.is_terminal());
            let late = now_ms() - MISFIRE_MS;
            let waits =
                |row: &LogRow| row.status == Status::Queued && row.reason == "task_limit" && row.due_time < late;
            let more: Vec<LogRow> = since.into_iter().filter(waits).collect();
            (before.iter().all(waits) && more.len() >= 5).then(|| [before, more].concat())
        };
        let waiting = await_until("those of before wait again, and more with them", 90, waiting).await;
        backlog = waiting;
        if is_asked_to_end {
            assert_eq!(node.process.sigterm(30).await, Some(0), "{}", node.process.log_digest());
        } else {
            node.process.kill9().await;
        }
        node = world.unready_node("a", node.port, &settings);
        node.ready().await;
    }
    std::fs::write(&go_on, "").unwrap();
    let rows = world.await_ends(&backlog.iter().map(|row| row.id).collect::<Vec<_>>()).await;
    assert_all("ran, although late", &rows, |row| row.status == Status::Succeeded && row.attempt == 1);
    api.stop(task).await;
    world.settle_and_check().await;
}
