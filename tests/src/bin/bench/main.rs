//! `scripts/bench`: what a node sustains, how late handlers start, and what a fire costs.
//!
//! Every figure is read from the database, from the handler or from the kernel; see
//! `docs/benchmarks.md` for the method.

mod burst;
mod compare;
mod counters;
mod database;
mod growth;
mod idle;
mod install;
mod life;
mod life_counts;
mod lists;
mod options;
mod overload;
mod proc;
mod profile;
mod records;
mod recovery;
mod report;
mod run;
mod search;
mod server;
mod stand;
mod steady;
mod tasks;
mod wal;
mod work;

use anyhow::Result;
use clap::Parser;
use install::Purpose;
use options::{Options, Output, Rate};
use run::Plan;
use serde_json::Value;
use server::Server;
use stand::Bench;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    let told = match measure(&options).await {
        Ok(figures) => tell(&options, &figures),
        Err(error) => Err(error),
    };
    told.unwrap_or_else(|error| {
        eprintln!("scripts/bench: {error:#}");
        ExitCode::FAILURE
    })
}

fn tell(options: &Options, figures: &Value) -> Result<ExitCode> {
    if let Some(file) = &options.accept {
        compare::accept(file, figures)?;
    } else if let Some(file) = &options.compare {
        return compare::with(file, figures);
    } else if options.output == Output::Json {
        println!("{figures:#}");
    } else if options.life {
        compare::print_table(figures)?;
    } else {
        report::print_table(figures);
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure(options: &Options) -> Result<Value> {
    let purpose = match options {
        Options { life: true, .. } => Purpose::Counts,
        Options { profile: true, .. } => Purpose::Profile,
        _ => Purpose::Rates,
    };
    let bench = Bench { server: Server::start(options.database, purpose).await?, programs: options.programs.clone() };
    let mut figures = figures(options, &bench).await?;
    figures["database"] = serde_json::to_value(options.database)?;
    figures["database_settings"] = bench.server.settings().await?;
    figures["overrides"] = stand::overrides().into_iter().collect();
    Ok(figures)
}

async fn figures(options: &Options, bench: &Bench) -> Result<Value> {
    let seconds = options.seconds;
    if options.growth.is_wanted {
        return growth::measure(bench, &options.growth).await;
    }
    if options.life {
        return life::measure(bench).await;
    }
    if options.hold {
        return lists::hold(bench, options.lists.unwrap_or_default()).await;
    }
    if let Some(logs) = options.lists {
        return lists::measure(bench, logs).await;
    }
    if let Some(rate) = options.overload {
        return overload::measure(bench, overload::Plan { rate, seconds }).await;
    }
    if let Some(rate) = options.recovery {
        return recovery::measure(bench, rate).await;
    }
    if let Some(runs) = options.burst {
        let (variant, nodes) = (options.variant, options.nodes);
        return burst::measure(bench, burst::Plan { runs, variant, nodes, seconds }).await;
    }
    match (options.idle_tasks, options.rate) {
        (Some(tasks), _) => idle::measure(bench, tasks, seconds).await,
        (None, Some(Rate::Fixed(rate))) => Ok(report::of_run(&run::measure(bench, Plan::full(rate, seconds)).await?)),
        (None, _) => search::measure(bench, seconds).await,
    }
}

/// Tells the person who waits.
fn progress(text: &str) {
    eprintln!("bench: {text}");
}
