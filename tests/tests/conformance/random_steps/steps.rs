//! The steps that stories are made of.

use super::TASKS;
use carillon::domain::permit::Bounds;
use carillon::domain::trigger::TRIGGERS;
use carillon::domain::{NodeId, Reason};
use carillon::store::Activity;
use proptest::prelude::*;
use std::ops::Range;

/// A step; numbers choose among what there is when it is taken.
#[derive(Debug, Clone)]
pub enum Step {
    WriteAhead { seconds: i64 },
    Claim { node: NodeId, pick: u64, stale: bool },
    ExpireUnclaimed { pick: u64, stale: bool },
    Acquire { pick: u64, stale: bool, ask: Ask },
    Release { pick: u64, in_order: bool },
    NoteWaits { pick: u64, stale: bool },
    RunDispatch { node: NodeId, pick: u64, executor: i64, stale: bool },
    DispatchShards { node: NodeId, pick: usize, total: i32 },
    Succeed { pick: u64, older: i32, stranger: bool, whole: bool },
    Transition { pick: u64, to: usize, reason: usize, stale: bool },
    NoteStop { pick: u64, stale: bool },
    ProcessOutbox { pick: u64 },
    Settle,
    StartRun { task: usize, second: i64, trigger: usize, key: Option<u8> },
    LeaveRunning { pick: u64, stale: bool },
    Revoke { pick: u64, stale: bool },
    Skip { second: i64 },
    Restore { second: i64 },
    Redefine { to: Activity },
    Backfill { second: i64 },
    Advance { stale: bool },
    Use { task: usize, executor: u8, floor: i64 },
    Purge { second: i64 },
}

/// When runs ask for permits: before they are due, when they are, or when they have been for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Early,
    Due,
    Long,
}

/// How runs ask for permits.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    pub bounds: Bounds,
    pub in_order: bool,
    pub when: When,
    /// Later ones before earlier ones.
    pub from_the_last: bool,
}

/// With one bound at least, as whoever asks has.
fn ask() -> impl Strategy<Value = Ask> {
    let bound = |most| prop::option::weighted(0.4, 1i32..most);
    let of_task = prop_oneof![3 => (1i32..3).prop_map(Some), 1 => Just(None)];
    let bounds = (of_task, bound(4), bound(5)).prop_map(|(task, app, tenant)| match (task, app) {
        (None, None) => Bounds { task, app: Some(2), tenant },
        _ => Bounds { task, app, tenant },
    });
    let when = prop_oneof![1 => Just(When::Early), 2 => Just(When::Due), 2 => Just(When::Long)];
    (bounds, any::<bool>(), when, any::<bool>()).prop_map(|(bounds, in_order, when, from_the_last)| Ask {
        bounds,
        in_order,
        when,
        from_the_last,
    })
}

/// The reasons that a guarded step may carry here.
pub const REASONS: [Reason; 4] =
    [Reason::HandlerFailed, Reason::GivenBack, Reason::TaskEdited, Reason::CancelledManually];

/// Mostly an edit of a started task.
fn activity() -> impl Strategy<Value = Activity> {
    let paused = Activity { started: false, pause_note: Some("why".to_owned()) };
    prop_oneof![3 => Just(Activity::of(true)), 1 => Just(Activity::of(false)), 1 => Just(paused)]
}

fn pick() -> impl Strategy<Value = u64> {
    any::<u64>()
}

fn stale() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.2)
}

fn node() -> impl Strategy<Value = NodeId> {
    (1i64..3).prop_map(NodeId)
}

/// What makes runs, and what is decided about them by people.
fn planned() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (2i64..8).prop_map(|seconds| Step::WriteAhead { seconds }),
        2 => (0..TASKS, 0i64..8, 0..TRIGGERS.len(), prop::option::of(0u8..3))
            .prop_map(|(task, second, trigger, key)| Step::StartRun { task, second, trigger, key }),
        3 => (pick(), stale()).prop_map(|(pick, stale)| Step::Revoke { pick, stale }),
        2 => (0i64..8).prop_map(|second| Step::Skip { second }),
        1 => (0i64..8).prop_map(|second| Step::Restore { second }),
        2 => activity().prop_map(|to| Step::Redefine { to }),
    ]
}

/// What becomes of runs from their claim to their end.
fn carried_out() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (node(), pick(), stale()).prop_map(|(node, pick, stale)| Step::Claim { node, pick, stale }),
        1 => (pick(), stale()).prop_map(|(pick, stale)| Step::ExpireUnclaimed { pick, stale }),
        4 => (node(), pick(), 7i64..9, stale())
            .prop_map(|(node, pick, executor, stale)| Step::RunDispatch { node, pick, executor, stale }),
        2 => (node(), any::<usize>(), 1i32..4).prop_map(|(node, pick, total)| Step::DispatchShards { node, pick, total }),
        4 => (pick(), 0i32..2, stale(), any::<bool>())
            .prop_map(|(pick, older, stranger, whole)| Step::Succeed { pick, older, stranger, whole }),
        4 => (pick(), any::<usize>(), 0..REASONS.len(), stale())
            .prop_map(|(pick, to, reason, stale)| Step::Transition { pick, to, reason, stale }),
        1 => (pick(), stale()).prop_map(|(pick, stale)| Step::NoteStop { pick, stale }),
        1 => (pick(), stale()).prop_map(|(pick, stale)| Step::LeaveRunning { pick, stale }),
        1 => Just(Step::Settle),
        3 => pick().prop_map(|pick| Step::ProcessOutbox { pick }),
    ]
}

fn permits() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (pick(), stale(), ask()).prop_map(|(pick, stale, ask)| Step::Acquire { pick, stale, ask }),
        1 => (pick(), any::<bool>()).prop_map(|(pick, in_order)| Step::Release { pick, in_order }),
        1 => (pick(), stale()).prop_map(|(pick, stale)| Step::NoteWaits { pick, stale }),
    ]
}

/// What is done beside them.
fn beside() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => (-8i64..4).prop_map(|second| Step::Backfill { second }),
        3 => stale().prop_map(|stale| Step::Advance { stale }),
        1 => (0..TASKS, 0u8..2, 0i64..5).prop_map(|(task, executor, floor)| Step::Use { task, executor, floor }),
        1 => (0i64..8).prop_map(|second| Step::Purge { second }),
    ]
}

/// So many of all kinds that two nodes may take at the same time.
pub fn steps(count: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop_oneof![3 => planned(), 5 => carried_out(), 2 => permits()], count)
}

/// So many after which something is there; in every other story most of what is there is queued, and few people interfere.
pub fn story(count: Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let busy = prop_oneof![1 => planned(), 6 => carried_out(), 6 => permits()];
    let all = prop_oneof![3 => planned(), 5 => carried_out(), 2 => permits(), 2 => beside()];
    let all = prop::collection::vec(all, count.clone());
    let begun = [Step::WriteAhead { seconds: 7 }, Step::Claim { node: NodeId(1), pick: u64::MAX, stale: false }];
    let busy = prop::collection::vec(busy, count.clone()).prop_map(move |steps| [begun.to_vec(), steps].concat());
    prop_oneof![all, busy]
}
