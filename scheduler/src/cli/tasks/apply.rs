//! `carillon tasks apply`.

use super::document::{Document, Format};
use super::node::{Node, Refusal};
use super::{ApplyArgs, Output, diff};
use crate::domain::FieldError;
use anyhow::{Context, anyhow, bail};
use reqwest::Method;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{IsTerminal, Read, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// A task file is not larger than this, in bytes: what a node takes.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What `--exit-code` exits with when something would change.
const DIFFERENT: u8 = 3;

/// Applies a file, or shows what it would change.
pub async fn run(args: &ApplyArgs) -> anyhow::Result<ExitCode> {
    let (text, place) = read(&args.file)?;
    let format = format(args)?;
    let document = Document::parse(&text, format)
        .map_err(|error| anyhow!("{place} is not {}; nothing was changed\n{}", format.name(), indented(&error)))?;
    let node = Node::of(&args.node)?;
    let query: &[(&str, &str)] = if args.dry_run { &[("dry_run", "true")] } else { &[] };
    let lines = document.lines;
    let answer = node.ask(Method::POST, "/tasks/apply", query, Some(&Value::Object(document.fields))).await?;
    let answer = answer.map_err(|refusal| anyhow!("{}", refused(&place, &lines, &refusal)))?;
    let out = match args.output {
        Output::Json => serde_json::to_string_pretty(&answer)? + "\n",
        Output::Text => {
            let read = serde_json::from_value(answer.clone()).context("the node's answer is not understood")?;
            let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            diff::show(&read, coloured)
        }
    };
    std::io::stdout().write_all(out.as_bytes()).context("the answer cannot be written")?;
    let is_same = ["created", "changed"].iter().all(|count| answer.get(*count) == Some(&Value::from(0)));
    Ok(if args.exit_code && !is_same { ExitCode::from(DIFFERENT) } else { ExitCode::SUCCESS })
}

/// The file's text, and what to call it.
fn read(file: &Path) -> anyhow::Result<(String, String)> {
    let is_standard = file == Path::new("-");
    let place = if is_standard { "standard input".to_owned() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let read = if is_standard {
        std::io::stdin().lock().take(BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(file).and_then(|open| open.take(BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("{place} cannot be read"))?;
    if bytes.len() as u64 > BYTES_MAX {
        bail!("{place} is larger than {BYTES_MAX} bytes (8 MiB); split it");
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        anyhow!("{place} is not UTF-8 (after {} bytes); save it as UTF-8", error.utf8_error().valid_up_to())
    })?;
    Ok((text, place))
}

fn format(args: &ApplyArgs) -> anyhow::Result<Format> {
    let named = args.format.or_else(|| Format::of(&args.file));
    let standard = || (args.file == Path::new("-")).then_some(Format::Toml);
    named.or_else(standard).with_context(|| {
        format!("{}: .toml, .yaml, .yml and .json are known; say how it is written with --format", args.file.display())
    })
}

/// Each refusal on a line of its own, as compilers write them: `file:line: field: message`.
fn refused(place: &str, lines: &[usize], refusal: &Refusal) -> String {
    let mut text = format!("{place} is refused: {}", refusal.detail);
    for FieldError { field, message } in &refusal.errors {
        let task = field.strip_prefix("task[").and_then(|rest| rest.split(']').next());
        let line = task.and_then(|at| at.parse::<usize>().ok()).and_then(|at| lines.get(at));
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {place}{line}: {field}: {message}");
    }
    text
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
