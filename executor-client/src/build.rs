//! Builds an executor from its settings: checks them, binds the port, opens the journal.

use crate::BuildError;
use crate::assembled::Assembled;
use crate::builder::ExecutorBuilder;
use crate::carrier::HttpCarrier;
use crate::error::invalid;
use crate::executor::Executor;
use crate::journal::Journal;
use crate::node::{Identity, Node};
use crate::output::Limits;
use crate::settings::Settings;
use crate::surroundings::Surroundings;
use carillon_protocol::sign::Key;
use serde_json::Value;
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;

/// Least output to keep of a run, bytes; less would not be worth it.
const OUTPUT_RUN_BYTES_MIN: u64 = 4 * 1024;

/// Nodes count no further; more is a word for no bound.
const CAPACITY_MAX: usize = i32::MAX as usize;

impl ExecutorBuilder {
    /// Checks every setting, binds the port and opens the journal.
    ///
    /// # Errors
    /// [`BuildError`]; its message says which setting to change.
    pub fn build(mut self) -> Result<Executor, BuildError> {
        let (bind, nodes) = self.prepare()?;
        let tls = self.tls.open(nodes.iter().any(|node| node.base.starts_with("https:")))?;
        let environment = |error: String| BuildError::Environment(error);
        let carrier = Arc::new(HttpCarrier::new(tls).map_err(|e| environment(e.to_string()))?);
        let listener = listen(bind, self.port, self.ports_tried)?;
        let port = listener.local_addr().map_err(|e| environment(e.to_string()))?.port();
        let assembled = self.assemble((bind, port), nodes, Surroundings::machine(carrier))?;
        Ok(Executor::new(assembled, listener))
    }

    /// The same without a port, within surroundings of the caller's.
    #[cfg(any(feature = "simulation", test))]
    pub(crate) fn build_within(mut self, surroundings: Surroundings) -> Result<Assembled, BuildError> {
        let (bind, nodes) = self.prepare()?;
        let port = self.port;
        self.assemble((bind, port), nodes, surroundings)
    }

    /// Checks every setting. What to bind to, and the nodes.
    fn prepare(&mut self) -> Result<(IpAddr, Vec<Node>), BuildError> {
        self.check()?;
        self.hand_out_policies()?;
        let bind = self.bind.parse().map_err(|_| invalid("bind", format!("`{}` is not an IP address", self.bind)))?;
        let nodes = self.schedulers.iter().map(|url| node(url)).collect::<Result<Vec<_>, _>>()?;
        if let Some(address) = &self.address {
            check_url("address", address, &["http"])?;
        }
        Ok((bind, nodes))
    }

    fn assemble(
        self,
        (bind, port): (IpAddr, u16),
        nodes: Vec<Node>,
        surroundings: Surroundings,
    ) -> Result<Assembled, BuildError> {
        let journal = Journal::open(&surroundings.disk, &self.journal_dir, &self.tenant, &self.app)?;
        let identity = Identity {
            tenant: self.tenant,
            app: self.app,
            key: Key { id: self.key_id, secret: self.key_secret },
            method: self.sign_method,
        };
        let settings = Settings {
            address: self.address.map(|a| a.trim_end_matches('/').to_owned()),
            own_address: surroundings.own_address,
            bind,
            port,
            host_name: surroundings.host_name.clone(),
            pid: surroundings.pid,
            tags: self.tags,
            description: self.description,
            version: self.version,
            capacity: self.capacity.min(CAPACITY_MAX),
            held_max: self.held_max,
            journal_bytes_max: self.journal_bytes_max,
            cancel_grace: self.cancel_grace,
            drain_timeout: self.drain_timeout,
            handlers: self.handlers,
        };
        Assembled::new(settings, (nodes, identity), journal, self.output, surroundings)
    }

