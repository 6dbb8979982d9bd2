//! The names of a definition's fields, read from the definition itself, so that a new field is
//! known everywhere at once.

use super::TaskSpec;
use crate::domain::refusal::FieldRefusal;
use serde::de::value::Error;
use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Fields that hold an instant: for people it is written as RFC 3339.
pub const INSTANTS: [&str; 3] = ["fire_at", "valid_from", "valid_until"];

/// Less alike than this, a name is no slip of another.
const ALIKE: f64 = 0.75;

impl TaskSpec {
    /// The names of its fields, in their order.
    #[must_use]
    pub fn field_names() -> &'static [&'static str] {
        let mut names = Names(&[]);
        // Always refused: the names are all that is wanted.
        let _ = Self::deserialize(&mut names);
        names.0
    }
}

/// A deserializer that is told the names of a struct's fields, and then has nothing to give.
struct Names(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Names {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("only names are asked for"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
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
    use std::collections::BTreeSet;

    #[test]
    fn names_are_those_of_the_json_in_the_order_of_the_definition() {
        let names = TaskSpec::field_names();
        assert_eq!(names[..4], ["name", "handler", "description", "params"]);
        let serde_json::Value::Object(json) = serde_json::to_value(TaskSpec::default()).unwrap() else {
            panic!("a definition is an object");
        };
        let json: BTreeSet<&str> = json.keys().map(String::as_str).collect();
        assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), json);
        assert!(INSTANTS.iter().all(|instant| names.contains(instant)));
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let nearest = |name: &str| match unknown(name, TaskSpec::field_names().iter().copied()) {
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
