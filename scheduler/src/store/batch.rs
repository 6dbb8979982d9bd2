//! Batches out of their JSON documents, for databases that take something else: the text of an array for each column
//! (PostgreSQL), or the cells one by one (SQLite).

use sea_orm::Value;
use serde::de::{DeserializeSeed, Deserializer as _, Error, IgnoredAny, SeqAccess, Visitor};
use std::fmt::{Formatter, Write as _};

/// A batch as arrays, one for each of its first `columns` columns.
pub fn arrays(batch: &Value, columns: usize) -> Vec<String> {
    let mut arrays = vec!["{".to_owned(); columns];
    let read = each_cell(batch, columns, |column, cell| {
        let array: &mut String = &mut arrays[column];
        if array.len() > 1 {
            array.push(',');
        }
        match cell {
            Cell::Null => array.push_str("NULL"),
            Cell::Number(number) => _ = write!(array, "{number}"),
            Cell::Text(text) => push_quoted(array, text),
        }
    });
    match read {
        Ok(()) => arrays.iter_mut().for_each(|array| array.push('}')),
        // No array either: the database refuses it, and the statement with it.
        Err(error) => arrays.fill(format!("not a batch: {error}")),
    }
    arrays
}

/// In quotes, so that nothing in it ends the text, or is taken for NULL.
fn push_quoted(array: &mut String, text: &str) {
    array.push('"');
    for part in text.split_inclusive(['"', '\\']) {
        match part.strip_suffix(['"', '\\']) {
            Some(before) => {
                array.push_str(before);
                array.push('\\');
                array.push_str(&part[before.len()..]);
            }
            None => array.push_str(part),
        }
    }
    array.push('"');
}

/// The cells of a batch row by row, each row of `width` cells; nothing for what is no batch, which is for the database to refuse.
pub fn cells(batch: &Value, width: usize) -> Option<Vec<Value>> {
    let mut cells = Vec::new();
    let read = each_cell(batch, width, |_, cell| {
        cells.push(match cell {
            Cell::Null => Value::BigInt(None),
            Cell::Number(number) => number.into(),
            Cell::Text(text) => text.into(),
        });
    });
    read.ok().map(|()| cells)
}

/// What a row of a batch consists of.
enum Cell<'a> {
    Null,
    Number(i64),
    Text(&'a str),
}

/// Shows `see` the first `width` cells of each row, with their places in it.
fn each_cell(batch: &Value, width: usize, see: impl FnMut(usize, Cell)) -> serde_json::Result<()> {
    let text = match batch {
        Value::String(Some(text)) => text.as_str(),
        _ => "",
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_seq(Rows { width, see })?;
    reader.end()
}

struct Rows<F> {
    width: usize,
    see: F,
}

impl<'de, F: FnMut(usize, Cell)> Visitor<'de> for Rows<F> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(Row { width: self.width, see: &mut self.see })?.is_some() {}
        Ok(())
    }
}

struct Row<'a, F> {
    width: usize,
    see: &'a mut F,
}

impl<'de, F: FnMut(usize, Cell)> DeserializeSeed<'de> for Row<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(usize, Cell)> Visitor<'de> for Row<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "a row of at least {} values", self.width)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<(), A::Error> {
        for at in 0..self.width {
            let cell = row.next_element_seed(At { at, see: &mut *self.see })?;
            cell.ok_or_else(|| A::Error::invalid_length(at, &"a whole row"))?;
        }
        while row.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

struct At<'a, F> {
    at: usize,
    see: &'a mut F,
}

impl<'de, F: FnMut(usize, Cell)> DeserializeSeed<'de> for At<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<F: FnMut(usize, Cell)> Visitor<'_> for At<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        f.write_str("a 64-bit number, a text or null")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        (self.see)(self.at, Cell::Number(number));
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        let number = i64::try_from(number).map_err(|_| E::custom(format!("{number} has no room in 64 bits")))?;
        self.visit_i64(number)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        (self.see)(self.at, Cell::Null);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        (self.see)(self.at, Cell::Text(text));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_becomes_an_array_for_each_column() {
        let batch = Value::from(r#"[[1,"a",-2],[9223372036854775807,null,0]]"#);
        assert_eq!(arrays(&batch, 2), ["{1,9223372036854775807}", "{\"a\",NULL}"]);
        assert_eq!(arrays(&"[]".into(), 1), ["{}"]);
    }

    #[test]
    fn no_text_breaks_out_of_its_array() {
        let batch = serde_json::json!([["\"}',{\\"], ["NULL"], [""], ["\n\u{1}é"]]).to_string();
        assert_eq!(arrays(&batch.into(), 1), ["{\"\\\"}',{\\\\\",\"NULL\",\"\",\"\n\u{1}é\"}"]);
    }

    #[test]
    fn a_batch_becomes_its_cells() {
        let batch = Value::from(r#"[[1,"a",-2],[0,null,"\""]]"#);
        let all = [1i64.into(), "a".into(), (-2i64).into(), 0i64.into(), Value::BigInt(None), "\"".into()];
        assert_eq!(cells(&batch, 3).unwrap(), all);
        assert_eq!(cells(&batch, 1).unwrap(), [Value::from(1i64), 0i64.into()]);
        assert_eq!(cells(&"[]".into(), 3).unwrap(), []);
    }

    #[test]
    fn what_is_no_batch_is_neither() {
        for text in ["", "7", "[7]", "[[]]", "[[true]]", "[[1]", "[[1]]1", "[[9223372036854775808]]"] {
            assert!(arrays(&text.into(), 1)[0].starts_with("not a batch"), "{text}");
            assert_eq!(cells(&text.into(), 1), None, "{text}");
        }
    }
}
