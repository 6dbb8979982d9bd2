//! `scripts/chaos`: real nodes, executors and database servers; faults of a seed; and a checker of what came of it.
//!
//! The plan ([`plan`]) follows from the seed. [`stand`] raises everything, [`faults`] breaks it, [`edits`] changes tasks
//! meanwhile, and [`checker`] reads the rows, the executors' files and the API's answers.

// Futures around the futures of a database driver.
#![recursion_limit = "256"]
// A broken assumption of the driver should stop it where it is.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod catalog;
mod checker;
mod client;
mod collect;
mod edits;
mod faults;
mod figures;
mod history;
mod host;
mod links;
mod machine;
mod options;
mod origin;
mod plan;
mod run;
mod servers;
mod settle;
mod signals;
mod stand;
mod story;
#[cfg(test)]
mod ways;

use anyhow::Result;
use clap::Parser as _;
use options::{Options, Output};
use serde_json::json;
use std::process::ExitCode;
use story::Story;

/// Something was broken.
const BROKEN: u8 = 1;

/// The run could not be made.
const FAILED: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    if options.plan {
        println!("{:#}", run::plan_as_json(&options));
        return ExitCode::SUCCESS;
    }
    match measure(&options).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(BROKEN),
        Err(error) => {
            eprintln!("scripts/chaos: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Whether every promise was kept.
async fn measure(options: &Options) -> Result<bool> {
    let engine = options.database.name();
    let folder = options.folder.clone().unwrap_or_else(|| {
        let number = format!("{engine}-{}-{}", options.seed, carillon_tests::now_ms() / 1_000);
        std::path::Path::new("target/chaos").join(number)
    });
    let folder = std::path::absolute(folder)?;
    let story = Story::begin(&folder)?;
    eprintln!("chaos: {engine}, seed {}, {} s; {}", options.seed, options.seconds, folder.display());
    let (history, broken) = run::run(options, &story).await?;
    let figures = figures::of(&history, &broken);
    let is_kept = broken.is_empty();
    let place = folder.display().to_string();
    let shown = (!is_kept || options.keep).then_some(place.as_str());
    let line = figures::verdict(engine, options.seed, options.seconds, &figures, shown);
    let whole = json!({
        "database": engine, "seed": options.seed, "seconds": options.seconds, "only": options.only, "kept": is_kept,
        "figures": figures, "broken": broken, "folder": shown,
    });
    story.write("verdict.json", &format!("{whole:#}\n"));
    match options.output {
        Output::Line => println!("{line}"),
        Output::Json => {
            eprintln!("{line}");
            println!("{whole}");
        }
    }
    if shown.is_none() {
        // What is left behind is only in the way.
        let _ = std::fs::remove_dir_all(&folder);
    }
    Ok(is_kept)
}
