//! Schedules and policies: what a task can ask for, and the tables that carry it.

use crate::schema::Kind::{self, Big, Int, Name, Text, TextNull};
use crate::schema::{Columns, add_columns, create_index, table};
use sea_orm_migration::prelude::*;

/// Second schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0002_policies"
    }
}

/// What old rows get.
enum Default {
    Number(i64),
    Word(&'static str),
    Nothing,
}

use Default::{Nothing, Number, Word};

impl Default {
    fn value(&self) -> Value {
        match self {
            Number(number) => Value::from(*number),
            Word(word) => Value::from(*word),
            Nothing => Value::from(0),
        }
    }
}

/// (table, column, kind, what old rows get)
const ADDED: &[(&str, &str, Kind, Default)] = &[
    ("tenant", "max_concurrent", Int, Number(0)),
    ("app", "max_concurrent", Int, Number(0)),
    ("task", "schedule", Name, Word("cron")),
    ("task", "interval_ms", Big, Number(0)),
    ("task", "fire_at", Big, Number(0)),
    ("task", "valid_from", Big, Number(0)),
    ("task", "valid_until", Big, Number(0)),
    ("task", "max_fires", Big, Number(0)),
    ("task", "dst_gap", Name, Word("auto")),
    ("task", "dst_overlap", Name, Word("auto")),
    ("task", "calendar", Name, Word("")),
    ("task", "calendar_rule", Name, Word("skip")),
    ("task", "spread_ms", Big, Number(0)),
    ("task", "jitter_ms", Big, Number(0)),
    ("task", "misfire_max", Int, Number(10)),
    ("task", "misfire_max_late_ms", Big, Number(0)),
    ("task", "maintenance", Name, Word("obey")),
    ("task", "pause_after_failures", Int, Number(0)),
    ("task", "tags_any", TextNull, Nothing),
    ("task", "tags_none", TextNull, Nothing),
    ("task", "block_strategy", Name, Word("concurrent")),
    ("task", "block_scope", Name, Word("executor")),
    ("task", "max_concurrent", Int, Number(0)),
    ("task", "priority", Int, Number(5)),
    ("task", "retry_backoff", Name, Word("fixed")),
    ("task", "retry_max_interval_ms", Big, Number(600_000)),
    ("task", "retry_jitter_percent", Int, Number(0)),
    ("task", "retry_on", TextNull, Nothing),
    ("task", "retry_elsewhere", Int, Number(0)),
    ("task", "wait_timeout_ms", Big, Number(0)),
    ("task", "parent_rule", Name, Word("all")),
    ("task", "parent_output", Int, Number(0)),
    // State beside the definition.
    ("task", "anchor_at", Big, Number(0)),
    ("task", "fires", Big, Number(0)),
    ("task", "turn", Big, Number(0)),
    ("task", "children", Int, Number(0)),
    ("task", "failures_in_row", Int, Number(0)),
    ("task", "paused_at", Big, Number(0)),
    ("task", "pause_note", TextNull, Nothing),
    ("task_log", "origin", Name, Word("schedule")),
    ("task_log", "seq", Big, Number(0)),
    ("task_log", "priority", Int, Number(5)),
    // Why its executor was told to stop it; empty when it was not.
    ("task_log", "stopping", Name, Word("")),
];

const EXECUTOR_RULE: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("app_id", Big),
    ("address", Name),
    ("weight", Int),
    ("disabled", Int),
    ("note", Text),
    ("updated_at", Big),
];
const CALENDAR: Columns =
    &[("id", Big), ("tenant_id", Big), ("name", Name), ("version", Big), ("body", Text), ("updated_at", Big)];
const CALENDAR_VERSION: Columns =
    &[("id", Big), ("calendar_id", Big), ("version", Big), ("body", Text), ("created_at", Big)];
const MAINTENANCE_WINDOW: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("starts_at", Big),
    ("ends_at", Big),
    ("action", Name),
    ("note", Text),
    ("created_at", Big),
];
/// `met_log_id`: the parent's run that has met the condition since the child's last run, or 0.
const TASK_PARENT: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("child_id", Big),
    ("parent_id", Big),
    ("on_outcome", Name),
    ("met_log_id", Big),
];
/// One row for each run whose end has consequences beyond the run; its id is the log's.
const FOLLOW_UP: Columns = &[("id", Big), ("task_id", Big)];
/// One row for each run that runs, or is about to, under a bound; its id is the log's. It counts
/// while the log is DISPATCHED, or QUEUED with this version.
const PERMIT: Columns = &[("id", Big), ("tenant_id", Big), ("app_id", Big), ("task_id", Big), ("version", Big)];
/// A task, app or tenant whose permits are given one transaction at a time.
const PERMIT_SCOPE: Columns = &[("id", Big), ("turn", Big)];
const ROUTING_USE: Columns = &[("id", Big), ("task_id", Big), ("address", Name), ("uses", Big), ("last_use", Big)];
/// An idempotency key of a run started through the API.
const RUN_KEY: Columns = &[("id", Name), ("task_id", Big), ("log_id", Big)];
const BACKFILL: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("task_id", Big),
    ("range_from", Big),
    ("range_until", Big),
    ("next_at", Big),
    ("max_concurrent", Int),
    ("params", TextNull),
    ("status", Name),
    ("written", Big),
    ("existing", Big),
    ("created_at", Big),
    ("finished_at", Big),
];
const BACKFILL_RUN: Columns = &[("id", Big), ("backfill_id", Big)];
/// Grows with every change of limits, windows, rules and calendars: nodes look at this one row.
const RULE_VERSION: Columns = &[("id", Big), ("version", Big)];

