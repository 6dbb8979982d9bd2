//! Which releases can work with the database.

use crate::schema::Kind::{Big, Int};
use crate::schema::{Table, Value};

/// The tables.
pub const TABLES: &[Table] = &[
    // One row. A step whose tables nodes of an earlier release cannot work with raises `oldest` to its own number;
    // those nodes then stop at their next heartbeat. A step that they can work with leaves it.
    Table {
        name: "schema_support",
        keys: 1,
        columns: &[("id", Big), ("oldest", Int)],
        indexes: &[],
        rows: &[&[Value::Number(1), Value::Number(7)]],
    },
];
