//! Executors: registration, heartbeat, farewell.

use crate::fixture::{World, dispatch_of, success};
use carillon::domain::task::{BlockStrategy, NEVER, Routing, TaskSpec};
use carillon::domain::{ExecutorId, NodeId, Owner, Reason, Run, Status, TenantId, Transition};
use carillon::store::{ExecutorHeartbeat, HeartbeatVerdict, SignedHeartbeat, Signer, StoreErrorKind};
use carillon_protocol::{HandlerInfo, Register, RunKey};
use carillon_tests::Kind;
use futures_util::future::join_all;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

cases!(
    registering_makes_a_stopped_task_of_each_new_handler_once,
    a_handler_brings_the_policies_of_its_task,
    an_invalid_default_locks_out_no_one,
    the_same_instance_keeps_its_id,
    processes_that_register_at_once_all_get_in,
    a_new_process_at_an_address_replaces_the_old_one,
    a_process_that_nobody_knew_drives_out_no_newer_one,
    a_beat_counts_for_its_own_instance_and_scope,
    retiring_drains_or_ends_an_executor_of_the_scope,
    a_message_counts_once_and_in_order,
    heartbeats_of_many_are_committed_together,
    what_changes_is_told_without_the_rest,
    a_clock_set_back_locks_out_no_one,
    after_a_silence_an_executor_keeps_what_is_still_its_own,
    an_executor_hides_no_other,
);

pub fn process(instance: &str, address: &str, handlers: &[&str]) -> Register {
    let handler = |name: &&str| HandlerInfo {
        name: (*name).to_owned(),
        cron: Some("0 0 3 * * ?".to_owned()),
        time_zone: Some("Asia/Shanghai".to_owned()),
        timeout_ms: 5_000,
        ..HandlerInfo::default()
    };
    Register {
        instance: instance.to_owned(),
        address: format!("http://{address}:1"),
        own_address: true,
        host_name: "host".to_owned(),
        pid: 1,
        version: "1".to_owned(),
        tags: vec!["gpu".to_owned()],
        description: String::new(),
        capacity: 4,
        handlers: handlers.iter().map(handler).collect(),
        acknowledged_at: 0,
    }
}

pub async fn register(world: &World, process: &Register) -> ExecutorId {
    ExecutorId(world.store.register(&signer(world), process, &|| world.id(), world.now).await.unwrap().executor_id.0)
}

/// Each is newer than the one before.
pub fn signer(world: &World) -> Signer<'static> {
    static AT: AtomicI64 = AtomicI64::new(1);
    Signer { owner: world.owner, key_id: "key", signed_at: AT.fetch_add(1, Ordering::Relaxed) }
}

fn beat(executor_id: ExecutorId, instance: &str) -> ExecutorHeartbeat {
    ExecutorHeartbeat {
        executor_id,
        instance: instance.to_owned(),
        held: 1,
        running: 2,
        draining: false,
        node_id: NodeId(1),
    }
}

async fn online(world: &World) -> Vec<ExecutorId> {
    let mut ids: Vec<ExecutorId> = world.store.executors(0).await.unwrap().iter().map(|executor| executor.id).collect();
    ids.sort_unstable();
    ids
}

async fn registering_makes_a_stopped_task_of_each_new_handler_once(world: World) {
    let named = async |name: &str| world.admin.tasks_named("retail", name).await;
    register(&world, &process("one", "a", &["pay", "ship"])).await;
    let pay = named("pay").await.remove(0);
    assert_eq!((pay.activity.started, pay.next_fire_at, pay.revision), (false, NEVER, 1));
    assert_eq!((pay.spec.handler.as_str(), pay.spec.cron.as_str()), ("pay", "0 0 3 * * ?"));
    assert_eq!((pay.spec.time_zone.as_str(), pay.spec.timeout_ms), ("Asia/Shanghai", 5_000));

    world.admin.delete_task(&pay, world.now).await.unwrap();
    register(&world, &process("one", "a", &["pay", "ship", "count"])).await;
    register(&world, &process("two", "b", &["pay", "ship", "count"])).await;
    assert!(named("pay").await.is_empty(), "what an admin deleted stays deleted");
    assert_eq!(named("ship").await.len(), 1);
    assert_eq!(named("count").await.len(), 1);
}

