//! Which task runs after which, and definitions that are stored together or not at all.

use crate::fixture::{World, edit, start};
use carillon::domain::plan::Plan;
use carillon::domain::task::{ParentLink, ParentOutcome, TaskSpec};
use carillon::domain::{LogId, NodeId, Reason, Status};
use carillon::store::{NewRun, NewTask, StoreErrorKind, TaskChange, TaskView, Writer};
use carillon_simulation::store::admin::new_task;

cases!(
    parents_are_set_replaced_and_dropped,
    a_parent_of_another_app_is_named_with_it,
    a_renamed_parent_stays_one,
    a_deleted_task_leaves_the_graph,
    an_unknown_parent_is_refused_by_its_name,
    a_cycle_is_refused_with_its_tasks,
    a_graph_without_a_cycle_is_none,
    tasks_stored_together_may_name_each_other,
    a_bad_one_among_many_changes_nothing,
    the_runs_of_a_parent_are_followed_from_its_first_child_on,
    runs_started_manually_are_followed_where_their_end_counts,
    a_plan_that_does_not_know_of_children_writes_nothing,
);

/// Links to these tasks, each with an outcome of its own.
fn after(parents: &[&str]) -> Vec<ParentLink> {
    let outcomes = [ParentOutcome::Success, ParentOutcome::Failure, ParentOutcome::Always];
    let link = |(name, on): (&&str, ParentOutcome)| ParentLink { task: (*name).to_owned(), on };
    parents.iter().zip(outcomes.into_iter().cycle()).map(link).collect()
}

fn child(name: &str, parents: &[&str]) -> TaskSpec {
    TaskSpec { parents: after(parents), ..World::every_second(name) }
}

/// Another list of parents.
fn with_parents(task: &TaskView, parents: &[&str]) -> TaskChange {
    TaskChange { spec: TaskSpec { parents: after(parents), ..task.spec.clone() }, ..edit(task) }
}

/// Started tasks of these names, without parents.
async fn tasks<const N: usize>(world: &World, names: [&str; N]) -> [TaskView; N] {
    let mut tasks = Vec::new();
    for name in names {
        tasks.push(world.started(&World::every_second(name)).await);
    }
    tasks.try_into().unwrap()
}

async fn set(world: &World, task: &TaskView, parents: &[&str]) -> TaskView {
    world.change(with_parents(task, parents), world.now).await.unwrap();
    world.task(task.id).await
}

/// Which of these have children, as the engine sees it.
async fn have_children<const N: usize>(world: &World, tasks: [&TaskView; N]) -> [bool; N] {
    let read = world.store.tasks(&tasks.map(|task| task.id)).await.unwrap();
    tasks.map(|task| read.iter().any(|read| read.id == task.id && read.has_children))
}

async fn parents_are_set_replaced_and_dropped(world: World) {
    let [a, b, c] = tasks(&world, ["a", "b", "c"]).await;
    let born = world.started(&child("born", &["b", "a"])).await;
    assert_eq!(born.spec.parents, after(&["b", "a"]), "in the order in which they were named");
    assert_eq!(have_children(&world, [&a, &b, &c]).await, [true, true, false]);

    let replaced = set(&world, &born, &["c", "a"]).await;
    assert_eq!(replaced.spec.parents, after(&["c", "a"]));
    assert_eq!(have_children(&world, [&a, &b, &c]).await, [true, false, true]);
    let second = world.started(&child("second", &["a"])).await;
    let dropped = set(&world, &replaced, &[]).await;
    assert_eq!(dropped.spec.parents, []);
    assert_eq!(have_children(&world, [&a, &b, &c]).await, [true, false, false], "another one is left");
    set(&world, &second, &[]).await;
    assert_eq!(have_children(&world, [&a]).await, [false]);

    // What is no change of the parents leaves them alone.
    let kept = set(&world, &dropped, &["b", "c"]).await;
    let described = TaskSpec { description: "same".to_owned(), ..kept.spec.clone() };
    world.change(TaskChange { spec: described.clone(), ..edit(&kept) }, world.now).await.unwrap();
    assert_eq!(world.task(born.id).await.spec, described);
    assert_eq!(have_children(&world, [&b, &c]).await, [true, true]);
}

async fn a_parent_of_another_app_is_named_with_it(world: World) {
    let billing = world.admin.make_app([world.id(), world.id()], "retail", "billing").await;
    let stranger = world.admin.make_app([world.id(), world.id()], "stranger", "secrets").await;
    assert!(billing.tenant_id == world.owner.tenant_id && stranger.tenant_id != billing.tenant_id);
    let bill = new_task(world.id(), billing, World::every_second("bill"));
    let secret = new_task(world.id(), stranger, World::every_second("secret"));
    world.admin.apply(&[bill.clone(), secret], &[], world.now).await.unwrap();
    world.started(&World::every_second("ship")).await;

    let last = world.started(&child("last", &["billing/bill", "ship"])).await;
    assert_eq!(last.spec.parents, after(&["billing/bill", "ship"]));
    assert_eq!(have_children(&world, [&world.task(bill.id).await]).await, [true]);
    // Its own app may be named, too, and is left out when it is shown.
    let shown = set(&world, &last, &["orders/ship"]).await;
    assert_eq!(shown.spec.parents, after(&["ship"]));
    for absent in ["bill", "billing/ship", "nowhere/bill", "secrets/secret"] {
        let refused = world.change(with_parents(&shown, &[absent]), world.now).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Invalid);
        assert!(refused.to_string().contains(&format!("parents[0].task: there is no task `{absent}`")), "{refused}");
    }
}

