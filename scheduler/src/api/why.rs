//! Explains why a task ran around an instant, or did not, and who caused it.

use super::input::{Query, parse_id};
use super::operation::{Operation, get};
use super::problem::Problem;
use super::schedules;
use super::state::Api;
use super::tasks::find;
use crate::auth::Caller;
use crate::domain::audit::AuditEntry;
use crate::domain::quota::Quotas;
use crate::domain::reason::Reason;
use crate::domain::schedule::{Kind, Note, Schedule};
use crate::domain::task::{NEVER, ScheduleKind};
use crate::domain::why::{Finding, FindingCode, FindingParams, moment, previous_fire};
use crate::domain::{
    AccessScope, Action, AppId, FieldError, FieldRefusal, IdSource, LogId, Order, Permission, Status, TenantId, Trigger,
};
use crate::store::{AuditFilter, ExecutorStore as _, LogFilter, LogView, TaskView};
use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// What belongs to an instant: the minute that begins with it, ms.
const MINUTE_MS: i64 = 60_000;

/// Most runs of that minute in the response.
const RUNS_MAX: usize = 5;

/// Most entries of the audit, and windows, that one response reads.
const LOOKED_AT_MAX: u64 = 200;

/// Largest distance between an entry of the audit and what it caused, ms.
const NEAR_MS: i64 = 60_000;

const DAY_MS: i64 = 86_400_000;

/// Actions that change a task's definition, as the audit names them.
const DEFINING: [&str; 3] = [Action::EditTask.as_str(), Action::ReplaceTask.as_str(), Action::ApplyTasks.as_str()];

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    vec![
        get(
            "/tasks/{id}/why",
            "explain_task",
            Permission::TaskLogsRead,
            "Why a task ran around an instant, or did not",
        )
        .says(
            "Examines the minute that begins with the instant: its runs and what caused them or, without runs, what \
                 kept the task from firing. Only callers who may read the tenant's audit learn who did something. \
                 Schedule and calendar are the current ones.",
        )
        .query::<WhyQuery>()
        .answers::<Why>(200, "The findings, most important first")
        .to(why),
    ]
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
struct WhyQuery {
    /// `03:00` (the latest one in the task's zone), `2026-11-22 03:00`, RFC 3339, or epoch ms.
    at: String,
}

/// Findings about a task and an instant.
#[derive(Serialize, ToSchema)]
struct Why {
    /// The task.
    task: String,
    /// The instant, epoch ms.
    at: i64,
    /// Time zone used in the messages: the task's.
    time_zone: String,
    /// The findings, most important first.
    findings: Vec<Finding>,
}

async fn why(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    query: Query<WhyQuery>,
) -> Result<HttpResponse, Problem> {
    let task = find(&api, &caller, Permission::TaskLogsRead, parse_id("id", &id)?).await?;
    let now = api.engine.clock.now_ms();
    let schedule = schedules::schedule_of(&api, &task, now).await?;
    let text = query.0.at;
    let allowed = "03:00, 2026-11-22 03:00, a time of RFC 3339, or epoch ms";
    let at = moment(&text, schedule.zone, now)
        .ok_or_else(|| FieldError::new("at", FieldRefusal::wrong_type(&Value::from(text), allowed)))?;
    let tells_names = caller.access.holds(Permission::AuditRead, task.owner.tenant_id, AppId::NONE);
    let zone = schedule.zone;
    let mut search = Search { api: &api, task: &task, schedule, tells_names, now, findings: Vec::new() };
    let runs = search.runs(at, at.saturating_add(MINUTE_MS), RUNS_MAX + 1).await?;
    if runs.is_empty() {
        search.explain_absence(at).await?;
    }
    for log in runs.iter().take(RUNS_MAX) {
        search.explain_run(log).await?;
    }
    if let Some(next) = runs.get(RUNS_MAX) {
        let next = Some(next.dispatched.run.fire_time);
        search.add(FindingCode::MoreRuns, FindingParams { next, ..FindingParams::default() });
    }
    let answer = Why { task: task.id.to_string(), at, time_zone: zone.name().to_owned(), findings: search.findings };
    Ok(HttpResponse::Ok().json(answer))
}

struct Search<'a> {
    api: &'a Api,
    task: &'a TaskView,
    schedule: Schedule,
    /// Whether the caller may learn who did what.
    tells_names: bool,
    now: i64,
    findings: Vec<Finding>,
}

