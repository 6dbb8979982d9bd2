//! The command line: nodes (`serve`, `migrate`, `config`), and clients of their API.
//!
//! The client commands have no rules of their own: they send their arguments to the API of a node, and show its
//! response.

mod apps;
mod audit;
mod backfills;
mod calendars;
mod client;
mod cluster;
mod clusters;
mod config;
mod contexts;
mod credentials;
mod encryption;
mod executors;
pub mod exit;
mod files;
mod find;
mod import;
mod instant;
mod keys;
mod login;
mod logs;
mod maintenance;
mod node;
mod quotas;
mod raw;
mod roles;
pub mod schedule;
mod statistics;
mod table;
pub mod tasks;
mod tenants;
mod terminal;
mod tokens;
mod users;

use crate::node::{Openings, unusable};
use crate::settings::{LogFormat, LogSettings, Settings};
use crate::store::SqlStore;
use anyhow::Context;
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use client::{Client, ClientArgs, Resource, SingleCommand};
use config::ConfigArgs;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// A multi-tenant cron dispatcher.
#[derive(Debug, Parser)]
#[command(name = "carillon", version, about, after_help = exit::HELP)]
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
    /// Check the configuration.
    Config(ConfigCommandArgs),
    /// Encrypt the secrets in the database.
    Encryption(encryption::EncryptionArgs),
    /// Say that the database was restored from a backup, best before the first node starts: what was due is held.
    Restored(ConfigArgs),
    /// Preview schedules.
    Schedule(schedule::ScheduleArgs),
    /// Print a shell completion script.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// Commands that call a node.
    #[command(flatten)]
    Asked(Box<Asked>),
}

