//! The streams of a node: how many there are, who listens to what, and the way to them.

use crate::domain::TenantId;
use crate::domain::UserId;
use crate::domain::change_feed::{ChangeKinds, ChangeScope, Subscription, WatchedTenants};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Streams of a node at once …
const STREAMS_MAX: usize = 1_000;

/// … and of one user, over all their tokens and sessions.
const STREAMS_OF_USER_MAX: usize = 16;

/// A stream ends after this long; a page that is still open begins another.
pub(super) const STREAM_MAX: Duration = Duration::from_hours(1);

/// Rounds that are kept for streams that have not taken them yet.
const ROUNDS_KEPT: usize = 16;

/// A stream waits so long for the first look that covers it; when the database does not answer, it
/// begins all the same.
const COVER_MAX: Duration = Duration::from_secs(3);

/// Tenants that are watched one by one; when more are listened to, all are.
const TENANTS_MAX: usize = 1_000;

/// What has changed somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub scope: ChangeScope,
    /// The tenant's name.
    pub tenant: Option<Arc<str>>,
    pub kinds: ChangeKinds,
}

/// The changes found by one poll.
pub(super) type Round = Arc<Vec<Change>>;

/// The streams of a node.
#[derive(Debug)]
pub struct Streams {
    slots: Mutex<Slots>,
    rounds: broadcast::Sender<Round>,
    /// Number of the latest stream that the last look covered.
    covered: watch::Sender<u64>,
    /// Told when there is a first one.
    pub opened: Arc<Notify>,
    /// Cancelled when the node stops.
    pub(super) stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Slots {
    taken: HashMap<u64, TakenSlot>,
    last: u64,
    /// Whose changes the last look looked for; whatever changes after it is found by the next.
    looked_for: Option<WatchedTenants>,
}

#[derive(Debug)]
struct TakenSlot {
    since: Instant,
    user_id: UserId,
    watched_tenants: WatchedTenants,
}

/// Why no further stream is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoStream {
    /// The caller has too many.
    #[error("you have {STREAMS_OF_USER_MAX} event streams at this node, which is the limit; close one")]
    User,
    /// There are too many.
    #[error(
        "there are {STREAMS_MAX} event streams at this node, which is the limit; try again later, or at another node"
    )]
    Node,
    /// The node stops.
    #[error("this node stops; listen to another")]
    Stops,
}

/// A slot among the streams of a node; free again when this is dropped.
#[derive(Debug)]
pub struct StreamSlot {
    pub(super) streams: Arc<Streams>,
    pub(super) rounds: broadcast::Receiver<Round>,
    number: u64,
    is_covered: bool,
}

impl Streams {
    /// None yet; they end when `stop` is cancelled.
    #[must_use]
    pub fn new(stop: CancellationToken) -> Self {
        let (rounds, covered) = (broadcast::Sender::new(ROUNDS_KEPT), watch::Sender::new(0));
        Self { slots: Mutex::default(), rounds, covered, opened: Arc::default(), stop }
    }

    /// A slot for one more.
    ///
    /// # Errors
    /// There are as many as may be, or the node stops.
    pub fn enter(self: &Arc<Self>, user_id: UserId, subscription: &Subscription) -> Result<StreamSlot, NoStream> {
        let rounds = self.rounds.subscribe();
        let mut slots = self.lock();
        // A client that reads nothing keeps its connection, but not its slot.
        slots.taken.retain(|_, taken| taken.since.elapsed() < STREAM_MAX + COVER_MAX);
        if self.stop.is_cancelled() {
            return Err(NoStream::Stops);
        }
        if slots.taken.len() >= STREAMS_MAX {
            return Err(NoStream::Node);
        }
        if slots.taken.values().filter(|taken| taken.user_id == user_id).count() >= STREAMS_OF_USER_MAX {
            return Err(NoStream::User);
        }
        slots.last += 1;
        let number = slots.last;
        let watched_tenants = subscription.watched_tenants();
        let is_covered = slots.looked_for.as_ref().is_some_and(|looked_for| looked_for.covers(&watched_tenants));
        slots.taken.insert(number, TakenSlot { since: Instant::now(), user_id, watched_tenants });
        if slots.taken.len() == 1 {
            self.opened.notify_one();
        }
        Ok(StreamSlot { streams: Arc::clone(self), rounds, number, is_covered })
    }

