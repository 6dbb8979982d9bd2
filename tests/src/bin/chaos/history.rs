//! What happened, as the checker reads it: tasks, what was asked of them, rows, and what handlers wrote down.
//!
//! Times in `…_us` are epoch microseconds of this machine's wall clock, which is the database's too; `…_mono` are
//! microseconds of its monotonic clock. Instants of rows are epoch milliseconds.

use serde::Serialize;
use std::collections::BTreeMap;

/// When a task fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// At multiples of so many ms.
    Cron(i64),
    /// Every so many ms from its start on.
    Rate(i64),
    /// So many ms after the end of the run before.
    Delay(i64),
    /// When one of these has ended well.
    After(i64, Option<i64>),
    /// When both of these have, each since its own last run.
    AfterAll(i64, i64),
}

/// How many runs of a task may go on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// So many.
    pub most: usize,
    /// Counted in each process by itself, not in the whole app.
    pub in_process: bool,
}

/// A task, as it was made.
#[derive(Debug, Clone, Serialize)]
#[allow(clippy::struct_excessive_bools)] // each says another thing of it
pub struct Task {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The number of its tenant.
    pub tenant: usize,
    /// When it fires.
    pub schedule: Schedule,
    /// Its delivery is at most once.
    pub is_at_most_once: bool,
    /// How many at once.
    pub bound: Option<Bound>,
    /// A run becomes shards.
    pub is_sharded: bool,
    /// The first attempt that succeeds; 0: none.
    pub succeed_at: i32,
    /// Attempts at most; the handler's failures beyond them end the run.
    pub attempts_max: i32,
    /// Handlers are stopped after so many ms; 0: never.
    pub timeout_ms: i64,
    /// Later than this it does not run, ms; 0: it does.
    pub expire_after_ms: i64,
    /// What becomes of fires that were missed.
    pub misfire: Misfire,
    /// What becomes of runs that meet an earlier one, if they do not wait.
    pub yields: Option<Yields>,
    /// It is stopped, started and edited meanwhile.
    pub is_edited: bool,
    /// Nothing but faults makes it late.
    pub is_plain: bool,
}

/// What becomes of fires that were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Misfire {
    /// The latest runs.
    FireOnce,
    /// None runs.
    Skip,
    /// So many run, the latest.
    FireAll(usize),
}

/// What becomes of a run that meets an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Yields {
    /// The later is discarded.
    Later,
    /// The earlier is stopped.
    Earlier,
}

/// Between two changes: a task is what it is for certain.
#[derive(Debug, Clone, Serialize)]
pub struct Span {
    /// Its task.
    pub task: i64,
    /// The call that made it so was answered.
    pub from_us: i64,
    /// The call that changes it is sent.
    pub until_us: i64,
    /// What it is in between: started, firing every so many ms.
    pub every_ms: Option<i64>,
    /// What the answer named as beyond reach.
    pub unreachable: Vec<i64>,
}

/// A run by hand.
#[derive(Debug, Clone, Serialize)]
pub struct ManualRun {
    /// Of this task.
    pub task: i64,
    /// Its key.
    pub key: String,
    /// Every log that an answer named.
    pub logs: Vec<i64>,
}

/// A row of `task_log`.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs)] // the columns, see the schema
pub struct Row {
    pub id: i64,
    pub task: i64,
    pub parent: i64,
    pub shard_index: i32,
    pub shard_total: i32,
    pub fire_time: i64,
    pub due_time: i64,
    pub status: i32,
    pub attempt: i32,
    pub failures: i32,
    pub started_at: i64,
    pub finished_at: i64,
    pub reason: String,
    pub trigger: String,
}

/// What the numbers of states mean. Written down here again on purpose.
pub mod status {
    pub const SUCCEEDED: i32 = 10;
    pub const FAILED: i32 = 11;
    pub const DISCARDED: i32 = 12;
    pub const EXPIRED: i32 = 13;
    pub const CANCELLED: i32 = 14;
}

impl Row {
    /// Whether the run has ended.
    pub fn is_ended(&self) -> bool {
        self.status >= status::SUCCEEDED
    }

