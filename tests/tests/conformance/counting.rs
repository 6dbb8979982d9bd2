//! Statistics, statement by statement: what is to be counted, and what a count says. (`statistics.rs` holds whole charts of the
//! databases against their rows.)

use crate::fixture::{World, success};
use carillon::domain::statistics::{Figures, Grain, HOUR_MS, MINUTE_MS};
use carillon::domain::{NodeId, Reason, Run, Status, TaskId};
use carillon::store::{Counted, Counting, Fence, LeaseName, Part, TaskView};

cases!(
    a_count_says_what_the_logs_say,
    only_minutes_with_fires_are_listed_each_once,
    a_minute_with_news_is_counted_again,
    hours_add_up_in_parts,
    without_the_lease_nothing_is_written,
    old_figures_go_so_many_at_a_time,
);

async fn fence(world: &World) -> Fence {
    world.store.take_lease(LeaseName::Statistics, NodeId(1), None, MINUTE_MS).await.unwrap().unwrap()
}

/// The start of an hour some hours ago, ms.
fn hour(world: &World) -> i64 {
    world.now - world.now % HOUR_MS - 5 * HOUR_MS
}

/// A task that has fired every second for so long, from then on.
async fn fired(world: &World, name: &str, from: i64, seconds: i64) -> (TaskView, Vec<Run>) {
    let task = world.started(&World::every_second(name)).await;
    let runs = world.write(&task, (0..seconds).map(|at| from + at * 1_000)).await;
    (task, runs)
}

async fn count(world: &World, fence: Fence, minute: i64, tasks: &[TaskId]) {
    assert!(world.store.count_tasks(fence, minute, tasks).await.unwrap());
    assert!(world.store.sum_minute(fence, minute).await.unwrap());
}

async fn figures(world: &World, task: Option<TaskId>, from: i64) -> Vec<(i64, Figures)> {
    world.admin.figures(world.owner.tenant_id, task, from, from + HOUR_MS).await
}

/// Fires, successes, cancelled ones and open ones.
fn told(figures: &Figures) -> [u64; 4] {
    [figures.fires, figures.succeeded, figures.cancelled, figures.open]
}

/// A run of the past comes to a good end.
async fn succeeds(world: &World, run: &Run) {
    let run = world.dispatched(1, vec![run.clone()], 7).await.remove(0);
    let result = success(&run, run.attempt);
    assert_eq!(world.store.succeed(world.owner, &[&result]).await.unwrap(), 1);
}

async fn a_count_says_what_the_logs_say(world: World) {
    let minute = hour(&world);
    let (task, runs) = fired(&world, "counted", minute, 5).await;
    let (other, _) = fired(&world, "other", minute + 59_000, 2).await;
    succeeds(&world, &runs[0]).await;
    world.moved(&runs[1], Status::Cancelled, Reason::CancelledManually).await;
    let fence = fence(&world).await;
    let mut found = world.store.tasks_fired(minute).await.unwrap();
    found.retain(|(id, _)| [task.id, other.id].contains(id));
    assert_eq!(found, [(task.id, 5), (other.id, 1)], "one fire of the other is of the next minute");
    count(&world, fence, minute, &[task.id, other.id]).await;
    let [(start, of_task)] = figures(&world, Some(task.id), minute).await[..] else { panic!("one minute") };
    assert_eq!((start, told(&of_task)), (minute, [5, 1, 1, 3]));
    assert_eq!((of_task.lateness.count(), of_task.duration.count()), (1, 1));
    let of_tenant = figures(&world, None, minute).await;
    assert_eq!(of_tenant.iter().map(|(_, figures)| told(figures)).collect::<Vec<_>>(), [[6, 1, 1, 4]]);
    assert_eq!(world.store.open_runs(minute).await.unwrap(), 4);
    assert_eq!(world.store.tasks_open(minute).await.unwrap(), [(task.id, 5), (other.id, 1)]);
    // What has gone since takes nothing away.
    world.moved(&runs[2], Status::Cancelled, Reason::CancelledManually).await;
    count(&world, fence, minute, &[task.id]).await;
    let again = figures(&world, Some(task.id), minute).await;
    assert_eq!(told(&again[0].1), [5, 1, 2, 2]);
}

async fn only_minutes_with_fires_are_listed_each_once(world: World) {
    let minute = hour(&world);
    fired(&world, "counted", minute + 3 * MINUTE_MS, 61).await;
    let fence = fence(&world).await;
    let since = minute - HOUR_MS;
    assert!(world.store.list_minutes(fence, since, minute + 5 * MINUTE_MS).await.unwrap());
    // They were written after the fact, and so were marked before.
    let marked = world.store.to_count(world.now, 100).await.unwrap();
    let starts: Vec<i64> = marked.iter().map(|of| (of.start - minute) / MINUTE_MS).collect();
    assert_eq!(starts, [3, 4]);
    assert!(marked.iter().all(|of| of.grain == Grain::TaskMinute && of.is_full && of.tries == 0));
    assert!(world.store.list_minutes(fence, since, minute + 5 * MINUTE_MS).await.unwrap());
    assert_eq!(world.store.to_count(world.now, 100).await.unwrap(), marked, "listed once");
    assert_eq!(world.store.to_count(world.now, 1).await.unwrap(), marked[..1]);
}

