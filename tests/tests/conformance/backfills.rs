//! Backfills: runs for the fires of a range that has passed.

use crate::fixture::{World, node};
use carillon::domain::plan::Plan;
use carillon::domain::task::{ParentLink, ParentOutcome, TaskSpec};
use carillon::domain::{BackfillId, LogId, NodeId, Reason, Run, Status, TaskId, TenantId, Transition, Trigger};
use carillon::store::{Backfill, LogView, SqlStore, StoreErrorKind, TaskView, Writer};

cases!(
    a_backfill_writes_so_many_at_a_time_and_leaves_out_what_exists,
    a_backfill_gives_a_run_to_fires_that_never_ran,
    ends_of_backfilled_runs_are_followed_where_they_matter,
    a_backfill_is_found_however_many_are_newer,
    a_backfill_ends_with_its_task,
    a_backfill_waits_for_what_the_clock_says_is_to_come,
);

databases!(a_backfill_of_a_task_that_cannot_be_read_waits);

/// Of five seconds from then on.
pub fn backfill(world: &World, task: &TaskView, from: i64, max_concurrent: i32) -> Backfill {
    Backfill {
        id: world.id(),
        tenant_id: world.owner.tenant_id,
        task_id: task.id,
        range_from: from,
        range_until: from + 5_000,
        next_at: from,
        max_concurrent,
        params: Some("again".to_owned()),
        status: "open".to_owned(),
        written: 0,
        existing: 0,
        created_at: world.now,
        finished_at: 0,
    }
}

async fn a_backfill_writes_so_many_at_a_time_and_leaves_out_what_exists(world: World) {
    let task = world.started(&World::every_second("filled")).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    world.write(&task, [second + 1_000]).await;
    let backfill = backfill(&world, &task, second, 2);
    world.admin.create_backfill(&backfill, world.now).await.unwrap();
    let advance = async || {
        let open = world.store.open_backfills(BackfillId(0), 10).await.unwrap();
        let open = open.first()?;
        Some(world.store.advance(NodeId(1), open, &|| world.id(), world.now).await.unwrap())
    };
    let filled = async |status: Status| {
        let rows = world.rows(task.id).await.into_iter().map(|log| log.dispatched.run);
        rows.filter(|run| run.trigger == Trigger::Backfill && run.status == status).collect::<Vec<_>>()
    };
    assert_eq!((advance().await, advance().await), (Some(2), Some(0)), "no more at once");
    let runs = filled(Status::Init).await;
    let seen: Vec<_> = runs.iter().map(|run| (run.fire_time - second, run.priority, run.due_time)).collect();
    assert_eq!(seen, [(0, 0, world.now), (2_000, 0, world.now)]);
    assert_eq!(runs[0].params.as_deref(), Some("again"));
    let stale = Backfill { next_at: second, ..backfill.clone() };
    assert_eq!(
        world.store.advance(NodeId(1), &stale, &|| world.id(), world.now).await.unwrap(),
        0,
        "another caller has moved on"
    );
    for _ in 0..3 {
        for run in filled(Status::Init).await {
            let queued = world.store.claim(NodeId(1), vec![run], world.now).await.unwrap();
            world.moved(&queued[0], Status::Cancelled, Reason::CancelledManually).await;
        }
        advance().await;
    }
    assert_eq!(advance().await, None, "done");
    let done = world.admin.backfills_of(world.owner.tenant_id, task.id, None, 1).await.remove(0);
    assert_eq!((done.status.as_str(), done.written, done.existing), ("done", 4, 1));
    assert_eq!(filled(Status::Cancelled).await.len(), 4);
}

