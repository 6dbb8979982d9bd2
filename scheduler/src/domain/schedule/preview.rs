//! What will fire, what will not, and why: for people, before and after a schedule is saved.
//!
//! The fires are those of [`Schedule::next_after`]. In between, the row of everything that the trigger alone
//! would name (in both passes of an overlap, at the end of every gap, whatever the calendar says) is walked, and
//! whatever of it is not a fire is explained. The explanation looks at one instant at a time, so it cannot
//! change which instants fire.

use chrono::NaiveDate;
use serde::Serialize;
use utoipa::ToSchema;

use super::{CalendarRule, NEVER, Schedule, Timing};
use crate::domain::calendar::Calendar;
use crate::domain::cron::{CronSchedule, DstPolicy, Gap, Overlap, Stretch};

/// In seconds.
const DAY: i64 = 86_400;

/// Most lines about what is skipped between two fires: the days of a month.
const SKIPPED_LINES_MAX: usize = 31;

/// A line about skipped instants counts up to this number of them.
const COUNT_MAX: u32 = 1_000;

/// Most skipped instants that one preview looks at.
const STEPS_MAX: u32 = 100_000;

/// Everything that a cron expression can name.
const EVERYTHING: DstPolicy = DstPolicy { gap: Gap::After, overlap: Overlap::Both };

/// A line of a preview: a fire, or instants of one local day that are skipped for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Preview {
    /// The fire time, or what it would have been, epoch ms; of several instants the first.
    pub fire_time: i64,
    /// When the fire is due, epoch ms: later than the fire time by the jitter.
    pub due_time: i64,
    /// Whether it fires, and if not, why.
    #[serde(flatten)]
    #[schema(value_type = KindFields)]
    pub kind: Kind,
    /// Further information about the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
    /// How many instants the line stands for; 1 for a fire.
    pub count: u32,
    /// The last of them, epoch ms.
    pub last: i64,
    /// Whether more instants are skipped, before the next fire, than this line and those before it show.
    pub more: bool,
}

/// Whether an instant fires. In JSON `"kind": "fires"`, or `"kind": "skipped"` with the `"reason"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "reason", rename_all = "snake_case")]
pub enum Kind {
    /// It fires.
    Fires,
    /// It does not.
    Skipped(SkipReason),
}

/// [`Kind`] in the API's document: as one object, because generators of clients leave out what is a choice of several.
#[derive(ToSchema)]
#[schema(as = PreviewKindFields)]
#[allow(dead_code)] // only described
struct KindFields {
    /// Whether it fires.
    kind: KindWord,
    /// Of what is skipped: why.
    reason: Option<SkipReason>,
}

/// Whether an instant fires.
#[derive(ToSchema)]
#[schema(as = PreviewKind, rename_all = "snake_case")]
#[allow(dead_code)] // only described
enum KindWord {
    /// It fires.
    Fires,
    /// It does not.
    Skipped,
}

/// Why an instant that the trigger names does not fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The calendar excludes the day.
    CalendarDay,
    /// The calendar excludes the hours.
    CalendarHours,
    /// The calendar excludes the day, and the fire moves to the working day that the note names. Where it meets
    /// others there, they are one fire.
    MovedByCalendar,
    /// The local time does not exist, because the clock is put forward; the instant is the end of the gap.
    DstGap,
    /// The local time exists twice, and the schedule fires in the second pass only.
    OverlapFirstPass,
    /// The local time exists twice, and the schedule fires in the first pass only.
    OverlapSecondPass,
    /// It is before the validity window.
    BeforeValidity,
    /// It is after the validity window.
    AfterValidity,
    /// A person cancelled it.
    CancelledManually,
    /// A maintenance window skips it.
    Maintenance,
    /// The task is stopped.
    Stopped,
    /// The task is paused.
    Paused,
}

/// Further information about a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = PreviewNote)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Note {
    /// The local time that the schedule names does not exist on this day; it fires right after the gap.
    AfterGap,
    /// The fire was moved here by the calendar.
    MovedFrom {
        /// The first of the days that it was moved from.
        day: NaiveDate,
    },
    /// The fire was moved away by the calendar.
    MovedTo {
        /// The working day that it was moved to.
        day: NaiveDate,
    },
    /// A maintenance window postpones it to its end, which is when it is due.
    Postponed,
}