async fn a_handler_brings_the_policies_of_its_task(world: World) {
    let mut process = process("one", "a", &["pay", "ship"]);
    let policies = json!({
        "routing": "sharding", "block_strategy": "serial", "max_retries": 2, "tags": ["eu"], "params": { "a": 1 },
        // Not theirs to say.
        "name": "other", "handler": "other", "parents": [{ "task": "ship" }],
    });
    process.handlers[0].policies.clone_from(policies.as_object().unwrap());
    // The fields that stood in the message before win over policies of the same name.
    process.handlers[0].policies.insert("cron".to_owned(), json!("every now and then"));
    register(&world, &process).await;
    let pay = world.admin.tasks_named("retail", "pay").await.remove(0);
    let expected = TaskSpec {
        routing: Routing::Sharding,
        block_strategy: BlockStrategy::Serial,
        max_retries: 2,
        tags: vec!["eu".to_owned()],
        params: "{\"a\":1}".to_owned(),
        handler: "pay".to_owned(),
        time_zone: "Asia/Shanghai".to_owned(),
        timeout_ms: 5_000,
        ..World::cron("pay", "0 0 3 * * ?")
    };
    assert_eq!(pay.spec, expected);
    assert!(!pay.activity.started);
    assert!(world.admin.tasks_named("retail", "other").await.is_empty());
}

async fn an_invalid_default_locks_out_no_one(world: World) {
    let mut odd = process("one", "a", &["cron", "unknown", "range", "kind"]);
    odd.handlers[0].cron = Some("every now and then".to_owned());
    let policies = [json!({}), json!({ "colour": "red" }), json!({ "max_retries": -1 }), json!({ "tags": "eu" })];
    for (handler, policies) in odd.handlers.iter_mut().zip(policies) {
        handler.policies.clone_from(policies.as_object().unwrap());
    }
    register(&world, &odd).await;
    for name in ["cron", "unknown", "range", "kind"] {
        let task = world.admin.tasks_named("retail", name).await.remove(0);
        let plain = TaskSpec { name: name.to_owned(), handler: name.to_owned(), ..TaskSpec::default() };
        assert_eq!(task.spec, plain, "the product's defaults");
    }
}

async fn the_same_instance_keeps_its_id(world: World) {
    let first = register(&world, &process("one", "a", &["pay"])).await;
    let again = Register { tags: vec!["cpu".to_owned()], ..process("one", "a", &["pay", "ship"]) };
    assert_eq!(register(&world, &again).await, first);
    let executor = world.store.executors(0).await.unwrap().remove(0);
    assert_eq!(executor.tags, ["cpu".to_owned()].into());
    assert_eq!(executor.handlers, ["pay".to_owned(), "ship".to_owned()].into());
    assert_eq!((executor.tenant_id, executor.app_id), (world.owner.tenant_id, world.owner.app_id));
    assert!(!executor.draining);
    assert_eq!(executor.key_id, "key", "whose key signed it");
}

/// A deployment starts all its processes at once, with handlers that are new.
async fn processes_that_register_at_once_all_get_in(world: World) {
    let registrations = (0..6).map(|number| {
        let store = Arc::clone(if number % 2 == 0 { &world.store } else { &world.rival });
        let process = process(&format!("p{number}"), &format!("a{number}"), &["pay", "ship"]);
        let (signer, now, first_id) = (signer(&world), world.now, world.number() + 1_000 * (number + 1));
        tokio::spawn(async move {
            let next = AtomicI64::new(first_id);
            store.register(&signer, &process, &|| next.fetch_add(1, Ordering::Relaxed), now).await
        })
    });
    for registered in join_all(registrations).await {
        registered.unwrap().expect("each is let in at its first try");
    }
    assert_eq!(online(&world).await.len(), 6);
    assert_eq!(world.admin.tasks_named("retail", "pay").await.len(), 1);
}