async fn a_renamed_parent_stays_one(world: World) {
    let [old] = tasks(&world, ["old"]).await;
    let born = world.started(&child("born", &["old"])).await;
    let renamed = TaskSpec { name: "new".to_owned(), ..old.spec.clone() };
    world.change(TaskChange { spec: renamed, ..edit(&old) }, world.now).await.unwrap();
    let shown = world.task(born.id).await;
    assert_eq!((shown.spec.parents, shown.revision), (after(&["new"]), 1));
}

async fn a_deleted_task_leaves_the_graph(world: World) {
    let [a, b] = tasks(&world, ["a", "b"]).await;
    let born = world.started(&child("born", &["a", "b"])).await;
    world.admin.delete_task(&a, world.now).await.unwrap();
    let left = world.task(born.id).await;
    assert_eq!(left.spec.parents.iter().map(|link| link.task.as_str()).collect::<Vec<_>>(), ["b"]);
    world.admin.delete_task(&left, world.now).await.unwrap();
    assert_eq!(have_children(&world, [&b]).await, [false]);
    // Its name is free for another one, which has nothing of it.
    let another = world.started(&World::every_second("a")).await;
    assert_eq!(have_children(&world, [&another]).await, [false]);
}

async fn an_unknown_parent_is_refused_by_its_name(world: World) {
    let [a, b] = tasks(&world, ["a", "b"]).await;
    let linked = set(&world, &b, &["a"]).await;
    let refused = world.change(with_parents(&linked, &["a", "Nobody"]), world.now).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Invalid);
    assert!(refused.to_string().contains("parents[1].task: there is no task `Nobody`"), "{refused}");
    let after_it = world.task(b.id).await;
    assert_eq!((after_it.revision, &after_it.spec), (linked.revision, &linked.spec));

    let born = world.new_task(&child("born", &["nobody"]), true);
    let refused = world.admin.apply(std::slice::from_ref(&born), &[], world.now).await.unwrap_err();
    assert!(refused.to_string().contains("`nobody`"), "{refused}");
    assert!(world.admin.task(born.id).await.is_none());
    assert_eq!(have_children(&world, [&a, &b]).await, [true, false]);
}

async fn a_cycle_is_refused_with_its_tasks(world: World) {
    let [a, b, c] = tasks(&world, ["a", "b", "c"]).await;
    world.write(&a, [world.now]).await;
    let b = set(&world, &b, &["a"]).await;
    let c = set(&world, &c, &["b"]).await;
    for (parents, way) in [(&["c"][..], "a after c after b after a"), (&["a"], "a after a")] {
        let refused = world.change(with_parents(&a, parents), world.now).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Invalid);
        assert!(refused.to_string().contains(way), "{refused}");
    }
    for task in [&a, &b, &c] {
        let now = world.task(task.id).await;
        assert_eq!((now.revision, &now.spec), (task.revision, &task.spec));
    }
    assert_eq!(have_children(&world, [&a, &b, &c]).await, [true, true, false]);
    assert_eq!(world.states(a.id).await, [(Status::Init, Reason::None)], "nothing was revoked");
}

async fn a_graph_without_a_cycle_is_none(world: World) {
    let [_, left, right, bottom] = tasks(&world, ["top", "left", "right", "bottom"]).await;
    set(&world, &left, &["top"]).await;
    set(&world, &right, &["top"]).await;
    set(&world, &bottom, &["left", "right"]).await;

    // Turned round in one step, in either order, it has no cycle at its end.
    let mut pair = tasks(&world, ["one", "two"]).await;
    pair[1] = set(&world, &pair[1], &["one"]).await;
    for forwards in [true, false] {
        let mut changes = if pair[0].spec.parents.is_empty() {
            [with_parents(&pair[0], &["two"]), with_parents(&pair[1], &[])]
        } else {
            [with_parents(&pair[0], &[]), with_parents(&pair[1], &["one"])]
        };
        if !forwards {
            changes.reverse();
        }
        world.admin.apply(&[], &changes, world.now).await.unwrap();
        pair = [world.task(pair[0].id).await, world.task(pair[1].id).await];
    }
    assert_eq!((pair[0].spec.parents.len(), &pair[1].spec.parents), (0, &after(&["one"])));
}

async fn tasks_stored_together_may_name_each_other(world: World) {
    let specs = [child("last", &["middle"]), child("middle", &["first"]), World::every_second("first")];
    let new: Vec<NewTask> = specs.iter().map(|spec| world.new_task(spec, false)).collect();
    world.admin.apply(&new, &[], world.now).await.unwrap();
    for (task, spec) in new.iter().zip(&specs) {
        assert_eq!(&world.task(task.id).await.spec, spec);
    }
    // A new one beside a change that names it.
    let first = world.task(new[2].id).await;
    let zero = world.new_task(&World::every_second("zero"), true);
    world.admin.apply(std::slice::from_ref(&zero), &[with_parents(&first, &["zero"])], world.now).await.unwrap();
    assert_eq!(have_children(&world, [&world.task(zero.id).await]).await, [true]);
}

