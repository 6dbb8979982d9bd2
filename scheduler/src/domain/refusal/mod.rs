//! Refusals: each has a stable code, typed parameters, one English sentence and what to do about it.
//! The lists are in [`FieldRefusal`] (a field of the input), [`Refusal`] (the stored state does not
//! allow it) and in `api/` (the request itself); `docs/errors.md` is generated from them.

mod cron;
mod field;
mod read;
mod state;
mod zone;

pub use cron::wrong_cron;
pub use field::FieldRefusal;
pub use read::unreadable;
pub use state::{Refusal, no_app};
pub use zone::wrong_zone;

use serde_json::{Map, Value};

/// What every refusal provides, whichever list it is in.
pub trait Coded: std::fmt::Display {
    /// Its stable code.
    fn code(&self) -> &'static str;

    /// The HTTP status of an answer that is this refusal.
    fn status(&self) -> u16;

    /// What its sentence is filled with, by name.
    fn params(&self) -> Map<String, Value>;
}

/// A line of the list: one code.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The code.
    pub code: &'static str,
    /// The HTTP status of the answer.
    pub status: u16,
    /// Names of its parameters, and their types (`string`, `number`).
    pub params: &'static [(&'static str, &'static str)],
    /// The sentence, with `{parameters}`.
    pub template: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// What a parameter can be.
pub trait Param {
    /// Its type in JSON.
    const KIND: &'static str;
}

impl Param for i64 {
    const KIND: &'static str = "number";
}

impl Param for String {
    const KIND: &'static str = "string";
}

/// Makes an enum of a list of codes. Each line has the variant, its code, its parameters, the status,
/// the sentence, and what to do.
macro_rules! refusals {
    (
        $(#[$meta:meta])*
        $name:ident
        $($variant:ident $code:literal $({ $($param:ident: $kind:ty),+ $(,)? })? $status:literal $template:literal $remedy:literal)+
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[allow(clippy::doc_markdown)] // the sentences are for people, who see no backticks
        pub enum $name {
            $(
                #[doc = $template]
                #[error($template)]
                $variant $({ $(#[doc = stringify!($param)] $param: $kind),+ })?,
            )+
        }

        impl $name {
            /// Every code, in the order of the documentation.
            pub const LIST: &'static [$crate::domain::refusal::Entry] = &[
                $($crate::domain::refusal::Entry {
                    code: $code,
                    status: $status,
                    params: &[$($((stringify!($param), <$kind as $crate::domain::refusal::Param>::KIND)),+)?],
                    template: $template,
                    remedy: $remedy,
                },)+
            ];
        }

        impl $crate::domain::refusal::Coded for $name {
            fn code(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($param: _),+ })? => $code,)+
                }
            }

            fn status(&self) -> u16 {
                match self {
                    $(Self::$variant $({ $($param: _),+ })? => $status,)+
                }
            }

            fn params(&self) -> serde_json::Map<String, serde_json::Value> {
                match self {
                    $(Self::$variant $({ $($param),+ })? => {
                        [$($((stringify!($param).to_owned(), serde_json::Value::from($param.clone()))),+)?].into_iter().collect()
                    })+
                }
            }
        }
    };
}

pub(crate) use refusals;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_stands_once_and_its_sentence_names_its_parameters() {
        let mut codes = Vec::new();
        for entry in FieldRefusal::LIST.iter().chain(Refusal::LIST) {
            assert!(!codes.contains(&entry.code), "{} stands twice", entry.code);
            codes.push(entry.code);
            let is_word = entry.code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(is_word, "{} is not snake_case", entry.code);
        }
    }

    #[test]
    fn code_parameters_and_sentence_belong_together() {
        let refusal = FieldRefusal::OutOfRange { least: 1, most: 9 };
        assert_eq!((refusal.code(), refusal.status()), ("out_of_range", 400));
        assert_eq!(refusal.params(), *serde_json::json!({ "least": 1, "most": 9 }).as_object().unwrap());
        assert_eq!(refusal.to_string(), "1 to 9 are allowed");
        assert!(FieldRefusal::Required.params().is_empty());
    }
}
