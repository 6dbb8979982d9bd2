//! Bounds of runs at once: people set one, and lift it again.

use super::{Desk, Parts};
use crate::faults::Fault;
use carillon::domain::quota::Quotas;
use carillon_simulation::store::{Bounded, Rebound};
use std::time::Duration;
use tokio::time::Instant;

/// A node is asked so often what it goes by.
const LOOK: Duration = Duration::from_millis(100);

/// That what was changed is as before is noticed so long after a switch-over, ms.
const NOTICED_MS: i64 = 1_000;

/// From when on every node goes by a bound, until it is changed.
#[derive(Debug, Clone, Copy)]
pub struct KnownBound {
    /// Which.
    pub bound: Rebound,
    /// Since when, epoch ms.
    pub at: i64,
}

impl Desk {
    /// Sets a bound and lifts it after `lasts` ms.
    pub(super) async fn bound(&self, of: Bounded, most: i32, lasts: i64) {
        self.set_bound(of, most).await;
        let lifted_at = Instant::now() + Duration::from_millis(lasts as u64);
        // Another's may have come meanwhile, be it another bound or that one is lifted.
        if let Some(bound) = self.newest(of)
            && tokio::time::timeout_at(lifted_at, self.known_to_all(bound.version)).await.is_ok()
        {
            let number = self.number;
            self.world.trace.add(format!("OPERATION {number}: every node knows that {of:?} has {}", bound.most));
            self.world.bounds.lock().unwrap().push(KnownBound { bound, at: self.world.time.now_ms() });
        }
        tokio::time::sleep_until(lifted_at).await;
        let asked_at = self.world.time.now_ms();
        self.set_bound(of, 0).await;
        // Whoever sees after a switch-over that it is back lifts it again.
        for lost_at in self.commits_lost_after(asked_at) {
            self.world.time.until_ms(lost_at + NOTICED_MS).await;
            if self.newest(of).is_some_and(|bound| bound.most > 0) {
                self.set_bound(of, 0).await;
            }
        }
    }

    /// When standbys without the last commits have taken over, from that instant on; epoch ms.
    fn commits_lost_after(&self, at: i64) -> impl Iterator<Item = i64> {
        let lost = self.world.faults.iter().filter(|planned| matches!(planned.fault, Fault::LostCommits { .. }));
        lost.map(|planned| self.world.began + planned.until()).filter(move |lost_at| *lost_at > at)
    }

    fn newest(&self, of: Bounded) -> Option<Rebound> {
        self.world.store.inspect(|state| state.rebounds.iter().rfind(|one| one.of == of).copied())
    }

    async fn set_bound(&self, of: Bounded, most: i32) {
        let tenant = self.tenant();
        // The tenant's other quotas stay.
        let before = self.world.store.inspect(|state| state.quotas.get(&tenant).copied()).unwrap_or_default();
        let quotas = Quotas { max_concurrent: most, ..before };
        self.ask(move |parts: Parts| async move {
            let store = &parts.engine.store;
            match of {
                Bounded::App(app) => store.bound_app(app, most).await,
                Bounded::Tenant(tenant) => store.set_quotas(tenant, &quotas, parts.engine.clock.now_ms()).await,
            }
        })
        .await;
    }

    /// Returns once every node has read these rules, or later ones. One that does not run reads them when it starts; one that
    /// is about to join may have read earlier ones.
    async fn known_to_all(&self, version: i64) {
        for node in &self.world.nodes {
            let knows = move |parts: Parts| async move { parts.engine.rules.now().version >= version };
            while node.is_running() && node.serve(knows).await != Some(true) {
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}
