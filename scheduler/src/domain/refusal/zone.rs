//! A time zone that is none, with the one that was probably meant.

use super::FieldRefusal;
use chrono_tz::{TZ_VARIANTS, Tz};

/// Less alike than this, a name is no slip of another.
const ALIKE: f64 = 0.9;

/// Why `given` is refused.
#[must_use]
pub fn wrong_zone(given: &str) -> FieldRefusal {
    let wanted = given.trim().to_lowercase().replace(' ', "_");
    let city = |zone: &Tz| zone.name().rsplit('/').next().unwrap_or_default().to_lowercase();
    let alike = |zone: &Tz| {
        let whole = strsim::jaro_winkler(&wanted, &zone.name().to_lowercase());
        if city(zone) == wanted { 1.0 } else { whole }
    };
    let nearest = TZ_VARIANTS.iter().map(|zone| (alike(zone), zone)).max_by(|a, b| a.0.total_cmp(&b.0));
    let given = given.to_owned();
    match nearest.filter(|(alike, _)| *alike >= ALIKE) {
        Some((_, nearest)) => FieldRefusal::WrongTimeZoneNear { given, nearest: nearest.name().to_owned() },
        None => FieldRefusal::WrongTimeZone { given },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_that_was_meant_is_named() {
        let nearest = |given: &str| match wrong_zone(given) {
            FieldRefusal::WrongTimeZoneNear { nearest, .. } => nearest,
            _ => String::new(),
        };
        for (given, meant) in [
            ("europe/berlin", "Europe/Berlin"),
            ("Europe/Berln", "Europe/Berlin"),
            ("america/new york", "America/New_York"),
            ("shanghai", "Asia/Shanghai"),
            ("qqqq", ""),
        ] {
            assert_eq!(nearest(given), meant, "{given}");
        }
    }
}
