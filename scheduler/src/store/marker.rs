//! Where a statement's values go in its text: `{1}`; `{1.0}` for the first column of a batch, `{1*3}` for its rows of three cells.

use std::num::ParseIntError;

/// A value of a statement, or a part of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Its place among the values.
    pub value: usize,
    /// Which part of it.
    pub part: Part,
}

/// What of a value goes to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// One column of a batch.
    Column(usize),
    /// A batch's rows, of so many cells.
    Rows(usize),
}

impl std::str::FromStr for Marker {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (number, part) = match (text.split_once('.'), text.split_once('*')) {
            (Some((number, column)), _) => (number, Part::Column(column.parse()?)),
            (_, Some((number, width))) => (number, Part::Rows(width.parse()?)),
            _ => (text, Part::Whole),
        };
        Ok(Self { value: number.parse::<usize>()?.saturating_sub(1), part })
    }
}

/// The first marker of a text, between what stands before and after it.
pub fn next_marker(text: &str) -> Option<(&str, Marker, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| at + from) {
        let close = text[open..].find('}').map(|at| at + open)?;
        if let Ok(marker) = text[open + 1..close].parse() {
            return Some((&text[..open], marker, &text[close + 1..]));
        }
        from = close;
    }
    None
}
