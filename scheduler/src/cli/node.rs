//! Client of a node's management API.

use super::contexts;
use super::credentials::{Credentials, refused};
use super::exit::Exit;
use crate::response_body::{Unread, read_within};
use crate::tls;
use anyhow::{Context, anyhow, bail};
use clap::Args;
use reqwest::header::{IF_MATCH, RETRY_AFTER};
use reqwest::{Certificate, Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, redirect};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// Where a node is, unless someone says otherwise.
const DEFAULT_URL: &str = "http://127.0.0.1:8526";

/// A node that does not accept the connection within this time counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Thousands of tasks take a while.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);

/// Largest response, bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Items in one page: the most a node returns.
const PAGE: usize = 500;

/// How often a request is repeated that the node's rate limit refuses …
const BUSY_TRIES_MAX: usize = 10;

/// … after the time that the node names, at most this.
const BUSY_WAIT_MAX: Duration = Duration::from_secs(10);

/// The code that says that a new password must be chosen first.
const MUST_CHANGE: &str = "password_change_required";

/// The code that says that the token has expired.
const EXPIRED: &str = "token_expired";

/// Where the node is.
#[derive(Debug, Args)]
pub struct NodeAddressArgs {
    /// Address of a node; without it and without --context `http://127.0.0.1:8526`.
    #[arg(long, value_name = "URL", env = "CARILLON_URL", global = true)]
    pub url: Option<String>,
    /// A cluster by its name in the file contexts.toml, instead of --url.
    #[arg(long, value_name = "NAME", env = "CARILLON_CONTEXT", global = true)]
    pub context: Option<String>,
    /// Certificate authorities to trust for an https node (PEM), instead of the machine's own.
    #[arg(long, value_name = "FILE", env = "CARILLON_CA_FILE", global = true)]
    pub ca_file: Option<PathBuf>,
}

/// Address of the node, and credentials.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// The address.
    #[command(flatten)]
    pub place: NodeAddressArgs,
    /// File that holds an API token. By default the variable `CARILLON_TOKEN` is the token and, if it is unset, the
    /// session of `carillon login` at this URL is used.
    #[arg(long, value_name = "FILE", verbatim_doc_comment, global = true)]
    pub token_file: Option<PathBuf>,
}

impl NodeAddressArgs {
    /// What the arguments name: the address, the authorities, and the file of the token that goes with them.
    fn place(&self) -> anyhow::Result<contexts::Context> {
        match (&self.context, &self.url) {
            (Some(name), Some(url)) => bail!(
                "context `{name}` and the address {url} are both given; give one of --context (CARILLON_CONTEXT) and --url (CARILLON_URL)"
            ),
            (Some(name), None) => {
                let known = contexts::find(name)?;
                Ok(contexts::Context { ca_file: self.ca_file.clone().or(known.ca_file), ..known })
            }
            (None, url) => {
                let url = url.clone().unwrap_or_else(|| DEFAULT_URL.to_owned());
                Ok(contexts::Context { url, ca_file: self.ca_file.clone(), token_file: None })
            }
        }
    }
}

/// A node, and the credentials for it.
pub struct Node {
    client: Client,
    base: Url,
    credentials: Option<Credentials>,
    /// Whether refusals are shown as the node's problem documents.
    pub shows_documents: bool,
}

/// A request to the API.
#[derive(Clone)]
pub struct ApiRequest {
    method: Method,
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    raw_query: Option<String>,
    body: Option<Value>,
    if_match: Option<i64>,
}

/// A node's refusal, RFC 9457.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// Why (docs/errors.md).
    code: String,
    /// The status.
    pub status: u16,
    /// What is wrong.
    pub detail: String,
    /// With which field.
    pub errors: Vec<RefusedField>,
    /// The whole document, when it is shown as JSON.
    #[serde(skip)]
    document: Option<Value>,
}

impl Refusal {
    /// The refusal as the command's error.
    pub fn error(self, exit: Exit) -> anyhow::Error {
        exit.told(self.detail, self.document)
    }

    /// The same in other words.
    pub fn in_words(self, message: String) -> anyhow::Error {
        Exit::Refused.told(message, self.document)
    }
}

/// One field that it refuses.
#[derive(Debug, Deserialize)]
pub struct RefusedField {
    /// Which.
    pub field: String,
    /// Why.
    pub message: String,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    items: Vec<Value>,
    next: Option<String>,
}

