//! Nodes, leases, executors.

use crate::schema::Kind::{Big, BigNull, BigOr, Int, Name, Text};
use crate::schema::{Index, Table, Value};

/// The tables.
pub const TABLES: &[Table] = &[
    Table {
        name: "node",
        keys: 1,
        columns: &[
            ("id", Big),
            ("name", Name),
            ("address", Name),
            ("incarnation", Name),
            ("version", Name),
            ("started_at", Big),
            ("heartbeat_at", Big),
            ("left_at", Big),
            ("queue_depth", Big),
            ("clock_offset_ms", BigNull),
            ("clock_uncertainty_us", BigNull),
        ],
        indexes: &[Index::unique("node_name", &["name"])],
        rows: &[],
    },
    Table {
        name: "lease",
        keys: 1,
        columns: &[("name", Name), ("holder", Big), ("fence", Big), ("expires_at", Big)],
        indexes: &[],
        rows: &[
            &[Value::Word("pregenerate"), Value::Number(0), Value::Number(0), Value::Number(0)],
            &[Value::Word("housekeeping"), Value::Number(0), Value::Number(0), Value::Number(0)],
            &[Value::Word("statistics"), Value::Number(0), Value::Number(0), Value::Number(0)],
        ],
    },
    Table {
        name: "executor",
        keys: 1,
        columns: &[
            ("id", Big),
            ("tenant_id", Big),
            ("app_id", Big),
            ("instance", Name),
            ("key_id", Name),
            ("address", Name),
            ("host_name", Name),
            ("pid", Big),
            ("version", Name),
            ("description", Text),
            ("tags", Text),
            ("handlers", Text),
            ("capacity", Int),
            ("held", Int),
            ("running", Int),
            ("draining", Int),
            ("registered_at", Big),
            ("described_at", Big),
            ("heartbeat_at", Big),
            ("gone_at", Big),
            // When the newest registration and heartbeat that counted were signed, by the executor's clock:
            // an older message is a replay.
            ("register_signed_at", BigOr(0)),
            ("heartbeat_signed_at", BigOr(0)),
            ("node_id", BigOr(0)),
        ],
        indexes: &[
            Index::new("executor_heartbeat", &["heartbeat_at"]),
            Index::unique("executor_instance", &["app_id", "instance"]),
        ],
        rows: &[],
    },
    Table {
        name: "executor_rule",
        keys: 1,
        columns: &[
            ("id", Big),
            ("tenant_id", Big),
            ("app_id", Big),
            ("address", Name),
            ("weight", Int),
            ("disabled", Int),
            ("note", Text),
            ("updated_at", Big),
            ("revision", BigOr(1)),
        ],
        indexes: &[Index::unique("executor_rule_address", &["tenant_id", "app_id", "address"])],
        rows: &[],
    },
];
