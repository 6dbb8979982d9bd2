//! Runs that become one node's.

use crate::fixture::{World, ids, node_info};
use carillon::domain::plan::Plan;
use carillon::domain::{BackfillId, LogId, NodeId, Owner, Reason, Run, Status, TenantId, Transition};
use carillon::store::{
    DueRange, LEFT_OUT_MAX, LeaseName, LeftOut, MissedQuestion, NewTask, Share, UnclaimedEnd, Writer,
};
use std::collections::BTreeSet;
use std::sync::Arc;

cases!(
    claimable_runs_come_earliest_first_up_to_the_instant,
    shares_are_disjoint_and_complete,
    runs_of_tenants_left_out_let_others_by,
    only_so_many_tenants_are_left_out,
    a_claim_repeated_answers_the_same_and_others_get_nothing,
    two_claimers_at_once_never_both_get_a_run,
    the_queues_of_a_node_and_of_the_dead,
    what_is_held_is_paged,
    what_earlier_processes_of_a_node_had_queued,
    a_restored_database_gives_nothing_to_a_node_that_has_not_noticed,
    missed_fires_are_counted_from_the_latest,
    a_run_that_expires_unclaimed_does_so_once,
);

async fn claimable_runs_come_earliest_first_up_to_the_instant(world: World) {
    let runs = world.runs(6).await;
    // The second waits for another attempt, later than the third; the last one is not due.
    let tried = world.dispatched(1, vec![runs[1].clone()], 7).await.remove(0);
    let later =
        Transition { due_time: world.now + 2_500, ..Transition::of(&tried, Status::Retry, Reason::HandlerFailed) };
    world.store.change(&[later]).await.unwrap();
    let until = world.now + 4_000;
    let found = world.store.claimable(None, DueRange::until(until), 10).await.unwrap();
    let expected = [&runs[0], &runs[2], &runs[1], &runs[3], &runs[4]].map(|run| run.id);
    assert_eq!(ids(&found), expected);
    let retry = &found[2];
    assert_eq!((retry.status, retry.attempt, retry.due_time), (Status::Retry, 1, world.now + 2_500));
    assert_eq!(found[0], runs[0]);

    let few = world.store.claimable(None, DueRange::until(until), 2).await.unwrap();
    assert_eq!(ids(&few[..2]), expected[..2], "the earliest, whatever the limit cuts off");
}

async fn shares_are_disjoint_and_complete(world: World) {
    let runs = world.runs(200).await;
    let until = world.now + 1_000_000;
    for total in [1, 2, 3, 7] {
        let mut seen = BTreeSet::new();
        for index in 0..total {
            let part =
                world.store.claimable(Some(Share { index, total }), DueRange::until(until), 1_000).await.unwrap();
            assert!(part.iter().all(|run| seen.insert(run.id)), "share {index} of {total} overlaps another");
            assert!(part.len() > 200 / total as usize / 3, "share {index} of {total} has only {}", part.len());
        }
        assert_eq!(seen, runs.iter().map(|run| run.id).collect());
    }
}

