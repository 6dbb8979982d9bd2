//! What an admin enters for a task: every field with its default. The same value is the body of
//! the API, the entry of a task file, and the defaults that an executor registers.

use super::policy::{
    BlockScope, BlockStrategy, Delivery, ExpiredStrategy, FailureClass, FailureStrategy, Maintenance, MisfireStrategy,
    ParentOutcome, ParentRule, RetryBackoff, ScheduleKind,
};
use crate::domain::calendar::CalendarRule;
use crate::domain::cron::{Gap, Overlap};
use crate::domain::field_error::FieldError;
use crate::domain::refusal::unreadable;
use crate::domain::routing::Routing;
use crate::domain::task_log::PRIORITY_DEFAULT;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Every kind of failure: what `retry_on` holds unless it says otherwise.
pub const EVERY_FAILURE: [FailureClass; 4] =
    [FailureClass::Failed, FailureClass::TimedOut, FailureClass::Lost, FailureClass::NotSent];

/// A parent whose end makes the task run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentLink {
    /// Name of the parent: `task` of the same app, or `app/task` of another app of the tenant.
    pub task: String,
    /// Which end counts.
    #[serde(default)]
    pub on: ParentOutcome,
}

/// A task as it is defined. Times are epoch ms; 0 stands for "none" where it says so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TaskSpec {
    /// Name, unique within (tenant, app).
    pub name: String,
    /// Handler name.
    pub handler: String,
    /// For people.
    pub description: String,
    /// Parameters of every run; other JSON than text is kept as its JSON.
    #[serde(deserialize_with = "text_or_json")]
    pub params: String,

    /// What names the instants.
    pub schedule: ScheduleKind,
    /// Quartz cron, for `cron`.
    pub cron: String,
    /// IANA zone of cron, calendar and overview.
    pub time_zone: String,
    /// For `fixed_rate` and `fixed_delay`, ms.
    pub interval_ms: i64,
    /// For `once`, ms.
    #[serde(deserialize_with = "instant")]
    pub fire_at: i64,
    /// Fires from this instant on only, ms; 0 is none.
    #[serde(deserialize_with = "instant")]
    pub valid_from: i64,
    /// Fires before this instant only, ms; 0 is none.
    #[serde(deserialize_with = "instant")]
    pub valid_until: i64,
    /// Fires of the schedule at most; 0 is no bound.
    pub max_fires: i64,
    /// A local time that a change of the clock leaves out.
    pub dst_gap: Gap,
    /// A local time that a change of the clock repeats.
    pub dst_overlap: Overlap,
    /// Name of a calendar of the tenant; empty is none.
    pub calendar: String,
    /// What the calendar's excluded days do.
    pub calendar_rule: CalendarRule,
    /// Window of the stable offset by which the task fires later, ms.
    pub spread_ms: i64,
    /// Window of the random delay of each start, ms.
    pub jitter_ms: i64,

    /// What happens to missed fires.
    pub misfire_strategy: MisfireStrategy,
    /// For `fire_all`: missed fires that run at most, the latest ones.
    pub misfire_max: i32,
    /// For `fire_all`: later than this a missed fire does not run, ms; 0 is no bound.
    pub misfire_max_late_ms: i64,
    /// What happens to a run that is too late.
    pub expired_strategy: ExpiredStrategy,
    /// Later than this after it was due a run counts as expired, ms; 0 is never.
    pub expire_after_ms: i64,
    /// What the tenant's maintenance windows do.
    pub maintenance: Maintenance,
    /// Pauses the task after so many failed runs in a row; 0 is never.
    pub pause_after_failures: i32,

    /// How executors are chosen.
    pub routing: Routing,
    /// Tags that an executor must all have, compared exactly.
    pub tags: Vec<String>,
    /// Tags of which an executor must have one, when there are any.
    pub tags_any: Vec<String>,
    /// Tags of which an executor must have none.
    pub tags_none: Vec<String>,

    /// What happens to a run that is due while an earlier one goes on.
    pub block_strategy: BlockStrategy,
    /// Where earlier runs are looked for.
    pub block_scope: BlockScope,
    /// Runs of the task at once at most, in the whole app; 0 is no bound.
    pub max_concurrent: i32,
    /// 1..=9, 9 is the most urgent of the tenant.
    pub priority: i32,

    /// What follows a failure.
    pub failure_strategy: FailureStrategy,
    /// Retries at most (first attempt not counted).
    pub max_retries: i32,
    /// Between a failure and the next attempt, ms.
    pub retry_interval_ms: i64,
    /// How that interval grows.
    pub retry_backoff: RetryBackoff,
    /// Bound of a growing interval, ms.
    pub retry_max_interval_ms: i64,
    /// Random part of the interval, per cent of it: 20 makes 80 to 120 %.
    pub retry_jitter_percent: i32,
    /// Failures that are retried.
    pub retry_on: Vec<FailureClass>,
    /// Whether another attempt goes to another executor, where there is one.
    pub retry_elsewhere: bool,
    /// Time-out of a run, ms; 0 is none.
    pub timeout_ms: i64,
    /// Time-out for waiting, from the due time to the start, ms; 0 is none.
    pub wait_timeout_ms: i64,
    /// What an unknown outcome means.
    pub delivery: Delivery,

    /// Tasks whose end makes this one run.
    pub parents: Vec<ParentLink>,
    /// How many of them must have ended.
    pub parent_rule: ParentRule,
    /// Whether the parents' output is the run's parameters.
    pub parent_output: bool,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            handler: String::new(),
            description: String::new(),
            params: String::new(),
            schedule: ScheduleKind::default(),
            cron: String::new(),
            time_zone: "UTC".to_owned(),
            interval_ms: 0,
            fire_at: 0,
            valid_from: 0,
            valid_until: 0,
            max_fires: 0,
            dst_gap: Gap::default(),
            dst_overlap: Overlap::default(),
            calendar: String::new(),
            calendar_rule: CalendarRule::default(),
            spread_ms: 0,
            jitter_ms: 0,
            misfire_strategy: MisfireStrategy::default(),
            misfire_max: 10,
            misfire_max_late_ms: 0,
            expired_strategy: ExpiredStrategy::default(),
            expire_after_ms: 0,
            maintenance: Maintenance::default(),
            pause_after_failures: 0,
            routing: Routing::default(),
            tags: Vec::new(),
            tags_any: Vec::new(),
            tags_none: Vec::new(),
            block_strategy: BlockStrategy::default(),
            block_scope: BlockScope::default(),
            max_concurrent: 0,
            priority: PRIORITY_DEFAULT,
            failure_strategy: FailureStrategy::default(),
            max_retries: 5,
            retry_interval_ms: 10_000,
            retry_backoff: RetryBackoff::default(),
            retry_max_interval_ms: 600_000,
            retry_jitter_percent: 0,
            retry_on: EVERY_FAILURE.to_vec(),
            retry_elsewhere: false,
            timeout_ms: 0,
            wait_timeout_ms: 0,
            delivery: Delivery::default(),
            parents: Vec::new(),
            parent_rule: ParentRule::default(),
            parent_output: false,
        }
    }
}

