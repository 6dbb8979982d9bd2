//! From a task file to the changes that it asks for: everything that the database knows better
//! than the file (who is there, what runs after what) is looked at before anything is changed,
//! and every refusal is named at once.

mod parents;
mod quotas;
mod step;

use crate::definitions::change_of;
use crate::domain::task::file::{Entry, TaskFile};
use crate::domain::task::{FieldChange, ScheduleKind, diff};
use crate::domain::{AccessScope, AppId, FieldError, FieldRefusal, Owner, TaskId, TenantId};
use crate::store::{Activity, NewTask, Result, SqlStore, StoreErrorKind, TaskChange, TaskView};
use std::collections::{BTreeMap, HashMap, HashSet};

use step::Name;
pub use step::{Action, Step};

/// The place of a task whose app is not there.
const NOWHERE: Owner = Owner { tenant_id: TenantId::NONE, app_id: AppId::NONE };

/// What a file asks for, before its parents are looked at.
pub struct Draft {
    /// What to do about each entry, in their order.
    pub steps: Vec<Step>,
    refused: Vec<FieldError>,
    broken: HashSet<String>,
    scopes: HashMap<(String, String), Owner>,
}

impl Draft {
    /// With its parents. Those that are `hidden` (place of the entry, place in its list) count as absent; tasks that are
    /// not in `reads` are not named.
    ///
    /// # Errors
    /// The database's; what the file has wrong is no error, but [`Planned::Refused`].
    pub async fn with_parents(
        self,
        store: &SqlStore,
        hidden: &HashSet<(usize, usize)>,
        reads: &AccessScope,
    ) -> Result<Planned> {
        let Self { steps, mut refused, broken, scopes } = self;
        let file = parents::File { steps: &steps, scopes: &scopes, broken: &broken, hidden, reads };
        parents::refuse(store, &file, &mut refused).await?;
        Ok(if refused.is_empty() { Planned::Steps(steps) } else { Planned::Refused(refused) })
    }
}

/// What a file asks for.
#[derive(Debug)]
pub enum Planned {
    /// What to do about each entry, in their order.
    Steps(Vec<Step>),
    /// Everything that is refused.
    Refused(Vec<FieldError>),
}

/// What to write, of all steps.
#[must_use]
pub fn changes_of(steps: &[Step]) -> (Vec<NewTask>, Vec<TaskChange>) {
    let (mut new, mut changes) = (Vec::new(), Vec::new());
    for Step { entry, action, .. } in steps {
        let spec = entry.spec.clone();
        match action {
            Action::Create(id, owner) => new.push(NewTask { id: *id, owner: *owner, spec, activity: activity(entry) }),
            Action::Change(before, _) => changes.push(change_of((**before).clone(), spec, activity(entry))),
            Action::Keep(_) => {}
        }
    }
    (new, changes)
}

/// Compares a file with what is there.
///
/// # Errors
/// The database's; what the file has wrong is no error, but refused with [`Draft::with_parents`].
pub async fn plan(
    store: &SqlStore,
    access_scope: &AccessScope,
    file: TaskFile,
    new_id: impl Fn() -> TaskId,
    now: i64,
) -> Result<Draft> {
    let TaskFile { entries, broken, mut refused, elsewhere: _ } = file;
    let scopes = scopes(store, access_scope, &entries, &mut refused).await?;
    refuse_calendars(store, &entries, &scopes, &mut refused).await?;
    let mut present = present(store, &entries, &scopes).await?;
    let quotas = quotas::of(store, &scopes).await?;
    let mut steps = Vec::with_capacity(entries.len());
    for entry in entries {
        let name = (entry.tenant.clone(), entry.app.clone(), entry.spec.name.clone());
        let action = match present.remove(&name) {
            // A file with an app that is not there is refused as a whole.
            None => Action::Create(new_id(), scopes.get(&(name.0, name.1)).copied().unwrap_or(NOWHERE)),
            Some(task) => match changes(&task, &entry) {
                changes if changes.is_empty() => Action::Keep(Box::new(task)),
                changes => Action::Change(Box::new(task), changes),
            },
        };
        let per_minute = quotas.get(&entry.tenant).map_or(0, |(quotas, _)| quotas.max_fires_per_minute);
        let warning = warning(&entry, &action, per_minute, now);
        steps.push(Step { entry, action, warning });
    }
    quotas::refuse_too_many(&steps, &quotas, &mut refused);
    Ok(Draft { steps, refused, broken, scopes })
}

