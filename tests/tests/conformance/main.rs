//! One suite for every store: the traits' documentation, held against the model in memory,
//! `SQLite`, `MariaDB` and `PostgreSQL`. Whatever the engine relies on is a case here; so what the
//! simulator finds over the model holds on the databases too.
//!
//! `cargo test -p carillon-tests --test conformance` runs all; `… -- claiming`, `… -- postgres`
//! or `… -- claiming::shares_are_disjoint_and_complete::model` some of them.

// A case is one long future around those of a database driver.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::expect_used)] // test code

/// `cases!(name, …)` makes a test of each function of that name for each store.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        $(mod $case {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn model() {
                super::$case(crate::fixture::World::model().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                let world = crate::fixture::World::sql(carillon_tests::Kind::Sqlite).await;
                let check = world.check_of_plans();
                super::$case(world).await;
                check.await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb() {
                let world = crate::fixture::World::sql(carillon_tests::Kind::MariaDb).await;
                let check = world.check_of_plans();
                super::$case(world).await;
                check.await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                let world = crate::fixture::World::sql(carillon_tests::Kind::Postgres).await;
                let check = world.check_of_plans();
                super::$case(world).await;
                check.await;
            }
        })+
    };
}

/// `databases!(name, …)` makes a test of each function for each database.
macro_rules! databases {
    ($($case:ident),+ $(,)?) => {
        $(mod $case {
            databases!(@one $case sqlite Sqlite);
            databases!(@one $case mariadb MariaDb);
            databases!(@one $case postgres Postgres);
        })+
    };
    (@one $case:ident $name:ident $kind:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            let (world, store) = crate::fixture::World::sql_with_store(carillon_tests::Kind::$kind).await;
            let check = world.check_of_plans();
            super::$case(world, store).await;
            check.await;
        }
    };
}

/// The same with the store itself, and the model.
macro_rules! stores {
    ($($case:ident),+ $(,)?) => {
        $(mod $case {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn model() {
                let (world, store) = crate::fixture::World::model_with_store().await;
                super::$case(world, store).await;
            }

            databases!(@one $case sqlite Sqlite);
            databases!(@one $case mariadb MariaDb);
            databases!(@one $case postgres Postgres);
        })+
    };
}

/// Cases of what lies between a node and a database server, which SQLite has not; each makes its own database.
macro_rules! servers {
    ($($case:ident),+ $(,)?) => {
        $(mod $case {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn mariadb() {
                super::$case(carillon_tests::Kind::MariaDb).await;
                crate::plans::passed_unseen(carillon_tests::Kind::MariaDb);
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$case(carillon_tests::Kind::Postgres).await;
                crate::plans::passed_unseen(carillon_tests::Kind::Postgres);
            }
        })+
    };
}

mod access;
mod admin;
mod fixture;
mod plans;

mod audit;
mod cluster;
mod galera;
mod given_up;
mod lease;

mod edits;
mod edits_at_once;
mod encryption;
mod job_lists;
mod links;
mod planning;
mod revoked_runs;
mod silences;
mod skips;
mod takeover;
mod unscheduled_runs;

mod attempts;
mod claiming;
mod dispatching;
mod shards;
mod upcoming_runs;

mod backfills;
mod calendars;
mod permits;
mod plain_executors;
mod quotas;
mod rules;
mod scripts;
mod windows;

mod counting;
mod executors;
mod keys;
mod lists;
mod origins;
mod outbox;
mod outcome;
mod retention;
mod statistics;
mod sweeps;

mod random_steps;

mod foreign;
