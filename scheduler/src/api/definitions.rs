//! Changing definitions: store, take back what executors hold of the old one, write the new one's
//! logs, in this order. Answers only when nothing of the old definition can start any more, save
//! what the answer names.

use super::Api;
use super::problem::Problem;
use crate::dispatch::TookBack;
use crate::domain::{FieldError, Reason, Status};
use crate::store::{Activity, NewTask, OutcomeStore, TaskChange, TaskFilter, TaskView, Unsent};

/// What an edit, a stop or a delete could not take back.
#[derive(Debug, Default)]
pub struct Left {
    /// Runs that go on.
    pub running: Vec<String>,
    /// Runs whose executor could not be asked; they may still start.
    pub unreachable: Vec<String>,
    /// Fire time of the earliest run that was dropped.
    first_dropped: Option<i64>,
}

/// The change from `before` to another definition or state.
pub fn change_of(before: TaskView, spec: crate::domain::task::TaskSpec, activity: Activity) -> TaskChange {
    let reason = match (&activity, before.activity.started) {
        (Activity { started: false, pause_note: Some(_) }, _) => Reason::TaskPaused,
        (Activity { started: false, .. }, true) => Reason::TaskStopped,
        _ => Reason::TaskEdited,
    };
    TaskChange { before, spec, activity, reason }
}

/// Creates and changes tasks, all or none. Answers what could not be taken back of each changed
/// one, in their order.
pub async fn apply(api: &Api, new: &[NewTask], changes: &[TaskChange]) -> Result<Vec<Left>, Problem> {
    let specs = new.iter().map(|task| &task.spec).chain(changes.iter().map(|change| &change.spec));
    let refused: Vec<FieldError> = specs.flat_map(crate::domain::task::TaskSpec::check).collect();
    if !refused.is_empty() {
        return Err(Problem::fields(refused));
    }
    let now = api.engine.clock.now_ms();
    let held = api.store.apply_tasks(new, changes, now).await?;
    let mut left = Vec::with_capacity(changes.len());
    for (change, held) in changes.iter().zip(held) {
        left.push(follow(api, change, held, now).await?);
    }
    for task in new.iter().filter(|task| task.activity.started) {
        api.engine.pregenerator.write_task(task.id).await?;
    }
    api.poke.notify_one();
    Ok(left)
}

async fn follow(api: &Api, change: &TaskChange, held: Unsent, now: i64) -> Result<Left, Problem> {
    let TaskChange { before, spec, activity, reason } = change;
    let left = take_back(api, held, *reason).await?;
    if spec.routing != before.spec.routing {
        let from = left.first_dropped.map_or(now, |fire_time| fire_time.min(now));
        api.store.clear_cancelled(before.id, from).await?;
    }
    if let Some(from) = left.first_dropped.filter(|_| activity.started) {
        // Never into the past: a retry that was dropped belonged to a fire that has been.
        api.store.rewind(before.id, before.revision + 1, from.max(now), now).await?;
    }
    if activity.started {
        api.engine.pregenerator.write_task(before.id).await?;
    }
    Ok(left)
}

/// Asks executors for what they hold unstarted.
pub async fn take_back(api: &Api, held: Unsent, reason: Reason) -> Result<Left, Problem> {
    if held.is_empty() {
        return Ok(Left::default());
    }
    let ids: Vec<i64> = held.iter().map(|handed| handed.run.id).collect();
    let took = api.engine.canceller.take_back(held.clone(), reason, false).await?;
    // What moved on between the transaction and the question (another attempt at another
    // executor) is asked once more where it is now.
    let asked = |id: &i64| took.dropped.contains(id) || took.running.contains(id) || took.unreachable.contains(id);
    let moved: Vec<i64> = ids.iter().filter(|id| !asked(id)).copied().collect();
    let again = api.store.runs(None, &moved).await?;
    let is_open = |handed: &crate::store::HandedRun| handed.run.status == Status::Dispatched && !handed.run.is_parent();
    let again: Unsent = again.into_iter().filter(is_open).collect();
    let second = if again.is_empty() {
        TookBack::default()
    } else {
        api.engine.canceller.take_back(again, reason, false).await?
    };
    let text = |ids: &[i64], more: &[i64]| ids.iter().chain(more).map(ToString::to_string).collect();
    let dropped = |id: &i64| took.dropped.contains(id) || second.dropped.contains(id);
    Ok(Left {
        running: text(&took.running, &second.running),
        unreachable: text(&took.unreachable, &second.unreachable),
        // A retry's fire has been, and a run that no schedule names has no instant: neither is
        // owed another run.
        first_dropped: held
            .iter()
            .filter(|h| dropped(&h.run.id) && h.run.attempt <= 1 && h.run.failures == 0 && h.run.origin.is_scheduled())
            .map(|h| h.run.fire_time)
            .min(),
    })
}

/// The task of that id.
pub async fn find(api: &Api, id: i64) -> Result<TaskView, Problem> {
    let filter = TaskFilter { id: Some(id), limit: 1, ..TaskFilter::default() };
    let found = api.store.list_tasks(&filter).await?;
    found.into_iter().next().ok_or_else(|| Problem::not_found(format!("there is no task {id}")))
}
