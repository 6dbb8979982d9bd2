//! Why a task ran around an instant, or did not: findings as codes, parameters and sentences.

mod moment;

pub use moment::{moment, previous_fire};

use super::action::AuditAction;
use super::instant::local_words;
use super::reason::REASONS;
use super::schedule::SkipReason;
use super::task_log::STATUSES;
use super::trigger::TRIGGERS;
use chrono::NaiveDate;
use chrono_tz::Tz;
use serde::Serialize;
use std::fmt::Write as _;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

fn words_of<T: 'static>(list: &'static [(T, &'static str)]) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(list.iter().map(|(_, word)| *word)))
}

fn status_words() -> Schema {
    words_of(&STATUSES).description(Some("The run's state.")).into()
}

fn reason_words() -> Schema {
    words_of(&REASONS).description(Some("Why it is in this state; docs/concepts.md explains the words.")).into()
}

fn trigger_words() -> Schema {
    words_of(&TRIGGERS).description(Some("What made the run.")).into()
}

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// There is a run.
    Run,
    /// A person or a program started it manually.
    StartedBy,
    /// A person or a program cancelled it, or skipped the occurrence.
    CancelledBy,
    /// A change of the task ended it.
    EndedByChange,
    /// A maintenance window covered the instant.
    Maintenance,
    /// No node wrote or claimed the run in time.
    Missed,
    /// There are further runs in the same minute.
    MoreRuns,
    /// The instant is still to come.
    StillToCome,
    /// The task was created later.
    CreatedLater,
    /// The definition was changed later: it may have been different at the instant.
    EditedLater,
    /// The task has no schedule.
    NoSchedule,
    /// A fixed delay counts from the end of the last run: its past instants cannot be computed afterwards.
    FixedDelay,
    /// The schedule names no instant in that minute.
    NotNamed,
    /// The calendar excludes the day.
    CalendarDay,
    /// The calendar excludes the hours.
    CalendarHours,
    /// The calendar excludes the day, and the fire moved to a working day.
    MovedByCalendar,
    /// The local time does not exist on that day, because the clock is put forward.
    DstGap,
    /// The local time exists twice, and the schedule fires in the second pass.
    OverlapFirstPass,
    /// The local time exists twice, and the schedule fires in the first pass.
    OverlapSecondPass,
    /// It is before the task's validity.
    BeforeValidity,
    /// It is after the task's validity.
    AfterValidity,
    /// The task was not started then.
    Stopped,
    /// The task was paused then.
    Paused,
    /// The schedule has used up its `max_fires`.
    MaxFiresUsed,
    /// Logs of that age are not kept.
    LogDeleted,
    /// The schedule names the instant, and no record explains why there is no run.
    Unexplained,
}

impl From<SkipReason> for FindingCode {
    fn from(reason: SkipReason) -> Self {
        match reason {
            SkipReason::CalendarDay => Self::CalendarDay,
            SkipReason::CalendarHours => Self::CalendarHours,
            SkipReason::MovedByCalendar => Self::MovedByCalendar,
            SkipReason::DstGap => Self::DstGap,
            SkipReason::OverlapFirstPass => Self::OverlapFirstPass,
            SkipReason::OverlapSecondPass => Self::OverlapSecondPass,
            SkipReason::BeforeValidity => Self::BeforeValidity,
            SkipReason::AfterValidity => Self::AfterValidity,
            SkipReason::CancelledManually => Self::CancelledBy,
            SkipReason::Maintenance => Self::Maintenance,
            SkipReason::Stopped => Self::Stopped,
            SkipReason::Paused => Self::Paused,
        }
    }
}

/// Parameters of a finding's sentence. Each code has some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FindingParams {
    /// When, epoch ms: the fire time of a run, the time of a change, the start of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// End of a window, epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// The fire before the instant, epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous: Option<i64>,
    /// The fire after the instant, epoch ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
    /// The day that the calendar moved the fire to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<NaiveDate>,
    /// The run's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// The run's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = status_words)]
    pub status: Option<&'static str>,
    /// Why it is in this state; docs/concepts.md lists the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = reason_words)]
    pub reason: Option<&'static str>,
    /// Its trigger.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = trigger_words)]
    pub trigger: Option<&'static str>,
    /// Message of the run, or note of the window or pause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Address of the executor that has or had the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Number of dispatches of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// How late its last attempt started, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<i64>,
    /// Who did it; absent for callers who may not read the audit, and where the audit has no entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Their action, as the audit names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditAction>)]
    pub action: Option<String>,
    /// Number of changes or fires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<i64>,
}

/// A finding about an instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Finding {
    /// What.
    pub code: FindingCode,
    /// Parameters of the sentence.
    pub params: FindingParams,
    /// The sentence, with times in the task's zone.
    pub message: String,
}

impl Finding {
    /// A finding with its sentence, whose times are shown in `zone`.
    #[must_use]
    pub fn new(code: FindingCode, params: FindingParams, zone: Tz) -> Self {
        let message = sentence(code, &params, zone);
        Self { code, params, message }
    }
}

