//! Which task here each task of a document is, and how it is named: by its origin, whatever it is named by now.

use super::here::{Task, Tenant};
use crate::domain::import::{Effect, ImportDocument, ImportTask, unique_name};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A task of the document, with its place here.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each says something of its own
pub struct Planned {
    /// Its identity there.
    pub origin: String,
    /// Its number there.
    pub number: Option<i32>,
    /// Whether it ran by itself there, and is to do so here.
    pub starts: bool,
    /// Whether it may be started at all: it does what the job did.
    pub may_start: bool,
    /// Its id, if it was imported before.
    pub id: Option<String>,
    /// It is started or paused here: it is left as it is.
    pub is_used: bool,
    /// A task that was not imported has the name that this one would have. It may be this one, if an import broke off.
    pub meets: bool,
    /// Who is responsible for it.
    pub author: String,
    /// Where alarms went.
    pub alarm_email: String,
    /// The entry of the task file.
    pub entry: Map<String, Value>,
}

impl Planned {
    /// A text of the entry.
    pub fn text(&self, field: &str) -> &str {
        text(&self.entry, field)
    }

    /// `tenant/app/name`.
    pub fn full_name(&self) -> String {
        ["tenant", "app", "name"].map(|field| self.text(field)).join("/")
    }
}

fn text<'a>(entry: &'a Map<String, Value>, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// App and name of each task that this one follows, of its own tenant.
pub fn parents(entry: &Map<String, Value>) -> impl Iterator<Item = (&str, &str)> {
    let parents = entry.get("parents").and_then(Value::as_array).into_iter().flatten();
    parents.filter_map(|parent| {
        let name = parent["task"].as_str()?;
        Some(name.split_once('/').unwrap_or((text(entry, "app"), name)))
    })
}

/// Tenant, app and name, as the document has them.
type Named = (String, String, String);

fn named(task: &ImportTask) -> Named {
    let [tenant, app, name] = ["tenant", "app", "name"].map(|field| text(&task.task, field).to_owned());
    (tenant, app, name)
}

/// The tasks of a document, in its order. New ones get a name that no other task has, unless they are `adopted`: those are the tasks
/// that have their names.
pub fn plan(document: &ImportDocument, here: &BTreeMap<String, Tenant>, adopted: &HashSet<String>) -> Vec<Planned> {
    let mut names = Names::of(here);
    let mut places: HashMap<Named, (String, String)> = HashMap::new();
    let mut planned = Vec::with_capacity(document.tasks.len());
    for task in &document.tasks {
        let (tenant, app, name) = named(task);
        let known = known(task, here);
        let meets = known.is_none() && names.unimported.contains(&(tenant.clone(), app.clone(), name.clone()));
        let place = match &known {
            Some((_, known)) => (known.app.clone(), known.name.clone()),
            None if meets && adopted.contains(&task.origin) => (app.clone(), name.clone()),
            None => {
                let taken = names.taken.entry((tenant.clone(), app.clone())).or_default();
                (app.clone(), unique_name(&name, id_of(&task.origin), taken))
            }
        };
        let mut entry = task.task.clone();
        entry.insert("app".to_owned(), place.0.clone().into());
        entry.insert("name".to_owned(), place.1.clone().into());
        places.insert((tenant, app, name), place);
        let is_whole = task.glue.is_none() || known.as_ref().is_some_and(|(_, known)| known.is_script);
        planned.push(Planned {
            origin: task.origin.clone(),
            number: task.number,
            starts: task.starts && is_whole,
            may_start: is_whole && task.uncarried.iter().all(|one| one.effect != Effect::Stops),
            is_used: known.as_ref().is_some_and(|(_, known)| known.is_used),
            id: known.map(|(id, _)| id),
            meets,
            author: task.author.clone(),
            alarm_email: task.alarm_email.clone(),
            entry,
        });
    }
    for (one, task) in planned.iter_mut().zip(&document.tasks) {
        name_parents(one, &named(task), &places);
    }
    planned
}

/// Names of the tasks that are there.
struct Names {
    /// By tenant and app.
    taken: HashMap<(String, String), HashSet<String>>,
    /// Those of tasks without an origin.
    unimported: HashSet<Named>,
}

impl Names {
    fn of(here: &BTreeMap<String, Tenant>) -> Self {
        let mut names = Self { taken: HashMap::new(), unimported: HashSet::new() };
        for (tenant, here) in here {
            let imported: HashSet<&String> = here.origins.values().collect();
            for (id, task) in &here.tasks {
                let Task { app, name, .. } = task;
                names.taken.entry((tenant.clone(), app.clone())).or_default().insert(name.clone());
                if !imported.contains(id) {
                    names.unimported.insert((tenant.clone(), app.clone(), name.clone()));
                }
            }
        }
        names
    }
}

/// The task here that was imported as this one.
fn known(task: &ImportTask, here: &BTreeMap<String, Tenant>) -> Option<(String, Task)> {
    let here = here.get(text(&task.task, "tenant"))?;
    let id = here.origins.get(&task.origin)?;
    Some((id.clone(), here.tasks.get(id)?.clone()))
}

