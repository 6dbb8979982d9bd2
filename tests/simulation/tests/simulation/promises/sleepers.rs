//! The one exception to promises 4 and 11: an executor that stands still, and cannot be told from one that is gone. When it has been
//! silent for so long that it would have stopped what it ran, that is repeated. When it is back, its handlers go on until it has
//! told them to stop.

use super::Evidence;
use crate::faults::{Fault, Mishap};
use crate::settings::{ABANDON_AFTER_MS, HEARTBEAT_MS, OFFLINE_AFTER_MS};
use carillon_protocol::RunKey;
use std::ops::Range;

/// Who stands still for so long has stopped what it ran, as far as others can know, ms: they heard of it up to a heartbeat before.
const GIVEN_UP_MS: i64 = ABANDON_AFTER_MS + 2 * OFFLINE_AFTER_MS - HEARTBEAT_MS;

/// Who is back has told its handlers to stop within this time, ms.
const TOLD_WITHIN_MS: i64 = 600;

impl Evidence<'_> {
    /// Whether the executor of this attempt stood still at that time (true time, epoch ms), had been silent for so long, and the attempt
    /// ended as soon as it was back.
    pub fn was_asleep(&self, key: RunKey, at: i64) -> bool {
        let Some(starts) = self.starts.get(&key) else { return false };
        let machine = starts[0].machine;
        self.sleeps(machine).into_iter().any(|Range { start: from, end: until }| {
            let ended_soon = self.stops.get(&key).is_some_and(|stop| stop.at <= until + TOLD_WITHIN_MS);
            from <= at && self.silent_from(machine, from) + GIVEN_UP_MS <= at && ended_soon
        })
    }

    /// When an executor stands still. It may do so once more before it is back.
    fn sleeps(&self, machine: usize) -> Vec<Range<i64>> {
        let freezes = self.world.faults.iter().filter(|planned| {
            matches!(planned.fault, Fault::Befalls { executor, mishap: Mishap::Freeze, .. } if executor == machine)
        });
        let began = self.world.began;
        let mut sleeps: Vec<_> = freezes.map(|planned| began + planned.at..began + planned.until()).collect();
        sleeps.sort_by_key(|sleep| sleep.start);
        let mut merged: Vec<Range<i64>> = Vec::new();
        for sleep in sleeps {
            match merged.last_mut() {
                Some(last) if sleep.start <= last.end => last.end = last.end.max(sleep.end),
                _ => merged.push(sleep),
            }
        }
        merged
    }

    /// Since when an executor that stands still from that time on has reached no node.
    fn silent_from(&self, machine: usize, from: i64) -> i64 {
        let islands = self.world.faults.iter().filter(|planned| {
            let cuts = matches!(planned.fault, Fault::Island { executor, .. } if executor == machine);
            cuts && (planned.at..=planned.until() + HEARTBEAT_MS).contains(&(from - self.world.began))
        });
        islands.map(|planned| self.world.began + planned.at).min().unwrap_or(from).min(from)
    }
}
