//! Which executor gets a run.

use carillon_tests::executor::Options;
use carillon_tests::wait::when;
use carillon_tests::{Api, App, Executor, Kind, LogRow, Status, World, await_until, port};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

scenario!(by_order_tags_and_rule: sqlite mariadb);
scenario!(in_turn_across_restarts: sqlite mariadb);
scenario!(past_the_silent_and_the_busy: sqlite mariadb);

/// Three executors in the order in which routing counts them, and what they are called in rows.
struct Fleet {
    executors: Vec<Executor>,
    ids: Vec<i64>,
}

impl Fleet {
    async fn start(world: &World, app: &App, tags: [&str; 3]) -> Self {
        // Executors are in the order of their addresses.
        let mut ports = [(); 3].map(|()| port::free());
        ports.sort_unstable();
        let mut executors = Vec::new();
        for (number, (tags, port)) in tags.into_iter().zip(ports).enumerate() {
            let options = Options { tags, port, ..Options::default() };
            executors.push(world.executor_with(&format!("e{number}"), app, &options).await);
        }
        let mut ids = Vec::new();
        for executor in &executors {
            ids.push(world.database.executor_at(executor.port).await);
        }
        world.await_online(&ids).await;
        Self { executors, ids }
    }

    /// Which one of them took the run.
    fn place(&self, row: &LogRow) -> usize {
        self.ids.iter().position(|id| *id == row.executor).unwrap_or_else(|| panic!("none of the fleet: {row:?}"))
    }

    fn places(&self, rows: &[LogRow]) -> Vec<usize> {
        rows.iter().map(|row| self.place(row)).collect()
    }
}

/// Runs a task `count` times at once; the rows by their numbers.
async fn runs(world: &World, api: &Api, task: i64, count: usize) -> Vec<LogRow> {
    let mut logs = Vec::new();
    for _ in 0..count {
        logs.push(api.run(task, None).await);
    }
    let mut rows = world.await_ends(&logs).await;
    rows.sort_by_key(|row| row.seq);
    rows
}

/// The same one after the other, all of which must succeed; the places that took them.
async fn one_by_one(world: &World, api: &Api, fleet: &Fleet, task: i64, count: usize) -> Vec<usize> {
    let mut places = Vec::new();
    for _ in 0..count {
        let row = runs(world, api, task, 1).await.remove(0);
        assert_eq!(row.status, Status::Succeeded, "{row:?}");
        places.push(fleet.place(&row));
    }
    places
}

async fn make(api: &Api, app: &App, name: &str, routing: &str, more: Value) -> i64 {
    let mut fields = json!({ "routing": routing, "max_retries": 0, "no_executor_timeout_ms": 0 });
    fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let handler = fields.as_object_mut().unwrap().remove("handler");
    api.make_task(app, name, handler.as_ref().and_then(Value::as_str).unwrap_or("tick"), fields).await
}

/// Why a run that no executor may take is not run.
async fn nobody(world: &World, api: &Api, task: i64) -> String {
    let row = runs(world, api, task, 1).await.remove(0);
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "no_executor"), "{row:?}");
    row.message
}

