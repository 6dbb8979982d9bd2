//! One field of a task's definition: what it may hold, and what is said of it. The list of them is `table.rs`.

use crate::domain::choice::Enumerated;
use crate::domain::field_error::FieldError;
use crate::domain::refusal::FieldRefusal;
use serde_json::Value;
use utoipa::openapi::{RefOr, Schema};

/// Parents at most.
pub const PARENTS_MAX: usize = 32;

/// Tags of one kind at most.
pub const TAGS_MAX: usize = 32;

/// Longest name, characters.
pub const NAME_MAX: usize = 128;

/// Last instant that a field may name: the end of the year 2199, ms.
pub const INSTANT_MAX: i64 = 7_258_118_399_999;

/// A field of a task's definition.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in the API, in files and in the database.
    pub name: &'static str,
    /// What it belongs to.
    pub group: &'static str,
    /// What it is, in one sentence.
    pub says: &'static str,
    /// What it may hold.
    pub allowed: Allowed,
    /// A value other than the default, as TOML.
    pub example: &'static str,
    /// When to set it; empty when that is plain.
    pub use_when: &'static str,
}

/// What a field may hold.
#[derive(Debug, Clone, Copy)]
pub enum Allowed {
    /// A name: `least` to 128 printable characters.
    Name {
        /// 0 when it may be empty.
        least: usize,
    },
    /// Text of so many characters at most.
    Text(usize),
    /// Parameters: text of so many bytes at most, or another JSON value, which is kept as its text.
    Params(usize),
    /// A whole number.
    Whole {
        /// Smallest.
        least: i64,
        /// Largest.
        most: i64,
        /// What it counts.
        unit: Unit,
        /// What 0 stands for, where it stands for something else than none of the unit.
        zero: &'static str,
    },
    /// Epoch ms or RFC 3339; 0 is none.
    Instant,
    /// True or false.
    Flag,
    /// One choice.
    One(Choices),
    /// Any of the choices.
    Any(Choices),
    /// Up to 32 tags, each a name.
    Tags,
    /// Other tasks.
    Parents,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Milliseconds.
    Ms,
    /// Hundredths.
    Percent,
}

impl Unit {
    /// Its symbol; empty for counts.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count => "",
            Self::Ms => "ms",
            Self::Percent => "%",
        }
    }
}

/// The choices of a field.
#[derive(Debug, Clone, Copy)]
pub struct Choices {
    /// Name of the type in the API's document.
    pub name: fn() -> String,
    /// The type itself.
    pub schema: fn() -> RefOr<Schema>,
    /// Words and sentences.
    pub all: fn() -> Vec<(String, &'static str)>,
}

impl Choices {
    /// Those of `T`.
    pub const fn of<T: Enumerated>() -> Self {
        Self {
            name: || T::name().into_owned(),
            schema: T::schema,
            all: || T::ALL.iter().map(|(choice, says)| (choice.word(), says.trim())).collect(),
        }
    }
}

impl Allowed {
    /// A number of things; 0 stands for `zero`.
    pub const fn count(least: i64, most: i64, zero: &'static str) -> Self {
        Self::Whole { least, most, unit: Unit::Count, zero }
    }

    /// A span of 0 to `most` ms; 0 stands for `zero`.
    pub const fn ms(most: i64, zero: &'static str) -> Self {
        Self::Whole { least: 0, most, unit: Unit::Ms, zero }
    }

    /// Names that one may be of.
    pub const fn one<T: Enumerated>() -> Self {
        Self::One(Choices::of::<T>())
    }

    /// Names that some may be of.
    pub const fn any<T: Enumerated>() -> Self {
        Self::Any(Choices::of::<T>())
    }
}

impl Field {
    /// Holds a value of the right kind against what the field may hold.
    ///
    /// # Errors
    /// What would be allowed.
    pub fn check(&self, value: &Value) -> Result<(), FieldError> {
        let refused = |refusal: FieldRefusal| Err(FieldError::new(self.name, refusal));
        let text = value.as_str().unwrap_or_default();
        match self.allowed {
            Allowed::Name { least: 0 } if text.is_empty() => Ok(()),
            Allowed::Name { .. } if !is_name(text) => Err(FieldError::name(self.name, NAME_MAX)),
            Allowed::Text(most) if text.chars().count() > most => Err(FieldError::too_long(self.name, most)),
            Allowed::Params(most) if text.len() > most => refused(FieldRefusal::TooManyBytes { most: most as i64 }),
            Allowed::Whole { least, most, unit, .. } if !within(value, least, most) => Err(match unit {
                Unit::Ms => FieldError::span(self.name, least, most),
                Unit::Count | Unit::Percent => FieldError::range(self.name, least, most),
            }),
            Allowed::Instant if !within(value, 0, INSTANT_MAX) => refused(FieldRefusal::InstantOutOfRange),
            Allowed::Tags if !are_tags(value) => {
                refused(FieldRefusal::WrongTags { most: TAGS_MAX as i64, most_characters: NAME_MAX as i64 })
            }
            Allowed::Parents if value.as_array().is_some_and(|parents| parents.len() > PARENTS_MAX) => {
                refused(FieldRefusal::TooMany { most: PARENTS_MAX as i64 })
            }
            _ => Ok(()),
        }
    }
}

fn within(value: &Value, least: i64, most: i64) -> bool {
    value.as_i64().is_some_and(|number| (least..=most).contains(&number))
}

fn are_tags(value: &Value) -> bool {
    let tags = value.as_array().map_or(&[][..], Vec::as_slice);
    tags.len() <= TAGS_MAX && tags.iter().all(|tag| tag.as_str().is_some_and(is_name))
}

/// Whether it is 1 to 128 printable characters.
pub(super) fn is_name(text: &str) -> bool {
    (1..=NAME_MAX).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}
