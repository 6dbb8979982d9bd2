//! What portals and scripts of xxl-job say of a task beside its definition.

use crate::domain::{TaskId, TenantId};

/// Words of a task for people: nothing goes by them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobWords {
    /// The task.
    pub task_id: TaskId,
    /// Its tenant.
    pub tenant_id: TenantId,
    /// Who is responsible for it.
    pub author: String,
    /// Where alarms went, with commas between addresses.
    pub alarm_email: String,
}
