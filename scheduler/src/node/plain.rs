//! The way to plain executors, put together: their door, what stands in for them, and who vouches for them.

use crate::api::{PlainDoor, PlainDoorParts};
use crate::auth::{AddressRule, KeyRing};
use crate::cluster::Clock;
use crate::dispatch::{HttpCarrier, TaskCache};
use crate::engine::Engine;
use crate::store::SqlStore;
use crate::workers::EngineParts;
use crate::xxljob::{
    Inquiry, InquiryParts, InquirySettings, JobNumbers, Reports, Scripts, Sender, SenderSettings, SenderThread,
    SentRuns, StandIn, StandInParts, Vouching, VouchingParts,
};
use anyhow::Context;
use std::sync::Arc;

/// The parts that others are made of.
pub(super) struct PlainWire {
    pub stand_in: Arc<StandIn>,
    pub reports: Arc<Reports>,
    store: Arc<SqlStore>,
    keys: Arc<KeyRing>,
    addresses: AddressRule,
    sent: SentRuns,
    thread: SenderThread,
}

impl PlainWire {
    /// Starts the thread that sends runs.
    pub fn open(
        store: &SqlStore,
        keys: &Arc<KeyRing>,
        addresses: &AddressRule,
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let (sender, thread) = Sender::start(&SenderSettings::default(), addresses.clone(), Arc::clone(clock))
            .context("the thread that sends runs to plain executors cannot be started")?;
        let (store, keys, addresses) = (Arc::new(store.clone()), Arc::clone(keys), addresses.clone());
        let (sent, reports) = (SentRuns::default(), Arc::new(Reports::default()));
        let stand_in = StandIn::new(StandInParts {
            door: Arc::new(sender),
            carrier: Arc::new(HttpCarrier::plain(&addresses)?),
            keys: Arc::clone(&keys),
            key_store: store.clone(),
            addresses: addresses.clone(),
            numbers: JobNumbers::new(store.clone()),
            scripts: Scripts::new(store.clone()),
            clock: Arc::clone(clock),
            sent: sent.clone(),
            reports: Arc::clone(&reports),
            rows: store.clone(),
            tasks: TaskCache::new(store.clone()),
        });
        Ok(Self { stand_in: Arc::new(stand_in), reports, store, keys, addresses, sent, thread })
    }

    /// Where plain executors knock.
    pub fn door(&self, parts: &EngineParts<SqlStore>) -> PlainDoor<SqlStore> {
        PlainDoor::new(PlainDoorParts {
            engine: parts.engine.clone(),
            keys: self.keys.clone(),
            key_store: self.store.clone(),
            plain_store: self.store.clone(),
            numbers: self.store.clone(),
            addresses: self.addresses.clone(),
            tasks: TaskCache::new(self.store.clone()),
            sent: self.sent.clone(),
            ended: parts.ended.clone(),
        })
    }

    /// Who asks what became of their runs.
    pub fn inquiry(&self, engine: &Engine<SqlStore>, settings: InquirySettings) -> Inquiry<SqlStore> {
        let parts = InquiryParts {
            store: self.store.clone(),
            tasks: TaskCache::new(self.store.clone()),
            registry: engine.registry.clone(),
            membership: engine.membership.clone(),
            stand_in: self.stand_in.clone(),
            sent: self.sent.clone(),
            reports: self.reports.clone(),
            clock: engine.clock.clone(),
        };
        Inquiry::new(parts, settings)
    }

    /// Who speaks for them.
    pub fn vouching(&self, engine: &Engine<SqlStore>) -> Vouching {
        Vouching::new(VouchingParts {
            plain_store: self.store.clone(),
            store: self.store.clone(),
            number_store: self.store.clone(),
            stand_in: self.stand_in.clone(),
            membership: engine.membership.clone(),
            clock: engine.clock.clone(),
        })
    }

    /// Gives back what has not been sent.
    pub async fn close(self) {
        self.thread.stop().await;
    }
}
