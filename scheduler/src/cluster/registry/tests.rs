use super::super::fixture::{Counts, Fake, executor};
use super::*;

const APP: App = (TenantId(1), AppId(1));

/// Looks at that instant; executors are offline after 10 s.
async fn look(registry: &Registry, store: &Fake, now: i64) {
    registry.take(registry.read(store, now - 10_000, now).await.unwrap());
}

fn ids(registry: &Registry) -> Vec<i64> {
    let mut ids: Vec<i64> = registry.ids().into_iter().map(|id| id.0).collect();
    ids.sort_unstable();
    ids
}

fn fleet(registry: &Registry, now: i64) -> Fleet {
    registry.fleet(APP.0, APP.1, now).unwrap()
}

/// A thousand executors that beat every three seconds.
async fn a_thousand() -> (Registry, Fake) {
    let (registry, store) = (Registry::default(), Fake::default());
    for id in 0..1_000 {
        store.put(executor(id, 100_000 - id * 3));
    }
    look(&registry, &store, 100_000).await;
    assert_eq!(store.counted(), Counts { described: 1_000, ..Counts::default() });
    (registry, store)
}

#[tokio::test]
async fn a_look_reads_what_has_changed_and_descriptions_only_where_they_have() {
    let (registry, store) = a_thousand().await;
    for id in 0..333 {
        store.change(id, |executor, _| (executor.heartbeat_at, executor.held) = (100_900, 3));
    }
    store.change(7, |executor, _| {
        (executor.described_at, executor.handlers) = (100_900, ["new".to_owned()].into());
    });
    store.put(executor(5_000, 100_950));
    store.change(8, |executor, gone_at| (*gone_at, executor.heartbeat_at) = (100_900, 100_900));
    let before = fleet(&registry, 100_000);
    look(&registry, &store, 101_000).await;
    let counts = store.counted();
    assert_eq!(counts.described, 2, "the new one and the one that can do something new");
    // A third has beaten; some are read again because a commit may come late.
    assert!((334..=510).contains(&counts.pulses), "{counts:?}");
    assert_eq!(registry.find(ExecutorId(3)).unwrap().held, 3);
    assert!(registry.find(ExecutorId(7)).unwrap().handlers.contains("new"));
    assert!(registry.find(ExecutorId(8)).is_none() && registry.find(ExecutorId(5_000)).is_some());
    assert_ne!(fleet(&registry, 101_000).shape(), before.shape());
    assert_eq!(registry.take_come(), HashSet::from([APP]));

    store.change(9, |executor, _| (executor.heartbeat_at, executor.held) = (101_900, 4));
    let before = fleet(&registry, 101_000);
    look(&registry, &store, 102_000).await;
    let now = fleet(&registry, 102_000);
    assert_eq!(now.shape(), before.shape(), "loads change no shape");
    let held = |fleet: &Fleet| fleet.executors().iter().find(|e| e.id == ExecutorId(9)).unwrap().held;
    assert_eq!((held(&before), held(&now)), (3, 4));
    assert!(registry.take_come().is_empty());
}

#[tokio::test]
async fn a_registration_reads_itself_and_whom_it_replaces() {
    let (registry, store) = a_thousand().await;
    store.change(5, |executor, gone_at| (*gone_at, executor.heartbeat_at) = (100_000, 100_000));
    let address = "http://e0005:1";
    store.put(Executor { address: address.to_owned(), ..executor(6_000, 100_000) });
    registry.refresh_one(&store, ExecutorId(6_000), (APP, Some(address)), 90_000).await.unwrap();
    assert_eq!(store.counted(), Counts { described: 1, ..Counts::default() });
    assert!(registry.find(ExecutorId(5)).is_none() && registry.find(ExecutorId(6_000)).is_some());
    assert_eq!(registry.crowd(APP.0, APP.1, address), (1_000, true));
    assert_eq!(registry.crowd(APP.0, APP.1, "http://elsewhere:1"), (1_000, false));

    store.change(6, |executor, gone_at| (*gone_at, executor.heartbeat_at) = (100_000, 100_000));
    registry.refresh_one(&store, ExecutorId(6), (APP, None), 90_000).await.unwrap();
    assert_eq!(store.counted(), Counts::default());
    assert!(registry.find(ExecutorId(6)).is_none());
    assert_eq!(registry.departures(), 2);
}

