use super::*;
use crate::domain::{LogId, TenantId};
use crate::queue::run;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A run of a tenant, of a priority, due at an instant.
fn of(tenant: i64, id: i64, priority: i32, due_time: i64) -> Run {
    Run { tenant_id: TenantId(tenant), priority, ..run(id, due_time) }
}

fn filled(runs: impl IntoIterator<Item = Run>) -> FairQueue {
    let mut order = FairQueue::default();
    for run in runs {
        order.push(run.due_time, run);
    }
    order
}

fn ids(runs: &[Run]) -> Vec<i64> {
    runs.iter().map(|run| run.id.0).collect()
}

#[test]
fn a_tenants_burst_keeps_no_other_tenant_back() {
    let mut order = filled((0..100_000).map(|id| of(1, id, 9, 0)));
    assert_eq!(order.take(10, 500).0.len(), 500);
    order.push(10, of(2, 100_000, 0, 10));
    let (next, _) = order.take(10, 500);
    assert!(ids(&next).contains(&100_000), "the very next batch has it");
    assert_eq!(next.len(), 500, "and the burst has the rest of it");
}

#[test]
fn tenants_take_turns_also_from_batch_to_batch() {
    let mut order = filled((0..40).flat_map(|tenant| (0..1_000).map(move |n| of(tenant, tenant * 1_000 + n, 5, 0))));
    let mut counts = vec![0; 40];
    for _ in 0..8 {
        for run in order.take(0, 500).0 {
            counts[run.tenant_id.0 as usize] += 1;
        }
    }
    assert_eq!(counts.iter().sum::<usize>(), 4_000);
    assert!(counts.iter().all(|count| (64..=160).contains(count)), "{counts:?}");
}

#[test]
fn within_a_tenant_priority_then_due_time_then_age_decides_and_a_backfill_comes_last() {
    let mut order = filled([
        of(1, 1, 0, 1),
        of(1, 2, 5, 20),
        of(1, 3, 5, 10),
        of(1, 4, 9, 90),
        of(1, 6, 5, 10),
        of(1, 5, 1, 5),
        of(1, 7, 9, 101),
    ]);
    assert_eq!(ids(&order.take(100, 3).0), [4, 3, 6]);
    assert_eq!(ids(&order.take(100, 9).0), [2, 5, 1], "what is not due yet waits, whatever its priority");
    assert_eq!(order.next_look(), Some(101));
}

#[test]
fn a_tenant_whose_runs_hang_is_passed_over_at_its_share() {
    let mut order = filled((0..20_000).map(|id| of(1, id, 5, 0)));
    let mut hanging = 0;
    loop {
        let (runs, passed_over) = order.take(0, 500);
        hanging += runs.len();
        if runs.is_empty() {
            assert!(passed_over);
            break;
        }
    }
    assert!((4_000..4_000 + TURN_RUNS).contains(&hanging), "half of what all may have: {hanging}");
    order.push(0, of(2, 20_001, 5, 0));
    let (runs, passed_over) = order.take(0, 500);
    assert_eq!((ids(&runs), passed_over), (vec![20_001], true));
    order.finish(TenantId(1), 300);
    assert!(order.take(0, 500).0.len() >= 100, "goes on as its runs finish");
}

#[test]
fn however_many_hang_a_tenant_has_its_floor() {
    let mut order = filled((0..30).flat_map(|tenant| (0..1_000).map(move |n| of(tenant, tenant * 1_000 + n, 5, 0))));
    while !order.take(0, 500).0.is_empty() {}
    assert!(order.under_way >= 30 * UNDER_WAY_FLOOR);
    for n in 0..600 {
        order.push(0, of(99, 100_000 + n, 5, 0));
    }
    assert_eq!(order.take(0, 1_000).0.len(), UNDER_WAY_FLOOR);
}

#[test]
fn no_tenant_takes_more_than_its_share_and_urgent_runs_find_room() {
    let page = |tenant: i64, priority: i32| {
        let first = (tenant * 10 + i64::from(priority)) * 1_000;
        (first..first + 1_000).map(|id| of(tenant, id, priority, 0)).collect()
    };
    let mut order = FairQueue::default();
    let mut claim = |runs: Vec<Run>| {
        let Admission { admitted, refused } = order.admit(700, &BTreeMap::new(), runs);
        let count = admitted.len();
        for run in admitted {
            order.push(0, run);
        }
        assert_eq!(count + refused.len(), 1_000);
        count
    };
    assert_eq!(claim(page(1, 0)), 350, "a backfill takes half");
    assert_eq!(claim(page(1, 0)), 0);
    assert_eq!(claim(page(2, 5)), 300, "an ordinary burst has six times the room that it leaves");
    assert_eq!(claim(page(3, 0)), 25, "half of what is left");
    assert_eq!(claim(page(3, 9)), 21, "its own more urgent runs find room");
    assert_eq!(claim(page(4, 5)), 4, "and so do all others");
    order.take(0, 500);
    assert_eq!(order.held(), 700, "what is under way is in memory, too");
}

