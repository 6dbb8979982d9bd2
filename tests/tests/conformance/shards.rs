//! A sharded fire: one parent, its shards, and the end of both.

use crate::fixture::{World, edit, success};
use carillon::domain::plan::Plan;
use carillon::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, Transition};
use carillon::store::{DispatchedRun, FROM_THE_FIRST, OutcomeStore as _, Place, SqlStore, StoreErrorKind, Writer};
use carillon_protocol::RunResult;

cases!(
    shards_are_dispatched_all_or_none,
    shards_of_a_parent_that_moved_on_are_not_written,
    a_shard_that_cannot_be_written_leaves_the_parent_queued,
    open_parents_and_runs_that_must_stop_come_page_by_page,
    a_parent_settles_once_all_its_shards_have_ended,
    whole_runs_succeed_without_shards_beside_them,
    one_bad_shard_fails_the_parent,
    a_parent_that_waited_ends_well_without_a_reason,
    a_parent_taken_over_makes_room_for_new_shards,
    shards_that_find_no_room_take_none_away,
    shards_of_a_parent_that_must_stop_are_found_until_they_know,
    a_parent_that_must_stop_ends_as_its_shards_do,
);

databases!(a_parent_ends_though_shards_of_it_are_missing, an_id_that_another_run_has_loses_no_sharded_fire);

/// A parent, and its shards with executors 100, 101 …
pub async fn expanded(world: &World, total: i32) -> (Run, Vec<Run>) {
    let parent = world.queued_parent().await;
    let shards = world.shards_of(&parent, total);
    assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now + 1).await.unwrap());
    let mut rows: Vec<Run> = world.rows(parent.task_id).await.into_iter().map(|row| row.dispatched.run).collect();
    (rows.remove(0), rows)
}

async fn shards_are_dispatched_all_or_none(world: World) {
    let (parent, shards) = expanded(&world, 3).await;
    assert_eq!((parent.status, parent.shard_total, parent.attempt), (Status::Dispatched, 3, 1));
    assert_eq!(shards.len(), 3);
    for (index, shard) in shards.iter().enumerate() {
        let row = world.row(shard).await.dispatched;
        assert_eq!((row.run.shard_index, row.run.shard_total, row.run.parent_id), (index as i32, 3, parent.id));
        assert_eq!((row.run.status, row.run.attempt, row.run.version), (Status::Dispatched, 1, 1));
        assert_eq!(
            (row.node_id, row.run.executor_id, row.dispatched_at),
            (NodeId(1), ExecutorId(100 + index as i64), world.now + 1)
        );
        assert_eq!((row.run.fire_time, row.run.due_time), (parent.fire_time, parent.due_time));
    }
}

async fn shards_of_a_parent_that_moved_on_are_not_written(world: World) {
    let parent = world.queued_parent().await;
    world.moved(&parent, Status::Init, Reason::None).await;
    let shards = world.shards_of(&parent, 2);
    assert!(!world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap());
    assert_eq!(world.rows(parent.task_id).await.len(), 1);
}

async fn a_shard_that_cannot_be_written_leaves_the_parent_queued(world: World) {
    let parent = world.queued_parent().await;
    let mut shards = world.shards_of(&parent, 2);
    shards[1].shard_index = 0;
    if let Err(error) = world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await {
        assert_eq!(error.kind(), StoreErrorKind::Duplicate);
    }
    let rows = world.rows(parent.task_id).await;
    let state = (rows[0].dispatched.run.status, rows[0].dispatched.run.version, rows.len());
    assert_eq!(state, (Status::Queued, parent.version, 1));
}

/// Its shards come again under other ids.
async fn an_id_that_another_run_has_loses_no_sharded_fire(world: World, _: SqlStore) {
    let parent = world.queued_parent().await;
    let mut shards = world.shards_of(&parent, 2);
    shards[1].id = parent.id;
    let error = world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Contention);
    let rows = world.rows(parent.task_id).await;
    assert_eq!((rows[0].dispatched.run.status, rows.len()), (Status::Queued, 1));
    let shards = world.shards_of(&parent, 2);
    assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap());
}

