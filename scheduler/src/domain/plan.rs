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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::cron::CronSchedule;
    use crate::domain::task::{Delivery, ExpiredStrategy, FailureStrategy, Schedule};
    use proptest::prelude::*;

    fn task(cron: &str, next_fire_at: i64, misfire_strategy: MisfireStrategy) -> Task {
        Task {
            id: 1,
            tenant_id: 1,
            app_id: 1,
            revision: 3,
            name: String::new(),
            handler: String::new(),
            params: String::new(),
            schedule: Schedule::Cron(Box::new(CronSchedule::parse(cron).unwrap()), chrono_tz::UTC),
            next_fire_at,
            written_until: 0,
            routing: Routing::Random,
            tags: Vec::new(),
            failure_strategy: FailureStrategy::Retry,
            max_retries: 0,
            retry_interval_ms: 0,
            expired_strategy: ExpiredStrategy::Execute,
            expire_after_ms: 0,
            misfire_strategy,
            timeout_ms: 0,
            delivery: Delivery::AtLeastOnce,
        }
    }

    fn window(now: i64) -> Window {
        Window { now, until: now + 180_000, misfire_after_ms: 30_000, fires_max: 1_000 }
    }

    fn planned(task: &Task, now: i64) -> Option<Plan> {
        let mut id = 0;
        plan(task, window(now), || {
            id += 1;
            id
        })
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
        assert_eq!((plan.fires[0].status, plan.fires[0].reason), (Status::Init, Reason::None));
    }

    /// H4: an outage is not back-filled occurrence by occurrence.
    #[test]
    fn one_row_stands_for_all_that_was_missed_and_says_why() {
        let now = 3_600_000;
        for (strategy, status, due, reason) in [
            (MisfireStrategy::Skip, Status::Expired, 3_569_000, Reason::MisfireSkipped),
            (MisfireStrategy::FireOnce, Status::Init, now, Reason::MisfireFiredOnce),
        ] {
            let plan = planned(&task("* * * * * ?", 1_000, strategy), now).unwrap();
            let first = &plan.fires[0];
            assert_eq!((first.fire_time, first.due_time), (3_569_000, due));
            assert_eq!((first.status, first.reason), (status, reason));
            assert!(first.message.contains("missed 3569 fire(s)"), "{}", first.message);
            assert_eq!(plan.fires[1].fire_time, 3_570_000);
            assert_eq!(plan.to, now + 181_000);
        }
    }

    #[test]
    fn missed_fires_are_counted_with_a_bound() {
        let year = 365 * 86_400_000;
        let plan = planned(&task("* * * * * ?", 1_000, MisfireStrategy::FireOnce), year).unwrap();
        assert!(plan.fires[0].message.contains("at least 100000"), "{}", plan.fires[0].message);
        assert_eq!(plan.fires[1].fire_time, year - 30_000);
    }

    #[test]
    fn a_schedule_that_ends_is_planned_to_its_end_and_no_further() {
        let plan = planned(&task("30 0 0 1 1 ? 1970", 30_000, MisfireStrategy::Skip), 0).unwrap();
        assert_eq!((plan.fires.len(), plan.to), (1, NEVER));
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
