//! The way to plain executors, put together: their door, what stands in for them, and who vouches for them.

use crate::api::{PlainDoor, PlainDoorParts};
use crate::auth::{AddressRule, KeyRing};
use crate::cluster::Clock;
use crate::discovery::{Discovery, DiscoveryParts, Nacos, NacosSettings};
use crate::dispatch::{Carrier, TaskCache};
use crate::engine::Engine;
use crate::store::{JobNumberStore, KeyStore, PlainExecutorStore, ScriptStore, SqlStore, Store};
use crate::workers::{EngineParts, PlainParts};
use crate::xxljob::{
    Inquiry, InquiryParts, InquirySettings, JobNumbers, Reports, RunDoor, Scripts, SentRuns, StandIn, StandInParts,
    Vouching, VouchingParts,
};
use std::sync::Arc;

/// What it is made of.
pub struct PlainWays<S> {
    /// Sends runs on their instant.
    pub door: Arc<dyn RunDoor>,
    /// Carries everything else.
    pub carrier: Arc<dyn Carrier>,
    /// Tokens.
    pub keys: Arc<KeyRing>,
    /// Where they are read.
    pub key_store: Arc<dyn KeyStore>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// The database.
    pub store: Arc<S>,
}

/// The parts that others are made of.
pub struct PlainWire<S> {
    /// The engine's way to plain executors.
    pub stand_in: Arc<StandIn>,
    reports: Arc<Reports>,
    sent: SentRuns,
    keys: Arc<KeyRing>,
    key_store: Arc<dyn KeyStore>,
    addresses: AddressRule,
    store: Arc<S>,
}

impl<S: Store + PlainExecutorStore + JobNumberStore + ScriptStore + 'static> PlainWire<S> {
    /// Puts it together.
    pub fn over(ways: PlainWays<S>) -> Self {
        let PlainWays { door, carrier, keys, key_store, addresses, clock, store } = ways;
        let (sent, reports) = (SentRuns::default(), Arc::new(Reports::default()));
        let stand_in = StandIn::new(StandInParts {
            door,
            carrier,
            keys: Arc::clone(&keys),
            key_store: Arc::clone(&key_store),
            addresses: addresses.clone(),
            numbers: JobNumbers::new(store.clone()),
            scripts: Scripts::new(store.clone()),
            clock,
            sent: sent.clone(),
            reports: Arc::clone(&reports),
            rows: store.clone(),
            tasks: TaskCache::new(store.clone()),
        });
        Self { stand_in: Arc::new(stand_in), reports, sent, keys, key_store, addresses, store }
    }

    /// Where plain executors knock.
    #[must_use]
    pub fn door(&self, parts: &EngineParts<S>) -> PlainDoor<S> {
        PlainDoor::new(PlainDoorParts {
            engine: parts.engine.clone(),
            keys: self.keys.clone(),
            key_store: self.key_store.clone(),
            plain_store: self.store.clone(),
            numbers: self.store.clone(),
            addresses: self.addresses.clone(),
            tasks: TaskCache::new(self.store.clone()),
            sent: self.sent.clone(),
            ended: parts.ended.clone(),
        })
    }

    /// Who speaks for them, and asks what became of their runs.
    #[must_use]
    pub fn parts(&self, parts: &EngineParts<S>, settings: InquirySettings) -> Arc<PlainParts<S>> {
        let engine = &parts.engine;
        let vouching = Vouching::new(VouchingParts {
            plain_store: self.store.clone(),
            store: self.store.clone(),
            number_store: self.store.clone(),
            stand_in: self.stand_in.clone(),
            membership: engine.membership.clone(),
            clock: engine.clock.clone(),
        });
        let inquiry = InquiryParts {
            store: self.store.clone(),
            tasks: TaskCache::new(self.store.clone()),
            registry: engine.registry.clone(),
            membership: engine.membership.clone(),
            stand_in: self.stand_in.clone(),
            sent: self.sent.clone(),
            reports: self.reports.clone(),
            clock: engine.clock.clone(),
        };
        let inquiry = Inquiry::new(inquiry, settings);
        let (engine, ended) = (engine.clone(), parts.ended.clone());
        Arc::new(PlainParts { vouching, inquiry, reports: self.reports.clone(), engine, ended })
    }
}

impl PlainWire<SqlStore> {
    /// Who finds those that do not register themselves.
    ///
    /// # Errors
    /// When Nacos cannot be asked from here.
    pub fn discovery(&self, engine: &Arc<Engine<SqlStore>>, nacos: &NacosSettings) -> anyhow::Result<Arc<Discovery>> {
        Ok(Arc::new(Discovery::new(DiscoveryParts {
            engine: Arc::clone(engine),
            sources: self.store.clone(),
            plain_store: self.store.clone(),
            keys: self.keys.clone(),
            addresses: self.addresses.clone(),
            nacos: Nacos::new(nacos)?,
        })))
    }
}
