//! Which definitions are allowed: every field that is not is named, with what would be.

use super::field::is_name;
use super::policy::ScheduleKind;
use super::spec::{INTERVAL_MS_MAX, TaskSpec};
use crate::domain::TaskId;
use crate::domain::calendar::CalendarRule;
use crate::domain::cron::{CronSchedule, DstPolicy};
use crate::domain::field_error::FieldError;
use crate::domain::refusal::{FieldRefusal, wrong_cron, wrong_zone};
use crate::domain::schedule::{Schedule, Timing};
use chrono_tz::Tz;

/// Shortest interval of a fixed rate or delay, ms.
const INTERVAL_MS_MIN: i64 = 1_000;

impl TaskSpec {
    /// Holds every field against what is allowed; returns all that are not.
    #[must_use]
    pub fn check(&self) -> Vec<FieldError> {
        let values = serde_json::to_value(self).unwrap_or_default();
        let each = Self::FIELDS.iter().filter_map(|field| field.check(&values[field.name]).err());
        let mut found = Found(each.collect());
        found.unless(!self.name.contains('/'), "name", FieldRefusal::Slash);
        self.check_parents(&mut found);
        self.check_schedule(&mut found);
        // In the order of the definition, whichever rule found it.
        let place = |error: &FieldError| {
            let root = error.field.split(['.', '[']).next().unwrap_or_default();
            Self::field_names().position(|name| name == root)
        };
        found.0.sort_by_key(place);
        found.0
    }

    fn check_parents(&self, found: &mut Found) {
        for (at, link) in self.parents.iter().enumerate() {
            let twice = self.parents[..at].iter().any(|other| other.task == link.task);
            found.unless(!twice, &format!("parents[{at}].task"), FieldRefusal::ParentTwice);
            let named = link.task.split('/').all(is_name) && link.task.split('/').count() <= 2;
            found.unless(named, &format!("parents[{at}].task"), FieldRefusal::WrongParent);
        }
    }

    /// What the fields of a schedule ask of each other.
    fn check_schedule(&self, found: &mut Found) {
        if self.schedule == ScheduleKind::Cron || !self.cron.is_empty() {
            match CronSchedule::parse(&self.cron) {
                Err(error) => found.0.push(FieldError::new("cron", wrong_cron(&self.cron, &error))),
                Ok(cron) => {
                    let fires = cron.next_after(0, Tz::UTC, DstPolicy::default()).is_some();
                    found.unless(fires, "cron", FieldRefusal::CronNever);
                }
            }
        }
        if self.time_zone.parse::<Tz>().is_err() {
            found.0.push(FieldError::new("time_zone", wrong_zone(&self.time_zone)));
        }
        let repeats = matches!(self.schedule, ScheduleKind::FixedRate | ScheduleKind::FixedDelay);
        let needed = |value: &str| FieldRefusal::RequiredFor { other: "schedule".to_owned(), value: value.to_owned() };
        if repeats && self.interval_ms == 0 {
            let kind = if self.schedule == ScheduleKind::FixedRate { "fixed_rate" } else { "fixed_delay" };
            found.unless(false, "interval_ms", needed(kind));
        } else if repeats && (0..INTERVAL_MS_MIN).contains(&self.interval_ms) {
            found.0.push(FieldError::span("interval_ms", INTERVAL_MS_MIN, INTERVAL_MS_MAX));
        }
        let is_once = self.schedule != ScheduleKind::Once || self.fire_at > 0;
        found.unless(is_once, "fire_at", needed("once"));
        let is_window = self.valid_from == 0 || self.valid_until == 0 || self.valid_from < self.valid_until;
        found.unless(is_window, "valid_until", FieldRefusal::NotAfter { other: "valid_from".to_owned() });
        let is_movable = self.calendar_rule == CalendarRule::Skip || self.schedule == ScheduleKind::Cron;
        found.unless(is_movable, "calendar_rule", FieldRefusal::NeedsCron);
        let is_spread = self.spread_ms == 0 || matches!(self.schedule, ScheduleKind::Cron | ScheduleKind::FixedRate);
        found.unless(is_spread, "spread_ms", FieldRefusal::NeedsCronOrRate);
    }

    /// The schedule that the fields name, as of a start at `anchor` (epoch ms). `id` is the
    /// task's id.
    ///
    /// # Errors
    /// A cron expression or a zone that cannot be read.
    pub fn to_schedule(&self, anchor: i64, id: TaskId) -> Result<Schedule, FieldError> {
        let timing = match self.schedule {
            ScheduleKind::None => Timing::None,
            ScheduleKind::Cron => {
                let cron = CronSchedule::parse(&self.cron);
                Timing::Cron(Box::new(cron.map_err(|error| FieldError::new("cron", wrong_cron(&self.cron, &error)))?))
            }
            ScheduleKind::FixedRate => Timing::FixedRate { interval_ms: self.interval_ms },
            ScheduleKind::FixedDelay => Timing::FixedDelay { delay_ms: self.interval_ms },
            ScheduleKind::Once => Timing::Once { at: self.fire_at },
        };
        let zone = self.time_zone.parse::<Tz>();
        let zone = zone.map_err(|_| FieldError::new("time_zone", wrong_zone(&self.time_zone)))?;
        Ok(Schedule {
            timing,
            zone,
            dst: DstPolicy { gap: self.dst_gap, overlap: self.dst_overlap },
            valid_from: self.valid_from,
            valid_until: self.valid_until,
            anchor,
            calendar: None,
            calendar_rule: self.calendar_rule,
            spread_ms: self.spread_ms,
            jitter_ms: self.jitter_ms,
            seed: id.0,
        })
    }
}

/// Refusals found so far.
struct Found(Vec<FieldError>);

impl Found {
    fn unless(&mut self, holds: bool, field: &str, refusal: FieldRefusal) {
        if !holds {
            self.0.push(FieldError::new(field, refusal));
        }
    }
}

/// Holds parameters against what a result or a dispatch may carry.
///
/// # Errors
/// More than [`carillon_protocol::TEXT_BYTES_MAX`] bytes.
pub fn check_params(params: &str) -> Result<(), FieldError> {
    if params.len() <= carillon_protocol::TEXT_BYTES_MAX {
        return Ok(());
    }
    let most = carillon_protocol::TEXT_BYTES_MAX as i64;
    Err(FieldError::new("params", FieldRefusal::TooManyBytes { most }))
}
