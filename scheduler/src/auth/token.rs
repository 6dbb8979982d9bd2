//! The one token of the management API, until people have accounts: kept only as a hash in the
//! database, so that every node checks the same one.

use crate::store::{Result, SqlStore, StoreError, StoreErrorKind};
use carillon_protocol::sign::{matches, random_hex};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

/// Name of the setting that holds the hash.
const SETTING: &str = "api_token_sha256";

/// Checks the bearer token.
#[derive(Debug, Clone)]
pub struct ApiToken {
    hash: String,
}

impl ApiToken {
    /// The token that is configured; or the cluster's, made at its first start and written to
    /// `file` (readable by its owner only).
    pub async fn establish(store: &SqlStore, configured: &str, file: &Path) -> Result<Self> {
        if !configured.is_empty() {
            return Ok(Self { hash: hash(configured) });
        }
        let invalid = |detail: String| StoreError::new(StoreErrorKind::Invalid, "make the API token", detail);
        let fresh = random_hex::<32>().map_err(|error| invalid(error.to_string()))?;
        let stored = store.setting_or_insert(SETTING, &hash(&fresh)).await?;
        if stored == hash(&fresh) {
            write_private(file, &fresh)
                .map_err(|error| invalid(format!("cannot write api.token_file {}: {error}", file.display())))?;
            tracing::info!(file = %file.display(), "management API token generated");
        } else {
            tracing::info!(file = %file.display(), "management API token is the one made at the cluster's first start");
        }
        Ok(Self { hash: stored })
    }

    /// Whether `authorization` is `Bearer` and the right token.
    pub fn admits(&self, authorization: &str) -> bool {
        authorization.strip_prefix("Bearer ").is_some_and(|token| matches(&self.hash, &hash(token.trim())))
    }
}

fn hash(token: &str) -> String {
    Sha256::digest(token).iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn write_private(file: &Path, token: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    writeln!(options.open(file)?, "{token}")
}