/// All are due at the same instant, and each is on one page.
async fn open_parents_and_runs_that_must_stop_come_page_by_page(world: World) {
    let (mut parents, mut stopping) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let (parent, shards) = expanded(&world, 1).await;
        note_stop(&world, &shards[0], Reason::Covered).await;
        parents.push((parent.due_time, parent.id));
        stopping.push((shards[0].due_time, shards[0].id));
    }
    let (mut open, mut told) = (Vec::new(), Vec::new());
    for page in [2, 2, 1, 0] {
        let after = |found: &[Place]| found.last().copied().unwrap_or(FROM_THE_FIRST);
        let found = world.store.open_parents(world.now + 2, i64::MAX, after(&open), 2).await.unwrap();
        assert_eq!(found.len(), page);
        open.extend(found);
        let found = world.store.stopping(i64::MAX, after(&told), 2).await.unwrap();
        assert_eq!(found.len(), page);
        told.extend(found.iter().map(|dispatched| (dispatched.run.due_time, dispatched.run.id)));
    }
    let [first, last] = [parents[0].0, parents[4].0];
    assert_eq!((open, told), (parents, stopping));
    for (until, found) in [(first, 0), (last + 1, 5)] {
        assert_eq!(world.store.open_parents(world.now + 2, until, FROM_THE_FIRST, 9).await.unwrap().len(), found);
        assert_eq!(world.store.stopping(until, FROM_THE_FIRST, 9).await.unwrap().len(), found);
    }
}

async fn a_parent_settles_once_all_its_shards_have_ended(world: World) {
    let (parent, shards) = expanded(&world, 2).await;
    let shard_ids: Vec<LogId> = shards.iter().map(|shard| shard.id).collect();
    assert_eq!(world.store.parents_of(&shard_ids).await.unwrap(), [parent.id]);
    assert!(world.store.parents_of(&[parent.id]).await.unwrap().is_empty());
    let open = async |before| world.store.open_parents(before, i64::MAX, FROM_THE_FIRST, 10).await.unwrap();
    assert_eq!(open(world.now + 2).await, [(parent.due_time, parent.id)]);
    assert!(open(world.now + 1).await.is_empty());

    let asked = [parent.id, shards[0].id];
    let settle = || world.store.settle_parents(&asked, world.now + 50);
    assert_eq!(settle().await.unwrap(), 0);
    world.store.succeed(world.owner, &[&success(&shards[0], 1)]).await.unwrap();
    assert_eq!(settle().await.unwrap(), 0, "one shard still runs");
    world.store.succeed(world.owner, &[&success(&shards[1], 1)]).await.unwrap();
    assert_eq!(settle().await.unwrap(), 1);
    assert_eq!(settle().await.unwrap(), 0);
    let row = world.row(&parent).await;
    assert_eq!((row.dispatched.run.status, row.dispatched.run.reason), (Status::Succeeded, Reason::None));
    assert_eq!((row.started_at, row.dispatched.finished_at), (parent.due_time + 1, parent.due_time + 2));
    assert!(open(world.now + 2).await.is_empty());
}

async fn whole_runs_succeed_without_shards_beside_them(world: World) {
    let (_, shards) = expanded(&world, 1).await;
    let runs = world.dispatched(1, world.runs(3).await, 7).await;
    let told = RunResult { output: "told".to_owned(), ..success(&runs[1], 1) };
    let silent = |run| RunResult { output: String::new(), ..success(run, 1) };
    let [plain, shard] = [silent(&runs[0]), silent(&shards[0])];
    assert_eq!(world.store.succeed_whole(world.owner, &[&plain, &shard]).await.unwrap(), 1);
    assert_eq!(world.store.succeed_whole(world.owner, &[&plain, &told, &shard]).await.unwrap(), 1);
    let of_another = success(&runs[2], 2);
    assert_eq!(world.store.succeed_whole(world.owner, &[&of_another]).await.unwrap(), 0, "another attempt");
    let mut found = Vec::new();
    for run in runs.iter().chain(&shards) {
        let row = world.row(run).await;
        found.push((row.dispatched.run.status, row.output));
    }
    let (good, open) = (Status::Succeeded, Status::Dispatched);
    let expected = [(good, ""), (good, "told"), (open, ""), (open, "")];
    assert_eq!(found, expected.map(|(status, output)| (status, output.to_owned())));
}

