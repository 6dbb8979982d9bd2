//! Secrets that callers carry: random, told apart by their first letters, stored as hashes only.

use carillon_protocol::sign::{random_hex, sha256_hex};

/// What session tokens begin with.
pub const SESSION_PREFIX: &str = "cs_";

/// What API tokens begin with, so that scanners of repositories find lost ones.
pub const TOKEN_PREFIX: &str = "carillon_";

/// A new secret of 256 random bits.
pub fn new_secret(prefix: &str) -> Result<String, getrandom::Error> {
    Ok(format!("{prefix}{}", random_hex::<32>()?))
}

/// What is stored of a secret: lower-case hex SHA-256. The secrets have 256 random bits, so that a
/// slow hash would add nothing.
pub fn hash_of(secret: &str) -> String {
    sha256_hex(secret.as_bytes())
}

/// The token against forged requests of a session: who knows it can read what the node answers, and
/// so is the page itself.
pub fn csrf_of(session_token: &str) -> String {
    hash_of(&format!("csrf:{session_token}"))
}
