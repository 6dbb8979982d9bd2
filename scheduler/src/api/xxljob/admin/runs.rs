//! Runs: what xxl-job calls logs. Its pages begin at any place and name how many there are; the list of runs here knows neither,
//! so only the latest can be reached, and what is counted are those that were looked at.

use super::asked::Asked;
use super::jobs::{time, wall_clock};
use super::paging::Pages;
use super::reply::{Paging, Refused, Reply};
use super::visitor::Visitor;
use super::{groups, jobs};
use crate::api::Api;
use crate::api::input::PAGE_MAX;
use crate::domain::access::Permission;
use crate::domain::xxljob::instant_of;
use crate::domain::xxljob::number::of_first;
use crate::domain::xxljob::wire::{CODE_FAILED, CODE_OK, CODE_TIMED_OUT};
use crate::domain::{AppId, ExecutorId, Owner, Reason, Status, TaskId};
use crate::store::{ExecutorStore as _, JobNumberStore as _, LogFilter, LogPage, LogView};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The latest runs that can be reached.
const REACHED_MAX: u64 = 10_000;

/// Looks for one page at most: those of a rare kind may lie far apart.
const LOOKS_MAX: usize = 40;

/// A page of them, the latest first.
pub async fn list(api: &Api, visitor: &Visitor, asked: &Asked, pages: Pages) -> Result<Reply, Refused> {
    let access_scope = visitor.scope(Permission::TaskLogsRead)?;
    let paging = Paging::read(asked, pages)?;
    if paging.offset + paging.size > REACHED_MAX {
        let why =
            format!("only the latest {REACHED_MAX} runs can be reached: narrow the search by filterTime or jobId");
        return Err(Refused::new(why));
    }
    let mut filter = filter(api, visitor, asked).await?;
    let mut rest = paging.offset + paging.size;
    let (mut seen, mut page): (u64, Vec<LogView>) = (0, Vec::new());
    for _ in 0..LOOKS_MAX {
        filter.limit = rest.min(PAGE_MAX);
        let LogPage { logs, next } = api.store.list_logs(&access_scope, &filter).await?;
        rest -= (logs.len() as u64).min(rest);
        for log in logs {
            if seen >= paging.offset {
                page.push(log);
            }
            seen += 1;
        }
        filter.after = next;
        if rest == 0 || filter.after.is_none() {
            break;
        }
    }
    // That there are more, pagers see by one more.
    let total = seen + u64::from(filter.after.is_some());
    let names = Names::of(api, visitor, &page).await?;
    let items = page.iter().map(|log| names.shown(log, pages, api)).collect();
    Ok(Reply::page(items, total, paging))
}

async fn filter(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<LogFilter, Refused> {
    let needs = Permission::TaskLogsRead;
    let app_id = match asked.number("jobGroup")?.unwrap_or(0) {
        ..=0 => None,
        number => Some(groups::find(api, visitor, needs, "jobGroup", number).await?.owner.app_id),
    };
    let task_id = match asked.number("jobId")?.unwrap_or(0) {
        ..=0 => None,
        number => Some(jobs::find(api, visitor, needs, "jobId", number).await?.task.id),
    };
    let status = match asked.number("logStatus")?.unwrap_or(-1) {
        1 => Some(Status::Succeeded),
        2 => Some(Status::Failed),
        3 => Some(Status::Dispatched),
        _ => None,
    };
    // What is written ahead is no log there.
    let (mut from, mut until) = (None, Some(api.engine.clock.now_ms() + 1_000));
    if let Some(span) = asked.searched("filterTime")? {
        let wrong = || Refused::field("filterTime", "write it as `2026-01-01 00:00:00 - 2026-01-02 00:00:00`");
        let (first, last) = span.split_once(" - ").ok_or_else(wrong)?;
        let instant = |text: &str| instant_of(text.trim(), api.default_zone).ok_or_else(wrong);
        // The last second counts, too.
        (from, until) = (Some(instant(first)?), Some(instant(last)?.saturating_add(1_000)));
    }
    let tenant_id = Some(visitor.tenant_id());
    Ok(LogFilter { tenant_id, app_id, task_id, status, from, until, ..LogFilter::default() })
}

/// What runs name, as it is called there.
struct Names {
    groups: HashMap<AppId, i32>,
    jobs: HashMap<TaskId, i32>,
    addresses: HashMap<ExecutorId, String>,
}

impl Names {
    async fn of(api: &Api, visitor: &Visitor, logs: &[LogView]) -> Result<Self, Refused> {
        let mut tasks: BTreeMap<AppId, BTreeSet<TaskId>> = BTreeMap::new();
        let mut executors: BTreeSet<ExecutorId> = BTreeSet::new();
        for log in logs {
            let run = &log.dispatched.run;
            tasks.entry(run.app_id).or_default().insert(run.task_id);
            executors.extend(Some(run.executor_id).filter(|id| !id.is_none()));
        }
        let tenant_id = visitor.tenant_id();
        let mut numbers = HashMap::new();
        for (app_id, tasks) in tasks {
            let tasks: Vec<TaskId> = tasks.into_iter().collect();
            numbers.extend(api.store.job_numbers(Owner { tenant_id, app_id }, &tasks).await?);
        }
        let executors: Vec<ExecutorId> = executors.into_iter().collect();
        let ends = api.store.executor_ends(&executors).await?;
        let of_tenant = ends.into_iter().filter(|end| end.owner.tenant_id == tenant_id);
        let addresses = of_tenant.map(|end| (end.id, end.address)).collect();
        let groups = api.store.group_numbers(tenant_id).await?;
        Ok(Self { groups, jobs: numbers, addresses })
    }

    fn shown(&self, log: &LogView, pages: Pages, api: &Api) -> Value {
        let (run, ended_at) = (&log.dispatched.run, log.dispatched.finished_at);
        let instant = |at: i64| match pages {
            _ if at == 0 => None,
            Pages::Offset => wall_clock(at, api.default_zone),
            Pages::Numbered | Pages::Length => time(at, pages, api.default_zone),
        };
        let was_sent = run.attempt > 0;
        let trigger_code = match run.status {
            _ if was_sent => CODE_OK,
            status if status.is_terminal() => CODE_FAILED,
            _ => 0,
        };
        let handle_code = match run.status {
            _ if !was_sent => 0,
            Status::Succeeded => CODE_OK,
            status if !status.is_terminal() => 0,
            _ if run.reason == Reason::TimedOut => CODE_TIMED_OUT,
            _ => CODE_FAILED,
        };
        let message = if run.status == Status::Succeeded { &log.output } else { &log.message };
        let shard = (run.shard_total > 1).then(|| format!("{}/{}", run.shard_index, run.shard_total));
        json!({
            // What its executor was told, at the first attempt.
            "id": of_first(run.id),
            "jobGroup": self.groups.get(&run.app_id).copied().unwrap_or(0),
            "jobId": self.jobs.get(&run.task_id).copied().unwrap_or(0),
            "executorAddress": self.addresses.get(&run.executor_id),
            "executorHandler": null,
            "executorParam": run.params.as_deref(),
            "executorShardingParam": shard,
            "executorFailRetryCount": 0,
            "triggerTime": instant(if was_sent { log.dispatched.dispatched_at } else { run.due_time }),
            "triggerCode": trigger_code,
            "triggerMsg": run.reason.as_str(),
            "handleTime": instant(ended_at),
            "handleCode": handle_code,
            "handleMsg": message,
            "alarmStatus": 0,
        })
    }
}
