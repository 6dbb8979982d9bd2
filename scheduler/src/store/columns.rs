//! A batch as PostgreSQL gets it: the text of an array for each column, out of the JSON document of its rows.

use super::marker::Marker;
use sea_orm::Value;
use serde::de::{DeserializeSeed, Deserializer as _, Error, IgnoredAny, SeqAccess, Visitor};
use std::fmt::{Formatter, Write as _};

/// The values as `bound` takes them: a batch column by column.
pub fn spread(bound: &[Marker], values: &[Value]) -> Vec<Value> {
    let mut arrays: Vec<Vec<String>> = Vec::new();
    arrays.resize_with(values.len(), Vec::new);
    let of = |marker: &Marker| {
        let value = values.get(marker.value)?;
        let Some(column) = marker.column else { return Some(value.clone()) };
        let arrays = arrays.get_mut(marker.value)?;
        if arrays.is_empty() {
            let columns = bound.iter().filter(|other| other.value == marker.value).filter_map(|other| other.column);
            *arrays = of_rows(value, columns.max().unwrap_or(0) + 1);
        }
        arrays.get_mut(column).map(|array| std::mem::take(array).into())
    };
    bound.iter().filter_map(of).collect()
}

/// The arrays of a batch.
fn of_rows(value: &Value, columns: usize) -> Vec<String> {
    let text = match value {
        Value::String(Some(text)) => text.as_str(),
        _ => "",
    };
    let mut arrays = vec!["{".to_owned(); columns];
    let mut reader = serde_json::Deserializer::from_str(text);
    match reader.deserialize_seq(Rows(&mut arrays)) {
        Ok(()) => arrays.iter_mut().for_each(|array| array.push('}')),
        // No array either: the database refuses it, and the statement with it.
        Err(error) => arrays.fill(format!("not a batch: {error}")),
    }
    arrays
}

struct Rows<'a>(&'a mut [String]);

impl<'de> Visitor<'de> for Rows<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Row(self.0))?.is_some() {}
        Ok(())
    }
}

struct Row<'a>(&'a mut [String]);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "a row of at least {} values", self.0.len())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        for (at, array) in self.0.iter_mut().enumerate() {
            if array.len() > 1 {
                array.push(',');
            }
            row.next_element_seed(Cell(array))?.ok_or_else(|| A::Error::invalid_length(at, &"a whole row"))?;
        }
        while row.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

struct Cell<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Cell<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Cell<'_> {
    fn push<E: Error>(self, value: impl std::fmt::Display) -> Result<(), E> {
        write!(self.0, "{value}").map_err(E::custom)
    }
}

impl Visitor<'_> for Cell<'_> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("a number, a text or null")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.push(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.push(number)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.push("NULL")
    }

    /// In quotes, so that nothing in it ends the text, or is taken for NULL.
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.push('"');
        let mut rest = text;
        while let Some(at) = rest.find(['"', '\\']) {
            self.0.push_str(&rest[..at]);
            self.0.push('\\');
            self.0.push_str(&rest[at..=at]);
            rest = &rest[at + 1..];
        }
        self.0.push_str(rest);
        self.0.push('"');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread_by(bound: &[(usize, Option<usize>)], values: &[&str]) -> Vec<String> {
        let bound: Vec<Marker> = bound.iter().map(|&(value, column)| Marker { value, column }).collect();
        let values: Vec<Value> = values.iter().map(|text| Value::from(*text)).collect();
        let text = |value: Value| match value {
            Value::String(Some(text)) => text,
            other => panic!("{other:?}"),
        };
        spread(&bound, &values).into_iter().map(text).collect()
    }

    #[test]
    fn a_batch_becomes_an_array_for_each_column() {
        let batch = r#"[[1,"a",-2],[9223372036854775807,null,0]]"#;
        let bound = [(1, Some(1)), (0, None), (1, Some(0))];
        assert_eq!(spread_by(&bound, &["x", batch]), ["{\"a\",NULL}", "x", "{1,9223372036854775807}"]);
        assert_eq!(spread_by(&[(0, Some(0))], &["[]"]), ["{}"]);
    }

    #[test]
    fn no_text_breaks_out_of_its_array() {
        let batch = serde_json::json!([["\"}',{\\"], ["NULL"], [""], ["\n\u{1}é"]]).to_string();
        assert_eq!(spread_by(&[(0, Some(0))], &[&batch]), ["{\"\\\"}',{\\\\\",\"NULL\",\"\",\"\n\u{1}é\"}"]);
    }

    #[test]
    fn what_is_no_batch_is_no_array() {
        for text in ["", "7", "[7]", "[[]]", "[[true]]", "[[1]"] {
            assert!(spread_by(&[(0, Some(0))], &[text])[0].starts_with("not a batch"), "{text}");
        }
    }
}
