//! Executors that are announced, and the numbers by which executors of xxl-job know tasks and attempts.

use crate::fixture::World;
use carillon::domain::NodeId;
use carillon::domain::discovery::{DiscoverySpec, NacosService};
use carillon::domain::{AppId, ExecutorId, LogId, Owner, TaskId, TenantId};
use carillon::store::{
    Announced, AnnouncedAt, AnnouncedBy, Announcement, DiscoveryStore as _, ExecutorHeartbeat, ExecutorSource,
    ExecutorStore, HeartbeatVerdict, JobNumberStore, NumberedAttempt, PlainExecutorStore, SignedHeartbeat, SqlStore,
    StoreErrorKind,
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

databases!(
    what_is_told_of_an_executor_is_its_tags,
    who_was_announced_by_others_since_stays,
    sources_are_written_by_who_knows_the_last_one,
    what_nacos_says_is_noted_of_its_revision_alone,
    an_app_that_is_deleted_takes_its_source_along,
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
        tags: None,
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

fn tags(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

async fn what_is_told_of_an_executor_is_its_tags(world: World, store: SqlStore) {
    let (first, second) = (tags(&["zone=b"]), tags(&["zone=c"]));
    let found = Announcement {
        by: AnnouncedBy::Nacos,
        until: 0,
        tags: Some(&first),
        ..announcement(&world, "http://10.0.0.7:9999")
    };
    let tell = async |found: &Announcement<'_>, now| store.announce(found, &|| world.id(), now).await.unwrap();
    let seen = async || {
        let one = store.executors(0).await.unwrap().remove(0);
        let mut tags: Vec<String> = one.tags.iter().cloned().collect();
        tags.sort();
        (tags, one.described_at, one.heartbeat_at)
    };
    let id = tell(&found, world.now).await;
    let (_, _, alive_at) = seen().await;
    assert_eq!(seen().await, (first.clone(), world.now, alive_at));
    // Told again, it is neither described anew nor alive for that.
    tell(&found, world.now + 10).await;
    assert_eq!(seen().await, (first.clone(), world.now, alive_at));
    tell(&Announcement { tags: Some(&second), ..found }, world.now + 20).await;
    assert_eq!(seen().await, (second.clone(), world.now + 20, alive_at));
    // One that registers itself says nothing of them, and is alive.
    announce(&world, &store, "http://10.0.0.7:9999").await;
    let (now_tags, described_at, beat_at) = seen().await;
    assert!(now_tags == second && described_at == world.now + 20 && beat_at >= alive_at);
    let known = store.announced_of(world.owner, 10).await.unwrap();
    let (address, key_id, by) = ("http://10.0.0.7:9999".to_owned(), "ck_1".to_owned(), "registry".to_owned());
    assert_eq!(known, [AnnouncedAt { id, address, key_id, tags: second, by }]);
    let stranger = Owner { tenant_id: TenantId(world.owner.tenant_id.0 + 1), ..world.owner };
    store.tag(stranger, id, &first, world.now + 30).await.unwrap();
    assert!(store.announced_of(stranger, 10).await.unwrap().is_empty());
    assert_eq!(seen().await.1, world.now + 20, "another tenant's say");
    store.tag(world.owner, id, &[], world.now + 40).await.unwrap();
    assert_eq!((seen().await.0, seen().await.1), (Vec::new(), world.now + 40));
    // One that comes back has what is told of it then.
    store.tag(world.owner, id, &first, world.now + 50).await.unwrap();
    store.withdraw(world.owner, "http://10.0.0.7:9999", world.now + 60).await.unwrap();
    announce(&world, &store, "http://10.0.0.7:9999").await;
    assert!(seen().await.0.is_empty());
}

async fn who_was_announced_by_others_since_stays(world: World, store: SqlStore) {
    let fixed = Announcement { by: AnnouncedBy::Fixed, until: 0, ..announcement(&world, "http://10.0.0.7:9999") };
    let id = store.announce(&fixed, &|| world.id(), world.now).await.unwrap();
    let stranger = Owner { app_id: AppId(world.owner.app_id.0 + 1), ..world.owner };
    assert!(!store.withdraw_of(stranger, id, AnnouncedBy::Fixed, world.now).await.unwrap());
    assert!(!store.withdraw_of(world.owner, id, AnnouncedBy::Nacos, world.now).await.unwrap());
    announce(&world, &store, "http://10.0.0.7:9999").await;
    assert!(!store.withdraw_of(world.owner, id, AnnouncedBy::Fixed, world.now).await.unwrap());
    assert_eq!(online(&store).await, [(id, true)]);
    let unknown = Announcement { version: "", ..fixed };
    store.announce(&unknown, &|| world.id(), world.now).await.unwrap();
    assert_eq!(store.executors(0).await.unwrap()[0].version, "axios/1.7.4", "as it said itself");
    assert!(store.withdraw_of(world.owner, id, AnnouncedBy::Fixed, world.now).await.unwrap());
    assert!(!store.withdraw_of(world.owner, id, AnnouncedBy::Fixed, world.now).await.unwrap(), "it has gone");
    assert!(online(&store).await.is_empty());
}

fn source(service: &str) -> DiscoverySpec {
    let (namespace, group, port) = ("ns-1".to_owned(), "DEFAULT_GROUP".to_owned(), Some(9_999));
    let nacos = (!service.is_empty()).then(|| NacosService { namespace, group, service: service.to_owned(), port });
    DiscoverySpec { addresses: vec!["http://10.0.0.7:9999".to_owned()], nacos }
}

async fn sources_are_written_by_who_knows_the_last_one(world: World, store: SqlStore) {
    let owner = world.owner;
    assert_eq!(store.source(owner).await.unwrap(), None);
    let (first, second) = (source("orders"), source(""));
    store.put_source(owner, &first, 0, world.now).await.unwrap();
    let expected = |spec: &DiscoverySpec, revision, updated_at| ExecutorSource {
        owner,
        spec: spec.clone(),
        problem: String::new(),
        since: 0,
        revision,
        updated_at,
    };
    assert_eq!(store.source(owner).await.unwrap(), Some(expected(&first, 1, world.now)));
    for stale in [0, 2] {
        let refused = store.put_source(owner, &second, stale, world.now).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Conflict, "{refused}");
    }
    store.put_source(owner, &second, 1, world.now + 1).await.unwrap();
    let all = store.sources(AppId::NONE, 10).await.unwrap();
    assert_eq!(all, [expected(&second, 2, world.now + 1)]);
    assert!(store.sources(owner.app_id, 10).await.unwrap().is_empty(), "behind it");
    let stranger = Owner { tenant_id: TenantId(owner.tenant_id.0 + 1), ..owner };
    assert_eq!(store.source(stranger).await.unwrap(), None);
    let refused = store.put_source(stranger, &first, 2, world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotFound, "{refused}");
}

async fn what_nacos_says_is_noted_of_its_revision_alone(world: World, store: SqlStore) {
    let owner = world.owner;
    store.put_source(owner, &source("orders"), 0, world.now).await.unwrap();
    let noted = async |revision, problem: &str, since| {
        store.note_source(owner, revision, problem, since).await.unwrap();
        let source = store.source(owner).await.unwrap().unwrap();
        (source.problem, source.since)
    };
    assert_eq!(noted(1, "", 5).await, (String::new(), 5));
    assert_eq!(noted(1, "", 6).await, (String::new(), 5), "it has been so since then");
    assert_eq!(noted(1, "no", 7).await, ("no".to_owned(), 7));
    assert_eq!(noted(1, "no longer", 8).await, ("no longer".to_owned(), 7));
    assert_eq!(noted(2, "", 9).await, ("no longer".to_owned(), 7), "of another revision");
    let stranger = Owner { tenant_id: TenantId(owner.tenant_id.0 + 1), ..owner };
    store.note_source(stranger, 1, "", 9).await.unwrap();
    assert_eq!(noted(1, "", 10).await, (String::new(), 10));
    store.put_source(owner, &source("others"), 1, world.now).await.unwrap();
    assert_eq!(store.source(owner).await.unwrap().unwrap().since, 0, "nobody has asked for it");
}

async fn an_app_that_is_deleted_takes_its_source_along(world: World, store: SqlStore) {
    announce(&world, &store, "http://10.0.0.7:9999").await;
    store.put_source(world.owner, &source("orders"), 0, world.now).await.unwrap();
    let stranger = TenantId(world.owner.tenant_id.0 + 1);
    store.delete_app(stranger, world.owner.app_id).await.unwrap();
    assert_eq!(store.sources(AppId::NONE, 10).await.unwrap().len(), 1);
    assert_eq!(online(&store).await.len(), 1);
    store.delete_app(world.owner.tenant_id, world.owner.app_id).await.unwrap();
    assert!(store.sources(AppId::NONE, 10).await.unwrap().is_empty());
    assert!(online(&store).await.is_empty());
    let refused = store.put_source(world.owner, &source("orders"), 0, world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::NotFound, "{refused}");
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
