//! xxl-job (2.2.0 to 3.4.2), as pure values: what its executors, and clients in other languages, send and expect, and what its jobs
//! are here. Made from its documented columns, words and messages; none of its code or text is in here.
//!
//! Of its executors: `number` names a run on their wire, `wire` has the bodies both ways, `said` knows what their texts mean,
//! `library` how they differ besides.
//!
//! Of its jobs: [`spec_of`] reads one as a task, for the import and for scripts that make jobs; [`job_of`] shows a task as such
//! scripts know jobs. Both use the same tables of words. [`document`] makes an
//! [`ImportDocument`](crate::domain::import::ImportDocument) of a whole database.
//!
//! xxl-job's words are used here and nowhere else in `domain/`.

pub mod library;
pub mod number;
pub mod wire;

pub mod said;

mod children;
mod column;
mod document;
mod glue;
mod job;
mod mapping;
mod naming;
mod old_runs;
mod script;
mod text;
mod words;

pub use column::{COLUMNS, TABLES};
pub use document::{ImportOptions, document};
pub use job::{ForeignGlue, ForeignGroup, ForeignJob, ForeignLog, ForeignUser, ForeignXxlJob, Releases};
pub use library::Library;
pub use mapping::{TaskExtra, job_of, spec_of, spec_onto, starts};
pub use naming::beside_a_namesake;
pub use number::Number;
pub use old_runs::OldRuns;
pub use script::{GlueType, REMARK_CHARS_MAX, Script, check_script};
pub use text::{instant_of, interval_of, seconds_of};
pub use words::{BEAN, GLUE_TYPES};
