//! What one tenant's burst does to another tenant's fires.
//!
//! ```text
//! calm (S seconds) ──▶ [writing ahead] ──▶ burst: from the first of its runs that nodes can see
//!                                          to the end of its last one, at least S seconds
//! ```

use crate::database::Database;
use crate::options::{Kind, Variant};
use crate::proc::{self, MemoryWatch};
use crate::records;
use crate::server::Server;
use crate::stand::{Bench, Executor, Stand};
use crate::steady::{STEADY_TASKS, figures, lost};
use crate::tasks::{self, Firing};
use crate::window::sleep_until;
use crate::{progress, report};
use anyhow::{Result, ensure};
use carillon_tests::{FakeExecutor, OnDispatch, now_ms};
use serde_json::{Value, json};
use std::ops::Range;
use std::time::Duration;

/// How far ahead nodes write logs: enough to write the burst, less to wait for than the default.
const AHEAD_S: u32 = 60;

/// The same, ms.
const AHEAD_MS: i64 = AHEAD_S as i64 * 1_000;

/// After the first fires, before the calm is measured, ms.
const WARM_UP_MS: i64 = 8_000;

/// Runs that were written ahead are claimed so long before they are due: the lead and two rounds
/// of the loader, ms.
const CLAIMED_AHEAD_MS: i64 = 13_000;

/// Rows in one statement: as many as an API would write in a moment.
const ROWS: u32 = 2_000;

/// The burst is given up after this long.
const BURST_MAX: Duration = Duration::from_mins(15);

/// Between two looks at how much of the burst is left: it is work for the database.
const LOOK: Duration = Duration::from_secs(1);

/// So much later than before a fire of the other tenant may be, ms.
const DELAY_MAX_MS: f64 = 100.0;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Of the burst.
    pub runs: u32,
    /// Where they come from.
    pub variant: Variant,
    /// Nodes.
    pub nodes: u32,
    /// Length of the calm, and of the burst at least.
    pub seconds: u32,
}

/// Who takes the runs of the burst.
enum Taker {
    Executor(Executor),
    Hanging(Box<FakeExecutor>),
}

/// When what was going on, epoch ms.
struct Phases {
    calm: Range<i64>,
    /// Logs of the burst are written ahead.
    writing: Range<i64>,
    burst: Range<i64>,
}

/// Counters of both ends of the burst, and the most memory in it.
struct Spent {
    node_statements: i64,
    server_statements: Option<i64>,
    node_rss_mb: Vec<f64>,
    machine_percent: f64,
    load: [String; 2],
}

/// Measures on a fresh database.
pub async fn measure(bench: &Bench, plan: Plan) -> Result<Value> {
    let server = &bench.server;
    ensure!(server.kind != Kind::Sqlite || plan.nodes == 1, "SQLite has one node");
    let mut stand = Stand::raise(bench, AHEAD_S).await?;
    for _ in 1..plan.nodes {
        stand.add_node(bench).await?;
    }
    stand.start_executor(bench, u64::from(STEADY_TASKS) * 3_600).await?;
    let app = stand.api.make_app("burst", "burst").await;
    let taker = match plan.variant {
        Variant::Hanging => {
            let fake = FakeExecutor::start(&app, stand.url(), &["bench"], true).await;
            fake.script(|script| script.on_dispatch = OnDispatch::Hang);
            Taker::Hanging(Box::new(fake))
        }
        Variant::Ahead | Variant::Overdue => {
            Taker::Executor(stand.executor_of(bench, &app, u64::from(plan.runs)).await?)
        }
    };
    let fields = json!({ "cron": "0 0 0 1 1 ?", "started": false });
    let template = stand.api.make_task(&app, "template", "bench", fields).await;

    progress(&format!("{STEADY_TASKS} tasks that fire every second"));
    let first = (now_ms() / 1_000 + 5) * 1_000;
    tasks::create(server, &stand, STEADY_TASKS, Firing::EverySecondFrom(first)).await?;
    let (phases, spent, left) = if plan.variant == Variant::Ahead {
        written_ahead(server, &stand, plan, template).await?
    } else {
        overdue(server, &stand, plan, template, first).await?
    };
    tokio::time::sleep(Duration::from_secs(2)).await;
    stand.check_alive()?;

    let file = stand.stop_executor().await?;
    let seen = |window: &Range<i64>| records::read(&file, window);
    let (calm, writing, burst) = (seen(&phases.calm)?, seen(&phases.writing)?, seen(&phases.burst)?);
    let of_burst = match taker {
        Taker::Executor(executor) => {
            let file = executor.stop().await?;
            let seen = records::read(&file, &(0..i64::MAX))?;
            std::fs::remove_file(file)?;
            json!({ "handled": seen.handled, "duplicated": seen.duplicated })
        }
        Taker::Hanging(fake) => json!({ "offered": fake.offered().len() }),
    };
    std::fs::remove_file(file)?;
    let node_log = stand.node_alarms();
    let database = stand.kill_node().await;
    let ended = "tenant_id = (SELECT id FROM tenant WHERE name = 'burst') AND status = 10";
    let succeeded = database.number(&format!("SELECT COUNT(*) FROM task_log WHERE {ended}")).await?;
    let last = database.number(&format!("SELECT MAX(finished_at) FROM task_log WHERE {ended}")).await?;
    let worst = worst(&database, phases.burst.start).await?;
    server.remove(database).await?;

    let begin = phases.burst.start + due_after(plan);
    let took_ms = if left == 0 { Some(last - begin) } else { None };
    let delay = burst.lateness_ms.max - calm.lateness_ms.p50;
    let holds = delay <= DELAY_MAX_MS && lost(&burst, &phases.burst) == 0;
    Ok(json!({
        "burst": plan.runs,
        "variant": plan.variant,
        "nodes": plan.nodes,
        "holds": holds,
        "delay_ms": report::rounded(delay, 1),
        "steady": {
            "calm": figures(&calm, &phases.calm),
            "writing": figures(&writing, &phases.writing),
            "burst": figures(&burst, &phases.burst),
            "worst": worst,
        },
        "of_burst": of_burst,
        "of_burst_succeeded": succeeded,
        "of_burst_left": left,
        "of_burst_took_s": took_ms.map(|ms| report::rounded(ms as f64 / 1_000.0, 1)),
        "of_burst_per_second": took_ms.map(|ms| report::rounded(succeeded as f64 * 1_000.0 / ms as f64, 0)),
        "watched_s": (phases.burst.end - phases.burst.start) / 1_000,
        "statements": spent.server_statements.unwrap_or(spent.node_statements),
        "statements_source": server.statements_source(),
        "node_statements": spent.node_statements,
        "node_rss_mb": spent.node_rss_mb.iter().map(|mb| report::rounded(*mb, 1)).collect::<Vec<_>>(),
        "machine_cpu_percent": report::rounded(spent.machine_percent, 1),
        "load_average": { "start": spent.load[0], "end": spent.load[1] },
        "node_log": node_log,
        "machine": report::machine(),
    }))
}

