//! What is wrong with one field of something that was given: the form or the command shows it beside the field.

use super::refusal::FieldRefusal;
use std::fmt;

/// Why a field is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FieldError {
    /// Name of the field as it was given, with the place in a list: `excluded_days[3]`.
    pub field: String,
    /// The entry of a file that it belongs to.
    pub entry: Option<String>,
    /// What is wrong, and what is allowed.
    pub refusal: Box<FieldRefusal>,
}

impl FieldError {
    /// `refusal` about `field`.
    pub fn new(field: impl Into<String>, refusal: FieldRefusal) -> Self {
        Self { field: field.into(), entry: None, refusal: Box::new(refusal) }
    }

    /// A number outside of `least` to `most`.
    pub fn range(field: impl Into<String>, least: i64, most: i64) -> Self {
        Self::new(field, FieldRefusal::OutOfRange { least, most })
    }

    /// A number of milliseconds outside of `least_ms` to `most_ms`.
    pub fn span(field: impl Into<String>, least_ms: i64, most_ms: i64) -> Self {
        Self::new(field, FieldRefusal::SpanOutOfRange { least_ms, most_ms })
    }

    /// A text of more than `most` characters.
    pub fn too_long(field: impl Into<String>, most: usize) -> Self {
        Self::new(field, FieldRefusal::TooLong { most: most as i64 })
    }

    /// A text of fewer than `least` or more than `most` characters.
    pub fn length(field: impl Into<String>, least: usize, most: usize) -> Self {
        Self::new(field, FieldRefusal::WrongLength { least: least as i64, most: most as i64 })
    }

    /// A name that is none: 1 to `most` printable characters.
    pub fn name(field: impl Into<String>, most: usize) -> Self {
        Self::new(field, FieldRefusal::WrongName { most: most as i64 })
    }

    /// A field that is missing.
    pub fn required(field: impl Into<String>) -> Self {
        Self::new(field, FieldRefusal::Required)
    }

    /// The same about a field within `entry` of a file.
    #[must_use]
    pub fn within(self, place: &str, entry: Option<&str>) -> Self {
        Self { field: format!("{place}.{}", self.field), entry: entry.map(str::to_owned), ..self }
    }

    /// In words.
    #[must_use]
    pub fn message(&self) -> String {
        match &self.entry {
            Some(entry) => format!("{entry}: {}", self.refusal),
            None => self.refusal.to_string(),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}