impl ApiRequest {
    /// Anything.
    pub fn new<const N: usize>(method: Method, path: [&str; N]) -> Self {
        let path = path.map(str::to_owned).into();
        Self { method, path, query: Vec::new(), raw_query: None, body: None, if_match: None }
    }

    /// A request with a path and query as the user wrote them.
    pub fn raw(method: Method, path: &str) -> Self {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let path = path.trim_matches('/').split('/').map(str::to_owned).collect();
        Self { method, path, query: Vec::new(), raw_query: query.map(str::to_owned), body: None, if_match: None }
    }

    /// Reads.
    pub fn get<const N: usize>(path: [&str; N]) -> Self {
        Self::new(Method::GET, path)
    }

    /// Makes or does.
    pub fn post<const N: usize>(path: [&str; N]) -> Self {
        Self::new(Method::POST, path)
    }

    /// Changes.
    pub fn put<const N: usize>(path: [&str; N]) -> Self {
        Self::new(Method::PUT, path)
    }

    /// Changes some fields.
    pub fn patch<const N: usize>(path: [&str; N]) -> Self {
        Self::new(Method::PATCH, path)
    }

    /// Takes away.
    pub fn delete<const N: usize>(path: [&str; N]) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// With a parameter, if it has a value.
    pub fn with(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    /// With a body.
    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// With a body of those fields that have a value.
    pub fn fields<const N: usize>(self, fields: [(&str, Option<Value>); N]) -> Self {
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        self.body(Value::Object(fields.collect::<Map<_, _>>()))
    }

    /// Only if the object still has this revision.
    pub fn if_match(mut self, revision: Option<i64>) -> Self {
        self.if_match = revision;
        self
    }
}

impl Node {
    /// The node that the arguments name; no request is sent yet.
    pub fn of(args: &NodeArgs) -> anyhow::Result<Self> {
        let place = args.place.place()?;
        let node = Self::at(&place)?;
        let token_file = args.token_file.as_ref().or(place.token_file.as_ref());
        let credentials = Credentials::find(token_file.map(PathBuf::as_path), &node.base)?;
        Ok(Self { credentials, ..node })
    }

    /// The same, without credentials.
    pub fn unauthenticated(args: &NodeAddressArgs) -> anyhow::Result<Self> {
        Self::at(&args.place()?)
    }