fn sentence(code: FindingCode, params: &FindingParams, zone: Tz) -> String {
    use FindingCode as C;
    let time = |ms: Option<i64>| ms.map_or_else(|| "-".to_owned(), |ms| local_words(ms, zone));
    let at = time(params.at);
    let who = params.who.as_deref().unwrap_or("someone");
    let count = params.count.unwrap_or_default();
    let note = params.message.as_ref().map_or_else(String::new, |note| format!(": {note}"));
    match code {
        C::Run => run_sentence(params, &at),
        C::StartedBy => format!("It was started manually by {who} ({at})."),
        C::CancelledBy => format!("It was cancelled by {who} ({at})."),
        C::EndedByChange => {
            format!("It was ended by `{}`, done by {who} ({at}).", params.action.as_deref().unwrap_or_default())
        }
        C::Maintenance => format!("There was a maintenance window from {at} to {}{note}.", time(params.until)),
        C::Missed => format!("No node was available in time for the fire of {at}{note}."),
        C::MoreRuns => format!("There are more runs in that minute; the next one is for {}.", time(params.next)),
        C::StillToCome => format!("{at} is still in the future."),
        C::CreatedLater => format!("The task did not exist then: {who} created it at {at}."),
        C::EditedLater => format!(
            "The definition has changed since, {count} time(s), first at {at} by {who}; it may have been different \
             before."
        ),
        C::NoSchedule => "The task has no schedule: it runs manually, or after its parents.".to_owned(),
        C::FixedDelay => {
            "The task fires a fixed delay after the end of its last run; no run began in that minute.".to_owned()
        }
        C::NotNamed => {
            let previous = params.previous.map_or_else(
                || "there is none before".to_owned(),
                |ms| format!("the previous one is {}", local_words(ms, zone)),
            );
            let next = params
                .next
                .map_or_else(|| "none follows".to_owned(), |ms| format!("the next is {}", local_words(ms, zone)));
            format!("The schedule has no fire in the minute of {at}: {previous}, {next}.")
        }
        C::CalendarDay => format!("The calendar excludes the day of {at}."),
        C::CalendarHours => format!("The calendar excludes the time of day of {at}."),
        C::MovedByCalendar => {
            let day = params.day.map_or_else(String::new, |day| format!(" to {day}"));
            format!("The calendar excludes the day of {at}; the fire moved{day}.")
        }
        C::DstGap => format!("The local time does not exist on that day: the clock is put forward to {at}."),
        C::OverlapFirstPass => format!("{at} exists twice; the schedule fires the second time."),
        C::OverlapSecondPass => format!("{at} exists twice; the schedule fires the first time."),
        C::BeforeValidity => format!("{at} is before the task's `valid_from`."),
        C::AfterValidity => format!("{at} is not before the task's `valid_until`."),
        C::Stopped => format!("The task was not started then: {who} left it so at {at}."),
        C::Paused => format!("The task was paused then, by {who} at {at}{note}."),
        C::MaxFiresUsed => format!("The schedule has used up its {count} fires (`max_fires`)."),
        C::LogDeleted => format!("Logs from before {at} are not kept."),
        C::Unexplained => format!("The schedule has a fire at {at}, and no record explains why there is no run."),
    }
}

fn run_sentence(params: &FindingParams, at: &str) -> String {
    let text = |word: Option<&'static str>| word.unwrap_or_default();
    let mut said = format!("Run {} for {at}: {}", params.log.as_deref().unwrap_or_default(), text(params.status));
    let why: Vec<&str> = [params.reason, params.message.as_deref()].into_iter().flatten().collect();
    // Writing to a String cannot fail.
    if !why.is_empty() {
        let _ = write!(said, " ({})", why.join(": "));
    }
    if let Some(attempts) = params.attempts.filter(|attempts| *attempts > 0) {
        let plural = if attempts == 1 { "" } else { "s" };
        let _ = write!(said, ", {attempts} attempt{plural}");
    }
    if let Some(executor) = &params.executor {
        let _ = write!(said, ", on the executor at {executor}");
    }
    if let Some(late_ms) = params.late_ms {
        let _ = write!(said, ", {late_ms} ms late");
    }
    if let Some(trigger) = params.trigger {
        let _ = write!(said, "; trigger: {trigger}");
    }
    said + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_what_its_parameters_say() {
        let params = FindingParams {
            at: Some(1_792_888_200_000),
            who: Some("ann".to_owned()),
            message: Some("stocktaking".to_owned()),
            ..FindingParams::default()
        };
        let said =
            |params: &FindingParams| Finding::new(FindingCode::Paused, params.clone(), Tz::Europe__Berlin).message;
        let at = "2026-10-25 02:30:00 Europe/Berlin (+02:00)";
        assert_eq!(said(&params), format!("The task was paused then, by ann at {at}: stocktaking."));
        let unknown = FindingParams { who: None, message: None, ..params };
        assert_eq!(said(&unknown), format!("The task was paused then, by someone at {at}."));
        let json = serde_json::to_value(Finding::new(FindingCode::MaxFiresUsed, unknown, Tz::UTC)).unwrap();
        assert_eq!(json["code"], "max_fires_used");
        assert_eq!(json["params"], serde_json::json!({ "at": 1_792_888_200_000_i64 }));
    }
}
