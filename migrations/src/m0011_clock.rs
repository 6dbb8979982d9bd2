//! What nodes know of the database's clock.

use crate::schema::Kind::BigOr;
use crate::schema::Table;

/// What is added.
pub const TABLES: &[Table] = &[Table {
    name: "node",
    keys: 0,
    // What the clock said, epoch ms, before this node last found that it was set back, or learnt of it; 0 for never.
    columns: &[("set_back_from", BigOr(0))],
    indexes: &[],
    rows: &[],
}];
