//! What the misfire strategy says of a fire whose log was written in time and which no node has claimed in time.

use super::task::MisfireStrategy;
use super::{Reason, Run, Task, Trigger};

/// Whether a run that is claimed at `at` (epoch ms) comes so late that the misfire strategy decides. What its tenant's
/// quota delayed, what has waited for others or for an executor, or what a node that was stopped gave back was not missed.
#[must_use]
pub fn is_missed(run: &Run, at: i64, misfire_after_ms: i64) -> bool {
    run.trigger == Trigger::Schedule
        && !matches!(run.reason, Reason::OverQuota | Reason::NoExecutor | Reason::GivenBack)
        && !run.reason.is_wait()
        && run.attempt == 0
        && run.failures == 0
        && at > 0
        && run.due_time < at - misfire_after_ms
}

/// The reason that a run which is queued for a node goes back with at `now` (epoch ms): its own, or [`Reason::GivenBack`] where it
/// was held up there and not missed. That is so if it was claimed in time, and since it would have been missed, or before that,
/// there have been nodes all the time, the latest stretch without a gap since `attended_since` (epoch ms). What waited at a
/// node, and loses it, is not missed because the next one claims it late.
#[must_use]
pub fn reason_to_return(run: &Run, now: i64, attended_since: i64, misfire_after_ms: i64) -> Reason {
    let is_held_up = run.due_time < now
        && run.queued_at > 0
        && !is_missed(run, run.queued_at, misfire_after_ms)
        && run.due_time.saturating_add(misfire_after_ms) >= attended_since;
    if run.reason == Reason::None && is_held_up { Reason::GivenBack } else { run.reason }
}

/// How many of a task's missed fires run, the latest ones.
#[must_use]
pub fn made_up_for(task: &Task) -> usize {
    match task.spec.misfire_strategy {
        MisfireStrategy::Skip => 0,
        MisfireStrategy::FireOnce => 1,
        MisfireStrategy::FireAll => usize::try_from(task.spec.misfire_max).unwrap_or(0),
    }
}

/// Why a missed fire that is `late` ms late does not run, by the same policy as one that was not even written in time;
/// `None` if it does. `later` are missed fires of its task after it.
#[must_use]
pub fn why_left_out(task: &Task, late: i64, later: usize) -> Option<String> {
    let spec = &task.spec;
    match spec.misfire_strategy {
        MisfireStrategy::Skip => Some(format!("claimed {late} ms late; skipped by policy")),
        MisfireStrategy::FireOnce if later > 0 => Some(format!("claimed {late} ms late; a later fire stands for it")),
        MisfireStrategy::FireAll if later >= made_up_for(task) => {
            Some(format!("claimed {late} ms late; only the latest {} are made up for", spec.misfire_max))
        }
        MisfireStrategy::FireAll if spec.misfire_max_late_ms > 0 && late > spec.misfire_max_late_ms => {
            Some(format!("claimed {late} ms late; more than {} ms are not made up for", spec.misfire_max_late_ms))
        }
        _ => None,
    }
}

/// Missed fires of a task without a log (due before `due_before`, epoch ms), besides those that people cancelled, as many as its
/// policy may ask for, latest first.
#[must_use]
pub fn unwritten(task: &Task, due_before: i64, cancelled: &[i64]) -> Vec<i64> {
    let most = usize::try_from(task.spec.misfire_max).unwrap_or(0).max(1);
    let fires = std::iter::successors(Some(task.next_fire_at), |at| Some(task.schedule.next_after(*at)));
    let missed = fires.take_while(|at| *at < due_before).filter(|at| !cancelled.contains(at));
    let mut missed: Vec<i64> = missed.take(most).collect();
    missed.reverse();
    missed
}

#[cfg(test)]
mod tests {
    use super::super::reason::REASONS;
    use super::super::task::test::task_of;
    use super::super::task::{ScheduleKind, TaskSpec};
    use super::super::task_log::test::run_of;
    use super::*;

    const MISFIRE_MS: i64 = 30_000;

