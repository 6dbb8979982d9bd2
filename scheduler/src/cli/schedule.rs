//! `carillon schedule next`: when will this schedule fire, when will it not, and why?
//!
//! It answers from its arguments alone, without a server or a database, so an operator can try a schedule before saving
//! it; with `--stdin` it answers line by line, for scripts and for comparing whole sets of schedules with another
//! scheduler.

mod args;
mod error;
mod question;
mod words;

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand};

use crate::domain::calendar::{Calendar, CalendarSpec};
use crate::domain::schedule::Kind;
use question::{OutputLine, Question};

pub use args::NextArgs;
pub use error::ScheduleError;

/// Largest calendar file, bytes.
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
        let answer = answer(args, calendar, &line).unwrap_or_else(|error| OutputLine::Refused {
            refused: match error {
                ScheduleError::Cron { error, .. } => error.to_string(),
                error => error.to_string(),
            },
        });
        serde_json::to_writer(&mut *out, &answer)?;
        out.write_all(b"\n")?;
        // A caller on a pipe may wait for this answer before it sends the next question.
        out.flush()?;
        line.clear();
    }
    Ok(())
}

fn answer(args: &NextArgs, calendar: Option<&Arc<Calendar>>, line: &[u8]) -> Result<OutputLine, ScheduleError> {
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
    Ok(OutputLine::Fires { next, ends, preview })
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
