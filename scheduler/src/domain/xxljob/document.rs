//! A whole xxl-job as a document.

use super::children::{self, Linked};
use super::glue;
use super::job::{ForeignGlue, ForeignGroup, ForeignJob, ForeignUser, ForeignXxlJob};
use super::mapping::{spec_of, starts};
use crate::domain::access::is_user_name;
use crate::domain::import::{
    DOCUMENT_VERSION, ForeignKind, ImportApp, ImportDocument, ImportGrant, ImportRole, ImportTask, ImportTenant,
    ImportUser, JOB_NUMBER_MAX, SourceError, Uncarried, origin, plain_name, task_name, unique_name,
};
use crate::domain::task::TaskSpec;
use crate::domain::task::file::Entry;
use chrono_tz::Tz;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// What a document is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportOptions {
    /// Name of the source: 1 to 64 characters out of a-z A-Z 0-9 - _ . with a letter or digit first.
    pub source: String,
    /// Name of the tenant that gets everything; the same characters. There are no tenants in xxl-job.
    pub tenant: String,
    /// Zone of the schedules, which the database does not say: the time zone of the other scheduler's process.
    pub zone: Tz,
    /// Only these groups, by the name that executors announce; empty is all of them.
    pub groups: Vec<String>,
    /// Whether jobs that are scripts become tasks that are scripts.
    pub with_scripts: bool,
}

/// An app on its way into the document.
struct App {
    name: String,
    group: ForeignGroup,
    uncarried: Vec<Uncarried>,
}

/// A task on its way into the document.
struct Draft<'a> {
    job: &'a ForeignJob,
    app: String,
    spec: TaskSpec,
    starts: bool,
    uncarried: Vec<Uncarried>,
}

/// Makes the document of what was read. The same rows give the same document.
///
/// # Errors
/// A name of the source or the tenant that is not allowed, or a group that is not there.
pub fn document(read: &ForeignXxlJob, options: &ImportOptions) -> Result<ImportDocument, SourceError> {
    SourceError::check_name("source", &options.source)?;
    SourceError::check_name("tenant", &options.tenant)?;
    refuse_unknown_groups(read, options)?;
    let chosen = |group: &&ForeignGroup| options.groups.is_empty() || options.groups.contains(&group.app_name);
    let (apps, app_of_group) = apps(read.groups.iter().filter(chosen).collect());
    let groups: BTreeSet<i64> = read.groups.iter().map(|group| group.id).collect();
    let mut uncarried = Vec::new();
    for job in read.jobs.iter().filter(|job| !groups.contains(&job.job_group)) {
        let (value, remedy) =
            (format!("{} (job {}: {})", job.job_group, job.id, job.job_desc), "Give the job a group.");
        uncarried.push(Uncarried::differs("xxl_job_info.job_group", value, "there is no such group", remedy));
    }
    let mut drafts = drafts(&read.jobs, &app_of_group, options);
    let linked = drafts.iter_mut().map(|(id, draft)| {
        let Draft { job, app, spec, starts, uncarried } = draft;
        (*id, Linked { app, children: &job.child_jobid, spec, starts, uncarried })
    });
    children::link(&mut linked.collect());
    let mut history: HashMap<i64, Vec<&ForeignGlue>> = HashMap::new();
    for version in &read.glue {
        history.entry(version.job_id).or_default().push(version);
    }
    let tasks = drafts.into_values().map(|draft| {
        let versions = history.get(&draft.job.id).map_or(&[][..], Vec::as_slice);
        task(draft, versions, options)
    });
    let tasks: Vec<ImportTask> = tasks.collect();
    let users = read.users.iter().filter_map(|user| imported_user(user, &app_of_group, options, &mut uncarried));
    Ok(ImportDocument {
        version: DOCUMENT_VERSION,
        kind: ForeignKind::XxlJob,
        releases: read.releases.words().to_owned(),
        source: options.source.clone(),
        time_zone: options.zone.name().to_owned(),
        tenants: vec![ImportTenant { name: options.tenant.clone(), description: String::new() }],
        apps: apps.into_iter().map(|app| imported_app(app, options)).collect(),
        users: users.collect(),
        tasks,
        uncarried,
    })
}

fn refuse_unknown_groups(read: &ForeignXxlJob, options: &ImportOptions) -> Result<(), SourceError> {
    let known: BTreeSet<&str> = read.groups.iter().map(|group| group.app_name.as_str()).collect();
    let Some(name) = options.groups.iter().find(|name| !known.contains(name.as_str())) else { return Ok(()) };
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(SourceError::NoSuchGroup { name: name.clone(), known })
}

/// Whether a person entered its addresses.
fn is_manual(group: &ForeignGroup) -> bool {
    group.address_type == 1
}