/// The commands that call a node.
#[derive(Debug, Subcommand)]
pub enum Asked {
    /// Sign in at a node; the session is stored for later commands.
    Login(login::LoginArgs),
    /// End the stored session.
    Logout(node::NodeAddressArgs),
    /// Show who you are, and what you may do where.
    Whoami(ClientArgs),
    /// Work with tenants.
    Tenants(Resource<tenants::Tenants>),
    /// Work with apps.
    Apps(Resource<apps::Apps>),
    /// Work with the keys that executors sign with.
    Keys(Resource<keys::Keys>),
    /// Show and set a tenant's quotas.
    Quotas(Resource<quotas::Quotas>),
    /// Work with tasks and task files.
    Tasks(Resource<tasks::Tasks>),
    /// Run a task manually: `tasks run`.
    Run(SingleCommand<tasks::RunArgs>),
    /// Explain why a task ran around a time, or did not: `tasks why`.
    Why(SingleCommand<tasks::WhyArgs>),
    /// Show, follow and cancel runs.
    Logs(Resource<logs::Logs>),
    /// Cancel a run, or kill it if it is running: `logs cancel`.
    Kill(SingleCommand<logs::CancelArgs>),
    /// Show numbers of fires, their outcomes, lateness and duration.
    Statistics(SingleCommand<statistics::StatisticsArgs>),
    /// Work with calendars.
    Calendars(Resource<calendars::Calendars>),
    /// Run tasks for past times.
    Backfills(Resource<backfills::Backfills>),
    /// Suspend the tasks of a tenant for a time.
    Maintenance(Resource<maintenance::Maintenance>),
    /// Show and disable executors, and set their weights.
    Executors(Resource<executors::Executors>),
    /// Show nodes and their settings.
    Nodes(Resource<executors::Nodes>),
    /// Show other clusters.
    Clusters(Resource<clusters::Clusters>),
    /// Show times without any node, and decide about the past after a restore.
    Cluster(Resource<cluster::Cluster>),
    /// Work with users and their grants.
    Users(Resource<users::Users>),
    /// Work with roles.
    Roles(Resource<roles::Roles>),
    /// Work with API tokens.
    Tokens(Resource<tokens::Tokens>),
    /// Show and end your sessions.
    Sessions(Resource<tokens::Sessions>),
    /// Take over what another scheduler has: xxl-job, horace cron-job.
    Import(Resource<import::Import>),
    /// Search and verify the audit: who did what.
    Audit(Resource<audit::Audit>),
    /// Send any request to the API.
    Api(SingleCommand<raw::RawArgs>),
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

/// Runs the command; returns the exit code of the process.
///
/// # Errors
/// What went wrong, where, and how to fix it.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Asked(asked) => return runtime()?.block_on(asked.run()),
        Command::Schedule(args) => {
            let schedule::ScheduleCommand::Next(next) = &args.command;
            let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
            let mut stderr = std::io::stderr();
            schedule::run(next, &mut stdout.lock(), &mut stderr, &mut stdin.lock())
                .map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "carillon", &mut text);
            client::print(&String::from_utf8(text)?)?;
        }
        Command::Config(ConfigCommandArgs { command: ConfigCommand::Check(args) }) => {
            let settings = Settings::load(args.config.as_deref())?;
            log_filter(&settings.log)?;
            Openings::of(&settings)?;
            println!("the configuration is valid");
        }
        Command::Encryption(encryption::EncryptionArgs { command: encryption::EncryptionCommand::Rotate(args) }) => {
            let settings = Settings::load(args.config.as_deref())?;
            start_logging(&settings.log)?;
            runtime()?.block_on(encryption::rotate(&settings))?;
        }
        Command::Migrate(args) => {
            let settings = Settings::load(args.config.as_deref())?;
            start_logging(&settings.log)?;
            runtime()?.block_on(migrate(&settings))?;
        }
        Command::Restored(args) => {
            let settings = Settings::load(args.config.as_deref())?;
            start_logging(&settings.log)?;
            runtime()?.block_on(restored(&settings))?;
        }
        Command::Serve(args) => {
            let settings = Settings::load(args.config.as_deref())?;
            start_logging(&settings.log)?;
            runtime()?.block_on(async {
                let shutdown = shutdown_signal()?;
                crate::node::serve(settings, shutdown).await
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Asked {
    async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Login(args) => login::login(args).await?,
            Self::Logout(place) => login::logout(&place).await?,
            Self::Whoami(args) => login::whoami(&Client::of(&args)?).await?,
            Self::Tenants(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Apps(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Keys(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Quotas(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Tasks(Resource { client, command }) => return command.run(&Client::of(&client)?).await,
            Self::Run(SingleCommand { client, args }) => args.run(&Client::of(&client)?).await?,
            Self::Why(SingleCommand { client, args }) => args.run(&Client::of(&client)?).await?,
            Self::Logs(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Kill(SingleCommand { client, args }) => args.run(&Client::of(&client)?).await?,
            Self::Statistics(SingleCommand { client, args }) => args.run(&Client::of(&client)?).await?,
            Self::Calendars(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Backfills(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Maintenance(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Executors(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Nodes(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Cluster(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Clusters(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Users(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Roles(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Tokens(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Sessions(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Import(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Audit(Resource { client, command }) => command.run(&Client::of(&client)?).await?,
            Self::Api(SingleCommand { client, args }) => args.run(&Client::of(&client)?).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    let store = SqlStore::connect(&settings.database).await.with_context(|| unusable(settings))?;
    let steps = store.migrate().await.context("the schema cannot be brought up to date")?;
    store.close().await;
    println!("{steps} step(s) applied; the schema is up to date");
    Ok(())
}

async fn restored(settings: &Settings) -> anyhow::Result<()> {
    let store = SqlStore::connect(&settings.database).await.with_context(|| unusable(settings))?;
    cluster::restored(&store).await?;
    store.close().await;
    Ok(())
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("the async runtime cannot start")
}

/// Log target of malformed requests.
const MALFORMED_REQUESTS: &str = "actix_http::h1::dispatcher";

fn log_filter(settings: &LogSettings) -> anyhow::Result<EnvFilter> {
    // Malformed requests are not errors of the node, and unauthenticated callers must not fill its log.
    EnvFilter::try_new(format!("{},{MALFORMED_REQUESTS}=off", settings.level))
        .with_context(|| format!("log.level: `{}` is not a level or filter", settings.level))
}

fn start_logging(settings: &LogSettings) -> anyhow::Result<()> {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(log_filter(settings)?)
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
