//! What becomes of a column of another scheduler's database.

use super::uncarried::Effect;

/// What becomes of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It becomes these fields of the task.
    Task(&'static [&'static str]),
    /// It is kept beside the task, the app or the user, under this name in the document.
    Kept(&'static str),
    /// It is not taken over; the report names each value, with this effect.
    Left(Effect),
    /// It is not read: the other scheduler makes it anew, or it is a secret.
    Unread,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its table.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Which releases have it; empty is all of them.
    pub releases: &'static str,
    /// What becomes of it.
    pub fate: Fate,
    /// In words.
    pub says: &'static str,
}

impl Column {
    /// A column; `releases` is empty where all have it.
    pub(in crate::domain) const fn new(
        table: &'static str,
        name: &'static str,
        releases: &'static str,
        fate: Fate,
        says: &'static str,
    ) -> Self {
        Self { table, name, releases, fate, says }
    }
}