/// The apps by the groups' ids, and the name of the app that each group becomes. Groups may share a name there: executors that
/// announce it belong to all of them, so they are one app. One whose addresses were entered has executors of its own, so it is
/// another, and leaves the name to those that announce it.
fn apps(mut groups: Vec<&ForeignGroup>) -> (Vec<App>, BTreeMap<i64, String>) {
    let mut apps: Vec<App> = Vec::new();
    let mut of_group = BTreeMap::new();
    groups.sort_by_key(|group| (is_manual(group), group.id));
    for group in groups {
        let fit = plain_name(&group.app_name, &format!("group-{}", group.id));
        let twin = apps.iter_mut().find(|app| app.name == fit);
        let is_same =
            |twin: &App| twin.group.app_name == group.app_name && !is_manual(&twin.group) && !is_manual(group);
        let mut uncarried = Vec::new();
        let name = match twin {
            None => fit,
            Some(twin) if is_same(twin) => {
                let why = format!(
                    "groups {} and {} have one name: they are one app, number {}",
                    twin.group.id, group.id, twin.group.id
                );
                let remedy = format!("Scripts that name group {} have to name {}.", group.id, twin.group.id);
                twin.uncarried.push(Uncarried::differs("xxl_job_group.id", group.id, why, remedy));
                of_group.insert(group.id, fit);
                continue;
            }
            Some(_) => {
                let number = group.id.to_string();
                let head: String = fit.chars().take(63 - number.len()).collect();
                format!("{head}-{number}")
            }
        };
        if name != group.app_name {
            let why = format!("the app is named `{name}`: names are unique, of a-z A-Z 0-9 - _ . only");
            let remedy = if is_manual(group) {
                "Nothing, unless executors announce the old name.".to_owned()
            } else {
                format!("Let its executors announce `{name}` (xxl.job.executor.appname).")
            };
            uncarried.push(Uncarried::differs("xxl_job_group.app_name", &group.app_name, why, remedy));
        }
        of_group.insert(group.id, name.clone());
        apps.push(App { name, group: group.clone(), uncarried });
    }
    apps.sort_by_key(|app| app.group.id);
    (apps, of_group)
}

/// The tasks by the jobs' ids, each with a name of its own within its app.
fn drafts<'a>(
    jobs: &'a [ForeignJob],
    app_of_group: &BTreeMap<i64, String>,
    options: &ImportOptions,
) -> BTreeMap<i64, Draft<'a>> {
    let mut names: HashMap<&str, HashSet<String>> = HashMap::new();
    let mut drafts = BTreeMap::new();
    for job in jobs {
        let Some(app) = app_of_group.get(&job.job_group) else { continue };
        let (mut spec, mut uncarried) = spec_of(job, options.zone);
        uncarried.extend(glue::uncarried(job, options.with_scripts));
        let taken = names.entry(app).or_default();
        let name = unique_name(&spec.name, job.id, taken);
        // The whole text is kept where the name does not say it.
        if name != spec.name && spec.description.is_empty() {
            spec.description = spec.name;
        }
        spec.name = name;
        let starts = starts(job, &uncarried);
        drafts.insert(job.id, Draft { job, app: app.clone(), spec, starts, uncarried });
    }
    drafts
}

fn task(draft: Draft<'_>, history: &[&ForeignGlue], options: &ImportOptions) -> ImportTask {
    let Draft { job, app, spec, starts, mut uncarried } = draft;
    let glue = glue::of(job, history, &mut uncarried);
    let entry = Entry { at: 0, tenant: options.tenant.clone(), app, started: false, pause_note: None, spec };
    ImportTask {
        origin: origin(&options.source, job.id),
        number: number(job.id),
        starts,
        task: entry.to_fields(),
        author: job.author.clone(),
        alarm_email: job.alarm_email.clone(),
        glue,
        uncarried,
    }
}

/// Numbers are 31 bits there, and in the messages to executors.
fn number(id: i64) -> Option<i32> {
    i32::try_from(id).ok().filter(|number| (1..=JOB_NUMBER_MAX).contains(number))
}

fn imported_app(app: App, options: &ImportOptions) -> ImportApp {
    let App { name, group, mut uncarried } = app;
    let addresses = group.address_list.split(',').map(str::trim).filter(|address| !address.is_empty());
    let addresses: Vec<String> = if is_manual(&group) { addresses.map(str::to_owned).collect() } else { Vec::new() };
    if !addresses.is_empty() {
        let why = "executors announce themselves: addresses are not entered";
        let remedy = "Name the nodes to its executors (xxl.job.admin.addresses), and let them announce the app.";
        uncarried.push(Uncarried::differs("xxl_job_group.address_list", &group.address_list, why, remedy));
    }
    ImportApp {
        tenant: options.tenant.clone(),
        description: group.title.trim().to_owned(),
        number: number(group.id),
        addresses,
        uncarried,
        name,
    }
}

/// A user with what it may do in the groups that are imported. One that may do nothing there is left out, and so is one whose
/// name cannot be a name here.
fn imported_user(
    user: &ForeignUser,
    app_of_group: &BTreeMap<i64, String>,
    options: &ImportOptions,
    left_out: &mut Vec<Uncarried>,
) -> Option<ImportUser> {
    let name = user.username.trim();
    let mut uncarried = vec![Uncarried::note(
        "xxl_job_user.password",
        "",
        "passwords are not read",
        "Reset the password, or let the user sign in by single sign-on.",
    )];
    let tenant = options.tenant.clone();
    let grant = if user.role == 1 {
        ImportGrant { tenant, apps: Vec::new(), role: ImportRole::Admin }
    } else {
        let mut apps = BTreeSet::new();
        for word in user.permission.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Some(app) = word.parse::<i64>().ok().and_then(|group| app_of_group.get(&group)) {
                apps.insert(app.clone());
            } else {
                let why = "no group of that id is in this import";
                uncarried.push(Uncarried::differs("xxl_job_user.permission", word, why, ""));
            }
        }
        ImportGrant { tenant, apps: apps.into_iter().collect(), role: ImportRole::Member }
    };
    let why = if !is_user_name(name) {
        "names to sign in with have 1 to 64 characters out of a-z A-Z 0-9 - _ . @, a letter or digit first"
    } else if grant.role == ImportRole::Member && grant.apps.is_empty() {
        "the user may do nothing in the groups of this import"
    } else {
        return Some(ImportUser {
            name: name.to_owned(),
            display_name: task_name(name, name),
            disabled: false,
            grants: vec![grant],
            uncarried,
        });
    };
    left_out.push(Uncarried::differs("xxl_job_user.username", name, why, "Make an account for the user."));
    None
}

#[cfg(test)]
mod tests;