    fn check(&self) -> Result<(), BuildError> {
        let missing = |setting, env| Err(BuildError::Missing { setting, env });
        if self.schedulers.is_empty() {
            return missing("scheduler", "CARILLON_SCHEDULERS");
        }
        for (value, setting, env) in [
            (&self.tenant, "tenant", "CARILLON_TENANT"),
            (&self.app, "app", "CARILLON_APP"),
            (&self.key_id, "key", "CARILLON_KEY_ID"),
            (&self.key_secret, "key", "CARILLON_KEY_SECRET"),
        ] {
            if value.is_empty() {
                return missing(setting, env);
            }
        }
        for (value, setting) in [(&self.tenant, "tenant"), (&self.app, "app"), (&self.key_id, "key")] {
            // They are sent in headers and are part of the signed text.
            if !value.chars().all(|c| c.is_ascii_graphic()) {
                return Err(invalid(setting, "only visible ASCII characters".to_owned()));
            }
        }
        if self.capacity == 0 {
            return Err(invalid("capacity", "must be at least 1".to_owned()));
        }
        if self.held_max == 0 {
            return Err(invalid("held_max", "must be at least 1".to_owned()));
        }
        let Limits { run_bytes, total_bytes, .. } = self.output;
        if total_bytes > 0 && !(OUTPUT_RUN_BYTES_MIN..=total_bytes / 4).contains(&run_bytes) {
            let reason = format!(
                "{run_bytes} bytes of one run must be at least {OUTPUT_RUN_BYTES_MIN}, and at most a quarter of \
                 `output_bytes_max` ({total_bytes})"
            );
            return Err(invalid("output_run_bytes_max", reason));
        }
        if let Some(name) = self.handlers.duplicates.first() {
            return Err(BuildError::DuplicateHandler(name.clone()));
        }
        if self.handlers.by_name.contains_key("") {
            return Err(invalid("handler", "a handler has no name".to_owned()));
        }
        Ok(())
    }

    /// Gives each handler the policies that were set for it.
    fn hand_out_policies(&mut self) -> Result<(), BuildError> {
        for (handler, fields) in std::mem::take(&mut self.policies) {
            let wrong = |reason: String| invalid("policies", format!("of handler `{handler}`: {reason}"));
            let Some(info) = self.handlers.infos.iter_mut().find(|info| info.name == handler) else {
                return Err(wrong("there is no such handler".to_owned()));
            };
            match fields {
                Ok(Value::Object(fields)) => info.policies.extend(fields),
                Ok(other) => return Err(wrong(format!("{other} is not an object of field names and values"))),
                Err(error) => return Err(wrong(error.to_string())),
            }
        }
        Ok(())
    }
}

fn check_url(setting: &'static str, text: &str, schemes: &[&str]) -> Result<reqwest::Url, BuildError> {
    let url = reqwest::Url::parse(text).map_err(|e| invalid(setting, format!("`{text}` is not a URL: {e}")))?;
    let form = || schemes.iter().map(|scheme| format!("{scheme}://host:port")).collect::<Vec<_>>().join(" or ");
    if !schemes.contains(&url.scheme()) || url.host_str().is_none() {
        return Err(invalid(setting, format!("`{text}`: the form is {}", form())));
    }
    if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(invalid(setting, format!("`{text}` has parts besides {} and a path", form())));
    }
    Ok(url)
}

fn node(text: &str) -> Result<Node, BuildError> {
    let url = check_url("scheduler", text.trim(), &["http", "https"])?;
    let scheme = url.scheme();
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let prefix = url.path().trim_end_matches('/').to_owned();
    let authority = format!("{host}:{port}");
    let origin = format!("{scheme}://{authority}");
    Ok(Node { base: format!("{origin}{prefix}"), origin, prefix, authority })
}

fn listen(bind: IpAddr, first: u16, tried: u16) -> Result<TcpListener, BuildError> {
    let last = if first == 0 { 0 } else { first.saturating_add(tried.max(1) - 1) };
    let mut failure = std::io::Error::other("no port was tried");
    for port in first..=last {
        let bound =
            TcpListener::bind((bind, port)).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        match bound {
            Ok(listener) => {
                if port != first {
                    tracing::info!(wanted = first, port, "port.next_free_one");
                }
                return Ok(listener);
            }
            Err(error) => failure = error,
        }
        if failure.kind() != std::io::ErrorKind::AddrInUse {
            break;
        }
    }
    Err(BuildError::Bind { bind, first, last, source: failure })
}