async fn a_new_process_at_an_address_replaces_the_old_one(world: World) {
    let old = register(&world, &process("old", "a", &["pay"])).await;
    let other = register(&world, &process("other", "b", &["pay"])).await;
    let new = register(&world, &process("new", "a", &["pay"])).await;
    assert_eq!(online(&world).await, [other, new]);
    let ends = world.store.executor_ends(&[old, new, ExecutorId(1)]).await.unwrap();
    let gone = |id| ends.iter().find(|end| end.id == id).map(|end| (end.gone_at, end.instance.as_str()));
    assert_eq!((gone(old), gone(new), gone(ExecutorId(1))), (Some((world.now, "old")), Some((0, "new")), None));
    assert!(world.store.beat(&signer(&world), &beat(new, "new")).await.unwrap());
    assert!(!world.store.beat(&signer(&world), &beat(old, "old")).await.unwrap(), "the old one must register again");
    let is_own = async || world.store.executor_ends(&[new]).await.unwrap()[0].own_address;
    assert!(is_own().await);
    register(&world, &Register { own_address: false, ..process("new", "a", &["pay"]) }).await;
    assert!(!is_own().await, "moved behind a proxy");
}

/// It died before it was heard, and its message lay with a node that stood still while its successor came.
async fn a_process_that_nobody_knew_drives_out_no_newer_one(world: World) {
    let late = signer(&world);
    let newer = register(&world, &process("two", "a", &["pay"])).await;
    let one = process("one", "a", &["pay"]);
    let refused = world.store.register(&late, &one, &|| world.id(), world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Conflict);
    assert_eq!(online(&world).await, [newer]);
}

async fn a_beat_counts_for_its_own_instance_and_scope(world: World) {
    let id = register(&world, &process("one", "a", &["pay"])).await;
    let since = world.store.executors(0).await.unwrap()[0].heartbeat_at;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let stranger = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let ours = || signer(&world);
    let wrong = [
        (ours(), beat(id, "two")),
        (ours(), beat(ExecutorId(id.0 + 1), "one")),
        (Signer { owner: stranger, ..ours() }, beat(id, "one")),
        (Signer { owner: Owner { app_id: stranger.app_id, ..world.owner }, ..ours() }, beat(id, "one")),
    ];
    for (signer, beat) in wrong {
        assert!(!world.store.beat(&signer, &beat).await.unwrap(), "{signer:?} {beat:?}");
    }
    assert_eq!(world.store.executors(0).await.unwrap()[0].heartbeat_at, since);
    let draining = ExecutorHeartbeat { draining: true, node_id: NodeId(7), ..beat(id, "one") };
    assert!(world.store.beat(&ours(), &draining).await.unwrap());
    let executor = world.store.executors(since + 1).await.unwrap().remove(0);
    assert_eq!((executor.version.as_str(), executor.node_id), ("1", NodeId(7)));
    assert!(executor.heartbeat_at > since && executor.draining);
    assert!(world.store.executors(executor.heartbeat_at + 1).await.unwrap().is_empty());
}

async fn retiring_drains_or_ends_an_executor_of_the_scope(world: World) {
    let id = register(&world, &process("one", "a", &["pay"])).await;
    let stranger = Owner { tenant_id: TenantId(world.owner.tenant_id.0 + 1), ..world.owner };
    world.store.retire(&Signer { owner: stranger, ..signer(&world) }, id, true, world.now).await.unwrap();
    assert!(!world.store.executors(0).await.unwrap()[0].draining);
    world.store.retire(&signer(&world), id, false, world.now).await.unwrap();
    assert!(world.store.executors(0).await.unwrap()[0].draining, "listed, but takes nothing");
    world.store.retire(&signer(&world), id, true, world.now + 3).await.unwrap();
    assert!(online(&world).await.is_empty());
    assert_eq!(world.store.executor_ends(&[id]).await.unwrap()[0].gone_at, world.now + 3);
    assert!(!world.store.beat(&signer(&world), &beat(id, "one")).await.unwrap());
}

