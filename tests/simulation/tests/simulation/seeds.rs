//! Many seeds at once, and what is printed of those that break a promise.

use crate::promises::{self, Broken};
use crate::report::{self, Names};
use crate::shrink::{TRIES_MAX, shrunk};
use crate::world::Setup;
use crate::{broken, simulate};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A range of seeds.
pub struct Seeds {
    /// How many are run when nothing else is asked for.
    default: u64,
    /// What asks for more or less.
    count: &'static str,
    /// What a seed makes.
    setup: fn(u64) -> Setup,
}

/// Over the model.
pub const OVER_MODEL: Seeds = Seeds { default: 50, count: "CARILLON_SIM_SEEDS", setup: Setup::of };

/// Over what ships, on SQLite.
pub const OVER_SQLITE: Seeds = Seeds {
    default: 3,
    count: "CARILLON_SIM_SEEDS_OVER_SQLITE",
    setup: |seed| Setup { over_sqlite: true, ..Setup::of(seed) },
};

/// Failing seeds whose stories are told in full: the others have their line.
const TOLD_MAX: usize = 3;

type Found = BTreeMap<u64, Vec<Broken>>;

/// Runs the seeds that the environment asks for.
pub fn keep_every_promise(of: &Seeds) {
    let seeds: Vec<u64> = if let Some(seed) = setting("CARILLON_SIM_SEED") {
        vec![seed]
    } else {
        let first = setting("CARILLON_SIM_FIRST").unwrap_or(1);
        (first..first + setting(of.count).unwrap_or(of.default)).collect()
    };
    if let [seed] = seeds[..] {
        tell_all(&fewest_faults(&(of.setup)(seed)));
    }
    let began = std::time::Instant::now();
    let found = run(of, &seeds);
    if found.is_empty() {
        let seconds = began.elapsed().as_secs();
        println!("{} seeds from {} on keep every promise; it took {seconds} s", seeds.len(), seeds[0]);
        return;
    }
    if is_set("CARILLON_SIM_FIRST_ONLY") {
        let (seed, broken) = found.first_key_value().unwrap();
        panic!("broken by seed {seed} ({})", broken[0].promise);
    }
    for (seed, broken) in found.iter().take(TOLD_MAX) {
        println!("{}", story(&(of.setup)(*seed), broken));
    }
    panic!("{} of {} seeds break a promise:\n{}", found.len(), seeds.len(), summary(&found));
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

/// The seeds that break a promise; the first one only, when that is asked for.
fn run(of: &Seeds, seeds: &[u64]) -> Found {
    let first_only = is_set("CARILLON_SIM_FIRST_ONLY");
    let (next, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    let found = Mutex::new(Found::new());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = setting("CARILLON_SIM_JOBS").map_or(cores, |jobs| jobs as usize);
    std::thread::scope(|owner| {
        for _ in 0..threads {
            owner.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    if stops.load(Ordering::Relaxed) {
                        return;
                    }
                    let broken = broken(&(of.setup)(*seed));
                    if !broken.is_empty() {
                        stops.store(first_only, Ordering::Relaxed);
                        // Long before the stories: those take time.
                        println!("seed {seed}: {}", broken[0].promise);
                        found.lock().unwrap().insert(*seed, broken);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// The same with the fewest faults that break one of the promises that it breaks; itself if it breaks none.
fn fewest_faults(setup: &Setup) -> Setup {
    let broken = broken(setup);
    let kinds: BTreeSet<&str> = broken.iter().map(|one| one.promise).collect();
    if kinds.is_empty() { setup.clone() } else { shrunk(setup, &kinds).0 }
}

/// A failing seed's story: with the fewest faults that still break one of the promises that it broke.
fn story(setup: &Setup, broken: &[Broken]) -> String {
    let kinds: BTreeSet<&str> = broken.iter().map(|one| one.promise).collect();
    let (setup, tries) = shrunk(setup, &kinds);
    let world = simulate(&setup);
    let left = promises::check(&world);
    let perhaps = if tries < TRIES_MAX { "" } else { ", perhaps not the fewest" };
    format!(
        "seed {} breaks {} promise(s); told with the fewest faults ({tries} simulations more{perhaps})\n{}",
        setup.seed,
        kinds.len(),
        report::report(&world, &left)
    )
}

/// Every event of a seed.
fn tell_all(setup: &Setup) {
    let world = simulate(setup);
    let names = Names::of(&world);
    println!("seed {}: {:?}", setup.seed, world.shape);
    world.trace.sorted().iter().for_each(|event| println!("{}", names.told(event)));
}

/// One line per kind of broken promise, with the seeds that show it.
fn summary(found: &Found) -> String {
    let mut kinds: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (seed, broken) in found {
        for one in broken {
            kinds.entry(one.promise).or_default().insert(*seed);
        }
    }
    let line = |(promise, seeds): (&&str, &BTreeSet<u64>)| format!("  {promise}: {} seed(s), {seeds:?}\n", seeds.len());
    kinds.iter().map(line).collect()
}
