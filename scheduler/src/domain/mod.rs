//! The words of the product as pure values and functions: no I/O, no async, no clock.
//!
//! `task_log` holds the states of a run and which may follow which; `task` what an admin
//! defines; `plan` turns a schedule into runs; `failure` decides what follows a failed attempt;
//! `refusal` lists why something is refused; `routing` chooses executors; `cron` knows Quartz; `access` says who may do what; `statistics` adds up
//! what happened, `forecast` what will; `discovery` says where executors are found; `xxljob` reads and writes what executors of xxl-job
//! do; `import` is what other schedulers have, which `xxljob` and `horace` read.

pub mod access;
pub mod action;
pub mod audit;
pub mod calendar;
pub mod change_feed;
pub mod choice;
pub mod clock_spread;
pub mod clock_step;
pub mod consequences;
pub mod cron;
pub mod discovery;
pub mod executor;
pub mod failure;
pub mod field_error;
pub mod forecast;
pub mod horace;
pub mod id;
pub mod id_source;
pub mod import;
pub mod instant;
pub mod links;
pub mod missed;
pub mod order;
pub mod owner;
pub mod permit;
pub mod plan;
pub mod quota;
pub mod rate_limit;
pub mod reason;
pub mod recent;
pub mod refusal;
pub mod revocation;
pub mod routing;
pub mod rules;
pub mod schedule;
pub mod silence;
pub mod stable_random;
pub mod statistics;
pub mod task;
pub mod task_log;
pub mod transition;
pub mod trigger;
pub mod why;
pub mod xxljob;

pub use access::{AccessScope, Permission};
pub use action::Action;
pub use clock_step::ClockReading;
pub use executor::Executor;
pub use field_error::FieldError;
pub use id::{
    AppId, BackfillId, CalendarId, ExecutorId, GrantId, LogId, NodeId, RoleId, TaskId, TenantId, TokenId, UserId,
    WindowId,
};
pub use id_source::IdSource;
pub use order::Order;
pub use owner::Owner;
pub use reason::Reason;
pub use refusal::{FieldRefusal, Refusal};
pub use task::Task;
pub use task_log::{Run, Status, Urgency};
pub use transition::{LastAttempt, Transition};
pub use trigger::Trigger;
