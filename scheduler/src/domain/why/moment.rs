//! The instant that a caller means, and the fire before it.

use crate::domain::schedule::Schedule;
use chrono::{DateTime, Duration, NaiveDateTime, NaiveTime, TimeZone as _};
use chrono_tz::Tz;

/// Clocks are not put forward by more than this, in minutes.
const GAP_MINUTES_MAX: i64 = 24 * 60;

/// How far back the fire before an instant is looked for, ms: a minute, an hour, a day, a month, a leap year.
const LOOKS_BACK_MS: [i64; 5] = [60_000, 3_600_000, 86_400_000, 31 * 86_400_000, 366 * 86_400_000];

/// Fires that are passed on the way.
const STEPS_MAX: usize = 5_000;

/// The instant (epoch ms) that a text means on the clock of `zone`: `03:00` (the latest one that is not to come),
/// `2026-11-22 03:00`, RFC 3339, or epoch ms. A local time that exists twice is the first of the two; one that does
/// not exist is the end of the gap.
#[must_use]
pub fn moment(text: &str, zone: Tz, now: i64) -> Option<i64> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.timestamp_millis());
    }
    if text.len() > 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|ms| DateTime::from_timestamp_millis(*ms).is_some());
    }
    let forms = ["%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
    if let Some(local) = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok()) {
        return instant(local, zone);
    }
    let time = ["%H:%M", "%H:%M:%S"].iter().find_map(|form| NaiveTime::parse_from_str(text, form).ok())?;
    let today = DateTime::from_timestamp_millis(now)?.with_timezone(&zone).date_naive();
    let of_today = instant(today.and_time(time), zone).filter(|at| *at <= now);
    of_today.or_else(|| instant(today.pred_opt()?.and_time(time), zone))
}

fn instant(local: NaiveDateTime, zone: Tz) -> Option<i64> {
    let from = |minutes| zone.from_local_datetime(&local.checked_add_signed(Duration::minutes(minutes))?).earliest();
    (0..=GAP_MINUTES_MAX).find_map(from).map(|time| time.timestamp_millis())
}

/// The last fire before `at` (epoch ms), as far as it can be found by looking back a year.
#[must_use]
pub fn previous_fire(schedule: &Schedule, at: i64) -> Option<i64> {
    for back in LOOKS_BACK_MS {
        let mut last = None;
        let mut fire = schedule.next_after(at.saturating_sub(back));
        for _ in 0..STEPS_MAX {
            if fire >= at {
                break;
            }
            last = Some(fire);
            fire = schedule.next_after(fire);
        }
        if last.is_some() {
            return last.filter(|_| fire >= at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::schedule::Timing;

    fn at(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
    }

    #[test]
    fn instants_accepted_and_refused() {
        let (zone, now) = (Tz::Europe__Berlin, at("2026-11-23T02:30:00+01:00"));
        let of = |text: &str| moment(text, zone, now);
        assert_eq!(of("02:30"), Some(now), "today, if it is past");
        assert_eq!(of("03:00"), Some(at("2026-11-22T03:00:00+01:00")), "yesterday");
        assert_eq!(of("03:00:15"), Some(at("2026-11-22T03:00:15+01:00")));
        assert_eq!(of("2026-07-01 03:00"), Some(at("2026-07-01T03:00:00+02:00")));
        assert_eq!(of("2026-07-01T03:00:05"), Some(at("2026-07-01T03:00:05+02:00")));
        assert_eq!(of("2026-07-01T03:00:00Z"), Some(at("2026-07-01T03:00:00Z")));
        assert_eq!(of("1795372964809"), Some(1_795_372_964_809));
        assert_eq!(of("2026-03-29 02:30"), Some(at("2026-03-29T03:00:00+02:00")), "the end of the gap");
        assert_eq!(of("2026-10-25 02:30"), Some(at("2026-10-25T02:30:00+02:00")), "the first of two");
        for wrong in ["", "3", "25:00", "tomorrow", "2026-11-22", "99999999999999999999"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_fire_before() {
        let rate = |interval_ms| Schedule {
            timing: Timing::FixedRate { interval_ms },
            anchor: at("2026-01-01T00:00:00Z"),
            ..Schedule::none()
        };
        let now = at("2026-11-23T02:30:00Z");
        for interval_ms in [1_000, 60_000, 3_600_000, 86_400_000, 20 * 86_400_000] {
            let previous = previous_fire(&rate(interval_ms), now).unwrap();
            assert!(previous < now && rate(interval_ms).next_after(previous) >= now, "{interval_ms}");
        }
        assert_eq!(previous_fire(&Schedule::none(), now), None);
    }
}
