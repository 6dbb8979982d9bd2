//! Ids made by the nodes: 64 bits, ordered by time, unique without asking the database.
//!
//! 41 bits of milliseconds since 2025-01-01, 10 bits of node number, 12 bits of sequence
//! (4,096 per node and millisecond; a burst borrows from the coming milliseconds).

use super::NodeId;
use std::sync::atomic::{AtomicI64, Ordering};

/// 2025-01-01T00:00:00Z, epoch ms.
const EPOCH_MS: i64 = 1_735_689_600_000;

/// Bits below the milliseconds: the node, and the lowest, which count within a millisecond.
pub(crate) const NODE_BITS: i64 = 10;
pub(crate) const SEQUENCE_BITS: i64 = 12;

/// Milliseconds that an id has room for.
const MS_MAX: i64 = (1 << 41) - 1;

/// Largest node number.
pub const NODE_NUMBER_MAX: i64 = (1 << NODE_BITS) - 1;

/// Makes ids for one node.
#[derive(Debug)]
pub struct IdSource {
    node: i64,
    /// Milliseconds and sequence of the last id, packed.
    last: AtomicI64,
}

impl IdSource {
    /// Ids of node `node`, 1..=[`NODE_NUMBER_MAX`].
    #[must_use]
    pub fn new(node: NodeId) -> Self {
        Self { node: node.0 & NODE_NUMBER_MAX, last: AtomicI64::new(0) }
    }

    /// The same, larger than those that a process made until `after` (epoch ms): it may have had the same number.
    #[must_use]
    pub fn after(node: NodeId, after: i64) -> Self {
        let last = ((after - EPOCH_MS).max(0) << SEQUENCE_BITS) | ((1 << SEQUENCE_BITS) - 1);
        Self { last: AtomicI64::new(last), ..Self::new(node) }
    }

    /// A new id at `now` (epoch ms): larger than every one before from this source, also when
    /// the clock steps back.
    pub fn next<Id: From<i64>>(&self, now: i64) -> Id {
        let floor = (now - EPOCH_MS).max(0) << SEQUENCE_BITS;
        let step = |last: i64| Some(floor.max(last + 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step);
        // `step` never declines, so both arms hold the value before.
        let packed = floor.max(last.unwrap_or_else(|seen| seen) + 1);
        let (ms, sequence) = (packed >> SEQUENCE_BITS, packed & ((1 << SEQUENCE_BITS) - 1));
        Id::from((ms << (NODE_BITS + SEQUENCE_BITS)) | (self.node << SEQUENCE_BITS) | sequence)
    }

    /// The node of this source.
    #[must_use]
    pub fn node(&self) -> NodeId {
        NodeId(self.node)
    }

    /// When `id` was made, epoch ms; in a burst up to some milliseconds later than it was asked for.
    #[must_use]
    pub fn made_at(id: impl Into<i64>) -> i64 {
        EPOCH_MS + (id.into() >> (NODE_BITS + SEQUENCE_BITS))
    }

    /// The number of the node that made `id`; 0 when no node did.
    #[must_use]
    pub fn made_by(id: impl Into<i64>) -> NodeId {
        NodeId((id.into() >> SEQUENCE_BITS) & NODE_NUMBER_MAX)
    }

    /// The smallest id of any node at `time` (epoch ms); everything older is smaller.
    #[must_use]
    pub fn first_at<Id: From<i64>>(time: i64) -> Id {
        Id::from(time.saturating_sub(EPOCH_MS).clamp(0, MS_MAX) << (NODE_BITS + SEQUENCE_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_even_when_the_clock_steps_back_or_a_burst_outruns_it() {
        let source = IdSource::new(NodeId(7));
        let now = EPOCH_MS + 1_000;
        let mut last = 0;
        for i in 0..10_000 {
            let id: i64 = source.next(if i % 3 == 0 { now - 500 } else { now });
            assert!(id > last);
            assert_eq!(IdSource::made_by(id), NodeId(7));
            last = id;
        }
        let fresh: i64 = IdSource::new(NodeId(9)).next(now);
        assert_eq!((IdSource::made_at(fresh), IdSource::made_by(fresh)), (now, NodeId(9)));
        assert!(IdSource::first_at::<i64>(now) <= source.next(now));
        assert!(IdSource::first_at::<i64>(now + 10) > source.next(now));
        for far in [i64::MIN, 0, i64::MAX] {
            assert!(IdSource::first_at::<i64>(far) >= 0);
        }
    }

    #[test]
    fn the_next_process_makes_larger_ones_although_the_clock_was_set_back() {
        let before = IdSource::new(NodeId(7));
        let last: i64 = (0..10).map(|_| before.next(EPOCH_MS + 5_000)).max().unwrap();
        let next = IdSource::after(NodeId(7), EPOCH_MS + 5_000);
        assert!(next.next::<i64>(EPOCH_MS + 1_000) > last);
        assert_eq!(IdSource::made_at(next.next::<i64>(EPOCH_MS + 9_000)), EPOCH_MS + 9_000);
    }

    #[test]
    fn nodes_never_share_an_id() {
        let (a, b) = (IdSource::new(NodeId(1)), IdSource::new(NodeId(2)));
        let now = EPOCH_MS + 5;
        let ids: std::collections::HashSet<i64> = (0..1_000).flat_map(|_| [a.next(now), b.next(now)]).collect();
        assert_eq!(ids.len(), 2_000);
    }
}
