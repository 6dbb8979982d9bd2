//! Making, changing and deleting jobs.

use super::asked::Asked;
use super::children::{Parent, link};
use super::reply::{Refused, Reply};
use super::visitor::Visitor;
use super::{groups, jobs};
use crate::api::Api;
use crate::api::scripts::Wanted;
use crate::api::tasks::{Changes, delete_task, refuse_past};
use crate::definitions::NotRevoked;
use crate::domain::access::Permission;
use crate::domain::import::{Effect, Uncarried};
use crate::domain::task::TaskSpec;
use crate::domain::xxljob::{ForeignJob, GLUE_TYPES, GlueType, beside_a_namesake, check_script, spec_of, spec_onto};
use crate::domain::{Action, Owner, TaskId};
use crate::store::{ALARM_EMAIL_CHARS_MAX, AUTHOR_CHARS_MAX, Activity, JobNumberStore as _, JobWords};

/// Texts without which a job is refused.
const REQUIRED: [&str; 5] = ["jobDesc", "executorRouteStrategy", "glueType", "executorBlockStrategy", "author"];

/// Makes a job, which is stopped; answers its number.
pub async fn add(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let needs = Permission::TasksCreate;
    visitor.scope(needs)?;
    let (job, glue_type) = read(asked)?;
    if !asked.has("scheduleType") && job.job_cron.as_deref().unwrap_or_default().trim().is_empty() {
        return Err(Refused::field("jobCron", "it is required"));
    }
    let group = groups::find(api, visitor, needs, "jobGroup", job.job_group).await?;
    let (spec, uncarried) = spec_of(&job, api.default_zone);
    refuse(&uncarried)?;
    let id: TaskId = api.engine.ids.next(api.engine.clock.now_ms());
    let spec = under_a_free_name(api, group.owner, id, spec).await?;
    let mut changes = Changes::of(api, &visitor.caller);
    let place = (group.tenant.as_str(), group.name.as_str());
    changes.create(id, place, spec.clone(), Activity::default()).await?;
    let before = JobWords { task_id: id, tenant_id: group.owner.tenant_id, ..JobWords::default() };
    changes.keep(&before, words(&job, &before));
    let script = script_of(api, &job, glue_type)?;
    if let Some(edit) = script.edit_of_new(api, &visitor.caller, (id, group.owner)).await? {
        edit.add_to(&mut changes);
    }
    let parent = Parent { number: None, app: &group.name, was: None, name: &spec.name, children: &[] };
    let notes = link(api, visitor, asked, &parent, &mut changes).await?;
    changes.make().await?;
    let numbers = api.store.job_numbers(group.owner, &[id]).await?;
    let number = numbers.get(&id).ok_or_else(|| Refused::new("the job is made, and has no number yet"))?;
    Ok(Reply::content(number.to_string()).noting(&notes))
}

/// Changes a job as a whole: what is not said is empty, as there.
pub async fn update(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    visitor.scope(Permission::TasksEdit)?;
    let (job, glue_type) = read(asked)?;
    if !asked.has("scheduleType") && !asked.has("jobCron") {
        return Err(Refused::field("jobCron", "it is required"));
    }
    let view = jobs::find(api, visitor, Permission::TasksEdit, "id", asked.id()?).await?;
    if i64::from(view.group) != job.job_group {
        let why = format!("job {} is of group {}, and cannot move to another one", view.number, view.group);
        return Err(Refused::field("jobGroup", why));
    }
    let task = view.task;
    let (mut spec, uncarried) = spec_onto(&task.spec, &job);
    refuse(&uncarried)?;
    if (spec.schedule, spec.fire_at) != (task.spec.schedule, task.spec.fire_at) {
        refuse_past(&spec, &task.activity, api.engine.clock.now_ms())
            .map_err(|error| Refused::field("scheduleConf", error.message()))?;
    }
    if spec.name != task.spec.name {
        spec = under_a_free_name(api, task.owner, task.id, spec).await?;
    }
    let (app, was) = (task.app.clone(), task.spec.name.clone());
    let before = JobWords {
        task_id: task.id,
        tenant_id: task.owner.tenant_id,
        author: view.author,
        alarm_email: view.alarm_email,
    };
    // A script that is not said stays; no list shows it, so nobody can say it again.
    let keeps_script = glue_type == view.glue_type && job.glue_source.trim().is_empty();
    let edit =
        if keeps_script { None } else { script_of(api, &job, glue_type)?.edit(api, &visitor.caller, &task).await? };
    let mut changes = Changes::of(api, &visitor.caller);
    let activity = task.activity.clone();
    changes.edit(Action::EditTask, task, spec.clone(), activity).await?;
    changes.keep(&before, words(&job, &before));
    if let Some(edit) = edit {
        edit.add_to(&mut changes);
    }
    let number = Some(view.number);
    let parent = Parent { number, app: &app, was: Some(&was), name: &spec.name, children: &view.children };
    let mut notes = link(api, visitor, asked, &parent, &mut changes).await?;
    for not_revoked in changes.make().await? {
        notes.extend(unreachable(&not_revoked));
    }
    Ok(Reply::done().noting(&notes))
}

