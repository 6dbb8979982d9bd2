//! Instants as sentences say them.

use chrono::{DateTime, SecondsFormat};
use chrono_tz::Tz;

/// In UTC, RFC 3339.
#[must_use]
pub fn utc_words(ms: i64) -> String {
    let instant = DateTime::from_timestamp_millis(ms);
    instant.map_or_else(|| ms.to_string(), |at| at.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// On the wall clock of a zone, with the zone: `2026-10-25 02:30:00 Europe/Berlin (+01:00)`.
#[must_use]
pub fn local_words(ms: i64, zone: Tz) -> String {
    let instant = DateTime::from_timestamp_millis(ms).map(|at| at.with_timezone(&zone));
    instant.map_or_else(
        || ms.to_string(),
        |at| format!("{} {zone} ({})", at.format("%Y-%m-%d %H:%M:%S"), at.format("%:z")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_shown_with_its_zone() {
        assert_eq!(utc_words(1_792_888_200_000), "2026-10-25T00:30:00Z");
        // The same wall clock twice that night.
        assert_eq!(local_words(1_792_888_200_000, Tz::Europe__Berlin), "2026-10-25 02:30:00 Europe/Berlin (+02:00)");
        assert_eq!(local_words(1_792_891_800_000, Tz::Europe__Berlin), "2026-10-25 02:30:00 Europe/Berlin (+01:00)");
    }
}