#[tokio::test]
async fn what_falls_silent_goes_and_comes_back() {
    let (registry, store) = (Registry::default(), Fake::default());
    for id in [1, 2] {
        store.put(executor(id, 100_000));
    }
    look(&registry, &store, 100_000).await;
    store.change(1, |executor, _| executor.heartbeat_at = 110_000);
    look(&registry, &store, 110_001).await;
    assert_eq!(ids(&registry), [1]);
    store.change(2, |executor, _| executor.heartbeat_at = 110_500);
    look(&registry, &store, 111_000).await;
    assert_eq!(ids(&registry), [1, 2]);
    // After an outage older heartbeats count again.
    look(&registry, &store, 125_000).await;
    assert!(ids(&registry).is_empty());
    registry.take(registry.read(&store, 110_200, 125_100).await.unwrap());
    assert_eq!(ids(&registry), [2]);
}

#[tokio::test]
async fn a_late_commit_is_found_with_the_next_heartbeat_or_when_all_is_read() {
    let (registry, store) = (Registry::default(), Fake::default());
    for id in [1, 2, 3] {
        store.put(executor(id, 100_000));
    }
    look(&registry, &store, 100_000).await;
    store.change(1, |executor, _| executor.heartbeat_at = 103_000);
    look(&registry, &store, 103_000).await;
    // Both took so long that the look was before them.
    store.put(executor(4, 101_000));
    store.change(3, |executor, gone_at| (*gone_at, executor.heartbeat_at) = (101_000, 101_000));
    look(&registry, &store, 104_000).await;
    assert_eq!(ids(&registry), [1, 2, 3]);
    for id in [1, 2, 4] {
        store.change(id, |executor, _| executor.heartbeat_at = 104_500);
    }
    look(&registry, &store, 105_000).await;
    assert_eq!(ids(&registry), [1, 2, 3, 4]);
    for now in (106_000..131_000).step_by(1_000) {
        for id in [1, 2, 4] {
            store.change(id, |executor, _| executor.heartbeat_at = now);
        }
        look(&registry, &store, now).await;
    }
    assert_eq!(ids(&registry), [1, 2, 4]);
}

#[tokio::test]
async fn a_clock_that_was_set_back_hides_no_heartbeat() {
    let (registry, store) = (Registry::default(), Fake::default());
    store.put(executor(1, 140_000));
    store.put(executor(2, 100_000));
    look(&registry, &store, 100_000).await;
    store.change(2, |executor, _| executor.heartbeat_at = 101_000);
    look(&registry, &store, 101_000).await;
    assert_eq!(registry.find(ExecutorId(2)).unwrap().heartbeat_at, 101_000);
}

#[tokio::test(start_paused = true)]
async fn how_long_one_is_missing_counts_by_this_machine() {
    let (registry, store) = (Registry::default(), Fake::default());
    store.put(executor(1, 100_000));
    look(&registry, &store, 100_000).await;
    assert_eq!(registry.missing_for(ExecutorId(1)), None);
    // The clock is set forward by a minute: its heartbeat looks old.
    look(&registry, &store, 160_000).await;
    tokio::time::advance(Duration::from_secs(3)).await;
    assert_eq!(registry.missing_for(ExecutorId(1)), Some(Duration::from_secs(3)));
    store.change(1, |executor, _| executor.heartbeat_at = 163_000);
    look(&registry, &store, 163_000).await;
    assert_eq!(registry.missing_for(ExecutorId(1)), None);
}

#[tokio::test]
async fn an_earlier_reading_that_comes_later_says_nothing() {
    let registry = Registry::default();
    let (early, late) = (registry.begin(), registry.begin());
    registry.apply(late, vec![executor(1, 100)], HashSet::from([ExecutorId(2)]));
    registry.apply(early, vec![executor(1, 50), executor(2, 50), executor(3, 50)], HashSet::new());
    assert_eq!(ids(&registry), [1, 3]);
    assert_eq!(registry.find(ExecutorId(1)).unwrap().heartbeat_at, 100);
}

