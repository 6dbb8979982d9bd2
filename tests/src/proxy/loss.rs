//! A server that loses a transaction and does not say so, as a member of a Galera cluster may.

use super::speech::Message;
use super::trap::Point;
use std::sync::Mutex;

/// A request of `MariaDB`: its length, number and command, and the text.
pub(super) const ROLLBACK: &[u8] = b"\x09\0\0\0\x03ROLLBACK";

/// When the next transaction is lost.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// After so many further statements of transactions.
    after: Mutex<Option<usize>>,
}

impl Loss {
    pub(super) fn set(&self, statements: usize) {
        *self.after.lock().unwrap() = Some(statements);
    }

    /// Whether it was still to come.
    pub(super) fn unset(&self) -> bool {
        self.after.lock().unwrap().take().is_some()
    }

    /// Whether the transaction is lost just before this message of it.
    pub(super) fn comes_before(&self, message: &Message) -> bool {
        if !message.executes() {
            return false;
        }
        let mut after = self.after.lock().unwrap();
        match *after {
            Some(0) => after.take().is_some(),
            Some(more) => {
                *after = Some(more - 1);
                false
            }
            None => false,
        }
    }
}

/// Whether a connection is within a transaction after this message.
pub(super) fn is_within(before: bool, message: &Message) -> bool {
    let ends = [Point::Commit, Point::Words("ROLLBACK")];
    message.is_at(Point::Begin) || (before && !ends.iter().any(|end| message.is_at(*end)))
}
