//! Instants as arguments.

use chrono::{DateTime, Local, NaiveDateTime, TimeZone as _, Utc};

/// Epoch ms of an RFC 3339 time, a local time (`2026-12-24T18:00`), epoch ms, `now`, or an offset (`+90d`, `-2h`).
pub fn parse(text: &str) -> Result<i64, String> {
    let allowed = || {
        format!(
            "`{text}` is not a time; use 2026-12-24T18:00:00+08:00, 2026-12-24T18:00 (local), epoch ms, now, +90d or -2h"
        )
    };
    if text == "now" {
        return Ok(Utc::now().timestamp_millis());
    }
    if let Some(span) = relative(text) {
        return Utc::now().timestamp_millis().checked_add(span).ok_or_else(allowed);
    }
    if let Ok(ms) = text.parse::<i64>() {
        return Ok(ms);
    }
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.timestamp_millis());
    }
    let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    let local = forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    // A local time that exists twice means the first one.
    let time = local.and_then(|local| Local.from_local_datetime(&local).earliest());
    time.map(|time| time.timestamp_millis()).ok_or_else(allowed)
}

/// Ms of an offset such as `+90d`.
fn relative(text: &str) -> Option<i64> {
    let (sign, rest) =
        text.strip_prefix('+').map(|rest| (1, rest)).or(text.strip_prefix('-').map(|rest| (-1, rest)))?;
    let unit = rest.chars().last()?;
    let ms =
        [('s', 1_000), ('m', 60_000), ('h', 3_600_000), ('d', 86_400_000)].into_iter().find(|(c, _)| *c == unit)?.1;
    let count: i64 = rest[..rest.len() - unit.len_utf8()].parse().ok()?;
    count.checked_mul(ms * sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_parsed_or_refused() {
        assert_eq!(parse("2026-12-24T18:00:00+08:00"), Ok(1_798_106_400_000));
        assert_eq!(parse("1798106400000"), Ok(1_798_106_400_000));
        assert_eq!(parse("-5"), Ok(-5));
        let now = Utc::now().timestamp_millis();
        assert!((parse("now").unwrap() - now).abs() < 60_000);
        assert!((parse("+2h").unwrap() - now - 7_200_000).abs() < 60_000);
        assert!((parse("-1d").unwrap() - now + 86_400_000).abs() < 60_000);
        assert!(parse("2026-12-24T18:00").is_ok());
        for wrong in ["", "tomorrow", "+d", "+9w", "+9999999999999999d", "2026-12-24", "+5€"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
