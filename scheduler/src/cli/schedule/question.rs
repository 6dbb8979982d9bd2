//! A question about a schedule: from the arguments or from a line of JSON to a [`Schedule`] and its fires.

use std::str::FromStr;
use std::sync::Arc;

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use serde::{Deserialize, Serialize};

use super::args::NextArgs;
use super::error::{FIRES_MAX, ScheduleError};
use crate::domain::calendar::{Calendar, CalendarSpec};
use crate::domain::cron::{CronSchedule, DstPolicy, Gap, Overlap};
use crate::domain::schedule::{CalendarRule, Kind, NEVER, Preview, Schedule, Timing};

/// A line of input; unknown members are ignored.
#[derive(Default, Deserialize)]
pub(super) struct Question {
    cron: Option<String>,
    rate: Option<i64>,
    delay: Option<i64>,
    at: Option<String>,
    start: Option<String>,
    zone: Option<String>,
    after: Option<String>,
    count: Option<u32>,
    gap: Option<Gap>,
    overlap: Option<Overlap>,
    from: Option<String>,
    until: Option<String>,
    calendar: Option<CalendarSpec>,
    calendar_rule: Option<CalendarRule>,
    spread: Option<i64>,
    jitter: Option<i64>,
    seed: Option<i64>,
    pub(super) explain: Option<bool>,
}

/// A line of output.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum OutputLine {
    Fires {
        next: Vec<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        ends: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        preview: Option<Vec<Preview>>,
    },
    Refused {
        refused: String,
    },
}

/// A question that has an answer.
pub(super) struct Plan {
    schedule: Schedule,
    /// Epoch ms.
    after: i64,
    count: usize,
}

impl Plan {
    /// The next fires as RFC 3339.
    pub(super) fn fires(&self) -> Vec<String> {
        let next = |after: i64| Some(self.schedule.next_after(after)).filter(|fire| *fire != NEVER);
        std::iter::successors(next(self.after), |fire| next(*fire))
            .take(self.count)
            .map(|fire| self.show(fire))
            .collect()
    }

    pub(super) fn preview(&self) -> Vec<Preview> {
        self.schedule.preview(self.after, self.count)
    }

    /// What to say at the end of a preview that has fewer fires than asked for.
    pub(super) fn end(&self, preview: &[Preview]) -> Option<String> {
        if preview.iter().filter(|line| line.kind == Kind::Fires).count() == self.count {
            return None;
        }
        Some(match self.schedule.timing {
            Timing::FixedDelay { delay_ms } => format!("then {delay_ms} ms after the end of each run"),
            _ => "nothing fires after that".to_owned(),
        })
    }

    pub(super) fn show(&self, instant: i64) -> String {
        show(self.schedule.zone, instant)
    }

