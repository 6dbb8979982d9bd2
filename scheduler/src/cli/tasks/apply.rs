//! `carillon tasks apply`.

use super::diff;
use super::document::{Document, Format};
use super::handlers;
use super::orphans::Orphan;
use crate::cli::client::{Client, Output, json, print};
use crate::cli::exit::Exit;
use crate::cli::files::read_text;
use crate::cli::node::{ApiRequest, Refusal, RefusedField};
use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `carillon tasks apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The task file (.toml, .yaml, .yml or .json); - is standard input.
    #[arg(short, long, value_name = "FILE")]
    pub file: PathBuf,
    /// Format of the file, overriding its name; toml for standard input.
    #[arg(long)]
    pub format: Option<Format>,
    /// Only show what would change.
    #[arg(long)]
    pub dry_run: bool,
    /// Delete the tasks of the file's apps that are not in the file; --dry-run shows them.
    #[arg(long)]
    pub prune: bool,
    /// With --dry-run: exit with 3 if something would change.
    #[arg(long, requires = "dry_run")]
    pub exit_code: bool,
}

/// Largest task file, bytes: what a node accepts.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Applies a file, or shows what it would change.
pub async fn run(client: &Client, args: &ApplyArgs) -> anyhow::Result<ExitCode> {
    let (text, place) = read_text(&args.file, BYTES_MAX)?;
    let format = format(args)?;
    let document = Document::parse(&text, format)
        .map_err(|error| anyhow!("{place} is not {}; nothing was changed\n{}", format.name(), indented(&error)))?;
    let lines = document.lines;
    let ask = ApiRequest::post(["tasks", "apply"]).with("dry_run", args.dry_run.then_some(true));
    let file = Value::Object(document.fields);
    let answer = client.node.ask(&ask.body(file.clone())).await?;
    let answer = answer.map_err(|refusal| {
        let message = refused(&place, &lines, &refusal);
        refusal.in_words(message)
    })?;
    // Only fetched where they matter: an app may have many tasks.
    let orphans = if args.dry_run || args.prune { Orphan::all(client, &file, &answer).await? } else { Vec::new() };
    if !args.dry_run {
        for orphan in &orphans {
            orphan.delete(client).await?;
        }
    }
    print(&match client.output {
        Output::Json => json(&with_orphans(&answer, &orphans))?,
        Output::Table => {
            let read = serde_json::from_value(answer.clone()).context("the node's answer cannot be understood")?;
            let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            let end = match (args.prune, args.dry_run) {
                (true, false) => "deleted: the file does not name it",
                (true, true) => "would be deleted: the file does not name it",
                (false, _) => "is not in the file; --prune deletes it",
            };
            let orphans = orphans.iter().map(|orphan| orphan.line(end)).collect::<String>();
            orphans + &diff::show(&read, coloured)
        }
    })?;
    handlers::warn(client, answer["tasks"].as_array().into_iter().flatten()).await?;
    let changes = ["created", "changed"].iter().any(|count| answer.get(*count) != Some(&Value::from(0)));
    let is_different = changes || (args.prune && !orphans.is_empty());
    Ok(if args.exit_code && is_different { Exit::Different.into() } else { ExitCode::SUCCESS })
}

/// The response as scripts get it; with `orphans` if there are any.
fn with_orphans(answer: &Value, orphans: &[Orphan]) -> Value {
    let mut answer = answer.clone();
    if let Some(fields) = answer.as_object_mut().filter(|_| !orphans.is_empty()) {
        fields.insert("orphans".to_owned(), orphans.iter().map(Orphan::json).collect());
    }
    answer
}

fn format(args: &ApplyArgs) -> anyhow::Result<Format> {
    let named = args.format.or_else(|| Format::of(&args.file));
    let standard = || (args.file == Path::new("-")).then_some(Format::Toml);
    named.or_else(standard).with_context(|| {
        format!("{}: .toml, .yaml, .yml and .json are known; name the format with --format", args.file.display())
    })
}

/// Each refusal on a line of its own, as compilers write them: `file:line: field: message`.
fn refused(place: &str, lines: &[usize], refusal: &Refusal) -> String {
    let mut text = format!("{place} is refused: {}", refusal.detail);
    for RefusedField { field, message } in &refusal.errors {
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
