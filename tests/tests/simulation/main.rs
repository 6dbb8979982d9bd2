//! Seeded simulations: the production engine over a model of everything around it, in one
//! process, on virtual time.
//!
//! `cargo test -p carillon-tests --test simulation` runs a few dozen seeds;
//! `CARILLON_SIM_SEEDS=1000` more of them (from `CARILLON_SIM_FIRST` on), `CARILLON_SIM_SEED=17` one, with its whole trace when
//! it fails. A seed is a story: the same seed tells the same one again.

#![allow(clippy::unwrap_used, clippy::expect_used)] // test code

mod executors;
mod faults;
mod node;
mod promises;
mod settings;
mod stories;
mod tasks;
mod turns;
mod world;

use carillon::domain::TenantId;
use carillon::domain::quota::Quotas;
use faults::Planned;
use promises::Broken;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use world::{TENANT, World};

/// Seeds run when nothing else is asked for.
const SEEDS: u64 = 50;

/// Events printed of a failed simulation.
const EVENTS_MAX: usize = 60;

/// Runs one simulation to its end: with the faults that its seed chooses, or with these.
fn simulate(seed: u64, lead_ms: Option<i64>, faults: Option<Vec<Planned>>) -> Arc<World> {
    simulate_under(Quotas::default(), seed, lead_ms, faults)
}

/// The same with quotas of the tenant.
fn simulate_under(quotas: Quotas, seed: u64, lead_ms: Option<i64>, faults: Option<Vec<Planned>>) -> Arc<World> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(seed, lead_ms).await;
        world.store.set_quotas(TenantId(TENANT), &quotas, world.time.now_ms()).await.unwrap();
        let faults = faults.unwrap_or_else(|| world.faults());
        world.run(faults).await;
        world
    })
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// What a failure prints: how to repeat it, and what happened.
fn report(seed: u64, world: &World, broken: &[Broken]) -> String {
    let mut text = format!("seed {seed} breaks {} promise(s); CARILLON_SIM_SEED={seed} repeats it\n", broken.len());
    let mut told = BTreeMap::new();
    for one in broken {
        let times = told.entry(one.promise).or_insert(0);
        *times += 1;
        if *times > 2 {
            continue;
        }
        writeln!(text, "\n  {}: {} (log {:?})", one.promise, one.detail, one.log).unwrap();
        let about = one.log.map(|log| world.trace.about(&log.to_string(), EVENTS_MAX)).unwrap_or_default();
        for event in about {
            writeln!(text, "    {event}").unwrap();
        }
    }
    for event in world.trace.about("FAULT", EVENTS_MAX) {
        writeln!(text, "  {event}").unwrap();
    }
    text
}

/// One line per kind of broken promise, with the seeds that show it.
fn summary(found: &BTreeMap<&'static str, Vec<u64>>) -> String {
    let line = |(promise, seeds): (&&str, &Vec<u64>)| format!("  {promise}: {} seed(s), {seeds:?}\n", seeds.len());
    found.iter().map(line).collect()
}

#[test]
fn every_seed_keeps_every_promise() {
    let first = setting("CARILLON_SIM_FIRST").unwrap_or(0);
    let all = || (first..first + setting("CARILLON_SIM_SEEDS").unwrap_or(SEEDS)).collect();
    let seeds: Vec<u64> = setting("CARILLON_SIM_SEED").map_or_else(all, |seed| vec![seed]);
    let next = AtomicU64::new(0);
    let failures = std::sync::Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|owner| {
        for _ in 0..threads {
            owner.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    let world = simulate(*seed, None, None);
                    let broken = promises::check(&world);
                    if !broken.is_empty() {
                        let text = report(*seed, &world, &broken);
                        failures.lock().unwrap().insert(*seed, (text, broken));
                    }
                }
            });
        }
    });
    if let [seed] = seeds[..] {
        // Shown when the test fails, or with `--nocapture`.
        simulate(seed, None, None).trace.sorted().iter().for_each(|event| println!("{event}"));
    }
    let failures = failures.into_inner().unwrap();
    let mut kinds: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
    for (seed, (_, broken)) in &failures {
        for one in broken {
            let seeds = kinds.entry(one.promise).or_default();
            if seeds.last() != Some(seed) {
                seeds.push(*seed);
            }
        }
    }
    if let Some((_, (first, _))) = failures.first_key_value() {
        panic!("{first}\n{} of {} seeds break a promise:\n{}", failures.len(), seeds.len(), summary(&kinds));
    }
}

#[test]
fn the_same_seed_tells_the_same_story() {
    for seed in [3, 4] {
        let (one, two) = (simulate(seed, None, None).trace.sorted(), simulate(seed, None, None).trace.sorted());
        let differs = one.iter().zip(&two).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let around = at.saturating_sub(5);
            panic!("seed {seed} differs:\n{:#?}\n{:#?}", &one[around..=at], &two[around..=at]);
        }
        assert_eq!(one.len(), two.len());
    }
}
