//! Stopping a run of a plain executor. Clients know tasks, not runs: they kill whichever run of the task goes on there. A node says
//! so only while that is the run that is meant, and not once more when another may have taken its place: some clients take a killed
//! run off their list at once, and begin the next one while the handler of the first goes on.

use super::standin::{ANSWER_BYTES_MAX, StandIn, place_of};
use super::stops::Told;
use crate::dispatch::SendError;
use crate::domain::xxljob::said::{self, Kill};
use crate::domain::xxljob::wire::{JobBody, KILL_PATH, bytes};
use crate::domain::{Executor, LogId, Status};
use crate::store::{BATCH_MAX, DispatchedRun, FROM_THE_FIRST, StoreError, Suspects};
use carillon_protocol::{CancelOutcome, RunKey};

/// Whether a kill may go out, where others of the task that are open there came at these instants.
fn is_meant(told: Option<Told>, again: bool, others: &[i64]) -> bool {
    match told {
        Some(Told::NotYet) => true,
        Some(Told::At(at)) => others.iter().all(|came| *came < at),
        // Another node may have told it, and what came since would be stopped instead.
        None => !again || others.is_empty(),
    }
}

/// When it was to be there, cluster ms.
fn came_at(row: &DispatchedRun) -> i64 {
    row.dispatched_at.max(row.run.due_time)
}

fn unread(error: &StoreError) -> SendError {
    SendError::NotDelivered(error.to_string())
}

impl StandIn {
    /// Has the task of this run killed there, if it is the one that goes on. `again` when it may have been told before.
    pub(super) async fn kill(&self, to: &Executor, key: RunKey, again: bool) -> Result<CancelOutcome, SendError> {
        let log = LogId(key.0);
        // Before the rows are read: what they do not show yet comes since.
        let at = self.now_ms();
        let of_task = self.open_of_task(to, log).await?;
        let Some(run) = of_task.iter().find(|row| row.run.id == log) else { return Ok(CancelOutcome::Ended) };
        let head = of_task.iter().min_by_key(|row| (came_at(row), row.run.id));
        if head.is_none_or(|head| head.run.id != log) {
            if !again {
                self.stops.note(key, Told::NotYet);
            }
            return Ok(CancelOutcome::Stopping);
        }
        let others: Vec<i64> = of_task.iter().filter(|row| row.run.id != log).map(came_at).collect();
        let told = self.stops.told(key);
        if !is_meant(told, again, &others) {
            return Ok(CancelOutcome::Stopping);
        }
        let job_id = self.parts.numbers.of_task(to.owner(), run.run.task_id).await.map_err(|error| unread(&error))?;
        let reply = self.call(place_of(to), KILL_PATH, bytes(&JobBody { job_id }), ANSWER_BYTES_MAX).await;
        // Some clients answer only once the run has ended. The first time counts: a repetition that crosses the next run must not make that
        // one seem to have come before.
        if !matches!(reply, Err(SendError::NotDelivered(_))) && !matches!(told, Some(Told::At(_))) {
            self.stops.note(key, Told::At(at));
        }
        // What it has ended by then, its callback tells.
        Ok(if said::kill(&reply?) == Kill::Nothing { CancelOutcome::Ended } else { CancelOutcome::Stopping })
    }

    /// The open runs there of the task of `log`, itself among them if it is open there.
    async fn open_of_task(&self, to: &Executor, log: LogId) -> Result<Vec<DispatchedRun>, SendError> {
        let mut open = self.open_runs(to, log).await?;
        let task = open.iter().find(|row| row.run.id == log).map(|row| row.run.task_id);
        open.retain(|row| Some(row.run.task_id) == task);
        Ok(open)
    }

    /// The runs that are open there, the earliest of them if they are many, and `log`.
    pub(super) async fn open_runs(&self, to: &Executor, log: LogId) -> Result<Vec<DispatchedRun>, SendError> {
        let which = Suspects {
            executors: vec![to.id],
            except: Vec::new(),
            due_before: i64::MAX,
            or_not_by: Vec::new(),
            until: i64::MAX,
            after: FROM_THE_FIRST,
            limit: BATCH_MAX as u64 - 1,
        };
        let open = self.parts.rows.suspects(&which).await.map_err(|error| unread(&error))?;
        let mut ids: Vec<LogId> = open.iter().map(|one| one.log).filter(|id| *id != log).collect();
        ids.push(log);
        let mut rows = self.parts.rows.runs(Some(to.owner()), &ids).await.map_err(|error| unread(&error))?;
        rows.retain(|row| row.run.status == Status::Dispatched && row.run.executor_id == to.id);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_reaches_no_other_run() {
        for (what, told, again, others, is) in [
            ("alone", None, false, &[][..], true),
            ("others wait behind it", None, false, &[50, 60], true),
            ("others wait behind it, which was not the first before", Some(Told::NotYet), true, &[50, 60], true),
            ("told, and nothing came since", Some(Told::At(100)), true, &[50], true),
            ("told, and one came since", Some(Told::At(100)), true, &[50, 100], false),
            ("perhaps told by another node", None, true, &[50], false),
            ("perhaps told by another node, and alone", None, true, &[], true),
        ] {
            assert_eq!(is_meant(told, again, others), is, "{what}");
        }
    }
}