    fn at(place: &contexts::Context) -> anyhow::Result<Self> {
        let url = place.url.trim_end_matches('/');
        let base = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()) && url.has_host());
        let base = base.with_context(|| {
            format!(
                "`{url}` is not the address of a node; use http://host:port or https://host:port (--url, CARILLON_URL, --context)"
            )
        })?;
        let client = trusting(&base, place.ca_file.as_deref())?
            .user_agent(concat!("carillon/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            // The token is for this node only, not for a proxy or redirect.
            .redirect(redirect::Policy::none())
            .no_proxy()
            .build()
            .context("the HTTP client cannot be created")?;
        Ok(Self { client, base, credentials: None, shows_documents: false })
    }

    /// The same with a token.
    pub fn known(self, credentials: Option<Credentials>) -> Self {
        Self { credentials, ..self }
    }

    /// Its address.
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Its address, as shown to people.
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Sends a request; the response is null when it has no body.
    pub async fn answer(&self, ask: ApiRequest) -> anyhow::Result<Value> {
        self.ask(&ask).await?.map_err(|refusal| refusal.error(Exit::Refused))
    }

    /// Sends a request; the inner error is the node's refusal.
    pub async fn ask(&self, ask: &ApiRequest) -> anyhow::Result<Result<Value, Refusal>> {
        let refusal = match self.exchange(ask).await? {
            Ok(value) => return Ok(Ok(value)),
            Err(refusal) => refusal,
        };
        match refusal.status {
            401 | 403 if refusal.document.is_some() => Err(refusal.error(Exit::NotAllowed)),
            401 if refusal.code == EXPIRED => Err(refusal.error(Exit::NotAllowed)),
            401 => Err(refused(self.credentials.as_ref(), self.address())),
            403 if refusal.code == MUST_CHANGE => {
                let login = format!("carillon login --url {}", self.address());
                Err(Exit::NotAllowed.because(format!("a new password must be chosen first: {login}")))
            }
            403 => Err(refusal.error(Exit::NotAllowed)),
            _ => Ok(Err(refusal)),
        }
    }

    /// Asks for a session; here 401 means that the password is wrong.
    pub async fn sign_in(&self, ask: &ApiRequest) -> anyhow::Result<Value> {
        self.exchange(ask).await?.map_err(|refusal| Exit::NotAllowed.because(refusal.detail))
    }

    async fn exchange(&self, ask: &ApiRequest) -> anyhow::Result<Result<Value, Refusal>> {
        let mut tries = 0;
        let reply = loop {
            let reply = self.request(ask)?.send().await.map_err(|error| self.unanswered(error))?;
            tries += 1;
            let is_busy = reply.status() == StatusCode::TOO_MANY_REQUESTS && ask.method == Method::GET;
            if !is_busy || tries > BUSY_TRIES_MAX {
                break reply;
            }
            tokio::time::sleep(wait_of(&reply)).await;
        };
        let status = reply.status();
        let text = self.read(reply).await?;
        if status.is_success() {
            let value = if text.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&text) };
            return value.map(Ok).map_err(|_| self.unexpected_server(status));
        }
        let mut refusal: Refusal = serde_json::from_slice(&text).map_err(|_| self.unexpected_server(status))?;
        refusal.document = serde_json::from_slice(&text).ok().filter(|_| self.shows_documents);
        if status.is_server_error() {
            return Err(anyhow!("the node at {} answers {status}: {}", self.base, refusal.detail));
        }
        Ok(Err(Refusal { status: status.as_u16(), ..refusal }))
    }

    fn request(&self, ask: &ApiRequest) -> anyhow::Result<RequestBuilder> {
        let mut url = self.base.clone();
        let mut path = url.path_segments_mut().map_err(|()| anyhow!("`{}` is not the address of a node", self.base))?;
        path.pop_if_empty().extend(["api", "v1"]).extend(&ask.path);
        drop(path);
        url.set_query(ask.raw_query.as_deref());
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&ask.query);
        }
        let mut request = self.client.request(ask.method.clone(), url);
        if let Some(credentials) = &self.credentials {
            request = request.bearer_auth(&credentials.secret);
        }
        if let Some(revision) = ask.if_match {
            request = request.header(IF_MATCH, format!("\"{revision}\""));
        }
        Ok(match &ask.body {
            Some(body) => request.json(body),
            None => request,
        })
    }

    async fn read(&self, mut reply: Response) -> anyhow::Result<Vec<u8>> {
        read_within(&mut reply, ANSWER_BYTES_MAX).await.map_err(|unread| match unread {
            Unread::TooLong => anyhow!("the node at {} answers with more than {ANSWER_BYTES_MAX} bytes", self.base),
            Unread::Broken(error) => self.unanswered(error),
        })
    }

    /// The items of a list, at most `most`, and whether there may be more. A paged list has a parameter for the start
    /// of a page: `cursor`.
    pub async fn list(
        &self,
        ask: &ApiRequest,
        cursor: Option<&'static str>,
        most: usize,
    ) -> anyhow::Result<(Vec<Value>, bool)> {
        let (mut items, mut next) = (Vec::new(), None);
        loop {
            let mut ask = ask.clone();
            if let Some(cursor) = cursor {
                ask = ask.with("limit", Some(PAGE.min(most - items.len()))).with(cursor, next);
            }
            let answer = self.answer(ask).await?;
            let page: Page = serde_json::from_value(answer).context("the node's answer cannot be understood")?;
            items.extend(page.items);
            if items.len() >= most || page.next.is_none() {
                let is_more = page.next.is_some() || items.len() > most;
                items.truncate(most);
                return Ok((items, is_more));
            }
            next = page.next;
        }
    }

    fn unexpected_server(&self, status: StatusCode) -> anyhow::Error {
        Exit::Unreachable.because(format!("the server at {} is not a carillon node ({status})", self.base))
    }

    fn unanswered(&self, error: reqwest::Error) -> anyhow::Error {
        let base = &self.base;
        let error = error.without_url();
        if error.is_connect() {
            return Exit::Unreachable.caused(format!("no node answers at {base} (--url, CARILLON_URL)"), error.into());
        }
        if error.is_timeout() {
            let seconds = ANSWER_TIMEOUT.as_secs();
            return Exit::Unreachable.because(format!(
                "the node at {base} did not answer within {seconds} s; check whether the request took effect"
            ));
        }
        Exit::Unreachable.caused(
            format!("the node at {base} closed the connection; check whether the request took effect"),
            error.into(),
        )
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

/// How long the node asks to wait.
fn wait_of(reply: &Response) -> Duration {
    let seconds = reply.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1)).min(BUSY_WAIT_MAX)
}
