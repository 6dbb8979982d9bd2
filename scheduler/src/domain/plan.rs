//! Schedule → runs: which fires of a task are written ahead, and what becomes of missed ones.

use super::reason::Reason;
use super::task::{MisfireStrategy, NEVER, Routing, Task};
use super::task_log::Status;
use super::trigger::Trigger;
use std::collections::VecDeque;

/// Missed fires are counted up to this number; the row then says "at least".
const MISSED_COUNT_MAX: usize = 100_000;

/// The latest missed fires leave a row each; those before them are counted in the oldest one's.
const MISSED_ROWS_MAX: usize = 100;

/// A task log to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fire {
    /// Id of the log to be.
    pub id: i64,
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
}

/// Plans the next pass of `task`; `None` when nothing falls into the window. `new_id` names the
/// logs.
#[must_use]
pub fn plan(task: &Task, window: Window, new_id: impl FnMut() -> i64) -> Option<Plan> {
    plan_besides(task, window, &[], new_id)
}

/// The same where a person has cancelled the fires of these instants before they were written. Their logs
/// are there, and the store leaves them alone; but none of them stands for others that were missed.
#[must_use]
pub fn plan_besides(task: &Task, window: Window, skipped: &[i64], new_id: impl FnMut() -> i64) -> Option<Plan> {
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
    let to = if pass.left <= 0 { NEVER } else { at };
    let fires = pass.fires;
    // A delay counts from the end of a run: where there is none, from now.
    let has_run = fires.iter().any(|fire| fire.status == Status::Init);
    let to = if to == NEVER && !has_run { task.schedule.next_after_end(window.now) } else { to };
    Some(Plan {
        task_id: task.id,
        revision: task.revision,
        from: task.next_fire_at,
        to,
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

impl<F: FnMut() -> i64> Pass<'_, F> {
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

    /// Rows for the fires that were missed, oldest first; answers where the watermark goes: the
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
            let before = if index == 0 { missed.before() } else { String::new() };
            let in_time = spec.misfire_strategy != MisfireStrategy::FireAll
                || spec.misfire_max_late_ms == 0
                || now - at <= spec.misfire_max_late_ms;
            if kept - index <= runs && in_time && self.left > 0 {
                let how = match spec.misfire_strategy {
                    MisfireStrategy::FireAll => "made up for by policy",
                    _ => "fired once for all that were missed",
                };
                self.add(at, now, Trigger::Misfire, format!("missed while nothing ran; {how}{before}"));
                continue;
            }
            let why = match spec.misfire_strategy {
                MisfireStrategy::Skip => "skipped by policy".to_owned(),
                MisfireStrategy::FireOnce => format!("the run of {latest} (epoch ms) stands for it"),
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

/// The fires that nobody wrote in time.
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
    fn before(&self) -> String {
        let more = self.count.saturating_sub(self.kept.len());
        if more == 0 {
            return String::new();
        }
        let at_least = if self.count >= MISSED_COUNT_MAX { "at least " } else { "" };
        format!("; {at_least}{more} more before it were missed, too, from {} (epoch ms) on", self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::task::{ScheduleKind, TaskSpec, test::task_of};
    use proptest::prelude::*;

    fn task(cron: &str, next_fire_at: i64, misfire_strategy: MisfireStrategy) -> Task {
        let schedule = ScheduleKind::Cron;
        let spec = TaskSpec { schedule, cron: cron.to_owned(), misfire_strategy, ..TaskSpec::default() };
        Task { next_fire_at, ..task_of(spec) }
    }

    fn window(now: i64) -> Window {
        Window { now, until: now + 180_000, misfire_after_ms: 30_000, fires_max: 1_000 }
    }

    fn planned_in(task: &Task, window: Window) -> Option<Plan> {
        let mut id = 0;
        plan(task, window, || {
            id += 1;
            id
        })
    }

    fn planned(task: &Task, now: i64) -> Option<Plan> {
        planned_in(task, window(now))
    }

    #[test]
    fn nothing_in_the_window_is_no_plan() {
        assert_eq!(planned(&task("* * * * * ?", NEVER, MisfireStrategy::Skip), 0), None);
        assert_eq!(planned(&task("* * * * * ?", 180_001, MisfireStrategy::Skip), 0), None);
    }

    #[test]
    fn a_fire_a_little_late_is_an_ordinary_fire() {
        let plan = planned(&task("0 * * * * ?", 60_000, MisfireStrategy::Skip), 90_000).unwrap();
        assert_eq!(plan.fires[0].fire_time, 60_000);
        let first = &plan.fires[0];
        assert_eq!((first.status, first.reason, first.trigger), (Status::Init, Reason::None, Trigger::Schedule));
    }

    /// H3, H4: every missed fire leaves a row that says why, the last hundred one each, and
    /// policy says which of them run.
    #[test]
    fn missed_fires_leave_rows_and_run_by_policy() {
        let now = 3_600_000;
        for (strategy, expected) in
            [(MisfireStrategy::Skip, 0), (MisfireStrategy::FireOnce, 1), (MisfireStrategy::FireAll, 10)]
        {
            let plan = planned(&task("* * * * * ?", 1_000, strategy), now).unwrap();
            let missed: Vec<&Fire> = plan.fires.iter().filter(|fire| fire.trigger == Trigger::Misfire).collect();
            assert_eq!(missed.len(), 100, "{strategy:?}");
            assert!(missed.windows(2).all(|pair| pair[0].fire_time + 1_000 == pair[1].fire_time));
            assert_eq!(missed[99].fire_time, 3_569_000);
            assert!(missed[0].message.contains("3469 more before it were missed, too"), "{}", missed[0].message);
            let (run, left_out): (Vec<&Fire>, Vec<&Fire>) = missed.iter().partition(|fire| fire.status == Status::Init);
            assert_eq!(run.len(), expected);
            assert!(run.iter().all(|fire| fire.due_time == now && fire.fire_time > 3_569_000 - 1_000 * 10));
            assert!(
                left_out.iter().all(|fire| fire.reason == Reason::MisfireSkipped && fire.status == Status::Expired)
            );
            assert_eq!(plan.fires[100].fire_time, 3_570_000);
            assert_eq!((plan.fires[100].trigger, plan.to), (Trigger::Schedule, now + 181_000));
        }
    }

    #[test]
    fn fire_all_is_bounded_in_number_and_lateness() {
        let mut all = task("0 * * * * ?", 60_000, MisfireStrategy::FireAll);
        all.spec.misfire_max = 1_000;
        all.spec.misfire_max_late_ms = 300_000;
        let now = 3_600_000;
        let plan = planned(&all, now).unwrap();
        let run: Vec<i64> = plan
            .fires
            .iter()
            .filter(|f| f.trigger == Trigger::Misfire && f.status == Status::Init)
            .map(|f| f.fire_time)
            .collect();
        assert_eq!(run, [3_300_000, 3_360_000, 3_420_000, 3_480_000, 3_540_000]);
        let why = &plan.fires[0].message;
        assert!(why.contains("more than 300000 ms late"), "{why}");
    }

    #[test]
    fn rows_of_missed_fires_are_bounded_per_pass_and_go_on_in_the_next() {
        let mut at = task("* * * * * ?", 1_000, MisfireStrategy::FireOnce);
        let small = Window { fires_max: 7, until: 3_569_500, ..window(3_600_000) };
        let mut rows = Vec::new();
        while let Some(plan) = planned_in(&at, small) {
            assert!(plan.fires.len() <= 7);
            rows.extend(plan.fires);
            at.next_fire_at = plan.to;
        }
        assert_eq!(rows.len(), 100);
        assert_eq!(rows.iter().filter(|fire| fire.status == Status::Init).count(), 1);
        assert_eq!(rows[99].status, Status::Init);
    }

    #[test]
    fn missed_fires_are_counted_with_a_bound() {
        let year = 365 * 86_400_000;
        let plan = planned(&task("* * * * * ?", 1_000, MisfireStrategy::FireOnce), year).unwrap();
        assert!(plan.fires[0].message.contains("at least 99900"), "{}", plan.fires[0].message);
        assert_eq!(plan.fires[99].fire_time, year - 31_000);
        assert_eq!(plan.fires[100].fire_time, year - 30_000);
    }

    /// What a person cancelled is not the run that stands for the others, and has its row already.
    #[test]
    fn a_cancelled_fire_stands_for_no_missed_one() {
        let hourly = task("0 0 * * * ?", 3_600_000, MisfireStrategy::FireOnce);
        let mut id = 0;
        let now = 4 * 3_600_000 + 60_000;
        let plan = plan_besides(&hourly, window(now), &[3_600_000, 4 * 3_600_000], || {
            id += 1;
            id
        });
        let fires: Vec<_> = plan.unwrap().fires.into_iter().map(|fire| (fire.fire_time, fire.status)).collect();
        assert_eq!(fires, [(2 * 3_600_000, Status::Expired), (3 * 3_600_000, Status::Init)]);
    }

    #[test]
    fn a_schedule_that_ends_is_planned_to_its_end_and_no_further() {
        let plan = planned(&task("30 0 0 1 1 ? 1970", 30_000, MisfireStrategy::Skip), 0).unwrap();
        assert_eq!((plan.fires.len(), plan.to), (1, NEVER));
    }

    #[test]
    fn max_fires_ends_the_schedule() {
        let mut bounded = task("* * * * * ?", 1_000, MisfireStrategy::Skip);
        (bounded.spec.max_fires, bounded.fires, bounded.turn) = (10, 7, 40);
        let plan = planned(&bounded, 0).unwrap();
        assert_eq!((plan.fires.len(), plan.counted(), plan.to), (3, 3, NEVER));
        assert_eq!(plan.fires.iter().map(|fire| fire.seq).collect::<Vec<_>>(), [41, 42, 43]);
    }

    #[test]
    fn a_fixed_delay_goes_on_after_a_fire_that_was_skipped() {
        let spec = TaskSpec {
            schedule: ScheduleKind::FixedDelay,
            interval_ms: 5_000,
            misfire_strategy: MisfireStrategy::Skip,
            ..TaskSpec::default()
        };
        let late = Task { next_fire_at: 5_000, ..task_of(spec) };
        let plan = planned(&late, 100_000).unwrap();
        assert_eq!((plan.fires.len(), plan.fires[0].status, plan.to), (1, Status::Expired, 105_000));
        let in_time = planned(&Task { next_fire_at: 99_000, ..late }, 100_000).unwrap();
        assert_eq!((in_time.fires[0].status, in_time.to), (Status::Init, NEVER));
    }

    #[test]
    fn instants_that_an_earlier_revision_may_have_written_are_taken_over() {
        let old = Task { written_until: 5_000, ..task("* * * * * ?", 4_000, MisfireStrategy::Skip) };
        assert!(planned(&old, 0).unwrap().takes_over);
        assert!(!planned(&Task { next_fire_at: 5_000, ..old }, 0).unwrap().takes_over);
    }

    proptest! {
        /// Pass after pass, whatever the bounds: every fire once, in order, none left out.
        #[test]
        fn passes_join_without_a_gap(step in 1usize..50, start in 0i64..100_000) {
            let mut at = task("0/7 * * * * ?", NEVER, MisfireStrategy::Skip);
            at.next_fire_at = at.schedule.next_after(start);
            let mut fires = Vec::new();
            let first = at.next_fire_at;
            while let Some(plan) = plan(&at, Window { fires_max: step, ..window(start) }, || 1) {
                fires.extend(plan.fires.iter().map(|fire| fire.fire_time));
                at.next_fire_at = plan.to;
            }
            let mut expected = Vec::new();
            let mut next = first;
            while next <= start + 180_000 {
                expected.push(next);
                next = at.schedule.next_after(next);
            }
            prop_assert_eq!(fires, expected);
        }
    }
}
