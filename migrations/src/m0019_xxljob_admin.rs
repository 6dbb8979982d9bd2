//! What portals and scripts that know xxl-job's admin say of apps and tasks.

use crate::schema::Kind::{Big, Int, Name, Text};
use crate::schema::{Index, Table};

/// The tables. Nodes of earlier releases do without them.
pub const TABLES: &[Table] = &[
    // An app's number within its tenant: what xxl-job calls the id of a group, a 32-bit number.
    Table {
        name: "xxljob_app",
        keys: 1,
        columns: &[("app_id", Big), ("tenant_id", Big), ("number", Int)],
        indexes: &[Index::unique("xxljob_app_number", &["tenant_id", "number"])],
        rows: &[],
    },
    // The last number of a tenant's apps: giving one holds its row.
    Table {
        name: "xxljob_app_last",
        keys: 1,
        columns: &[("tenant_id", Big), ("last_app", Int)],
        indexes: &[],
        rows: &[],
    },
    // What is kept of a task beside its definition, for people.
    Table {
        name: "xxljob_words",
        keys: 1,
        columns: &[("task_id", Big), ("tenant_id", Big), ("author", Name), ("alarm_email", Text)],
        indexes: &[],
        rows: &[],
    },
];
