//! The task file: many tasks as one document, the same in TOML, YAML, JSON and as a body of the
//! API. It is declarative: fields that an entry omits have their defaults, whatever the task has now.

use super::fields::unknown;
use super::{ScheduleKind, TaskSpec};
use crate::domain::field_error::FieldError;
use crate::domain::refusal::FieldRefusal;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The version of the file that this release reads and writes.
pub const VERSION: i64 = 1;

/// Tasks in one file at most.
pub const TASKS_MAX: usize = 5_000;

/// Longest pause note, characters.
pub const NOTE_CHARS_MAX: usize = 1_000;

/// Fields at the top of a file.
const TOP: [&str; 5] = ["version", "tenant", "app", CLUSTERS, "task"];

/// Which clusters an entry is for.
const CLUSTERS: &str = "clusters";

/// What an entry inherits from the top.
const INHERITED: [&str; 3] = ["tenant", "app", CLUSTERS];

/// Fields of an entry other than the definition.
const BESIDE: [&str; 4] = ["tenant", "app", "started", "pause_note"];

/// A task of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its place in the file, from 0.
    pub at: usize,
    /// Tenant's name.
    pub tenant: String,
    /// App's name.
    pub app: String,
    /// Whether it runs by itself.
    pub started: bool,
    /// It is paused (and not started), and this is why.
    pub pause_note: Option<String>,
    /// The definition.
    pub spec: TaskSpec,
}

/// A file as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskFile {
    /// The tasks that are allowed as they stand.
    pub entries: Vec<Entry>,
    /// Names (`tenant/app/name`) of those that are not.
    pub broken: HashSet<String>,
    /// Everything that is not allowed.
    pub refused: Vec<FieldError>,
    /// How many tasks are for other clusters alone: they are not looked at further.
    pub elsewhere: usize,
}

impl TaskFile {
    /// Reads a file for the cluster of that name (empty: it has none); an entry is `defaults` where it says nothing.
    #[must_use]
    pub fn read(file: &Map<String, Value>, defaults: &TaskSpec, cluster: &str) -> Self {
        let mut read = Self::default();
        for name in file.keys().filter(|name| !TOP.contains(&name.as_str())) {
            let is_of_task = Entry::field_names().contains(&name.as_str());
            let of_task = || FieldRefusal::OfAnEntry;
            read.refuse(name, if is_of_task { of_task() } else { unknown(name, TOP) });
        }
        match file.get("version") {
            Some(version) if version.as_i64() == Some(VERSION) => {}
            Some(version) => {
                read.refuse("version", FieldRefusal::FileVersionUnknown { given: version.to_string(), known: VERSION });
            }
            None => read.refuse("version", FieldRefusal::FileVersionRequired { known: VERSION }),
        }
        let inherited = INHERITED.iter().filter_map(|name| Some((*name, file.get(*name)?)));
        let inherited: Map<String, Value> = inherited.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        match file.get("task") {
            None => {}
            Some(Value::Array(tasks)) if tasks.len() > TASKS_MAX => {
                let (given, most) = (tasks.len() as i64, TASKS_MAX as i64);
                read.refuse("task", FieldRefusal::TooManyInFile { given, most });
            }
            Some(Value::Array(tasks)) => read.read_tasks(tasks, &inherited, defaults, cluster),
            Some(other) => read.refuse("task", wrong_type(other, "a list of tables")),
        }
        read
    }

    fn refuse(&mut self, field: &str, refusal: FieldRefusal) {
        self.refused.push(FieldError::new(field, refusal));
    }

