//! `carillon import`: what another scheduler has, read of its database, and sent to the API of a node.
//!
//! What becomes of each row, [`crate::domain::xxljob`] and [`crate::domain::horace`] say. Everything that is written here goes
//! through operations that people have, too: so permissions, checks and the audit are theirs. An import is repeated after
//! whatever broke it off, and as often as the other scheduler has changed: tasks are known again by their origin.

mod apply;
mod args;
mod both;
mod calls;
mod here;
mod old_runs;
mod people;
mod plan;
mod report;
mod scripts;
mod source;
mod switch;
mod undo;

use super::client::{Client, json, print};
use crate::cli::client::Output;
use crate::cli::node::Node;
use crate::domain::import::ImportDocument;
use crate::domain::{horace, xxljob};
use args::{How, SwitchArgs};
use clap::{Args, Subcommand};
use report::Report;
use source::SourceArgs;

/// What can be imported.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// Import groups, jobs and users of an xxl-job (2.2.0 to 3.4.2); it starts nothing, and can be repeated.
    XxlJob(XxlJobArgs),
    /// Import tenants, apps, tasks and users of a horace cron-job; it starts nothing, and can be repeated.
    Horace(HoraceArgs),
    /// Stop jobs of an xxl-job there and start their imported tasks here, so that no fire is missed and none comes twice.
    Switch(SwitchArgs),
    /// Stop tasks here and give their jobs back to the xxl-job, in the same way.
    Undo(SwitchArgs),
}

/// `carillon import xxl-job`
#[derive(Debug, Args)]
pub struct XxlJobArgs {
    /// Where it is read.
    #[command(flatten)]
    source: SourceArgs,
    /// Name of the source: tasks are known again by it and their id there.
    #[arg(long = "source", value_name = "NAME", default_value = "xxl-job")]
    name: String,
    /// The tenant that gets everything; it is made if it is not there.
    #[arg(long)]
    tenant: String,
    /// Only this group, by the app name of its executors; can be given several times.
    #[arg(long = "group", value_name = "APPNAME")]
    groups: Vec<String>,
    /// Also bring runs of the last days over that have ended, 1 to 3,650; the tasks have to be imported.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=3_650))]
    runs: Option<u16>,
    /// Bring scripts (GLUE) along with their versions, and allow them in the apps that have any.
    #[arg(long)]
    with_scripts: bool,
    /// How it is done.
    #[command(flatten)]
    how: How,
}

/// `carillon import horace`
#[derive(Debug, Args)]
pub struct HoraceArgs {
    /// Where it is read.
    #[command(flatten)]
    source: SourceArgs,
    /// Name of the source: tasks are known again by it and their id there.
    #[arg(long = "source", value_name = "NAME", default_value = "horace")]
    name: String,
    /// Only this tenant, by the word that executors name; can be given several times.
    #[arg(long = "tenant", value_name = "TENANT")]
    tenants: Vec<String>,
    /// How it is done.
    #[command(flatten)]
    how: How,
}

impl Import {
    /// Runs the command.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let report = match self {
            Self::XxlJob(args) => args.run(&client.node).await?,
            Self::Horace(args) => apply::run(&client.node, args.read().await?, &args.how, false).await?,
            Self::Switch(args) => return switch::run(client, &args).await,
            Self::Undo(args) => return undo::run(client, &args).await,
        };
        print(&match client.output {
            Output::Json => json(&serde_json::to_value(&report)?)?,
            Output::Table => report.text(),
        })
    }
}

impl XxlJobArgs {
    async fn run(&self, node: &Node) -> anyhow::Result<Report> {
        let mut report = apply::run(node, self.read().await?, &self.how, self.with_scripts).await?;
        if let Some(days) = self.runs.filter(|_| !self.how.dry_run) {
            report.runs = Some(old_runs::bring(node, &self.source, (&self.name, &self.tenant), days).await?);
        }
        Ok(report)
    }

    async fn read(&self) -> anyhow::Result<ImportDocument> {
        let options = xxljob::ImportOptions {
            source: self.name.clone(),
            tenant: self.tenant.clone(),
            zone: self.source.time_zone,
            groups: self.groups.clone(),
            with_scripts: self.with_scripts,
        };
        let mut database = self.source.connect().await?;
        let read = self.source.xxl_job(&mut database).await?;
        database.close().await;
        Ok(xxljob::document(&read, &options)?)
    }
}

impl HoraceArgs {
    async fn read(&self) -> anyhow::Result<ImportDocument> {
        let options = horace::HoraceOptions {
            source: self.name.clone(),
            zone: self.source.time_zone,
            tenants: self.tenants.clone(),
        };
        let mut database = self.source.connect().await?;
        let mut snapshot = database.snapshot().await?;
        let read = snapshot.horace(options.zone).await?;
        snapshot.end().await?;
        database.close().await;
        Ok(horace::document(&read, &options)?)
    }
}
