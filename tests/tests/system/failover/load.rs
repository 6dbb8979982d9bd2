//! What runs while servers fail, and what must have become of it.

use carillon_tests::fires::assert_all;
use carillon_tests::wait::{sample, when};
use carillon_tests::{Api, App, Fires, LogRow, Start, Status, World, await_until, now_ms};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Tasks that are repeated when their outcome is unknown, each every second.
const AT_LEAST_ONCE: usize = 24;

/// Tasks that are not, each every second.
const AT_MOST_ONCE: usize = 12;

/// Under load, on a machine that tests share. ms
const ON_TIME_MS: i64 = 1_500;

/// Three dozen runs a second.
pub struct Load {
    tasks: Vec<i64>,
    at_most_once: HashSet<i64>,
    made_at: i64,
    /// What had ended when somebody looked; it may not change any more.
    ended: HashMap<i64, LogRow>,
}

impl Load {
    /// Makes the tasks, and waits until every one of them has run.
    pub async fn begin(world: &World, api: &Api, app: &App) -> Self {
        let mut load = Self { tasks: Vec::new(), at_most_once: HashSet::new(), made_at: 0, ended: HashMap::new() };
        for number in 0..AT_LEAST_ONCE + AT_MOST_ONCE {
            let delivery = if number < AT_LEAST_ONCE { "at_least_once" } else { "at_most_once" };
            // An outage of the database is no failure of the handler: no retry may be used up.
            let fields = json!({ "cron": "* * * * * ?", "max_retries": 0, "delivery": delivery });
            let task = api.make_task(app, &format!("{delivery} {number}"), "tick", fields).await;
            load.tasks.push(task);
            if delivery == "at_most_once" {
                load.at_most_once.insert(task);
            }
        }
        load.made_at = now_ms();
        for task in &load.tasks {
            world.await_successes(*task, 3).await;
        }
        load
    }

    /// What lies with executors now; whatever has ended by now stays as it is.
    pub async fn look(&mut self, world: &World) -> Vec<LogRow> {
        let ended = world.database.logs("status >= 10").await;
        self.ended.extend(ended.into_iter().map(|row| (row.id, row)));
        world.database.logs("status = 2").await
    }

    /// Everything is as it must be after faults of the database alone: every fire has its row and has ended well, once.
    pub async fn check(self, world: &World) -> (Vec<LogRow>, Vec<Start>) {
        let until = now_ms() - 3_000;
        let (rows, starts) = world.settle_and_check().await;
        let mut of_task: HashMap<i64, Vec<LogRow>> = HashMap::new();
        for row in &rows {
            if let Some(before) = self.ended.get(&row.id) {
                assert_eq!(row, before, "what was acknowledged is taken back");
            }
            of_task.entry(row.task).or_default().push(row.clone());
        }
        let mut due = Vec::new();
        for task in &self.tasks {
            due.extend(Fires::every(1, &of_task[task]).assert_no_gap().between(self.made_at + 2_000, until));
        }
        // Executors never died, and journals are whole: every outcome is known in the end.
        assert_all("succeeded without a failure", &due, |row| row.status == Status::Succeeded && row.failures == 0);
        self.started_once(&rows, &starts);
        (rows, starts)
    }

    /// No run has started twice, at-most-once ones in particular, and whatever has started has ended well.
    fn started_once(&self, rows: &[LogRow], starts: &[Start]) {
        let rows: HashMap<i64, &LogRow> = rows.iter().map(|row| (row.id, row)).collect();
        let mut seen = HashSet::new();
        let twice: Vec<_> =
            starts.iter().filter(|start| !seen.insert(start.log)).map(|start| rows[&start.log]).collect();
        assert!(twice.is_empty(), "started twice: {}", sample(&twice));
        assert!(starts.iter().any(|start| self.at_most_once.contains(&start.task)), "no at-most-once run started");
        let lost: Vec<_> =
            starts.iter().map(|start| rows[&start.log]).filter(|row| row.status != Status::Succeeded).collect();
        assert!(lost.is_empty(), "ran, and the row does not say so: {}", sample(&lost));
    }
}

/// What lay with executors when the database went, and was due in this time (epoch ms), has started all the same. Asked while
/// the database is still away.
pub fn assert_held_started(starts: &[Start], held: &[LogRow], due: Range<i64>) {
    let due: Vec<&LogRow> = held.iter().filter(|row| due.contains(&row.due_time)).collect();
    assert!(!due.is_empty(), "executors held nothing: {}", sample(held));
    for row in due {
        assert!(starts.iter().any(|start| start.log == row.id), "held when the database went, not started: {row:?}");
    }
}

/// Waits until runs that are due from now on have succeeded, and those of three seconds have all started on time.
pub async fn await_going_on(world: &World) {
    let from = now_ms();
    let fresh = format!("status = 10 AND fire_time > {from}");
    let enough = 3 * (AT_LEAST_ONCE + AT_MOST_ONCE) as i64;
    let count =
        async |which: &str| world.database.number(&format!("SELECT COUNT(*) FROM task_log WHERE {which}")).await;
    await_until("runs go on", 60, || async { when(count(&fresh).await >= enough) }).await;
    await_until("runs are on time again", 60, || async {
        let until = now_ms() - 3_000;
        let past = format!("fire_time > {} AND fire_time <= {until}", until - 3_000);
        when(count(&format!("{past} AND started_at > 0 AND started_at < due_time + {ON_TIME_MS}")).await >= enough)
    })
    .await;
}
