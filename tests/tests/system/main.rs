//! System tests: the built node and the example executor, real sockets, three databases.
//!
//! `cargo test -p carillon-tests --test system` runs all of them (`./scripts/test` builds what
//! they start first); `… -- mariadb`, `… -- main_job` or `… -- main_job::sqlite` some of them.

// A scenario is one long future around the futures of an HTTP client and a database driver.
#![recursion_limit = "256"]
#![allow(clippy::unwrap_used, clippy::expect_used)] // test code

/// `scenario!(name: sqlite mariadb postgres)` makes a test of the function of that name for each
/// of these databases; `./scripts/test` runs it on one of them, and `./scripts/test --long` on all.
/// `scenario!(name on_each: …)` is always run on all: its point is what they do differently.
macro_rules! scenario {
    ($scenario:ident on_each: $($kind:ident)+) => {
        mod $scenario {
            mod on_each {
                $(#[tokio::test]
                async fn $kind() {
                    let _cost = carillon_tests::cost::Cost::of_this_test();
                    Box::pin(super::super::$scenario(kind!($kind))).await;
                })+
            }
        }
    };
    ($scenario:ident: $($kind:ident)+) => {
        mod $scenario {
            $(#[tokio::test]
            async fn $kind() {
                let _cost = carillon_tests::cost::Cost::of_this_test();
                Box::pin(super::$scenario(kind!($kind))).await;
            })+
        }
    };
}

macro_rules! kind {
    (sqlite) => {
        carillon_tests::Kind::Sqlite
    };
    (mariadb) => {
        carillon_tests::Kind::MariaDb
    };
    (postgres) => {
        carillon_tests::Kind::Postgres
    };
}

mod main_job;

mod database_away;
mod failover;
mod fairness;
mod node_death;
mod sharing;

mod discovery;
mod dispatching;
mod executor_death;
mod executor_stop;
mod plain_executors;
mod results;
mod xxljob_admin;

mod blocking;
mod killing;
mod limits;
mod log_output;
mod quotas;
mod retries;
mod routing;
mod shards;

mod edits;
mod policies;
mod retention;
mod task_bodies;

mod events;
mod metrics;
mod statistics;
mod views;

mod calendars;
mod children;
mod delayed;
mod fixed_delay;
mod maintenance;
mod max_fires;
mod missed;
mod overload;
mod pausing;
mod preview;
mod schedules;
mod skips;
mod why;

mod clocks;
mod cluster_sign_in;
mod clusters;
mod keys;
mod tls;
mod unauthenticated;
mod waiting;
mod wire;
mod wire_limits;

mod abuse;
mod audit;
mod console;
mod encryption;
mod escalation;
mod every_operation;
mod imports;
mod last_admin;
mod later_release;
mod lists;
mod other_executors;
mod proxies;
mod sessions;
mod single_sign_on;
mod tokens;
mod two_admins;

mod backfills;
mod bad_api_input;
mod bad_start;
mod command;
mod first_start;
mod restored;
mod upgrade;