    pub(super) fn zone(&self) -> Tz {
        self.schedule.zone
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

/// RFC 3339 in a zone; milliseconds only if there are any.
pub(super) fn show(zone: Tz, instant: i64) -> String {
    match zone.timestamp_millis_opt(instant).single() {
        Some(at) => at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{instant} ms"), // beyond the years that chrono knows
    }
}

impl Question {
    /// What is asked; what the question leaves open is taken from `args`, and `calendar` is that of `args`.
    pub(super) fn plan(&self, args: &NextArgs, calendar: Option<&Arc<Calendar>>) -> Result<Plan, ScheduleError> {
        let name = self.zone.as_deref().unwrap_or(&args.zone);
        let zone = Tz::from_str(name).map_err(|_| ScheduleError::Zone(name.to_owned()))?;
        let time = |mine: &Option<String>, given: &Option<String>| {
            mine.as_deref().or(given.as_deref()).map(|text| Time::parse(text, zone)).transpose()
        };
        let after = time(&self.after, &args.after)?.map_or_else(|| Utc::now().timestamp_millis(), Time::before);
        let count = self.count.unwrap_or(args.count);
        if !(1..=FIRES_MAX).contains(&count) {
            return Err(ScheduleError::Count(count));
        }
        let calendar = match &self.calendar {
            Some(spec) => Some(Arc::new(spec.compile("calendar", 1).map_err(ScheduleError::Calendar)?)),
            None => calendar.cloned(),
        };
        let at_least = |name, value: i64, least| {
            if value < least { Err(ScheduleError::Milliseconds(name, value, least)) } else { Ok(value) }
        };
        let schedule = Schedule {
            timing: self.timing(args, zone, at_least)?,
            zone,
            dst: DstPolicy { gap: self.gap.unwrap_or(args.gap), overlap: self.overlap.unwrap_or(args.overlap) },
            valid_from: time(&self.from, &args.from)?.map_or(0, Time::instant),
            valid_until: time(&self.until, &args.until)?.map_or(0, Time::instant),
            anchor: time(&self.start, &args.start)?.map_or(after, Time::instant),
            calendar,
            calendar_rule: self.calendar_rule.unwrap_or(args.calendar_rule),
            spread_ms: at_least("spread", self.spread.unwrap_or(args.spread), 0)?,
            jitter_ms: at_least("jitter", self.jitter.unwrap_or(args.jitter), 0)?,
            seed: self.seed.unwrap_or(args.seed),
        };
        Ok(Plan { schedule, after, count: count as usize })
    }

    fn timing(
        &self,
        args: &NextArgs,
        zone: Tz,
        at_least: impl Fn(&'static str, i64, i64) -> Result<i64, ScheduleError>,
    ) -> Result<Timing, ScheduleError> {
        let given = if args.stdin {
            (self.cron.as_ref(), self.rate, self.delay, self.at.as_ref())
        } else {
            (args.expression.as_ref(), args.rate, args.delay, args.at.as_ref())
        };
        Ok(match given {
            (Some(text), None, None, None) => {
                let cron = CronSchedule::parse(text)
                    .map_err(|error| ScheduleError::Cron { expression: text.clone(), error })?;
                Timing::Cron(Box::new(cron))
            }
            (None, Some(rate), None, None) => Timing::FixedRate { interval_ms: at_least("rate", rate, 1_000)? },
            (None, None, Some(delay), None) => Timing::FixedDelay { delay_ms: at_least("delay", delay, 0)? },
            (None, None, None, Some(at)) => Timing::Once { at: Time::parse(at, zone)?.instant() },
            _ => return Err(ScheduleError::Timing),
        })
    }
}

/// A point in time as it was given.
#[derive(Clone, Copy)]
enum Time {
    /// Epoch ms.
    Instant(i64),
    /// A local time that does not exist: the moment the clock is put forward, epoch ms.
    GapEnd(i64),
}

impl Time {
    /// A time with an offset, or a local time of `zone`. Of a local time that exists twice it is the first one, so
    /// no fire is missed.
    fn parse(text: &str, zone: Tz) -> Result<Self, ScheduleError> {
        if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
            return Ok(Self::Instant(instant.timestamp_millis()));
        }
        let wrong = || ScheduleError::Time(text.to_owned());
        let local: NaiveDateTime = text.parse().map_err(|_| wrong())?;
        if let Some(instant) = zone.from_local_datetime(&local).earliest() {
            return Ok(Self::Instant(instant.timestamp_millis()));
        }
        let end = GapInfo::new(&local, &zone).and_then(|gap| gap.end).ok_or_else(wrong)?;
        Ok(Self::GapEnd(end.timestamp_millis()))
    }

    fn instant(self) -> i64 {
        match self {
            Self::Instant(at) | Self::GapEnd(at) => at,
        }
    }

    /// Where to look for fires after it: everything at or after the end of a gap is later on the wall clock than a
    /// time in it.
    fn before(self) -> i64 {
        match self {
            Self::Instant(at) => at,
            Self::GapEnd(at) => at.saturating_sub(1),
        }
    }
}
