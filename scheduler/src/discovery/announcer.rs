//! Makes what is announced of an app the same as who is named.

use super::named::{Named, Refused};
use crate::auth::is_node_at;
use crate::domain::{ExecutorId, Owner};
use crate::engine::Engine;
use crate::store::{
    AnnouncedAt, AnnouncedBy, Announcement, ClusterStore as _, DiscoveryStore, PlainExecutorStore, Result, SigningKey,
    SqlStore, StoreErrorKind,
};
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::HashMap;
use std::sync::Arc;

/// Executors of one app that are announced at once.
const AT_ONCE: usize = 8;

/// Executors of one app that are compared: more than are named and may register.
const ANNOUNCED_MAX: u64 = 5_000;

/// Announces and withdraws.
pub struct Announcer {
    /// This node's engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// Where executors are announced.
    pub plain_store: Arc<dyn PlainExecutorStore>,
    /// Who is announced.
    pub sources: Arc<dyn DiscoveryStore>,
}

impl Announcer {
    /// Announces by `key` who is named and not announced, and withdraws who is not named any more. Where it is not known whom Nacos
    /// names, those stay that it named once. Nobody is announced at the address of a node.
    pub async fn settle(
        &self,
        owner: Owner,
        key: &SigningKey,
        (mut named, mut refused): (Named, Refused),
        is_nacos_known: bool,
    ) -> Result<Refused> {
        let announced = self.sources.announced_of(owner, ANNOUNCED_MAX).await?;
        let by_address: HashMap<&str, &AnnouncedAt> = announced.iter().map(|row| (row.address.as_str(), row)).collect();
        if named.keys().any(|address| !by_address.contains_key(address.as_str())) {
            let nodes = self.engine.store.nodes().await?;
            named.retain(|address, _| {
                let is_node = nodes.iter().any(|node| is_node_at(&node.address, address));
                if is_node {
                    refused.insert(address.clone(), "a node of this cluster listens there".to_owned());
                }
                !is_node
            });
        }
        let left = announced.iter().filter(|row| !named.contains_key(&row.address));
        let left = left.filter(|row| is_nacos_known || row.by != AnnouncedBy::Nacos.as_str());
        self.withdraw(owner, left.clone()).await?;
        // Who stays because it registers itself has none but what Nacos said.
        for row in left.filter(|row| says_so_itself(row) && is_nacos_known && !row.tags.is_empty()) {
            self.tag(owner, row, &[]).await?;
        }
        let mut changes = Vec::with_capacity(named.len());
        for (address, (by, tags)) in &named {
            let row = by_address.get(address.as_str()).copied();
            changes.push(self.announce(owner, key, (address.as_str(), *by, tags.as_slice()), row));
        }
        let mut changes = stream::iter(changes).buffer_unordered(AT_ONCE);
        let mut done = Ok(());
        while let Some(one) = changes.next().await {
            // One that fails holds up no other.
            done = done.and(one);
        }
        done.map(|()| refused)
    }

    /// Withdraws everyone whom a source has named.
    pub async fn withdraw_all(&self, owner: Owner) -> Result<()> {
        let announced = self.sources.announced_of(owner, ANNOUNCED_MAX).await?;
        self.withdraw(owner, announced.iter()).await
    }

    /// Those that register themselves stay, whoever named them before.
    async fn withdraw(&self, owner: Owner, left: impl Iterator<Item = &AnnouncedAt>) -> Result<()> {
        for row in left {
            let by = [AnnouncedBy::Fixed, AnnouncedBy::Nacos].into_iter().find(|by| by.as_str() == row.by);
            let Some(by) = by else { continue };
            if self.sources.withdraw_of(owner, row.id, by, self.engine.clock.now_ms()).await? {
                tracing::info!(executor = row.id.0, address = row.address, by = row.by, "plain executor left");
                self.refresh(owner, row.id, None).await?;
            }
        }
        Ok(())
    }

    async fn announce(
        &self,
        owner: Owner,
        key: &SigningKey,
        (address, by, tags): (&str, AnnouncedBy, &[String]),
        row: Option<&AnnouncedAt>,
    ) -> Result<()> {
        let now = self.engine.clock.now_ms();
        if let Some(row) = row {
            let has_tags = row.tags == tags;
            // One that registers itself says by which token.
            if has_tags && (says_so_itself(row) || (row.by == by.as_str() && row.key_id == key.key.id)) {
                return Ok(());
            }
            if says_so_itself(row) {
                return self.tag(owner, row, tags).await;
            }
        }
        let announcement =
            Announcement { owner, key_id: &key.key.id, address, version: "", by, until: 0, tags: Some(tags) };
        let id = match self.plain_store.announce(&announcement, &|| self.engine.ids.next(now), now).await {
            // One with the SDK goes by that very name: nobody needs to speak for it.
            Err(error) if error.kind() == StoreErrorKind::Conflict => return Ok(()),
            announced => announced?,
        };
        if row.is_none() {
            tracing::info!(executor = id.0, app = key.app, address, by = by.as_str(), "plain executor found");
        }
        self.refresh(owner, id, Some(address)).await
    }

    async fn tag(&self, owner: Owner, row: &AnnouncedAt, tags: &[String]) -> Result<()> {
        self.sources.tag(owner, row.id, tags, self.engine.clock.now_ms()).await?;
        self.refresh(owner, row.id, None).await
    }

    /// This node knows it at once; the others do with their next look.
    async fn refresh(&self, owner: Owner, id: ExecutorId, address: Option<&str>) -> Result<()> {
        let (engine, app) = (&self.engine, (owner.tenant_id, owner.app_id));
        engine.registry.refresh_one(&*engine.store, id, (app, address), engine.executors_alive_since()).await
    }
}

fn says_so_itself(row: &AnnouncedAt) -> bool {
    row.by == AnnouncedBy::Registry.as_str()
}