async fn a_backfill_gives_a_run_to_fires_that_never_ran(world: World) {
    let task = world.started(&World::every_second("filled")).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    let runs = world.write(&task, (1..4).map(|at| second + at * 1_000)).await;
    let tried = world.dispatched(1, vec![runs[1].clone()], 7).await.remove(0);
    for run in [&runs[0], &tried] {
        let step = Transition { finished_at: world.now, failures: 2, message: "late".to_owned(), ..expiry(run) };
        assert_eq!(world.store.change(&[step]).await.unwrap().len(), 1);
    }
    world.moved(&runs[2], Status::Cancelled, Reason::CancelledManually).await;
    world.change(crate::fixture::edit(&task), world.now).await.unwrap();
    let rows_now = async || world.rows(task.id).await;
    let before = rows_now().await;
    let asked = backfill(&world, &task, second, 2);
    world.admin.create_backfill(&asked, world.now).await.unwrap();

    let advance = async |now| {
        let open = world.store.open_backfills(BackfillId(0), 1).await.unwrap();
        world.store.advance(NodeId(1), &open[0], &|| world.id(), now).await.unwrap()
    };
    assert_eq!(advance(world.now + 5).await, 2, "one of them counts as any other");
    let rows = rows_now().await;
    assert_eq!(rows.len(), 4, "the fire keeps its log");
    let row = &rows[1];
    let again = Run {
        status: Status::Init,
        reason: Reason::None,
        version: before[0].dispatched.run.version + 1,
        revision: 2,
        due_time: world.now + 5,
        failures: 0,
        trigger: Trigger::Backfill,
        priority: 0,
        params: Some("again".to_owned()),
        ..before[0].dispatched.run.clone()
    };
    assert_eq!((&row.dispatched.run, row.dispatched.finished_at, row.message.as_str()), (&again, 0, ""));
    let others = |rows: &[LogView]| rows.iter().map(|row| row.dispatched.clone()).collect::<Vec<_>>();
    assert_eq!(others(&rows[2..]), others(&before[1..]), "one was tried, one was cancelled");
    assert_eq!(advance(world.now + 6).await, 0, "both go on");
    for run in [&rows[0].dispatched.run, &again] {
        world.moved(run, Status::Cancelled, Reason::CancelledManually).await;
    }
    assert_eq!(advance(world.now + 7).await, 1);
    let stands = world.admin.backfills_of(world.owner.tenant_id, task.id, None, 1).await.remove(0);
    assert_eq!((stands.written, stands.existing), (3, 2));
    assert_eq!(others(&rows_now().await[2..4]), others(&before[1..]));
}

fn expiry(run: &Run) -> Transition {
    Transition::of(run, Status::Expired, Reason::Expired)
}

async fn ends_of_backfilled_runs_are_followed_where_they_matter(world: World) {
    let plain = world.started(&World::every_second("plain")).await;
    let careful = world.started(&TaskSpec { pause_after_failures: 2, ..World::every_second("careful") }).await;
    let parent = world.started(&World::every_second("parent")).await;
    let link = ParentLink { task: "parent".to_owned(), on: ParentOutcome::Success };
    world.started(&TaskSpec { parents: vec![link], ..World::every_second("child") }).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    for (task, is_watched) in [(&plain, false), (&careful, true), (&parent, true)] {
        let task = world.task(task.id).await;
        // Fires without a log, and one whose run never was.
        let missed = Plan { outbox: true, ..world.plan(&task, [second + 1_000]) };
        world.store.write_ahead(Writer::Node(NodeId(1)), &[missed], world.now).await.unwrap();
        let run = world.rows(task.id).await.remove(0).dispatched.run;
        assert_eq!(world.store.change(&[expiry(&run)]).await.unwrap().len(), 1);
        let ended = world.store.ended(LogId::NONE, 1_000).await.unwrap().ended;
        world.store.process_outbox(&ended, &node(), &|| world.id(), world.now).await.unwrap().unwrap();
        assert!(world.admin.watched(task.id).await.is_empty());

        let asked = backfill(&world, &task, second, 3);
        world.admin.create_backfill(&asked, world.now).await.unwrap();
        assert_eq!(world.store.advance(NodeId(1), &asked, &|| world.id(), world.now).await.unwrap(), 3);
        let rows = world.rows(task.id).await;
        let mut written: Vec<LogId> = rows.iter().map(|row| row.dispatched.run.id).collect();
        written.sort_unstable();
        assert_eq!(world.admin.watched(task.id).await, if is_watched { written } else { Vec::new() });
    }
}

