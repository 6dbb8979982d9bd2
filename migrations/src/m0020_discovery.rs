//! Where apps' plain executors are found that do not register themselves; codes by which users sign in at other clusters.

use crate::schema::Kind::{Big, Int, Name, Text};
use crate::schema::Table;

/// The tables. Nodes of earlier releases announce nobody, and vouch for nobody.
pub const TABLES: &[Table] = &[SOURCES, CODES];

const SOURCES: Table = Table {
    name: "executor_source",
    keys: 1,
    columns: &[
        ("app_id", Big),
        ("tenant_id", Big),
        // Fixed addresses: a JSON list.
        ("addresses", Text),
        // A service in Nacos; no service: none.
        ("nacos_namespace", Name),
        ("nacos_group", Name),
        ("nacos_service", Name),
        // The executors' port, where it is not the instances'; else 0.
        ("nacos_port", Int),
        // Why Nacos was not read the last time; empty if it was.
        ("problem", Text),
        // Since when that is so, epoch ms; 0 before it was asked.
        ("since", Big),
        ("revision", Big),
        ("updated_at", Big),
    ],
    indexes: &[],
    rows: &[],
};

const CODES: Table = Table {
    name: "sign_in_code",
    keys: 1,
    columns: &[
        // Hash of the code.
        ("id", Name),
        ("user_id", Big),
        // The other cluster.
        ("cluster", Name),
        // Hash of what it must show.
        ("challenge", Name),
        ("expires_at", Big),
    ],
    indexes: &[],
    rows: &[],
};
