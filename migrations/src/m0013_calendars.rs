//! Which version of its calendar a task was planned by, and which calendars have tasks that still have to follow.

use crate::schema::Kind::BigOr;
use crate::schema::{Index, Table};

/// What is added.
pub const TABLES: &[Table] = &[
    Table {
        name: "task",
        keys: 0,
        // By which version of its calendar its watermark and its runs were planned; of a task that is not started it says nothing.
        columns: &[("calendar_version", BigOr(0))],
        // The tasks that a new version changes.
        indexes: &[Index::new("task_calendar", &["tenant_id", "calendar", "id"])],
        rows: &[],
    },
    Table {
        name: "calendar",
        keys: 0,
        columns: &[
            // Since when started tasks may be planned by an earlier version, epoch ms; 0 when none is.
            ("changing_since", BigOr(0)),
            // Counts changes of tasks that name it: a change of the calendar comes before or after each of them.
            ("task_turn", BigOr(0)),
        ],
        indexes: &[Index::new("calendar_changing", &["changing_since"])],
        rows: &[],
    },
];
