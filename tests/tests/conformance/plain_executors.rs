//! Executors that are announced, and the numbers by which executors of xxl-job know tasks and attempts.

use crate::fixture::World;
use carillon::domain::NodeId;
use carillon::domain::{AppId, ExecutorId, LogId, Owner, TaskId, TenantId};
use carillon::store::{
    Announced, AnnouncedBy, Announcement, ExecutorHeartbeat, ExecutorStore, HeartbeatVerdict, JobNumberStore,
    NumberedAttempt, PlainExecutorStore, SignedHeartbeat,
};
use std::collections::{BTreeSet, HashMap};

stores!(
    an_announcement_makes_an_executor_that_has_every_handler,
    announced_at_once_by_two_nodes_it_is_one,
    who_is_withdrawn_comes_back_as_the_same,
    announcements_end,
    another_apps_address_is_another_executor,
    tasks_are_numbered_once_within_their_tenant,
    numbers_that_are_asked_for_at_once_differ,
    numbers_of_an_app_come_together,
    later_attempts_have_numbers_of_their_own,
);

/// What is asked of a store here.
trait PlainStore: ExecutorStore + PlainExecutorStore + JobNumberStore {}

impl<T: ExecutorStore + PlainExecutorStore + JobNumberStore> PlainStore for T {}

const MINUTE_MS: i64 = 60_000;

fn announcement<'a>(world: &World, address: &'a str) -> Announcement<'a> {
    let until = world.now + 2 * MINUTE_MS;
    Announcement {
        owner: world.owner,
        key_id: "ck_1",
        address,
        version: "axios/1.7.4",
        by: AnnouncedBy::Registry,
        until,
    }
}

async fn announce(world: &World, store: &impl PlainStore, address: &str) -> ExecutorId {
    store.announce(&announcement(world, address), &|| world.id(), world.now).await.unwrap()
}

async fn online(store: &impl PlainStore) -> Vec<(ExecutorId, bool)> {
    let mut online: Vec<_> = store.executors(0).await.unwrap().into_iter().map(|one| (one.id, one.plain)).collect();
    online.sort_unstable();
    online
}

fn ids(announced: &[Announced]) -> Vec<ExecutorId> {
    announced.iter().map(|one| one.id).collect()
}

async fn an_announcement_makes_an_executor_that_has_every_handler(world: World, store: impl PlainStore) {
    let id = announce(&world, &store, "http://10.0.0.7:9999").await;
    assert_eq!(announce(&world, &store, "http://10.0.0.7:9999").await, id, "again and again");
    let executor = store.executors(0).await.unwrap().remove(0);
    assert!(executor.plain && executor.has("anything"));
    assert_eq!(
        (executor.id, executor.address.as_str(), executor.key_id.as_str()),
        (id, "http://10.0.0.7:9999", "ck_1")
    );
    assert_eq!(executor.version, "axios/1.7.4");
    let other = Announcement { version: "Java/17", ..announcement(&world, "http://10.0.0.7:9999") };
    assert_eq!(store.announce(&other, &|| world.id(), world.now + 1).await.unwrap(), id);
    let read = store.executors(0).await.unwrap().remove(0);
    assert_eq!((read.version.as_str(), read.described_at > executor.described_at), ("Java/17", true), "described anew");
    let announced = store.announced(ExecutorId::NONE, 10).await.unwrap();
    assert_eq!(ids(&announced), [id]);
    assert!(store.announced(id, 10).await.unwrap().is_empty(), "behind it");
    // A node beats for it.
    let Announced { owner, instance, .. } = announced[0].clone();
    let beat = |signed_at| SignedHeartbeat {
        owner,
        signed_at,
        heartbeat: ExecutorHeartbeat {
            executor_id: id,
            instance: instance.clone(),
            held: 0,
            running: 0,
            draining: false,
            node_id: NodeId(1),
        },
    };
    assert_eq!(store.beats(&[beat(world.now)]).await.unwrap(), [HeartbeatVerdict::Committed]);
    assert_eq!(store.beats(&[beat(world.now)]).await.unwrap(), [HeartbeatVerdict::Outdated]);
}

async fn announced_at_once_by_two_nodes_it_is_one(world: World, store: impl PlainStore) {
    for number in 0..10 {
        let address = format!("http://10.0.0.7:{}", 9_000 + number);
        let (one, other) = tokio::join!(announce(&world, &store, &address), announce(&world, &store, &address));
        assert_eq!(one, other);
    }
    assert_eq!(online(&store).await.len(), 10);
}

async fn who_is_withdrawn_comes_back_as_the_same(world: World, store: impl PlainStore) {
    let id = announce(&world, &store, "http://10.0.0.7:9999").await;
    let stranger = Owner { tenant_id: TenantId(world.owner.tenant_id.0 + 1), ..world.owner };
    assert_eq!(store.withdraw(stranger, "http://10.0.0.7:9999", world.now).await.unwrap(), None);
    assert_eq!(store.withdraw(world.owner, "http://10.0.0.8:9999", world.now).await.unwrap(), None);
    assert_eq!(online(&store).await, [(id, true)]);
    assert_eq!(store.withdraw(world.owner, "http://10.0.0.7:9999", world.now).await.unwrap(), Some(id));
    assert_eq!(store.withdraw(world.owner, "http://10.0.0.7:9999", world.now).await.unwrap(), None, "it has gone");
    assert!(online(&store).await.is_empty() && store.announced(ExecutorId::NONE, 10).await.unwrap().is_empty());
    assert_eq!(announce(&world, &store, "http://10.0.0.7:9999").await, id);
    assert_eq!(online(&store).await, [(id, true)]);
}

