use super::*;
use crate::domain::{LogId, TenantId};
use proptest::prelude::*;

const MINUTE: i64 = WINDOW_MS;

fn request(at: i64, latest: i64) -> SlotRequest {
    let (id, version, failures, tenant_id, back_to) = (1, 1, 0, 1, Status::Init);
    SlotRequest { id: LogId(id), version, failures, tenant_id: TenantId(tenant_id), priority: 5, at, latest, back_to }
}

fn take(rate: &mut Rate, per_minute: i32, at: i64) -> Slot {
    rate.take(per_minute, &request(at, i64::MAX))
}

fn slots(rate: &mut Rate, per_minute: i32, at: &[i64]) -> Vec<i64> {
    at.iter().map(|at| instant(take(rate, per_minute, *at), *at)).collect()
}

fn instant(slot: Slot, at: i64) -> i64 {
    match slot {
        Slot::Now => at,
        Slot::Later(slot) => slot,
        Slot::Never => panic!("there is no bound"),
    }
}

#[test]
fn a_minutes_worth_goes_at_once_and_the_rest_evenly_from_the_next_minute_on() {
    let mut rate = Rate::default();
    let got = slots(&mut rate, 4, &[500; 7]);
    assert_eq!(got, [500, 500, 500, 500, 60_500, 75_500, 90_500]);
    // Also who comes later stands behind them.
    assert_eq!(slots(&mut rate, 4, &[90_000, 200_000]), [105_500, 200_000]);
    assert_eq!((rate.used(4, 90_500), rate.behind(90_500)), (4, Some(105_500)));
    assert_eq!((rate.used(4, 120_500), rate.behind(105_500)), (3, None));
}

#[test]
fn fires_within_the_quota_are_never_delayed() {
    for (per_minute, heap) in [(60, 1), (120, 2), (6_000, 100)] {
        let mut rate = Rate::default();
        for at in (0..300_000).step_by(1_000) {
            for _ in 0..heap {
                assert_eq!(rate.take(per_minute, &request(at, at)), Slot::Now, "{per_minute} at {at}");
            }
            rate.forget(at);
        }
        assert!(rate.taken.len() < 65);
    }
}

/// Two nodes dispatch at the same time, one of them a little behind.
#[test]
fn slots_may_be_asked_for_in_any_order() {
    let mut rate = Rate::default();
    for at in (0..300_000).step_by(2_000) {
        assert_eq!(take(&mut rate, 60, at + 1_000), Slot::Now);
        assert_eq!(take(&mut rate, 60, at), Slot::Now);
    }
}

#[test]
fn a_caller_past_its_deadline_takes_no_slot() {
    let mut rate = Rate::default();
    assert_eq!(slots(&mut rate, 1, &[0, 0]), [0, MINUTE]);
    assert_eq!(rate.take(1, &request(0, 2 * MINUTE - 1)), Slot::Never);
    assert_eq!(rate.take(1, &request(0, 2 * MINUTE)), Slot::Later(2 * MINUTE));
}

#[test]
fn another_quota_counts_what_went_out_under_the_old_one() {
    let mut rate = Rate::default();
    slots(&mut rate, 60, &[0; 600]);
    rate.reset(60, 200_000);
    assert_eq!(slots(&mut rate, 61, &[200_000; 3]), [200_000, 260_000, 260_984]);
    let mut calm = Rate::default();
    slots(&mut calm, 60, &[0; 6]);
    calm.reset(60, 1_000);
    assert_eq!(slots(&mut calm, 7, &[1_000; 2]), [1_000, 60_000]);
}

#[test]
fn a_backlog_takes_no_room() {
    let mut rate = Rate::default();
    for _ in 0..100_000 {
        take(&mut rate, 600, 7);
        rate.forget(7);
    }
    assert!(rate.taken.len() <= 62, "{}", rate.taken.len());
    let last = rate.behind(7).unwrap();
    // Ten a second, but for a sixtieth.
    let evenly = (100_000 - 600) * 100;
    assert!((evenly..=60_007 + evenly * 62 / 60).contains(&last), "{last}");
}

