//! What nodes know of times without any of them.

use crate::schema::Kind::{Big, Name};
use crate::schema::Table;

/// The tables.
pub const TABLES: &[Table] = &[
    // Nodes of earlier releases do without it.
    Table {
        name: "silence",
        keys: 1,
        columns: &[
            // The last heartbeat before it, the first one after it.
            ("from_at", Big),
            ("until_at", Big),
            // What was due until then may have run; 0 while nobody says so.
            ("lived_until", Big),
            ("found_by", Name),
            ("decision", Name),
        ],
        indexes: &[],
        rows: &[],
    },
];
