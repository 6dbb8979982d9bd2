//! Who changed what.

use crate::schema::Kind::{Big, Name, TextNull};
use crate::schema::{Index, Table};

/// The tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "audit_entry",
        keys: 1,
        columns: &[
            ("id", Big),
            ("tenant_id", Big),
            ("seq", Big),
            ("at", Big),
            ("actor_kind", Name),
            ("actor_id", Big),
            ("actor", Name),
            ("address", Name),
            ("action", Name),
            ("target_kind", Name),
            ("target_id", Name),
            ("target", Name),
            ("before_json", TextNull),
            ("after_json", TextNull),
            ("previous", Name),
            ("hash", Name),
        ],
        indexes: &[
            Index::unique("audit_entry_seq", &["tenant_id", "seq"]),
            Index::new("audit_entry_tenant", &["tenant_id", "id"]),
            Index::new("audit_entry_target", &["target_id", "id"]),
            Index::new("audit_entry_actor", &["actor_id", "id"]),
        ],
        rows: &[],
    },
    // The end of each tenant's chain; the id is the tenant's, 0 the platform's.
    Table {
        name: "audit_head",
        keys: 1,
        columns: &[("id", Big), ("seq", Big), ("hash", Name)],
        indexes: &[],
        rows: &[],
    },
];