async fn one_bad_shard_fails_the_parent(world: World) {
    let (parent, shards) = expanded(&world, 3).await;
    let good: Vec<_> = shards[..2].iter().map(|shard| success(shard, 1)).collect();
    world.store.succeed(world.owner, &good.iter().collect::<Vec<_>>()).await.unwrap();
    let retry = Transition::of(&shards[2], Status::Retry, Reason::HandlerFailed);
    world.store.change(&[retry]).await.unwrap();
    assert_eq!(world.store.settle_parents(&[parent.id], world.now).await.unwrap(), 0, "it will run again");
    let waiting = world.row(&shards[2]).await.dispatched.run;
    world.moved(&waiting, Status::Cancelled, Reason::CancelledManually).await;
    assert_eq!(world.store.settle_parents(&[parent.id], world.now).await.unwrap(), 1);
    let row = world.row(&parent).await.dispatched.run;
    assert_eq!((row.status, row.reason), (Status::Failed, Reason::ShardFailed));
}

/// "No executor" explains a wait; once the shards are dispatched it explains nothing any more.
async fn a_parent_that_waited_ends_well_without_a_reason(world: World) {
    let parent = world.queued_parent().await;
    world.moved(&parent, Status::Retry, Reason::NoExecutor).await;
    let waiting = world.row(&parent).await.dispatched.run;
    let parent = world.store.claim(NodeId(1), vec![waiting], world.now).await.unwrap().remove(0);
    let shards = world.shards_of(&parent, 1);
    assert!(world.store.dispatch_shards(NodeId(1), &parent, &shards, world.now).await.unwrap());
    world.store.succeed(world.owner, &[&success(&shards[0], 1)]).await.unwrap();
    assert_eq!(world.store.settle_parents(&[parent.id], world.now).await.unwrap(), 1);
    let row = world.row(&parent).await.dispatched.run;
    assert_eq!((row.status, row.reason), (Status::Succeeded, Reason::None));
}

async fn a_parent_taken_over_makes_room_for_new_shards(world: World) {
    let (parent, shards) = expanded(&world, 2).await;
    for run in [&parent, &shards[0], &shards[1]] {
        world.moved(run, Status::Cancelled, Reason::TaskEdited).await;
    }
    let task = world.task(parent.task_id).await;
    world.change(edit(&task), world.now).await.unwrap();
    let task = world.task(parent.task_id).await;
    let plan = Plan { sharded: true, takes_over: true, ..world.plan(&task, [parent.fire_time]) };
    world.store.write_ahead(Writer::Node(NodeId(1)), &[plan], world.now).await.unwrap();
    let again = world.row(&parent).await.dispatched.run;
    assert_eq!((again.status, again.shard_total, again.revision), (Status::Init, 0, 2));
    let again = world.store.claim(NodeId(2), vec![again], world.now).await.unwrap().remove(0);
    let replacements = world.shards_of(&again, 3);
    assert!(world.store.dispatch_shards(NodeId(2), &again, &replacements, world.now).await.unwrap());
    let rows = world.rows(parent.task_id).await;
    let found: Vec<LogId> = rows.iter().map(|row| row.dispatched.run.id).collect();
    assert_eq!(found, [again.id, replacements[0].id, replacements[1].id, replacements[2].id]);
    assert_eq!(rows[0].dispatched.run.shard_total, 3);
}

async fn shards_that_find_no_room_take_none_away(world: World) {
    let (parent, shards) = expanded(&world, 2).await;
    world.moved(&shards[0], Status::Cancelled, Reason::TaskEdited).await;
    world.moved(&parent, Status::Retry, Reason::GivenBack).await;
    let waiting = world.row(&parent).await.dispatched.run;
    let again = world.store.claim(NodeId(2), vec![waiting], world.now).await.unwrap().remove(0);
    let runs = async || world.rows(parent.task_id).await.into_iter().map(|row| row.dispatched.run).collect::<Vec<_>>();
    let before = runs().await;
    let replacements = world.shards_of(&again, 2);
    let error = world.store.dispatch_shards(NodeId(2), &again, &replacements, world.now).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Duplicate, "the second shard is still there");
    assert_eq!(runs().await, before);
}

/// Tells runs to stop.
async fn note_stop(world: &World, run: &Run, reason: Reason) {
    let now = world.row(run).await.dispatched.run;
    assert_eq!(world.store.note_stop(&[(now.id, now.version)], reason).await.unwrap().len(), 1);
}

