//! The product's defaults, save what makes a simulation shorter or a fault likelier: logs are written one minute ahead, in some
//! seeds 20 s; executors stop what they run after 20 s without contact; plain ones count as lost after 75 s; nodes have little room in memory; the reaper looks at
//! 32 rows at a time; what is a day old is deleted.

use carillon::dispatch::DispatchSettings;
use carillon::engine::EngineSettings;
use carillon::housekeeping::{HousekeepingSettings, StatisticsSettings};
use carillon::outcome::ReaperSettings;
use carillon::pregenerate::PregenerateSettings;
use carillon::queue::LoaderSettings;
use carillon::xxljob::InquirySettings;
use carillon_protocol::ExecutorSettings;
use carillon_simulation::Dice;

/// How much of everything there is in a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Nodes.
    pub nodes: usize,
    /// Tenants. The first one has tasks of all kinds; each other one has a task, and an executor.
    pub tenants: usize,
    /// Executors of the first tenant.
    pub own_executors: usize,
    /// Runs that a node keeps in memory at most.
    pub capacity: usize,
    /// How long before its due time a run is dispatched, ms.
    pub lead_ms: i64,
    /// How far ahead logs are written, ms.
    pub ahead_ms: i64,
    /// A fire that is later than this and has no log was missed, ms.
    pub misfire_after_ms: i64,
    /// The one of the first tenant's executors that is of the release before.
    pub older_executor: Option<usize>,
    /// Whether the first tenant has tasks whose runs take longer than an executor may be silent.
    pub long_runs: bool,
    /// Whether it has tasks whose runs wait for each other on each executor, or are stopped when they take too long.
    pub turns: bool,
    /// So many of the first tenant's executors are plain.
    pub plain_executors: usize,
    /// Whether the executors of the other tenants are.
    pub plain_neighbours: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            nodes: 2,
            tenants: 1,
            own_executors: 2,
            capacity: ROOMY,
            lead_ms: LEAD_MS,
            ahead_ms: AHEAD_MS,
            misfire_after_ms: MISFIRE_AFTER_MS,
            older_executor: None,
            long_runs: false,
            turns: false,
            plain_executors: 0,
            plain_neighbours: false,
        }
    }
}

impl Shape {
    /// What a seed chooses.
    pub fn of(seed: u64) -> Self {
        let dice = Dice::new(seed);
        let tenants = match dice.between("how many tenants", 0, 19) {
            0..=9 => 1,
            10..=17 => dice.between("how many of few tenants", 2, 5),
            _ => dice.between("how many of many tenants", 6, TENANTS_MAX),
        };
        let nodes = match dice.between("how many nodes", 0, 9) {
            0 => 1,
            1..=6 => 2,
            7 | 8 => 3,
            _ => dice.between("how many of many nodes", 4, 5),
        };
        let own_executors = dice.between("how many executors", 2, 3);
        let plain_executors = match dice.between("plain executors", 0, 19) {
            0..=2 => own_executors,
            3 => dice.between("how many of them", 1, own_executors - 1),
            _ => 0,
        };
        Self {
            nodes: nodes as usize,
            tenants: tenants as usize,
            own_executors: own_executors as usize,
            capacity: if dice.happens("small queue", 150) {
                dice.between("how small", 60, 150) as usize
            } else {
                ROOMY
            },
            lead_ms: if dice.happens("long lead", 333) { LONG_LEAD_MS } else { LEAD_MS },
            ahead_ms: if dice.happens("little ahead", 400) { SHORT_AHEAD_MS } else { AHEAD_MS },
            misfire_after_ms: MISFIRE_AFTER_MS,
            older_executor: dice
                .happens("two releases side by side", 150)
                .then(|| dice.between("which is of the release before", 0, 1) as usize),
            // They would pile up: a plain executor has one of a task at a time.
            long_runs: dice.happens("long runs", 250) && plain_executors == 0,
            turns: dice.happens("turns on executors", 250),
            plain_executors: plain_executors as usize,
            plain_neighbours: dice.happens("neighbours have plain executors", 100),
        }
    }

    /// Executors of all tenants.
    pub fn executors(&self) -> usize {
        self.own_executors + self.tenants - 1
    }

    /// Whether the executor of that number is plain.
    pub fn is_plain(&self, executor: usize) -> bool {
        if executor < self.own_executors { executor < self.plain_executors } else { self.plain_neighbours }
    }

    /// Whether any is.
    pub fn has_plain(&self) -> bool {
        (0..self.executors()).any(|executor| self.is_plain(executor))
    }

    /// Whether nodes have less room than bursts need.
    pub fn has_small_queues(&self) -> bool {
        self.capacity < ROOMY
    }

    /// Whether promise 10 holds.
    pub fn has_long_lead(&self) -> bool {
        self.lead_ms >= OFFLINE_AFTER_MS
    }
}

