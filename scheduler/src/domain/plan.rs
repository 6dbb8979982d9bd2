//! Schedule → runs: which fires of a task are written ahead, and what becomes of missed ones.

use super::reason::Reason;
use super::task::{MisfireStrategy, NEVER, Routing, Task};
use super::task_log::Status;

/// Missed fires are counted up to this number; the row then says "at least".
const MISSED_COUNT_MAX: usize = 100_000;

/// A task log to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// Id of the log to be.
    pub id: i64,
    /// The instant that the schedule names, epoch ms.
    pub fire_time: i64,
    /// When it should start: the fire time, or now for a misfire.
    pub due_time: i64,
    /// `Init`, or `Expired` for a misfire that is skipped.
    pub status: Status,
    /// Why, when it is not an ordinary fire.
    pub reason: Reason,
    /// For people, empty for an ordinary fire.
    pub message: String,
}

/// What pre-generation does for one task in one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Task id.
    pub task_id: i64,
    /// Revision that the plan was made from.
    pub revision: i64,
    /// The watermark that the plan was made from: the guard of the step.
    pub from: i64,
    /// The watermark afterwards; [`NEVER`] when the schedule has ended.
    pub to: i64,
    /// Whether each fire is the parent of shards.
    pub sharded: bool,
    /// Whether logs may exist for some of these instants, written for an earlier revision.
    pub takes_over: bool,
    /// The logs in between.
    pub fires: Vec<Fire>,
}

/// The window of one pass, all epoch ms.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Cluster time.
    pub now: i64,
    /// Fires up to and including this instant are written.
    pub until: i64,
    /// A fire that is later than this much was missed, ms.
    pub misfire_after_ms: i64,
    /// Logs at most in this pass for one task; the rest follows in the next.
    pub fires_max: usize,
}

/// Plans the next pass of `task`; `None` when nothing falls into the window. `new_id` names the
/// logs.
#[must_use]
pub fn plan(task: &Task, window: Window, mut new_id: impl FnMut() -> i64) -> Option<Plan> {
    if task.next_fire_at == NEVER || task.next_fire_at > window.until {
        return None;
    }
    let mut at = task.next_fire_at;
    let mut fires = Vec::new();
    if at < window.now - window.misfire_after_ms {
        let (fire, next) = missed(task, window, new_id());
        fires.push(fire);
        at = next;
    }
    while at <= window.until && fires.len() < window.fires_max {
        fires.push(Fire {
            id: new_id(),
            fire_time: at,
            due_time: at,
            status: Status::Init,
            reason: Reason::None,
            message: String::new(),
        });
        at = task.schedule.next_after(at);
    }
    let takes_over = fires.iter().any(|fire| fire.fire_time < task.written_until);
    Some(Plan {
        task_id: task.id,
        revision: task.revision,
        from: task.next_fire_at,
        to: at,
        sharded: task.routing == Routing::Sharding,
        takes_over,
        fires,
    })
}

/// One row that stands for every fire missed, at the last one's instant, and the first fire
/// that was not.
fn missed(task: &Task, window: Window, id: i64) -> (Fire, i64) {
    let bound = window.now - window.misfire_after_ms;
    let first = task.next_fire_at;
    let (mut last, mut count) = (first, 1);
    let mut next = task.schedule.next_after(first);
    while next < bound && count < MISSED_COUNT_MAX {
        (last, count) = (next, count + 1);
        next = task.schedule.next_after(next);
    }
    let mut more = "";
    if next < bound {
        more = "at least ";
        next = task.schedule.next_after(bound - 1);
    }
    let what = format!("missed {more}{count} fire(s) between {first} and {last} (epoch ms)");
    let fire = match task.misfire_strategy {
        MisfireStrategy::Skip => Fire {
            id,
            fire_time: last,
            due_time: last,
            status: Status::Expired,
            reason: Reason::MisfireSkipped,
            message: format!("{what}; skipped by policy"),
        },
        MisfireStrategy::FireOnce => Fire {
            id,
            fire_time: last,
            due_time: window.now,
            status: Status::Init,
            reason: Reason::MisfireFiredOnce,
            message: format!("{what}; fired once for all"),
        },
    };
    (fire, next)
}
