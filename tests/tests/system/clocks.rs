//! Clocks that are wrong.

use crate::sharing::every_second;
use carillon_tests::executor::Options;
use carillon_tests::fires::{assert_all, assert_on_time, fired_within};
use carillon_tests::wait::sample;
use carillon_tests::{Executor, Fires, Kind, Status, World, now_ms};
use std::collections::HashMap;
use std::path::PathBuf;

scenario!(executor_clock_5_s_off: sqlite mariadb postgres);

/// The library of Debian's package `faketime`.
fn libfaketime() -> String {
    let libraries = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let found: Option<PathBuf> =
        libraries.map(|entry| entry.path().join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    found.expect("package faketime is not installed; ./scripts/test installs it").display().to_string()
}

/// The environment of a process whose wall clock is wrong by so much, as faketime writes it. Only that one: the monotonic
/// clock cannot be wrong.
pub fn wall_clock_off_by(offset: &str) -> Vec<(String, String)> {
    let library = libfaketime();
    let set = [
        ("LD_PRELOAD", library.as_str()),
        ("FAKETIME", offset),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    set.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// H25, X14: an executor's own wall clock has no say.
async fn executor_clock_5_s_off(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let mut executors = Vec::new();
    for (name, offset) in [("fast", "+5s"), ("slow", "-5s")] {
        let env = wall_clock_off_by(offset);
        let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let options = Options { env: &env, ..Options::default() };
        executors.push(world.executor_with(name, &app, &options).await);
    }
    let tasks = every_second(&api, &app, 4).await;
    let made_at = now_ms();
    let arrivals = watch(&executors, 14_000).await;
    let until = now_ms() - 3_000;
    let (rows, starts) = world.settle_and_check().await;
    for task in tasks {
        let of_task: Vec<_> = rows.iter().filter(|row| row.task == task).cloned().collect();
        let fires = Fires::every(1, &of_task).assert_no_gap().between(made_at + 2_000, until);
        assert_all("succeeded at once", &fires, |row| row.status == Status::Succeeded && row.attempt == 1);
    }
    let steady = fired_within(&rows, made_at + 6_000, until);
    assert_on_time("by their own account", &steady, &starts, 1_500);
    // By this process's clock, which is right: the report's line is written when a run ended.
    let wrong: Vec<_> = steady
        .iter()
        .filter_map(|row| arrivals.get(&row.id).map(|at| (at - row.fire_time, row)))
        .filter(|(late_ms, _)| !(0..2_500).contains(late_ms))
        .collect();
    assert!(wrong.is_empty(), "seen at the wrong time: {}", sample(&wrong));
    for executor in &executors {
        assert!(executor.starts().len() > 5, "{} ran only {}", executor.name, executor.starts().len());
    }
}

/// Looks at the reports for so long; when each log was first seen there.
async fn watch(executors: &[Executor], for_ms: i64) -> HashMap<i64, i64> {
    let mut seen = HashMap::new();
    let end = now_ms() + for_ms;
    while now_ms() < end {
        for executor in executors {
            for start in executor.starts() {
                seen.entry(start.log).or_insert_with(now_ms);
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    seen
}
