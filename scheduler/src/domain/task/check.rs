//! Which definitions are allowed: every field that is not is named, with what would be.

use super::policy::ScheduleKind;
use super::spec::TaskSpec;
use crate::domain::calendar::CalendarRule;
use crate::domain::cron::{CronSchedule, DstPolicy};
use crate::domain::field_error::FieldError;
use crate::domain::refusal::{FieldRefusal, wrong_cron, wrong_zone};
use crate::domain::schedule::{Schedule, Trigger};
use chrono_tz::Tz;

/// Most retries that a task may ask for.
pub const RETRIES_MAX: i32 = 1_000;

/// Longest interval, time-out or expiry, ms: thirty days.
pub const SPAN_MS_MAX: i64 = 30 * 86_400_000;

/// Shortest interval of a fixed rate or delay, ms.
const INTERVAL_MS_MIN: i64 = 1_000;

/// Longest such interval, ms: a year.
const INTERVAL_MS_MAX: i64 = 366 * 86_400_000;

/// Longest spread or jitter, ms: a day.
const WINDOW_MS_MAX: i64 = 86_400_000;

/// Last instant that a field may name: the end of the year 2199, ms.
const INSTANT_MAX: i64 = 7_258_118_399_999;

/// Missed fires that `fire_all` may run at most.
const MISFIRE_MAX: i32 = 1_000;

/// Tags of one kind, and parents, at most.
const TAGS_MAX: usize = 32;
const PARENTS_MAX: usize = 32;

/// Bound of `max_concurrent`, and of fires and failures in a row.
const COUNT_MAX: i64 = 1_000_000;

impl TaskSpec {
    /// Holds every field against what is allowed; answers all that are not.
    #[must_use]
    pub fn check(&self) -> Vec<FieldError> {
        let mut found = Found(Vec::new());
        self.check_texts(&mut found);
        self.check_schedule(&mut found);
        self.check_spans(&mut found);
        self.check_counts(&mut found);
        found.0
    }

    fn check_texts(&self, found: &mut Found) {
        for (field, text) in [("name", &self.name), ("handler", &self.handler)] {
            found.unless(is_name(text), field, FieldRefusal::WrongName { most: 128 });
        }
        found.unless(!self.name.contains('/'), "name", FieldRefusal::Slash);
        let is_short = self.description.chars().count() <= 1_000;
        found.unless(is_short, "description", FieldRefusal::TooLong { most: 1_000 });
        if let Err(error) = check_params(&self.params) {
            found.0.push(error);
        }
        for (field, tags) in [("tags", &self.tags), ("tags_any", &self.tags_any), ("tags_none", &self.tags_none)] {
            let are_names = tags.len() <= TAGS_MAX && tags.iter().all(|tag| is_name(tag));
            let refusal = FieldRefusal::WrongTags { most: TAGS_MAX as i64, most_characters: 128 };
            found.unless(are_names, field, refusal);
        }
        let calendar = self.calendar.is_empty() || is_name(&self.calendar);
        found.unless(calendar, "calendar", FieldRefusal::WrongName { most: 128 });
        let are_few = self.parents.len() <= PARENTS_MAX;
        found.unless(are_few, "parents", FieldRefusal::TooMany { most: PARENTS_MAX as i64 });
        for (at, link) in self.parents.iter().enumerate() {
            let twice = self.parents[..at].iter().any(|other| other.task == link.task);
            found.unless(!twice, &format!("parents[{at}].task"), FieldRefusal::ParentTwice);
            let named = link.task.split('/').all(is_name) && link.task.split('/').count() <= 2;
            found.unless(named, &format!("parents[{at}].task"), FieldRefusal::WrongParent);
        }
    }

