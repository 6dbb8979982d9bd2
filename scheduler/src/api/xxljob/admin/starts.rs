//! Starting and stopping jobs, running them once, and when they would run.

use super::asked::Asked;
use super::edits::unreachable;
use super::jobs;
use super::reply::{Refused, Reply};
use super::visitor::Visitor;
use crate::api::Api;
use crate::api::runs::start_run;
use crate::api::schedules;
use crate::api::tasks::{start_task, stop_task};
use crate::domain::access::Permission;
use crate::domain::import::Effect;
use crate::domain::task::check_params;
use crate::domain::xxljob::{BEAN, ForeignJob, spec_of};
use crate::store::NewRun;

/// Fires that are shown of a schedule.
const FIRES: usize = 5;

/// It fires by its schedule from now on.
pub async fn start(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let view = jobs::find(api, visitor, Permission::TasksStart, "id", asked.id()?).await?;
    let (_, not_revoked) = start_task(api, &visitor.caller, view.task).await?;
    Ok(Reply::done().noting(&unreachable(&not_revoked)))
}

/// It no longer does.
pub async fn stop(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let view = jobs::find(api, visitor, Permission::TasksStop, "id", asked.id()?).await?;
    let (_, not_revoked) = stop_task(api, &visitor.caller, view.task).await?;
    Ok(Reply::done().noting(&unreachable(&not_revoked)))
}

/// It runs once, now. Parameters that are not given are empty, as there: they are not the job's.
pub async fn trigger(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let view = jobs::find(api, visitor, Permission::TasksRun, "id", asked.id()?).await?;
    if !asked.text("addressList")?.unwrap_or_default().trim().is_empty() {
        let why =
            "runs go to executors of their app, by the job's route strategy: to single some out, give the task tags";
        return Err(Refused::field("addressList", why));
    }
    let params = asked.text("executorParam")?.unwrap_or_default();
    check_params(&params).map_err(|error| Refused::field("executorParam", error.message()))?;
    let now = api.engine.clock.now_ms();
    let wanted = NewRun { params: Some(params), ..NewRun::manual(api.engine.ids.next(now), now) };
    start_run(api, &visitor.caller, &view.task, &wanted).await?;
    Ok(Reply::done())
}

/// When a schedule fires next, on the wall clock of the node's time zone.
pub async fn next_fires(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    visitor.scope(Permission::TasksRead)?;
    let (kind, conf, cron) = (asked.text("scheduleType")?, asked.text("scheduleConf")?, asked.text("cron")?);
    if kind.is_none() && cron.is_none() {
        return Err(Refused::field("scheduleType", "it is required, with scheduleConf; or cron"));
    }
    let job = ForeignJob {
        job_desc: "preview".to_owned(),
        executor_handler: "preview".to_owned(),
        glue_type: BEAN.to_owned(),
        schedule_type: kind,
        schedule_conf: conf,
        job_cron: cron,
        ..ForeignJob::default()
    };
    let (spec, uncarried) = spec_of(&job, api.default_zone);
    if let Some(wrong) = uncarried.iter().find(|one| one.effect != Effect::Nothing) {
        let name = if job.schedule_type.is_none() { "cron" } else { "scheduleConf" };
        return Err(Refused::field(name, format!("`{}`: {}", wrong.value, wrong.why)));
    }
    let fires = schedules::next_fires(api, &spec, FIRES).await?;
    let fires: Vec<String> = fires.iter().filter_map(|at| jobs::wall_clock(*at, api.default_zone)).collect();
    Ok(Reply::content(fires))
}
