//! Numbers by which xxl-job's executors know tasks and attempts.

use crate::schema::Kind::{Big, Int};
use crate::schema::{Index, Table};

/// The tables. Nodes of earlier releases do without them.
pub const TABLES: &[Table] = &[
    // A task's number within its tenant: what xxl-job calls the job's id, a 32-bit number.
    Table {
        name: "xxljob_task",
        keys: 1,
        columns: &[("task_id", Big), ("tenant_id", Big), ("app_id", Big), ("number", Int)],
        indexes: &[Index::unique("xxljob_task_number", &["tenant_id", "number"])],
        rows: &[],
    },
    // The last numbers of a tenant: giving them holds its row.
    Table {
        name: "xxljob_number",
        keys: 1,
        columns: &[("tenant_id", Big), ("last_task", Int)],
        indexes: &[],
        rows: &[],
    },
    // A later attempt's number: the first goes by its log's id.
    Table {
        name: "xxljob_attempt",
        keys: 1,
        columns: &[
            ("number", Big),
            ("tenant_id", Big),
            ("app_id", Big),
            ("log_id", Big),
            ("attempt", Int),
            ("made_at", Big),
        ],
        indexes: &[
            Index::unique("xxljob_attempt_of", &["log_id", "attempt"]),
            Index::new("xxljob_attempt_age", &["made_at"]),
        ],
        rows: &[],
    },
];
