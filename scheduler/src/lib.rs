//! carillon: a multi-tenant cron dispatcher. This library is the scheduler node; `main.rs` is
//! its binary. Modules in the order in which a run flows through them; imports run one way.

pub mod domain;
pub mod metrics;
pub mod store;

pub mod cluster;
pub mod pregenerate;
pub mod queue;

pub mod auth;
pub mod clusters;
pub mod dispatch;
pub mod housekeeping;
pub mod outcome;

pub mod definitions;
pub mod engine;
pub mod live;
pub mod response_body;
pub mod settings;
pub mod task_files;
pub mod tls;

pub mod xxljob;

pub mod discovery;

pub mod api;
pub mod node;
pub mod workers;

pub mod cli;

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
