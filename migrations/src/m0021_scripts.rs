//! Scripts that executors of xxl-job run in place of a handler.

use crate::schema::Kind::{Big, BigOr, IntOr, Name, Text};
use crate::schema::Table;

/// The table. The task's own row, which is read with each batch of runs, has the number of the version alone.
pub const TABLES: &[Table] = &[Table {
    name: "task_script",
    keys: 2,
    columns: &[
        ("task_id", Big),
        // From 1, the newest is the largest.
        ("version", Big),
        ("tenant_id", Big),
        // In xxl-job's words: `GLUE_SHELL`.
        ("glue_type", Name),
        // At most 60,000 bytes: a text of MariaDB has 65,535.
        ("source", Text),
        ("remark", Name),
        ("author", Name),
        // Epoch ms, and later than that of the version before: executors know a version by it.
        ("updated_at", Big),
    ],
    indexes: &[],
    rows: &[],
}];

/// What is added. Nodes of earlier schemas would call a handler without a name, and do not know why such runs end.
pub const COLUMNS: &[Table] = &[
    Table {
        name: "task",
        keys: 0,
        // The version of its script that its runs are; 0 where they are calls of its handler.
        columns: &[("script", BigOr(0))],
        indexes: &[],
        rows: &[],
    },
    Table {
        name: "app",
        keys: 0,
        // Whether its tasks may be scripts: 1, else 0.
        columns: &[("scripts", IntOr(0))],
        indexes: &[],
        rows: &[],
    },
];
