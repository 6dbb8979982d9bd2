//! What is old goes, in bounded batches.

use crate::executors::{process, register};
use crate::fixture::World;
use carillon::domain::plan::Plan;
use carillon::domain::quota::Quotas;
use carillon::domain::routing::UseChange;
use carillon::domain::task::TaskSpec;
use carillon::domain::{IdSource, LogId, NodeId, Owner, Reason, Run, Status, TaskId, Transition};
use carillon::store::{NewTask, NodeInfo};

cases!(
    only_ended_old_logs_go_and_at_most_so_many,
    each_tenant_keeps_its_logs_as_long_as_it_says,
    only_silent_members_go,
    uses_go_with_their_address_or_task,
);

const DAY_MS: i64 = 86_400_000;

/// Runs whose ids were made at `at`.
async fn runs_made_at(world: &World, at: i64, count: i64) -> Vec<Run> {
    runs_of(world, &World::every_second(&format!("made-at-{at}")), world.owner, at, count).await
}

async fn runs_of(world: &World, spec: &TaskSpec, owner: Owner, at: i64, count: i64) -> Vec<Run> {
    let source = IdSource::new(NodeId(2 + world.number() % 1_000));
    let task = NewTask { owner, ..world.new_task(spec, true) };
    world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
    let task = world.task(task.id).await;
    let mut plan: Plan = world.plan(&task, (0..count).map(|i| at + i * 1_000));
    for fire in &mut plan.fires {
        fire.id = source.next(at);
    }
    world.store.write_ahead(None, &[plan], world.now).await.unwrap();
    world.rows(task.id).await.into_iter().map(|row| row.dispatched.run).collect()
}

async fn only_ended_old_logs_go_and_at_most_so_many(world: World) {
    let old = runs_made_at(&world, world.now - 6 * DAY_MS, 7).await;
    let young = runs_made_at(&world, world.now - 4 * DAY_MS, 2).await;
    for run in old[..5].iter().chain(&young) {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    world.store.claim(NodeId(1), vec![old[5].clone()], world.now).await.unwrap();
    let before = world.now - 5 * DAY_MS;
    assert_eq!(world.store.purge(before, 3).await.unwrap(), 3);
    assert_eq!(world.store.purge(before, 3).await.unwrap(), 2);
    assert_eq!(world.store.purge(before, 3).await.unwrap(), 0);
    let left: Vec<LogId> = world.rows(old[0].task_id).await.iter().map(|row| row.dispatched.run.id).collect();
    assert_eq!(left, [old[5].id, old[6].id], "however old, what has not ended stays");
    assert_eq!(world.rows(young[0].task_id).await.len(), 2);
}

async fn each_tenant_keeps_its_logs_as_long_as_it_says(world: World) {
    let other = world.admin.make_app([world.id(), world.id()], "brief", "orders").await;
    let spec = World::every_second("work");
    let (mut mine, mut theirs) = (Vec::new(), Vec::new());
    for days in [9, 6, 3, 1] {
        mine.extend(
            runs_of(&world, &World::every_second(&format!("{days}")), world.owner, world.now - days * DAY_MS, 2).await,
        );
        let spec = TaskSpec { name: format!("theirs-{days}"), ..spec.clone() };
        theirs.extend(runs_of(&world, &spec, other, world.now - days * DAY_MS, 2).await);
    }
    // Ended at once, save one of the oldest.
    for run in mine.iter().chain(&theirs).filter(|run| run.id != theirs[0].id) {
        let change = Transition {
            finished_at: run.fire_time + 1,
            ..Transition::of(run, Status::Cancelled, Reason::TaskStopped)
        };
        assert_eq!(world.store.change(&[change]).await.unwrap().len(), 1);
    }
    assert_eq!(world.store.retentions().await.unwrap(), [0]);
    let keep = |retain_days| Quotas { retain_days, ..Quotas::default() };
    world.admin.set_quotas(other.tenant_id, &keep(2), world.now).await;
    assert_eq!(world.store.retentions().await.unwrap(), [0, 2]);
    let of = async |days: i32, age: i64| {
        let (mut looks, mut deleted) = (0, 0);
        loop {
            let purged = world.store.purge_of(days, world.now - age * DAY_MS, 3).await.unwrap();
            (looks, deleted) = (looks + 1, deleted + purged.deleted);
            assert!(purged.deleted <= 3);
            if !purged.is_more {
                return (looks, deleted);
            }
        }
    };
    let left = async |runs: &[Run]| {
        let mut left = 0;
        for run in runs {
            left += world.rows(run.task_id).await.iter().filter(|log| log.dispatched.run.id == run.id).count();
        }
        left
    };
    assert_eq!(of(2, 2).await, (5, 5), "twelve looked at, three at a time");
    assert_eq!((left(&mine).await, left(&theirs).await), (8, 3));
    assert_eq!(of(2, 2).await, (1, 0), "it goes on where it ended");
    // The other way round: they keep theirs longer than the default.
    world.admin.set_quotas(other.tenant_id, &keep(30), world.now).await;
    assert_eq!(of(0, 5).await.1, 4);
    assert_eq!((left(&mine).await, left(&theirs).await), (4, 3));
    // A tenant that comes back is looked at from the beginning.
    world.moved(&theirs[0], Status::Cancelled, Reason::CancelledManually).await;
    world.admin.set_quotas(other.tenant_id, &keep(0), world.now).await;
    assert_eq!((of(0, 5).await.1, left(&theirs).await), (1, 2));
}

async fn only_silent_members_go(world: World) {
    let info = NodeInfo { name: "a".to_owned(), ..NodeInfo::default() };
    world.store.join(&info).await.unwrap();
    assert_eq!(world.store.purge_members(world.now - 60_000, 10).await.unwrap(), 0);
    assert_eq!(world.store.nodes().await.unwrap().len(), 1);
    assert_eq!(world.store.purge_members(world.now + 60_000, 10).await.unwrap(), 1);
    assert!(world.store.nodes().await.unwrap().is_empty());
}

/// However old a use is: it counts until its address, or its task, is no more.
async fn uses_go_with_their_address_or_task(world: World) {
    let run = runs_made_at(&world, world.now, 1).await.remove(0);
    register(&world, &process("one", "here", &["pay"])).await;
    let used = |task_id, address: &str| UseChange { task_id, address: address.into(), floor: 0, added: 1, last: 5 };
    let (here, gone) = ("http://here:1", "http://gone:1");
    let changes = [used(run.task_id, here), used(run.task_id, gone), used(TaskId(7), here)];
    world.store.add_uses(&changes, &|| world.id()).await.unwrap();
    assert_eq!(world.store.purge_members(world.now - 60_000, 10).await.unwrap(), 2);
    let left = world.store.uses(&[run.task_id, TaskId(7)]).await.unwrap();
    assert_eq!(
        left.iter().map(|(task, address, _)| (*task, address.as_str())).collect::<Vec<_>>(),
        [(run.task_id, here)]
    );
}
