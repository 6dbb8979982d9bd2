//! Bounds of runs at once: people set one, and lift it again.

use super::{Desk, Parts};
use carillon::domain::quota::Quotas;
use std::time::Duration;
use tokio::time::Instant;

/// A node is asked so often what it goes by.
const LOOK: Duration = Duration::from_millis(100);

/// Whose runs at once are bounded: of the first tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounded {
    /// Its app's.
    App,
    /// The tenant's.
    Tenant,
}

/// From when on every node goes by a bound; or from when on some may not any more.
#[derive(Debug, Clone, Copy)]
pub struct BoundChange {
    /// Of what.
    pub of: Bounded,
    /// What every node goes by from now on; `None`: some may go by another one.
    pub most: Option<i32>,
    /// When, epoch ms.
    pub at: i64,
}

impl Desk {
    /// Sets a bound and lifts it after `lasts` ms.
    pub(super) async fn bound(&self, of: Bounded, most: i32, lasts: i64) {
        self.set_bound(of, most).await;
        let lifted_at = Instant::now() + Duration::from_millis(lasts as u64);
        if tokio::time::timeout_at(lifted_at, self.known_to_all(of, most)).await.is_ok() {
            self.world.trace.add(format!("OPERATION {} is known to every node", self.number));
            self.note_bound(of, Some(most));
        }
        tokio::time::sleep_until(lifted_at).await;
        self.set_bound(of, 0).await;
    }

    async fn set_bound(&self, of: Bounded, most: i32) {
        self.note_bound(of, None);
        let owner = self.world.tenants[0].owner;
        // The tenant's other quotas stay.
        let before = self.world.store.inspect(|state| state.quotas.get(&owner.tenant_id).copied()).unwrap_or_default();
        let quotas = Quotas { max_concurrent: most, ..before };
        self.ask(move |parts: Parts| async move {
            let store = &parts.engine.store;
            match of {
                Bounded::App => store.bound_app(owner.app_id, most).await,
                Bounded::Tenant => store.set_quotas(owner.tenant_id, &quotas, parts.engine.clock.now_ms()).await,
            }
        })
        .await;
    }

    fn note_bound(&self, of: Bounded, most: Option<i32>) {
        self.world.bounds.lock().unwrap().push(BoundChange { of, most, at: self.world.time.now_ms() });
    }

    /// Returns once every node goes by it. One that does not run reads it when it starts.
    async fn known_to_all(&self, of: Bounded, most: i32) {
        let owner = self.world.tenants[0].owner;
        for node in &self.world.nodes {
            let knows = move |parts: Parts| async move {
                let rules = parts.engine.rules.now();
                let known = match of {
                    Bounded::App => rules.apps.get(&owner.app_id).copied(),
                    Bounded::Tenant => rules.concurrent(owner.tenant_id),
                };
                known == Some(most)
            };
            while node.serve(knows).await == Some(false) {
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}
