//! Task logs (one run each) and the tables around them.

use crate::schema::Kind::{Big, BigOr, Computed, Int, IntOr, Name, NameOr, Text, TextNull};
use crate::schema::{Index, Table};

/// The tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "task_log",
        keys: 1,
        columns: &[
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
            ("trigger_kind", NameOr("schedule")),
            ("seq", BigOr(0)),
            ("priority", IntOr(5)),
            // Why its executor was told to stop it; empty when it was not.
            ("stopping", NameOr("")),
            // The status of runs that ended without success.
            ("bad_status", Computed("CASE WHEN status > 10 THEN status END")),
        ],
        indexes: &[
            // Promise 1: one log per (task, fire time, shard), whatever happens to locks and leases.
            Index::unique("task_log_fire", &["task_id", "fire_time", "shard_index"]),
            // Claims (earliest first, leaving out tenants that have their share, except for more urgent runs)
            // and the reaper.
            Index::new("task_log_due_tenant", &["status", "due_time", "tenant_id", "priority"]),
            // Lists. Inserts append to them; of the steps of a run only an end without success touches one.
            Index::new("task_log_tenant_fire", &["tenant_id", "fire_time", "id"]),
            // The newest of all, and what statistics count by.
            Index::new("task_log_fire_time", &["fire_time", "task_id"]),
            // Runs that ended without success.
            Index::new("task_log_bad", &["tenant_id", "bad_status", "due_time", "id"]),
        ],
        rows: &[],
    },
    // The last attempt of a run is the log itself.
    Table {
        name: "task_log_attempt",
        keys: 2,
        columns: &[
            ("log_id", Big),
            ("attempt", Int),
            ("executor_id", Big),
            ("address", Name),
            ("node_id", Big),
            ("due_time", Big),
            ("dispatched_at", Big),
            ("started_at", Big),
            ("finished_at", Big),
            ("status", Int),
            ("reason", Name),
            ("message", Text),
        ],
        indexes: &[],
        rows: &[],
    },
    Table {
        name: "stale_result",
        keys: 1,
        columns: &[
            ("id", Big),
            ("log_id", Big),
            ("attempt", Int),
            ("executor_id", Big),
            ("status", Name),
            ("message", Text),
            ("started_at", Big),
            ("finished_at", Big),
            ("received_at", Big),
        ],
        indexes: &[],
        rows: &[],
    },
    // An idempotency key of a run started through the API.
    Table {
        name: "run_key",
        keys: 1,
        columns: &[("id", Name), ("task_id", Big), ("log_id", Big)],
        indexes: &[Index::new("run_key_log", &["log_id"])],
        rows: &[],
    },
    // One row for each run whose end has consequences beyond the run; its id is the log's.
    Table { name: "outbox", keys: 1, columns: &[("id", Big), ("task_id", Big)], indexes: &[], rows: &[] },
    // One row for each run that runs, or is about to, under a bound; its id is the log's. It counts
    // while the log is DISPATCHED, or QUEUED with this version.
    Table {
        name: "permit",
        keys: 1,
        columns: &[("id", Big), ("tenant_id", Big), ("app_id", Big), ("task_id", Big), ("version", Big)],
        indexes: &[
            Index::new("permit_task", &["task_id"]),
            Index::new("permit_app", &["app_id"]),
            Index::new("permit_tenant", &["tenant_id"]),
        ],
        rows: &[],
    },
    // A task, app or tenant whose permits are granted one transaction at a time.
    Table { name: "permit_scope", keys: 1, columns: &[("id", Big), ("turn", Big)], indexes: &[], rows: &[] },
    Table {
        name: "routing_use",
        keys: 1,
        columns: &[("id", Big), ("task_id", Big), ("address", Name), ("uses", Big), ("last_use", Big)],
        indexes: &[Index::unique("routing_use_address", &["task_id", "address"])],
        rows: &[],
    },
    Table {
        name: "backfill",
        keys: 1,
        columns: &[
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
        ],
        indexes: &[Index::new("backfill_status", &["status"]), Index::new("backfill_of_task", &["task_id", "id"])],
        rows: &[],
    },
    Table {
        name: "backfill_run",
        keys: 1,
        columns: &[("id", Big), ("backfill_id", Big)],
        indexes: &[Index::new("backfill_run_backfill", &["backfill_id"])],
        rows: &[],
    },
    // Progress of retention for tenants that keep their logs for `id` days: up to the log `seen`.
    Table { name: "purge_cursor", keys: 1, columns: &[("id", Big), ("seen", Big)], indexes: &[], rows: &[] },
];
