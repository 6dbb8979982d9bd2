//! Tenants, their apps, the keys of their executors, their quotas.

use crate::schema::Kind::{Big, BigOr, IntOr, Name, NameOr, Text, TextNull};
use crate::schema::{Index, Table};

/// The tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "tenant",
        keys: 1,
        columns: &[
            ("id", Big),
            ("name", Name),
            ("created_at", Big),
            ("max_concurrent", IntOr(0)),
            ("description", TextNull),
            ("revision", BigOr(1)),
            // 0 means no bound, or the node's default.
            ("max_tasks", IntOr(0)),
            ("max_fires_per_minute", IntOr(0)),
            ("retain_days", IntOr(0)),
            // Increases with every creation of tasks under a quota, so that those transactions are serialised.
            ("task_turn", BigOr(0)),
        ],
        indexes: &[Index::unique("tenant_name", &["name"])],
        rows: &[],
    },
    Table {
        name: "app",
        keys: 1,
        columns: &[
            ("id", Big),
            ("tenant_id", Big),
            ("name", Name),
            ("created_at", Big),
            ("max_concurrent", IntOr(0)),
            ("description", TextNull),
            ("revision", BigOr(1)),
            // The signature method that the app requires; empty means any.
            ("sign_method", NameOr("")),
        ],
        indexes: &[Index::unique("app_name", &["tenant_id", "name"])],
        rows: &[],
    },
    Table {
        name: "app_key",
        keys: 1,
        columns: &[
            ("id", Name),
            ("tenant_id", Big),
            ("app_id", Big),
            ("secret", Name),
            ("created_at", Big),
            ("revoked_at", Big),
            ("note", NameOr("")),
            // The end of its overlap with the next key; 0 means never.
            ("expires_at", BigOr(0)),
            ("last_used_at", BigOr(0)),
            ("created_by", NameOr("")),
        ],
        indexes: &[
            // Finds the few valid keys among all past ones.
            Index::new("app_key_valid", &["app_id", "revoked_at", "expires_at"]),
            Index::new("app_key_age", &["app_id", "created_at", "id"]),
        ],
        rows: &[],
    },
    Table { name: "setting", keys: 1, columns: &[("name", Name), ("value", Text)], indexes: &[], rows: &[] },
    // The runs of a tenant by the minute; `turn` increases with every batch that takes slots.
    Table {
        name: "tenant_rate",
        keys: 1,
        columns: &[("id", Big), ("turn", Big), ("slots", Text)],
        indexes: &[],
        rows: &[],
    },
];
