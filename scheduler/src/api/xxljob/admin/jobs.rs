//! Tasks: what xxl-job calls jobs.

use super::asked::Asked;
use super::paging::Pages;
use super::reply::{Paging, Refused, Reply};
use super::visitor::Visitor;
use crate::api::Api;
use crate::domain::access::Permission;
use crate::domain::choice::Enumerated as _;
use crate::domain::task::NEVER;
use crate::domain::xxljob::{ForeignJob, TaskExtra, job_of};
use crate::store::{JobFilter, JobView};
use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;
use serde_json::{Map, Value};

/// What the portals' list has of a job.
const OF_PORTALS: [&str; 17] = [
    "id",
    "jobGroup",
    "jobCron",
    "jobDesc",
    "addTime",
    "updateTime",
    "author",
    "alarmEmail",
    "executorRouteStrategy",
    "executorHandler",
    "executorParam",
    "executorBlockStrategy",
    "executorTimeout",
    "executorFailRetryCount",
    "glueType",
    "childJobId",
    "triggerStatus",
];

/// A page of them, the latest first.
pub async fn list(api: &Api, visitor: &Visitor, asked: &Asked, pages: Pages) -> Result<Reply, Refused> {
    let access_scope = visitor.scope(Permission::TasksRead)?;
    let paging = Paging::read(asked, pages)?;
    let group = asked.number("jobGroup")?;
    let group = match (pages, group) {
        (Pages::Numbered, None) => return Err(Refused::field("jobGroup", "it is required")),
        // Forms mean all of them so.
        (Pages::Length | Pages::Offset, None | Some(..=0)) => None,
        // No app has such a number.
        (_, Some(group)) => Some(i32::try_from(group).unwrap_or(0)),
    };
    let started = match asked.number("triggerStatus")?.unwrap_or(-1) {
        -1 => None,
        0 => Some(false),
        1 => Some(true),
        _ => return Err(Refused::field("triggerStatus", "-1 (all), 0 (stopped) and 1 (started) are allowed")),
    };
    let filter = JobFilter {
        numbers: Vec::new(),
        group,
        started,
        text: asked.searched("jobDesc")?,
        handler: asked.searched("executorHandler")?,
        author: asked.searched("author")?,
        offset: paging.offset,
        limit: paging.size,
    };
    let (total, jobs) = api.store.jobs(&access_scope, &filter).await?;
    let tasks: Vec<_> = jobs.iter().map(|job| job.task.clone()).collect();
    let next = api.store.next_fires(&tasks, api.engine.clock.now_ms()).await?;
    let items = jobs.iter().zip(next).map(|(job, next)| shown(job, next, pages, api.default_zone)).collect();
    Ok(Reply::page(items, total, paging))
}

/// The task of that number, where the caller holds the permission; `name` is the parameter that names it.
pub async fn find(
    api: &Api,
    visitor: &Visitor,
    needs: Permission,
    name: &str,
    number: i64,
) -> Result<JobView, Refused> {
    let missing = || Refused::missing(name, "job", number);
    let known = i32::try_from(number).map_err(|_| missing())?;
    find_all(api, visitor, needs, vec![known]).await?.into_iter().next().ok_or_else(missing)
}

/// The tasks of these numbers, where the caller holds the permission.
pub async fn find_all(
    api: &Api,
    visitor: &Visitor,
    needs: Permission,
    numbers: Vec<i32>,
) -> Result<Vec<JobView>, Refused> {
    let access_scope = visitor.scope(needs)?;
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let filter = JobFilter { limit: numbers.len() as u64, numbers, ..JobFilter::default() };
    Ok(api.store.jobs(&access_scope, &filter).await?.1)
}

/// A task as a job; `next` is its next fire.
fn job(view: &JobView, next: i64) -> ForeignJob {
    let extra = TaskExtra {
        number: view.number.into(),
        group: view.group.into(),
        author: view.author.clone(),
        alarm_email: view.alarm_email.clone(),
        children: view.children.iter().map(|child| i64::from(*child)).collect(),
        is_started: view.task.activity.started,
        created_at: Some(view.task.created_at),
        updated_at: Some(view.task.updated_at),
        next_fire_at: if next == NEVER { 0 } else { next },
        glue_type: view.glue_type.word(),
        glue_remark: view.glue_remark.clone(),
        glue_updated_at: view.glue_updated_at,
        ..TaskExtra::default()
    };
    job_of(&view.task.spec, &extra)
}

fn shown(view: &JobView, next: i64, pages: Pages, zone: Tz) -> Value {
    let job = job(view, next);
    let mut fields = match serde_json::to_value(&job) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    for (name, at) in
        [("addTime", job.add_time), ("updateTime", job.update_time), ("glueUpdatetime", job.glue_updatetime)]
    {
        fields.insert(name.to_owned(), at.and_then(|at| time(at, pages, zone)).into());
    }
    if pages == Pages::Numbered {
        fields.retain(|name, _| OF_PORTALS.contains(&name.as_str()));
    }
    Value::Object(fields)
}

/// An instant as it is written there: up to 3.2.0 with its offset, later as the wall clock says.
pub fn time(at: i64, pages: Pages, zone: Tz) -> Option<String> {
    let at = DateTime::from_timestamp_millis(at)?;
    Some(match pages {
        Pages::Numbered | Pages::Length => at.format("%Y-%m-%dT%H:%M:%S%.3f+0000").to_string(),
        Pages::Offset => wall_clock(at.timestamp_millis(), zone)?,
    })
}

/// An instant as the wall clock of the zone says it.
pub fn wall_clock(at: i64, zone: Tz) -> Option<String> {
    zone.timestamp_millis_opt(at).earliest().map(|at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_each_release() {
        let (at, zone) = (1_541_254_891_000, Tz::Asia__Shanghai);
        let paper = Some("2018-11-03T14:21:31.000+0000".to_owned());
        assert_eq!(time(at, Pages::Numbered, zone), paper);
        assert_eq!(time(at, Pages::Length, zone), paper);
        assert_eq!(time(at, Pages::Offset, zone), Some("2018-11-03 22:21:31".to_owned()));
    }
}
