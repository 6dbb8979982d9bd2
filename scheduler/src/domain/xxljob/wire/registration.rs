//! `POST api/registry` and `api/registryRemove`: where an executor is.

use super::loose::{Loose, Unreadable, read};
use serde::Deserialize;

/// Longest app name and address, characters: what xxl-job's own tables hold.
pub const NAME_CHARS_MAX: usize = 255;

/// The kind of everything that registers.
const GROUP: &str = "EXECUTOR";

/// What an executor says of itself, in both messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// `registryKey`, its app: 1..=[`NAME_CHARS_MAX`] characters, not blank.
    pub app: String,
    /// `registryValue`, where it listens, as it says it: 1..=[`NAME_CHARS_MAX`] characters, not blank, and nothing more is known
    /// of it. Usually `http://host:port/`; some clients leave the last slash out, some have a path.
    pub address: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RawRegistration {
    #[serde(rename = "registryGroup")]
    group: Loose,
    #[serde(rename = "registryKey")]
    key: Loose,
    #[serde(rename = "registryValue")]
    value: Loose,
}

impl Registration {
    /// Reads the body of either message.
    pub fn read(body: &[u8]) -> Result<Self, Unreadable> {
        let Loose::Map(raw) = read::<Loose<RawRegistration>>(body)? else {
            return Err(Unreadable::Form("a registration"));
        };
        if name("registryGroup", raw.group)? != GROUP {
            return Err(Unreadable::Group);
        }
        let app = name("registryKey", raw.key)?;
        Ok(Self { app, address: name("registryValue", raw.value)? })
    }
}

fn name(field: &'static str, value: Loose) -> Result<String, Unreadable> {
    let Loose::Text(text) = value else { return Err(Unreadable::Missing(field)) };
    let text = text.trim();
    if text.is_empty() {
        return Err(Unreadable::Missing(field));
    }
    if text.chars().count() > NAME_CHARS_MAX {
        return Err(Unreadable::TooLong { field, most: NAME_CHARS_MAX });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_without_the_space_around_them() {
        let body =
            r#"{"registryGroup":"EXECUTOR","registryKey":" orders ","registryValue":"http://10.0.0.7:9999","x":1}"#;
        let expected = Registration { app: "orders".to_owned(), address: "http://10.0.0.7:9999".to_owned() };
        assert_eq!(Registration::read(body.as_bytes()), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |group: &str, key: &str, value: &str| {
            let body = format!(r#"{{"registryGroup":{group},"registryKey":{key},"registryValue":{value}}}"#);
            Registration::read(body.as_bytes()).unwrap_err()
        };
        let (group, key, value) = (r#""EXECUTOR""#, r#""orders""#, r#""http://10.0.0.7:9999/""#);
        assert_eq!(of(r#""ADMIN""#, key, value), Unreadable::Group);
        assert_eq!(of("null", key, value), Unreadable::Missing("registryGroup"));
        assert_eq!(of(group, r#"" ""#, value), Unreadable::Missing("registryKey"));
        assert_eq!(of(group, key, "7"), Unreadable::Missing("registryValue"));
        let long = format!("{:?}", "é".repeat(NAME_CHARS_MAX + 1));
        assert_eq!(of(group, &long, value), Unreadable::TooLong { field: "registryKey", most: NAME_CHARS_MAX });
        assert_eq!(Registration::read(b"[]"), Err(Unreadable::Form("a registration")));
        assert_eq!(Registration::read(b"{}"), Err(Unreadable::Missing("registryGroup")));
        assert_eq!(Registration::read(b""), Err(Unreadable::Empty));
    }
}
