//! Statements as a database gets them: a fixed text, and values in the order in which it names them.

use super::batch;
use super::dialect::Dialect;
use super::marker::{Marker, Part, next_marker};
use sea_orm::{Statement, Value};
use std::sync::OnceLock;

/// How many rows the texts have that take a batch cell by cell: few texts, so that a connection keeps all of them prepared. The rows
/// that a batch does not fill cost next to nothing.
const SIZES: [usize; 2] = [256, 1_024];

/// A smaller batch goes as a document: a text of its own would save little.
const CELLS_FROM: usize = 32;

/// A statement whose text is fixed, with `{1}`, `{2}` … where its values go.
#[derive(Debug)]
pub struct Sql {
    dialect: Dialect,
    text: String,
    /// What values are bound to, in this order.
    bound: Vec<Marker>,
    /// For batches that go cell by cell.
    sized: Option<Sized>,
}

/// The texts of a statement that takes its one batch cell by cell.
#[derive(Debug)]
struct Sized {
    before: String,
    after: String,
    /// The batch's place in `bound`.
    place: usize,
    /// Cells of each row.
    width: usize,
    texts: [OnceLock<Option<String>>; SIZES.len()],
}

impl Sql {
    /// Renders `template`: `{1}` are values, `{now_us}` and `{now}` the database's clock.
    pub fn new(dialect: Dialect, template: &str) -> Self {
        let template = template.replace("{now_us}", dialect.now_us()).replace("{now}", &dialect.now_ms());
        let mut text = String::with_capacity(template.len());
        let (mut bound, mut batches) = (Vec::new(), Vec::new());
        let mut rest = template.as_str();
        while let Some((before, marker, after)) = next_marker(rest) {
            text.push_str(before);
            let from = text.len();
            dialect.push_marker(&mut text, marker, &mut bound);
            if let Part::Rows(width) = marker.part {
                batches.push((from..text.len(), bound.len() - 1, width));
            }
            rest = after;
        }
        text.push_str(rest);
        let sized = match &batches[..] {
            [(range, place, width)] => Some(Sized {
                before: text[..range.start].to_owned(),
                after: text[range.end..].to_owned(),
                place: *place,
                width: *width,
                texts: [const { OnceLock::new() }; SIZES.len()],
            }),
            _ => None,
        };
        Self { dialect, text, bound, sized }
    }

    /// Its text, with the database's own markers.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its texts for batches that go cell by cell.
    pub fn sized_texts(&self) -> impl Iterator<Item = &str> {
        let of = move |sized| (0..SIZES.len()).filter_map(move |size| self.sized_text(sized, size));
        self.sized.iter().flat_map(of)
    }

    /// The statement with its values.
    pub fn bind<const N: usize>(&self, values: [Value; N]) -> Statement {
        self.bind_all(values.into())
    }

    /// The statement with as many values as its text names.
    pub fn bind_all(&self, values: Vec<Value>) -> Statement {
        let (text, values) = match self.cell_by_cell(&values) {
            Some(cell_by_cell) => cell_by_cell,
            None => (self.text.as_str(), self.as_documents(values)),
        };
        Statement::from_sql_and_values(self.dialect.backend(), text, values)
    }

    /// Text and values for a batch that goes cell by cell; nothing if the statement has none, or too small or too large a one.
    fn cell_by_cell(&self, values: &[Value]) -> Option<(&str, Vec<Value>)> {
        let sized = self.sized.as_ref()?;
        let mut cells = batch::cells(values.get(self.bound[sized.place].value)?, sized.width)?;
        let rows = cells.len() / sized.width;
        let size = SIZES.iter().position(|size| (CELLS_FROM..=*size).contains(&rows))?;
        let text = self.sized_text(sized, size)?;
        cells.resize(SIZES[size] * sized.width, Value::BigInt(None));
        let of = |markers: &[Marker]| markers.iter().filter_map(|m| values.get(m.value).cloned()).collect::<Vec<_>>();
        let mut all = of(&self.bound[..sized.place]);
        all.append(&mut cells);
        all.extend(of(&self.bound[sized.place + 1..]));
        Some((text, all))
    }

    fn sized_text<'a>(&self, sized: &'a Sized, size: usize) -> Option<&'a str> {
        let render = || {
            let rows = self.dialect.rows_of_cells(SIZES[size], sized.width)?;
            Some(format!("{}{rows}{}", sized.before, sized.after))
        };
        sized.texts[size].get_or_init(render).as_deref()
    }

    /// The values as the markers take them; of a batch all of it, or its columns.
    fn as_documents(&self, values: Vec<Value>) -> Vec<Value> {
        if self.is_bound_in_order(values.len()) {
            return values;
        }
        let mut arrays: Vec<Vec<String>> = Vec::new();
        arrays.resize_with(values.len(), Vec::new);
        let of = |marker: &Marker| {
            let value = values.get(marker.value)?;
            let Part::Column(column) = marker.part else { return Some(value.clone()) };
            let arrays = arrays.get_mut(marker.value)?;
            if arrays.is_empty() {
                *arrays = batch::arrays(value, self.columns_of(marker.value));
            }
            arrays.get_mut(column).map(|array| std::mem::take(array).into())
        };
        self.bound.iter().filter_map(of).collect()
    }

    fn is_bound_in_order(&self, values: usize) -> bool {
        let is_whole = |(at, marker): (usize, &Marker)| marker.value == at && !matches!(marker.part, Part::Column(_));
        self.bound.len() == values && self.bound.iter().enumerate().all(is_whole)
    }

    /// How many columns the text names of a batch.
    fn columns_of(&self, value: usize) -> usize {
        let column = |marker: &Marker| match marker.part {
            Part::Column(column) if marker.value == value => column + 1,
            _ => 0,
        };
        self.bound.iter().map(column).max().unwrap_or(0)
    }
}