async fn a_minute_with_news_is_counted_again(world: World) {
    let minute = hour(&world);
    let (task, _) = fired(&world, "counted", minute, 3).await;
    let fence = fence(&world).await;
    assert!(world.store.list_minutes(fence, minute, minute + MINUTE_MS).await.unwrap());
    let due = async |at: i64| world.store.to_count(at, 100).await.unwrap();
    let of: Counting = due(world.now).await.remove(0);
    let later = Counted { again_at: Some(world.now + 40_000), is_change: true };
    assert!(world.store.counted(fence, &of, later, world.now).await.unwrap());
    assert!(due(world.now + 39_999).await.is_empty());
    let again = due(world.now + 40_000).await;
    assert_eq!(again, [Counting { is_full: false, tries: 1, ..of.clone() }]);
    // A run is written for a past fire while it is counted: who has counted is not done.
    world.write(&world.task(task.id).await, [minute + 30_000]).await;
    let done = Counted { again_at: None, is_change: false };
    assert!(world.store.counted(fence, &again[0], done, world.now).await.unwrap());
    let fresh = due(world.now + MINUTE_MS).await;
    assert_eq!(fresh, [Counting { marks: of.marks + 1, ..of.clone() }]);
    assert!(world.store.counted(fence, &fresh[0], done, world.now).await.unwrap());
    assert!(due(world.now + MINUTE_MS).await.is_empty());
    // And the hour of what changed is added up.
    let hours = due(world.now + HOUR_MS).await;
    assert_eq!(hours.iter().map(|of| (of.grain, of.start)).collect::<Vec<_>>(), [(Grain::TaskHour, minute)]);
}

async fn hours_add_up_in_parts(world: World) {
    let start = hour(&world);
    let (one, _) = fired(&world, "one", start, 90).await;
    let (two, _) = fired(&world, "two", start, 30).await;
    let fence = fence(&world).await;
    for minute in [start, start + MINUTE_MS] {
        count(&world, fence, minute, &[one.id, two.id]).await;
    }
    assert_eq!(world.store.rows_of_hour(start).await.unwrap(), 3);
    assert_eq!(world.store.rows_of_hour(start - HOUR_MS).await.unwrap(), 0);
    for index in 0..3 {
        assert!(world.store.sum_task_hours(fence, start, Part { index, of: 3 }).await.unwrap());
    }
    assert!(world.store.sum_tenant_hours(fence, start).await.unwrap());
    // Minutes and hours of tasks, minutes and hours of the tenant and of all.
    for (grain, rows) in
        [(Grain::TaskMinute, 3), (Grain::TaskHour, 2), (Grain::TenantMinute, 4), (Grain::TenantHour, 2)]
    {
        let mut deleted = 0;
        while world.store.purge_figures(grain, start + HOUR_MS, 1).await.unwrap() {
            deleted += 1;
        }
        assert_eq!(deleted, rows, "{grain:?}");
    }
}

async fn without_the_lease_nothing_is_written(world: World) {
    let minute = hour(&world);
    let (task, _) = fired(&world, "counted", minute, 3).await;
    let held = fence(&world).await;
    assert!(world.store.list_minutes(held, minute, minute + MINUTE_MS).await.unwrap());
    let of = world.store.to_count(world.now, 1).await.unwrap().remove(0);
    let lost = Fence { number: held.number - 1, ..held };
    let done = Counted { again_at: None, is_change: true };
    assert!(!world.store.list_minutes(lost, minute, minute + HOUR_MS).await.unwrap());
    assert!(!world.store.count_tasks(lost, minute, &[task.id]).await.unwrap());
    assert!(!world.store.sum_minute(lost, minute).await.unwrap());
    assert!(!world.store.sum_task_hours(lost, minute, Part { index: 0, of: 1 }).await.unwrap());
    assert!(!world.store.sum_tenant_hours(lost, minute).await.unwrap());
    assert!(!world.store.counted(lost, &of, done, world.now).await.unwrap());
    assert_eq!(world.store.to_count(world.now + 3 * HOUR_MS, 10).await.unwrap(), [of]);
    assert!(figures(&world, Some(task.id), minute).await.is_empty());
}

async fn old_figures_go_so_many_at_a_time(world: World) {
    let start = hour(&world);
    let (task, _) = fired(&world, "counted", start, 240).await;
    let fence = fence(&world).await;
    for minute in 0..4 {
        count(&world, fence, start + minute * MINUTE_MS, &[task.id]).await;
    }
    let purge = async |limit| world.store.purge_figures(Grain::TaskMinute, start + 3 * MINUTE_MS, limit).await.unwrap();
    assert!(purge(2).await);
    assert_eq!(figures(&world, Some(task.id), start).await.len(), 2);
    assert!(!purge(2).await);
    let left = figures(&world, Some(task.id), start).await;
    assert_eq!(left.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [start + 3 * MINUTE_MS]);
}
