//! `scripts/bench`: what a node sustains, how late handlers start, and what a fire costs.
//!
//! Every figure is read from the database, from the handler or from the kernel; see
//! `docs/benchmarks.md` for the method.

mod burst;
mod compare;
mod counters;
mod database;
mod fires;
mod growth;
mod idle;
mod install;
mod lateness;
mod life;
mod life_counts;
mod lists;
mod load;
mod node_death;
mod numbers;
mod old_logs;
mod options;
mod origin;
mod overload;
mod page;
mod plain;
mod plan;
mod proc;
mod profile;
mod ramp;
mod rates;
mod records;
mod recovery;
mod report;
mod rounding;
mod run;
mod search;
mod server;
mod stand;
mod steady;
mod tasks;
mod tenants;
mod wal;
mod window;
mod work;

use anyhow::{Error, Result};
use install::Purpose;
use options::{Options, Output, Rate};
use plan::Plan;
use serde_json::Value;
use server::Server;
use stand::Bench;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let told = if words.nth(1).is_some_and(|word| word == "page") {
        page::make(words).map(|()| ExitCode::SUCCESS)
    } else {
        let options = Options::read(std::env::args_os());
        match measure(&options).await {
            Ok(figures) => tell(&options, &figures),
            Err(error) => Err(error),
        }
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
        options if options.profile() => Purpose::Profile,
        _ => Purpose::Rates,
    };
    let bench = Bench { server: Server::start(options.database, purpose).await?, programs: options.programs.clone() };
    let mut figures = figures(options, &bench).await?;
    figures["measured"] = origin::of(options);
    figures["database"] = serde_json::to_value(options.database)?;
    figures["database_settings"] = bench.server.settings().await?;
    figures["overrides"] = stand::overrides().into_iter().collect();
    Ok(figures)
}

async fn figures(options: &Options, bench: &Bench) -> Result<Value> {
    let seconds = options.seconds();
    if options.growth {
        return growth::measure(bench, &options.growth_sizes()).await;
    }
    if let Some(ramp) = options.ramp {
        return ramp::measure(bench, ramp, seconds).await;
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
    if let Some(rate) = options.node_death {
        return node_death::measure(bench, rate, seconds).await;
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
        (None, Some(Rate::Fixed(rate))) => {
            let (load, retention) = (options.load().map_err(Error::msg)?, options.retention());
            let plan = Plan { load, retention, protocol: options.protocol(), ..Plan::full(rate, seconds) };
            Ok(report::of_run(&run::measure(bench, plan).await?))
        }
        (None, _) => search::measure(bench, seconds).await,
    }
}

/// Tells the person who waits.
fn progress(text: &str) {
    eprintln!("bench: {text}");
}