/// The id in an origin.
pub fn id_of(origin: &str) -> i64 {
    origin.rsplit('#').next().and_then(|id| id.parse().ok()).unwrap_or_default()
}

/// Parents by the names that they have here; the document names those of its own app without the app.
fn name_parents(planned: &mut Planned, (tenant, of_app, _): &Named, places: &HashMap<Named, (String, String)>) {
    let app_here = planned.text("app").to_owned();
    let parents = planned.entry.get_mut("parents").and_then(Value::as_array_mut);
    for parent in parents.into_iter().flatten().filter_map(|parent| parent.get_mut("task")) {
        let Some(text) = parent.as_str() else { continue };
        let (app, name) = text.split_once('/').unwrap_or((of_app.as_str(), text));
        if let Some((app, name)) = places.get(&(tenant.clone(), app.to_owned(), name.to_owned())) {
            *parent = if *app == app_here { name.clone().into() } else { format!("{app}/{name}").into() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::import::{ForeignKind, ImportTenant};
    use serde_json::json;

    fn document(tasks: &[(i64, &str, &str, &[&str])]) -> ImportDocument {
        let tasks = tasks.iter().map(|(id, app, name, parents)| {
            let parents: Vec<_> = parents.iter().map(|parent| json!({ "task": parent, "on": "success" })).collect();
            let Value::Object(task) = json!({ "tenant": "shop", "app": app, "name": name, "parents": parents }) else {
                unreachable!("it is an object")
            };
            ImportTask {
                origin: format!("old#{id}"),
                number: i32::try_from(*id).ok(),
                starts: true,
                task,
                author: String::new(),
                alarm_email: String::new(),
                glue: None,
                uncarried: Vec::new(),
            }
        });
        ImportDocument {
            version: 1,
            kind: ForeignKind::XxlJob,
            releases: String::new(),
            source: "old".to_owned(),
            time_zone: "UTC".to_owned(),
            tenants: vec![ImportTenant { name: "shop".to_owned(), description: String::new() }],
            apps: Vec::new(),
            tasks: tasks.collect(),
            users: Vec::new(),
            uncarried: Vec::new(),
        }
    }

    fn here(tasks: &[(&str, &str, &str, Option<&str>)]) -> BTreeMap<String, Tenant> {
        let mut here = Tenant { id: Some("1".to_owned()), ..Tenant::default() };
        for (id, app, name, origin) in tasks {
            let task = Task { app: (*app).to_owned(), name: (*name).to_owned(), ..Task::default() };
            here.tasks.insert((*id).to_owned(), task);
            here.origins.extend(origin.map(|origin| (origin.to_owned(), (*id).to_owned())));
        }
        BTreeMap::from([("shop".to_owned(), here)])
    }

    fn names(planned: &[Planned]) -> Vec<String> {
        planned.iter().map(Planned::full_name).collect()
    }

    #[test]
    fn a_task_is_known_by_its_origin_whatever_it_is_named() {
        let document = document(&[
            (7, "orders", "close", &[]),
            (8, "stock", "count", &["orders/close"]),
            (9, "orders", "x", &["close"]),
        ]);
        let planned = plan(&document, &here(&[("70", "orders", "close the day", Some("old#7"))]), &HashSet::new());
        assert_eq!(names(&planned), ["shop/orders/close the day", "shop/stock/count", "shop/orders/x"]);
        assert_eq!(planned.iter().map(|one| one.id.as_deref()).collect::<Vec<_>>(), [Some("70"), None, None]);
        assert_eq!(planned[1].entry["parents"][0]["task"], "orders/close the day");
        assert_eq!(planned[2].entry["parents"][0]["task"], "close the day");
    }

    #[test]
    fn a_name_that_another_task_has_is_made_another() {
        let document = document(&[(7, "orders", "close", &[]), (8, "orders", "count", &[])]);
        let here = here(&[("70", "orders", "close", None), ("80", "orders", "count", Some("old#5"))]);
        let planned = plan(&document, &here, &HashSet::new());
        assert_eq!(names(&planned), ["shop/orders/close #7", "shop/orders/count #8"]);
        assert_eq!(planned.iter().map(|one| one.meets).collect::<Vec<_>>(), [true, false]);
        // What an import that broke off has made is taken for what it is.
        let adopted = HashSet::from(["old#7".to_owned()]);
        assert_eq!(names(&plan(&document, &here, &adopted)), ["shop/orders/close", "shop/orders/count #8"]);
    }

    #[test]
    fn a_task_that_is_gone_is_new() {
        let document = document(&[(7, "orders", "close", &[])]);
        let mut here = here(&[]);
        here.get_mut("shop").unwrap().origins.insert("old#7".to_owned(), "70".to_owned());
        assert_eq!(plan(&document, &here, &HashSet::new())[0].id, None);
    }
}
