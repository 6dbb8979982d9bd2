//! Changes of rules that runs written before have to follow.

use crate::schema::Kind::Big;
use crate::schema::Table;

/// The tables. Nodes of earlier releases do without them.
pub const TABLES: &[Table] = &[Table {
    name: "rule_change",
    keys: 1,
    columns: &[
        // Of the maintenance window that was taken away, or of the tenant whose quota of fires has changed.
        ("id", Big),
        ("tenant_id", Big),
        // When that window would have ended; 0 for a quota.
        ("ends_at", Big),
        ("changed_at", Big),
    ],
    indexes: &[],
    rows: &[],
}];
