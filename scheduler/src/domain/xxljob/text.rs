//! Values that xxl-job keeps as text.

use chrono::{DateTime, NaiveDateTime, SecondsFormat};
use chrono_tz::Tz;

/// Seconds with up to three decimals, as milliseconds. xxl-job itself has whole seconds.
#[must_use]
pub fn interval_of(seconds: &str) -> Option<i64> {
    let (whole, decimals) = seconds.trim().split_once('.').unwrap_or((seconds.trim(), "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 3 {
        return None;
    }
    let decimals = format!("{decimals:0<3}");
    whole.parse::<i64>().ok()?.checked_mul(1_000)?.checked_add(decimals.parse().ok()?)
}

/// Milliseconds as seconds, with decimals where they are needed.
#[must_use]
pub fn seconds_of(interval_ms: i64) -> String {
    let (whole, rest) = (interval_ms / 1_000, interval_ms % 1_000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}").trim_end_matches('0').to_owned() }
}

/// A `DATETIME` of the database, `2026-03-01 02:30:00`, as epoch ms: it is the wall clock of `zone`. Of two instants with that
/// time it is the first; a time that the clock skipped, and one of zeroes, is none.
#[must_use]
pub fn instant_of(local: &str, zone: Tz) -> Option<i64> {
    let local = NaiveDateTime::parse_from_str(local, "%Y-%m-%d %H:%M:%S%.f").ok()?;
    local.and_local_timezone(zone).earliest().map(|instant| instant.timestamp_millis())
}

/// An instant as RFC 3339.
pub(super) fn utc_of(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).map_or_else(String::new, |at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// RFC 3339 as epoch ms.
pub(super) fn ms_of(utc: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(utc.trim()).ok().map(|at| at.timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_come_back_as_they_were() {
        for ms in [1_000, 1, 10, 1_500, 59_999, 86_400_000] {
            assert_eq!(interval_of(&seconds_of(ms)), Some(ms), "{ms}");
        }
        assert_eq!((seconds_of(30_000), seconds_of(1_500)), ("30".to_owned(), "1.5".to_owned()));
        assert_eq!(interval_of(" 7 "), Some(7_000));
        for wrong in ["", "-1", "1s", "1.", ".5", "1.0005", "99999999999999999"] {
            assert_eq!(interval_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_on_the_wall_clock_of_the_zone() {
        assert_eq!(instant_of("2026-01-01 08:00:00", Tz::Asia__Shanghai), Some(1_767_225_600_000));
        assert_eq!(instant_of("2026-01-01 00:00:00.250", Tz::UTC), Some(1_767_225_600_250));
        // Twice that night, and not at all in another.
        assert_eq!(instant_of("2026-10-25 02:30:00", Tz::Europe__Berlin), Some(1_792_888_200_000));
        assert_eq!(instant_of("2026-03-29 02:30:00", Tz::Europe__Berlin), None);
        assert_eq!(instant_of("0000-00-00 00:00:00", Tz::UTC), None);
    }

    #[test]
    fn instants_come_back_as_they_were() {
        for ms in [1_798_135_200_000, 1_798_135_200_001, 1] {
            assert_eq!(ms_of(&utc_of(ms)), Some(ms));
        }
    }
}
