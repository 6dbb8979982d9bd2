//! What an import leaves behind, or changes.

use crate::domain::choice::choice;
use serde::{Deserialize, Serialize};

/// Longest value that is shown, characters; of longer ones the beginning is.
pub const VALUE_CHARS_MAX: usize = 200;

choice! {
    /// What it means for the runs of a task that something was not carried over as it was.
    Effect {
        /// Nothing: they are as before.
        Nothing,
        /// They differ, or what accompanies them does.
        Differs,
        /// The task is not started: it would do something else than before.
        Stops,
    }
}

/// A value that was not carried over as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncarried {
    /// The column that held it.
    pub field: String,
    /// The value, of a long one the beginning: up to [`VALUE_CHARS_MAX`] characters.
    pub value: String,
    /// Why, in one sentence.
    pub why: String,
    /// What to do about it, in one sentence; empty where there is nothing to do.
    pub remedy: String,
    /// What it means for runs.
    pub effect: Effect,
}

impl Uncarried {
    /// Nothing follows of it.
    pub fn note(field: &str, value: impl ToString, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Effect::Nothing, field, value, why, remedy)
    }

    /// Something is not as before.
    pub fn differs(field: &str, value: impl ToString, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Effect::Differs, field, value, why, remedy)
    }

    /// The task must not start as it is.
    pub fn stops(field: &str, value: impl ToString, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Effect::Stops, field, value, why, remedy)
    }

    #[allow(clippy::needless_pass_by_value)] // numbers and texts alike
    fn new(
        effect: Effect,
        field: &str,
        value: impl ToString,
        why: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (value, why, remedy) = (shortened(&value.to_string()), why.into(), remedy.into());
        Self { field: field.to_owned(), value, why, remedy, effect }
    }
}

fn shortened(value: &str) -> String {
    if value.chars().count() <= VALUE_CHARS_MAX {
        return value.to_owned();
    }
    value.chars().take(VALUE_CHARS_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_shortened() {
        let of = |chars: usize| Uncarried::note("f", "é".repeat(chars), "", "").value;
        assert_eq!(of(VALUE_CHARS_MAX), "é".repeat(VALUE_CHARS_MAX));
        assert_eq!(of(VALUE_CHARS_MAX + 1), "é".repeat(VALUE_CHARS_MAX - 1) + "…");
    }
}
