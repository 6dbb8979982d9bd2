//! A node's management API, as the command asks it.

use super::NodeArgs;
use crate::domain::FieldError;
use crate::tls;
use anyhow::{Context, anyhow, bail};
use reqwest::{Certificate, Client, ClientBuilder, Method, StatusCode, redirect};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Where a node on this machine leaves its token.
const TOKEN_FILE: &str = "data/api-token";

/// The token itself, for scripts.
const TOKEN_VARIABLE: &str = "CARILLON_TOKEN";

/// A node that does not take the connection within this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Thousands of tasks take a while.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

/// A token file is not larger than this, in bytes.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// A node, and the right to ask it.
pub struct Node {
    client: Client,
    base: Url,
    token: String,
    /// Where the token comes from.
    token_from: String,
}

/// What a node answers instead, RFC 9457.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// What is wrong.
    pub detail: String,
    /// With which field.
    pub errors: Vec<FieldError>,
}

impl Node {
    /// The node that the arguments name; it is not asked yet.
    pub fn of(args: &NodeArgs) -> anyhow::Result<Self> {
        let url = args.url.trim_end_matches('/');
        let base = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
        let base = base.with_context(|| {
            format!("`{url}` is no address of a node; http://host:port or https://host:port is (--url, CARILLON_URL)")
        })?;
        let (token, token_from) = token(args.token_file.as_deref())?;
        let client = trusting(&base, args.ca_file.as_deref())?
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            // The token is for this node and for nobody on the way.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .build()
            .context("the HTTP client cannot be made")?;
        Ok(Self { client, base, token, token_from })
    }

    /// Asks; the inner error is what the node refuses.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> anyhow::Result<Result<Value, Refusal>> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/api/v1{path}", self.base.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.client.request(method, url).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let reply = request.send().await.map_err(|error| self.unanswered(error))?;
        let status = reply.status();
        let text = reply.bytes().await.map_err(|error| self.unanswered(error))?;
        if status.is_success() {
            let value = serde_json::from_slice(&text);
            return value.map(Ok).with_context(|| format!("what answers at {} is no carillon node", self.base));
        }
        let refusal: Option<Refusal> = serde_json::from_slice(&text).ok();
        match (status, refusal) {
            (StatusCode::UNAUTHORIZED, _) => bail!(
                "the node at {} refuses the token of {}; give the right one (--token-file, {TOKEN_VARIABLE})",
                self.base,
                self.token_from
            ),
            (status, Some(refusal)) if status.is_client_error() => Ok(Err(refusal)),
            (status, Some(refusal)) => bail!("the node at {} answers {status}: {}", self.base, refusal.detail),
            (status, None) => bail!("what answers at {} is no carillon node ({status})", self.base),
        }
    }

    fn unanswered(&self, error: reqwest::Error) -> anyhow::Error {
        let base = &self.base;
        let error = error.without_url();
        if error.is_connect() {
            return anyhow!(error).context(format!("no node answers at {base} (--url, CARILLON_URL)"));
        }
        if error.is_timeout() {
            let seconds = ANSWER_TIMEOUT.as_secs();
            return anyhow!(
                "the node at {base} did not answer within {seconds} s; look with --dry-run what it has done"
            );
        }
        anyhow!(error).context(format!("the node at {base} broke off; look with --dry-run what it has done"))
    }
}

/// A client that trusts the authorities of `ca_file`, or the machine's.
fn trusting(base: &Url, ca_file: Option<&Path>) -> anyhow::Result<ClientBuilder> {
    let client = Client::builder();
    if base.scheme() == "http" {
        return Ok(client.tls_backend_preconfigured(tls::unused()?));
    }
    let Some(file) = ca_file else { return Ok(client) };
    let unusable = || format!("the file {} (--ca-file, CARILLON_CA_FILE) cannot be used", file.display());
    let authorities = Certificate::from_pem_bundle(&tls::read(file).with_context(unusable)?).with_context(unusable)?;
    if authorities.is_empty() {
        bail!("{}: it holds no certificate in PEM", unusable());
    }
    Ok(client.tls_certs_only(authorities))
}

/// The token, and where it comes from. Never from an argument: those are seen by everybody on the
/// machine.
fn token(file: Option<&Path>) -> anyhow::Result<(String, String)> {
    let variable = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.trim().is_empty());
    let (token, from) = match (file, variable) {
        (Some(file), _) => (read_token(file)?, file.display().to_string()),
        (None, Some(token)) => (token, TOKEN_VARIABLE.to_owned()),
        (None, None) if Path::new(TOKEN_FILE).exists() => (read_token(Path::new(TOKEN_FILE))?, TOKEN_FILE.to_owned()),
        (None, None) => bail!(
            "no API token: name its file (--token-file), or set {TOKEN_VARIABLE}; a node's log says where its own is"
        ),
    };
    let token = token.trim().to_owned();
    let is_token = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    if !is_token {
        bail!("what {from} holds is no API token: one line of plain characters is");
    }
    Ok((token, from))
}

fn read_token(file: &Path) -> anyhow::Result<String> {
    let unusable = || format!("the token file {} cannot be read (--token-file)", file.display());
    let size = std::fs::metadata(file).with_context(unusable)?.len();
    if size > TOKEN_BYTES_MAX {
        bail!("the token file {} has {size} bytes; allowed: {TOKEN_BYTES_MAX}", file.display());
    }
    std::fs::read_to_string(file).with_context(unusable)
}