/// Each kind of refusal, after two changes and a new task that were fine.
async fn a_bad_one_among_many_changes_nothing(world: World) {
    let [a, b, bad] = tasks(&world, ["a", "b", "bad"]).await;
    world.write(&a, [world.now]).await;
    let mut other_name = edit(&bad);
    "a".clone_into(&mut other_name.spec.name);
    let mut old = edit(&bad);
    old.before.revision -= 1;
    let mut no_cron = edit(&bad);
    "every now and then".clone_into(&mut no_cron.spec.cron);
    let refusals = [
        (other_name, StoreErrorKind::Duplicate),
        (old, StoreErrorKind::Conflict),
        (no_cron, StoreErrorKind::Invalid),
        (with_parents(&bad, &["nobody"]), StoreErrorKind::Invalid),
        (with_parents(&bad, &["born"]), StoreErrorKind::Invalid),
    ];
    for (change, kind) in refusals {
        let new = world.new_task(&child("born", &["bad"]), true);
        let changes = [with_parents(&a, &["b"]), change, start(&b)];
        let refused = world.admin.apply(std::slice::from_ref(&new), &changes, world.now).await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
        assert!(world.admin.task(new.id).await.is_none());
        for task in [&a, &b, &bad] {
            let now = world.task(task.id).await;
            assert_eq!((now.revision, &now.spec, now.next_fire_at), (1, &task.spec, task.next_fire_at), "{refused}");
        }
        assert_eq!(world.states(a.id).await, [(Status::Init, Reason::None)], "{refused}");
        assert_eq!(have_children(&world, [&a, &b, &bad]).await, [false; 3]);
        assert!(world.admin.watched(a.id).await.is_empty());
    }
}

async fn the_runs_of_a_parent_are_followed_from_its_first_child_on(world: World) {
    let [parent] = tasks(&world, ["parent"]).await;
    let runs = world.write(&parent, (0..5).map(|i| world.now + i * 1_000)).await;
    world.store.claim(NodeId(1), vec![runs[1].clone()], world.now).await.unwrap();
    let dispatched = world.dispatched(1, runs[2..4].to_vec(), 7).await;
    world.store.succeed(world.owner, &[&crate::fixture::success(&dispatched[0], 1)]).await.unwrap();
    world.moved(&dispatched[1], Status::Retry, Reason::HandlerFailed).await;
    assert!(world.admin.watched(parent.id).await.is_empty(), "no child waits for them");

    let first = world.started(&child("first", &["parent"])).await;
    let open: Vec<LogId> = [0, 1, 3, 4].map(|at: usize| runs[at].id).into();
    assert_eq!(world.admin.watched(parent.id).await, open, "whatever has not ended");
    world.started(&child("second", &["parent"])).await;
    assert_eq!(world.admin.watched(parent.id).await, open, "each once");
    assert!(world.admin.watched(first.id).await.is_empty());

    // From now on a plan knows; what it takes over or finds written is followed, too.
    let known = Plan { outbox: true, ..world.plan(&parent, [world.now + 4_000, world.now + 5_000]) };
    for _ in 0..2 {
        world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&known), world.now).await.unwrap();
    }
    let expected: Vec<LogId> = open.iter().copied().chain([known.fires[1].id]).collect();
    assert_eq!(world.admin.watched(parent.id).await, expected);
}

async fn runs_started_manually_are_followed_where_their_end_counts(world: World) {
    let counts = TaskSpec { pause_after_failures: 3, ..World::every_second("counts") };
    let [plain, parent] = tasks(&world, ["plain", "parent"]).await;
    let counts = world.started(&counts).await;
    world.started(&child("child", &["parent"])).await;
    for (task, is_followed) in [(&plain, false), (&parent, true), (&counts, true)] {
        let run = NewRun::manual(world.id(), world.now);
        world.admin.start_run(task, &run).await.unwrap();
        let expected = if is_followed { vec![run.id] } else { Vec::new() };
        assert_eq!(world.admin.watched(task.id).await, expected, "{}", task.spec.name);
    }
}

/// It was made before the child came: its runs would not be followed.
async fn a_plan_that_does_not_know_of_children_writes_nothing(world: World) {
    let [parent] = tasks(&world, ["parent"]).await;
    let old = world.plan(&parent, [world.now]);
    world.started(&child("child", &["parent"])).await;
    assert_eq!(
        world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&old), world.now).await.unwrap(),
        Some([].into())
    );
    assert!(world.rows(parent.id).await.is_empty());
    let known = Plan { outbox: true, ..old };
    world.store.write_ahead(Writer::Node(NodeId(1)), std::slice::from_ref(&known), world.now).await.unwrap();
    assert_eq!(world.admin.watched(parent.id).await, [known.fires[0].id]);
}