impl Search<'_> {
    fn add(&mut self, code: FindingCode, params: FindingParams) {
        self.findings.push(Finding::new(code, params, self.schedule.zone));
    }

    fn tenant(&self) -> TenantId {
        self.task.owner.tenant_id
    }

    /// Runs of the task, without shards, the earliest first.
    async fn runs(&self, from: i64, until: i64, most: usize) -> Result<Vec<LogView>, Problem> {
        let filter = LogFilter {
            tenant_id: Some(self.tenant()),
            task_id: Some(self.task.id),
            has_no_shards: true,
            from: Some(from),
            until: Some(until),
            order: Order::Oldest,
            limit: most as u64,
            ..LogFilter::default()
        };
        Ok(self.api.store.list_logs(&AccessScope::tenant(self.tenant()), &filter).await?.logs)
    }

    /// Entries of the audit about a thing of the tenant, the newest first.
    async fn entries(
        &self,
        target: &impl ToString,
        kind: &str,
        from: i64,
        until: i64,
    ) -> Result<Vec<AuditEntry>, Problem> {
        let filter = AuditFilter {
            tenant_id: Some(self.tenant()),
            target_id: Some(target.to_string()),
            target_kind: Some(kind.to_owned()),
            from: Some(from),
            until: Some(until),
            limit: LOOKED_AT_MAX,
            ..AuditFilter::default()
        };
        Ok(self.api.store.search_audit(&AccessScope::tenant(self.tenant()), &filter).await?.entries)
    }

    async fn entries_of_task(&self, from: i64, until: i64) -> Result<Vec<AuditEntry>, Problem> {
        self.entries(&self.task.id, "task", from, until).await
    }

    /// When something was done, and by whom.
    fn done(&self, entry: &AuditEntry) -> FindingParams {
        let who = self.tells_names.then(|| match entry.actor_kind.as_str() {
            "node" => format!("node {} by itself", entry.actor),
            _ => entry.actor.clone(),
        });
        FindingParams { at: Some(entry.at), who, action: Some(entry.action.clone()), ..FindingParams::default() }
    }

    async fn explain_run(&mut self, log: &LogView) -> Result<(), Problem> {
        let dispatched = &log.dispatched;
        let run = &dispatched.run;
        let executor = self.api.store.executor_ends(&[run.executor_id]).await?.pop();
        let executor = executor.filter(|executor| executor.owner.tenant_id == run.tenant_id);
        let params = FindingParams {
            at: Some(run.fire_time),
            log: Some(run.id.to_string()),
            status: Some(run.status.as_str()),
            reason: (run.reason != Reason::None).then(|| run.reason.as_str()),
            trigger: Some(run.trigger.as_str()),
            message: (!log.message.is_empty()).then(|| log.message.clone()),
            executor: executor.map(|executor| executor.address),
            attempts: Some(run.attempt),
            late_ms: late_ms(log),
            ..FindingParams::default()
        };
        self.add(FindingCode::Run, params);
        if run.trigger == Trigger::Manual {
            let made_at = IdSource::made_at(run.id);
            let near = self.entries_of_task(made_at - NEAR_MS, made_at + NEAR_MS).await?;
            let started = near.iter().find(|entry| is_about(entry, Action::RunTask.as_str(), run.id));
            let params = started.map(|entry| self.done(entry)).unwrap_or_default();
            self.add(FindingCode::StartedBy, FindingParams { at: params.at.or(Some(made_at)), ..params });
        }
        if run.trigger == Trigger::Misfire || run.reason == Reason::MisfireSkipped {
            let message = (!log.message.is_empty()).then(|| log.message.clone());
            let params = FindingParams { at: Some(run.fire_time), message, ..FindingParams::default() };
            self.add(FindingCode::Missed, params);
        }
        if run.reason == Reason::Maintenance || run.due_time > self.schedule.due_time(run.fire_time) {
            self.add_windows(run.fire_time).await?;
        }
        match run.reason {
            Reason::CancelledManually => self.add_cancel(log).await,
            Reason::TaskStopped | Reason::TaskPaused | Reason::TaskEdited | Reason::TaskDeleted => {
                let ended_at = dispatched.finished_at;
                let near = self.entries_of_task(ended_at - NEAR_MS, ended_at + NEAR_MS).await?;
                if let Some(change) = near.iter().find(|entry| state_in(entry.after.as_deref()).is_some()) {
                    let params = self.done(change);
                    self.add(FindingCode::EndedByChange, params);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Who cancelled a run, or skipped the occurrence before there was one.
    async fn add_cancel(&mut self, log: &LogView) -> Result<(), Problem> {
        let run = &log.dispatched.run;
        let made_at = IdSource::made_at(run.id);
        let mut near = self.entries(&run.id, "task_log", made_at - NEAR_MS, self.now + NEAR_MS).await?;
        near.retain(|entry| [Action::CancelRun.as_str(), Action::SkipFire.as_str()].contains(&entry.action.as_str()));
        if near.is_empty() {
            near = self.entries_of_task(made_at - NEAR_MS, made_at + NEAR_MS).await?;
            near.retain(|entry| is_about(entry, Action::SkipFire.as_str(), run.id));
        }
        let params = near.first().map(|entry| self.done(entry)).unwrap_or_default();
        let at = params.at.or(Some(log.dispatched.finished_at));
        self.add(FindingCode::CancelledBy, FindingParams { at, ..params });
        Ok(())
    }

    async fn add_windows(&mut self, at: i64) -> Result<(), Problem> {
        let windows = self.api.store.windows(self.tenant(), at, None, LOOKED_AT_MAX).await?;
        for window in windows.into_iter().filter(|window| (window.starts_at..window.ends_at).contains(&at)) {
            let params = FindingParams {
                at: Some(window.starts_at),
                until: Some(window.ends_at),
                message: (!window.note.is_empty()).then_some(window.note),
                ..FindingParams::default()
            };
            self.add(FindingCode::Maintenance, params);
        }
        Ok(())
    }

    async fn explain_absence(&mut self, at: i64) -> Result<(), Problem> {
        let until = at.saturating_add(MINUTE_MS);
        let about = |at: i64| FindingParams { at: Some(at), ..FindingParams::default() };
        if at > self.now {
            self.add(FindingCode::StillToCome, about(at));
        }
        if self.task.created_at >= until {
            let made = self.entries_of_task(self.task.created_at - NEAR_MS, self.task.created_at + NEAR_MS).await?;
            let params = made.last().map(|entry| self.done(entry)).unwrap_or_default();
            self.add(FindingCode::CreatedLater, FindingParams { at: Some(self.task.created_at), ..params });
            return Ok(());
        }
        let fire = self.schedule.next_after(at.saturating_sub(1));
        let is_named = fire < until;
        let known = self.findings.len();
        match self.task.spec.schedule {
            ScheduleKind::None => self.add(FindingCode::NoSchedule, FindingParams::default()),
            ScheduleKind::FixedDelay => self.add(FindingCode::FixedDelay, FindingParams::default()),
            _ if !is_named => self.add_not_named(at),
            _ => {}
        }
        if self.task.spec.schedule != ScheduleKind::None {
            self.add_state(if is_named { fire } else { at }).await?;
        }
        if is_named {
            self.add_missed(fire, until).await?;
            let spec = &self.task.spec;
            if spec.max_fires > 0 && self.task.fires >= spec.max_fires && self.task.next_fire_at == NEVER {
                let count = Some(spec.max_fires);
                self.add(FindingCode::MaxFiresUsed, FindingParams { count, ..FindingParams::default() });
            }
        }
        let Quotas { retain_days, .. } = self.api.store.quotas(self.tenant()).await?;
        let kept_ms = if retain_days == 0 { self.api.retain_ms } else { i64::from(retain_days) * DAY_MS };
        if at < self.now - kept_ms {
            self.add(FindingCode::LogDeleted, about(self.now - kept_ms));
        }
        if is_named && fire <= self.now && self.findings.len() == known {
            self.add(FindingCode::Unexplained, about(fire));
        }
        let changed = self.entries_of_task(until, self.now.saturating_add(NEAR_MS)).await?;
        let changed: Vec<_> = changed.iter().filter(|entry| DEFINING.contains(&entry.action.as_str())).collect();
        if let Some(first) = changed.last() {
            let params = FindingParams { count: Some(changed.len() as i64), ..self.done(first) };
            self.add(FindingCode::EditedLater, params);
        }
        Ok(())
    }

    /// Why the schedule names no instant in the minute of `at`.
    fn add_not_named(&mut self, at: i64) {
        let until = at.saturating_add(MINUTE_MS);
        let lines = self.schedule.preview(at.saturating_sub(1), 1);
        let left_out = lines.iter().find_map(|line| match line.kind {
            Kind::Skipped(reason) if line.fire_time < until && line.last >= at => Some((reason, line)),
            _ => None,
        });
        if let Some((reason, line)) = left_out {
            let day = match line.note {
                Some(Note::MovedTo { day }) => Some(day),
                _ => None,
            };
            self.add(
                reason.into(),
                FindingParams { at: Some(line.fire_time.max(at)), day, ..FindingParams::default() },
            );
            return;
        }
        let next = Some(self.schedule.next_after(until - 1)).filter(|next| *next != NEVER);
        let previous = previous_fire(&self.schedule, at);
        self.add(FindingCode::NotNamed, FindingParams { at: Some(at), previous, next, ..FindingParams::default() });
    }

    /// Whether the task was stopped or paused at an instant, and who left it so.
    async fn add_state(&mut self, at: i64) -> Result<(), Problem> {
        // A later decision says nothing about an earlier instant.
        let entries = self.entries_of_task(0, at.min(self.now).saturating_add(1)).await?;
        let mut resting = entries.iter().filter_map(|entry| Some((entry, state_in(entry.after.as_deref())?)));
        let latest = resting.next().filter(|(_, state)| !state.is_started);
        let resting = latest.map(|(entry, state)| {
            // An entry that did not change the state did not stop it.
            let same = resting.take_while(|(_, earlier)| !earlier.is_started && earlier.pause_note == state.pause_note);
            (same.last().map_or(entry, |(earliest, _)| earliest), state)
        });
        let (params, note) = match resting {
            Some((entry, state)) => (self.done(entry), state.pause_note),
            // Without an audit entry the task's own state counts, if it is as old.
            None if entries.is_empty() && !self.task.activity.started && self.task.updated_at <= at => {
                let at = if self.task.paused_at == 0 { self.task.updated_at } else { self.task.paused_at };
                let params = FindingParams { at: Some(at), ..FindingParams::default() };
                (params, self.task.activity.pause_note.clone())
            }
            None => return Ok(()),
        };
        let code = if note.is_some() { FindingCode::Paused } else { FindingCode::Stopped };
        self.add(code, FindingParams { message: note, ..params });
        Ok(())
    }

    /// A missed fire without a row of its own, covered by a later row.
    async fn add_missed(&mut self, fire: i64, until: i64) -> Result<(), Problem> {
        let next = self.runs(until, i64::MAX, 1).await?;
        let Some(next) = next.first() else { return Ok(()) };
        let run = &next.dispatched.run;
        if run.trigger == Trigger::Misfire || run.reason == Reason::MisfireSkipped {
            let params = FindingParams {
                at: Some(fire),
                log: Some(run.id.to_string()),
                message: (!next.message.is_empty()).then(|| next.message.clone()),
                ..FindingParams::default()
            };
            self.add(FindingCode::Missed, params);
        }
        Ok(())
    }
}

/// How late the last attempt started, ms; unknown for a run that is due again. Clocks differ a little: never below 0.
fn late_ms(log: &LogView) -> Option<i64> {
    let run = &log.dispatched.run;
    let is_due_again = matches!(run.status, Status::Init | Status::Queued | Status::Retry);
    (log.started_at != 0 && !is_due_again).then(|| (log.started_at - run.due_time).max(0))
}

/// Whether an entry records an action that created or ended this run.
fn is_about(entry: &AuditEntry, action: &str, log: LogId) -> bool {
    let after = entry.after.as_deref().and_then(|after| serde_json::from_str::<Value>(after).ok());
    let log = log.to_string();
    entry.action == action && after.is_some_and(|after| after["log"] == log.as_str())
}

/// The state of a task that an entry of the audit records.
#[derive(Deserialize)]
struct StateInAudit {
    #[serde(rename = "started")]
    is_started: bool,
    pause_note: Option<String>,
}

fn state_in(after: Option<&str>) -> Option<StateInAudit> {
    serde_json::from_str(after?).ok()
}