/// The ids of the tenants and apps that entries name; what is not there is refused once, at the
/// first entry that names it.
async fn scopes(
    store: &SqlStore,
    access_scope: &AccessScope,
    entries: &[Entry],
    refused: &mut Vec<FieldError>,
) -> Result<HashMap<(String, String), Owner>> {
    let mut scopes = HashMap::new();
    let mut missing: BTreeMap<(&str, &str), (&Entry, i64)> = BTreeMap::new();
    for entry in entries {
        let place = (entry.tenant.clone(), entry.app.clone());
        if scopes.contains_key(&place) {
            continue;
        }
        if let Some((_, tasks)) = missing.get_mut(&(entry.tenant.as_str(), entry.app.as_str())) {
            *tasks += 1;
            continue;
        }
        match store.owner(access_scope, &entry.tenant, &entry.app).await {
            Ok(owner) => drop(scopes.insert(place, owner)),
            Err(error) if error.kind() == StoreErrorKind::NotFound => {
                missing.insert((&entry.tenant, &entry.app), (entry, 1));
            }
            Err(error) => return Err(error),
        }
    }
    if missing.is_empty() {
        return Ok(scopes);
    }
    for ((tenant, app), (entry, tasks)) in missing {
        let is_there = !store.list_tenants(access_scope, Some(tenant), "", 1).await?.is_empty();
        refused.push(if is_there {
            let (tenant, name) = (tenant.to_owned(), app.to_owned());
            entry.refusal("app", FieldRefusal::AppMissing { tenant, name, tasks })
        } else {
            entry.refusal("tenant", FieldRefusal::TenantMissing { name: tenant.to_owned(), tasks })
        });
    }
    Ok(scopes)
}

/// A calendar that a task names must be there, also of a task that rests.
async fn refuse_calendars(
    store: &SqlStore,
    entries: &[Entry],
    scopes: &HashMap<(String, String), Owner>,
    refused: &mut Vec<FieldError>,
) -> Result<()> {
    let mut known: HashMap<(&str, &str), bool> = HashMap::new();
    for entry in entries {
        let Some(owner) = scopes.get(&(entry.tenant.clone(), entry.app.clone())) else { continue };
        if entry.spec.calendar.is_empty() {
            continue;
        }
        let (tenant, calendar) = (entry.tenant.as_str(), entry.spec.calendar.as_str());
        let is_there = match known.get(&(tenant, calendar)) {
            Some(is_there) => *is_there,
            None => store.calendar(owner.tenant_id, calendar).await?.is_some(),
        };
        known.insert((tenant, calendar), is_there);
        if !is_there {
            let (kind, name, tenant) = ("calendar".to_owned(), calendar.to_owned(), tenant.to_owned());
            refused.push(entry.refusal("calendar", FieldRefusal::NoSuchInTenant { kind, name, tenant }));
        }
    }
    Ok(())
}

/// The tasks that entries name, as they are.
async fn present(
    store: &SqlStore,
    entries: &[Entry],
    scopes: &HashMap<(String, String), Owner>,
) -> Result<HashMap<Name, TaskView>> {
    let mut names: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for entry in entries {
        names.entry((&entry.tenant, &entry.app)).or_default().push(entry.spec.name.clone());
    }
    let mut present = HashMap::new();
    for ((tenant, app), names) in names {
        let Some(owner) = scopes.get(&(tenant.to_owned(), app.to_owned())) else { continue };
        for task in store.tasks_named(*owner, &names).await? {
            present.insert((task.tenant.clone(), task.app.clone(), task.spec.name.clone()), task);
        }
    }
    Ok(present)
}

fn activity(entry: &Entry) -> Activity {
    Activity { started: entry.started, pause_note: entry.pause_note.clone() }
}

/// The state first, then the definition.
fn changes(task: &TaskView, entry: &Entry) -> Vec<FieldChange> {
    let mut changes = Vec::new();
    if task.activity.started != entry.started {
        changes.push(FieldChange::new("started", task.activity.started, entry.started));
    }
    if task.activity.pause_note != entry.pause_note {
        let (before, after) = (task.activity.pause_note.clone(), entry.pause_note.clone());
        changes.push(FieldChange::new("pause_note", before, after));
    }
    changes.extend(diff(&task.spec, &entry.spec));
    changes
}

/// What is allowed but hardly meant. A file stays applicable when the instant of a one-off has
/// passed.
fn warning(entry: &Entry, action: &Action, per_minute: i32, now: i64) -> Option<String> {
    if matches!(action, Action::Keep(_)) {
        return None;
    }
    if let Some(warning) = entry.spec.warnings(entry.started).first() {
        return Some(warning.message().to_owned());
    }
    if !entry.started {
        return None;
    }
    if entry.spec.schedule == ScheduleKind::Once && entry.spec.fire_at <= now {
        return Some("`fire_at` is in the past: the task will not fire".to_owned());
    }
    quotas::falls_behind(&entry.spec, per_minute, now)
}
