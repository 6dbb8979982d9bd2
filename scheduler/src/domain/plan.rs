//! Schedule → runs: which fires of a task are written ahead, and what happens to missed ones.

use super::instant::local_words;
use super::reason::Reason;
use super::task::{MisfireStrategy, NEVER, Routing, Task};
use super::task_log::Status;
use super::trigger::Trigger;
use super::{LogId, TaskId};
use chrono_tz::Tz;
use std::collections::VecDeque;

/// Missed fires are counted up to this number; the row then says "at least".
const MISSED_COUNT_MAX: usize = 100_000;

/// The latest missed fires leave a row each; those before them are counted in the oldest one's.
const MISSED_ROWS_MAX: usize = 100;

/// A task log to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// Id of the log to be.
    pub id: LogId,
    /// The instant that the schedule names, epoch ms.
    pub fire_time: i64,
    /// When it should start: the fire time, later by the task's jitter, or now for a misfire.
    pub due_time: i64,
    /// `Init`, or `Expired` for a misfire that is skipped.
    pub status: Status,
    /// Why, when it is not an ordinary fire.
    pub reason: Reason,
    /// What made it.
    pub trigger: Trigger,
    /// Number of the run within its task.
    pub seq: i64,
    /// For people, empty for an ordinary fire.
    pub message: String,
}

/// What pre-generation does for one task in one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // four facts of a task, none excludes another
pub struct Plan {
    /// Task id.
    pub task_id: TaskId,
    /// Revision that the plan was made from.
    pub revision: i64,
    /// The watermark that the plan was made from: the guard of the step.
    pub from: i64,
    /// The watermark afterwards; [`NEVER`] when the schedule has ended.
    pub to: i64,
    /// Where the run of a fixed delay goes if its instant is taken, so that its chain does not end; [`NEVER`] for all others.
    pub instead: i64,
    /// Whether each fire is the parent of shards.
    pub sharded: bool,
    /// Whether logs may exist for some of these instants, written for an earlier revision.
    pub takes_over: bool,
    /// Priority of the runs.
    pub priority: i32,
    /// Whether the end of each run has consequences beyond the run.
    pub outbox: bool,
    /// Whether its runs wait for each other, so that one node should have them all.
    pub together: bool,
    /// The logs in between.
    pub fires: Vec<Fire>,
}

impl Plan {
    /// Fires that count for the task's `max_fires`.
    #[must_use]
    pub fn counted(&self) -> i64 {
        self.fires.iter().filter(|fire| fire.status == Status::Init).count() as i64
    }
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
    /// What was to fire until this instant may have run, in a time that the database has lost: [`silence::doubted_until`].
    ///
    /// [`silence::doubted_until`]: super::silence::doubted_until
    pub doubted_until: i64,
}

/// Plans the next pass of `task`; `None` when nothing falls into the window. `new_id` names the
/// logs.
#[must_use]
pub fn plan(task: &Task, window: Window, new_id: impl FnMut() -> LogId) -> Option<Plan> {
    plan_besides(task, window, &[], new_id)
}

/// The same when a person has cancelled the fires of these instants before they were written. Their logs
/// exist, and the store leaves them alone; but none of them covers other missed fires.
#[must_use]
pub fn plan_besides(task: &Task, window: Window, skipped: &[i64], new_id: impl FnMut() -> LogId) -> Option<Plan> {
    if task.next_fire_at == NEVER || task.next_fire_at > window.until {
        return None;
    }
    let (fires, left, turn) = (Vec::new(), task.fires_left(), task.turn);
    let mut pass = Pass { task, window, skipped, new_id, fires, left, turn };
    let mut at = task.next_fire_at;
    if at < window.now - window.misfire_after_ms {
        at = pass.missed();
    }
    while at <= window.until && pass.has_room() {
        pass.add(at, task.schedule.due_time(at), Trigger::Schedule, String::new());
        at = task.schedule.next_after(at);
    }
    let fires = pass.fires;
    let run = fires.iter().find(|fire| fire.status == Status::Init);
    let to = match run {
        _ if pass.left <= 0 => NEVER,
        // A delay counts from the end of a run: where there is none, from now.
        None if at == NEVER => task.schedule.next_after_end(window.now),
        _ => at,
    };
    Some(Plan {
        task_id: task.id,
        revision: task.revision,
        from: task.next_fire_at,
        to,
        instead: run.map_or(NEVER, |run| task.schedule.next_link_instead(run.fire_time)),
        sharded: task.spec.routing == Routing::Sharding,
        takes_over: fires.iter().any(|fire| fire.fire_time < task.written_until),
        priority: task.spec.priority,
        outbox: task.has_outbox_entry(),
        together: task.needs_permit(),
        fires,
    })
}

/// One pass over one task.
struct Pass<'a, F> {
    task: &'a Task,
    window: Window,
    skipped: &'a [i64],
    new_id: F,
    fires: Vec<Fire>,
    /// Fires that the task may still have.
    left: i64,
    turn: i64,
}

