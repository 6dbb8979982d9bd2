//! Closed lists of words in responses, as the OpenAPI document lists them.

use crate::dispatch::OUTPUT_STATUSES;
use crate::domain::reason::REASONS;
use crate::domain::statistics::STEPS;
use crate::domain::task_log::STATUSES;
use crate::domain::trigger::TRIGGERS;
use crate::store::TASK_STATES;
use carillon_protocol::sign::SignMethod;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// State of a run whose executor was asked to stop it and has not confirmed yet.
pub const STOPPING: &str = "stopping";

/// Makes the schema of a closed list of words.
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
    /// State of a run; `stopping` while its executor was asked to stop it and has not confirmed yet.
    RunStatus = STATUSES.iter().map(|(_, word)| *word).chain([STOPPING])
}

words! {
    /// Why a run is in its state; docs/concepts.md explains the words. Empty when there is nothing to explain.
    RunReason = REASONS.iter().map(|(_, word)| *word)
}

words! {
    /// What made a run.
    RunTrigger = TRIGGERS.iter().map(|(_, word)| *word)
}

words! {
    /// How executors and nodes of an app must sign; empty is whichever an executor chooses.
    RequiredSignMethod = ["", SignMethod::HmacSha256.as_str(), SignMethod::Md5.as_str()]
}

words! {
    /// Length of a step of a series.
    StatisticsStep = STEPS.iter().map(|(_, word)| *word)
}

words! {
    /// Whether a task fires by itself.
    TaskState = TASK_STATES.iter().map(|(_, word)| *word)
}

words! {
    /// A run's stored state, for filtering lists.
    StoredRunStatus = STATUSES.iter().map(|(_, word)| *word)
}

words! {
    /// State of a run's log output; docs/api.md explains the words.
    LogOutputState = OUTPUT_STATUSES.iter().map(|(_, word)| *word)
}

words! {
    /// State of a backfill.
    BackfillStatus = ["open", "done", "cancelled"]
}

words! {
    /// State of an executor's key.
    KeyState = ["valid", "expired", "revoked"]
}

words! {
    /// What a task file does to a task.
    FileAction = ["create", "change", "unchanged"]
}

words! {
    /// How the caller authenticated.
    CallerKind = ["user", "token", "setting"]
}