/// A replayed message changes nothing, at any node and any time.
async fn a_message_counts_once_and_in_order(world: World) {
    let outdated = |result: carillon::store::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), StoreErrorKind::Outdated);
    };
    let new_id = || world.id();
    let (first, second, third) = (signer(&world), signer(&world), signer(&world));
    let process = process("one", "a", &["pay"]);
    let id = world.store.register(&first, &process, &new_id, world.now).await.unwrap().executor_id;
    let renamed = Register { description: "newer".to_owned(), ..process.clone() };
    assert_eq!(world.store.register(&second, &renamed, &new_id, world.now).await.unwrap().executor_id, id);
    for old in [first, second] {
        outdated(world.rival.register(&old, &process, &new_id, world.now).await.map(drop));
    }

    assert!(world.store.beat(&second, &beat(id, "one")).await.unwrap());
    let heard = world.store.executors(0).await.unwrap().remove(0);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    for old in [first, second] {
        let draining = ExecutorHeartbeat { draining: true, ..beat(id, "one") };
        outdated(world.rival.beat(&old, &draining).await.map(drop));
    }
    let now = world.store.executors(0).await.unwrap().remove(0);
    assert_eq!(now, heard, "nothing of it was applied, and it kept no executor alive");

    // A farewell from before the registration.
    world.rival.retire(&first, id, true, world.now).await.unwrap();
    assert_eq!(online(&world).await, [id]);
    world.rival.retire(&third, id, true, world.now).await.unwrap();
    assert!(online(&world).await.is_empty());
    outdated(world.store.register(&second, &process, &new_id, world.now).await.map(drop));
    assert!(online(&world).await.is_empty(), "no executor was brought back");
}

/// All that count, and none that does not.
async fn heartbeats_of_many_are_committed_together(world: World) {
    use HeartbeatVerdict::{Committed, Outdated, Unknown};
    let stranger = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let mut executors = Vec::new();
    for name in ["one", "two", "three", "four"] {
        executors.push(register(&world, &process(name, name, &["pay"])).await);
    }
    let signed = |at: usize, name: &str, running| SignedHeartbeat {
        owner: world.owner,
        signed_at: signer(&world).signed_at,
        heartbeat: ExecutorHeartbeat { running, ..beat(executors[at], name) },
    };
    let running = async || {
        let mut online = world.store.executors(0).await.unwrap();
        online.sort_by_key(|executor| executor.id);
        online.iter().map(|executor| executor.running).collect::<Vec<_>>()
    };
    assert!(world.store.beats(&[]).await.unwrap().is_empty());
    let good = vec![signed(0, "one", 5), signed(3, "four", 6), signed(1, "two", 7)];
    assert_eq!(world.store.beats(&good).await.unwrap(), [Committed; 3]);
    assert_eq!(running().await, [5, 7, 0, 6]);
    let before = world.store.executors(0).await.unwrap();
    assert_eq!(world.rival.beats(&good).await.unwrap(), [Outdated; 3], "a replay");
    assert_eq!(world.store.executors(0).await.unwrap(), before, "it changes nothing");

    world.store.retire(&signer(&world), executors[3], true, world.now).await.unwrap();
    let foreign = SignedHeartbeat { owner: stranger, ..signed(1, "two", 9) };
    let mixed = [
        signed(2, "three", 8),
        signed(3, "four", 9),
        good[0].clone(),
        foreign,
        SignedHeartbeat { heartbeat: beat(ExecutorId(world.number()), "two"), ..signed(1, "two", 9) },
        signed(0, "NUL \0", 9),
    ];
    let verdicts = world.store.beats(&mixed[..4]).await.unwrap();
    assert_eq!(verdicts, [Committed, Unknown, Outdated, Unknown]);
    assert_eq!(world.store.beats(&mixed[4..]).await.unwrap(), [Unknown, Unknown]);
    assert_eq!(running().await, [5, 7, 8], "no other is held up");
}

