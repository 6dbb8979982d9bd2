//! Parents that entries name: each must be there, or come with the file, and none may follow
//! itself, by links of the file and of the tasks that are there.

use super::step::{Action, Name, Step};
use crate::domain::links::{cycle, knots};
use crate::domain::{AccessScope, FieldError, FieldRefusal, Owner, TaskId};
use crate::store::{Result, SqlStore, StoreErrorKind, TaskFilter};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Names of a cycle that are told at most.
const NAMES_MAX: usize = 20;

/// A file, and what its caller may know.
pub struct File<'a> {
    pub steps: &'a [Step],
    pub scopes: &'a HashMap<(String, String), Owner>,
    /// Tasks of the file that are refused themselves.
    pub broken: &'a HashSet<String>,
    /// Parents (place of the entry, place in its list) that are absent to the caller.
    pub hidden: &'a HashSet<(usize, usize)>,
    /// Tasks that the caller may read.
    pub reads: &'a AccessScope,
}

/// Refuses parents that are neither there nor in the file, and cycles, each once.
pub async fn refuse(store: &SqlStore, file: &File<'_>, refused: &mut Vec<FieldError>) -> Result<()> {
    let File { steps, scopes, broken, hidden, .. } = *file;
    let mut ids: HashMap<Name, TaskId> = steps.iter().map(|step| (name_of(step), step.action.id())).collect();
    find_others(store, steps, scopes, &mut ids).await?;
    let mut links: HashMap<&str, Vec<(TaskId, TaskId)>> = HashMap::new();
    for (number, step) in steps.iter().enumerate().filter(|(_, step)| needs_look(step)) {
        for (at, link) in step.entry.spec.parents.iter().enumerate() {
            let name = parent_of(step, &link.task);
            let Some(parent) = ids.get(&name).filter(|_| !hidden.contains(&(number, at))) else {
                if broken.contains(&format!("{}/{}/{}", name.0, name.1, name.2)) {
                    continue;
                }
                let refusal = FieldRefusal::NoTaskInFile { name: link.task.clone() };
                refused.push(step.entry.refusal(&format!("parents[{at}].task"), refusal));
                continue;
            };
            links.entry(&step.entry.tenant).or_default().push((step.action.id(), *parent));
        }
    }
    // Parents stay, but it begins to ask for their output, which its caller may not see.
    let kept = hidden.iter().filter(|(number, _)| !needs_look(&steps[*number]));
    for (number, at) in kept.copied().collect::<BTreeSet<_>>() {
        let entry = &steps[number].entry;
        let refusal = FieldRefusal::NoTaskInFile { name: entry.spec.parents[at].task.clone() };
        refused.push(entry.refusal(&format!("parents[{at}].task"), refusal));
    }
    let redefined: HashSet<TaskId> =
        steps.iter().filter(|step| needs_look(step)).map(|step| step.action.id()).collect();
    for (tenant, mut links) in links {
        let Some((_, owner)) = scopes.iter().find(|((name, _), _)| name == tenant) else { continue };
        let present = store.links_of_tenant(owner.tenant_id).await?;
        links.extend(present.into_iter().filter(|(child, _)| !redefined.contains(child)));
        let knots = knots(&links);
        if knots.is_empty() {
            continue;
        }
        let mut told = HashSet::new();
        for step in steps.iter().filter(|step| needs_look(step) && step.entry.tenant == tenant) {
            if told.contains(&step.action.id()) {
                continue;
            }
            if let Some(way) = cycle(&knots, step.action.id()) {
                let names = names(store, file, &way[..way.len().min(NAMES_MAX)]).await?.join(" after ");
                let more = if way.len() > NAMES_MAX { " after …" } else { "" };
                refused.push(step.entry.refusal("parents", FieldRefusal::FollowsItself { way: names + more }));
                told.extend(way);
            }
        }
    }
    Ok(())
}

/// Whether a step sets parents: what stays as it is was looked at before.
fn needs_look(step: &Step) -> bool {
    match &step.action {
        Action::Create(..) => !step.entry.spec.parents.is_empty(),
        Action::Change(before, _) => before.spec.parents != step.entry.spec.parents,
        Action::Keep(_) => false,
    }
}

/// Finds the ids of parents that are not in the file.
async fn find_others(
    store: &SqlStore,
    steps: &[Step],
    scopes: &HashMap<(String, String), Owner>,
    ids: &mut HashMap<Name, TaskId>,
) -> Result<()> {
    let mut others: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for step in steps.iter().filter(|step| needs_look(step)) {
        for link in &step.entry.spec.parents {
            let parent = parent_of(step, &link.task);
            if !ids.contains_key(&parent) {
                let (tenant, app, name) = parent;
                others.entry((tenant, app)).or_default().push(name);
            }
        }
    }
    for (place, mut names) in others {
        let owner = match scopes.get(&place) {
            Some(owner) => *owner,
            None => match store.owner(&AccessScope::All, &place.0, &place.1).await {
                Ok(owner) => owner,
                Err(error) if error.kind() == StoreErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            },
        };
        names.sort();
        names.dedup();
        for task in store.tasks_named(owner, &names).await? {
            ids.insert((task.tenant, task.app, task.spec.name), task.id);
        }
    }
    Ok(())
}

fn name_of(step: &Step) -> Name {
    (step.entry.tenant.clone(), step.entry.app.clone(), step.entry.spec.name.clone())
}

/// `task` of the entry's app, or `app/task`.
fn parent_of(step: &Step, task: &str) -> Name {
    let (app, name) = task.split_once('/').unwrap_or((&step.entry.app, task));
    (step.entry.tenant.clone(), app.to_owned(), name.to_owned())
}

/// A task that the caller may not read is part of a cycle without a name.
async fn names(store: &SqlStore, File { steps, reads, .. }: &File<'_>, ids: &[TaskId]) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(step) = steps.iter().find(|step| step.action.id() == *id) {
            names.push(step.entry.spec.name.clone());
            continue;
        }
        let filter = TaskFilter { id: Some(*id), limit: 1, ..TaskFilter::default() };
        let found = store.list_tasks(reads, &filter).await?.into_iter().next();
        names.push(found.map_or_else(|| "…".to_owned(), |task| task.spec.name));
    }
    Ok(names)
}
