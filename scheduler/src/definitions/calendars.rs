//! Tasks follow their calendars: each is redefined once, in a transaction of its own kind, which notes the version that it is
//! planned by. Whoever does it, and however often: the one who changed the calendar at once, and the node that writes ahead
//! for one who did not come to the end.

use super::{NotRevoked, TaskDefinitions, change_of};
use crate::domain::TaskId;
use crate::store::{CalendarChange, DefinitionStore, Result, Store, StoreError, StoreErrorKind, TaskChange, TaskView};
use std::sync::atomic::Ordering;
use std::time::Duration;

const ACTION: &str = "follow a calendar";

/// Tasks redefined in one transaction.
const TASKS_AT_ONCE: u64 = 100;

/// How long others let the one who changed a calendar go on by itself, ms.
const LEFT_ALONE_MS: i64 = 10_000;

/// Changes that are looked at at once.
const CHANGES_MAX: u64 = 100;

/// Transactions in one round at most; the next goes on. A node that stops waits for it.
const ROUND_MAX: usize = 20;

/// How often tasks are read again that others change meanwhile, …
const TRIES_MAX: u32 = 20;
/// … and how much longer each time one waits before that.
const TRY_PAUSE: Duration = Duration::from_millis(5);

/// How a calendar was followed.
#[derive(Debug, Default)]
pub struct FollowedCalendar {
    /// Started tasks that were redefined.
    pub tasks: usize,
    /// What could not be revoked of their runs.
    pub not_revoked: NotRevoked,
}

impl<S: Store + DefinitionStore + 'static> TaskDefinitions<S> {
    /// Has every started task that names the calendar follow its present version: revokes the runs that were written ahead
    /// for an earlier one, and writes those of this one.
    ///
    /// # Errors
    /// Of the store. What is left then follows by [`follow_calendars`](Self::follow_calendars) of some node.
    pub async fn follow_calendar(&self, change: &CalendarChange) -> Result<FollowedCalendar> {
        let mut unbounded = usize::MAX;
        self.follow(change, &mut unbounded).await
    }

    /// Goes on with changes of calendars whose callers seem to have gone away.
    pub async fn follow_calendars(&self) -> Result<()> {
        let mut changes = self.store.calendar_changes(CHANGES_MAX).await?;
        if changes.is_empty() {
            return Ok(());
        }
        // In turn: those that no node of this release can bring to an end hold up no other.
        let came_to = self.came_to.load(Ordering::Relaxed);
        let next = changes.iter().position(|change| change.id.0 == came_to).map_or(0, |place| place + 1);
        changes.rotate_left(next);
        self.engine.refresh_clock().await?;
        let now = self.engine.clock.now_ms();
        let (mut transactions, mut failed) = (ROUND_MAX, Ok(()));
        // The clock may have been set back since.
        for change in changes.iter().filter(|change| (now - change.since).abs() >= LEFT_ALONE_MS) {
            if transactions == 0 {
                break;
            }
            self.came_to.store(change.id.0, Ordering::Relaxed);
            match self.follow(change, &mut transactions).await {
                Ok(FollowedCalendar { tasks: 0, .. }) => {}
                Ok(FollowedCalendar { tasks, .. }) => tracing::info!(
                    calendar = change.id.0,
                    tasks,
                    "tasks follow a change of their calendar that was left half-way"
                ),
                // One whose tasks keep changing holds up no other.
                Err(error) if error.kind() == StoreErrorKind::Contention => failed = Err(error),
                Err(error) => return Err(error),
            }
        }
        failed
    }

    /// In so many transactions at most.
    async fn follow(&self, change: &CalendarChange, transactions: &mut usize) -> Result<FollowedCalendar> {
        let mut followed = FollowedCalendar::default();
        let (mut after, mut at_once, mut tries) = (TaskId::NONE, TASKS_AT_ONCE, 0);
        loop {
            if *transactions == 0 {
                return Ok(followed);
            }
            *transactions -= 1;
            let tasks = self.store.tasks_behind(change.id, after, at_once).await?;
            let Some(last) = tasks.last().map(|task| task.id) else { break };
            let same = |task: TaskView| {
                let (spec, activity) = (task.spec.clone(), task.activity.clone());
                change_of(task, spec, activity)
            };
            let changes: Vec<TaskChange> = tasks.into_iter().map(same).collect();
            match self.apply(&[], &changes).await {
                Ok(not_revoked) => {
                    followed.add(&changes, not_revoked);
                    (after, tries) = (last, 0);
                }
                // One of them was changed, or has followed, meanwhile.
                Err(error) if error.kind() == StoreErrorKind::Conflict && tries < TRIES_MAX => {
                    tries += 1;
                    tokio::time::sleep(TRY_PAUSE * tries).await;
                }
                Err(error) if error.kind() == StoreErrorKind::Conflict => {
                    let detail = format!("its tasks keep changing, the rest follows later: {error}");
                    return Err(StoreError::new(StoreErrorKind::Contention, ACTION, detail));
                }
                Err(error) if error.is_temporary() => return Err(error),
                // One that cannot be planned must not keep the others from it.
                Err(_) if at_once > 1 => at_once = 1,
                Err(error) => {
                    tracing::error!(task = last.0, %error, "a task cannot follow its calendar");
                    (after, at_once) = (last, TASKS_AT_ONCE);
                }
            }
        }
        self.store.end_calendar_change(change).await?;
        Ok(followed)
    }
}

impl FollowedCalendar {
    fn add(&mut self, changes: &[TaskChange], not_revoked: Vec<NotRevoked>) {
        self.tasks += changes.len();
        for NotRevoked { running, unreachable } in not_revoked {
            self.not_revoked.running.extend(running);
            self.not_revoked.unreachable.extend(unreachable);
        }
    }
}