/// What was put off by the time before is looked at, and what was due by it is not yet.
#[test]
fn when_the_clock_is_set_back_all_goes_by_the_new_time() {
    let mut order = filled([of(1, 1, 5, 10), of(1, 2, 5, 90_000), of(1, 3, 5, 90_000)]);
    assert_eq!(ids(&order.take(100_000, 2).0), [1, 2]);
    order.push(100_250, of(1, 1, 5, 10));
    assert_eq!(ids(&order.take(1_000, 9).0), [1]);
    assert_eq!((ids(&order.take(90_000, 9).0), order.len()), (vec![3], 0));
    order.push(900_000, of(1, 4, 5, 10));
    order.push(900_000, of(1, 5, 5, 890_000));
    assert_eq!(ids(&order.take(90_000 + PUT_OFF_MAX_MS, 9).0), [4], "put off by who had the time before");
    assert_eq!(ids(&order.take(890_000, 9).0), [5]);
}

#[test]
fn removed_entries_leave_nothing_behind() {
    let mut order = filled((0..100).map(|id| of(id, id, 5, 0)));
    assert_eq!(order.take(0, 50).0.len(), 50);
    assert_eq!(order.drain().len(), 50);
    for tenant in 0..100 {
        order.finish(TenantId(tenant), 1);
    }
    assert!(order.tenants.is_empty() && order.turns.is_empty() && order.runs.is_empty());
    assert_eq!(order.held(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Push { tenant: i64, id: i64, version: i64, priority: i32, at: i64 },
    Take { until: i64, max: usize },
    Finish { tenant: i64, count: usize },
    Drain,
}

fn any_step() -> impl Strategy<Value = Step> {
    let push = (0..200i64, 1..4i64, -1..12i32, 0..100i64).prop_map(|(id, version, priority, at)| Step::Push {
        tenant: id % 5,
        id,
        version,
        priority,
        at,
    });
    prop_oneof![
        20 => push,
        5 => (0..120i64, 0..60usize).prop_map(|(until, max)| Step::Take { until, max }),
        5 => (0..5i64, 0..40usize).prop_map(|(tenant, count)| Step::Finish { tenant, count }),
        1 => Just(Step::Drain),
    ]
}

proptest! {
    /// Against a plain map: nothing is lost, doubled, early, or out of its tenant's order, and
    /// the numbers add up.
    #[test]
    fn nothing_is_lost_or_doubled(steps in prop::collection::vec(any_step(), 1..300)) {
        let mut order = FairQueue::default();
        let mut model: BTreeMap<LogId, (i64, Run)> = BTreeMap::new();
        let mut under_way = [0usize; 5];
        for step in steps {
            match step {
                Step::Push { tenant, id, version, priority, at } => {
                    let run = Run { version, ..of(tenant, id, priority, at) };
                    order.push(at, run.clone());
                    model.entry(LogId(id)).and_modify(|(_, inside)| if inside.version <= version { *inside = run.clone() })
                        .or_insert((at, run));
                }
                Step::Take { until, max } => {
                    let ripe = model.values().filter(|(at, _)| *at <= until).count();
                    let (taken, _) = order.take(until, max);
                    // Bounds on what is under way are out of reach here; what was ripe at an
                    // earlier, later instant stays due.
                    prop_assert!(taken.len() >= ripe.min(max) && taken.len() <= max);
                    let mut seen = BTreeSet::new();
                    for run in taken {
                        prop_assert!(seen.insert(run.id));
                        under_way[run.tenant_id.0 as usize] += 1;
                        prop_assert_eq!(model.remove(&run.id).map(|(_, run)| run), Some(run));
                    }
                }
                Step::Finish { tenant, count } => {
                    order.finish(TenantId(tenant), count);
                    under_way[tenant as usize] = under_way[tenant as usize].saturating_sub(count);
                }
                Step::Drain => {
                    let drained: Vec<Run> = order.drain();
                    prop_assert_eq!(drained, std::mem::take(&mut model).into_values().map(|(_, run)| run).collect::<Vec<_>>());
                }
            }
            prop_assert_eq!(order.len(), model.len());
            prop_assert_eq!(order.held(), model.len() + under_way.iter().sum::<usize>());
            let queued: usize = order.tenants.values().map(|tenant| tenant.queued).sum();
            prop_assert_eq!(queued, model.len());
            let due: usize = order.tenants.values().map(|tenant| tenant.due.len()).sum();
            prop_assert_eq!(due + order.waiting.len(), model.len());
            let in_turn: BTreeSet<TenantId> = order.turns.iter().copied().collect();
            prop_assert_eq!(in_turn.len(), order.turns.len());
            prop_assert!(order.tenants.iter().all(|(id, tenant)| in_turn.contains(id) != tenant.due.is_empty()));
        }
        let rest = order.take(i64::MAX, usize::MAX).0;
        prop_assert_eq!(rest.len(), model.len());
    }
}

#[test]
fn of_one_version_the_copy_that_was_read_last_counts() {
    let mut order = filled([of(1, 1, 5, 60_000)]);
    order.push(8_000, of(1, 1, 5, 8_000));
    assert_eq!(order.len(), 1);
    let (taken, _) = order.take(60_000, 10);
    assert_eq!(taken.iter().map(|run| run.due_time).collect::<Vec<_>>(), [8_000], "in the place of the other");
    let mut order = filled([Run { version: 7, ..of(1, 1, 5, 60_000) }]);
    order.push(8_000, Run { version: 6, ..of(1, 1, 5, 8_000) });
    let (taken, _) = order.take(60_000, 10);
    assert_eq!(taken.iter().map(|run| run.due_time).collect::<Vec<_>>(), [60_000], "an older one changes nothing");
}
