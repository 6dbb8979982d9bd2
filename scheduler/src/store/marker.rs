//! Where a statement's values go in its text: `{1}`, or `{1.0}` for the first column of a batch.

/// A value of a statement, or one column of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marker {
    /// Its place among the values.
    pub value: usize,
    /// Of a batch.
    pub column: Option<usize>,
}

impl std::str::FromStr for Marker {
    type Err = std::num::ParseIntError;

    /// `1`, or `1.0` for the first column of that batch.
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let (number, column) = text.split_once('.').map_or((text, None), |(number, column)| (number, Some(column)));
        Ok(Self { value: number.parse::<usize>()?.saturating_sub(1), column: column.map(str::parse).transpose()? })
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
