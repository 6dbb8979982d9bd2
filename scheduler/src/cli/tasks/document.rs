//! A task file as text: TOML, YAML or JSON to one value and back.

use super::json::Strict;
use clap::ValueEnum;
use serde::de::IgnoredAny;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use std::path::Path;

/// Format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
}

impl Format {
    /// The format that a file name implies.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        }
    }
}

/// The content of a file, with line numbers.
#[derive(Debug, PartialEq)]
pub struct Document {
    /// Its fields, as the node accepts them.
    pub fields: Map<String, Value>,
    /// The line on which each task begins, as far as the format tells.
    pub lines: Vec<usize>,
}

/// A task of a YAML file with its place.
type Placed = serde_saphyr::Spanned<IgnoredAny>;

/// The tasks of a file, each with its place.
#[derive(Deserialize)]
struct Places<T> {
    #[serde(default = "Vec::new")]
    task: Vec<T>,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// The text is not valid TOML, YAML or JSON; with its line.
    pub fn parse(text: &str, format: Format) -> Result<Self, String> {
        match format {
            Format::Toml => {
                let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
                let places = toml::from_str::<Places<toml::Spanned<IgnoredAny>>>(text);
                let starts =
                    places.map_or_else(|_| Vec::new(), |all| all.task.iter().map(|task| task.span().start).collect());
                let lines = lines_of(text, &starts);
                let fields = table.into_iter().map(|(name, value)| Ok((name.clone(), of_toml(value, &name)?)));
                Ok(Self { fields: fields.collect::<Result<_, String>>()?, lines })
            }
            Format::Yaml => {
                let fields = serde_saphyr::from_str_with_options(text, yaml_options());
                let fields = fields.map_err(|error| error.to_string())?;
                let lines = serde_saphyr::from_str_with_options::<Places<Placed>>(text, yaml_options());
                let line = |task: &Placed| usize::try_from(task.referenced.line()).unwrap_or(0);
                let lines = lines.map_or_else(|_| Vec::new(), |places| places.task.iter().map(line).collect());
                Ok(Self { fields, lines })
            }
            Format::Json => match serde_json::from_str(text).map_err(|error| error.to_string())? {
                Strict(Value::Object(fields)) => Ok(Self { fields, lines: Vec::new() }),
                Strict(_) => Err("an object is allowed".to_owned()),
            },
        }
    }

    /// Writes `top` and then `tasks`, each with its fields in the order of `order`.
    ///
    /// # Errors
    /// What the format cannot express.
    pub fn render(
        top: &[(&str, Value)],
        tasks: &[Map<String, Value>],
        order: &[&str],
        format: Format,
    ) -> Result<String, String> {
        let file = File { top, tasks: tasks.iter().map(|fields| Ordered { fields, order }).collect() };
        match format {
            Format::Toml => toml::to_string_pretty(&file).map_err(|error| error.to_string()),
            Format::Yaml => {
                // Never folded: a fold that ends in a blank does not survive text editors.
                let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
                serde_saphyr::to_string_with_options(&file, options).map_err(|error| error.to_string())
            }
            Format::Json => {
                serde_json::to_string_pretty(&file).map(|text| text + "\n").map_err(|error| error.to_string())
            }
        }
    }
}

/// Room for as many tasks as a file may have, with one common part that each of them refers to.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 4_000_000,
            max_nodes: 2_000_000,
            max_documents: 1,
            enforce_alias_anchor_ratio: false,
        },
    }
}

/// The lines of offsets, which are sorted: the text is scanned once.
fn lines_of(text: &str, starts: &[usize]) -> Vec<usize> {
    let (mut line, mut from) = (1, 0);
    let lines = starts.iter().map(|start| {
        line += text.get(from..*start).map_or(0, |between| between.matches('\n').count());
        from = *start;
        line
    });
    lines.collect()
}

/// TOML has more kinds of values than JSON: times become texts.
fn of_toml(value: toml::Value, field: &str) -> Result<Value, String> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(number)
            .map(Value::Number)
            .ok_or_else(|| format!("{field}: {number} is not allowed"))?,
        toml::Value::Array(items) => {
            let items = items.into_iter().enumerate().map(|(at, item)| of_toml(item, &format!("{field}[{at}]")));
            Value::Array(items.collect::<Result<_, String>>()?)
        }
        toml::Value::Table(table) => {
            let fields = table.into_iter().map(|(name, value)| {
                let value = of_toml(value, &format!("{field}.{name}"))?;
                Ok((name, value))
            });
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
    })
}

/// A whole file to write.
struct File<'a> {
    top: &'a [(&'a str, Value)],
    tasks: Vec<Ordered<'a>>,
}

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.top.len() + 1))?;
        for (name, value) in self.top {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry("task", &self.tasks)?;
        map.end()
    }
}

/// Fields in an order of their own; those that it does not know come last.
struct Ordered<'a> {
    fields: &'a Map<String, Value>,
    order: &'a [&'a str],
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.fields.len()))?;
        let known = self.order.iter().filter_map(|name| self.fields.get_key_value(*name));
        let others = self.fields.iter().filter(|(name, _)| !self.order.contains(&name.as_str()));
        for (name, value) in known.chain(others) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
