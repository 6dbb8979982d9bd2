//! What names one dispatch.

use serde::{Deserialize, Serialize};

/// One dispatch of a run: the fencing token of every message about it.
/// On the wire it is the array `[log, attempt]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey(
    /// Task log id.
    pub i64,
    /// Attempt, counted from 1.
    pub i32,
);
