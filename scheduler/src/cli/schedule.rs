//! `carillon schedule next`: when will this expression fire?
//!
//! It answers from the expression alone, without a server or a database, so an operator can try an
//! expression before saving it; with `--stdin` it answers line by line, for scripts and for comparing whole
//! sets of schedules with another scheduler.

use std::io::{self, BufRead, Write};
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, SecondsFormat, TimeDelta, TimeZone, Utc};
use chrono_tz::{GapInfo, Tz};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::domain::cron::{CronError, CronSchedule, DstPolicy, Gap, Overlap};

/// The most fires one question may ask for.
const MOST: u32 = 10_000;

/// Work with cron schedules.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ScheduleCommand,
}

/// The subcommands of `carillon schedule`.
#[derive(Debug, Subcommand)]
pub enum ScheduleCommand {
    /// Print the next fires of a cron expression.
    Next(NextArgs),
}

/// The arguments of `carillon schedule next`.
#[derive(Debug, Args)]
pub struct NextArgs {
    /// Quartz cron expression: second minute hour day-of-month month day-of-week, perhaps year.
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    pub expression: Option<String>,
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
    /// Read questions from standard input, one JSON object a line with `cron` and optionally `zone`, `after`,
    /// `count`, `gap` and `overlap` (the options above are the defaults), and answer each with one line:
    /// `{"next":[..]}`, with `"ends":true` if there are fewer than asked for, or `{"refused":"why"}`.
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
    After(String),
    /// Too few or too many fires asked for.
    #[error("{0} is not between 1 and {MOST} fires")]
    Count(u32),
    /// Neither an expression nor `--stdin`.
    #[error("a cron expression is missing")]
    NoExpression,
    /// A line of input is not a question.
    #[error("not a question in JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The input cannot be read or the output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A line of input; unknown members are ignored.
#[derive(Deserialize)]
struct Question {
    cron: String,
    zone: Option<String>,
    after: Option<String>,
    count: Option<u32>,
    gap: Option<Gap>,
    overlap: Option<Overlap>,
}

/// A line of output.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Fires {
        next: Vec<String>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        ends: bool,
    },
    Refused {
        refused: String,
    },
}

/// Runs `carillon schedule next`: one fire a line, or, with `--stdin`, one answer for each line of `input`.
///
/// # Errors
///
/// [`ScheduleError`], to be printed to standard error. With `--stdin` only a failing input or output is one;
/// a line that is wrong is answered instead.
pub fn run(args: &NextArgs, out: &mut impl Write, input: &mut impl BufRead) -> Result<(), ScheduleError> {
    if args.stdin {
        return answer_lines(args, out, input);
    }
    let question = Question {
        cron: args.expression.clone().ok_or(ScheduleError::NoExpression)?,
        zone: None,
        after: None,
        count: None,
        gap: None,
        overlap: None,
    };
    for fire in question.fires(args)? {
        writeln!(out, "{fire}")?;
    }
    Ok(out.flush()?)
}

fn answer_lines(args: &NextArgs, out: &mut impl Write, input: &mut impl BufRead) -> Result<(), ScheduleError> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        let answer = answer(args, &line).unwrap_or_else(|error| Answer::Refused {
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

fn answer(args: &NextArgs, line: &[u8]) -> Result<Answer, ScheduleError> {
    let question: Question = serde_json::from_slice(line)?;
    let count = question.count.unwrap_or(args.count);
    let next = question.fires(args)?;
    let ends = next.len() < count as usize;
    Ok(Answer::Fires { next, ends })
}

impl Question {
    /// The next fires as RFC 3339; what the question leaves open is taken from `args`.
    fn fires(&self, args: &NextArgs) -> Result<Vec<String>, ScheduleError> {
        let schedule = CronSchedule::parse(&self.cron)
            .map_err(|error| ScheduleError::Cron { expression: self.cron.clone(), error })?;
        let name = self.zone.as_deref().unwrap_or(&args.zone);
        let zone = Tz::from_str(name).map_err(|_| ScheduleError::Zone(name.to_owned()))?;
        let after = match self.after.as_deref().or(args.after.as_deref()) {
            Some(text) => parse_after(text, zone)?,
            None => Utc::now(),
        };
        let count = self.count.unwrap_or(args.count);
        if !(1..=MOST).contains(&count) {
            return Err(ScheduleError::Count(count));
        }
        let dst = DstPolicy { gap: self.gap.unwrap_or(args.gap), overlap: self.overlap.unwrap_or(args.overlap) };
        let next = |after: &i64| schedule.next_after(*after, zone, dst);
        Ok(std::iter::successors(next(&after.timestamp_millis()), next)
            .take(count as usize)
            .filter_map(|fire| zone.timestamp_millis_opt(fire).single())
            .map(|fire| fire.to_rfc3339_opts(SecondsFormat::Secs, true))
            .collect())
    }
}

/// The instant of a time with an offset, or of a local time of `zone`.
///
/// Of a local time that exists twice it is the first one, so no fire is missed. For one that does not exist
/// it is the last millisecond before the clock is put forward: everything at or after that is later on the
/// wall clock than the time that was asked for.
fn parse_after(text: &str, zone: Tz) -> Result<DateTime<Utc>, ScheduleError> {
    if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
        return Ok(instant.to_utc());
    }
    let wrong = || ScheduleError::After(text.to_owned());
    let local: NaiveDateTime = text.parse().map_err(|_| wrong())?;
    if let Some(instant) = zone.from_local_datetime(&local).earliest() {
        return Ok(instant.to_utc());
    }
    GapInfo::new(&local, &zone)
        .and_then(|gap| gap.end)
        .and_then(|end| end.to_utc().checked_sub_signed(TimeDelta::milliseconds(1)))
        .ok_or_else(wrong)
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
