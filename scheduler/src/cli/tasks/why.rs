//! `carillon tasks why`, `carillon why`.

use crate::cli::client::{Client, Output, print};
use crate::cli::find;
use crate::cli::node::ApiRequest;
use crate::cli::table::escaped;
use clap::Args;

/// What to explain.
#[derive(Debug, Args)]
pub struct WhyArgs {
    /// The task's id, or tenant/app/name.
    task: String,
    /// When, on the clock of the task's zone: 03:00 (the latest one), 2026-11-22 03:00; or RFC 3339, or epoch ms.
    #[arg(long, value_name = "TIME")]
    at: String,
}

impl WhyArgs {
    /// Asks, and prints the answer, one sentence per line.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let Self { task, at } = self;
        let ask = ApiRequest::get(["tasks", &find::task(&client.node, &task).await?, "why"]).with("at", Some(at));
        let answer = client.node.answer(ask).await?;
        if client.output == Output::Json {
            return client.one(&answer);
        }
        let sentences = answer["findings"].as_array().into_iter().flatten();
        let sentences = sentences.filter_map(|finding| finding["message"].as_str());
        print(&sentences.map(|sentence| escaped(sentence) + "\n").collect::<String>())
    }
}
