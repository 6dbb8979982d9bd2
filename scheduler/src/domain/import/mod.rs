//! What another scheduler has, as one document: tenants, apps, tasks, scripts and users, in the words of this one.
//!
//! A document is made in two steps. `store/foreign/` reads the other scheduler's rows as they are; [`crate::domain::xxljob`]
//! and [`crate::domain::horace`] make the document of them. It is what `carillon import` sends, and it can be kept as a
//! file and read before that. What cannot be carried over stands beside the thing that it belongs to, as an [`Uncarried`].
//!
//! **Identity is the origin**, `source#id`: the name of the source and the id that the thing has there. So an import can be
//! repeated, and a task that was renamed here is the same one.

mod column;
mod document;
mod names;
mod uncarried;

pub use column::{Column, Fate};
pub use document::{
    DOCUMENT_VERSION, ForeignKind, GLUE_BYTES_MAX, GLUE_VERSIONS_MAX, GlueVersion, ImportApp, ImportDocument,
    ImportGlue, ImportGrant, ImportRole, ImportTask, ImportTenant, ImportUser, JOB_NUMBER_MAX, SOURCE_CHARS_MAX,
    SourceError, is_origin, origin,
};
pub use names::unique_name;
pub(in crate::domain) use names::{plain_name, task_name};
pub use uncarried::{Effect, Uncarried, VALUE_CHARS_MAX};
