//! `scripts/bench`: what a node sustains, how late handlers start, and what a fire costs.
//!
//! Every figure is read from the database, from the handler or from the kernel; see
//! `docs/benchmarks.md` for the method.

mod burst;
mod counters;
mod database;
mod growth;
mod idle;
mod install;
mod lists;
mod options;
mod proc;
mod records;
mod report;
mod run;
mod search;
mod server;
mod stand;
mod tasks;

use anyhow::Result;
use clap::Parser;
use options::{Options, Output, Rate};
use run::Plan;
use serde_json::Value;
use server::Server;
use stand::Bench;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    match measure(&options).await {
        Ok(figures) if options.output == Output::Json => println!("{figures:#}"),
        Ok(figures) => report::print_table(&figures),
        Err(error) => {
            eprintln!("scripts/bench: {error:#}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

async fn measure(options: &Options) -> Result<Value> {
    let bench = Bench { server: Server::start(options.database).await?, programs: options.programs.clone() };
    let mut figures = match (options.burst, options.idle_tasks, options.rate) {
        _ if options.growth.growth => growth::measure(&bench, &options.growth).await?,
        _ if options.hold => lists::hold(&bench, options.lists.unwrap_or_default()).await?,
        _ if options.lists.is_some() => lists::measure(&bench, options.lists.unwrap_or_default()).await?,
        (Some(runs), ..) => {
            let (variant, nodes, seconds) = (options.variant, options.nodes, options.seconds);
            burst::measure(&bench, burst::Plan { runs, variant, nodes, seconds }).await?
        }
        (None, Some(tasks), _) => idle::measure(&bench, tasks, options.seconds).await?,
        (None, None, Some(Rate::Fixed(rate))) => {
            report::of_run(&run::measure(&bench, Plan::full(rate, options.seconds)).await?)
        }
        (None, None, _) => search::measure(&bench, options.seconds).await?,
    };
    figures["database"] = serde_json::to_value(options.database)?;
    figures["database_settings"] = bench.server.settings().await?;
    figures["overrides"] = stand::overrides().into_iter().collect();
    Ok(figures)
}

/// Tells the person who waits.
fn progress(text: &str) {
    eprintln!("bench: {text}");
}