/// H12 among others: tags are whole words, and a run that finds no executor says why.
async fn by_order_tags_and_rule(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let mut fleet = Fleet::start(&world, &app, ["gpu,eu", "gpu-large,eu,spot", "GPU,us"]).await;
    let first = make(&api, &app, "first", "first", json!({})).await;
    let last = make(&api, &app, "last", "last", json!({})).await;
    let random = make(&api, &app, "random", "random", json!({})).await;
    assert_eq!(fleet.places(&runs(&world, &api, first, 3).await), [0, 0, 0]);
    assert_eq!(fleet.places(&runs(&world, &api, last, 3).await), [2, 2, 2]);
    let used: BTreeSet<usize> = fleet.places(&runs(&world, &api, random, 40).await).into_iter().collect();
    assert_eq!(used, BTreeSet::from([0, 1, 2]), "random leaves an executor out");

    let tags = [
        (json!({ "tags": ["gpu"] }), vec![0]),
        (json!({ "tags": ["GPU"] }), vec![2]),
        (json!({ "tags": ["gpu-large", "eu"] }), vec![1]),
        (json!({ "tags_any": ["gpu", "us"] }), vec![0, 2]),
        (json!({ "tags_none": ["spot"] }), vec![0, 2]),
        (json!({ "tags": ["eu"], "tags_any": ["gpu", "gpu-large"], "tags_none": ["spot"] }), vec![0]),
    ];
    for (number, (fields, places)) in tags.into_iter().enumerate() {
        let task = make(&api, &app, &format!("tags {number}"), "random", fields.clone()).await;
        let used: BTreeSet<usize> = fleet.places(&runs(&world, &api, task, 20).await).into_iter().collect();
        assert_eq!(used, places.into_iter().collect(), "{fields}");
    }
    for (fields, words) in [
        (json!({ "tags": ["gp"] }), vec!["tick", "all of [gp]", "3 online"]),
        (json!({ "tags": ["gpu", "us"] }), vec!["tick", "all of [gpu, us]"]),
        (json!({ "tags_any": ["Eu"], "tags_none": ["x"] }), vec!["any of [Eu]", "none of [x]"]),
        (json!({ "handler": "unheard of" }), vec!["3 online", "`unheard of`"]),
    ] {
        let task = make(&api, &app, &format!("nobody {fields}"), "random", fields).await;
        let message = nobody(&world, &api, task).await;
        assert!(words.iter().all(|word| message.contains(word)), "{words:?} in: {message}");
    }

    sharded(&world, &api, &app, &fleet).await;
    rules(&world, &api, first, &mut fleet, &app).await;
    hashed(&world, &api, &app, &fleet).await;
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// One shard for each that fits.
async fn sharded(world: &World, api: &Api, app: &App, fleet: &Fleet) {
    for (name, fields, places) in [
        ("all", json!({ "handler": "sharded" }), vec![0, 1, 2]),
        ("eu", json!({ "handler": "sharded", "tags": ["eu"] }), vec![0, 1]),
    ] {
        let task = make(api, app, name, "sharding", fields).await;
        let log = api.run(task, None).await;
        let parent = world.await_end(log).await;
        assert_eq!((parent.status, parent.shard_total as usize), (Status::Succeeded, places.len()), "{parent:?}");
        let shards = world.database.logs(&format!("parent_id = {log}")).await;
        assert_eq!(fleet.places(&shards), places, "shards are in the order of executors");
        let outputs: Vec<String> =
            (0..places.len()).map(|index| format!("shard {index} of {}", places.len())).collect();
        assert_eq!(shards.iter().map(|row| row.output.clone()).collect::<Vec<_>>(), outputs);
    }
}

/// What a person says of an executor holds for its address.
async fn rules(world: &World, api: &Api, first: i64, fleet: &mut Fleet, app: &App) {
    let rule = |id: i64, fields: Value| async move { api.patch(&format!("/executors/{id}"), fields).await };
    rule(fleet.ids[0], json!({ "disabled": true, "note": "bad disk" })).await;
    assert_eq!(fleet.places(&runs(world, api, first, 3).await), [1, 1, 1]);
    rule(fleet.ids[1], json!({ "weight": 0 })).await;
    assert_eq!(fleet.places(&runs(world, api, first, 3).await), [2, 2, 2]);
    // A new process at the address inherits it.
    let port = fleet.executors[0].port;
    assert_eq!(fleet.executors[0].process.sigterm(40).await, Some(0));
    let options = Options { tags: "gpu,eu", port, ..Options::default() };
    let again = world.executor_with("e0 again", app, &options).await;
    let before = fleet.ids[0];
    fleet.ids[0] = world.database.executor_at(port).await;
    assert_ne!(fleet.ids[0], before);
    fleet.executors[0] = again;
    assert_eq!(fleet.places(&runs(world, api, first, 3).await), [2, 2, 2]);
    rule(fleet.ids[2], json!({ "disabled": true })).await;
    let message = nobody(world, api, first).await;
    assert!(message.contains("2 disabled manually") && message.contains("1 with weight 0"), "{message}");
    let shown = api.get("/executors").await;
    let shown: Vec<_> = shown["items"].as_array().unwrap().iter().filter(|one| one["disabled"] == true).collect();
    assert_eq!(shown.len(), 2, "{shown:?}");
    for id in &fleet.ids {
        rule(*id, json!({ "disabled": false, "weight": 1 })).await;
    }
    assert_eq!(fleet.places(&runs(world, api, first, 3).await), [0, 0, 0]);
}

/// Always the same, also for another node; only those of one that is gone move.
async fn hashed(world: &World, api: &Api, app: &App, fleet: &Fleet) {
    let mut homes = BTreeMap::new();
    for number in 0..8 {
        let task = make(api, app, &format!("hashed {number}"), "consistent_hash", json!({})).await;
        let places = fleet.places(&runs(world, api, task, 3).await);
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
        homes.insert(task, places[0]);
    }
    let gone = homes.values().copied().next().unwrap();
    assert!(homes.values().any(|home| *home != gone), "eight tasks hash to one executor: {homes:?}");
    assert_eq!(fleet.executors[gone].process.sigterm(40).await, Some(0));
    for (task, home) in homes {
        let places = fleet.places(&runs(world, api, task, 2).await);
        if home == gone {
            assert!(places[0] != gone && places[0] == places[1], "{places:?}");
        } else {
            assert_eq!(places, [home, home], "moved although its executor is there");
        }
    }
}

/// X15: rotation and uses are the cluster's, not a node's: on `MariaDB` two nodes take the runs.
async fn in_turn_across_restarts(kind: Kind) {
    let world = World::new(kind).await;
    let node = world.nodes(&[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fleet = Fleet::start(&world, &app, ["", "", ""]).await;
    let round = make(&api, &app, "round", "round", json!({})).await;
    let weighed = make(&api, &app, "weighed", "round", json!({})).await;
    let rarely = make(&api, &app, "lfu", "least_frequently_used", json!({})).await;
    let long_ago = make(&api, &app, "lru", "least_recently_used", json!({})).await;
    let ticking = make(&api, &app, "fires", "round", json!({ "cron": "* * * * * ?" })).await;

    let mut rows = runs(&world, &api, round, 8).await;
    let mut rare = one_by_one(&world, &api, &fleet, rarely, 5).await;
    let mut long = one_by_one(&world, &api, &fleet, long_ago, 5).await;
    assert_eq!(node.process.sigterm(30).await, Some(0), "{}", node.process.log_digest());
    let node = world.unready_node("a", node.port, &[]);
    node.ready().await;
    let api = world.api();
    rows.extend(runs(&world, &api, round, 8).await);
    rare.extend(one_by_one(&world, &api, &fleet, rarely, 4).await);
    long.extend(one_by_one(&world, &api, &fleet, long_ago, 4).await);

    assert_turns(&fleet, &rows);
    for used in [&rare, &long] {
        let counts = [0, 1, 2].map(|place| used.iter().filter(|one| **one == place).count());
        assert_eq!(counts, [3, 3, 3], "{used:?}");
    }
    assert!(long.windows(3).all(|three| BTreeSet::from_iter(three).len() == 3), "{long:?}");

    world.await_successes(ticking, 6).await;
    let fired = world.database.logs(&format!("task_id = {ticking} AND status = 10")).await;
    assert_turns(&fleet, &fired);

    // Nodes read the rules, then who is online: a second change is known after a whole look at the first.
    for _ in 0..2 {
        api.patch(&format!("/executors/{}", fleet.ids[1]), json!({ "weight": 2 })).await;
        world.await_rules().await;
    }
    let places = fleet.places(&runs(&world, &api, weighed, 12).await);
    for four in places.windows(4) {
        let counts = [0, 1, 2].map(|place| four.iter().filter(|one| **one == place).count());
        assert_eq!(counts, [1, 2, 1], "{places:?}");
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

/// By their numbers the runs went to one after the other, without a slip.
fn assert_turns(fleet: &Fleet, rows: &[LogRow]) {
    assert!(rows.len() >= 6, "{} runs show no rotation", rows.len());
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.seq);
    let offset = (fleet.place(&rows[0]) as i64 - rows[0].seq).rem_euclid(3);
    let turns: Vec<(i64, usize)> = rows.iter().map(|row| (row.seq, fleet.place(row))).collect();
    assert!(turns.iter().all(|(seq, place)| (seq + offset).rem_euclid(3) == *place as i64), "{turns:?}");
    assert!(turns.windows(2).all(|pair| pair[0].0 < pair[1].0), "two runs of one number: {turns:?}");
}

/// Failover, busyover, and the load that executors report.
async fn past_the_silent_and_the_busy(kind: Kind) {
    let world = World::new(kind).await;
    world.node("a", &[]).await;
    let api = world.api();
    let app = api.make_app("retail", "orders").await;
    let fleet = Fleet::start(&world, &app, ["", "", ""]).await;
    let failover = make(&api, &app, "failover", "failover", json!({})).await;
    let busyover =
        make(&api, &app, "busyover", "busyover", json!({ "handler": "overlap", "params": r#"{"ms": 60000}"# })).await;
    let fields = json!({ "handler": "overlap", "params": r#"{"ms": 60000}"# });
    let ballast = make(&api, &app, "ballast", "first", fields).await;
    let light = make(&api, &app, "light", "least_loaded", json!({})).await;

    assert_eq!(one_by_one(&world, &api, &fleet, failover, 2).await, [0, 0]);
    let mut long = Vec::new();
    for expected in 0..3 {
        long.push(api.run(busyover, None).await);
        let inside = world.await_inside(busyover, expected + 1).await;
        let last = inside.iter().find(|visit| visit.log == long[expected]).expect("the last one is inside");
        assert_eq!(last.pid, fleet.executors[expected].process.pid(), "not the first that is idle");
    }
    let row = runs(&world, &api, busyover, 1).await.remove(0);
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "all_busy"), "{row:?}");
    assert!(row.message.contains("3 busy"), "{row:?}");

    for _ in 0..15 {
        long.push(api.run(ballast, None).await);
    }
    let loads = || async {
        let shown = api.get("/executors").await;
        let load = |one: &Value| one["held"].as_i64().unwrap() + one["running"].as_i64().unwrap();
        shown["items"].as_array().unwrap().iter().map(load).collect::<Vec<_>>()
    };
    await_until("the load was reported", 30, || async { when(loads().await.contains(&16)) }).await;
    let mut counts = [0; 3];
    for place in fleet.places(&runs(&world, &api, light, 12).await) {
        counts[place] += 1;
    }
    assert_eq!(counts[0], 0, "the busy one got some: {counts:?}");
    assert!(counts[1] > 0 && counts[2] > 0, "{counts:?}");

    // Silent, then away, then back.
    fleet.executors[0].process.signal("STOP");
    assert_eq!(one_by_one(&world, &api, &fleet, failover, 2).await, [1, 1]);
    fleet.executors[1].process.signal("STOP");
    assert_eq!(one_by_one(&world, &api, &fleet, failover, 1).await, [2]);
    fleet.executors[2].process.signal("STOP");
    let row = runs(&world, &api, failover, 1).await.remove(0);
    assert_eq!((row.status, row.reason.as_str()), (Status::Failed, "not_accepted"), "{row:?}");
    assert!(row.message.contains("not one of 3"), "{row:?}");
    for executor in &fleet.executors {
        executor.process.signal("CONT");
    }
    await_until("the first one is trusted again", 40, || async {
        when(one_by_one_or_none(&world, &api, &fleet, failover).await == Some(0))
    })
    .await;
    for log in long {
        api.kill(log).await;
    }
    world.settle_and_check().await;
    world.assert_quiet(&[]);
}

async fn one_by_one_or_none(world: &World, api: &Api, fleet: &Fleet, task: i64) -> Option<usize> {
    let row = runs(world, api, task, 1).await.remove(0);
    (row.status == Status::Succeeded).then(|| fleet.place(&row))
}
