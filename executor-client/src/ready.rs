//! Due runs that wait for a slot: the most urgent first, then the earliest due.

use carillon_protocol::{PRIORITIES, RunKey};
use std::collections::VecDeque;

/// One queue per priority.
const LANES: usize = 9;

/// A run's entry in the queues on its way to a slot. Ordered by due time, then by log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    /// Cluster ms.
    pub(crate) due_ms: i64,
    pub(crate) key: RunKey,
    pub(crate) task: i64,
    pub(crate) priority: i32,
    /// Whether its task takes turns, so that it may not start beside another run of it.
    pub(crate) exclusive: bool,
    /// Whether its wait for a start is limited.
    pub(crate) limited: bool,
}

/// The queue before the slots.
#[derive(Debug)]
pub(crate) struct Ready {
    /// By priority, the most urgent last; each by due time, then in the order of arrival.
    lanes: [VecDeque<Ticket>; LANES],
    len: usize,
}

impl Ready {
    pub(crate) fn new() -> Self {
        Self { lanes: std::array::from_fn(|_| VecDeque::with_capacity(1_024)), len: 0 }
    }

    pub(crate) fn push(&mut self, ticket: Ticket) {
        let place = ticket.priority.clamp(*PRIORITIES.start(), *PRIORITIES.end()) - PRIORITIES.start();
        let lane = &mut self.lanes[place as usize];
        if lane.back().is_none_or(|last| last.due_ms <= ticket.due_ms) {
            lane.push_back(ticket);
        } else {
            // Arrived late: it goes before those that were due after it.
            let place = lane.partition_point(|other| other.due_ms <= ticket.due_ms);
            lane.insert(place, ticket);
        }
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<Ticket> {
        let next = self.lanes.iter_mut().rev().find_map(VecDeque::pop_front);
        self.len -= usize::from(next.is_some());
        next
    }

    /// Cancelled ones and those that lost their turn included: they are skipped when popped.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.lanes.iter().flatten()
    }

    pub(crate) fn clear(&mut self) {
        self.lanes.iter_mut().for_each(VecDeque::clear);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_urgent_leaves_first_then_the_earliest_due() {
        let mut ready = Ready::new();
        // (log, due, priority), in the order of arrival; priorities out of range count as the nearest.
        for (log, due_ms, priority) in
            [(1, 10, 5), (2, 20, 5), (3, 30, 9), (4, 15, 5), (5, 1, 0), (6, 15, 5), (7, 40, 99)]
        {
            ready.push(Ticket { due_ms, key: RunKey(log, 1), task: 1, priority, exclusive: false, limited: false });
        }
        assert_eq!(ready.len(), 7);
        let order: Vec<i64> = std::iter::from_fn(|| ready.pop()).map(|ticket| ticket.key.0).collect();
        assert_eq!(order, [3, 7, 1, 4, 6, 2, 5]);
        assert!(ready.is_empty());
    }
}