/// How long after the beginning of its phase a burst is due, ms.
fn due_after(plan: Plan) -> i64 {
    if plan.variant == Variant::Ahead { CLAIMED_AHEAD_MS + 2_000 } else { 0 }
}

/// Tasks whose fires fall on one instant.
async fn written_ahead(server: &Server, stand: &Stand, plan: Plan, template: i64) -> Result<(Phases, Spent, i64)> {
    // Until the tasks are there, their instant is out of reach.
    let far = now_ms() + 6 * 3_600_000;
    progress(&format!("{} tasks that fire at one instant", plan.runs));
    tasks::copy_of(server, stand, template, plan.runs, Firing::DailyAt(far)).await?;
    let seconds = i64::from(plan.seconds) * 1_000;
    let due = (now_ms() / 1_000 + 1) * 1_000 + WARM_UP_MS + seconds + AHEAD_MS + 10_000;
    let moved =
        format!("UPDATE task SET next_fire_at = {due} WHERE started = 1 AND next_fire_at >= {}", far / 1_000 * 1_000);
    stand.database.execute(&moved).await?;
    let writing = due - AHEAD_MS;
    let calm = writing - 2_000 - seconds..writing - 2_000;
    ensure!(now_ms() < calm.start, "making the tasks took too long");
    let begin = due - due_after(plan);
    progress(&format!("calm for {} s, then the burst is written ahead", plan.seconds));
    sleep_until(begin).await;
    let (burst, spent, left) = watch(server, stand, plan, begin, async || Ok(())).await?;
    Ok((Phases { calm, writing: writing..begin, burst }, spent, left))
}

/// Runs that are there at once, due now.
async fn overdue(
    server: &Server,
    stand: &Stand,
    plan: Plan,
    template: i64,
    first: i64,
) -> Result<(Phases, Spent, i64)> {
    let seconds = i64::from(plan.seconds) * 1_000;
    let calm = first + WARM_UP_MS..first + WARM_UP_MS + seconds;
    progress(&format!("calm for {} s", plan.seconds));
    sleep_until(calm.end + 1_000).await;
    let begin = now_ms();
    let insert = async || {
        for done in (0..plan.runs).step_by(ROWS as usize) {
            stand.database.execute(&rows(template, begin, done, ROWS.min(plan.runs - done))).await?;
        }
        progress(&format!("{} runs written in {} ms", plan.runs, now_ms() - begin));
        Ok(())
    };
    let (burst, spent, left) = watch(server, stand, plan, begin, insert).await?;
    Ok((Phases { calm, writing: begin..begin, burst }, spent, left))
}