    fn check_schedule(&self, found: &mut Found) {
        found.unless(self.cron.len() <= 190, "cron", FieldRefusal::TooLong { most: 190 });
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
        } else {
            let least_ms = if repeats { INTERVAL_MS_MIN } else { 0 };
            let is_interval = (least_ms..=INTERVAL_MS_MAX).contains(&self.interval_ms);
            found.unless(
                is_interval,
                "interval_ms",
                FieldRefusal::SpanOutOfRange { least_ms, most_ms: INTERVAL_MS_MAX },
            );
        }
        let is_once = self.schedule != ScheduleKind::Once || self.fire_at > 0;
        found.unless(is_once, "fire_at", needed("once"));
        for (field, at) in
            [("fire_at", self.fire_at), ("valid_from", self.valid_from), ("valid_until", self.valid_until)]
        {
            found.unless((0..=INSTANT_MAX).contains(&at), field, FieldRefusal::InstantOutOfRange);
        }
        let is_window = self.valid_from == 0 || self.valid_until == 0 || self.valid_from < self.valid_until;
        found.unless(is_window, "valid_until", FieldRefusal::NotAfter { other: "valid_from".to_owned() });
        let is_movable = self.calendar_rule == CalendarRule::Skip || self.schedule == ScheduleKind::Cron;
        found.unless(is_movable, "calendar_rule", FieldRefusal::NeedsCron);
        let is_spread = self.spread_ms == 0 || matches!(self.schedule, ScheduleKind::Cron | ScheduleKind::FixedRate);
        found.unless(is_spread, "spread_ms", FieldRefusal::NeedsCronOrRate);
    }

    fn check_spans(&self, found: &mut Found) {
        let spans = [
            ("misfire_max_late_ms", self.misfire_max_late_ms, SPAN_MS_MAX),
            ("expire_after_ms", self.expire_after_ms, SPAN_MS_MAX),
            ("retry_interval_ms", self.retry_interval_ms, SPAN_MS_MAX),
            ("retry_max_interval_ms", self.retry_max_interval_ms, SPAN_MS_MAX),
            ("timeout_ms", self.timeout_ms, SPAN_MS_MAX),
            ("wait_timeout_ms", self.wait_timeout_ms, SPAN_MS_MAX),
            ("spread_ms", self.spread_ms, WINDOW_MS_MAX),
            ("jitter_ms", self.jitter_ms, WINDOW_MS_MAX),
        ];
        for (field, ms, most) in spans {
            let refusal = FieldRefusal::SpanOutOfRange { least_ms: 0, most_ms: most };
            found.unless((0..=most).contains(&ms), field, refusal);
        }
    }

    fn check_counts(&self, found: &mut Found) {
        let counts = [
            ("max_fires", self.max_fires, 0, i64::MAX),
            ("misfire_max", self.misfire_max.into(), 1, MISFIRE_MAX.into()),
            ("pause_after_failures", self.pause_after_failures.into(), 0, COUNT_MAX),
            ("max_concurrent", self.max_concurrent.into(), 0, COUNT_MAX),
            ("priority", self.priority.into(), 1, 9),
            ("max_retries", self.max_retries.into(), 0, RETRIES_MAX.into()),
            ("retry_jitter_percent", self.retry_jitter_percent.into(), 0, 100),
        ];
        for (field, count, least, most) in counts {
            found.unless((least..=most).contains(&count), field, FieldRefusal::OutOfRange { least, most });
        }
    }

    /// The schedule that the fields name, as of a start at `anchor` (epoch ms). `seed` is the
    /// task's id.
    ///
    /// # Errors
    /// A cron expression or a zone that cannot be read.
    pub fn to_schedule(&self, anchor: i64, seed: i64) -> Result<Schedule, FieldError> {
        let trigger = match self.schedule {
            ScheduleKind::None => Trigger::None,
            ScheduleKind::Cron => {
                let cron = CronSchedule::parse(&self.cron);
                Trigger::Cron(Box::new(cron.map_err(|error| FieldError::new("cron", wrong_cron(&self.cron, &error)))?))
            }
            ScheduleKind::FixedRate => Trigger::FixedRate { interval_ms: self.interval_ms },
            ScheduleKind::FixedDelay => Trigger::FixedDelay { delay_ms: self.interval_ms },
            ScheduleKind::Once => Trigger::Once { at: self.fire_at },
        };
        let zone = self.time_zone.parse::<Tz>();
        let zone = zone.map_err(|_| FieldError::new("time_zone", wrong_zone(&self.time_zone)))?;
        Ok(Schedule {
            trigger,
            zone,
            dst: DstPolicy { gap: self.dst_gap, overlap: self.dst_overlap },
            valid_from: self.valid_from,
            valid_until: self.valid_until,
            anchor,
            calendar: None,
            calendar_rule: self.calendar_rule,
            spread_ms: self.spread_ms,
            jitter_ms: self.jitter_ms,
            seed,
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

fn is_name(text: &str) -> bool {
    (1..=128).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Holds parameters against what a result or a hand-over may carry.
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