/// Writes the script of a job that is one already.
pub async fn save_script(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let view = jobs::find(api, visitor, Permission::ScriptsEdit, "id", asked.id()?).await?;
    if !view.glue_type.is_script() {
        return Err(Refused::field("id", format!("job {} calls a handler: name a glueType by an update", view.number)));
    }
    let job = asked.job()?;
    let task = view.task;
    let Some(edit) = script_of(api, &job, view.glue_type)?.edit(api, &visitor.caller, &task).await? else {
        return Ok(Reply::done());
    };
    let mut changes = Changes::of(api, &visitor.caller);
    let (spec, activity) = (task.spec.clone(), task.activity.clone());
    changes.edit(Action::PutScript, task, spec, activity).await?;
    edit.add_to(&mut changes);
    let notes: Vec<String> = changes.make().await?.iter().flat_map(unreachable).collect();
    Ok(Reply::done().noting(&notes))
}

/// Deletes a job.
pub async fn remove(api: &Api, visitor: &Visitor, asked: &Asked) -> Result<Reply, Refused> {
    let view = jobs::find(api, visitor, Permission::TasksDelete, "id", asked.id()?).await?;
    let not_revoked = delete_task(api, &visitor.caller, &view.task).await?;
    Ok(Reply::done().noting(&unreachable(&not_revoked)))
}

/// What people should know of a change whose runs could not all be called back.
pub fn unreachable(not_revoked: &NotRevoked) -> Vec<String> {
    let NotRevoked { unreachable, .. } = not_revoked;
    if unreachable.is_empty() {
        return Vec::new();
    }
    vec![format!("executors could not be asked about these runs, which may still start: {}", unreachable.join(", "))]
}

/// The script that a job is to be.
fn script_of(api: &Api, job: &ForeignJob, glue_type: GlueType) -> Result<Wanted, Refused> {
    let mut source = job.glue_source.clone();
    if glue_type == GlueType::GlueShell {
        // Forms end lines so, and `bash` does not know it. There it is left out, too.
        source.retain(|letter| letter != '\r');
    }
    let wrong = check_script(glue_type, &source, &job.glue_remark);
    if let Some(wrong) = wrong.first() {
        return Err(Refused::field(&camel(&format!("glue_{}", wrong.field)), wrong.message()));
    }
    Ok(Wanted { glue_type, source, remark: job.glue_remark.clone(), updated_at: api.engine.clock.now_ms() })
}

/// The job that is described, and what it is, if nothing is missing that a job needs.
fn read(asked: &Asked) -> Result<(ForeignJob, GlueType), Refused> {
    let job = asked.job()?;
    if asked.number("jobGroup")?.is_none() {
        return Err(Refused::field("jobGroup", "it is required"));
    }
    for name in REQUIRED {
        if asked.text(name)?.unwrap_or_default().trim().is_empty() {
            return Err(Refused::field(name, "it is required"));
        }
    }
    let none = || Refused::field("glueType", format!("it is none of {}", GLUE_TYPES.join(", ")));
    let glue_type = GlueType::parse(&job.glue_type).ok_or_else(none)?;
    if !glue_type.is_script() && job.executor_handler.trim().is_empty() {
        return Err(Refused::field("executorHandler", "it is required"));
    }
    for (name, text, most) in
        [("author", &job.author, AUTHOR_CHARS_MAX), ("alarmEmail", &job.alarm_email, ALARM_EMAIL_CHARS_MAX)]
    {
        if text.chars().count() > most {
            return Err(Refused::field(name, format!("at most {most} characters are allowed")));
        }
    }
    Ok((job, glue_type))
}