    #[test]
    fn only_a_fire_that_is_claimed_too_late_is_missed() {
        let fire = run_of(1, 10_000);
        let missed_at = |at: i64| is_missed(&fire, at, MISFIRE_MS);
        assert!(!missed_at(40_000));
        assert!(missed_at(40_001));
        let never_claimed = run_of(1, -MISFIRE_MS - 1);
        assert!(!is_missed(&never_claimed, 0, MISFIRE_MS), "a row that no node has claimed is late for nobody yet");
        for (what, other) in [
            ("an attempt was made", Run { attempt: 1, ..fire.clone() }),
            ("it failed before", Run { failures: 1, ..fire.clone() }),
            ("started by hand", Run { trigger: Trigger::Manual, ..fire.clone() }),
            ("made up for already", Run { trigger: Trigger::Misfire, ..fire.clone() }),
        ] {
            assert!(!is_missed(&other, 90_000, MISFIRE_MS), "{what}");
        }
    }

    #[test]
    fn what_people_cancelled_stands_for_no_missed_fire() {
        let spec = TaskSpec { schedule: ScheduleKind::Cron, cron: "* * * * * ?".to_owned(), ..TaskSpec::default() };
        let task = Task { next_fire_at: 10_000, ..task_of(TaskSpec { misfire_max: 2, ..spec }) };
        assert_eq!(unwritten(&task, 13_000, &[]), [11_000, 10_000]);
        assert_eq!(unwritten(&task, 13_000, &[10_000]), [12_000, 11_000]);
        assert!(unwritten(&task, 13_000, &[10_000, 11_000, 12_000]).is_empty());
    }

    #[test]
    fn what_has_waited_is_not_missed_whatever_it_waited_for() {
        let waits = [
            Reason::NoExecutor,
            Reason::GivenBack,
            Reason::OverQuota,
            Reason::TaskLimit,
            Reason::AppLimit,
            Reason::TenantLimit,
        ];
        for (reason, word) in REASONS {
            let run = Run { reason, ..run_of(1, 0) };
            assert_eq!(is_missed(&run, 90_000, MISFIRE_MS), !waits.contains(&reason), "{word}");
            let goes_back = reason_to_return(&Run { queued_at: 1, ..run }, 90_000, 0, MISFIRE_MS);
            let expected = if reason == Reason::None { Reason::GivenBack } else { reason };
            assert_eq!(goes_back, expected, "{word}");
        }
    }

    #[test]
    fn what_a_node_held_up_goes_back_as_given_back() {
        // Claimed five seconds before it was due, and held up since then.
        let held_up = Run { queued_at: 95_000, ..run_of(1, 100_000) };
        let goes_back = |run: &Run, now: i64, attended_since: i64| {
            let reason = reason_to_return(run, now, attended_since, MISFIRE_MS);
            let next = Run { reason, ..run.clone() };
            (reason, is_missed(&next, now + 90_000, MISFIRE_MS))
        };
        assert_eq!(goes_back(&held_up, 110_000, i64::MIN), (Reason::GivenBack, false));
        assert_eq!(
            goes_back(&held_up, 140_000, 130_000),
            (Reason::GivenBack, false),
            "attended when it would be missed"
        );
        assert_eq!(goes_back(&held_up, 140_000, 130_001), (Reason::None, true), "nobody was there by then");
        assert_eq!(goes_back(&held_up, 100_000, i64::MIN), (Reason::None, true), "not due yet: nothing held it up");
        let unclaimed = Run { queued_at: 0, ..held_up.clone() };
        assert_eq!(goes_back(&unclaimed, 110_000, i64::MIN), (Reason::None, true), "never claimed");
        let late = Run { queued_at: 130_001, ..held_up.clone() };
        assert_eq!(goes_back(&late, 140_000, i64::MIN), (Reason::None, true), "it was missed when it was claimed");
        let just_in_time = Run { queued_at: 130_000, ..held_up };
        assert_eq!(goes_back(&just_in_time, 140_000, i64::MIN), (Reason::GivenBack, false));
    }
}