impl Schedule {
    /// The next `count` fires after `after` (epoch ms), and in between what is skipped and why. Work and length
    /// are bounded: a line stands for the instants of one local day that share a reason, and what is too much to
    /// be listed is hinted at by [`Preview::more`].
    #[must_use]
    pub fn preview(&self, after: i64, count: usize) -> Vec<Preview> {
        let mut walk = Walk { schedule: self, offset: self.spread_offset(), steps: 0, lines: Vec::new() };
        let mut at = after.saturating_sub(walk.offset);
        for _ in 0..count {
            let fire = self.next_instant(at);
            walk.skipped(at, fire);
            if fire == NEVER {
                break;
            }
            walk.push(fire, Kind::Fires, self.fire_note(fire));
            at = fire;
        }
        walk.lines
    }

    /// What the trigger alone names next after `after`, or [`NEVER`].
    fn next_named(&self, after: i64) -> i64 {
        let single = |at: i64| if at > after { at } else { NEVER };
        match &self.timing {
            Timing::None => NEVER,
            Timing::Cron(cron) => cron.next_after(after, self.zone, EVERYTHING).unwrap_or(NEVER),
            Timing::FixedRate { interval_ms } => self.row(*interval_ms).next_after(after),
            Timing::FixedDelay { delay_ms } => single(self.delayed(self.anchor, *delay_ms)),
            Timing::Once { at } => single(*at),
        }
    }

    /// Why `at`, which the trigger names, does not fire.
    fn skip_reason(&self, at: i64) -> (SkipReason, Option<Note>) {
        if at < self.earliest() {
            return (SkipReason::BeforeValidity, None);
        }
        if at >= self.end() {
            return (SkipReason::AfterValidity, None);
        }
        let stretch = Stretch::at(self.zone, at.div_euclid(1000));
        let local = at.div_euclid(1000) + stretch.offset();
        let Timing::Cron(cron) = &self.timing else {
            let working = self.calendar.as_ref().is_none_or(|calendar| calendar.is_working(local.div_euclid(DAY)));
            return (if working { SkipReason::CalendarHours } else { SkipReason::CalendarDay }, None);
        };
        let in_gap = !cron.names(local);
        // The times in a gap start where the clock stood before.
        let local =
            stretch.previous().filter(|_| in_gap).map_or(local, |before| local - stretch.offset() + before.offset());
        if let Some(calendar) = &self.calendar {
            let day = local.div_euclid(DAY);
            let moved = calendar.moved(self.calendar_rule, day);
            let Some(to) = moved else {
                return (SkipReason::CalendarDay, None);
            };
            if !in_gap && !calendar.allows_time(local.rem_euclid(DAY)) {
                return (SkipReason::CalendarHours, None);
            }
            if to != day {
                return (SkipReason::MovedByCalendar, date(to).map(|day| Note::MovedTo { day }));
            }
            if in_gap && cron.fires_after_gaps(self.dst.gap) {
                return (SkipReason::CalendarHours, None);
            }
        }
        if in_gap {
            return (SkipReason::DstGap, None);
        }
        let length = stretch.previous().map_or(0, |before| before.offset() - stretch.offset());
        let in_second_pass = at.div_euclid(1000) - length < stretch.start();
        (if in_second_pass { SkipReason::OverlapSecondPass } else { SkipReason::OverlapFirstPass }, None)
    }

    /// How it comes that `at` fires, where that is not plain.
    fn fire_note(&self, at: i64) -> Option<Note> {
        let Timing::Cron(cron) = &self.timing else {
            return None;
        };
        let stretch = Stretch::at(self.zone, at.div_euclid(1000));
        let local = at.div_euclid(1000) + stretch.offset();
        if cron.names(local) {
            return None;
        }
        let moved = self.calendar.as_ref().and_then(|calendar| moved_from(cron, calendar, self.calendar_rule, local));
        moved.or(Some(Note::AfterGap))
    }
}