impl<F: FnMut() -> LogId> Pass<'_, F> {
    fn has_room(&self) -> bool {
        self.fires.len() < self.window.fires_max && self.left > 0
    }

    /// A run to be.
    fn add(&mut self, fire_time: i64, due_time: i64, trigger: Trigger, message: String) {
        self.left -= 1;
        self.turn += 1;
        let (id, seq) = ((self.new_id)(), self.turn);
        let (status, reason) = (Status::Init, Reason::None);
        self.fires.push(Fire { id, fire_time, due_time, status, reason, trigger, seq, message });
    }

    /// A row that only says why there was no run.
    fn leave_out(&mut self, fire_time: i64, message: String) {
        let (status, reason, trigger) = (Status::Expired, Reason::MisfireSkipped, Trigger::Misfire);
        let id = (self.new_id)();
        self.fires.push(Fire { id, fire_time, due_time: fire_time, status, reason, trigger, seq: 0, message });
    }

    /// Rows for the fires that were missed, oldest first; returns where the watermark goes: the
    /// first fire that is not written, missed or not.
    fn missed(&mut self) -> i64 {
        let missed = Missed::of(self.task, self.window, self.skipped);
        let spec = &self.task.spec;
        let now = self.window.now;
        // Counted from the latest.
        let runs = match spec.misfire_strategy {
            MisfireStrategy::Skip => 0,
            MisfireStrategy::FireOnce => 1,
            MisfireStrategy::FireAll => usize::try_from(spec.misfire_max).unwrap_or(0),
        };
        let latest = missed.kept.back().copied().unwrap_or(self.task.next_fire_at);
        let kept = missed.kept.len();
        for (index, at) in missed.kept.iter().copied().enumerate() {
            if self.fires.len() >= self.window.fires_max {
                return at;
            }
            let before = if index == 0 { missed.before(self.task.schedule.zone) } else { String::new() };
            let in_time = spec.misfire_strategy != MisfireStrategy::FireAll
                || spec.misfire_max_late_ms == 0
                || now - at <= spec.misfire_max_late_ms;
            if kept - index <= runs && in_time && self.left > 0 {
                let how = match spec.misfire_strategy {
                    MisfireStrategy::FireAll => "made up for by policy",
                    _ => "fired once for all that were missed",
                };
                // Due in the past, it is held with what was written then.
                let due_time = if at <= self.window.doubted_until { at } else { now };
                self.add(at, due_time, Trigger::Misfire, format!("missed while nothing ran; {how}{before}"));
                continue;
            }
            let why = match spec.misfire_strategy {
                MisfireStrategy::Skip => "skipped by policy".to_owned(),
                MisfireStrategy::FireOnce => {
                    format!("the run of {} stands for it", local_words(latest, self.task.schedule.zone))
                }
                MisfireStrategy::FireAll if in_time => {
                    format!("only the latest {} are made up for", spec.misfire_max)
                }
                MisfireStrategy::FireAll => format!("more than {} ms late", spec.misfire_max_late_ms),
            };
            self.leave_out(at, format!("missed while nothing ran; {why}{before}"));
        }
        missed.next
    }
}

/// The fires that were not written in time.
struct Missed {
    /// The latest of them, in order.
    kept: VecDeque<i64>,
    /// How many there are in all, counted up to [`MISSED_COUNT_MAX`].
    count: usize,
    /// The first of all.
    first: i64,
    /// The first fire that was not missed.
    next: i64,
}

impl Missed {
    fn of(task: &Task, window: Window, skipped: &[i64]) -> Self {
        let bound = window.now - window.misfire_after_ms;
        let keep = match task.spec.misfire_strategy {
            MisfireStrategy::FireAll => usize::try_from(task.spec.misfire_max).unwrap_or(0).max(MISSED_ROWS_MAX),
            _ => MISSED_ROWS_MAX,
        };
        let first = task.next_fire_at;
        let (mut kept, mut next, mut count) = (VecDeque::with_capacity(keep), first, 0);
        while next < bound && count < MISSED_COUNT_MAX {
            if !skipped.contains(&next) {
                if kept.len() == keep {
                    kept.pop_front();
                }
                kept.push_back(next);
            }
            count += 1;
            next = task.schedule.next_after(next);
        }
        if next < bound {
            (kept, next) = Self::latest(task, bound, keep);
            kept.retain(|at| !skipped.contains(at));
        }
        Self { kept, count, first, next }
    }

    /// The last `keep` fires before `bound`, looked for in windows that grow backwards from it.
    fn latest(task: &Task, bound: i64, keep: usize) -> (VecDeque<i64>, i64) {
        let mut span = 60_000;
        loop {
            let from = (bound - span).max(task.next_fire_at - 1);
            let (mut kept, mut at) = (VecDeque::with_capacity(keep), task.schedule.next_after(from));
            let mut found = 0;
            while at < bound {
                if kept.len() == keep {
                    kept.pop_front();
                }
                kept.push_back(at);
                found += 1;
                at = task.schedule.next_after(at);
            }
            if found >= keep || from < task.next_fire_at {
                return (kept, at);
            }
            span *= 4;
        }
    }

    /// What the oldest kept row says of those before it.
    fn before(&self, zone: Tz) -> String {
        let more = self.count.saturating_sub(self.kept.len());
        if more == 0 {
            return String::new();
        }
        let at_least = if self.count >= MISSED_COUNT_MAX { "at least " } else { "" };
        format!("; {at_least}{more} more before it were missed, too, from {} on", local_words(self.first, zone))
    }
}

#[cfg(test)]
mod tests;
