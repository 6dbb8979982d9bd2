//! What a task file asks for, entry by entry.

use crate::domain::task::FieldChange;
use crate::domain::task::file::Entry;
use crate::domain::{Owner, TaskId};
use crate::store::TaskView;

/// (tenant, app, name).
pub(super) type Name = (String, String, String);

/// What to do about one entry.
#[derive(Debug)]
pub struct Step {
    /// The entry.
    pub entry: Entry,
    /// What it asks for.
    pub action: Action,
    /// What is allowed, and still may not be what was meant.
    pub warning: Option<String>,
}

/// What an entry asks for.
#[derive(Debug)]
pub enum Action {
    /// A task of this id, there.
    Create(TaskId, Owner),
    /// Another definition or state.
    Change(Box<TaskView>, Vec<FieldChange>),
    /// Nothing: it is so.
    Keep(Box<TaskView>),
}

impl Action {
    pub(super) fn id(&self) -> TaskId {
        match self {
            Self::Create(id, _) => *id,
            Self::Change(task, _) | Self::Keep(task) => task.id,
        }
    }
}
