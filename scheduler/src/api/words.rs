//! Words that answers have, as the API's document lists them.

use crate::dispatch::OUTPUT_STATUSES;
use crate::domain::reason::REASONS;
use crate::domain::task_log::STATUSES;
use crate::domain::trigger::TRIGGERS;
use crate::store::TASK_STATES;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// State of a run whose executor was told to stop it, and has not confirmed it yet.
pub const STOPPING: &str = "stopping";

/// Makes the schema of a word that is one of these.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident = $words:expr) => {
        $(#[doc = $doc])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).enum_values(Some($words));
                RefOr::T(Schema::Object(text.description(Some(concat!($($doc),*).trim())).build()))
            }
        }

        impl ToSchema for $name {}
    };
}

words! {
    /// State of a run; `stopping` while its executor was told to stop it and has not confirmed it yet.
    RunStatus = STATUSES.iter().map(|(_, word)| *word).chain([STOPPING])
}

words! {
    /// Why a run is in its state; docs/concepts.md tells what each means. Empty when there is nothing to explain.
    RunReason = REASONS.iter().map(|(_, word)| *word)
}

words! {
    /// What made a run.
    RunTrigger = TRIGGERS.iter().map(|(_, word)| *word)
}

words! {
    /// Whether a task fires by itself.
    TaskState = TASK_STATES.iter().map(|(_, word)| *word)
}

words! {
    /// A run's stored state, as lists are asked for it.
    StoredRunStatus = STATUSES.iter().map(|(_, word)| *word)
}

words! {
    /// What is known of a run's log output; docs/api.md says what each word means.
    LogOutputState = OUTPUT_STATUSES.iter().map(|(_, word)| *word)
}

words! {
    /// Whether a backfill goes on.
    BackfillStatus = ["open", "done", "cancelled"]
}

words! {
    /// Whether an executor's key is accepted.
    KeyState = ["valid", "expired", "revoked"]
}

words! {
    /// What a task file does to a task.
    FileAction = ["create", "change", "unchanged"]
}

words! {
    /// What signed a request in.
    CallerKind = ["user", "token", "setting"]
}
