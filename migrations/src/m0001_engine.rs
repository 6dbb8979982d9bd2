//! Tenants, apps, keys, tasks, task logs, nodes, leases, executors.

use crate::schema::Kind::{Big, Int, Name, Text, TextNull};
use crate::schema::{Columns, create_index, table};
use sea_orm_migration::prelude::*;

/// First schema.
pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &'static str {
        "m0001_engine"
    }
}

const TENANT: Columns = &[("id", Big), ("name", Name), ("created_at", Big)];
const APP: Columns = &[("id", Big), ("tenant_id", Big), ("name", Name), ("created_at", Big)];
const APP_KEY: Columns =
    &[("id", Name), ("tenant_id", Big), ("app_id", Big), ("secret", Name), ("created_at", Big), ("revoked_at", Big)];
const SETTING: Columns = &[("name", Name), ("value", Text)];
const HANDLER: Columns = &[("id", Big), ("tenant_id", Big), ("app_id", Big), ("name", Name), ("created_at", Big)];
const TASK: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("app_id", Big),
    ("name", Name),
    ("handler", Name),
    ("description", Text),
    ("cron", Name),
    ("time_zone", Name),
    ("params", Text),
    ("routing", Name),
    ("tags", Text),
    ("failure_strategy", Name),
    ("max_retries", Int),
    ("retry_interval_ms", Big),
    ("expired_strategy", Name),
    ("expire_after_ms", Big),
    ("misfire_strategy", Name),
    ("timeout_ms", Big),
    ("delivery", Name),
    ("started", Int),
    ("revision", Big),
    ("next_fire_at", Big),
    ("written_until", Big),
    ("created_at", Big),
    ("updated_at", Big),
];
const TASK_LOG: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("app_id", Big),
    ("task_id", Big),
    ("revision", Big),
    ("parent_id", Big),
    ("shard_index", Int),
    ("shard_total", Int),
    ("bucket", Int),
    ("fire_time", Big),
    ("due_time", Big),
    ("status", Int),
    ("version", Big),
    ("attempt", Int),
    ("failures", Int),
    ("node_id", Big),
    ("executor_id", Big),
    ("queued_at", Big),
    ("dispatched_at", Big),
    ("started_at", Big),
    ("finished_at", Big),
    ("reason", Name),
    ("message", TextNull),
    ("output", TextNull),
    ("params", TextNull),
];
const STALE_RESULT: Columns = &[
    ("id", Big),
    ("log_id", Big),
    ("attempt", Int),
    ("executor_id", Big),
    ("status", Name),
    ("message", Text),
    ("started_at", Big),
    ("finished_at", Big),
    ("received_at", Big),
];
const NODE: Columns = &[
    ("id", Big),
    ("name", Name),
    ("address", Name),
    ("incarnation", Name),
    ("version", Name),
    ("started_at", Big),
    ("heartbeat_at", Big),
    ("left_at", Big),
    ("queue_depth", Big),
];
const LEASE: Columns = &[("name", Name), ("holder", Big), ("fence", Big), ("expires_at", Big)];
const EXECUTOR: Columns = &[
    ("id", Big),
    ("tenant_id", Big),
    ("app_id", Big),
    ("instance", Name),
    ("key_id", Name),
    ("address", Name),
    ("host_name", Name),
    ("pid", Big),
    ("version", Name),
    ("description", Text),
    ("tags", Text),
    ("handlers", Text),
    ("capacity", Int),
    ("held", Int),
    ("running", Int),
    ("draining", Int),
    ("registered_at", Big),
    ("described_at", Big),
    ("heartbeat_at", Big),
    ("gone_at", Big),
];

const TABLES: &[(&str, Columns)] = &[
    ("tenant", TENANT),
    ("app", APP),
    ("app_key", APP_KEY),
    ("setting", SETTING),
    ("handler", HANDLER),
    ("task", TASK),
    ("task_log", TASK_LOG),
    ("stale_result", STALE_RESULT),
    ("node", NODE),
    ("lease", LEASE),
    ("executor", EXECUTOR),
];

/// (name, table, columns, unique).
const INDEXES: &[(&str, &str, &[&str], bool)] = &[
    ("tenant_name", "tenant", &["name"], true),
    ("app_name", "app", &["tenant_id", "name"], true),
    ("app_key_app", "app_key", &["app_id"], false),
    ("handler_name", "handler", &["tenant_id", "app_id", "name"], true),
    ("task_name", "task", &["tenant_id", "app_id", "name"], true),
    // The watermark: pre-generation reads only what falls due.
    ("task_next_fire", "task", &["next_fire_at"], false),
    // Promise 1: one log per (task, fire time, shard), whatever happens to locks and leases.
    ("task_log_fire", "task_log", &["task_id", "fire_time", "shard_index"], true),
    // Claims (earliest first) and the reaper.
    ("task_log_due", "task_log", &["status", "due_time"], false),
    ("node_name", "node", &["name"], true),
    ("executor_heartbeat", "executor", &["heartbeat_at"], false),
    ("executor_instance", "executor", &["app_id", "instance"], true),
];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let backend = manager.get_database_backend();
        for (name, columns) in TABLES {
            manager.create_table(table(name, columns, backend)).await?;
        }
        for (name, on, columns, unique) in INDEXES {
            create_index(manager, name, on, columns, *unique).await?;
        }
        for lease in ["pregenerate", "housekeeping"] {
            seed_lease(manager, lease).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (name, _) in TABLES.iter().rev() {
            manager.drop_table(Table::drop().table(Alias::new(*name)).if_exists().to_owned()).await?;
        }
        Ok(())
    }
}

async fn seed_lease(manager: &SchemaManager<'_>, name: &str) -> Result<(), DbErr> {
    let mut insert = Query::insert();
    insert
        .into_table(Alias::new("lease"))
        .columns(LEASE.iter().map(|(column, _)| Alias::new(*column)))
        .values_panic([name.into(), 0.into(), 0.into(), 0.into()])
        .on_conflict(OnConflict::column(Alias::new("name")).do_nothing_on([Alias::new("name")]).to_owned());
    manager.execute(insert).await
}
