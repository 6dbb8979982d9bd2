//! A preview for people to read.

use std::fmt::Write;

use chrono_tz::Tz;

use super::question::show;
use crate::domain::schedule::{Kind, Note, Preview, SkipReason};

/// One line of a preview: the local time, whether it fires, and what there is to say about it.
pub(super) fn line(zone: Tz, line: &Preview) -> String {
    let mut text = show(zone, line.fire_time);
    // Writing to a string does not fail.
    let _ = match line.kind {
        Kind::Fires => write!(text, "  fires"),
        Kind::Skipped(reason) => write!(text, "  skipped: {}", why(reason)),
    };
    let _ = match line.note {
        None => Ok(()),
        Some(Note::AfterGap) => write!(text, ", right after local times that do not exist"),
        Some(Note::MovedFrom { day }) => write!(text, ", moved from {day} by the calendar"),
        Some(Note::MovedTo { day }) => write!(text, " to {day}"),
        Some(Note::Postponed) => write!(text, ", postponed to the end of a maintenance window"),
    };
    if line.due_time != line.fire_time {
        let _ = write!(text, ", due {} ms later", line.due_time - line.fire_time);
    }
    if line.count > 1 {
        let _ = write!(text, " ({} until {})", line.count, show(zone, line.last));
    }
    if line.more {
        text.push_str(", and more");
    }
    text
}

fn why(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::CalendarDay => "the calendar excludes the day",
        SkipReason::CalendarHours => "the calendar excludes the hours",
        SkipReason::MovedByCalendar => "moved by the calendar",
        SkipReason::DstGap => "the local time does not exist (the clock is put forward)",
        SkipReason::OverlapFirstPass => "the local time exists twice, and only the second one fires",
        SkipReason::OverlapSecondPass => "the local time exists twice, and only the first one fires",
        SkipReason::BeforeValidity => "before the validity window",
        SkipReason::AfterValidity => "after the validity window",
        SkipReason::CancelledManually => "cancelled manually",
        SkipReason::Maintenance => "in a maintenance window",
        SkipReason::Stopped => "the task is stopped",
        SkipReason::Paused => "the task is paused",
    }
}
