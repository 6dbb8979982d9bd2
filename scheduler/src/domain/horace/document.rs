//! A whole horace cron-job as a document.

use super::mapping::spec_of;
use super::row::{ForeignHorace, ForeignUser};
use crate::domain::access::is_user_name;
use crate::domain::import::{
    DOCUMENT_VERSION, Effect, ForeignKind, ImportApp, ImportDocument, ImportGrant, ImportRole, ImportTask,
    ImportTenant, ImportUser, SourceError, Uncarried, origin, plain_name, task_name, unique_name,
};
use crate::domain::task::file::Entry;
use chrono_tz::Tz;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a document is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoraceOptions {
    /// Name of the source: 1 to 64 characters out of a-z A-Z 0-9 - _ . with a letter or digit first.
    pub source: String,
    /// Zone of the schedules, which the database does not say: the time zone of the other scheduler's process.
    pub zone: Tz,
    /// Only these tenants, by the word that executors name; empty is all of them.
    pub tenants: Vec<String>,
}

/// An app that tasks may belong to.
struct Place {
    tenant: String,
    app: String,
    is_stopped: bool,
}

/// Makes the document of what was read. The same rows give the same document.
///
/// # Errors
/// A name of the source that is not allowed, or a tenant that is not there.
pub fn document(read: &ForeignHorace, options: &HoraceOptions) -> Result<ImportDocument, SourceError> {
    SourceError::check_name("source", &options.source)?;
    let known: Vec<&str> = read.tenants.iter().map(|tenant| tenant.tenant.as_str()).collect();
    if let Some(name) = options.tenants.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(SourceError::NoSuchTenant { name: name.clone(), known: known.join(", ") });
    }
    let mut uncarried = Vec::new();
    let (tenants, names) = tenants(read, options, &mut uncarried);
    let (apps, places) = apps(read, &names);
    let known: HashSet<i64> = read.apps.iter().map(|app| app.id).collect();
    for task in read.tasks.iter().filter(|task| !known.contains(&task.app_id)) {
        let value = format!("{} (task {}: {})", task.app_id, task.id, task.name);
        uncarried.push(Uncarried::differs("t_task.app_id", value, "there is no such app", "Give the task an app."));
    }
    let users = read.users.iter().filter_map(|user| imported_user(user, read, &names, &mut uncarried)).collect();
    Ok(ImportDocument {
        version: DOCUMENT_VERSION,
        kind: ForeignKind::Horace,
        releases: "1.x".to_owned(),
        source: options.source.clone(),
        time_zone: options.zone.name().to_owned(),
        tenants,
        apps,
        tasks: tasks(read, &places, options),
        users,
        uncarried,
    })
}

