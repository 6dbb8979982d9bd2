//! Statistics: logs counted by minute and task, minutes added up to hours.

use super::ModelStore;
use super::rows::{LogRow, State};
use async_trait::async_trait;
use carillon::domain::statistics::{ALL_TENANTS, Figures, Grain, HOUR_MS, MINUTE_MS};
use carillon::domain::{LogId, Status, TaskId};
use carillon::store::{Counted, Counting, Fence, Part, Result, StatisticsStore};
use std::collections::BTreeMap;

/// Minutes put on the list at a time at most; the rest follows.
const LIST_MAX: usize = 1_000;

/// As the databases have them: when minutes of the past, and hours, are counted, ms.
const PAST_RUNS_MS: i64 = 30_000;
const HOUR_SETTLES_MS: i64 = 2 * MINUTE_MS;
const HOUR_GATHERS_MS: i64 = 5 * MINUTE_MS;

/// What is to be counted.
#[derive(Debug, Clone)]
pub(super) struct CountingRow {
    marks: i64,
    is_full: bool,
    due_at: i64,
    tries: i32,
}

/// Figures of a period.
#[derive(Debug, Clone)]
pub struct FiguresRow {
    /// Tenant of the task, or the tenant itself; 0 for all.
    pub tenant_id: i64,
    /// They.
    pub figures: Figures,
}

#[async_trait]
impl StatisticsStore for ModelStore {
    async fn list_minutes(&self, fence: Fence, since: i64, until: i64) -> Result<bool> {
        let until = minute_of(until);
        self.fenced("list minutes to count", fence, move |state| {
            let listed = state.listed_until.max(since);
            if listed >= until {
                return;
            }
            let fires = state.logs.values().map(|row| row.run.fire_time).filter(|at| *at >= listed);
            let from = minute_of(fires.min().unwrap_or(until).min(until));
            let minutes: Vec<i64> = (from..until).step_by(MINUTE_MS as usize).take(LIST_MAX).collect();
            state.listed_until = minutes.last().map_or(until, |last| last + MINUTE_MS);
            for minute in minutes {
                state.count_again(minute, 0);
            }
        })
        .await
    }

    async fn to_count(&self, now: i64, limit: u64) -> Result<Vec<Counting>> {
        self.call("read what is to be counted", |state, _| {
            let due = state.to_count.iter().filter(|(_, row)| row.due_at <= now).map(|((grain, start), row)| {
                let CountingRow { marks, is_full, tries, .. } = *row;
                Counting { grain: *grain, start: *start, marks, is_full, tries }
            });
            Ok(due.take(limit as usize).collect())
        })
        .await
    }

    async fn tasks_fired(&self, minute: i64) -> Result<Vec<(TaskId, u64)>> {
        self.call("read tasks that fired", |state, _| {
            let mut found: BTreeMap<TaskId, u64> = BTreeMap::new();
            for row in state.logs.values().filter(|row| minute_of(row.run.fire_time) == minute) {
                *found.entry(row.run.task_id).or_default() += 1;
            }
            Ok(found.into_iter().collect())
        })
        .await
    }

    async fn tasks_open(&self, minute: i64) -> Result<Vec<(TaskId, u64)>> {
        self.call("read tasks with open runs", |state, _| {
            let rows = state.figures_at(Grain::TaskMinute, minute..minute + 1);
            let open = rows.filter(|(_, row)| row.figures.open > 0);
            Ok(open.map(|(subject, row)| (TaskId(subject), row.figures.fires)).collect())
        })
        .await
    }

    async fn open_runs(&self, minute: i64) -> Result<u64> {
        self.call("read open runs", |state, _| {
            let rows = state.figures_at(Grain::TaskMinute, minute..minute + 1);
            Ok(rows.map(|(_, row)| row.figures.open).sum())
        })
        .await
    }

    async fn count_tasks(&self, fence: Fence, minute: i64, tasks: &[TaskId]) -> Result<bool> {
        let tasks = tasks.to_vec();
        self.fenced("count statistics", fence, move |state| {
            for task in tasks {
                let fired = |row: &&LogRow| {
                    let run = &row.run;
                    run.task_id == task && minute_of(run.fire_time) == minute && run.parent_id == LogId::NONE
                };
                let rows: Vec<&LogRow> = state.logs.values().filter(fired).collect();
                let Some(tenant_id) = rows.first().map(|row| row.run.tenant_id.0) else { continue };
                let mut figures = Figures::default();
                for row in rows {
                    count(&mut figures, row);
                }
                state.write_figures(Grain::TaskMinute, minute, task.0, FiguresRow { tenant_id, figures });
            }
        })
        .await
    }

    async fn sum_minute(&self, fence: Fence, minute: i64) -> Result<bool> {
        self.fenced("count statistics", fence, move |state| {
            let span = minute..minute + 1;
            state.sum(Grain::TaskMinute, span.clone(), Grain::TenantMinute, minute, |_, row| Some(row.tenant_id));
            state.sum(Grain::TenantMinute, span, Grain::TenantMinute, minute, |subject, _| {
                (subject != ALL_TENANTS).then_some(ALL_TENANTS)
            });
        })
        .await
    }

    async fn rows_of_hour(&self, hour: i64) -> Result<u64> {
        self.call("read rows of an hour", |state, _| {
            Ok(state.figures_at(Grain::TaskMinute, hour..hour + HOUR_MS).count() as u64)
        })
        .await
    }

    async fn sum_task_hours(&self, fence: Fence, hour: i64, part: Part) -> Result<bool> {
        self.fenced("count statistics", fence, move |state| {
            let in_part = |subject: i64, _: &FiguresRow| (subject % part.of == part.index).then_some(subject);
            state.sum(Grain::TaskMinute, hour..hour + HOUR_MS, Grain::TaskHour, hour, in_part);
        })
        .await
    }