/// What a node knows of executors from their pulses is what it reads of them.
async fn what_changes_is_told_without_the_rest(world: World) {
    let mut executors = Vec::new();
    for name in ["one", "two", "three"] {
        executors.push(register(&world, &process(name, name, &["pay"])).await);
    }
    let read = async |id: ExecutorId| world.store.executors_among(&[id], 0).await.unwrap().pop();
    let pulse =
        async |id: ExecutorId, since| world.store.pulses(since).await.unwrap().into_iter().find(|pulse| pulse.id == id);
    assert!(world.store.executors_among(&[], 0).await.unwrap().is_empty());
    let mut among: Vec<_> = world.store.executors_among(&executors[..2], 0).await.unwrap();
    among.sort_by_key(|executor| executor.id);
    assert_eq!(among.iter().map(|executor| executor.id).collect::<Vec<_>>(), executors[..2]);
    assert!(world.store.executors_among(&executors, i64::MAX / 2).await.unwrap().is_empty(), "none beats in future");

    let known = read(executors[0]).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let loaded = ExecutorHeartbeat { running: 3, held: 9, draining: true, ..beat(executors[0], "one") };
    assert!(world.store.beat(&signer(&world), &loaded).await.unwrap());
    let since = known.heartbeat_at + 1;
    let heard = pulse(executors[0], since).await.unwrap();
    assert_eq!((heard.described_at, heard.gone_at), (known.described_at, 0));
    assert_eq!(known.at_pulse(&heard), read(executors[0]).await.unwrap());

    // A farewell is told like a heartbeat, of one that has gone and of one that goes on for a while.
    let since = heard.heartbeat_at;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    world.store.retire(&signer(&world), executors[1], true, world.now + 7).await.unwrap();
    let gone = pulse(executors[1], since + 1).await.unwrap();
    assert_eq!((gone.gone_at, read(executors[1]).await), (world.now + 7, None));
    let two = world.store.executors_among(&[executors[2]], 0).await.unwrap().remove(0);
    world.store.retire(&signer(&world), executors[2], false, world.now).await.unwrap();
    let drains = pulse(executors[2], since + 1).await.unwrap();
    assert_eq!((drains.draining, drains.gone_at), (true, 0));
    assert_eq!(two.at_pulse(&drains), read(executors[2]).await.unwrap());

    // So is being replaced; a new description is told by its time.
    let newer = world.now + 50;
    let again = Register { tags: vec!["cpu".to_owned()], ..process("one", "one", &["pay", "ship"]) };
    world.store.register(&signer(&world), &again, &|| world.id(), newer).await.unwrap();
    assert_eq!(pulse(executors[0], since + 1).await.unwrap().described_at, newer);
    let since = pulse(executors[0], 0).await.unwrap().heartbeat_at;
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let new = register(&world, &process("new", "one", &["pay"])).await;
    assert!(pulse(executors[0], since + 1).await.unwrap().gone_at > 0);
    assert_eq!(pulse(new, since + 1).await.unwrap().gone_at, 0);
}

/// What was signed by a clock that was ahead keeps out nothing that comes later.
async fn a_clock_set_back_locks_out_no_one(world: World) {
    let ahead = Signer { signed_at: world.now + 3_600_000, ..signer(&world) };
    let later = Signer { signed_at: world.now, ..signer(&world) };
    let process = process("one", "a", &["pay"]);
    let id = world.store.register(&ahead, &process, &|| world.id(), world.now).await.unwrap().executor_id;
    assert!(world.store.beat(&ahead, &beat(id, "one")).await.unwrap());
    assert_eq!(world.store.register(&later, &process, &|| world.id(), world.now).await.unwrap().executor_id, id);
    assert!(world.store.beat(&later, &beat(id, "one")).await.unwrap());
    assert!(world.store.beat(&later, &beat(id, "one")).await.is_err(), "and from then on, order counts again");
}

