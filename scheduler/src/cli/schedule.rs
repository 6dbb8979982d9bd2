//! `carillon schedule next`: when will this schedule fire, and when not, and why?
//!
//! It answers from its arguments alone, without a server or a database, so an operator can try a schedule before saving
//! it; with `--stdin` it answers line by line, for scripts and for comparing whole sets of schedules with another
//! scheduler.

mod question;
mod words;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Subcommand};
use serde::de::DeserializeOwned;

use crate::domain::calendar::{Calendar, CalendarSpec};
use crate::domain::cron::{CronError, Gap, Overlap};
use crate::domain::field_error::FieldError;
use crate::domain::schedule::{CalendarRule, Kind};
use question::{Answer, Question};

/// The most fires one question may ask for.
const MOST: u32 = 10_000;

/// A calendar file is not larger than this, in bytes.
const CALENDAR_BYTES_MAX: u64 = 1 << 20;

/// Work with schedules.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ScheduleCommand,
}

/// The subcommands of `carillon schedule`.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Print the next fires of a schedule.
    Next(Box<NextArgs>),
}

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
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST)))]
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

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The expression is wrong; the text shows where.
    #[error("{}", point_at(.expression, .error))]
    Cron {
        /// As it was given.
        expression: String,
        /// What is wrong with it.
        #[source]
        error: CronError,
    },
    /// Not a zone of the IANA database.
    #[error("unknown time zone {0:?}; allowed: names of the IANA database such as Europe/Berlin")]
    Zone(String),
    /// Neither a local time nor an instant.
    #[error("{0:?} is not a time; allowed: 2026-01-01T00:00:00, local to the zone, or 2026-01-01T00:00:00+08:00")]
    Time(String),
    /// Too few or too many fires asked for.
    #[error("{0} is not between 1 and {MOST} fires")]
    Count(u32),
    /// Nothing or too much says when to fire.
    #[error("one of cron, rate, delay and at must be given, and only one")]
    Timing,
    /// A number out of its range.
    #[error("{0} is {1}, not at least {2} (ms)")]
    Milliseconds(&'static str, i64, i64),
    /// The calendar's file cannot be used.
    #[error("the calendar {0} cannot be read: {1}")]
    CalendarFile(String, String),
    /// The calendar is wrong.
    #[error("the calendar is refused: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Calendar(Vec<FieldError>),
    /// A line of input is not a question.
    #[error("not a question in JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The input cannot be read or the output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Runs `carillon schedule next`: one fire a line, or, with `--stdin`, one answer for each line of `input`. `notes` is
/// told when nothing fires at all: an empty answer alone looks like a mistake.
///
/// # Errors
///
/// [`ScheduleError`], to be printed to standard error. With `--stdin` only a failing input or output, or a calendar
/// file that cannot be used, is one; a line that is wrong is answered instead.
pub fn run(
    args: &NextArgs,
    out: &mut impl Write,
    notes: &mut impl Write,
    input: &mut impl BufRead,
) -> Result<(), ScheduleError> {
    let calendar = args.calendar.as_deref().map(read_calendar).transpose()?;
    if args.stdin {
        return answer_lines(args, calendar.as_ref(), out, input);
    }
    let plan = Question::default().plan(args, calendar.as_ref())?;
    if args.explain {
        let preview = plan.preview();
        for line in &preview {
            writeln!(out, "{}", words::line(plan.zone(), line))?;
        }
        if let Some(end) = plan.end(&preview) {
            writeln!(out, "{end}")?;
        }
    } else {
        let fires = plan.fires();
        for fire in &fires {
            writeln!(out, "{fire}")?;
        }
        if fires.is_empty() {
            writeln!(notes, "never: nothing fires after that")?;
        }
    }
    Ok(out.flush()?)
}

fn answer_lines(
    args: &NextArgs,
    calendar: Option<&Arc<Calendar>>,
    out: &mut impl Write,
    input: &mut impl BufRead,
) -> Result<(), ScheduleError> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let answer = answer(args, calendar, &line).unwrap_or_else(|error| Answer::Refused {
            refused: match error {
                ScheduleError::Cron { error, .. } => error.to_string(),
                error => error.to_string(),
            },
        });
        serde_json::to_writer(&mut *out, &answer)?;
        out.write_all(b"\n")?;
        // Whoever asks through a pipe may wait for this answer before asking on.
        out.flush()?;
        line.clear();
    }
    Ok(())
}

fn answer(args: &NextArgs, calendar: Option<&Arc<Calendar>>, line: &[u8]) -> Result<Answer, ScheduleError> {
    let question: Question = serde_json::from_slice(line)?;
    let plan = question.plan(args, calendar)?;
    let preview = question.explain.unwrap_or(args.explain).then(|| plan.preview());
    let next = match &preview {
        Some(lines) => {
            lines.iter().filter(|line| line.kind == Kind::Fires).map(|line| plan.show(line.fire_time)).collect()
        }
        None => plan.fires(),
    };
    let ends = next.len() < plan.count();
    Ok(Answer::Fires { next, ends, preview })
}

/// The calendar in a file, under the file's name.
fn read_calendar(path: &Path) -> Result<Arc<Calendar>, ScheduleError> {
    let name = path.display().to_string();
    let wrong = |reason: String| ScheduleError::CalendarFile(name.clone(), reason);
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > CALENDAR_BYTES_MAX {
        return Err(wrong(format!("it has {size} bytes; allowed: {CALENDAR_BYTES_MAX}")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let spec: CalendarSpec = if is_json {
        serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?
    } else {
        toml::from_str(&text).map_err(|error| wrong(error.to_string()))?
    };
    spec.compile(&name, 1).map(Arc::new).map_err(ScheduleError::Calendar)
}

/// The error, and under it the expression with a caret below the column that is wrong.
fn point_at(expression: &str, error: &CronError) -> String {
    let shown: String = expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{error}\n  {shown}\n  {:>1$}", '^', error.column)
}

/// A parser for the values of an enum, by the names serde knows them by.
fn named<T>(names: &[&'static str]) -> impl TypedValueParser<Value = T> + use<T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names.to_vec()).try_map(|name| serde_json::from_value(serde_json::Value::String(name)))
}
