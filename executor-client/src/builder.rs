//! Every setting of an executor and its default.

use crate::executor::Executor;
use crate::handler::{Handlers, Typed};
use crate::output::Limits;
use crate::run::Handler;
use crate::settings::default;
use crate::tls::TlsFiles;
use crate::{HandlerInfo, Output, SignMethod, TaskContext, TaskError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Collects settings and handlers; see [`Executor::builder`].
#[must_use]
pub struct ExecutorBuilder {
    pub(crate) schedulers: Vec<String>,
    pub(crate) tenant: String,
    pub(crate) app: String,
    pub(crate) key_id: String,
    pub(crate) key_secret: String,
    pub(crate) sign_method: SignMethod,
    pub(crate) address: Option<String>,
    pub(crate) bind: String,
    pub(crate) port: u16,
    pub(crate) tags: Vec<String>,
    pub(crate) capacity: usize,
    pub(crate) journal_dir: PathBuf,
    pub(crate) tls: TlsFiles,
    pub(crate) ports_tried: u16,
    pub(crate) description: String,
    pub(crate) version: String,
    pub(crate) held_max: usize,
    pub(crate) journal_bytes_max: usize,
    pub(crate) output: Limits,
    pub(crate) drain_timeout: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) handlers: Handlers,
    /// By handler, as given.
    pub(crate) policies: Vec<(String, serde_json::Result<Value>)>,
}

impl std::fmt::Debug for ExecutorBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExecutorBuilder")
            .field("schedulers", &self.schedulers)
            .field("tenant", &self.tenant)
            .field("app", &self.app)
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

impl Executor {
    /// Starts with every setting at its default.
    pub fn builder() -> ExecutorBuilder {
        ExecutorBuilder::new()
    }
}

impl ExecutorBuilder {
    fn new() -> Self {
        Self {
            schedulers: Vec::new(),
            tenant: String::new(),
            app: String::new(),
            key_id: String::new(),
            key_secret: String::new(),
            sign_method: SignMethod::default(),
            address: None,
            bind: default::BIND.to_string(),
            port: default::PORT,
            tags: Vec::new(),
            capacity: default::CAPACITY,
            journal_dir: default::JOURNAL_DIR.into(),
            tls: TlsFiles::default(),
            ports_tried: default::PORTS_TRIED,
            description: String::new(),
            version: String::new(),
            held_max: default::HELD_MAX,
            journal_bytes_max: default::JOURNAL_BYTES_MAX,
            output: Limits {
                run_bytes: default::OUTPUT_RUN_BYTES_MAX,
                total_bytes: default::OUTPUT_BYTES_MAX,
                age: default::OUTPUT_AGE_MAX,
            },
            drain_timeout: default::DRAIN_TIMEOUT,
            cancel_grace: default::CANCEL_GRACE,
            handlers: Handlers::default(),
            policies: Vec::new(),
        }
    }

    /// A scheduler node, `http://host:port` or `https://host:port`. Call it once per node: nodes are tried in this
    /// order, and the one that works is used until it fails.
    pub fn scheduler(mut self, url: impl Into<String>) -> Self {
        self.schedulers.push(url.into());
        self
    }