    fn read_tasks(&mut self, tasks: &[Value], inherited: &Map<String, Value>, defaults: &TaskSpec, cluster: &str) {
        let mut seen = HashMap::new();
        for (at, task) in tasks.iter().enumerate() {
            let Value::Object(task) = task else {
                self.refuse(&format!("task[{at}]"), wrong_type(task, "a table of fields"));
                continue;
            };
            let mut fields = inherited.clone();
            fields.extend(task.clone());
            let name = name_of(&fields);
            match fields.remove(CLUSTERS).map_or(Ok(true), |clusters| is_for(cluster, &clusters)) {
                Ok(true) => {}
                Ok(false) => {
                    self.elsewhere += 1;
                    continue;
                }
                Err(refusal) => {
                    let refused = FieldError::new(CLUSTERS, refusal);
                    self.refused.push(refused.within(&format!("task[{at}]"), name.as_deref()));
                }
            }
            if let Some(name) = &name
                && let Some(first) = seen.insert(name.clone(), at)
            {
                let twice = FieldError::new("name", FieldRefusal::TwiceInFile { first: format!("task[{first}]") });
                self.refused.push(twice.within(&format!("task[{at}]"), Some(name.as_str())));
            }
            match Entry::read(at, fields, defaults) {
                Ok(entry) => self.entries.push(entry),
                Err(refused) => {
                    self.broken.extend(name.clone());
                    let place = format!("task[{at}]");
                    self.refused.extend(refused.into_iter().map(|error| error.within(&place, name.as_deref())));
                }
            }
        }
    }
}

