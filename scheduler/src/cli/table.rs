//! Responses for people: tables, and a single object as a sheet.

use chrono::{Local, TimeZone as _};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Least width of a column when a table is fitted to a terminal.
const COLUMN_MIN: usize = 8;

/// Spaces between two columns.
const GAP: usize = 2;

/// Fields that come first in a sheet; the rest follows by name.
const FIRST: [&str; 4] = ["id", "tenant", "app", "name"];

/// A column: its head, and its text for an item.
pub struct Column {
    head: &'static str,
    cell: Cell,
}

enum Cell {
    Field(&'static str),
    Made(fn(&Value) -> String),
}

/// A column that shows a field.
pub const fn field(head: &'static str, name: &'static str) -> Column {
    Column { head, cell: Cell::Field(name) }
}

/// A column that shows a text computed from an item.
pub const fn made(head: &'static str, make: fn(&Value) -> String) -> Column {
    Column { head, cell: Cell::Made(make) }
}

impl Column {
    fn of(&self, item: &Value) -> String {
        let text = match self.cell {
            Cell::Field(name) => text(name, &item[name]),
            Cell::Made(make) => make(item),
        };
        escaped(&text)
    }
}

/// Rows under their heads; what does not fit a terminal of `width` columns is cut.
pub fn table(columns: &[Column], items: &[Value], width: Option<usize>) -> String {
    let mut rows = vec![columns.iter().map(|column| column.head.to_owned()).collect::<Vec<_>>()];
    rows.extend(items.iter().map(|item| columns.iter().map(|column| column.of(item)).collect()));
    let widest = |at: usize| rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
    let widths = fitted((0..columns.len()).map(widest).collect(), width);
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let cell = cut(cell, *width);
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', width - cell.width() + GAP));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Takes from the widest columns until all fit.
fn fitted(mut widths: Vec<usize>, width: Option<usize>) -> Vec<usize> {
    let Some(width) = width else { return widths };
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > width {
        match widths.iter_mut().max() {
            Some(widest) if *widest > COLUMN_MIN => *widest -= 1,
            _ => break,
        }
    }
    widths
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let is_room = wide <= left;
        left = left.saturating_sub(if is_room { wide } else { left });
        is_room
    };
    let mut out: String = text.chars().take_while(fits).collect();
    out.push('…');
    out
}

/// One thing, a field a line.
pub fn sheet(value: &Value) -> String {
    let mut lines = Vec::new();
    if let Value::Object(fields) = value {
        collect("", fields, &mut lines);
    }
    let width = lines.iter().map(|(name, _)| name.width()).max().unwrap_or(0) + GAP;
    let mut out = String::new();
    for (name, text) in lines {
        for (at, part) in text.split('\n').enumerate() {
            let name = if at == 0 { name.as_str() } else { "" };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{name:width$}{}", escaped(part));
        }
    }
    out
}

fn collect(prefix: &str, fields: &Map<String, Value>, lines: &mut Vec<(String, String)>) {
    let first = FIRST.iter().filter_map(|name| fields.get_key_value(*name));
    let rest = fields.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    for (name, value) in first.chain(rest) {
        match value {
            Value::Object(inner) => collect(&format!("{prefix}{name}."), inner, lines),
            value => lines.push((format!("{prefix}{name}"), text(name, value))),
        }
    }
}

/// A field's value in words.
pub fn text(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Bool(flag) => if *flag { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => match number.as_i64().filter(|_| is_time(name)) {
            Some(0) => "-".to_owned(),
            Some(ms) => time(ms),
            None => number.to_string(),
        },
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            items.iter().map(|item| text("", item)).collect::<Vec<_>>().join("\n")
        }
        Value::Array(items) => items.iter().map(|item| text("", item)).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", text(name, value))).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Names of instants in epoch ms; the API has no other numbers under such names.
fn is_time(name: &str) -> bool {
    ["at", "from", "until"].contains(&name) || ["_at", "_time", "_from", "_until"].iter().any(|end| name.ends_with(end))
}

/// An instant, epoch ms, in the local time zone.
pub fn time(ms: i64) -> String {
    let Some(time) = Local.timestamp_millis_opt(ms).single() else { return ms.to_string() };
    let form = if ms % 1_000 == 0 { "%Y-%m-%d %H:%M:%S %:z" } else { "%Y-%m-%d %H:%M:%S%.3f %:z" };
    time.format(form).to_string()
}

/// The text without anything that a terminal would interpret as a command.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const COLUMNS: &[Column] = &[field("NAME", "name"), field("NOTE", "note"), field("ON", "on")];

    #[test]
    fn wide_characters_count_double() {
        let items =
            [json!({ "name": "月报", "note": "a", "on": true }), json!({ "name": "x", "note": "", "on": false })];
        let expected = "NAME  NOTE  ON\n月报  a     yes\nx     -     no\n";
        assert_eq!(table(COLUMNS, &items, None), expected);
    }

    #[test]
    fn the_widest_columns_give_way() {
        let long = "一二三四五六七八九十".repeat(3);
        let items = [json!({ "name": "short", "note": long, "on": true })];
        for width in [30, 31] {
            let out = table(COLUMNS, &items, Some(width));
            let row = out.lines().nth(1).unwrap();
            assert!(row.width() <= width && row.width() >= width - 1 && row.contains('…'), "{row}");
            assert!(row.starts_with("short ") && row.ends_with("yes"), "{row}");
        }
        // No narrower than can be read.
        assert!(table(COLUMNS, &items, Some(5)).lines().nth(1).unwrap().contains("一二三…"));
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        let items = [json!({ "name": "a\u{1b}[2Jb", "note": "x\ny", "on": null })];
        assert_eq!(table(COLUMNS, &items, None).lines().nth(1).unwrap(), "a\\u001b[2Jb  x\\u000ay  -");
        assert_eq!(sheet(&items[0]), "name  a\\u001b[2Jb\nnote  x\n      y\non    -\n");
    }

    #[test]
    fn a_sheet_names_what_is_inside() {
        let app = json!({ "name": "orders", "key": { "id": "ck", "secret": "s" }, "apps": ["1", "2"], "a": 3, "id": "7",
            "grants": [{ "role": "viewer", "apps": [] }, { "role": "operator" }] });
        let expected = "\
id          7
name        orders
a           3
apps        1, 2
grants      apps=- role=viewer
            role=operator
key.id      ck
key.secret  s
";
        assert_eq!(sheet(&app), expected);
    }

    #[test]
    fn instants_may_be_given_by_name() {
        assert_eq!(text("valid_from", &json!(0)), "-");
        assert!(text("created_at", &json!(1_795_183_828_989_i64)).starts_with("2026-11-2"));
        assert!(text("fire_time", &json!(1_795_183_828_989_i64)).contains(":28.989 "));
        assert_eq!(text("timeout_ms", &json!(1_795_183_828_989_i64)), "1795183828989");
    }
}