/// A run of a task of its own, due so many seconds from now.
async fn run_of(world: &World, owner: Owner, priority: i32, seconds: i64) -> Run {
    let spec = World::every_second(&format!("task-{}", world.number()));
    let task = NewTask { owner, ..world.new_task(&spec, true) };
    world.admin.apply(std::slice::from_ref(&task), &[], world.now).await.unwrap();
    let task = world.task(task.id).await;
    let plan = Plan { priority, ..world.plan(&task, [world.now + seconds * 1_000]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    world.rows(task.id).await.remove(0).dispatched.run
}

async fn runs_of_tenants_left_out_let_others_by(world: World) {
    let make = async |tenant| world.admin.make_app([world.id(), world.id()], tenant, "app").await;
    let (home, two, three) = (world.owner, make("two").await, make("three").await);
    let mut runs = Vec::new();
    for (at, (owner, priority)) in
        [(home, 5), (home, 4), (two, 5), (home, 6), (three, 1), (two, 9), (three, 5)].into_iter().enumerate()
    {
        runs.push(run_of(&world, owner, priority, at as i64).await);
    }
    // Two cannot be claimed; one waits for another attempt.
    let claimed = run_of(&world, two, 5, 0).await;
    world.store.claim(NodeId(1), vec![claimed], world.now).await.unwrap();
    let ended = run_of(&world, two, 5, 0).await;
    world.moved(&ended, Status::Cancelled, Reason::CancelledManually).await;
    let tried = world.dispatched(1, vec![runs[2].clone()], 7).await.remove(0);
    world.moved(&tried, Status::Retry, Reason::HandlerFailed).await;
    runs[2] = world.row(&tried).await.dispatched.run;

    let until = world.now + 5_000;
    let besides = async |tenants: &[Owner], priority, limit| {
        let tenants = tenants.iter().map(|owner| owner.tenant_id).collect();
        world.store.claimable_besides(&LeftOut { tenants, priority }, DueRange::until(until), limit).await.unwrap()
    };
    let of = |places: &[usize]| places.iter().map(|place| runs[*place].clone()).collect::<Vec<_>>();
    assert_eq!(besides(&[], 5, 10).await, of(&[0, 1, 2, 3, 4, 5]), "the last is not due");
    assert_eq!(besides(&[home], 5, 10).await, of(&[2, 3, 4, 5]), "what is more urgent comes in");
    assert_eq!(besides(&[home], 4, 10).await, of(&[0, 2, 3, 4, 5]));
    assert_eq!(besides(&[home], 6, 10).await, of(&[2, 4, 5]));
    assert_eq!(besides(&[two], 5, 10).await, of(&[0, 1, 3, 4, 5]), "a run that waits is left out, too");
    assert_eq!(besides(&[three, home, two], 5, 10).await, of(&[3, 5]));
    assert_eq!(besides(&[two, three, home], 9, 10).await, []);
    let few = besides(&[home], 5, 2).await;
    assert_eq!(few[..2], of(&[2, 3]), "the earliest, whatever the limit cuts off");
}

async fn only_so_many_tenants_are_left_out(world: World) {
    let run = run_of(&world, world.owner, 5, 0).await;
    let left_out = |strangers: usize| {
        let mut tenants: Vec<TenantId> = (1..=strangers as i64).map(TenantId).collect();
        tenants.push(world.owner.tenant_id);
        LeftOut { tenants, priority: 5 }
    };
    let besides =
        async |left_out| ids(&world.store.claimable_besides(&left_out, DueRange::until(world.now), 10).await.unwrap());
    assert_eq!(besides(left_out(LEFT_OUT_MAX - 1)).await, []);
    assert_eq!(besides(left_out(LEFT_OUT_MAX)).await, [run.id], "a tenant after them is not left out");
}

async fn a_claim_repeated_answers_the_same_and_others_get_nothing(world: World) {
    let runs = world.runs(5).await;
    world.moved(&runs[4], Status::Cancelled, Reason::CancelledManually).await;
    let first = world.store.claim(NodeId(3), runs.clone(), world.now + 7).await.unwrap();
    assert_eq!(ids(&first), ids(&runs[..4]));
    let queued = |run: &Run| run.status == Status::Queued && run.version == 2;
    assert!(first.iter().all(queued));
    let again = world.store.claim(NodeId(3), runs.clone(), world.now + 7).await.unwrap();
    assert_eq!(again, first, "as after an error");
    assert!(world.store.claim(NodeId(4), runs.clone(), world.now).await.unwrap().is_empty());
    assert!(
        world.store.claim(NodeId(4), first.clone(), world.now).await.unwrap().is_empty(),
        "QUEUED is not claimable"
    );
    for run in &first {
        let row = world.row(run).await;
        assert_eq!(
            (row.dispatched.node_id, row.queued_at, row.dispatched.run),
            (NodeId(3), world.now + 7, run.clone())
        );
    }
}

async fn two_claimers_at_once_never_both_get_a_run(world: World) {
    let runs = world.runs(400).await;
    let claimer = |node: NodeId| {
        let store = Arc::clone(if node == NodeId(1) { &world.store } else { &world.rival });
        let (runs, now) = (runs.clone(), world.now);
        tokio::spawn(async move {
            let mut got = Vec::new();
            // In opposite directions, so that the batches meet in the middle.
            let chunks: Vec<Vec<Run>> = runs.chunks(40).map(<[Run]>::to_vec).collect();
            let order: Vec<_> = if node == NodeId(1) { chunks } else { chunks.into_iter().rev().collect() };
            for batch in order {
                got.extend(store.claim(node, batch, now).await.unwrap());
            }
            got.into_iter().map(|run| run.id).collect::<BTreeSet<LogId>>()
        })
    };
    let (one, two) = tokio::join!(claimer(NodeId(1)), claimer(NodeId(2)));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert!(one.is_disjoint(&two), "both got {:?}", one.intersection(&two).collect::<Vec<_>>());
    assert_eq!(one.len() + two.len(), 400);
    for row in world.rows(runs[0].task_id).await {
        let owner = if one.contains(&row.dispatched.run.id) { NodeId(1) } else { NodeId(2) };
        assert_eq!((row.dispatched.node_id, row.dispatched.run.version), (owner, 2));
    }
}

async fn the_queues_of_a_node_and_of_the_dead(world: World) {
    let runs = world.runs(6).await;
    for (node, part) in [(1, &runs[..2]), (2, &runs[2..4]), (3, &runs[4..5])] {
        world.store.claim(NodeId(node), part.to_vec(), world.now).await.unwrap();
    }
    let of = |node| world.store.queued_of(node, DueRange::ALL, 10);
    assert_eq!(ids(&of(NodeId(1)).await.unwrap()), ids(&runs[..2]));
    assert_eq!(ids(&of(NodeId(2)).await.unwrap()), ids(&runs[2..4]));
    assert_eq!(
        ids(&world.store.queued_of(NodeId(1), DueRange::ALL, 1).await.unwrap()),
        ids(&runs[..1]),
        "earliest first"
    );
    let store = &world.store;
    let others = async |live: &[i64]| {
        let live: Vec<NodeId> = live.iter().copied().map(NodeId).collect();
        store.queued_of_others(&live, DueRange::ALL, 10).await
    };
    assert_eq!(ids(&others(&[1]).await.unwrap()), ids(&runs[2..5]));
    assert_eq!(ids(&others(&[3, 1, 2]).await.unwrap()), Vec::<LogId>::new());
    assert_eq!(ids(&world.store.queued_of_others(&[NodeId(1)], DueRange::ALL, 2).await.unwrap()), ids(&runs[2..4]));
    let due = |after: i64, until: i64| DueRange { after, until };
    let (first, last) = (runs[2].due_time, runs[3].due_time);
    assert!(first < last, "of two instants");
    for (range, found) in
        [(due(first - 1, first), &runs[2..3]), (due(first, last), &runs[3..4]), (due(last, last), &[])]
    {
        assert_eq!(ids(&store.queued_of(NodeId(2), range, 10).await.unwrap()), ids(found), "{range:?}");
        assert_eq!(
            ids(&store.queued_of_others(&[NodeId(1), NodeId(3)], range, 10).await.unwrap()),
            ids(found),
            "{range:?}"
        );
    }
}

/// What nodes and executors have, whichever of them: neither what waits nor what has ended.
async fn what_is_held_is_paged(world: World) {
    let runs = world.runs(5).await;
    let claimed = world.store.claim(NodeId(1), runs[..3].to_vec(), world.now).await.unwrap();
    let dispatched = world.dispatched(2, runs[3..4].to_vec(), 7).await;
    let after = async |from, rows| world.store.held_after(from, i64::MAX, rows).await.unwrap();
    for (rows, run) in claimed.iter().chain(&dispatched).enumerate() {
        assert_eq!(after(i64::MIN, rows as u64).await, Some(run.due_time), "{rows}");
    }
    assert_eq!(after(i64::MIN, 4).await, None, "what nobody has is not counted");
    assert_eq!(after(runs[1].due_time, 1).await, Some(runs[2].due_time));
    assert_eq!(after(runs[3].due_time + 1, 0).await, None);
    let before = async |until| world.store.held_after(i64::MIN, until, 1).await.unwrap();
    assert_eq!(before(runs[1].due_time).await, None, "what is due then counts no more");
    assert_eq!(before(runs[1].due_time + 1).await, Some(runs[1].due_time));
    world.moved(&dispatched[0], Status::Failed, Reason::HandlerFailed).await;
    assert_eq!(after(i64::MIN, 3).await, None, "nor what has ended");
}

async fn what_earlier_processes_of_a_node_had_queued(world: World) {
    let runs = world.runs(4).await;
    for (node, at, run) in [(1, 0, 0), (1, 1_000, 1), (2, 0, 2)] {
        world.store.claim(NodeId(node), runs[run..=run].to_vec(), world.now + at).await.unwrap();
    }
    let before = async |at, limit| {
        ids(&world.store.queued_before(NodeId(1), world.now + at, DueRange::ALL, limit).await.unwrap())
    };
    assert_eq!(before(1_000, 10).await, ids(&runs[..1]), "neither what it claimed itself nor what others have");
    assert_eq!(before(0, 10).await, [] as [LogId; 0]);
    assert_eq!(before(1_001, 10).await, ids(&runs[..2]));
    assert_eq!(before(1_001, 1).await, ids(&runs[..1]), "earliest first");
}

async fn a_restored_database_gives_nothing_to_a_node_that_has_not_noticed(world: World) {
    let runs = world.runs(3).await;
    let me = world.store.join(&node_info("a")).await.unwrap();
    let claim = async |run: &Run| world.store.claim(me.id, vec![run.clone()], world.now).await.unwrap().len();
    assert_eq!(claim(&runs[0]).await, 1);
    assert_eq!(world.store.queued_of(me.id, DueRange::ALL, 10).await.unwrap().len(), 1);
    let stranger = NodeId(me.id.0 + 1);
    assert!(world.store.claim(stranger, vec![runs[1].clone()], world.now).await.unwrap().is_empty(), "it never joined");
    // Nor does it take anything from one.
    let task = world.started(&World::every_second("filled")).await;
    let plan = world.plan(&task, [world.now + 60_000]);
    let end = |run: &Run| UnclaimedEnd {
        id: run.id,
        version: run.version,
        reason: Reason::MisfireSkipped,
        message: String::new(),
    };
    let second = world.now / 1_000 * 1_000 - 60_000;
    world.admin.create_backfill(&crate::backfills::backfill(&world, &task, second, 2), world.now).await.unwrap();
    let backfill = world.store.open_backfills(BackfillId(0), 1).await.unwrap().remove(0);
    let takes = async |node: NodeId| {
        let store = &world.store;
        let lease = store.take_lease(LeaseName::Pregenerate, node, None, 60_000).await.unwrap();
        let renewed = match lease {
            Some(lease) => store.take_lease(LeaseName::Pregenerate, node, Some(lease), 60_000).await.unwrap(),
            None => None,
        };
        let written = store.write_ahead(Writer::Node(node), std::slice::from_ref(&plan), world.now).await.unwrap();
        let filled = store.advance(node, &backfill, &|| world.id(), world.now).await.unwrap();
        let ended = store.expire_unclaimed(node, &[end(&runs[2])], world.now).await.unwrap().len();
        (renewed.is_some(), written.map_or(0, |tasks| tasks.len()), filled, ended)
    };
    assert_eq!(takes(stranger).await, (false, 0, 0, 0));
    let fence = world.store.take_lease(LeaseName::Statistics, me.id, None, 600_000).await.unwrap().unwrap();
    let Some(database) = &world.database else { return };
    // As a backup has it that was taken before its last heartbeats, or before it joined.
    for older in ["UPDATE node SET heartbeat_at = heartbeat_at - 61000", "DELETE FROM node"] {
        database.execute(older).await;
        if older.starts_with("DELETE") {
            world.store.join(&node_info("b")).await.unwrap();
            database.execute("UPDATE node SET id = id + 7").await;
        }
        assert_eq!(claim(&runs[1]).await, 0, "{older}");
        assert!(world.store.queued_of(me.id, DueRange::ALL, 10).await.unwrap().is_empty(), "{older}");
        assert_eq!(takes(me.id).await, (false, 0, 0, 0), "{older}");
        let plans = std::slice::from_ref(&plan);
        assert_eq!(world.store.write_ahead(Writer::Lease(fence), plans, world.now).await.unwrap(), None, "{older}");
    }
    let again = world.store.join(&node_info("a")).await.unwrap();
    assert_eq!(world.store.claim(again.id, vec![runs[1].clone()], world.now).await.unwrap().len(), 1);
    assert_eq!(takes(again.id).await, (true, 1, 2, 1));
}

async fn missed_fires_are_counted_from_the_latest(world: World) {
    let runs = world.runs(6).await;
    let (task, at) = (runs[0].task_id, |place: usize| runs[place].fire_time);
    let place = async |place, from, until, due_before| {
        let asked = [MissedQuestion { task, from, until, place }];
        world.store.missed_at(&asked, due_before).await.unwrap().into_iter().map(|(_, at)| at).collect::<Vec<_>>()
    };
    let (all, end) = (at(0), at(5) + 1);
    assert_eq!(place(1, all, end, end).await, [at(5)]);
    assert_eq!(place(6, all, end, end).await, [at(0)]);
    assert_eq!(place(7, all, end, end).await, [] as [i64; 0], "there are not so many");
    assert_eq!(place(1, all, at(5), end).await, [at(4)], "what is written meanwhile does not count");
    assert_eq!(place(1, all, end, at(3)).await, [at(2)], "nor what is not due yet");
    assert_eq!(place(3, at(4), end, end).await, [] as [i64; 0], "nor what was before");
    world.moved(&runs[5], Status::Cancelled, Reason::CancelledManually).await;
    world.moved(&runs[4], Status::Expired, Reason::MisfireSkipped).await;
    assert_eq!(place(1, all, end, end).await, [at(3)], "nor what has ended without running");
    let other = run_of(&world, world.owner, 5, 0).await;
    let asked = |task, place| MissedQuestion { task, from: 0, until: i64::MAX, place };
    let both = [asked(task, 2), asked(other.task_id, 1)];
    let found: BTreeSet<_> = world.store.missed_at(&both, i64::MAX).await.unwrap().into_iter().collect();
    assert_eq!(found, BTreeSet::from([(task, at(2)), (other.task_id, other.fire_time)]));
}

async fn a_run_that_expires_unclaimed_does_so_once(world: World) {
    let runs = world.runs(4).await;
    let end = |run: &Run| UnclaimedEnd {
        id: run.id,
        version: run.version,
        reason: Reason::MisfireSkipped,
        message: "too late".to_owned(),
    };
    world.store.claim(NodeId(1), vec![runs[2].clone()], world.now).await.unwrap();
    world.moved(&runs[3], Status::Cancelled, Reason::CancelledManually).await;
    let ends: Vec<UnclaimedEnd> = runs.iter().map(end).collect();
    let ours = BTreeSet::from([runs[0].id, runs[1].id]);
    let ended = async |now| {
        world.store.expire_unclaimed(NodeId(1), &ends, now).await.unwrap().into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(ended(world.now + 7).await, ours, "one is another node's, one has ended");
    assert_eq!(ended(world.now + 7).await, ours, "repeated, it answers the same");
    assert_eq!(ended(world.now + 8).await, BTreeSet::new(), "another comes too late");
    let row = world.row(&runs[0]).await;
    let run = &row.dispatched.run;
    assert_eq!((run.status, run.reason, run.version), (Status::Expired, Reason::MisfireSkipped, runs[0].version + 1));
    assert_eq!((run.queued_at, row.dispatched.finished_at), (world.now + 7, world.now + 7));
    assert_eq!(world.row(&runs[2]).await.dispatched.run.status, Status::Queued);
}
