//! The columns of a task's definition, each once: for reading, writing and the texts of
//! statements.

use super::Result;
use super::rows::{clean, json, to_json, to_word, word};
use crate::domain::task::{EVERY_FAILURE, FailureClass, TaskSpec};
use sea_orm::{DbErr, QueryResult, Value};

type Read<T> = std::result::Result<T, DbErr>;

macro_rules! spec_columns {
    ($($field:ident: $kind:ident,)*) => {
        /// Their names, in the order of [`spec_values`] and [`read_spec`].
        pub const SPEC_COLUMNS: &[&str] = &[$(stringify!($field)),*];

        /// The values of a definition.
        pub fn spec_values(action: &'static str, spec: &TaskSpec) -> Result<Vec<Value>> {
            Ok(vec![$(spec_columns!(@write $kind action spec.$field)),*])
        }

        /// The definition in the columns from `from` on; its parents stand in a table of their own.
        pub fn read_spec(row: &QueryResult, from: usize) -> Read<TaskSpec> {
            let mut at = from;
            let mut next = || {
                at += 1;
                at - 1
            };
            Ok(TaskSpec { $($field: spec_columns!(@read $kind row, next()),)* parents: Vec::new() })
        }
    };
    (@write plain $action:ident $spec:ident.$field:ident) => { $spec.$field.clone().into() };
    (@write text $action:ident $spec:ident.$field:ident) => { clean(&$spec.$field).into() };
    (@write word $action:ident $spec:ident.$field:ident) => { to_word($action, &$spec.$field)?.into() };
    (@write list $action:ident $spec:ident.$field:ident) => { to_json($action, &$spec.$field)?.into() };
    (@write failures $action:ident $spec:ident.$field:ident) => { to_json($action, &$spec.$field)?.into() };
    (@write flag $action:ident $spec:ident.$field:ident) => { i32::from($spec.$field).into() };
    (@read plain $row:ident, $at:expr) => { $row.try_get_by_index($at)? };
    (@read text $row:ident, $at:expr) => { $row.try_get_by_index($at)? };
    (@read word $row:ident, $at:expr) => { word($row, $at)? };
    (@read list $row:ident, $at:expr) => { list($row, $at)? };
    (@read failures $row:ident, $at:expr) => { failures($row, $at)? };
    (@read flag $row:ident, $at:expr) => { $row.try_get_by_index::<i32>($at)? != 0 };
}

spec_columns! {
    name: plain,
    handler: plain,
    description: text,
    params: text,
    schedule: word,
    cron: plain,
    time_zone: plain,
    interval_ms: plain,
    fire_at: plain,
    valid_from: plain,
    valid_until: plain,
    max_fires: plain,
    dst_gap: word,
    dst_overlap: word,
    calendar: plain,
    calendar_rule: word,
    spread_ms: plain,
    jitter_ms: plain,
    misfire_strategy: word,
    misfire_max: plain,
    misfire_max_late_ms: plain,
    expired_strategy: word,
    expire_after_ms: plain,
    maintenance: word,
    pause_after_failures: plain,
    routing: word,
    tags: list,
    tags_any: list,
    tags_none: list,
    block_strategy: word,
    block_scope: word,
    max_concurrent: plain,
    priority: plain,
    failure_strategy: word,
    max_retries: plain,
    retry_interval_ms: plain,
    retry_backoff: word,
    retry_max_interval_ms: plain,
    retry_jitter_percent: plain,
    retry_on: failures,
    retry_elsewhere: flag,
    timeout_ms: plain,
    wait_timeout_ms: plain,
    delivery: word,
    parent_rule: word,
    parent_output: flag,
}

/// A list of a row that may be older than the column.
fn list(row: &QueryResult, at: usize) -> Read<Vec<String>> {
    match row.try_get_by_index::<Option<String>>(at)? {
        Some(_) => json(row, at),
        None => Ok(Vec::new()),
    }
}

fn failures(row: &QueryResult, at: usize) -> Read<Vec<FailureClass>> {
    match row.try_get_by_index::<Option<String>>(at)? {
        Some(_) => json(row, at),
        None => Ok(EVERY_FAILURE.to_vec()),
    }
}

/// The columns, each after `prefix`.
pub fn spec_list(prefix: &str) -> String {
    SPEC_COLUMNS.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>().join(", ")
}

/// `name = {first}, … ` for an UPDATE.
pub fn spec_set(first: usize) -> String {
    let set = SPEC_COLUMNS.iter().enumerate().map(|(at, name)| format!("{name} = {{{}}}", first + at));
    set.collect::<Vec<_>>().join(", ")
}

/// `{first}, {first + 1}, …` for `count` values.
pub fn markers(first: usize, count: usize) -> String {
    (first..first + count).map(|at| format!("{{{at}}}")).collect::<Vec<_>>().join(", ")
}