    /// Whose changes are listened to, and the number of the latest stream; nothing when there is none.
    pub(super) fn watched(&self) -> Option<(u64, WatchedTenants)> {
        let mut slots = self.lock();
        if slots.taken.is_empty() {
            slots.looked_for = None;
            return None;
        }
        let mut tenants = BTreeSet::new();
        for taken in slots.taken.values() {
            match &taken.watched_tenants {
                WatchedTenants::Of(some) if tenants.len() <= TENANTS_MAX => tenants.extend(some.iter().copied()),
                _ => return Some((slots.last, WatchedTenants::All)),
            }
        }
        Some((slots.last, WatchedTenants::Of(tenants)))
    }

    /// Tenants that some stream asked for by themselves.
    pub(super) fn named(&self) -> BTreeSet<TenantId> {
        let slots = self.lock();
        let mut named = BTreeSet::new();
        for taken in slots.taken.values() {
            if let WatchedTenants::Of(some) = &taken.watched_tenants {
                named.extend(some.iter().copied().take(TENANTS_MAX.saturating_sub(named.len())));
            }
        }
        named
    }

    /// Tells all streams.
    pub(super) fn tell(&self, changes: Vec<Change>) {
        if !changes.is_empty() {
            // Sending fails only when there are no receivers, which is fine.
            let _ = self.rounds.send(Arc::new(changes));
        }
    }

    /// A look for these changes has ended: whatever changes from then on is told to the streams up to
    /// this one.
    pub(super) fn cover(&self, number: u64, looked_for: WatchedTenants) {
        self.lock().looked_for = Some(looked_for);
        self.covered.send_replace(number);
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamSlot {
    /// Waits until whatever changes is told to this stream.
    pub(super) async fn covered(&self) {
        if self.is_covered {
            return;
        }
        let mut covered = self.streams.covered.subscribe();
        // Too late is answered by the next hello; the sender lives as long as the streams do.
        let _ = tokio::time::timeout(COVER_MAX, covered.wait_for(|number| *number >= self.number)).await;
    }
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        self.streams.lock().taken.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::Access;

    fn everything() -> Subscription {
        Subscription::of(&Access::everything(), None)
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_bounded_and_come_back() {
        let streams = Arc::new(Streams::new(CancellationToken::new()));
        let mut slots: Vec<_> =
            (0..STREAMS_MAX).map_while(|user| streams.enter(UserId(user as i64), &everything()).ok()).collect();
        assert_eq!(slots.len(), STREAMS_MAX);
        assert_eq!(streams.enter(UserId(-1), &everything()).err(), Some(NoStream::Node));
        slots.pop();
        let last = streams.enter(UserId(-1), &everything()).expect("a place that has come back");
        tokio::time::advance(STREAM_MAX + COVER_MAX * 2).await;
        let late = streams.enter(UserId(-2), &everything()).expect("those that take nothing have lost theirs");
        drop((slots, last, late));
        assert_eq!(streams.watched(), None);
        streams.stop.cancel();
        assert_eq!(streams.enter(UserId(0), &everything()).err(), Some(NoStream::Stops));
    }

    #[test]
    fn no_one_takes_all_of_them() {
        let streams = Arc::new(Streams::new(CancellationToken::new()));
        let of_ann: Vec<_> = (0..STREAMS_MAX).map_while(|_| streams.enter(UserId(1), &everything()).ok()).collect();
        assert_eq!(of_ann.len(), STREAMS_OF_USER_MAX);
        assert_eq!(streams.enter(UserId(1), &everything()).err(), Some(NoStream::User));
        assert!(streams.enter(UserId(2), &everything()).is_ok());
    }

    #[test]
    fn subscriptions_match_what_is_polled() {
        let streams = Arc::new(Streams::new(CancellationToken::new()));
        let of = |tenant| Subscription::of(&Access::everything(), Some(tenant));
        let one = streams.enter(UserId(1), &of(TenantId(5))).unwrap();
        let two = streams.enter(UserId(1), &of(TenantId(7))).unwrap();
        assert_eq!(streams.watched(), Some((2, WatchedTenants::Of([TenantId(5), TenantId(7)].into()))));
        drop(one);
        let all = streams.enter(UserId(1), &everything()).unwrap();
        assert_eq!(streams.watched(), Some((3, WatchedTenants::All)));
        assert_eq!(streams.named(), [TenantId(7)].into());
        drop((two, all));
    }
}
