//! What the workers ask of the database, in the words of the domain, and the one room that knows
//! SQL.
//!
//! The traits are split by the room that asks. [`SqlStore`] answers them on SQLite, MariaDB/MySQL
//! and PostgreSQL; a model in memory answers them in the simulator; one conformance suite holds
//! all of them to the same behaviour.
//!
//! Rules that every statement keeps:
//! - A change of state is guarded by the version (or by the attempt, for results) and takes a
//!   whole batch; who loses the race learns it from the answer and does nothing.
//! - A guarded batch can be repeated after an error whose effect is unknown: a row that already
//!   is exactly as asked for counts as done.
//! - Times are epoch milliseconds on the cluster clock, given by the caller; only heartbeats and
//!   leases use the database's own clock, because they are what that clock is for.

#[macro_use]
mod template;

mod attempts;
mod audit;
mod audit_search;
mod backfills;
mod batch;
mod calendar_changes;
mod calendars;
mod change_feed;
mod claiming;
mod cluster;
mod conditions;
mod connect;
mod database_settings;
mod definitions;
mod dialect;
mod discovery;
mod dispatching;
mod encrypted_secrets;
mod encryption;
mod entity;
mod error;
mod executors;
mod finishing;
pub mod foreign;
mod galera;
mod grants;
mod graph;
mod handlers;
mod hot;
mod housekeeping;
mod id;
mod job_words;
mod keys;
mod links;
mod logs;
mod marker;
mod migrate;
mod next_fires;
mod notes;
mod old_runs;
mod origins;
mod outbox;
mod outcome;
mod pausing;
mod permits;
mod plain_executors;
mod planning;
mod pool;
mod query;
mod quotas;
mod rates;
mod ready_calendars;
mod revoked_runs;
mod revoking;
mod roles;
mod row;
mod rows;
mod rule_changes;
mod rules;
mod script_edits;
mod scripts;
mod sessions;
mod sign_in_codes;
mod silences;
mod skips;
mod sql;
mod sql_store;
mod statement;
mod statistics;
mod steps;
mod task_columns;
mod task_views;
mod tasks;
mod tenants;
mod traits;
mod unscheduled_runs;
mod upcoming_runs;
mod users;
mod values;
mod xxljob;
mod xxljob_lists;
mod xxljob_words;

pub use attempts::{ATTEMPTS_KEPT_MAX, KeptAttempt, MESSAGE_CHARS_MAX, cut};
pub use audit::ChainView;
pub use audit_search::{AuditFilter, AuditPage};
pub use calendars::CalendarView;
pub use change_feed::{DIGEST_TENANTS, Digest};
pub use cluster::NameHolder;
pub use database_settings::{DatabaseSettings, place};
pub use encrypted_secrets::EncryptionRotation;
pub use encryption::{EncryptionError, EncryptionKeys};
pub use error::{Result, STORE_ERRORS, StoreError, StoreErrorKind};
pub use grants::{GrantView, NewGrant};
pub use graph::{Graph, GraphLink, GraphTask};
pub use job_words::{ALARM_EMAIL_CHARS_MAX, AUTHOR_CHARS_MAX, JobWords};
pub use keys::{KeyCursor, KeyView, KeyWords, TOKEN};
pub use logs::{LogFilter, LogPage, LogView, ShardCounts};
pub use next_fires::WrittenFires;
pub use notes::{Beside, CHANGE_BEGIN_MAX};
pub use old_runs::{OLD_RUNS_MAX, OldRun};
pub use origins::{ORIGINS_MAX, TaskOrigin};
pub use quotas::{DELAYED_MAX, QuotaUse, TaskRoom};
pub use roles::{RoleFilter, RoleView};
pub use rules::{ExecutorAddress, ExecutorRule};
pub use script_edits::{NewScript, ScriptEdit};
pub use scripts::ScriptVersion;
pub use sessions::{SessionView, TokenView};
pub use sign_in_codes::SignInCode;
pub use skips::{SKIPS_MAX, Skip, Skipped};
pub use sql::BATCH_MAX;
pub use sql_store::SqlStore;
pub use statistics::FiguresFilter;
pub use task_views::TaskFilter;
pub use tenants::{AppFilter, AppView, TenantView};
pub use traits::*;
pub use unscheduled_runs::{NewRun, StartedRun};
pub use upcoming_runs::{TaskNames, UpcomingFilter, UpcomingRun, UpcomingRuns};
pub use users::{UserFilter, UserRow, UserView};
pub use xxljob_lists::{GroupFilter, GroupView, JobFilter, JobView};
