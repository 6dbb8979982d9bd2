//! How long a run waits for an executor.

use crate::schema::{AddedColumns, Kind};

pub const STEP: AddedColumns = AddedColumns {
    name: "m0008_executor_wait",
    table: "task",
    added: &[("no_executor_timeout_ms", Kind::BigOr(600_000))],
};
