//! What was measured, of which version, and when: so that a page can say it.

use crate::options::{Options, Protocol, Rate};
use chrono::Utc;
use serde_json::{Value, json};
use std::process::Command;

/// The version that is measured.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Of figures that are there now.
pub fn of(options: &Options) -> Value {
    json!({ "what": what(options), "version": VERSION, "commit": commit(), "date": Utc::now().format("%F").to_string() })
}

fn what(options: &Options) -> &'static str {
    match options {
        Options { growth: true, .. } => "growth",
        Options { life: true, .. } => "life",
        Options { ramp: Some(_), .. } => "ramp",
        Options { lists: Some(_), .. } => "lists",
        Options { overload: Some(_), .. } => "overload",
        Options { recovery: Some(_), .. } => "recovery",
        Options { node_death: Some(_), .. } => "node death",
        Options { burst: Some(_), .. } => "burst",
        Options { idle_tasks: Some(_), .. } => "idle tasks",
        Options { rate: Some(Rate::Fixed(_)), .. } if options.protocol() == Protocol::XxlJob => "rate of xxl-job",
        Options { rate: Some(Rate::Fixed(_)), .. } => "rate",
        _ => "highest rate",
    }
}

/// With a mark if files differ from it; nothing outside of a checkout.
fn commit() -> Option<String> {
    let said = Command::new("git").args(["describe", "--always", "--dirty", "--exclude=*"]).output().ok()?;
    let word = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    (said.status.success() && !word.is_empty()).then_some(word)
}