const TENANTS_MAX: i64 = 50;

/// Runs for which there is room in most seeds.
const ROOMY: usize = 1_000;

/// The default.
pub const LEAD_MS: i64 = 3_000;

/// Longer than the offline time-out, as promise 10 wants it.
const LONG_LEAD_MS: i64 = 12_000;

/// How far ahead logs are written, ms.
pub const AHEAD_MS: i64 = 60_000;

/// The same where a long outage outlasts what was written, ms.
const SHORT_AHEAD_MS: i64 = 20_000;

/// What was missed is so late in every seed, ms.
const MISFIRE_AFTER_MS: i64 = 30_000;

/// Who is silent for so long is offline, ms.
pub const OFFLINE_AFTER_MS: i64 = 10_000;

/// How often nodes and executors say that they are alive, ms.
pub const HEARTBEAT_MS: i64 = 3_000;

/// How often a node loads what is due, ms.
pub const LOADER_MS: i64 = 5_000;

/// Who is silent for so long has stopped what it ran, ms.
pub const ABANDON_AFTER_MS: i64 = 20_000;

/// What a silent plain executor had, and what may have been stopped or covered on an idle one, is lost after this long, ms.
pub const PLAIN_LOST_AFTER_MS: i64 = 75_000;

const ACCEPT_WINDOW_MS: i64 = 3_000;

/// A plain executor that has been idle for so long has told what it had to tell, ms.
const PLAIN_PATIENCE_MS: i64 = 40_000;

/// Those of the inquiry.
pub fn inquiry() -> InquirySettings {
    InquirySettings {
        accept_window_ms: ACCEPT_WINDOW_MS,
        patience_ms: PLAIN_PATIENCE_MS,
        lost_after_ms: PLAIN_LOST_AFTER_MS,
    }
}
const WAITING_MS: i64 = 200;

/// Messages that the holders of a key may send, of each class.
pub const REQUESTS_PER_SECOND: u32 = 2_000;

/// Of the nodes.
pub fn engine(shape: &Shape) -> EngineSettings {
    let Shape { lead_ms, misfire_after_ms, .. } = *shape;
    EngineSettings {
        offline_after_ms: OFFLINE_AFTER_MS,
        hold_past_after_ms: 0,
        queue_capacity: shape.capacity,
        pregenerate: PregenerateSettings { ahead_ms: shape.ahead_ms, misfire_after_ms, lease_ttl_ms: OFFLINE_AFTER_MS },
        loader: LoaderSettings { lead_ms, interval_ms: LOADER_MS },
        dispatch: DispatchSettings {
            lead_ms,
            accept_window_ms: ACCEPT_WINDOW_MS,
            misfire_after_ms,
            waiting_ms: WAITING_MS,
        },
        reaper: ReaperSettings {
            accept_window_ms: ACCEPT_WINDOW_MS,
            offline_after_ms: OFFLINE_AFTER_MS,
            abandon_after_ms: ABANDON_AFTER_MS,
            plain_lost_after_ms: PLAIN_LOST_AFTER_MS,
            kept_going_ms: 2 * OFFLINE_AFTER_MS,
            misfire_after_ms,
            // Fewer than run at once after a burst: what is lost must be found behind what is well.
            page_rows: 8,
        },
        housekeeping: HousekeepingSettings { retain_ms: 86_400_000, lease_ttl_ms: 70_000 },
        statistics: StatisticsSettings { logs_ms: 86_400_000, task_minutes_ms: 86_400_000, figures_ms: 86_400_000 },
    }
}

/// Of the executors.
pub fn executors() -> ExecutorSettings {
    ExecutorSettings {
        heartbeat_interval_ms: HEARTBEAT_MS as u64,
        metadata_interval_ms: 30_000,
        offline_after_ms: OFFLINE_AFTER_MS as u64,
        abandon_after_ms: ABANDON_AFTER_MS as u64,
    }
}

#[test]
fn what_a_fault_may_be_felt_for_is_made_of_the_defaults() {
    let default = carillon::settings::Settings::load(None).unwrap();
    let (nodes, executors) = (default.schedulers, default.executors);
    let offline_after = [nodes.offline_after, executors.offline_after];
    let heartbeats = [nodes.heartbeat_interval, executors.heartbeat_interval];
    let is = |lengths: &[std::time::Duration], ms: i64| lengths.iter().all(|one| one.as_millis() == ms as u128);
    assert!(is(&offline_after, OFFLINE_AFTER_MS));
    assert!(is(&heartbeats, HEARTBEAT_MS));
    assert!(is(&[nodes.load_interval], LOADER_MS));
    assert!(is(&[default.database.statement_timeout], carillon_simulation::STATEMENT_MAX_MS));
}
