//! `carillon calendars`.

use super::client::{Client, IfMatch, ListLimit};
use super::files::read_text;
use super::find;
use super::node::ApiRequest;
use super::table::{Column, field};
use super::tasks::{Document, Format};
use crate::domain::calendar::CalendarSpec;
use anyhow::{Context, anyhow};
use clap::Subcommand;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Largest calendar file, bytes: what a node accepts.
const BYTES_MAX: u64 = 256 << 10;

const COLUMNS: &[Column] = &[
    field("NAME", "name"),
    field("VERSION", "version"),
    field("CHANGED", "updated_at"),
    field("DESCRIPTION", "description"),
];

/// What can be done with calendars.
#[derive(Debug, Subcommand)]
pub enum Calendars {
    /// List a tenant's calendars.
    List {
        /// The tenant's name.
        tenant: String,
        /// How many to show.
        #[command(flatten)]
        most: ListLimit,
    },
    /// Show a calendar.
    Show {
        /// tenant/name
        calendar: String,
        /// An earlier version of it.
        #[arg(long)]
        version: Option<i64>,
    },
    /// Write a calendar's next version; tasks that use it follow it at once.
    Put {
        /// tenant/name
        calendar: String,
        /// The calendar (.toml, .yaml, .yml or .json): lists of strings `excluded_weekdays`, `excluded_days`,
        /// `workdays`, `excluded_hours`, and a `description`; - is standard input, in JSON.
        #[arg(short, long, value_name = "FILE", verbatim_doc_comment)]
        file: PathBuf,
        /// Precondition of the edit.
        #[command(flatten)]
        unless: IfMatch,
    },
    /// Delete a calendar that no task uses.
    Delete {
        /// tenant/name
        calendar: String,
    },
}

impl Calendars {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        match self {
            Self::List { tenant, most } => {
                client.pages(ApiRequest::get(["calendars", &tenant]), "after", &most, COLUMNS).await
            }
            Self::Show { calendar, version } => {
                let [tenant, name] = parts(&calendar)?;
                client.show(ApiRequest::get(["calendars", tenant, name]).with("version", version)).await
            }
            Self::Put { calendar, file, unless } => {
                let [tenant, name] = parts(&calendar)?;
                let ask = ApiRequest::put(["calendars", tenant, name]).if_match(unless.revision);
                client.show(ask.body(read(&file)?)).await
            }
            Self::Delete { calendar } => {
                let [tenant, name] = parts(&calendar)?;
                client
                    .done(ApiRequest::delete(["calendars", tenant, name]), &format!("calendar `{calendar}` deleted"))
                    .await
            }
        }
    }
}

fn parts(calendar: &str) -> anyhow::Result<[&str; 2]> {
    find::parts(calendar).with_context(|| format!("`{calendar}` is not a calendar's name; write tenant/name"))
}

fn read(file: &Path) -> anyhow::Result<Value> {
    let (text, place) = read_text(file, BYTES_MAX)?;
    let format = Format::of(file).unwrap_or(Format::Json);
    let document = Document::parse(&text, format)
        .map_err(|error| anyhow!("{place} is not {}; nothing was changed\n{error}", format.name()))?;
    // The node asks for every field; a file names those that are not empty.
    let mut fields = match serde_json::to_value(CalendarSpec::default()) {
        Ok(Value::Object(empty)) => empty,
        _ => Map::new(),
    };
    fields.extend(document.fields);
    Ok(Value::Object(fields))
}