/// Whether what names these clusters is for this one.
fn is_for(cluster: &str, clusters: &Value) -> Result<bool, FieldRefusal> {
    let names = clusters.as_array().and_then(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    match names.filter(|names| !names.is_empty() && !names.contains(&"")) {
        None => Err(wrong_type(clusters, "a list of names")),
        // A guess would make tasks run in two places, or in none.
        Some(_) if cluster.is_empty() => Err(FieldRefusal::ClusterUnnamed),
        Some(names) => Ok(names.contains(&cluster)),
    }
}

fn wrong_type(given: &Value, allowed: &str) -> FieldRefusal {
    FieldRefusal::WrongType { given: given.to_string().chars().take(40).collect(), allowed: allowed.to_owned() }
}

/// `tenant/app/name` of an entry that may be wrong otherwise.
fn name_of(fields: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    Some(format!("{}/{}/{}", text("tenant")?, text("app")?, text("name")?))
}

impl Entry {
    fn read(at: usize, mut fields: Map<String, Value>, defaults: &TaskSpec) -> Result<Self, Vec<FieldError>> {
        let mut refused = Vec::new();
        let mut allowed = |is_allowed: bool, field: &str, refusal: FieldRefusal| {
            if !is_allowed {
                refused.push(FieldError::new(field, refusal));
            }
        };
        let [tenant, app, started, pause_note] = BESIDE.map(|name| fields.remove(name));
        for (field, value) in [("tenant", &tenant), ("app", &app), ("pause_note", &pause_note)] {
            if let Some(value) = value.as_ref().filter(|value| !value.is_string()) {
                allowed(false, field, wrong_type(value, "text (in quotes)"));
            }
        }
        if let Some(value) = started.as_ref().filter(|value| !value.is_boolean()) {
            allowed(false, "started", wrong_type(value, "true or false"));
        }
        for (field, is_there) in [
            ("tenant", tenant.is_some()),
            ("app", app.is_some()),
            ("name", fields.contains_key("name")),
            ("handler", fields.contains_key("handler")),
        ] {
            allowed(is_there, field, FieldRefusal::Required);
        }
        let text = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        let (app, pause_note) = (text(&app).unwrap_or_default(), text(&pause_note));
        let is_note = pause_note.as_ref().is_none_or(|note| note.chars().count() <= NOTE_CHARS_MAX);
        allowed(is_note, "pause_note", FieldRefusal::TooLong { most: NOTE_CHARS_MAX as i64 });
        let started = started.as_ref().and_then(Value::as_bool);
        let is_one = pause_note.is_none() || started != Some(true);
        allowed(is_one, "pause_note", FieldRefusal::NotWith { other: "started".to_owned() });
        let has_nul = |text: Option<&str>| text.is_some_and(|text| text.contains('\0'));
        allowed(!has_nul(pause_note.as_deref()), "pause_note", FieldRefusal::Nul);
        for field in ["description", "params"] {
            let text = fields.get(field).and_then(Value::as_str);
            allowed(!has_nul(text), field, FieldRefusal::Nul);
        }
        name_own_parents(&app, &mut fields);
        match defaults.read(&fields) {
            Ok(spec) if refused.is_empty() => {
                let tenant = text(&tenant).unwrap_or_default();
                Ok(Self { at, tenant, app, started: started.unwrap_or(false), pause_note, spec })
            }
            Ok(_) => Err(refused),
            Err(errors) => {
                let is_new = |error: &FieldError| refused.iter().all(|refused| refused.field != error.field);
                let errors: Vec<_> = errors.into_iter().filter(is_new).collect();
                refused.extend(errors);
                Err(refused)
            }
        }
    }

    /// `tenant/app/name`.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}/{}/{}", self.tenant, self.app, self.spec.name)
    }

    /// `refusal` about its `field`.
    #[must_use]
    pub fn refusal(&self, field: &str, refusal: FieldRefusal) -> FieldError {
        self.of(FieldError::new(field, refusal))
    }

    /// What is wrong with one of its fields, with its place in the file.
    #[must_use]
    pub fn of(&self, error: FieldError) -> FieldError {
        error.within(&format!("task[{}]", self.at), Some(&self.full_name()))
    }

    /// The fields of an entry, in the order in which a file has them.
    #[must_use]
    pub fn field_names() -> Vec<&'static str> {
        let head = ["tenant", "app", "name", "started", "pause_note"];
        head.into_iter().chain(TaskSpec::field_names().filter(|name| *name != "name")).collect()
    }

    /// The entry as a file has it: defaults are left out, except those that an installation can set
    /// otherwise; instants are readable.
    #[must_use]
    pub fn to_fields(&self) -> Map<String, Value> {
        let mut fields = self.spec.sparse();
        for field in TaskSpec::instants() {
            if let Some(value) = fields.get_mut(field) {
                *value = instant_text(value);
            }
        }
        fields.insert("time_zone".to_owned(), self.spec.time_zone.clone().into());
        // An entry with a `cron` and without a `schedule` has a cron schedule.
        if self.spec.schedule == ScheduleKind::None && !self.spec.cron.is_empty() {
            fields.insert("schedule".to_owned(), "none".into());
        }
        fields.insert("tenant".to_owned(), self.tenant.clone().into());
        fields.insert("app".to_owned(), self.app.clone().into());
        if self.started {
            fields.insert("started".to_owned(), true.into());
        }
        if let Some(note) = &self.pause_note {
            fields.insert("pause_note".to_owned(), note.clone().into());
        }
        fields
    }
}

/// `app/task` of the entry's own app is `task`: it is stored and shown so.
fn name_own_parents(app: &str, fields: &mut Map<String, Value>) {
    let parents = fields.get_mut("parents").and_then(Value::as_array_mut);
    for task in parents.into_iter().flatten().filter_map(|parent| parent.get_mut("task")) {
        let own = task.as_str().and_then(|name| name.strip_prefix(app)).and_then(|rest| rest.strip_prefix('/'));
        if let Some(own) = own.map(str::to_owned) {
            *task = own.into();
        }
    }
}

/// Epoch ms as RFC 3339 in UTC; 0 (none) and what is no instant stay as they are.
#[must_use]
pub fn instant_text(value: &Value) -> Value {
    let instant = value.as_i64().filter(|ms| *ms != 0).and_then(DateTime::from_timestamp_millis);
    instant.map_or(value.clone(), |instant| instant.to_rfc3339_opts(SecondsFormat::AutoSi, true).into())
}

#[cfg(test)]
mod tests;
