//! What is counted at both ends of the window.

use crate::old_logs::{Kept, OldLogs};
use crate::options::Kind;
use crate::proc::{self, Target};
use crate::profile::Profile;
use crate::server::Server;
use crate::stand::Stand;
use crate::work::Work;
use anyhow::Result;
use carillon_tests::now_ms;
use std::time::Instant;

/// Who costs processor time and memory, in the order of the figures: nodes, executors, the database.
pub struct Parts {
    /// Nothing in one that does not exist.
    groups: [Vec<Target>; 3],
    tick_us: u64,
}

impl Parts {
    /// Of this stand; all nodes are one part.
    pub fn of(server: &Server, stand: &Stand) -> Result<Self> {
        let one = |target: Option<Target>| target.into_iter().collect();
        let groups = [stand.nodes(), one(stand.executor()), one(server.target())];
        Ok(Self { groups, tick_us: proc::tick_us()? })
    }

    /// Every process.
    pub fn targets(&self) -> Vec<Target> {
        self.groups.iter().flatten().copied().collect()
    }

    /// One figure for each part, the sum of those for its [`Parts::targets`]; `None` for a part that does not exist.
    pub fn spread(&self, figures: &[f64]) -> [Option<f64>; 3] {
        let mut figures = figures.iter().copied();
        std::array::from_fn(|at| {
            let sum = figures.by_ref().take(self.groups[at].len()).sum();
            (!self.groups[at].is_empty()).then_some(sum)
        })
    }

    /// Reads the kernel's and the server's counters: quick, and at no cost to what is measured.
    pub async fn read(&self, server: &Server, stand: &Stand) -> Result<Costs> {
        let ticks: Vec<u64> = self.targets().into_iter().map(Target::cpu_ticks).collect::<Result<_>>()?;
        let written: Option<Vec<u64>> = self.targets().into_iter().map(Target::written_bytes).collect();
        Ok(Costs {
            at: Instant::now(),
            cpu_us: ticks.iter().map(|ticks| (ticks * self.tick_us) as f64).collect(),
            machine_us: (proc::machine_ticks()? * self.tick_us) as f64,
            written_bytes: written.map(|written| written.iter().map(|bytes| *bytes as f64).collect()),
            work: server.work(&stand.database).await?,
            profile: server.profile(&stand.database).await?,
            server_statements: server.statements(&stand.database).await?,
            node_statements: stand.statements_of_nodes().await?,
            nodes: self.groups[0].len() as i64,
        })
    }
}

/// Counters that only grow.
pub struct Costs {
    /// When they were read.
    pub at: Instant,
    /// Of each of [`Parts::targets`].
    pub cpu_us: Vec<f64>,
    /// Of all processors of the machine, including other processes.
    pub machine_us: f64,
    /// To disks, of each of [`Parts::targets`], if the kernel tells.
    pub written_bytes: Option<Vec<f64>>,
    /// By the server's count.
    pub work: Work,
    /// By the server's count, if it was to.
    pub profile: Option<Profile>,
    /// By the server's count.
    pub server_statements: Option<i64>,
    /// By the nodes' count.
    pub node_statements: i64,
    /// How many nodes were asked.
    nodes: i64,
}

impl Costs {
    /// Statements since `start` by the server's count and by the nodes'. A node answers each
    /// question after one statement of its own, which is left out.
    pub fn statements_since(&self, start: &Self) -> (Option<i64>, i64) {
        let by_server =
            self.server_statements.zip(start.server_statements).map(|(end, start)| end - start - self.nodes);
        (by_server, self.node_statements - start.node_statements - self.nodes)
    }
}

/// How far the work has come, by the database.
#[derive(Debug)]
pub struct Progress {
    /// When it was asked.
    pub at: Instant,
    /// Successes committed of what was due since [`Progress::SINCE_MS`] before the window.
    pub committed: i64,
    /// Runs that are due and have not ended.
    pub backlog: i64,
    /// How far ahead of now every log is written, ms.
    pub ahead_ms: i64,
    /// Logs written so far, up to a constant.
    pub written: i64,
    /// Of retention and statistics, where logs become old.
    pub kept: Option<Kept>,
}

impl Progress {
    /// How long before the window a run may have been due that is committed in it, ms.
    pub const SINCE_MS: i64 = 60_000;

    /// Asks; `since` bounds what is counted as committed, epoch ms. Work for the database: never
    /// between two readings of [`Costs`].
    pub async fn read(server: &Server, stand: &Stand, since: i64, old: Option<&OldLogs>) -> Result<Self> {
        let at = Instant::now();
        let (ahead_ms, backlog) = (ahead_ms(stand).await?, backlog(stand, now_ms()).await?);
        let committed = format!("SELECT COUNT(*) FROM task_log WHERE status = 10 AND due_time >= {since}");
        // Every task that moves on fires once a second, so the watermarks count the logs that were written.
        let integer = if server.kind == Kind::Mariadb { "SIGNED" } else { "BIGINT" };
        let written = format!("SELECT CAST(SUM(next_fire_at - {since}) AS {integer}) FROM task WHERE started = 1");
        let (committed, written) = (stand.database.number(&committed).await?, stand.database.number(&written).await?);
        let kept = match old {
            Some(old) => Some(old.look(server.kind, &stand.database).await?),
            None => None,
        };
        Ok(Self { at, committed, backlog, ahead_ms, written: written / 1_000, kept })
    }
}

/// How far ahead of now every log is written, ms.
pub async fn ahead_ms(stand: &Stand) -> Result<i64> {
    Ok(stand.database.number("SELECT MIN(next_fire_at) FROM task").await? - now_ms())
}

/// Runs due before `until` (epoch ms) that have not ended.
pub async fn backlog(stand: &Stand, until: i64) -> Result<i64> {
    let sql = format!("SELECT COUNT(*) FROM task_log WHERE status IN (0, 1, 2, 3) AND due_time < {until}");
    stand.database.number(&sql).await
}

/// The same without those that an executor has: what waits for nodes.
pub async fn backlog_of_due(stand: &Stand, until: i64) -> Result<i64> {
    let sql = format!("SELECT COUNT(*) FROM task_log WHERE status IN (0, 1, 3) AND due_time < {until}");
    stand.database.number(&sql).await
}
