//! JSON of clients that are not ours, read for what can be used of it.

use crate::domain::xxljob::number::NUMBER_MAX;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt::{Formatter, Result as Written};
use std::marker::PhantomData;

/// What a text ends with that was cut.
const MARK: &str = "…";

/// Why a body is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is none.
    #[error("the body is empty")]
    Empty,
    /// It is no JSON, or holds too much.
    #[error("the body cannot be read: {0}")]
    Body(String),
    /// It is JSON of another form.
    #[error("the body is not {0}")]
    Form(&'static str),
    /// A field is absent, null, blank, or not of its type.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A text is too long.
    #[error("`{field}` has more than {most} characters")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Characters that it may have.
        most: usize,
    },
    /// Something other than an executor registers.
    #[error("`registryGroup` is not EXECUTOR")]
    Group,
    /// No item of a callback says how which run ended.
    #[error("none of its {count} items can be read; the first {why}")]
    Items {
        /// How many there are.
        count: usize,
        /// What is wrong with the first.
        why: &'static str,
    },
}

/// Whatever stands where a value is expected. Any JSON can be read as one, unless the `Map` or the `List` refuses it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Loose<Map = IgnoredAny, List = IgnoredAny> {
    /// Null, or no such field.
    #[default]
    Nothing,
    Flag(bool),
    Number(i64),
    Text(String),
    Map(Map),
    List(List),
}

impl<Map, List> Loose<Map, List> {
    /// A whole number, also one that is written as a text.
    pub(super) fn number(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The same, brought into the range of a Java `int`.
    pub(super) fn int(&self) -> Option<i32> {
        let clamped = |number: i64| number.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        self.number().map(clamped)
    }

    pub(super) fn flag(&self) -> bool {
        match self {
            Self::Flag(flag) => *flag,
            Self::Text(text) => text.trim().eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// As a text; of a map or a list nothing is kept but the mark of a cut.
    pub(super) fn text(self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Flag(flag) => flag.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
            Self::Map(_) | Self::List(_) => MARK.to_owned(),
        }
    }
}

impl<'de, Map: Deserialize<'de>, List: Deserialize<'de>> Deserialize<'de> for Loose<Map, List> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any(PhantomData))
    }
}

struct Any<Map, List>(PhantomData<(Map, List)>);

impl<'de, Map: Deserialize<'de>, List: Deserialize<'de>> Visitor<'de> for Any<Map, List> {
    type Value = Loose<Map, List>;

    fn expecting(&self, f: &mut Formatter<'_>) -> Written {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::Nothing)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Loose::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Loose::Number(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or_else(|_| Loose::Text(number.to_string()), Loose::Number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        // Doubles beyond 2^53 are not the numbers that were meant.
        let is_whole = number.fract() == 0.0 && number.abs() <= NUMBER_MAX as f64;
        Ok(if is_whole { Loose::Number(number as i64) } else { Loose::Text(number.to_string()) })
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Loose::Text(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Map::deserialize(MapAccessDeserializer::new(map)).map(Loose::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        List::deserialize(SeqAccessDeserializer::new(list)).map(Loose::List)
    }
}

/// Reads a body. Bytes that are no characters, and halves of surrogate pairs, which other languages have in their texts,
/// become U+FFFD.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Unreadable> {
    if body.trim_ascii().is_empty() {
        return Err(Unreadable::Empty);
    }
    let mend = |error| mended(body).map_or(Err(error), |body| serde_json::from_str(&body));
    serde_json::from_slice(body).or_else(mend).map_err(|error| Unreadable::Body(error.to_string()))
}

/// The body with U+FFFD for what Rust's texts cannot hold; `None` when it has nothing of the kind.
fn mended(body: &[u8]) -> Option<String> {
    let body_text = String::from_utf8_lossy(body);
    let mut mended = String::with_capacity(body_text.len());
    let mut rest = body_text.as_ref();
    while let Some((before, escape)) = rest.split_once('\\') {
        let (kept, length) = match escaped(escape) {
            Some(0xd800..=0xdbff) if follows_low_half(escape) => (&escape[..11], 11),
            Some(0xd800..=0xdfff) => ("ufffd", 5),
            _ => {
                let length = escape.chars().next().map_or(0, char::len_utf8);
                (&escape[..length], length)
            }
        };
        mended.extend([before, "\\", kept]);
        rest = &escape[length..];
    }
    mended.push_str(rest);
    (mended.as_bytes() != body).then_some(mended)
}

/// The number of an escape `uXXXX`.
fn escaped(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix('u')?.get(..4)?, 16).ok()
}

/// Whether the escape is followed by one of the lower half of a surrogate pair.
fn follows_low_half(escape: &str) -> bool {
    let next = escape.get(5..).and_then(|rest| rest.strip_prefix('\\')).and_then(escaped);
    matches!(next, Some(0xdc00..=0xdfff))
}

/// `text` in at most `most` bytes: cut at a character, with a mark.
pub(super) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(MARK.len())));
        text.push_str(MARK);
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Loose {
        read(json.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_may_be_written_in_other_ways() {
        for json in ["7", "7.0", r#""7""#, r#"" 7 ""#] {
            assert_eq!(value(json).number(), Some(7), "{json}");
        }
        for json in ["null", "true", "7.5", r#""seven""#, r#""""#, "[7]", r#"{"n":7}"#, "18446744073709551615", "1e300"]
        {
            assert_eq!(value(json).number(), None, "{json}");
        }
        assert_eq!(value("-9223372036854775808").number(), Some(i64::MIN));
        assert_eq!((value("-9223372036854775808").int(), value("200").int()), (Some(i32::MIN), Some(200)));
    }

    #[test]
    fn texts_may_be_other_values() {
        let cases =
            [("null", ""), (r#""a\u003d1""#, "a=1"), ("5", "5"), ("1.5", "1.5"), ("false", "false"), ("[1]", "…")];
        for (json, text) in cases {
            assert_eq!(value(json).text(), text, "{json}");
        }
        assert!(value("true").flag() && value(r#""True""#).flag());
        assert!(!value("false").flag() && !value("null").flag() && !value("1").flag());
    }

    #[test]
    fn halves_of_surrogate_pairs_do_not_spoil_a_body() {
        let cases = [
            (r#""cut \ud83d""#, "cut \u{fffd}"),
            (r#""\ud83d\ude00 \ude00\ud83d""#, "😀 \u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\\ud83d \ud83d\n""#, "\\ud83d \u{fffd}\n"),
        ];
        for (json, text) in cases {
            assert_eq!(value(json).text(), text, "{json}");
        }
        assert_eq!(read::<Loose>(b"\"caf\xe9\"").unwrap().text(), "caf\u{fffd}");
        for broken in ["{", r#""\ud83d"#, r#""\"#, "\"\\u\u{e9}\u{e9}\"", "nul"] {
            assert!(matches!(read::<Loose>(broken.as_bytes()), Err(Unreadable::Body(_))), "{broken}");
        }
        assert_eq!(read::<Loose>(b" \n"), Err(Unreadable::Empty));
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        assert_eq!(cut("short".to_owned(), 5), "short");
        assert_eq!(cut("too long".to_owned(), 7), "too …");
        let cut = cut("é".repeat(100), 52);
        assert_eq!((cut.len(), cut.ends_with("é…")), (51, true));
    }
}
