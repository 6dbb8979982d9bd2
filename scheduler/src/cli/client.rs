//! What the commands have in common: a node, and how its responses are shown.

use super::exit::Unread;
use super::node::{ApiRequest, Node, NodeArgs};
use super::table::{Column, sheet, table};
use super::terminal;
use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;
use std::io::{ErrorKind, Write as _};

/// How responses are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Free text for people to read.
    #[value(alias = "text")]
    Table,
    /// The node's response, for scripts: one JSON document; for a list, one array.
    Json,
}

/// Arguments of all commands that call a node.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// The node.
    #[command(flatten)]
    pub node: NodeArgs,
    /// How to show the response.
    #[arg(long, value_name = "FORMAT", default_value = "table", global = true)]
    pub output: Output,
}

/// Commands for one kind of object.
#[derive(Debug, Args)]
pub struct Resource<C: Subcommand> {
    /// What they have in common.
    #[command(flatten)]
    pub client: ClientArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: C,
}

/// A command without subcommands.
#[derive(Debug, Args)]
pub struct SingleCommand<A: Args> {
    /// What it has in common with others.
    #[command(flatten)]
    pub client: ClientArgs,
    /// Its own.
    #[command(flatten)]
    pub args: A,
}

/// How much of a list to show.
#[derive(Debug, Args)]
pub struct ListLimit {
    /// Show at most this many.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// What an edit relies on.
#[derive(Debug, Args)]
pub struct IfMatch {
    /// Edit only if it still has this revision.
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<i64>,
}

/// A node, and how its answers are shown.
pub struct Client {
    /// The node.
    pub node: Node,
    /// How.
    pub output: Output,
}

impl Client {
    /// As the arguments say.
    pub fn of(args: &ClientArgs) -> anyhow::Result<Self> {
        let mut node = Node::of(&args.node)?;
        node.shows_documents = args.output == Output::Json;
        Ok(Self { node, output: args.output })
    }

    /// Asks for a list that comes page by page, and shows it.
    pub async fn pages(
        &self,
        ask: ApiRequest,
        cursor: &'static str,
        most: &ListLimit,
        columns: &[Column],
    ) -> anyhow::Result<()> {
        self.list(ask, Some(cursor), most, columns).await
    }

    /// Asks for a list that comes as a whole, and shows it.
    pub async fn whole(&self, ask: ApiRequest, most: &ListLimit, columns: &[Column]) -> anyhow::Result<()> {
        self.list(ask, None, most, columns).await
    }

    async fn list(
        &self,
        ask: ApiRequest,
        cursor: Option<&'static str>,
        most: &ListLimit,
        columns: &[Column],
    ) -> anyhow::Result<()> {
        let (items, is_more) = self.node.list(&ask, cursor, most.limit as usize).await?;
        self.rows(&items, columns)?;
        hint(&items, is_more);
        Ok(())
    }

    /// Shows things as a table.
    pub fn rows(&self, items: &[Value], columns: &[Column]) -> anyhow::Result<()> {
        print(&match self.output {
            Output::Json => json(&Value::Array(items.to_vec()))?,
            Output::Table => table(columns, items, terminal::width()),
        })
    }

    /// Sends the request, and shows the response.
    pub async fn show(&self, ask: ApiRequest) -> anyhow::Result<()> {
        self.one(&self.node.answer(ask).await?)
    }

    /// Shows one thing.
    pub fn one(&self, value: &Value) -> anyhow::Result<()> {
        match self.output {
            // There is nothing to show.
            Output::Json if value.is_null() => Ok(()),
            Output::Json => print(&json(value)?),
            Output::Table => print(&sheet(value)),
        }
    }

    /// Sends a request that changes something, and reports success.
    pub async fn done(&self, ask: ApiRequest, says: &str) -> anyhow::Result<()> {
        let answer = self.node.answer(ask).await?;
        self.says(&answer, says)
    }

    /// Reports in words; scripts get the response.
    pub fn says(&self, answer: &Value, says: &str) -> anyhow::Result<()> {
        match self.output {
            Output::Json => self.one(answer),
            Output::Table => print(&format!("{says}\n")),
        }
    }
}

/// Says that a list may go on.
pub fn hint(items: &[Value], is_more: bool) {
    if is_more {
        eprintln!("carillon: there may be more than these {}; use --limit to show more", items.len());
    }
}

/// A document of its own.
pub fn json(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Writes to standard output.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Err(Unread.into()),
        written => written.context("standard output cannot be written"),
    }
}
