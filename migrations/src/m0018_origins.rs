//! Which tasks were imported, and of what.

use crate::schema::Kind::{Big, Name};
use crate::schema::{Index, Table};

/// The table. Nodes of earlier releases do without it.
pub const TABLES: &[Table] = &[Table {
    name: "task_origin",
    keys: 1,
    // `origin` is `source#id`: the name that people gave to another scheduler, and the id of the task there.
    columns: &[("task_id", Big), ("tenant_id", Big), ("origin", Name)],
    indexes: &[
        Index::unique("task_origin_origin", &["tenant_id", "origin"]),
        Index::new("task_origin_page", &["tenant_id", "task_id"]),
    ],
    rows: &[],
}];