async fn shards_of_a_parent_that_must_stop_are_found_until_they_know(world: World) {
    let (parent, shards) = expanded(&world, 4).await;
    expanded(&world, 2).await;
    let found = async |limit| {
        let mut found = world.store.shards_to_stop(limit).await.unwrap();
        found.sort_by_key(|shard| shard.run.shard_index);
        found
    };
    assert!(found(10).await.is_empty());
    note_stop(&world, &parent, Reason::Covered).await;
    assert_eq!(found(3).await.len(), 3);
    let all = found(10).await;
    let mut expected = Vec::new();
    for shard in &shards {
        let row = world.row(shard).await.dispatched;
        expected.push(DispatchedRun { stopping: Reason::Covered, ..row });
    }
    assert_eq!(all, expected, "those of the other parent go on");

    let indexes = async || found(10).await.iter().map(|shard| shard.run.shard_index).collect::<Vec<_>>();
    note_stop(&world, &shards[0], Reason::Covered).await;
    world.store.succeed(world.owner, &[&success(&shards[1], 1)]).await.unwrap();
    assert_eq!(indexes().await, [2, 3], "not what knows, nor what has ended");
    // Between two attempts no executor has them, whether they were told or not.
    for shard in [&shards[0], &shards[2]] {
        let now = world.row(shard).await.dispatched.run;
        world.moved(&now, Status::Retry, Reason::GivenBack).await;
    }
    let waiting = found(10).await;
    let seen: Vec<_> = waiting.iter().map(|shard| (shard.run.shard_index, shard.run.status, shard.stopping)).collect();
    let expected = [(0, Status::Retry), (2, Status::Retry), (3, Status::Dispatched)];
    assert_eq!(seen, expected.map(|(index, status)| (index, status, Reason::Covered)));
    for shard in &waiting {
        world.moved(&shard.run, Status::Cancelled, Reason::Covered).await;
    }
    assert!(found(10).await.is_empty());
}

async fn a_parent_that_must_stop_ends_as_its_shards_do(world: World) {
    for (good, expected) in [(1, (Status::Cancelled, Reason::Covered)), (2, (Status::Succeeded, Reason::None))] {
        let (parent, shards) = expanded(&world, 2).await;
        note_stop(&world, &parent, Reason::Covered).await;
        for (at, shard) in shards.iter().enumerate() {
            if at < good {
                world.store.succeed(world.owner, &[&success(shard, 1)]).await.unwrap();
            } else {
                world.moved(shard, Status::Cancelled, Reason::Covered).await;
            }
        }
        assert_eq!(world.store.settle_parents(&[parent.id], world.now).await.unwrap(), 1);
        let row = world.row(&parent).await.dispatched.run;
        assert_eq!((row.status, row.reason), expected, "{good} of 2 shards ended well");
        assert!(world.store.shards_to_stop(10).await.unwrap().is_empty());
    }
}

/// However they went: what is open is what a parent waits for. That all ended well it is not said to have seen.
async fn a_parent_ends_though_shards_of_it_are_missing(world: World, store: SqlStore) {
    let database = world.database.clone().unwrap();
    let gone = async |shard: &Run| database.execute(&format!("DELETE FROM task_log WHERE id = {}", shard.id)).await;
    let settle = async |parent: &Run| store.settle_parents(&[parent.id], world.now + 50).await.unwrap();
    let end = async |parent: &Run| {
        let row = world.row(parent).await.dispatched;
        (row.run.status, row.run.reason, row.finished_at)
    };
    let (parent, shards) = expanded(&world, 2).await;
    gone(&shards[0]).await;
    assert_eq!(settle(&parent).await, 0, "one still runs");
    world.store.succeed(world.owner, &[&success(&shards[1], 1)]).await.unwrap();
    assert_eq!(settle(&parent).await, 1);
    assert_eq!(end(&parent).await, (Status::Failed, Reason::ShardFailed, parent.due_time + 2));

    let (parent, shards) = expanded(&world, 2).await;
    note_stop(&world, &parent, Reason::CancelledManually).await;
    for shard in &shards {
        gone(shard).await;
    }
    assert_eq!(settle(&parent).await, 1);
    assert_eq!(end(&parent).await, (Status::Cancelled, Reason::CancelledManually, world.now + 50));
}
