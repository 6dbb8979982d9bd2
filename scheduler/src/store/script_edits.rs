//! What becomes of a task's script.

use crate::domain::xxljob::GlueType;
use crate::domain::{TaskId, TenantId};

/// What the next change of a task makes of its script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEdit {
    /// The task.
    pub task_id: TaskId,
    /// Its tenant.
    pub tenant_id: TenantId,
    /// Further versions, the one that runs last; none: runs are calls of the handler from then on.
    pub new: Vec<NewScript>,
}

/// A further version of a script, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewScript {
    /// What it is for.
    pub glue_type: GlueType,
    /// The text.
    pub source: String,
    /// What its author says of it.
    pub remark: String,
    /// Who writes it.
    pub author: String,
    /// When, epoch ms. Where the version before is not older, the instant after that one's is taken.
    pub updated_at: i64,
}
