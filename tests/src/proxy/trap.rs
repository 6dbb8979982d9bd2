//! What happens at a chosen statement.

use std::time::Duration;

/// A statement that is waited for, and what happens at it.
#[derive(Debug, Clone)]
pub struct Trap {
    /// At which statement.
    pub point: Point,
    /// On which side of it.
    pub place: Place,
    /// What happens.
    pub action: Action,
    /// To how many such statements, each on whichever connection it comes.
    pub times: usize,
}

/// A kind of statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// A transaction begins.
    Begin,
    /// A lock on rows is taken.
    Lock,
    /// A transaction is committed.
    Commit,
    /// A statement is prepared.
    Prepare,
    /// One with these whole words in it.
    Words(&'static str),
}

/// On which side of the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The statement never came to the server.
    Before,
    /// The server has done it, and its answer does not come back.
    After,
}

/// What happens there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It waits for so long, or until traps are released.
    Hold(Duration),
    /// The connection is closed.
    Cut,
    /// The connection ends with an error.
    Reset,
    /// Nothing more comes by this connection, which stays open.
    Lose,
    /// The machine is gone: every connection of the way is lost.
    Vanish,
}
