//! Plain executors do not beat: the node in whose share one is asks it every few seconds, and beats for it.

use super::standin::StandIn;
use crate::cluster::{Clock, Membership};
use crate::domain::{ExecutorId, NodeId};
use crate::store::{
    Announced, BATCH_MAX, ExecutorHeartbeat, ExecutorStore, JobNumberStore, PlainExecutorStore, Result, Share,
    SignedHeartbeat,
};
use futures_util::StreamExt;
use futures_util::stream;
use std::sync::Arc;
use std::time::Duration;

/// Executors asked at once.
const ASKED_MAX: usize = 256;

/// One that has not answered by then does not beat this time: those behind it must not go offline with it.
const ANSWER_MAX: Duration = Duration::from_millis(1_500);

/// A later attempt that has not been called back for after so long has lost its number, ms.
const NUMBERS_KEPT_MS: i64 = 32 * 86_400_000;

/// Vouches for plain executors.
pub struct Vouching {
    parts: VouchingParts,
}

/// What it works with.
pub struct VouchingParts {
    /// Where executors are announced.
    pub plain_store: Arc<dyn PlainExecutorStore>,
    /// Where they beat.
    pub store: Arc<dyn ExecutorStore>,
    /// Where attempts are numbered.
    pub number_store: Arc<dyn JobNumberStore>,
    /// Asks them.
    pub stand_in: Arc<StandIn>,
    /// This node among others.
    pub membership: Arc<Membership>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
}

impl Vouching {
    /// Over its parts.
    pub fn new(parts: VouchingParts) -> Self {
        Self { parts }
    }

    /// One round. Where no executor is announced, it is one statement.
    pub async fn tick(&self) -> Result<()> {
        let now = self.parts.clock.now_ms();
        let share = self.parts.membership.view().share;
        let mut after = ExecutorId::NONE;
        let mut any = false;
        loop {
            let page = self.parts.plain_store.announced(after, BATCH_MAX as u64).await?;
            let Some(last) = page.last() else { break };
            after = last.id;
            any = true;
            let is_last = page.len() < BATCH_MAX;
            let mine = page.into_iter().filter(|one| is_of(share, one.id)).collect();
            self.vouch(mine).await?;
            if is_last {
                break;
            }
        }
        if any {
            self.parts.plain_store.end_announcements(now).await?;
            self.parts.number_store.forget_attempt_numbers(now - NUMBERS_KEPT_MS).await?;
        }
        Ok(())
    }

    async fn vouch(&self, mine: Vec<Announced>) -> Result<()> {
        let asked = stream::iter(mine).map(async |one| {
            let place = (one.owner, one.key_id.as_str(), one.address.as_str());
            let is_there = tokio::time::timeout(ANSWER_MAX, self.parts.stand_in.is_there(place)).await;
            is_there.unwrap_or(false).then_some(one)
        });
        let there = asked.buffer_unordered(ASKED_MAX).filter_map(async |one| one).ready_chunks(BATCH_MAX);
        let mut there = std::pin::pin!(there);
        // As they answer: a slow one holds up no other's heartbeat.
        while let Some(chunk) = there.next().await {
            let (now, node_id) = (self.parts.clock.now_ms(), self.parts.membership.id());
            let beats: Vec<SignedHeartbeat> = chunk.into_iter().map(|one| beat(one, now, node_id)).collect();
            self.parts.store.beats(&beats).await?;
        }
        Ok(())
    }
}

/// Whether an executor is in this part of all.
pub(super) fn is_of(share: Share, id: ExecutorId) -> bool {
    share.has(id.0)
}

fn beat(one: Announced, now: i64, node_id: NodeId) -> SignedHeartbeat {
    let heartbeat = ExecutorHeartbeat {
        executor_id: one.id,
        instance: one.instance,
        held: 0,
        running: 0,
        draining: false,
        node_id,
    };
    SignedHeartbeat { owner: one.owner, signed_at: now, heartbeat }
}
