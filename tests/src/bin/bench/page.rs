//! `scripts/bench page`: the figures of one version as a page without anything from elsewhere, and a picture for the README.

mod axes;
mod cpu;
mod html;
mod input;
mod lateness;
mod ramp;
#[cfg(test)]
mod samples;
mod style;
mod svg;

use anyhow::{Context, Result};
use clap::Parser;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How wide the picture for the README is.
const PICTURE_WIDTH: f64 = 880.0;

/// Makes a page of figures that were measured before.
#[derive(Debug, Parser)]
#[command(name = "scripts/bench page", bin_name = "scripts/bench page")]
struct Options {
    /// Folder that index.html and lateness.svg are written into.
    #[arg(long, value_name = "FOLDER", default_value = "docs/benchmarks")]
    into: PathBuf,
    /// What `scripts/bench --output json` printed, a file for each run, and life.json.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Does it, by these words of the command line.
pub fn make(words: impl Iterator<Item = OsString>) -> Result<()> {
    let options = Options::parse_from(std::iter::once("scripts/bench page".into()).chain(words));
    let input = input::read(&options.files)?;
    for word in &input.left_out {
        eprintln!("bench: {word}");
    }
    let page = html::page(&input);
    let rates = lateness::best(lateness::by_rate(&input), lateness::PANELS_MAX);
    write(&options.into.join("index.html"), &page)?;
    if !rates.is_empty() {
        write(&options.into.join("lateness.svg"), &lateness::picture(&rates, PICTURE_WIDTH, style::PICTURE))?;
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}
