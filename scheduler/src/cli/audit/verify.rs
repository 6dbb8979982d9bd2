//! `carillon audit verify`: reads chains from their start and recomputes every hash.

use crate::cli::client::Client;
use crate::cli::files::{read_text, write_private};
use crate::cli::node::{ApiRequest, Node};
use crate::cli::table::{Column, field};
use crate::domain::access::PLATFORM;
use crate::domain::audit::{Chain, ChainPage};
use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Entries in one page.
const PAGE: u32 = 500;

/// Chains at most.
const CHAINS_MAX: usize = 100_000;

/// Largest file of heads, bytes.
const HEADS_BYTES_MAX: u64 = 64 << 20;

/// Version of the format of the file of heads.
const VERSION: u32 = 1;

/// What the platform's chain is called.
const PLATFORM_NAME: &str = "-";

const COLUMNS: &[Column] = &[
    field("CHAIN", "chain"),
    field("HOLDS", "holds"),
    field("ENTRIES", "seq"),
    field("HEAD", "hash"),
    field("WHY", "why"),
];

/// Which chains.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The chain of this tenant.
    #[arg(long, group = "which")]
    tenant: Option<String>,
    /// The chain of the tenant with this id, which may have been deleted.
    #[arg(long, group = "which", value_name = "ID")]
    tenant_id: Option<String>,
    /// The platform's chain.
    #[arg(long, group = "which")]
    platform: bool,
    /// All chains that you may read: the platform's and those of all tenants, including deleted ones. This is the
    /// default.
    #[arg(long, group = "which")]
    all: bool,
    /// Keep the heads of verified chains in this file, and detect chains that were cut off, rewritten or removed since
    /// it was last used. Keep it out of reach of anyone who can change the database.
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    head: Option<PathBuf>,
}

/// How far a chain was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// Whose chain, in words.
    chain: String,
    /// Place of the last entry.
    seq: i64,
    /// Its hash.
    hash: String,
}

/// Heads by the id of their tenant: a name may belong to another tenant later.
#[derive(Default, Serialize, Deserialize)]
struct Heads {
    version: u32,
    heads: BTreeMap<String, Head>,
}

/// A chain to verify.
struct Which {
    /// The request for it.
    ask: ApiRequest,
    /// Whose chain, in words; `None` when that is no longer known.
    name: Option<String>,
}

impl Which {
    fn platform() -> Self {
        Self { ask: ask_chain(), name: Some(PLATFORM_NAME.to_owned()) }
    }

    /// A chain of the node's list: by its id, since a name may belong to another tenant by now.
    fn listed(chain: &Value) -> Self {
        let Some(id) = chain["tenant_id"].as_str() else { return Self::platform() };
        Self { ask: ask_chain().with("tenant_id", Some(id)), name: chain["tenant"].as_str().map(str::to_owned) }
    }
}

fn ask_chain() -> ApiRequest {
    ApiRequest::get(["audit", "chain"]).with("limit", Some(PAGE))
}

impl VerifyArgs {
    /// Verifies them; an error when one is broken.
    pub async fn run(self, client: &Client) -> anyhow::Result<()> {
        let node = &client.node;
        let mut heads = self.head.as_deref().map(Heads::read).transpose()?.unwrap_or_default();
        let mut rows = Vec::new();
        for which in self.chains(node).await? {
            rows.push(verify(node, &which, &mut heads).await?);
        }
        if self.is_all() {
            rows.extend(heads.not_among(&rows));
        }
        client.rows(&rows, COLUMNS)?;
        if let Some(file) = &self.head {
            heads.write(file)?;
        }
        let broken = rows.iter().filter(|row| row["holds"] == false).count();
        if broken > 0 {
            bail!(
                "{broken} of {} chains are broken: the audit was tampered with, or its database is damaged",
                rows.len()
            );
        }
        Ok(())
    }

    fn is_all(&self) -> bool {
        self.tenant.is_none() && self.tenant_id.is_none() && !self.platform
    }

    async fn chains(&self, node: &Node) -> anyhow::Result<Vec<Which>> {
        if let Some(tenant) = &self.tenant {
            let name = Some(tenant.clone());
            return Ok(vec![Which { ask: ask_chain().with("tenant", Some(tenant)), name }]);
        }
        if let Some(id) = &self.tenant_id {
            return Ok(vec![Which { ask: ask_chain().with("tenant_id", Some(id)), name: None }]);
        }
        if self.platform {
            return Ok(vec![Which::platform()]);
        }
        let (chains, is_more) = node.list(&ApiRequest::get(["audit", "chains"]), Some("after"), CHAINS_MAX).await?;
        if is_more {
            bail!("there are more than {CHAINS_MAX} chains; verify them one by one (--tenant, --tenant-id)");
        }
        Ok(chains.iter().map(Which::listed).collect())
    }
}