    /// Certificate authorities (PEM) to trust for `https` nodes, instead of the machine's own.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.ca = Some(path.into());
        self
    }

    /// The certificate (PEM, with the chain to its authority) and its private key (PEM) that this
    /// executor presents to nodes that ask for one.
    pub fn client_certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.certificate = Some(certificate.into());
        self.tls.key = Some(key.into());
        self
    }

    /// The tenant (business line) that this executor belongs to.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// The app of the tenant that this executor belongs to.
    pub fn app(mut self, app: impl Into<String>) -> Self {
        self.app = app.into();
        self
    }

    /// The app's key: its public id and its secret.
    pub fn key(mut self, id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.key_id = id.into();
        self.key_secret = secret.into();
        self
    }

    /// How requests and replies are signed, both ways; default [`SignMethod::HmacSha256`].
    pub fn sign_method(mut self, method: SignMethod) -> Self {
        self.sign_method = method;
        self
    }

    /// Where nodes reach this executor, `http://host:port`. Default: the bound address, or,
    /// when bound to every interface, the one from which this machine reaches the node.
    pub fn address(mut self, url: impl Into<String>) -> Self {
        self.address = Some(url.into());
        self
    }

    /// IP address to listen on; default `0.0.0.0`.
    pub fn bind(mut self, ip: impl Into<String>) -> Self {
        self.bind = ip.into();
        self
    }

    /// Port to listen on, default 8527. If it is taken the next free one of
    /// [`ExecutorBuilder::ports_tried`] is used. 0 lets the system choose.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How many ports are tried, starting with the configured one; default 100.
    pub fn ports_tried(mut self, count: u16) -> Self {
        self.ports_tried = count;
        self
    }

    /// Adds a tag, for routing.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// A description for people.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.description = text.into();
        self
    }

    /// Version of the business service.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Most handlers that run at once; default 64. Further due runs wait in order.
    pub fn capacity(mut self, runs: usize) -> Self {
        self.capacity = runs;
        self
    }

    /// Most runs held before their due time; default 50,000. Further runs are refused as busy.
    pub fn held_max(mut self, runs: usize) -> Self {
        self.held_max = runs;
        self
    }

    /// Directory for results that no node has acknowledged yet, and for what the next process tells nodes of this one;
    /// default `./carillon-journal`.
    /// Any number of executors may share it.
    pub fn journal_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.journal_dir = dir.into();
        self
    }

    /// Unacknowledged results beyond this many bytes make the executor refuse new runs as
    /// busy; default 64 MiB.
    pub fn journal_bytes_max(mut self, bytes: usize) -> Self {
        self.journal_bytes_max = bytes;
        self
    }

    /// Most output kept of one run, bytes; default 1 MiB. The rest is dropped, and the last line
    /// says so.
    pub fn output_run_bytes_max(mut self, bytes: u64) -> Self {
        self.output.run_bytes = bytes;
        self
    }

    /// Most disk space for the output of all runs of this process, bytes; default 256 MiB. The
    /// oldest output is deleted to make room. 0 keeps no output at all.
    ///
    /// Output is stored in the journal directory, where the next process finds it.
    pub fn output_bytes_max(mut self, bytes: u64) -> Self {
        self.output.total_bytes = bytes;
        self
    }

    /// How long the output of a run is kept after its last line; default 5 days.
    pub fn output_age_max(mut self, age: Duration) -> Self {
        self.output.age = age;
        self
    }

    /// How long a shutdown waits for running handlers, and for a node that takes the last results (5 s at least); default 30 s.
    pub fn drain_timeout(mut self, limit: Duration) -> Self {
        self.drain_timeout = limit;
        self
    }

    /// How long a cancelled handler may tidy up before it is dropped; default 5 s.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// Adds a handler. It must not block its thread: put blocking work into
    /// [`TaskContext::spawn_blocking`].
    ///
    /// A run ends when its handler's future is finished or dropped and its blocking parts have
    /// returned. Only then does the next run of a serial task start. Work that a handler starts by
    /// other means (`tokio::spawn`, `tokio::task::spawn_blocking`, a thread) is not tracked as part
    /// of the run: it continues after the run has been stopped, and may overlap the next one.
    pub fn handler<F, Fut>(self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
    {
        self.handler_with(named(name), function)
    }

    /// Adds a handler with a description and defaults for its task.
    pub fn handler_with<F, Fut>(self, info: HandlerInfo, function: F) -> Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
    {
        self.add(info, Arc::new(function))
    }

    /// Adds a handler whose parameters are deserialized from JSON into `P`. Parameters that do not
    /// fit fail the run for good, with a message that says where.
    pub fn typed<P, F, Fut>(self, name: impl Into<String>, function: F) -> Self
    where
        P: DeserializeOwned + 'static,
        F: Fn(TaskContext, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
    {
        self.typed_with(named(name), function)
    }

    /// [`ExecutorBuilder::typed`] with a description and defaults for its task.
    pub fn typed_with<P, F, Fut>(self, info: HandlerInfo, function: F) -> Self
    where
        P: DeserializeOwned + 'static,
        F: Fn(TaskContext, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
    {
        self.add(info, Arc::new(Typed::<P, F>::new(function)))
    }

    /// Sets further defaults for the task of a handler, by the API's field names, for example
    /// `json!({"routing": "round", "block_strategy": "serial", "max_retries": 2})` or a struct of
    /// these fields. Like all defaults they apply to the task that the first registration creates.
    pub fn policies(mut self, handler: impl Into<String>, fields: impl Serialize) -> Self {
        self.policies.push((handler.into(), serde_json::to_value(fields)));
        self
    }

    fn add(mut self, info: HandlerInfo, handler: Arc<dyn Handler>) -> Self {
        self.handlers.add(info, handler);
        self
    }
}

fn named(name: impl Into<String>) -> HandlerInfo {
    HandlerInfo { name: name.into(), ..HandlerInfo::default() }
}