    async fn sum_tenant_hours(&self, fence: Fence, hour: i64) -> Result<bool> {
        self.fenced("count statistics", fence, move |state| {
            let same = |subject: i64, _: &FiguresRow| Some(subject);
            state.sum(Grain::TenantMinute, hour..hour + HOUR_MS, Grain::TenantHour, hour, same);
        })
        .await
    }

    async fn counted(&self, fence: Fence, of: &Counting, found: Counted, now: i64) -> Result<bool> {
        let of = of.clone();
        self.fenced("count statistics", fence, move |state| {
            let key = (of.grain, of.start);
            if state.to_count.get(&key).is_some_and(|row| row.marks == of.marks) {
                match found.again_at {
                    None => drop(state.to_count.remove(&key)),
                    Some(due_at) => {
                        let tries = state.to_count[&key].tries + 1;
                        state.to_count.insert(key, CountingRow { marks: of.marks, is_full: false, due_at, tries });
                    }
                }
            }
            if found.is_change && of.grain == Grain::TaskMinute {
                let hour = of.start - of.start.rem_euclid(HOUR_MS);
                let due_at = (hour + HOUR_MS + HOUR_SETTLES_MS).max(now + HOUR_GATHERS_MS);
                let fresh = CountingRow { marks: 0, is_full: true, due_at, tries: 0 };
                state.to_count.entry((Grain::TaskHour, hour)).or_insert(fresh).marks += 1;
            }
        })
        .await
    }

    async fn purge_figures(&self, grain: Grain, before: i64, limit: u64) -> Result<bool> {
        self.call("delete old statistics", |state, _| {
            let old = state.figures.range((grain, i64::MIN, i64::MIN)..(grain, before, i64::MIN));
            let old: Vec<_> = old.map(|(key, _)| *key).take(limit as usize).collect();
            for key in &old {
                state.figures.remove(key);
            }
            Ok(old.len() as u64 == limit)
        })
        .await
    }
}

impl ModelStore {
    /// A transaction under the lease.
    async fn fenced(&self, action: &'static str, fence: Fence, work: impl FnOnce(&mut State) + Send) -> Result<bool> {
        self.call(action, |state, now| {
            let holds = state.renew(fence, now);
            if holds {
                work(state);
            }
            Ok(holds)
        })
        .await
    }
}

impl State {
    /// Part of a transaction that writes or revives runs for instants: those before `now` (ms) may
    /// lie in minutes that are counted, which are then counted again.
    pub(super) fn note_past_runs(&mut self, fire_times: &[i64], now: i64) {
        let mut minutes: Vec<i64> = fire_times.iter().filter(|at| **at < now).map(|at| minute_of(*at)).collect();
        minutes.sort_unstable();
        minutes.dedup();
        for minute in minutes {
            self.count_again(minute, now + PAST_RUNS_MS);
        }
    }

    fn count_again(&mut self, minute: i64, due_at: i64) {
        let fresh = CountingRow { marks: 0, is_full: true, due_at, tries: 0 };
        let row = self.to_count.entry((Grain::TaskMinute, minute)).or_insert(fresh);
        *row = CountingRow { marks: row.marks + 1, is_full: true, due_at, tries: 0 };
    }

    fn figures_at(&self, grain: Grain, starts: std::ops::Range<i64>) -> impl Iterator<Item = (i64, &FiguresRow)> {
        let range = (grain, starts.start, i64::MIN)..(grain, starts.end, i64::MIN);
        self.figures.range(range).map(|((.., subject), row)| (*subject, row))
    }

    /// Adds the figures of these periods up to one, for the subject that `into` says.
    fn sum(
        &mut self,
        from: Grain,
        starts: std::ops::Range<i64>,
        grain: Grain,
        start: i64,
        into: impl Fn(i64, &FiguresRow) -> Option<i64>,
    ) {
        let mut sums: BTreeMap<i64, FiguresRow> = BTreeMap::new();
        for (subject, row) in self.figures_at(from, starts) {
            let Some(sum_of) = into(subject, row) else { continue };
            let is_tenant = matches!(grain, Grain::TenantMinute | Grain::TenantHour);
            let tenant_id = if is_tenant { sum_of } else { row.tenant_id };
            let sum = sums.entry(sum_of).or_insert(FiguresRow { tenant_id, figures: Figures::default() });
            sum.figures.merge(&row.figures);
        }
        for (subject, row) in sums {
            self.write_figures(grain, start, subject, row);
        }
    }

    /// Over an earlier row of no more fires.
    fn write_figures(&mut self, grain: Grain, start: i64, subject: i64, row: FiguresRow) {
        let key = (grain, start, subject);
        if self.figures.get(&key).is_none_or(|earlier| earlier.figures.fires <= row.figures.fires) {
            self.figures.insert(key, row);
        }
    }
}

fn minute_of(at: i64) -> i64 {
    at - at.rem_euclid(MINUTE_MS)
}

fn count(figures: &mut Figures, row: &LogRow) {
    figures.fires += 1;
    figures.failures += u64::try_from(row.run.failures).unwrap_or(0);
    let counter = match row.run.status {
        Status::Succeeded => &mut figures.succeeded,
        Status::Failed => &mut figures.failed,
        Status::Discarded => &mut figures.discarded,
        Status::Expired => &mut figures.expired,
        Status::Cancelled => &mut figures.cancelled,
        _ => &mut figures.open,
    };
    *counter += 1;
    if row.started_at != 0 {
        figures.lateness.record(row.started_at - row.run.due_time);
        if row.finished_at != 0 {
            figures.duration.record(row.finished_at - row.started_at);
        }
    }
}
