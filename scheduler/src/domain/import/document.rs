//! The document itself.

use super::names::is_plain_name;
use super::uncarried::Uncarried;
use crate::domain::choice::choice;
use crate::domain::task::file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version of the document that this release reads and writes.
pub const DOCUMENT_VERSION: i64 = 1;

/// Longest name of a source, characters.
pub const SOURCE_CHARS_MAX: usize = 64;

/// Largest number of a task that is kept: those that are counted up from it need room in 31 bits.
pub const JOB_NUMBER_MAX: i32 = 1_000_000_000;

/// Largest source text of a script, bytes.
pub const GLUE_BYTES_MAX: usize = 60_000;

/// Versions of a script that are kept: the newest ones.
pub const GLUE_VERSIONS_MAX: usize = 30;

choice! {
    /// Which scheduler a document was read of.
    ForeignKind {
        /// xxl-job.
        XxlJob,
        /// horace cron-job.
        Horace,
    }
}

choice! {
    /// What a user could do there.
    ImportRole {
        /// See, change, start, stop and run tasks of some apps.
        Member,
        /// Everything.
        Admin,
    }
}

/// What was read of another scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportDocument {
    /// [`DOCUMENT_VERSION`].
    pub version: i64,
    /// Which scheduler.
    pub kind: ForeignKind,
    /// Which releases have the schema that was found: `2.3.0 to 3.1.1`.
    pub releases: String,
    /// Name of the source, part of every [`origin`].
    pub source: String,
    /// IANA zone in which its schedules were read.
    pub time_zone: String,
    /// Tenants, in the order of their ids there.
    pub tenants: Vec<ImportTenant>,
    /// Apps, in the order of their ids there.
    pub apps: Vec<ImportApp>,
    /// Tasks, in the order of their ids there.
    pub tasks: Vec<ImportTask>,
    /// Users, in the order of their ids there.
    pub users: Vec<ImportUser>,
    /// What belongs to nothing above.
    pub uncarried: Vec<Uncarried>,
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportTenant {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
}

/// An app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportApp {
    /// Name of its tenant.
    pub tenant: String,
    /// Its name: what executors announce themselves under.
    pub name: String,
    /// For people.
    pub description: String,
    /// Number under which scripts know it there, from 1; `None` where they know none that fits 31 bits.
    pub number: Option<i32>,
    /// Addresses that a person entered there; none of executors that announce themselves.
    pub addresses: Vec<String>,
    /// What was not carried over.
    pub uncarried: Vec<Uncarried>,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportTask {
    /// Its [`origin`]: whatever its name becomes, this is the same task.
    pub origin: String,
    /// Number under which scripts know it there, from 1; `None` where they know none that fits 31 bits.
    pub number: Option<i32>,
    /// Whether it ran by itself there. An import starts nothing: the switch does, at the instant from which the other
    /// scheduler does not fire any more. So the entry below does not say `started`.
    pub starts: bool,
    /// The task as an entry of a task file.
    pub task: Map<String, Value>,
    /// Who is responsible for it.
    pub author: String,
    /// Where alarms went, addresses with commas between them.
    pub alarm_email: String,
    /// Its script, if it is one.
    pub glue: Option<ImportGlue>,
    /// What was not carried over.
    pub uncarried: Vec<Uncarried>,
}

/// The script of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportGlue {
    /// Its kind, in xxl-job's words: `GLUE_SHELL`.
    pub glue_type: String,
    /// Its versions, the oldest first and the one that runs last: up to [`GLUE_VERSIONS_MAX`].
    pub versions: Vec<GlueVersion>,
}

/// A version of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlueVersion {
    /// The text, up to [`GLUE_BYTES_MAX`] bytes.
    pub source: String,
    /// What its author said of it.
    pub remark: String,
    /// When it was saved, epoch ms; 0 when that is unknown.
    pub at: i64,
}

/// A user. Passwords are not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportUser {
    /// Name to sign in with.
    pub name: String,
    /// Name for people.
    pub display_name: String,
    /// Could not sign in there.
    pub disabled: bool,
    /// What the user could do there, and where.
    pub grants: Vec<ImportGrant>,
    /// What was not carried over.
    pub uncarried: Vec<Uncarried>,
}

/// What a user could do in a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportGrant {
    /// Name of the tenant.
    pub tenant: String,
    /// Only in these apps of the tenant; empty is all of them.
    pub apps: Vec<String>,
    /// What.
    pub role: ImportRole,
}

/// What a document cannot be made of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// The name of the source, or of the tenant.
    #[error(
        "`{name}` is no name of a {what}: 1 to {SOURCE_CHARS_MAX} characters out of a-z A-Z 0-9 - _ . are allowed, a letter or \
         digit first"
    )]
    WrongName {
        /// Of what.
        what: &'static str,
        /// As it was given.
        name: String,
    },
    /// A tenant that was asked for.
    #[error("there is no tenant `{name}`; there are: {known}")]
    NoSuchTenant {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A group that was asked for.
    #[error("there is no group `{name}`; there are: {known}")]
    NoSuchGroup {
        /// As it was given.
        name: String,
        /// Those that there are.
        known: String,
    },
}

/// The identity of something in a source: `source#id`.
#[must_use]
pub fn origin(source: &str, id: i64) -> String {
    format!("{source}#{id}")
}

/// Whether a text is an [`origin`].
#[must_use]
pub fn is_origin(text: &str) -> bool {
    let parts = text.split_once('#');
    parts.is_some_and(|(source, id)| {
        is_plain_name(source) && id.parse::<i64>().is_ok_and(|parsed| parsed.to_string() == id)
    })
}

impl SourceError {
    /// Holds the name of a source, or of a tenant, against what is allowed.
    ///
    /// # Errors
    /// It is not allowed.
    pub fn check_name(what: &'static str, name: &str) -> Result<(), Self> {
        if is_plain_name(name) { Ok(()) } else { Err(Self::WrongName { what, name: name.to_owned() }) }
    }
}

impl ImportDocument {
    /// Its tasks as a task file, none of them started: what [`file::TaskFile::read`] reads.
    #[must_use]
    pub fn task_file(&self) -> Map<String, Value> {
        let tasks: Vec<Value> = self.tasks.iter().map(|task| Value::Object(task.task.clone())).collect();
        Map::from_iter([("version".to_owned(), json!(file::VERSION)), ("task".to_owned(), Value::Array(tasks))])
    }

    /// Everything that was not carried over, with the thing that it belongs to: `task shop/orders/nightly`.
    pub fn all_uncarried(&self) -> impl Iterator<Item = (String, &Uncarried)> {
        let text =
            |task: &ImportTask, field: &str| task.task.get(field).and_then(Value::as_str).unwrap_or("?").to_owned();
        let apps = self.apps.iter().map(|app| (format!("app {}/{}", app.tenant, app.name), &app.uncarried));
        let tasks = self.tasks.iter().map(move |task| {
            let [tenant, app, name] = ["tenant", "app", "name"].map(|field| text(task, field));
            (format!("task {tenant}/{app}/{name}"), &task.uncarried)
        });
        let users = self.users.iter().map(|user| (format!("user {}", user.name), &user.uncarried));
        let rest = std::iter::once(("source".to_owned(), &self.uncarried));
        rest.chain(apps).chain(tasks).chain(users).flat_map(|(of, list)| list.iter().map(move |one| (of.clone(), one)))
    }
}