/// A chain's row: whether it is intact, up to where, and why not.
async fn verify(node: &Node, which: &Which, heads: &mut Heads) -> anyhow::Result<Value> {
    let mut chain = Chain::default();
    let mut key = String::new();
    let why = follow(node, which, &mut chain, &mut key, heads).await?;
    let known = || heads.heads.get(&key).map(|head| head.chain.clone());
    // The file of heads may still know the name of a deleted tenant.
    let name = which.name.clone().or_else(known).unwrap_or_else(|| key.clone());
    let row = row(&key, &name, why.as_deref(), &chain);
    if why.is_none() {
        heads.heads.insert(key, Head { chain: name, seq: chain.seq, hash: chain.hash });
    }
    Ok(row)
}

fn row(key: &str, name: &str, why: Option<&str>, chain: &Chain) -> Value {
    json!({
        "chain": name,
        "tenant_id": Some(key).filter(|key| *key != PLATFORM_NAME),
        "holds": why.is_none(),
        "seq": chain.seq,
        "hash": chain.hash,
        "why": why,
    })
}

/// Follows a chain to its end; returns where it breaks. `key` becomes the id of its tenant.
async fn follow(
    node: &Node,
    which: &Which,
    chain: &mut Chain,
    key: &mut String,
    heads: &Heads,
) -> anyhow::Result<Option<String>> {
    loop {
        let answer = node.answer(which.ask.clone().with("after", Some(chain.seq))).await?;
        let page: ChainPage = serde_json::from_value(answer).context("the node's answer cannot be understood")?;
        *key = if page.tenant_id == PLATFORM { PLATFORM_NAME.to_owned() } else { page.tenant_id.to_string() };
        let head = heads.heads.get(key);
        let is_end = page.items.is_empty();
        let end = Chain { seq: page.last_seq, hash: page.last_hash };
        for entry in page.items {
            if let Err(why) = chain.take(&entry).and_then(|()| agrees(chain, head)) {
                return Ok(Some(why));
            }
        }
        if is_end {
            return Ok(ends_well(chain, &end, head).err());
        }
    }
}

/// Whether the entry just seen is the one that was verified before.
fn agrees(chain: &Chain, head: Option<&Head>) -> Result<(), String> {
    match head {
        Some(head) if head.seq == chain.seq && head.hash != chain.hash => {
            Err(format!("entry {}: it is not the one that was verified before; the chain was rewritten", head.seq))
        }
        _ => Ok(()),
    }
}

/// Whether the chain reaches as far as the node says, and as far as it was verified before.
fn ends_well(chain: &Chain, end: &Chain, head: Option<&Head>) -> Result<(), String> {
    if chain != end {
        return Err(format!(
            "it ends at entry {} ({}), where the node names entry {} ({}) as its end",
            chain.seq, chain.hash, end.seq, end.hash
        ));
    }
    match head {
        Some(head) if head.seq > chain.seq => {
            Err(format!("it ends at entry {}, but was verified up to entry {} before; it was cut", chain.seq, head.seq))
        }
        _ => Ok(()),
    }
}

impl Heads {
    fn read(file: &Path) -> anyhow::Result<Self> {
        if !file.exists() {
            return Ok(Self::default());
        }
        let unusable = || format!("the file of heads {} cannot be used (--head)", file.display());
        let (text, _) = read_text(file, HEADS_BYTES_MAX).with_context(unusable)?;
        let heads: Self = serde_json::from_str(&text).with_context(unusable)?;
        if heads.version != VERSION {
            bail!("{}: its version is {}, but {VERSION} is supported", unusable(), heads.version);
        }
        Ok(heads)
    }

    /// Rows of the chains that were verified before and no longer exist.
    fn not_among(&self, rows: &[Value]) -> Vec<Value> {
        let seen = |key: &str| rows.iter().any(|row| row["tenant_id"].as_str().unwrap_or(PLATFORM_NAME) == key);
        let gone = self.heads.iter().filter(|(key, _)| !seen(key));
        gone.map(|(key, head)| {
            let why = format!(
                "it was verified up to entry {} before, and no longer exists (or you may not read it)",
                head.seq
            );
            row(key, &head.chain, Some(&why), &Chain::default())
        })
        .collect()
    }

    fn write(&mut self, file: &Path) -> anyhow::Result<()> {
        self.version = VERSION;
        write_private(file, &(serde_json::to_string_pretty(self)? + "\n"))
    }
}