async fn a_backfill_is_found_however_many_are_newer(world: World) {
    let task = world.started(&World::every_second("filled")).await;
    let tenant = world.owner.tenant_id;
    let mut made = Vec::new();
    for _ in 0..110 {
        let backfill = backfill(&world, &task, 1_000, 1);
        world.admin.create_backfill(&backfill, world.now).await.unwrap();
        made.insert(0, backfill.id);
    }
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = world.admin.backfills_of(tenant, task.id, before, 40).await;
        let Some(last) = page.last() else { break };
        before = Some(last.id);
        listed.extend(page.iter().map(|backfill| backfill.id));
    }
    assert_eq!(listed, made);
    let oldest = made[109];
    let cancel = async |tenant, task| world.admin.cancel_backfill(tenant, task, oldest, world.now).await;
    for nowhere in [cancel(TenantId(tenant.0 + 1), task.id).await, cancel(tenant, TaskId(task.id.0 + 1)).await] {
        assert_eq!(nowhere.unwrap_err().kind(), StoreErrorKind::NotFound);
    }
    assert_eq!(world.store.open_backfills(BackfillId(0), 500).await.unwrap().len(), 110, "others' are left alone");
    cancel(tenant, task.id).await.unwrap();
    let open = world.store.open_backfills(BackfillId(0), 500).await.unwrap();
    assert!(open.len() == 109 && open.iter().all(|backfill| backfill.id != oldest));
}

/// A stopped, paused or deleted task is filled no further; an edit changes nothing.
async fn a_backfill_ends_with_its_task(world: World) {
    let second = world.now / 1_000 * 1_000 - 60_000;
    for (name, is_deleted) in [("stopped", false), ("deleted", true)] {
        let task = world.started(&World::every_second(name)).await;
        world.admin.create_backfill(&backfill(&world, &task, second, 1), world.now).await.unwrap();
        world.change(crate::fixture::edit(&task), world.now).await.unwrap();
        assert_eq!(world.store.open_backfills(BackfillId(0), 10).await.unwrap().len(), 1, "{name}");
        let task = world.task(task.id).await;
        if is_deleted {
            world.admin.delete_task(&task, world.now).await.unwrap();
        } else {
            world.change(crate::fixture::stop(&task), world.now).await.unwrap();
        }
        assert!(world.store.open_backfills(BackfillId(0), 10).await.unwrap().is_empty(), "{name}");
        let ended = world.admin.backfills_of(world.owner.tenant_id, task.id, None, 1).await.remove(0);
        assert_eq!((ended.status.as_str(), ended.finished_at), ("cancelled", world.now), "{name}");
    }
}

/// It was asked for before the clock was set back.
async fn a_backfill_waits_for_what_the_clock_says_is_to_come(world: World) {
    let task = world.started(&World::every_second("filled")).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    world.admin.create_backfill(&backfill(&world, &task, second, 10), world.now).await.unwrap();
    let advance = async |now: i64| {
        let open = world.store.open_backfills(BackfillId(0), 10).await.unwrap();
        world.store.advance(NodeId(1), &open[0], &|| world.id(), now).await.unwrap()
    };
    assert_eq!(advance(second - 1).await, 0);
    assert_eq!((advance(second + 1_500).await, advance(second + 1_999).await), (2, 0), "the fires of 0 and 1 s");
    assert_eq!(advance(second + 2_000).await, 1);
    assert_eq!(advance(second + 9_000).await, 2, "to its end");
    let rows = world.rows(task.id).await.into_iter().map(|log| log.dispatched.run);
    let early: Vec<Run> = rows.filter(|run| run.due_time < run.fire_time).collect();
    assert!(early.is_empty(), "{early:?}");
}

/// A node of a later release has written a word into it: a node of that one goes on.
async fn a_backfill_of_a_task_that_cannot_be_read_waits(world: World, _: SqlStore) {
    let task = world.started(&World::every_second("filled")).await;
    let second = world.now / 1_000 * 1_000 - 60_000;
    world.admin.create_backfill(&backfill(&world, &task, second, 2), world.now).await.unwrap();
    let advance = async || {
        let open = world.store.open_backfills(BackfillId(0), 10).await.unwrap().remove(0);
        world.store.advance(NodeId(1), &open, &|| world.id(), world.now).await.unwrap()
    };
    let database = world.database.as_ref().unwrap();
    let set_strategy =
        async |word: &str| database.execute(&format!("UPDATE task SET misfire_strategy = '{word}'")).await;
    assert_eq!(set_strategy("ask_the_future").await, 1);
    assert_eq!(advance().await, 0);
    assert!(world.rows(task.id).await.is_empty());
    let waits = world.admin.backfills_of(world.owner.tenant_id, task.id, None, 1).await.remove(0);
    assert_eq!((waits.status.as_str(), waits.next_at), ("open", second));
    set_strategy("fire_once").await;
    assert_eq!(advance().await, 2);
}
