//! What is known of executors' addresses.

use crate::schema::Kind::IntOr;
use crate::schema::{Index, Table};

/// What is added.
pub const TABLES: &[Table] = &[Table {
    name: "executor",
    keys: 0,
    // 1 if the process itself listens at an address of its own machine; executors of earlier releases do not say so.
    columns: &[("own_address", IntOr(0))],
    // A registration looks for other processes at its address.
    indexes: &[Index::new("executor_address", &["app_id", "address"])],
    rows: &[],
}];