const TABLES: &[(&str, Columns)] = &[
    ("executor_rule", EXECUTOR_RULE),
    ("calendar", CALENDAR),
    ("calendar_version", CALENDAR_VERSION),
    ("maintenance_window", MAINTENANCE_WINDOW),
    ("task_parent", TASK_PARENT),
    ("follow_up", FOLLOW_UP),
    ("permit", PERMIT),
    ("permit_scope", PERMIT_SCOPE),
    ("routing_use", ROUTING_USE),
    ("run_key", RUN_KEY),
    ("backfill", BACKFILL),
    ("backfill_run", BACKFILL_RUN),
    ("rule_version", RULE_VERSION),
];

/// (name, table, columns, unique).
const INDEXES: &[(&str, &str, &[&str], bool)] = &[
    ("executor_rule_address", "executor_rule", &["tenant_id", "app_id", "address"], true),
    ("calendar_name", "calendar", &["tenant_id", "name"], true),
    ("calendar_version_number", "calendar_version", &["calendar_id", "version"], true),
    ("maintenance_window_end", "maintenance_window", &["tenant_id", "ends_at"], false),
    ("task_parent_child", "task_parent", &["child_id", "parent_id"], true),
    ("task_parent_parent", "task_parent", &["parent_id"], false),
    ("permit_task", "permit", &["task_id"], false),
    ("permit_app", "permit", &["app_id"], false),
    ("permit_tenant", "permit", &["tenant_id"], false),
    ("routing_use_address", "routing_use", &["task_id", "address"], true),
    ("run_key_log", "run_key", &["log_id"], false),
    ("backfill_task", "backfill", &["task_id"], false),
    ("backfill_status", "backfill", &["status"], false),
    ("backfill_run_backfill", "backfill_run", &["backfill_id"], false),
    // Claims (earliest first, leaving out tenants that have their share, save what is more urgent)
    // and the reaper.
    ("task_log_due_tenant", "task_log", &["status", "due_time", "tenant_id", "priority"], false),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        for table in ["tenant", "app", "task", "task_log"] {
            let of_table = ADDED.iter().filter(|(of, ..)| *of == table);
            let columns: Vec<_> = of_table.map(|(_, name, kind, default)| (*name, *kind, default.value())).collect();
            add_columns(manager, table, &columns).await?;
        }
        for (name, columns) in TABLES {
            manager.create_table(table(name, columns, backend)).await?;
        }
        for (name, on, columns, unique) in INDEXES {
            create_index(manager, name, on, columns, *unique).await?;
        }
        if manager.has_index("task_log", "task_log_due").await? {
            let mut old = Index::drop();
            manager.drop_index(old.name("task_log_due").table(Alias::new("task_log")).to_owned()).await?;
        }
        let connection = manager.get_connection();
        for statement in [
            "UPDATE task SET schedule = 'none' WHERE cron = '' AND schedule = 'cron'",
            // What made a run stood in its reason before.
            "UPDATE task_log SET origin = 'hand', reason = '' WHERE reason = 'by_hand'",
            "UPDATE task_log SET origin = 'misfire', reason = '' WHERE reason = 'misfire_fired_once'",
        ] {
            connection.execute_unprepared(statement).await?;
        }
        seed_rule_version(manager).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        create_index(manager, "task_log_due", "task_log", &["status", "due_time"], false).await?;
        let mut index = Index::drop();
        manager.drop_index(index.name("task_log_due_tenant").table(Alias::new("task_log")).to_owned()).await?;
        for (name, _) in TABLES.iter().rev() {
            manager.drop_table(Table::drop().table(Alias::new(*name)).if_exists().to_owned()).await?;
        }
        for (table, column, ..) in ADDED.iter().rev() {
            let mut change = Table::alter();
            manager.alter_table(change.table(Alias::new(*table)).drop_column(Alias::new(*column)).to_owned()).await?;
        }
        Ok(())
    }
}

async fn seed_rule_version(manager: &SchemaManager<'_>) -> Result<(), DbErr> {
    let mut insert = Query::insert();
    insert
        .into_table(Alias::new("rule_version"))
        .columns(["id", "version"].map(Alias::new))
        .values_panic([1.into(), 1.into()])
        .on_conflict(OnConflict::column(Alias::new("id")).do_nothing_on([Alias::new("id")]).to_owned());
    manager.execute(insert).await
}
