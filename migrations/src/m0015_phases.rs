//! Task logs by phase instead of status: two of the three steps of a run that ends well leave every index alone but one, and what
//! has ended well is in none that runs are claimed by.

use crate::schema::Kind::Stored;
use crate::schema::{Index, Rework, Table};

/// What changes. The table is written anew.
pub const PHASES: Rework = Rework {
    name: "m0015_phases",
    number: 15,
    no_longer: &[("task_log", "task_log_due_tenant"), ("task_log", "task_log_bad")],
    // PostgreSQL changes a row without its indexes where its page has room for the new version.
    fill: &[("task_log", 70)],
    tables: &[Table {
        name: "task_log",
        keys: 0,
        columns: &[
            // 0: to be claimed (INIT, RETRY). 1: with a node or an executor (QUEUED, DISPATCHED). The status of what ended
            // without success.
            (
                "phase",
                Stored(
                    "CASE WHEN status IN (0, 3) THEN 0 WHEN status IN (1, 2) THEN 1 WHEN status > 10 THEN status END",
                ),
            ),
            ("bad_status", Stored("CASE WHEN status > 10 THEN status END")),
        ],
        indexes: &[
            // Claims (earliest first, leaving out tenants that have their share, except for more urgent runs), the reaper, and
            // lists by status.
            Index::of_some("task_log_phase", &["phase", "due_time", "tenant_id", "priority"]),
            // Runs of a tenant that ended without success.
            Index::of_some("task_log_failed", &["tenant_id", "bad_status", "due_time", "id"]),
        ],
        rows: &[],
    }],
};
