//! Enums whose words people write: in the API, in task files, in columns. Each choice has one sentence, from which
//! the documentation is made.

use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

/// An enum made by [`choice!`].
pub trait Enumerated: Copy + Default + Serialize + DeserializeOwned + ToSchema + 'static {
    /// Every choice with its sentence, in the order of the documentation.
    const ALL: &'static [(Self, &'static str)];

    /// The word that people write.
    #[must_use]
    fn word(self) -> String {
        serde_json::to_value(self).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Makes an enum whose `snake_case` words are stored and shown; the first is the default.
macro_rules! choice {
    ($(#[doc = $doc:literal])* $name:ident {
        $(#[doc = $first_says:literal])* $first:ident, $($(#[doc = $says:literal])* $rest:ident,)*
    }) => {
        $(#[doc = $doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize, utoipa::ToSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $(#[doc = $first_says])*
            #[default]
            $first,
            $($(#[doc = $says])* $rest,)*
        }

        impl $crate::domain::choice::Enumerated for $name {
            const ALL: &'static [(Self, &'static str)] =
                &[(Self::$first, concat!($($first_says),*)), $((Self::$rest, concat!($($says),*))),*];
        }
    };
}

pub(crate) use choice;
