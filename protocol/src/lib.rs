//! What both sides of the wire share: messages, codes, the signature and the clock estimate.
//!
//! A node and an executor speak HTTP/1.1 with JSON in both directions. Every request and every
//! reply is signed with a key that belongs to one (tenant, app). `docs/protocol.md` is the
//! prose; this crate is the truth, and both sides compile it.
//!
//! This crate does no I/O but reading this machine's clock, and depends on neither side's HTTP library.

pub mod clock;
pub mod code;
pub mod exchange;
pub mod local_clock;
pub mod message;
pub mod remote_clock;
pub mod sign;
#[cfg(feature = "testing")]
pub mod testing;

pub use clock::{DRIFT_PPM, Estimate, OffsetEstimator};
pub use code::Code;
pub use local_clock::{KernelClocks, LocalClock, LocalInstant};
pub use message::*;
pub use remote_clock::RemoteClock;
use std::time::Duration;

/// Base path of everything that an executor calls on a node.
pub const NODE_BASE_PATH: &str = "/openapi";

/// Most dispatch items in one `/dispatch` request.
pub const DISPATCH_ITEMS_MAX: usize = 500;

/// Most tasks in one `/probe` request.
pub const PROBE_TASKS_MAX: usize = 500;

/// Priorities of runs, the most urgent last.
pub const PRIORITIES: std::ops::RangeInclusive<i32> = 1..=9;

/// Default priority of a run.
pub const PRIORITY_DEFAULT: i32 = 5;

/// Most results in one `/openapi/results` request.
pub const RESULT_ITEMS_MAX: usize = 1_000;

/// Most runs that one executor may have in any state, and name in one heartbeat or farewell.
pub const EXECUTOR_RUNS_MAX: usize = 200_000;

/// By how much the time that a restarted process tells is too early at most, ms: it is not kept with every heartbeat.
pub const ACKNOWLEDGED_LAG_MS: i64 = 5_000;

/// How long a node keeps an idle connection.
pub const NODE_KEEP_ALIVE: Duration = Duration::from_secs(5);

/// How long an executor keeps an idle connection, at least.
pub const EXECUTOR_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A caller reuses no connection that the other side may close within this time: a request that meets the close is lost,
/// and nobody knows whether it arrived.
pub const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// How long a caller reuses an idle connection to a node.
pub const NODE_POOL_IDLE: Duration = NODE_KEEP_ALIVE.saturating_sub(KEEP_ALIVE_MARGIN);

/// The same to an executor.
pub const EXECUTOR_POOL_IDLE: Duration = EXECUTOR_KEEP_ALIVE.saturating_sub(KEEP_ALIVE_MARGIN);

/// Largest request or reply body on the wire, bytes.
pub const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Longest message or output that a result carries, bytes; the sender cuts what is longer.
pub const TEXT_BYTES_MAX: usize = 16 * 1024;

/// Bytes of one page of a run's output. The minimum fits any character, so that every page makes
/// progress.
pub const OUTPUT_PAGE_BYTES: std::ops::RangeInclusive<u32> = 4..=256 * 1024;