impl TaskSpec {
    /// This definition with the fields of `patch` in place of its own. A `cron` that comes
    /// without a `schedule` makes (or, when empty, ends) a cron schedule.
    ///
    /// # Errors
    /// The first field that is unknown or of the wrong kind; ranges are [`TaskSpec::check`]'s.
    pub fn patched(&self, patch: Map<String, Value>) -> Result<Self, FieldError> {
        let wrong = |error: serde_path_to_error::Error<serde_json::Error>| match error.path().to_string().as_str() {
            "." => FieldError::new(unknown_field(error.inner()), unreadable(&error.inner().to_string())),
            field => FieldError::new(field, unreadable(&error.inner().to_string())),
        };
        let Ok(Value::Object(mut whole)) = serde_json::to_value(self) else {
            return Err(FieldError::new("task", unreadable("cannot be written as JSON")));
        };
        if let Some(Value::String(cron)) = patch.get("cron")
            && !patch.contains_key("schedule")
            && (!cron.trim().is_empty() || self.schedule == ScheduleKind::Cron)
        {
            let kind = if cron.trim().is_empty() { "none" } else { "cron" };
            whole.insert("schedule".to_owned(), Value::from(kind));
        }
        whole.extend(patch);
        let mut spec: Self = serde_path_to_error::deserialize(Value::Object(whole)).map_err(wrong)?;
        spec.cron = spec.cron.trim().to_owned();
        spec.retry_on.sort_by_key(|class| *class as u8);
        spec.retry_on.dedup();
        Ok(spec)
    }

    /// The fields that differ from the defaults, for files: what a default says need not be said.
    #[must_use]
    pub fn sparse(&self) -> Map<String, Value> {
        let fields = |spec: &Self| match serde_json::to_value(spec) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let defaults = fields(&Self::default());
        fields(self).into_iter().filter(|(name, value)| defaults.get(name) != Some(value)).collect()
    }
}

/// `unknown field `x`, expected …` names the field that the path does not.
fn unknown_field(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let named = text.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    named.unwrap_or("task").to_owned()
}

fn text_or_json<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(params_text(Value::deserialize(from)?))
}

/// Parameters are text; any other JSON value is kept as its JSON.
#[must_use]
pub fn params_text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Epoch ms, or a time as RFC 3339 has it; nothing is 0.
fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    use serde::de::Error;
    match Value::deserialize(from)? {
        Value::Null => Ok(0),
        Value::String(text) if text.is_empty() => Ok(0),
        Value::String(text) => {
            chrono::DateTime::parse_from_rfc3339(&text).map(|time| time.timestamp_millis()).map_err(|_| {
                D::Error::custom(format!("`{text}` is no time; 2026-12-24T18:00:00Z or epoch milliseconds are"))
            })
        }
        Value::Number(number) if number.is_i64() => Ok(number.as_i64().unwrap_or(0)),
        other => Err(D::Error::custom(format!("{other} is no time; 2026-12-24T18:00:00Z or epoch milliseconds are"))),
    }
}