async fn announcements_end(world: World, store: impl PlainStore) {
    let id = announce(&world, &store, "http://10.0.0.7:9999").await;
    let fixed = Announcement { by: AnnouncedBy::Fixed, until: 0, ..announcement(&world, "http://10.0.0.8:9999") };
    let fixed = store.announce(&fixed, &|| world.id(), world.now).await.unwrap();
    assert_eq!(store.end_announcements(world.now + 2 * MINUTE_MS).await.unwrap(), 0);
    assert_eq!(store.end_announcements(world.now + 2 * MINUTE_MS + 1).await.unwrap(), 1);
    assert_eq!(ids(&store.announced(ExecutorId::NONE, 10).await.unwrap()), [fixed]);
    assert_eq!(announce(&world, &store, "http://10.0.0.7:9999").await, id);
}

async fn another_apps_address_is_another_executor(world: World, store: impl PlainStore) {
    let id = announce(&world, &store, "http://10.0.0.7:9999").await;
    let owner = Owner { app_id: AppId(world.owner.app_id.0 + 1), ..world.owner };
    let other = Announcement { owner, ..announcement(&world, "http://10.0.0.7:9999") };
    let other = store.announce(&other, &|| world.id(), world.now).await.unwrap();
    assert_ne!(id, other);
    assert_eq!(store.withdraw(owner, "http://10.0.0.7:9999", world.now).await.unwrap(), Some(other));
    assert_eq!(online(&store).await, [(id, true)]);
}

async fn tasks_are_numbered_once_within_their_tenant(world: World, store: impl PlainStore) {
    let owner = world.owner;
    let numbered = async |owner: Owner, tasks: &[i64]| {
        let tasks: Vec<TaskId> = tasks.iter().map(|id| TaskId(*id)).collect();
        let numbers = store.job_numbers(owner, &tasks).await.unwrap();
        tasks.iter().map(|task| numbers[task]).collect::<Vec<_>>()
    };
    assert_eq!(numbered(owner, &[70, 71]).await, [1, 2]);
    assert_eq!(numbered(owner, &[72, 71, 70]).await, [3, 2, 1]);
    let same_tenant = Owner { app_id: AppId(owner.app_id.0 + 1), ..owner };
    assert_eq!(numbered(same_tenant, &[80]).await, [4], "of another app");
    let other = Owner { tenant_id: TenantId(owner.tenant_id.0 + 1), ..owner };
    assert_eq!(numbered(other, &[90]).await, [1], "each tenant counts by itself");
    assert!(store.job_numbers(owner, &[]).await.unwrap().is_empty());
}

async fn numbers_that_are_asked_for_at_once_differ(world: World, store: impl PlainStore) {
    let mine: Vec<TaskId> = (1..40).map(TaskId).collect();
    let theirs: Vec<TaskId> = (20..60).map(TaskId).collect();
    let (mine, theirs) = tokio::join!(store.job_numbers(world.owner, &mine), store.job_numbers(world.owner, &theirs));
    let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
    let all: HashMap<TaskId, i32> = mine.iter().chain(&theirs).map(|(task, number)| (*task, *number)).collect();
    assert!(mine.iter().all(|(task, number)| all[task] == *number), "the same task has the same number");
    assert_eq!(all.values().copied().collect::<BTreeSet<i32>>().len(), all.len());
}

async fn numbers_of_an_app_come_together(world: World, store: impl PlainStore) {
    let mut tasks = Vec::new();
    for name in ["a", "b", "c", "d"] {
        tasks.push(world.stopped(&World::every_second(name)).await.id);
    }
    let far = Owner { app_id: AppId(world.owner.app_id.0 + 1), ..world.owner };
    assert_eq!(store.job_numbers(far, &[TaskId(7)]).await.unwrap(), HashMap::from([(TaskId(7), 1)]));
    assert_eq!(store.job_numbers(world.owner, &tasks[2..3]).await.unwrap(), HashMap::from([(tasks[2], 2)]));
    let expected = HashMap::from([(tasks[0], 5), (tasks[1], 3), (tasks[2], 2), (tasks[3], 4)]);
    assert_eq!(store.job_numbers_from(world.owner, tasks[1]).await.unwrap(), expected, "the later ones first");
    assert_eq!(store.job_numbers_from(world.owner, tasks[3]).await.unwrap(), expected, "once more");
    // Its runs go on, and are told by its number.
    let deleted = TaskId(i64::MAX);
    for _ in 0..2 {
        let numbers = store.job_numbers_from(world.owner, deleted).await.unwrap();
        assert_eq!((numbers.len(), numbers[&deleted]), (5, 6));
    }
}

async fn later_attempts_have_numbers_of_their_own(world: World, store: impl PlainStore) {
    let attempt = |log, attempt| NumberedAttempt { owner: world.owner, log: LogId(log), attempt };
    // The first that is made is in use each time.
    let numbers = |tried: usize| [7, 8, 9][tried];
    let number = async |of: NumberedAttempt| store.attempt_number(&of, &numbers, world.now).await;
    assert_eq!(number(attempt(100, 2)).await.unwrap(), 7);
    assert_eq!(number(attempt(100, 2)).await.unwrap(), 7, "asked again");
    assert_eq!(number(attempt(100, 3)).await.unwrap(), 8);
    let found = store.numbered_attempts(&[8, 7, 99]).await.unwrap();
    assert_eq!(found, HashMap::from([(7, attempt(100, 2)), (8, attempt(100, 3))]));
    assert_eq!(store.forget_attempt_numbers(world.now).await.unwrap(), 0);
    assert_eq!(store.forget_attempt_numbers(world.now + 1).await.unwrap(), 2);
    assert!(store.numbered_attempts(&[7]).await.unwrap().is_empty());
}