#[test]
fn the_urgent_change_places_with_the_first_that_are_less() {
    let waiting = |id, priority, due_time| DelayedRun { id, version: 1, failures: 0, priority, due_time };
    let urgent = |priority, at| SlotRequest { priority, ..request(at, i64::MAX) };
    let line = vec![
        waiting(LogId(1), 1, 90),
        waiting(LogId(2), 8, 110),
        waiting(LogId(3), 5, 120),
        waiting(LogId(4), 1, 130),
        waiting(LogId(5), 1, 140),
    ];
    let requests = [urgent(9, 100), urgent(5, 0), urgent(6, 115), urgent(6, 100), urgent(2, 100), urgent(2, 100)];
    let mut slots =
        [Slot::Later(200), Slot::Now, Slot::Later(210), Slot::Later(220), Slot::Later(230), Slot::Later(139)];
    let moved = overtake(&requests, &mut slots, &[0, 2, 3, 4, 5], line, (1, &mut Rate::default()));
    let at = |slot| Slot::Later(slot);
    assert_eq!(slots, [at(110), Slot::Now, at(120), at(130), at(140), at(139)]);
    let moved: Vec<(i64, i64)> = moved.iter().map(|one| (one.id.0, one.due_time)).collect();
    assert_eq!(moved, [(2, 200), (3, 210), (4, 220), (5, 230)]);
    let requests = [100, 99].map(|latest| SlotRequest { priority: 9, ..request(50, latest) });
    let mut slots = [Slot::Never; 2];
    let line = vec![waiting(LogId(1), 1, 100), waiting(LogId(2), 1, 101)];
    let mut rate = Rate { behind_us: 101_000, ..Rate::default() };
    let moved = overtake(&requests, &mut slots, &[0, 1], line, (60, &mut rate));
    assert_eq!(slots, [at(100), Slot::Never], "who cannot wait so long does not");
    assert_eq!(moved, [waiting(LogId(1), 1, 1_101)], "a slot at the end");
}

#[test]
fn it_knows_whether_a_less_urgent_run_waits() {
    let urgent = |priority| SlotRequest { priority, ..request(0, i64::MAX) };
    let mut rate = Rate::default();
    for priority in [5, 5, 7] {
        rate.take(1, &urgent(priority));
    }
    assert_eq!([5, 6].map(|priority| rate.has_less_urgent(&urgent(priority))), [false, true]);
    rate.found_none_below(7);
    assert_eq!([7, 8].map(|priority| rate.has_less_urgent(&urgent(priority))), [false, true]);
    rate.take(1, &urgent(2));
    assert!(rate.has_less_urgent(&urgent(3)));
    assert!(!rate.has_less_urgent(&SlotRequest { at: 400_000, ..urgent(9) }), "no run waits any more");
    for _ in 0..2 {
        rate.take(1, &SlotRequest { at: 400_000, ..urgent(5) });
    }
    assert!(!rate.has_less_urgent(&SlotRequest { at: 400_000, ..urgent(4) }), "that was another line");
}