/// The others were given away meanwhile: it must drop them.
async fn after_a_silence_an_executor_keeps_what_is_still_its_own(world: World) {
    let stranger = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let neighbour = world.admin.make_app([world.id(), world.id()], "retail", "returns").await;
    let runs = world.runs(6).await;
    let held = world.dispatched(1, runs[..4].to_vec(), 7).await;
    world.dispatched(1, runs[4..5].to_vec(), 8).await;
    world.moved(&held[2], Status::Retry, Reason::GivenBack).await;
    // The fourth is with the same executor under another attempt.
    world.store.dispatch(NodeId(1), &[dispatch_of(&held[3], ExecutorId(7), world.now)]).await.unwrap();
    let key = |run: &Run, attempt| RunKey(run.id.0, attempt);
    let mut keys: Vec<RunKey> = runs.iter().map(|run| key(run, 1)).collect();
    keys.push(RunKey(world.number(), 1));

    let states = async || {
        let rows = world.rows(runs[0].task_id).await;
        rows.into_iter().map(|row| row.dispatched).collect::<Vec<_>>()
    };
    let before = states().await;
    let reconfirm = async |owner, executor, keys: &[RunKey]| {
        world.store.reconfirm(owner, ExecutorId(executor), keys).await.unwrap()
    };
    for (owner, executor) in [(stranger, 7), (neighbour, 7), (world.owner, 9)] {
        assert!(reconfirm(owner, executor, &keys).await.is_empty(), "{owner:?} {executor}");
    }
    assert!(reconfirm(world.owner, 7, &[]).await.is_empty());
    assert_eq!(states().await, before);
    let mine: HashSet<RunKey> = keys[..2].iter().copied().collect();
    assert_eq!(reconfirm(world.owner, 7, &keys).await, mine);
    for (before, now) in before.iter().zip(states().await) {
        let (was, run) = (&before.run, &now.run);
        let grows = i64::from(mine.contains(&key(run, run.attempt)));
        assert_eq!(*run, Run { version: was.version + grows, ..was.clone() });
    }
    assert_eq!(reconfirm(world.owner, 7, &[key(&runs[3], 2)]).await, HashSet::from([key(&runs[3], 2)]));

    // A decision from before loses the race; the result counts.
    let lost = Transition::of(&held[0], Status::Retry, Reason::ExecutorGone);
    assert!(world.store.change(&[lost]).await.unwrap().is_empty());
    assert_eq!(world.store.succeed(world.owner, &[&success(&held[0], 1)]).await.unwrap(), 1);
    assert_eq!(reconfirm(world.owner, 7, &keys).await, HashSet::from([keys[1]]), "what has ended is over");
}

/// Whatever it says of itself: one says "as many as come" by the largest number that there is.
async fn an_executor_hides_no_other(world: World) {
    let greedy = Register { capacity: u32::MAX, ..process("one", "a", &["pay"]) };
    let mut ids = vec![register(&world, &greedy).await];
    let stranger = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let theirs = Signer { owner: stranger, ..signer(&world) };
    let modest = process("two", "b", &["pay"]);
    ids.push(world.store.register(&theirs, &modest, &|| world.id(), world.now).await.unwrap().executor_id);
    assert_eq!(register(&world, &greedy).await, ids[0], "and says so again");
    let room = async || {
        let all: Vec<(ExecutorId, i32)> =
            world.store.executors(0).await.unwrap().iter().map(|executor| (executor.id, executor.capacity)).collect();
        let among = world.store.executors_among(&ids, 0).await.unwrap();
        assert_eq!(
            among.iter().map(|executor| executor.id).collect::<HashSet<_>>(),
            all.iter().map(|(id, _)| *id).collect()
        );
        all.into_iter().collect::<HashMap<_, _>>()
    };
    let pulses =
        async || world.store.pulses(0).await.unwrap().into_iter().map(|pulse| (pulse.id, pulse.capacity)).collect();
    assert_eq!(room().await, HashMap::from([(ids[0], i32::MAX), (ids[1], 4)]));
    assert_eq!(room().await, pulses().await);

    // Nor does one whose row cannot be read.
    let Some(database) = &world.database else { return };
    database.execute(&format!("UPDATE executor SET tags = 'of a later form' WHERE id = {}", ids[0])).await;
    assert_eq!(room().await, HashMap::from([(ids[1], 4)]));
    if database.kind == Kind::Sqlite {
        database.execute(&format!("UPDATE executor SET capacity = {} WHERE id = {}", u32::MAX, ids[0])).await;
        assert_eq!(room().await, pulses().await);
    }
}
