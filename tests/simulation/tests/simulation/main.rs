//! Seeded simulations: the production engine over a model of everything around it, in one
//! process, on virtual time.
//!
//! `./scripts/simulate --seeds 1..2000` runs seeds, `./scripts/simulate --seed 17` one, with its whole trace. A seed is a
//! story: the same seed tells the same one again. One that breaks a promise is told with the fewest faults that still
//! break it.

#![allow(clippy::unwrap_used, clippy::expect_used)] // test code

mod clock_stories;
mod driven;
mod executor_stories;
mod faults;
mod node;
mod operations;
mod plain_stories;
mod process;
mod promises;
mod report;
mod seeds;
mod settings;
mod shrink;
mod sqlite_stories;
mod stories;
mod tasks;
mod world;

use promises::Broken;
use settings::Shape;
use std::sync::Arc;
use world::{Setup, World};

/// Runs one simulation to its end.
fn simulate(setup: &Setup) -> Arc<World> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(setup).await;
        world.run().await;
        world
    })
}

/// What a simulation broke.
fn broken(setup: &Setup) -> Vec<Broken> {
    promises::check(&simulate(setup))
}

#[test]
fn every_seed_keeps_every_promise() {
    seeds::keep_every_promise(&seeds::OVER_MODEL);
}

#[test]
fn every_seed_keeps_every_promise_over_sqlite() {
    seeds::keep_every_promise(&seeds::OVER_SQLITE);
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let of = |seed, over_sqlite| Setup { over_sqlite, ..Setup::of(seed) };
    let plain = |seed, plain_executors| Setup {
        shape: Shape { plain_executors, turns: true, ..Shape::of(seed) },
        ..Setup::of(seed)
    };
    for setup in [of(3, false), of(4, false), of(3, true), plain(3, 2), plain(5, 1)] {
        let (seed, tell) = (setup.seed, || simulate(&setup).trace.sorted());
        let (one, two) = (tell(), tell());
        let differs = one.iter().zip(&two).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let around = at.saturating_sub(5);
            panic!("seed {seed} differs:\n{:#?}\n{:#?}", &one[around..=at], &two[around..=at]);
        }
        assert_eq!(one.len(), two.len());
    }
}
