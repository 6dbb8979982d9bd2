//! One measurement: tasks that fire every second, a warm-up, a window.

use crate::database::Database;
use crate::old_logs::OldLogs;
use crate::options::{Kind, Protocol};
use crate::plain;
use crate::plan::Plan;
use crate::records::{self, Seen};
use crate::stand::{Bench, Stand};
use crate::tasks::{self, Firing};
use crate::window::{self, Observed, SETTLE_MAX};
use crate::{progress, steady};
use anyhow::{Result, ensure};
use carillon_tests::now_ms;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// Rows per second that a database is supposed to write before the first fire. Only the comfort
/// of the warm-up hangs on it.
const ROWS_PER_SECOND: u32 = 20_000;

/// First fire of the tasks beside, after now, ms: no measurement lasts so long.
const FAR_MS: i64 = 6 * 3_600_000;

/// What was measured.
pub struct Run {
    /// What was asked for.
    pub plan: Plan,
    /// By the handler.
    pub seen: Seen,
    /// Rows of the window by status, after it has settled.
    pub rows: BTreeMap<&'static str, i64>,
    /// By everything else.
    pub observed: Observed,
    /// What becomes old meanwhile.
    pub old: Option<Table>,
    /// What the nodes complained of.
    pub node_log: Value,
    /// Who counted the statements.
    pub statements_source: &'static str,
}

/// Old logs, and the table at the end.
pub struct Table {
    /// What was put in beforehand.
    pub logs: OldLogs,
    /// By its own count once the nodes had ended, and by what was written and deleted until then.
    pub rows: (i64, i64),
}

/// Measures on a fresh database.
pub async fn measure(bench: &Bench, plan: Plan) -> Result<Run> {
    let server = &bench.server;
    let load = plan.load;
    ensure!(server.kind != Kind::Sqlite || load.nodes == 1, "SQLite has one node: leave out --nodes");
    let mut stand = Stand::raise(bench, plan.ahead_s).await?;
    for _ in 1..load.nodes {
        stand.add_node(bench).await?;
    }
    stand.add_tenants(server.kind, load.tenants - 1).await?;
    let old = if plan.retention {
        Some(OldLogs::write(plan, server.kind, &stand.database, stand.template).await?)
    } else {
        None
    };
    let lead_s = (plan.ahead_s * plan.rate).div_ceil(ROWS_PER_SECOND + plan.rate).max(15);
    let seconds = u64::from(lead_s + plan.seconds) + SETTLE_MAX.as_secs();
    let runs = u64::from(plan.rate) * seconds;
    match plan.protocol {
        Protocol::Carillon => stand.start_executors(bench, load.executors, runs).await?,
        Protocol::XxlJob => stand.start_plain_executors(bench, load.executors, runs).await?,
    }
    if load.tasks > 0 {
        progress(&format!("{} tasks beside", load.tasks));
        let far = Firing::DailyFrom(now_ms() + FAR_MS);
        tasks::deal_out(server, &stand, load.tenants, (plan.rate, load.tasks), far).await?;
    }
    let first = (now_ms() / 1_000 + 1 + i64::from(lead_s)) * 1_000;
    let old = old.map(|old| old.beside_fires(first));
    let first = old.map_or(first, |old| old.fires_from());
    progress(&format!("{} tasks, first fire in {} s", plan.rate, (first - now_ms()) / 1_000));
    tasks::deal_out(server, &stand, load.tenants, (0, plan.rate), Firing::EverySecondFrom(first)).await?;
    let observed = window::observe(server, &stand, plan, first, old.as_ref()).await?;

    let file = stand.stop_executor().await?;
    let node_log = stand.node_alarms();
    let database = stand.kill_node().await;
    if plan.protocol == Protocol::XxlJob {
        plain::name_fires(&file, &database, &observed.window).await?;
    }
    let run = Run {
        plan,
        seen: records::read(&file, &observed.window)?,
        rows: rows(&database, &observed.window).await?,
        observed,
        old: table(server.kind, &database, old).await?,
        node_log,
        statements_source: server.statements_source(),
    };
    std::fs::remove_file(file)?;
    server.remove(database).await?;
    Ok(run)
}

async fn table(kind: Kind, database: &Database, old: Option<OldLogs>) -> Result<Option<Table>> {
    let Some(logs) = old else { return Ok(None) };
    let counted = database.number("SELECT COUNT(*) FROM task_log").await?;
    Ok(Some(Table { logs, rows: (counted, logs.look(kind, database).await?.rows) }))
}

/// What became of the rows of the window.
pub async fn rows(database: &Database, window: &Range<i64>) -> Result<BTreeMap<&'static str, i64>> {
    let sql = format!(
        "SELECT status, COUNT(*) FROM task_log WHERE fire_time >= {} AND fire_time < {} GROUP BY status",
        window.start, window.end
    );
    let mut rows = BTreeMap::from([("succeeded", 0)]);
    for row in database.query(&sql).await? {
        let status = steady::status_word(row.try_get_by_index(0)?);
        rows.insert(status, row.try_get_by_index(1)?);
    }
    Ok(rows)
}

impl Run {
    /// Fires that no handler saw.
    pub fn lost(&self) -> u64 {
        self.plan.expected().saturating_sub(self.seen.handled)
    }

    /// Fires of the window that were committed as succeeded.
    pub fn succeeded(&self) -> i64 {
        self.rows["succeeded"]
    }

    /// Why this rate is not sustained; empty when it is.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let mut complain = |holds: bool, text: String| complaints.extend(holds.then_some(text));
        complain(self.lost() > 0, format!("{} fires lost", self.lost()));
        complain(self.seen.early > 0, format!("{} starts too early", self.seen.early));
        complain(self.seen.duplicated > 0, format!("{} fires duplicated", self.seen.duplicated));
        let uncommitted = self.plan.expected() as i64 - self.succeeded();
        complain(uncommitted != 0, format!("{uncommitted} fires not committed as succeeded"));
        let p99 = self.seen.lateness_ms.p99;
        complain(p99 > 1_000.0, format!("p99 lateness {p99:.0} ms is over 1000"));
        complaints.extend(self.observed.complaints(self.plan));
        complaints.extend(self.kept_badly());
        complaints
    }

    /// What retention or statistics have not done.
    fn kept_badly(&self) -> Vec<String> {
        let (before, after) = &self.observed.progress;
        let Some(((before, after), old)) = before.kept.zip(after.kept).zip(self.old.as_ref()) else {
            return Vec::new();
        };
        let (counted, known) = old.rows;
        let differs = (counted != known).then(|| format!("the table has {counted} rows, not {known}"));
        old.logs.complaints(&before, &after).into_iter().chain(differs).collect()
    }
}
