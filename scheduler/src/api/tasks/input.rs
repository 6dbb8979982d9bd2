//! The bodies of requests about tasks: defaults, definition, state.

use crate::api::Api;
use crate::api::problem::Problem;
use crate::domain::task::file::NOTE_CHARS_MAX;
use crate::domain::task::{ScheduleKind, TaskSpec};
use crate::domain::{FieldError, FieldRefusal, Refusal, TaskId};
use crate::store::Activity;
use serde_json::{Map, Value};

/// Fields that a task returns and that cannot be written.
pub const READ_ONLY: [&str; 11] = [
    "id",
    "state",
    "paused_at",
    "script",
    "warnings",
    "next_fire_at",
    "written_until",
    "fires",
    "failures_in_row",
    "created_at",
    "updated_at",
];

/// There is no such task within reach.
pub fn gone(id: TaskId) -> Problem {
    Refusal::not_found("task", id).into()
}

/// Fields of a body other than the definition.
#[derive(Default)]
pub struct StateFields {
    pub tenant: Option<String>,
    pub app: Option<String>,
    pub started: Option<bool>,
    pub pause_note: Option<String>,
    pub revision: Option<i64>,
}

impl StateFields {
    /// Takes its fields out of `fields`, leaving those of the definition. Also returns what is wrong with
    /// them.
    pub fn take(fields: &mut Map<String, Value>) -> (Self, Vec<FieldError>) {
        fn read<T: serde::de::DeserializeOwned>(
            fields: &mut Map<String, Value>,
            refused: &mut Vec<FieldError>,
            (name, allowed): (&str, &str),
        ) -> Option<T> {
            let value = fields.remove(name)?;
            let refusal = FieldRefusal::wrong_type(&value, allowed);
            let read = serde_json::from_value(value);
            let wrong = |_| refused.push(FieldError::new(name, refusal));
            read.map_err(wrong).ok().flatten()
        }
        let mut refused = Vec::new();
        let beside = Self {
            tenant: read(fields, &mut refused, ("tenant", "the name of a tenant")),
            app: read(fields, &mut refused, ("app", "the name of an app")),
            started: read(fields, &mut refused, ("started", "true or false")),
            pause_note: read(fields, &mut refused, ("pause_note", "text")),
            revision: read(fields, &mut refused, ("revision", "the number that the task was read with")),
        };
        if beside.pause_note.as_ref().is_some_and(|note| note.chars().count() > NOTE_CHARS_MAX) {
            refused.push(FieldError::too_long("pause_note", NOTE_CHARS_MAX));
        }
        if beside.pause_note.is_some() && beside.started == Some(true) {
            refused.push(FieldError::new("pause_note", FieldRefusal::not_with("started")));
        }
        (beside, refused)
    }

    /// The state that the body asks for, given the task's state `now`.
    pub fn activity(&self, now: &Activity) -> Activity {
        match (self.started, &self.pause_note) {
            (_, Some(note)) => Activity { started: false, pause_note: Some(note.clone()) },
            (Some(started), None) => Activity::of(started),
            (None, None) => now.clone(),
        }
    }
}

/// The defaults of omitted fields.
pub fn defaults(api: &Api) -> TaskSpec {
    TaskSpec { time_zone: api.default_zone.name().to_owned(), ..TaskSpec::default() }
}

/// The definition with `fields` replaced; what is wrong with them goes to `refused`.
pub fn read(
    before: &TaskSpec,
    fields: &Map<String, Value>,
    activity: &Activity,
    now: i64,
    refused: &mut Vec<FieldError>,
) -> Option<TaskSpec> {
    match before.read(fields) {
        Err(wrong) => {
            add(refused, wrong);
            None
        }
        Ok(spec) => {
            if spec.fire_at != before.fire_at || spec.schedule != before.schedule {
                refused.extend(refuse_past(&spec, activity, now).err());
            }
            Some(spec)
        }
    }
}

/// Adds refusals, but only one per field.
pub fn add(refused: &mut Vec<FieldError>, more: Vec<FieldError>) {
    for error in more {
        if !refused.iter().any(|known| known.field == error.field) {
            refused.push(error);
        }
    }
}

/// Refuses a task that would fire once, in the past: a mistake.
pub fn refuse_past(spec: &TaskSpec, activity: &Activity, now: i64) -> Result<(), FieldError> {
    if spec.schedule == ScheduleKind::Once && activity.started && spec.fire_at > 0 && spec.fire_at <= now {
        return Err(FieldError::new("fire_at", FieldRefusal::InThePast));
    }
    Ok(())
}

/// The value that a null in a patch stands for.
pub fn default_of(name: &str, defaults: &Value) -> Option<Value> {
    if name == "started" { Some(false.into()) } else { defaults.get(name).cloned() }
}