proptest! {
    /// (how long after the last one it is asked for, how much earlier or later it is due)
    #[test]
    fn no_minute_holds_more_than_the_quota(
        per_minute in 1i32..12,
        steps in prop::collection::vec((0i64..9_000, -500i64..4_000), 1..120),
    ) {
        let (mut rate, mut now) = (Rate::default(), 1_000_000);
        let (mut got, mut last_late) = (Vec::new(), i64::MIN);
        for (passed, due) in steps {
            now += passed;
            rate.forget(now);
            let at = now.max(now + due);
            let slot = instant(take(&mut rate, per_minute, at), at);
            prop_assert!(slot >= at);
            if slot > at {
                prop_assert!(slot >= last_late, "the line keeps its order");
                last_late = slot;
            }
            got.push(slot);
        }
        let mut sorted = got.clone();
        sorted.sort_unstable();
        for begin in &sorted {
            let within = sorted.iter().filter(|at| (*begin..begin + MINUTE).contains(*at)).count();
            prop_assert!(within <= per_minute as usize, "{within} from {begin} on: {sorted:?}");
        }
    }

    /// If a window of twice the length has room and no run is waiting yet, no run waits.
    #[test]
    fn no_run_waits_without_need(
        per_minute in 1i32..12,
        steps in prop::collection::vec(0i64..20_000, 1..80),
    ) {
        let (mut rate, mut now, mut got) = (Rate::default(), 1_000_000, Vec::<i64>::new());
        for passed in steps {
            now += passed;
            rate.forget(now);
            let has_line = rate.behind(now).is_some();
            let near = got.iter().filter(|at| **at > now - MINUTE - STEP_MS).count();
            let slot = instant(take(&mut rate, per_minute, now), now);
            prop_assert!(has_line || near >= per_minute as usize || slot == now, "{near} near {now}, but {slot}");
            got.push(slot);
        }
    }

    /// (how long after the last one it is asked for, its priority, how long it can wait)
    #[test]
    fn only_who_runs_has_a_slot_and_no_minute_holds_more_than_the_quota(
        per_minute in 1i32..12,
        steps in prop::collection::vec((0i64..5_000, 1i32..4, prop::sample::select(vec![0i64, 2_000, 90_000, i64::MAX])), 1..150),
    ) {
        let (mut now, mut line, mut went) = (1_000_000, Vec::<DelayedRun>::new(), Vec::new());
        let mut rates = Rates::from([(TenantId(1), (per_minute, Rate::default()))]);
        for (batch, asked) in steps.chunks(3).enumerate() {
            now += asked.iter().map(|(passed, ..)| passed).sum::<i64>();
            went.extend(line.extract_if(.., |one| one.due_time <= now).map(|one| one.due_time));
            let mut requests: Vec<SlotRequest> = asked.iter().enumerate().map(|(at, (_, priority, waits))| {
                let id = LogId((batch * 10 + at) as i64);
                SlotRequest { id, priority: *priority, ..request(now, now.saturating_add(*waits)) }
            }).collect();
            requests.sort_by_key(|request| std::cmp::Reverse(request.priority));
            let (mut slots, urgent) = take_all(&requests, &mut rates);
            let (_, rate) = rates.get_mut(&TenantId(1)).unwrap();
            for urgent in urgent.into_values() {
                for moved in overtake(&requests, &mut slots, &urgent, line.clone(), (per_minute, rate)) {
                    let one = line.iter_mut().find(|one| one.id == moved.id).unwrap();
                    prop_assert!(moved.due_time > one.due_time);
                    *one = moved;
                }
            }
            for (SlotRequest { id, version, failures, priority, latest, .. }, slot) in requests.iter().zip(slots) {
                match slot {
                    Slot::Now => went.push(now),
                    Slot::Later(due_time) => {
                        prop_assert!(due_time <= *latest);
                        let (id, version, failures, priority) = (*id, *version, *failures, *priority);
                        line.push(DelayedRun { id, version, failures, priority, due_time });
                    }
                    Slot::Never => {}
                }
            }
            line.sort_by_key(|one| one.due_time);
            let taken: i64 = rate.taken.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(taken, (went.len() + line.len()) as i64);
        }
        let mut slots: Vec<i64> = went.into_iter().chain(line.iter().map(|one| one.due_time)).collect();
        slots.sort_unstable();
        for begin in &slots {
            let within = slots.iter().filter(|at| (*begin..begin + MINUTE).contains(*at)).count();
            prop_assert!(within <= per_minute as usize, "{within} from {begin} on: {slots:?}");
        }
    }
}