/// Waits until the burst has ended and S seconds have passed; answers how long it was watched, what
/// that cost and how many of its runs have not ended.
async fn watch(
    server: &Server,
    stand: &Stand,
    plan: Plan,
    begin: i64,
    bring_about: impl AsyncFnOnce() -> Result<()>,
) -> Result<(Range<i64>, Spent, i64)> {
    let load = load_average()?;
    let memory = MemoryWatch::start(stand.nodes());
    let (nodes, of_server) = (stand.statements_of_nodes().await?, server.statements(&stand.database).await?);
    let (machine, at) = (proc::machine_ticks()?, now_ms());
    bring_about().await?;
    let at_least = begin + due_after(plan) + i64::from(plan.seconds) * 1_000;
    let deadline = begin + BURST_MAX.as_millis() as i64;
    let (mut left, mut looks) = (i64::from(plan.runs), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let now = now_ms();
        // What never ends is not counted.
        if plan.variant != Variant::Hanging && now > begin + due_after(plan) {
            left = open(stand, plan).await?;
            looks += 1;
        }
        let ended = left == 0 || plan.variant == Variant::Hanging;
        if (ended && now >= at_least) || now > deadline {
            break;
        }
    }
    let end = now_ms();
    let busy_us = (proc::machine_ticks()? - machine) as f64 * proc::tick_us()? as f64;
    let by_server = server.statements(&stand.database).await?;
    // The looks are the driver's own; MariaDB counts them.
    let looks = if server.kind == Kind::Mariadb { looks + i64::from(plan.runs.div_ceil(ROWS)) } else { 0 };
    let spent = Spent {
        node_statements: stand.statements_of_nodes().await? - nodes - i64::from(plan.nodes),
        server_statements: by_server.zip(of_server).map(|(end, start)| end - start - looks),
        node_rss_mb: memory.finish()?,
        machine_percent: busy_us / (end - at) as f64 / 10.0,
        load: [load, load_average()?],
    };
    Ok((begin..end - 1_000, spent, left))
}

/// Runs of the burst that have not ended; those of the other tenant are few.
async fn open(stand: &Stand, plan: Plan) -> Result<i64> {
    let due = if plan.variant == Variant::Ahead { now_ms() } else { i64::MAX };
    let sql = format!(
        "SELECT COUNT(*) FROM task_log WHERE status IN (0, 1, 2, 3) AND due_time < {due} AND tenant_id = \
         (SELECT id FROM tenant WHERE name = 'burst')"
    );
    stand.database.number(&sql).await
}

/// Writes runs as if they had been started manually, all due at `due` (epoch ms).
fn rows(task: i64, due: i64, done: u32, count: u32) -> String {
    format!(
        "INSERT INTO task_log (id, tenant_id, app_id, task_id, revision, parent_id, shard_index, shard_total, bucket, \
         fire_time, due_time, status, version, attempt, failures, node_id, executor_id, queued_at, dispatched_at, \
         started_at, finished_at, reason, trigger_kind, seq, priority, stopping) \
         WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49), \
         m(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i < 49), \
         r(i) AS (SELECT {done} + n.i * 50 + m.i FROM n JOIN m ON 1 = 1 WHERE n.i * 50 + m.i < {count}) \
         SELECT t.id + 1 + r.i, t.tenant_id, t.app_id, t.id, t.revision, 0, 0, 1, r.i * 37 % 1024, {due} - r.i, {due}, \
         0, 1, 0, 0, 0, 0, 0, 0, 0, 0, '', 'manual', 0, t.priority, '' FROM r JOIN task t ON t.id = {task}"
    )
}

/// The way of the latest fire of the other tenant since `begin` (epoch ms): each step by the
/// nodes' clock, after its due time.
async fn worst(database: &Database, begin: i64) -> Result<Value> {
    let sql = format!(
        "SELECT due_time - {begin}, queued_at - due_time, dispatched_at - due_time, started_at - due_time, attempt \
         FROM task_log WHERE tenant_id = (SELECT id FROM tenant WHERE name = 'bench') AND status = 10 AND \
         due_time >= {begin} ORDER BY started_at - due_time DESC LIMIT 1"
    );
    let rows = database.query(&sql).await?;
    let Some(row) = rows.first() else { return Ok(Value::Null) };
    let ms = |at| row.try_get_by_index::<i64>(at);
    Ok(json!({
        "due_in_burst_ms": ms(0)?,
        "claimed_ms": ms(1)?,
        "dispatched_ms": ms(2)?,
        "started_ms": ms(3)?,
        "attempt": row.try_get_by_index::<i32>(4)?,
    }))
}

/// Processes that want to run, over one and five minutes.
fn load_average() -> Result<String> {
    let text = std::fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(2).collect::<Vec<_>>().join(" "))
}