    /// Whether a schedule named its fire.
    pub fn is_scheduled(&self) -> bool {
        matches!(self.trigger.as_str(), "schedule" | "misfire")
    }

    /// Whether it stands for shards.
    pub fn is_parent(&self) -> bool {
        self.shard_index < 0
    }

    /// Whether it is one of a run's shards.
    pub fn is_shard(&self) -> bool {
        self.parent != 0
    }
}

/// A row of `task_log_attempt`: an attempt that did not end its run.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, clippy::struct_field_names)] // the columns, see the schema
pub struct Attempt {
    pub log: i64,
    pub attempt: i32,
    pub due_time: i64,
    pub finished_at: i64,
    pub status: i32,
    pub reason: String,
}

/// A stay in a handler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Visit {
    /// Its run.
    pub log: i64,
    /// Its attempt.
    pub attempt: i32,
    /// Its task.
    pub task: i64,
    /// Epoch ms.
    pub fire_time: i64,
    /// Of this attempt, epoch ms.
    pub due_time: i64,
    /// The process.
    pub pid: u32,
    /// When it was entered.
    pub start_us: i64,
    /// The same.
    pub start_mono: i64,
    /// When it was left, by the monotonic clock.
    pub end_mono: i64,
    /// The same by the wall clock.
    pub end_us: i64,
    /// `ok`, `failed`, `dropped`, `killed` with its process, or `unknown`.
    pub outcome: String,
}

/// A fault that really happened.
#[derive(Debug, Clone, Serialize)]
pub struct Trouble {
    /// Its kind.
    pub name: String,
    /// What was broken: a node, an executor, a database server.
    pub target: String,
    /// When it began.
    pub from_us: i64,
    /// When it was mended.
    pub until_us: i64,
}

/// A trap at a kind of statement.
#[derive(Debug, Clone, Serialize)]
pub struct Set {
    /// The kind.
    pub point: String,
    /// How many statements walked into it.
    pub sprung: usize,
    /// Connections were cut for it.
    pub is_cut: bool,
}

/// Everything.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The tasks.
    pub tasks: Vec<Task>,
    /// What they were for certain. Of a task without a change there is one span.
    pub spans: Vec<Span>,
    /// The runs by hand.
    pub manual_runs: Vec<ManualRun>,
    /// Every row.
    pub rows: Vec<Row>,
    /// Every attempt that did not end its run.
    pub attempts: Vec<Attempt>,
    /// What handlers did.
    pub visits: Vec<Visit>,
    /// Processes that were killed, and when by the monotonic clock: just before.
    pub deaths: BTreeMap<u32, i64>,
    /// Every process of an executor, with the executor's name.
    pub processes: BTreeMap<u32, String>,
    /// The number of the tenant whose an executor is, by its name.
    pub tenants: BTreeMap<String, usize>,
    /// What broke.
    pub troubles: Vec<Trouble>,
    /// The traps that were set.
    pub traps: Vec<Set>,
    /// Everything was mended.
    pub mended_us: i64,
    /// The tasks began to be stopped.
    pub stopped_us: i64,
    /// The share of the machine that other work had in each second, by its end (epoch µs).
    pub others: Vec<(i64, f64)>,
    /// What nobody may ever do: a panic, a process that ended by itself, an API that contradicts itself.
    pub incidents: Vec<String>,
}

/// A fault is near until so long after it is mended, µs.
pub const NEAR_US: i64 = 15_000_000;

impl History {
    /// Whether something was broken at this instant (epoch µs), or had just been mended.
    pub fn is_near_trouble(&self, at_us: i64) -> bool {
        self.troubles.iter().any(|trouble| (trouble.from_us..trouble.until_us + NEAR_US).contains(&at_us))
    }

    /// The share of the machine that other work had between these instants, epoch µs.
    pub fn others_between(&self, from_us: i64, until_us: i64) -> f64 {
        let shares: Vec<f64> =
            self.others.iter().filter(|(at, _)| (from_us..until_us).contains(at)).map(|(_, share)| *share).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }
}