/// Nothing of a job is left out or changed here: an import would report it, a script would not look.
fn refuse(uncarried: &[Uncarried]) -> Result<(), Refused> {
    // Alarm addresses are kept, though no mail is sent; that is documented.
    let counts = |one: &&Uncarried| one.effect != Effect::Nothing && one.field != "alarm_email";
    let refused: Vec<String> = uncarried.iter().filter(counts).map(said).collect();
    if refused.is_empty() { Ok(()) } else { Err(Refused::new(refused.join("; "))) }
}

fn said(one: &Uncarried) -> String {
    let why = match one.effect {
        // What an import makes of it comes last.
        Effect::Differs => one.why.rsplit_once(": ").map_or(one.why.as_str(), |(why, _)| why),
        Effect::Stops | Effect::Nothing => &one.why,
    };
    format!("{}: `{}`: {why}", camel(&one.field), one.value)
}

/// The name in JSON of a column.
fn camel(column: &str) -> String {
    let mut words = column.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

fn words(job: &ForeignJob, before: &JobWords) -> JobWords {
    JobWords {
        author: job.author.trim().to_owned(),
        alarm_email: job.alarm_email.trim().to_owned(),
        task_id: before.task_id,
        tenant_id: before.tenant_id,
    }
}

/// Jobs may share a description, tasks of an app share no name: the second gets its number into it.
async fn under_a_free_name(api: &Api, owner: Owner, id: TaskId, spec: TaskSpec) -> Result<TaskSpec, Refused> {
    let namesakes = api.store.tasks_named(owner, std::slice::from_ref(&spec.name)).await?;
    if namesakes.iter().all(|task| task.id == id) {
        return Ok(spec);
    }
    let numbers = api.store.job_numbers(owner, &[id]).await?;
    Ok(beside_a_namesake(spec, numbers.get(&id).copied().unwrap_or_default().into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job() -> serde_json::Value {
        json!({
            "jobGroup": 2, "jobDesc": "d", "executorRouteStrategy": "FIRST", "jobCron": "0/5 * * * * ? *",
            "glueType": "BEAN", "executorHandler": "h", "executorBlockStrategy": "SERIAL_EXECUTION", "author": "a",
        })
    }

    fn read_with(name: &str, value: serde_json::Value) -> String {
        let mut job = job();
        job[name] = value;
        match read(&Asked::of(job)) {
            Ok(_) => String::new(),
            Err(refused) => format!("{refused:?}"),
        }
    }

    #[test]
    fn what_a_job_needs_is_required() {
        assert!(read(&Asked::of(job())).is_ok());
        for name in REQUIRED {
            assert!(read_with(name, json!(" ")).contains(&format!("{name}: it is required")), "{name}");
        }
        assert!(read_with("jobGroup", json!("")).contains("jobGroup: it is required"));
        assert!(read_with("executorHandler", json!(" ")).contains("executorHandler: it is required"));
        assert!(read_with("glueType", json!("GLUE_RUBY")).contains("glueType: it is none of BEAN, GLUE_GROOVY"));
        let mut script = job();
        script["glueType"] = json!("GLUE_SHELL");
        script["executorHandler"] = json!("");
        assert_eq!(read(&Asked::of(script)).unwrap().1, GlueType::GlueShell, "a script calls no handler");
        assert!(read_with("author", json!("x".repeat(65))).contains("author: at most 64"));
        assert!(read_with("alarmEmail", json!("x".repeat(256))).contains("alarmEmail: at most 255"));
    }

    #[test]
    fn what_a_task_cannot_hold_is_refused_in_the_words_of_the_form() {
        let refused = |name: &str, value: &str| {
            let mut job = job();
            job[name] = json!(value);
            let job = Asked::of(job).job().unwrap();
            format!("{:?}", refuse(&spec_of(&job, chrono_tz::Tz::UTC).1).err())
        };
        assert_eq!(refused("alarmEmail", "a@b"), "None");
        for (name, value, said) in [
            ("executorRouteStrategy", "NEAREST", "executorRouteStrategy: `NEAREST`: it is none of FIRST, LAST"),
            ("executorBlockStrategy", "NONE", "executorBlockStrategy: `NONE`: it is none of SERIAL_EXECUTION"),
            ("misfireStrategy", "X", "misfireStrategy: `X`: it is none of DO_NOTHING"),
            ("jobCron", "every day", "jobCron: `every day`: "),
            ("executorTimeout", "9999999", "executorTimeout: `9999999`: a run may take"),
            ("executorFailRetryCount", "1001", "executorFailRetryCount: `1001`: 1000 are allowed"),
        ] {
            let refused = refused(name, value);
            assert!(refused.contains(said) && !refused.contains("taken as"), "{refused}");
        }
    }
}
