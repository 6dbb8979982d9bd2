//! Clusters that the command knows by a name: where a node is, and how to sign in there.

use super::credentials::config_folder;
use super::files::read_text;
use anyhow::{Context as _, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Largest file of contexts, bytes.
const BYTES_MAX: u64 = 1 << 20;

/// Its name, in the folder of the command.
const FILE: &str = "contexts.toml";

/// A cluster by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Address of a node.
    pub url: String,
    /// Certificate authorities to trust.
    #[serde(default)]
    pub ca_file: Option<PathBuf>,
    /// File that holds an API token.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contexts {
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// The context of that name, out of the file of contexts.
///
/// # Errors
/// There is none; the file cannot be read.
pub fn find(name: &str) -> anyhow::Result<Context> {
    let folder = config_folder()?.context("neither XDG_CONFIG_HOME nor HOME says where contexts are; set one")?;
    let file = folder.join(FILE);
    let unusable = || format!("context `{name}` is not found: the contexts in {} cannot be read", file.display());
    let (text, place) = read_text(&file, BYTES_MAX).with_context(unusable)?;
    let mut all: Contexts = toml::from_str(&text).with_context(unusable)?;
    if let Some(found) = all.contexts.remove(name) {
        return Ok(found);
    }
    let known: Vec<&str> = all.contexts.keys().map(String::as_str).collect();
    bail!("there is no context `{name}` in {place}; it has: {}", known.join(", "))
}
