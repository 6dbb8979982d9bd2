//! What a node's loops read of the runs: what is to be claimed, what may be lost, what is to be stopped, who holds permits.

use super::{NOW, Tasks};
use crate::fixture::World;
use carillon::domain::{BackfillId, ExecutorId, LogId, NodeId, Run};
use carillon::store::{DueRange, FROM_THE_FIRST, LeftOut, MissedQuestion, Suspects};
use std::fmt::Debug;

/// More than there is.
const ALL: u64 = 1_000;

/// Each as a line; `at` is the time of the last step, ms.
pub async fn reads(world: &World, tasks: Tasks, runs: &[Run], at: i64) -> Vec<String> {
    let store = &world.store;
    let besides = LeftOut { tenants: vec![world.owner.tenant_id], priority: 4 };
    let past = NOW + 4_000;
    let mut found = vec![
        told("claimable", &store.claimable(None, DueRange::until(i64::MAX), ALL).await.unwrap()),
        told("claimable soon", &store.claimable(None, DueRange { after: NOW, until: past }, ALL).await.unwrap()),
        told("besides", &store.claimable_besides(&besides, DueRange::until(i64::MAX), ALL).await.unwrap()),
        told("queued for 1", &store.queued_of(NodeId(1), DueRange::ALL, ALL).await.unwrap()),
        told("queued for 2 before", &store.queued_before(NodeId(2), at, DueRange::until(past), ALL).await.unwrap()),
        told("queued for others", &store.queued_of_others(&[NodeId(1)], DueRange::ALL, ALL).await.unwrap()),
        told("overdue", &store.overdue(&tasks.map(|task| (task, NOW)), past, ALL).await.unwrap()),
        told("holders", &store.holders(&tasks).await.unwrap()),
        told("stopping", &store.stopping(past, FROM_THE_FIRST, ALL).await.unwrap()),
        told("shards to stop", &store.shards_to_stop(ALL).await.unwrap()),
        told("open parents", &store.open_parents(at, past, FROM_THE_FIRST, ALL).await.unwrap()),
        told("held", store.held_after(NOW, past, 2).await.unwrap().as_slice()),
        told("uses", &store.uses(&tasks).await.unwrap()),
        told("backfills", &store.open_backfills(BackfillId(0), ALL).await.unwrap()),
    ];
    let ids: Vec<LogId> = runs.iter().map(|run| run.id).collect();
    found.push(told("parents", &store.parents_of(&ids).await.unwrap()));
    let question = |(task, place)| MissedQuestion { task, from: NOW, until: past, place };
    let questions = [(tasks[0], 2), (tasks[1], 1)].map(question);
    found.push(told("missed", &store.missed_at(&questions, past).await.unwrap()));
    let of_any = Suspects {
        executors: Vec::new(),
        except: Vec::new(),
        due_before: i64::MAX,
        or_not_by: Vec::new(),
        until: i64::MAX,
        after: FROM_THE_FIRST,
        limit: ALL,
    };
    let heard = Suspects {
        executors: vec![ExecutorId(7)],
        due_before: past,
        or_not_by: vec![NodeId(1)],
        until: NOW + 6_000,
        after: (NOW, LogId::NONE),
        ..of_any.clone()
    };
    let silent = Suspects { except: vec![ExecutorId(7)], ..of_any.clone() };
    for suspects in [of_any, heard, silent] {
        found.push(told("suspects", &store.suspects(&suspects).await.unwrap()));
    }
    found
}

/// In one order, whatever the store's: that is for its cases to look at.
fn told<T: Debug>(what: &str, found: &[T]) -> String {
    let mut lines: Vec<String> = found.iter().map(|one| format!("{one:?}")).collect();
    lines.sort();
    format!("{what}: {}", lines.join(", "))
}