#[tokio::test]
async fn those_that_are_avoided_are_left_out_while_there_are_others() {
    let (registry, store) = (Registry::default(), Fake::default());
    for id in [1, 2, 3] {
        store.put(executor(id, 100_000));
    }
    look(&registry, &store, 100_000).await;
    let there = |now| fleet(&registry, now).executors().iter().map(|executor| executor.id.0).collect::<Vec<_>>();
    registry.avoid(ExecutorId(2), 100_000);
    assert_eq!((there(104_999), there(105_000)), (vec![1, 3], vec![1, 2, 3]));
    assert_eq!(there(40_000), [1, 2, 3], "that was before the clock was set back");
    let shape = fleet(&registry, 100_000).shape();
    store.change(1, |executor, _| (executor.heartbeat_at, executor.held) = (100_900, 9));
    look(&registry, &store, 101_000).await;
    let now = fleet(&registry, 101_000);
    assert_eq!((now.shape(), now.executors()[0].held), (shape, 9), "the same shape, today's load");
    registry.avoid(ExecutorId(1), 100_000);
    assert_ne!(fleet(&registry, 101_000).shape(), shape);
    registry.avoid(ExecutorId(3), 100_000);
    assert_eq!(there(101_000), [1, 2, 3], "a wrong suspicion must not stop an app");
}

/// The row of one that has died is by the time before: the others are looked at all the same.
#[tokio::test]
async fn a_heartbeat_of_before_the_clock_was_set_back_hides_no_later_one() {
    let (registry, store) = (Registry::default(), Fake::default());
    store.put(executor(1, 100_000));
    store.put(executor(2, 130_000));
    look(&registry, &store, 100_000).await;
    store.change(1, |executor, _| (executor.heartbeat_at, executor.held) = (100_100, 7));
    look(&registry, &store, 101_000).await;
    assert_eq!(registry.find(ExecutorId(1)).unwrap().held, 7);
    store.change(1, |executor, _| (executor.heartbeat_at, executor.held) = (101_100, 8));
    look(&registry, &store, 102_000).await;
    assert_eq!(registry.find(ExecutorId(1)).unwrap().held, 8);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_from_the_future_counts_for_as_long_as_any() {
    let (registry, store) = (Registry::default(), Fake::default());
    store.put(executor(1, 130_000));
    store.put(executor(2, 130_000));
    look(&registry, &store, 100_000).await;
    assert_eq!(ids(&registry), [1, 2]);
    let mut now = 100_000;
    for (seconds, there) in [(9, vec![1, 2]), (3, vec![1])] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        now += seconds as i64 * 1_000;
        // A server whose clock is ahead writes those of this one.
        store.change(1, |executor, _| executor.heartbeat_at = now + 30_000);
        look(&registry, &store, now).await;
        assert_eq!(ids(&registry), there, "at {now}");
    }
}

/// Each is kept until its executor names others, or goes.
#[tokio::test]
async fn executors_of_an_app_name_only_so_many_runs() {
    let (registry, store) = (Registry::default(), Fake::default());
    (1..=11).for_each(|id| store.put(executor(id, 100_000)));
    look(&registry, &store, 100_000).await;
    let name = |id: i64, runs: usize| {
        let room = registry.room(APP.1, runs)?;
        let (runs, cancelled) = (HashSet::new(), HashSet::new());
        let (taken_at, received_at) = (100_000, 100_000);
        let snapshot = Snapshot { taken_at, received_at, times_set: 0, runs, cancelled, doubted_until: 0, room };
        registry.heard(ExecutorId(id), snapshot);
        Some(())
    };
    assert!((1..=10).all(|id| name(id, EXECUTOR_RUNS_MAX).is_some()));
    assert_eq!(name(11, 1), None);
    assert!(registry.room(AppId(2), EXECUTOR_RUNS_MAX).is_some(), "another app has its own");
    assert!(name(11, 0).is_some() && name(3, 0).is_some(), "none always pass");
    assert!(name(11, EXECUTOR_RUNS_MAX).is_some(), "what the third named before");
    assert_eq!(name(3, 1), None);
    store.change(5, |executor, gone_at| (*gone_at, executor.heartbeat_at) = (100_900, 100_900));
    look(&registry, &store, 101_000).await;
    assert!(name(3, EXECUTOR_RUNS_MAX).is_some(), "what one named that has gone");
}
