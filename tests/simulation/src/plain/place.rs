//! What outlives the processes of a plain executor's machine: its address, its way to the nodes, and the logs on its disk.

use crate::SimStore;
use crate::executor::{MachineParts, NodeServer, note};
use crate::messages;
use crate::net::{Broken, Endpoint};
use carillon::domain::xxljob::Number;
use carillon::domain::xxljob::wire::TOKEN_HEADER;
use carillon::store::JobNumberStore as _;
use carillon_protocol::RunKey;
use carillon_protocol::exchange::Request;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, Weak};
use std::time::Duration;

/// Where nodes take in registrations, farewells and results.
pub(super) const REGISTER_PATH: &str = "/xxl-job-admin/api/registry";
pub(super) const REMOVE_PATH: &str = "/xxl-job-admin/api/registryRemove";
pub(super) const CALLBACK_PATH: &str = "/xxl-job-admin/api/callback";

/// A node that has not answered by then is left for the next one.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);

pub(super) struct Place {
    pub(super) index: usize,
    pub(super) address: String,
    pub(super) parts: MachineParts,
    pub(super) store: SimStore,
    servers: Mutex<Vec<Weak<dyn NodeServer>>>,
    /// Runs whose logs lie on its disk: those that it has started.
    pub(super) logs: Mutex<BTreeSet<i64>>,
}

impl Place {
    pub(super) fn new(index: usize, parts: MachineParts, store: SimStore) -> Self {
        let address = format!("http://executor-{index}:8527");
        Self { index, address, parts, store, servers: Mutex::default(), logs: Mutex::default() }
    }

    pub(super) fn connect(&self, servers: Vec<Weak<dyn NodeServer>>) {
        *self.servers.lock().unwrap() = servers;
    }

    pub(super) fn note(&self, text: impl AsRef<str>) {
        note(&self.parts, self.index, text.as_ref());
    }

    /// Who it is. Clients write the address with a `/` at its end.
    pub(super) fn registration(&self) -> Value {
        json!({
            "registryGroup": "EXECUTOR",
            "registryKey": self.parts.key.app,
            "registryValue": format!("{}/", self.address),
        })
    }

    /// Which attempt a number means, as the world knows it.
    pub(super) async fn key_of(&self, number: i64) -> Option<RunKey> {
        match Number::read(number, self.parts.time.database_ms())? {
            Number::First(log) => Some(RunKey(log.0, 1)),
            Number::Later(number) => {
                let found = self.store.numbered_attempts(&[number]).await.expect("nothing stands in between");
                found.get(&number).map(|attempt| RunKey(attempt.log.0, attempt.attempt))
            }
        }
    }

    /// Tells one node after the other, until one has taken it.
    pub(super) async fn call_first(&self, path: &str, body: &Value) -> bool {
        let servers = self.servers.lock().unwrap().clone();
        for (node, server) in servers.into_iter().enumerate() {
            if self.call((node, server), path, body).await {
                return true;
            }
        }
        false
    }

    async fn call(&self, (node, server): (usize, Weak<dyn NodeServer>), path: &str, body: &Value) -> bool {
        let headers = vec![(TOKEN_HEADER, self.parts.key.secret())];
        let request = Request { path: path.to_owned(), headers, body: body.to_string().into() };
        if path == CALLBACK_PATH && self.parts.net.swallows_results_of(self.index) {
            tokio::time::sleep(ANSWERED_WITHIN).await;
            return false;
        }
        let what = messages::summary(&request);
        let deliver = move || {
            let (server, request) = (server.upgrade(), request.clone());
            async move { server.ok_or(Broken::Refused)?.answer(request).await.ok_or(Broken::Refused) }
        };
        let (here, there) = (Endpoint::Executor(self.index), Endpoint::Node(node));
        let exchange = self.parts.net.exchange_once(here, there, &what, deliver);
        let Ok(Ok(answer)) = tokio::time::timeout(ANSWERED_WITHIN, exchange).await else { return false };
        let code = serde_json::from_slice::<Value>(&answer.body).ok().and_then(|reply| reply["code"].as_i64());
        if code != Some(200) {
            self.note(format!("{what} answered {code:?} by node {node}"));
        }
        code == Some(200)
    }
}
