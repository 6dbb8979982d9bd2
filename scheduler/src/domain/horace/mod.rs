//! What horace cron-job calls things, and what they are here. Made from its documented columns; none of its code or text is in
//! here.
//!
//! It has tenants, apps and tasks as we have; its executors speak a protocol of their own, so they have to be built with our
//! SDK before tasks are switched. [`document`] makes an [`ImportDocument`](crate::domain::import::ImportDocument) of a whole
//! database.

mod column;
mod document;
mod mapping;
mod row;

pub use column::COLUMNS;
pub use document::{HoraceOptions, document};
pub use mapping::spec_of;
pub use row::{ForeignApp, ForeignHorace, ForeignMember, ForeignTask, ForeignTenant, ForeignUser};
