//! The arguments of `carillon schedule next`.

use super::error::FIRES_MAX;
use crate::domain::cron::{Gap, Overlap};
use crate::domain::schedule::CalendarRule;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// The arguments of `carillon schedule next`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("trigger").required(true).args(["expression", "rate", "delay", "at", "stdin"]))]
pub struct NextArgs {
    /// Quartz cron expression: second minute hour day-of-month month day-of-week, perhaps year.
    pub expression: Option<String>,
    /// Instead of an expression: fire every MS milliseconds, counted from --start.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(1_000..))]
    pub rate: Option<i64>,
    /// Instead of an expression: fire MS milliseconds after the end of the last run. Only the first fire, MS after
    /// --start, is known beforehand.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(0..), verbatim_doc_comment)]
    pub delay: Option<i64>,
    /// Instead of an expression: fire once, at this time.
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// When the task was started, where --rate and --delay count from; --after, if left out.
    #[arg(long, value_name = "TIME")]
    pub start: Option<String>,
    /// IANA time zone the expression is read in.
    #[arg(long, default_value = "UTC")]
    pub zone: String,
    /// List fires after this time: local to the zone (2026-01-01T00:00:00), or with an offset (RFC 3339).
    /// Now, if left out. A local time that exists twice means the first of the two; one that does not exist
    /// means the moment the clock is put forward, and a fire at that moment is listed.
    #[arg(long, value_name = "TIME", verbatim_doc_comment)]
    pub after: Option<String>,
    /// How many fires to list.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(FIRES_MAX)))]
    pub count: u32,
    /// What to do with times that do not exist because the clock is put forward.
    #[arg(long, default_value = "auto", value_parser = named::<Gap>(&["auto", "skip", "after"]))]
    pub gap: Gap,
    /// What to do with times that exist twice because the clock is put back.
    #[arg(long, default_value = "auto", value_parser = named::<Overlap>(&["auto", "first", "second", "both"]))]
    pub overlap: Overlap,
    /// Nothing fires before this time.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Nothing fires at this time or later.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// A calendar in TOML, or in JSON if the file's name ends in .json: lists of strings `excluded_weekdays` ("sat"),
    /// `excluded_days` ("2026-10-01", or every year "10-01"), `workdays` (make-up days, written as those) and
    /// `excluded_hours` ("22:00-06:00").
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    pub calendar: Option<PathBuf>,
    /// What to do with fires on days that the calendar excludes; those of an expression can move.
    #[arg(long, default_value = "skip", value_parser = named::<CalendarRule>(&["skip", "next", "previous"]))]
    pub calendar_rule: CalendarRule,
    /// Shift all fires by one offset below MS milliseconds, drawn from --seed.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub spread: i64,
    /// Let each fire be due up to MS milliseconds later, drawn from --seed; --explain shows it.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub jitter: i64,
    /// What spread and jitter are drawn from: the id of the task.
    #[arg(long, value_name = "ID", default_value_t = 0)]
    pub seed: i64,
    /// Show also what is skipped between the fires, and why.
    #[arg(long)]
    pub explain: bool,
    /// Read questions from standard input, one JSON object a line with `cron` (or `rate`, `delay` or `at`) and
    /// optionally `start`, `zone`, `after`, `count`, `gap`, `overlap`, `from`, `until`, `calendar` (an object),
    /// `calendar_rule`, `spread`, `jitter`, `seed` and `explain` (the options above are the defaults), and answer each
    /// with one line: `{"next":[..]}`, with `"ends":true` if there are fewer than asked for and with `"preview":[..]`
    /// if explained, or `{"refused":"why"}`.
    #[arg(long, verbatim_doc_comment)]
    pub stdin: bool,
}

/// A parser for the values of an enum, by the names serde knows them by.
fn named<T>(names: &[&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.to_vec()).try_map(|name| serde_json::from_value(serde_json::Value::String(name)))
}