/// The tenants, and the name here of each by its id there.
fn tenants(
    read: &ForeignHorace,
    options: &HoraceOptions,
    uncarried: &mut Vec<Uncarried>,
) -> (Vec<ImportTenant>, BTreeMap<i64, String>) {
    let (mut tenants, mut names, mut taken) = (Vec::new(), BTreeMap::new(), HashSet::new());
    for tenant in &read.tenants {
        if !options.tenants.is_empty() && !options.tenants.contains(&tenant.tenant) {
            continue;
        }
        let name = unique_plain(&tenant.tenant, tenant.id, &mut taken);
        if name != tenant.tenant {
            let why = format!("the tenant is named `{name}`: names are unique, of a-z A-Z 0-9 - _ . only");
            uncarried.push(Uncarried::differs("t_tenant.tenant", &tenant.tenant, why, "Let executors name that."));
        }
        let parts = [tenant.name.trim(), tenant.remark.trim()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        tenants.push(ImportTenant { name: name.clone(), description: parts.join("\n") });
        names.insert(tenant.id, name);
    }
    (tenants, names)
}

/// A name of a tenant or an app that is not taken yet.
fn unique_plain(name: &str, id: i64, taken: &mut HashSet<String>) -> String {
    let fit = plain_name(name, &format!("id-{id}"));
    if taken.insert(fit.clone()) {
        return fit;
    }
    let suffix = format!("-{id}");
    let head: String = fit.chars().take(64usize.saturating_sub(suffix.len())).collect();
    let name = head + &suffix;
    taken.insert(name.clone());
    name
}

fn apps(read: &ForeignHorace, names: &BTreeMap<i64, String>) -> (Vec<ImportApp>, BTreeMap<i64, Place>) {
    let (mut apps, mut places) = (Vec::new(), BTreeMap::new());
    let mut taken: HashMap<i64, HashSet<String>> = HashMap::new();
    for app in &read.apps {
        let Some(tenant) = names.get(&app.tenant_id) else { continue };
        let name = unique_plain(&app.app_name, app.id, taken.entry(app.tenant_id).or_default());
        let mut uncarried = Vec::new();
        if name != app.app_name {
            let why = format!("the app is named `{name}`: names are unique, of a-z A-Z 0-9 - _ . only");
            uncarried.push(Uncarried::differs("t_app.app_name", &app.app_name, why, "Let executors name that."));
        }
        let is_stopped = app.state == 2;
        if is_stopped {
            let why = "an app cannot be stopped as a whole: none of its tasks is started";
            uncarried.push(Uncarried::note("t_app.state", app.state, why, "Start its tasks when it is needed again."));
        }
        apps.push(ImportApp {
            tenant: tenant.clone(),
            name: name.clone(),
            description: app.app_desc.trim().to_owned(),
            number: None,
            addresses: Vec::new(),
            uncarried,
        });
        places.insert(app.id, Place { tenant: tenant.clone(), app: name, is_stopped });
    }
    (apps, places)
}

fn tasks(read: &ForeignHorace, places: &BTreeMap<i64, Place>, options: &HoraceOptions) -> Vec<ImportTask> {
    let mut taken: HashMap<i64, HashSet<String>> = HashMap::new();
    let tasks = read.tasks.iter().filter_map(|task| {
        let place = places.get(&task.app_id)?;
        let (mut spec, mut uncarried) = spec_of(task, options.zone);
        spec.name = unique_name(&spec.name, task.id, taken.entry(task.app_id).or_default());
        if let Some(at) = task.create_time {
            uncarried.push(Uncarried::note("create_time", at, "the history of a task begins with the import", ""));
        }
        let is_stopped = place.is_stopped || uncarried.iter().any(|one| one.effect == Effect::Stops);
        let (tenant, app) = (place.tenant.clone(), place.app.clone());
        Some(ImportTask {
            origin: origin(&options.source, task.id),
            number: None,
            starts: task.run_state == 1 && !is_stopped,
            task: Entry { at: 0, tenant, app, started: false, pause_note: None, spec }.to_fields(),
            author: task.owner.trim().to_owned(),
            alarm_email: String::new(),
            glue: None,
            uncarried,
        })
    });
    tasks.collect()
}

/// A user with the tenants that it sees; one that sees none of this import is left out, and so is one whose name cannot be a
/// name here.
fn imported_user(
    user: &ForeignUser,
    read: &ForeignHorace,
    names: &BTreeMap<i64, String>,
    left_out: &mut Vec<Uncarried>,
) -> Option<ImportUser> {
    let name = user.username.trim();
    let its = read.members.iter().filter(|member| member.user_id == user.id);
    let tenants = its.filter_map(|member| names.get(&member.tenant_id));
    let grant = |tenant: &String| ImportGrant { tenant: tenant.clone(), apps: Vec::new(), role: ImportRole::Member };
    let grants: Vec<ImportGrant> = tenants.map(grant).collect();
    let why = if !is_user_name(name) {
        "names to sign in with have 1 to 64 characters out of a-z A-Z 0-9 - _ . @, a letter or digit first"
    } else if grants.is_empty() {
        "the user sees no tenant of this import"
    } else {
        let password = "passwords are not read";
        let roles = "roles are lists of pages there: the user may see, change and run tasks";
        return Some(ImportUser {
            name: name.to_owned(),
            display_name: task_name(&user.nickname, name).chars().take(100).collect(),
            disabled: user.state == 1,
            grants,
            uncarried: vec![
                Uncarried::note(
                    "t_user.password",
                    "",
                    password,
                    "Reset it, or let the user sign in by single sign-on.",
                ),
                Uncarried::differs("t_user_role.role_id", "", roles, "Grant another role where that is not meant."),
            ],
        });
    };
    left_out.push(Uncarried::differs("t_user.username", name, why, "Make an account for the user."));
    None
}

#[cfg(test)]
mod tests {
    use super::super::row::{ForeignApp, ForeignMember, ForeignTask, ForeignTenant};
    use super::*;
    use crate::domain::task::TaskSpec;
    use crate::domain::task::file::TaskFile;

    fn read() -> ForeignHorace {
        let text = str::to_owned;
        let tenant =
            |id, word| ForeignTenant { id, name: text("The ") + word, tenant: text(word), remark: String::new() };
        let app = |id, tenant_id, state| ForeignApp {
            id,
            tenant_id,
            app_name: text("orders"),
            app_desc: text("Orders"),
            state,
        };
        let task = |id, tenant_id, app_id| ForeignTask {
            id,
            tenant_id,
            app_id,
            name: text("close"),
            owner: text("ann"),
            cron: text("0 0 0 * * ?"),
            run_state: 1,
            method: format!("shop.Close{id}.handle"),
            router_strategy: 1,
            expired_strategy: 2,
            failure_strategy: 1,
            ..ForeignTask::default()
        };
        let user = |id, name| ForeignUser { id, username: text(name), nickname: text("Ann A."), state: 0 };
        let member = |user_id, tenant_id| ForeignMember { user_id, tenant_id };
        ForeignHorace {
            tenants: vec![tenant(1, "shop"), tenant(2, "门店")],
            apps: vec![app(10, 1, 1), app(20, 2, 2)],
            tasks: vec![task(100, 1, 10), task(101, 1, 10), task(200, 2, 20), task(300, 3, 30)],
            users: vec![user(5, "ann"), user(6, "idle")],
            members: vec![member(5, 1), member(5, 2), member(6, 9)],
        }
    }

    fn options(tenants: &[&str]) -> HoraceOptions {
        let tenants = tenants.iter().map(ToString::to_string).collect();
        HoraceOptions { source: "old".to_owned(), zone: Tz::Asia__Shanghai, tenants }
    }

    #[test]
    fn tenants_apps_tasks_and_users_come_over() {
        let document = document(&read(), &options(&[])).unwrap();
        let file = TaskFile::read(&document.task_file(), &TaskSpec::default(), "");
        assert_eq!(file.refused, []);
        let names: Vec<_> = file.entries.iter().map(Entry::full_name).collect();
        assert_eq!(names, ["shop/orders/close", "shop/orders/close #101", "id-2/orders/close"]);
        let starts: Vec<_> = document.tasks.iter().map(|task| (task.origin.as_str(), task.starts)).collect();
        assert_eq!(
            starts,
            [("old#100", true), ("old#101", true), ("old#200", false)],
            "the app of the last is stopped"
        );
        let tenants: Vec<_> = document.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
        assert_eq!(tenants, ["shop", "id-2"]);
        let [ann] = &document.users[..] else { panic!("one sees a tenant") };
        assert_eq!((ann.name.as_str(), ann.display_name.as_str(), ann.grants.len()), ("ann", "Ann A.", 2));
        let said: Vec<_> = document.uncarried.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(said, ["t_tenant.tenant", "t_task.app_id", "t_user.username"]);
    }

    #[test]
    fn only_the_tenants_that_are_asked_for() {
        let document = document(&read(), &options(&["shop"])).unwrap();
        assert_eq!((document.tenants.len(), document.apps.len(), document.tasks.len()), (1, 1, 2));
        let refused = super::document(&read(), &options(&["x"])).unwrap_err().to_string();
        assert_eq!(refused, "there is no tenant `x`; there are: shop, 门店");
    }
}