/// The first day from which a fire has moved to the working day of `local` at the same time of day.
fn moved_from(cron: &CronSchedule, calendar: &Calendar, rule: CalendarRule, local: i64) -> Option<Note> {
    let (day, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let (first, end) = match rule {
        CalendarRule::Skip => return None,
        CalendarRule::Next => (calendar.previous_working(day - 1).map_or(0, |day| day + 1), day),
        CalendarRule::Previous => (day + 1, calendar.next_working(day + 1)?),
    };
    let named = cron.next_local(first * DAY)?.div_euclid(DAY);
    let moved = named < end && cron.names(named * DAY + time);
    if moved { date(named).map(|day| Note::MovedFrom { day }) } else { None }
}

fn date(day: i64) -> Option<NaiveDate> {
    NaiveDate::from_epoch_days(i32::try_from(day).ok()?)
}

/// A preview on its way.
struct Walk<'a> {
    schedule: &'a Schedule,
    /// The spread, ms.
    offset: i64,
    /// Skipped instants looked at so far.
    steps: u32,
    lines: Vec<Preview>,
}

impl Walk<'_> {
    fn push(&mut self, instant: i64, kind: Kind, note: Option<Note>) {
        let fire_time = instant.saturating_add(self.offset);
        let due_time = match kind {
            Kind::Fires => self.schedule.due_time(fire_time),
            Kind::Skipped(_) => fire_time,
        };
        self.lines.push(Preview { fire_time, due_time, kind, note, count: 1, last: fire_time, more: false });
    }

    /// Explains what is named after `at` and before `fire`.
    fn skipped(&mut self, mut at: i64, fire: i64) {
        let before = self.lines.len();
        loop {
            let named = self.schedule.next_named(at);
            if named >= fire {
                return;
            }
            self.steps += 1;
            let (reason, note) = self.schedule.skip_reason(named);
            let kind = Kind::Skipped(reason);
            let outside = matches!(reason, SkipReason::BeforeValidity | SkipReason::AfterValidity);
            at = named;
            if self.lines.len() > before && self.joins_last(named, kind) {
                at = self.join_last(named, outside);
            } else if self.lines.len() - before < SKIPPED_LINES_MAX && self.steps < STEPS_MAX {
                self.push(named, kind, note);
            } else {
                if let Some(last) = self.lines.last_mut().filter(|line| line.kind != Kind::Fires) {
                    last.more = true;
                }
                return;
            }
            if at == NEVER {
                return;
            }
        }
    }

    /// Whether an instant belongs to the last line: the same reason on the same local day, or outside validity.
    fn joins_last(&self, instant: i64, kind: Kind) -> bool {
        let outside = matches!(kind, Kind::Skipped(SkipReason::BeforeValidity | SkipReason::AfterValidity));
        self.lines.last().is_some_and(|line| {
            line.kind == kind && (outside || self.local_day(line.last - self.offset) == self.local_day(instant))
        })
    }

    /// Counts an instant into the last line, and says where to go on: there, or, when there are too many of
    /// its kind, after the last of them.
    fn join_last(&mut self, instant: i64, outside: bool) -> i64 {
        let day = self.local_day(instant);
        let offset = self.offset;
        let Some(line) = self.lines.last_mut() else {
            return NEVER;
        };
        if outside {
            // One is enough to say where the window ends.
            line.more = true;
            let valid_from = self.schedule.earliest();
            return if instant < valid_from { valid_from - 1 } else { NEVER };
        }
        if line.count < COUNT_MAX {
            (line.count, line.last) = (line.count + 1, instant + offset);
            return instant;
        }
        line.more = true;
        let zone = Stretch::at(self.schedule.zone, instant.div_euclid(1000)).offset();
        (((day + 1) * DAY - zone) * 1000 - 1).max(instant)
    }

    fn local_day(&self, instant: i64) -> i64 {
        let second = instant.div_euclid(1000);
        (second + Stretch::at(self.schedule.zone, second).offset()).div_euclid(DAY)
    }
}
