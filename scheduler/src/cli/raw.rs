//! `carillon api`: any operation of the API, for those without a command of their own.

use super::client::Client;
use super::files::read_text;
use super::node::ApiRequest;
use anyhow::Context;
use clap::Args;
use reqwest::Method;
use std::path::PathBuf;

/// Largest body, bytes: what a node accepts.
const BODY_BYTES_MAX: u64 = 8 << 20;

/// A request.
#[derive(Debug, Args)]
pub struct RawArgs {
    /// GET, POST, PUT or DELETE.
    #[arg(ignore_case = true, value_parser = ["GET", "POST", "PUT", "DELETE"])]
    method: String,
    /// The path below /api/v1, optionally with a query: '/task-logs?limit=5'.
    path: String,
    /// File that holds the body in JSON; - is standard input.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl RawArgs {
    /// Sends it, and shows the response.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let method = Method::from_bytes(self.method.to_uppercase().as_bytes()).context("there is no such method")?;
        let mut ask = ApiRequest::raw(method, &self.path);
        if let Some(file) = self.file {
            let (text, place) = read_text(&file, BODY_BYTES_MAX)?;
            ask = ask.body(serde_json::from_str(&text).with_context(|| format!("{place} is not JSON"))?);
        }
        client.show(ask).await
    }
}
