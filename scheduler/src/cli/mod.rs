//! The command line: `carillon serve`, `migrate`, `tasks`, `schedule next`, `config check`.

pub mod schedule;
pub mod tasks;

use crate::node;
use crate::settings::{LogFormat, LogSettings, Settings};
use crate::store::SqlStore;
use crate::tls::Listener;
use anyhow::Context;
use clap::{Parser, Subcommand};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A multi-tenant cron dispatcher.
#[derive(Debug, Parser)]
#[command(name = "carillon", version, about)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scheduler node.
    Serve(ConfigArgs),
    /// Bring the database's schema up to date.
    Migrate(ConfigArgs),
    /// Apply and export task files.
    Tasks(tasks::TasksArgs),
    /// Look at schedules.
    Schedule(schedule::ScheduleArgs),
    /// Look at the configuration.
    Config(ConfigCommandArgs),
}

/// Where the settings are.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// Configuration file; without it conf/application.toml is read if it exists. The environment
    /// (`CARILLON__SECTION__KEY`) overrides it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// `carillon config …`
#[derive(Debug, clap::Args)]
pub struct ConfigCommandArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// `carillon config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the settings without starting anything.
    Check(ConfigArgs),
}

/// Carries the command out; answers what the process exits with.
///
/// # Errors
/// What went wrong, where, and how to mend it.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Tasks(args) => return runtime()?.block_on(tasks::run(&args)),
        Command::Schedule(args) => {
            let schedule::ScheduleCommand::Next(next) = &args.command;
            let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
            let mut stderr = std::io::stderr();
            schedule::run(next, &mut stdout.lock(), &mut stderr, &mut stdin.lock())
                .map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        Command::Config(ConfigCommandArgs { command: ConfigCommand::Check(args) }) => {
            let settings = Settings::load(args.config.as_deref())?;
            Listener::open(&settings.server.tls)?;
            println!("the configuration is usable");
        }
        Command::Migrate(args) => {
            let settings = Settings::load(args.config.as_deref())?;
            start_logging(&settings.log)?;
            runtime()?.block_on(migrate(&settings))?;
        }
        Command::Serve(args) => {
            let settings = Settings::load(args.config.as_deref())?;
            start_logging(&settings.log)?;
            runtime()?.block_on(async {
                let shutdown = shutdown_signal()?;
                node::serve(settings, shutdown).await
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    let unusable = || format!("the database {} cannot be used (database.url)", settings.database.place());
    let store = SqlStore::connect(&settings.database).await.with_context(unusable)?;
    let steps = store.migrate().await.context("the schema cannot be brought up to date")?;
    store.close().await;
    println!("{steps} step(s) applied; the schema is up to date");
    Ok(())
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the async runtime cannot start")
}

/// Whoever sends nonsense makes this target complain.
const STRANGERS: &str = "actix_http::h1::dispatcher";

fn start_logging(settings: &LogSettings) -> anyhow::Result<()> {
    // What strangers send is no error of the node, and they must not fill its log.
    let filter = EnvFilter::try_new(format!("{},{STRANGERS}=off", settings.level))
        .with_context(|| format!("log.level: `{}` is no level or filter", settings.level))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let started = match settings.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))
}

/// Completes at the first SIGTERM or SIGINT.
fn shutdown_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be watched")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be watched")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM"),
            _ = interrupt.recv() => tracing::info!("SIGINT"),
        }
    })
}
