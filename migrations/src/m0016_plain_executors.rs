//! Executors that are announced instead of registering themselves: others vouch for them, and know them by a token.

use crate::schema::Kind::{BigOr, IntOr, NameOr};
use crate::schema::{Index, Table};

/// What is added. Nodes of earlier releases find no handlers at plain executors, and leave them alone.
pub const TABLES: &[Table] = &[
    Table {
        name: "executor",
        keys: 0,
        columns: &[
            // It holds nothing early, and tells neither what it has nor which handlers: 1, else 0.
            ("plain", IntOr(0)),
            // Until when its announcement counts, epoch ms; 0 until it is withdrawn.
            ("announced_until", BigOr(0)),
            // Who announced it: `registry`, `fixed`, `nacos`; empty for one that registered itself.
            ("announced_by", NameOr("")),
        ],
        // Those to vouch for.
        indexes: &[Index::new("executor_plain", &["plain", "gone_at", "id"])],
        rows: &[],
    },
    Table {
        name: "app_key",
        keys: 0,
        columns: &[
            // What it is: empty for a key that signs, `token` for a word that is sent as it is.
            ("kind", NameOr("")),
        ],
        indexes: &[],
        rows: &[],
    },
];
