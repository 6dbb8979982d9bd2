//! The databases of other schedulers, on MySQL and MariaDB: what an import reads of them, and how tasks are switched over.
//!
//! A [`ForeignDatabase`] is one connection. What is read is one [`Snapshot`] (`REPEATABLE READ`, read only), in pages of
//! bounded size, so that the other scheduler goes on meanwhile and what is read belongs together. Nothing is written but by
//! [`Switch`]. No error, log line or text for debugging has the password of the address.

mod address;
mod asking;
mod connection;
mod failure;
mod horace;
mod rows;
mod schema;
mod snapshot;
mod switch;
mod xxljob;

pub use connection::ForeignDatabase;
pub use rows::{FOREIGN_PAGE_MAX, FOREIGN_ROWS_MAX};
pub use snapshot::Snapshot;
pub use switch::{RunningJob, Switch};
pub use xxljob::LOG_TEXT_CHARS_MAX;
