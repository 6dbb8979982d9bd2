//! What portals and scripts of xxl-job say of a task beside its definition.

use crate::domain::{TaskId, TenantId};

/// Longest author, characters.
pub const AUTHOR_CHARS_MAX: usize = 64;

/// Longest list of addresses for alarms, characters.
pub const ALARM_EMAIL_CHARS_MAX: usize = 255;

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
