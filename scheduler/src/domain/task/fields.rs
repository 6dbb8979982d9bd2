//! The names of a definition's fields.

use super::TaskSpec;
use super::field::Allowed;
use crate::domain::refusal::FieldRefusal;

/// Less alike than this, a name is no slip of another.
const ALIKE: f64 = 0.75;

impl TaskSpec {
    /// The names of its fields, in their order.
    pub fn field_names() -> impl Iterator<Item = &'static str> {
        Self::FIELDS.iter().map(|field| field.name)
    }

    /// Whether there is a field of that name.
    #[must_use]
    pub fn has_field(name: &str) -> bool {
        Self::field_names().any(|known| known == name)
    }

    /// Names of the fields that hold an instant: for people it is written as RFC 3339.
    pub fn instants() -> impl Iterator<Item = &'static str> {
        Self::FIELDS.iter().filter(|field| matches!(field.allowed, Allowed::Instant)).map(|field| field.name)
    }
}

/// What is wrong with a name that is none of `known`: the nearest one, where one is near.
#[must_use]
pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> FieldRefusal {
    let given = name.to_lowercase().replace('-', "_");
    let alike = |other: &str| {
        let part = given.len() >= 4 && (other.contains(&given) || given.contains(other));
        strsim::jaro_winkler(&given, other).max(if part { 0.9 } else { 0.0 })
    };
    let nearest = known.into_iter().map(|other| (alike(other), other)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest.filter(|(alike, _)| *alike >= ALIKE) {
        Some((_, nearest)) => FieldRefusal::UnknownFieldNear { nearest: nearest.to_owned() },
        None => FieldRefusal::UnknownField,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let nearest = |name: &str| match unknown(name, TaskSpec::field_names()) {
            FieldRefusal::UnknownFieldNear { nearest } => nearest,
            _ => String::new(),
        };
        for (given, meant) in [
            ("retry_intervall_ms", "retry_interval_ms"),
            ("maxRetries", "max_retries"),
            ("retries", "max_retries"),
            ("zone", "time_zone"),
            ("timeout", "timeout_ms"),
            ("Handler", "handler"),
            ("xyzzy", ""),
        ] {
            assert_eq!(nearest(given), meant, "{given}");
        }
    }
}
