//! Scripts of tasks: texts that executors of xxl-job run in place of a handler.

use super::input::{etag, if_match, parse_id, refuse_stale};
use super::operation::{Operation, get, put};
use super::problem::Problem;
use super::tasks::{Changes, find};
use super::{Api, body};
use crate::auth::Caller;
use crate::definitions::NotRevoked;
use crate::domain::choice::Enumerated as _;
use crate::domain::xxljob::{GlueType, check_script};
use crate::domain::{AccessScope, Action, Owner, Permission, Refusal, TaskId};
use crate::store::{AppFilter, NewScript, ScriptEdit, ScriptVersion, TaskView};
use actix_web::{HttpRequest, HttpResponse, web};
use carillon_protocol::sign::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Longest name of an author that is kept, characters.
const AUTHOR_CHARS_MAX: usize = 128;

/// Operations of this resource.
pub fn operations() -> Vec<Operation> {
    use Permission as P;
    vec![
        get("/tasks/{id}/script", "show_script", P::ScriptsRead, "The script of a task")
            .says("Of a task that calls a handler: the type `BEAN`, and no text.")
            .answers::<Script>(200, "The script")
            .to(show),
        put("/tasks/{id}/script", Action::PutScript, P::ScriptsEdit, "Write the script of a task")
            .says(
                "Its runs are this script from then on, and executors of xxl-job run it; runs of the script before are revoked \
                 before the response. The type `BEAN` makes them calls of the task's handler again. The same type and text as \
                 before change nothing. The last 30 versions are kept; to restore one, write it again.",
            )
            .if_match()
            .body::<NewScriptInput>()
            .answers::<ChangedScript>(200, "The script, and the runs that could not be revoked")
            .to(write),
        get("/tasks/{id}/script/versions", "list_script_versions", P::ScriptsRead, "Versions of a task's script, the newest first")
            .says("The last 30, also of a task that calls its handler again; without their texts.")
            .answers::<ScriptVersions>(200, "The versions")
            .to(versions),
        get(
            "/tasks/{id}/script/versions/{version}",
            "show_script_version",
            P::ScriptsRead,
            "A version of a task's script, with its text",
        )
        .answers::<Script>(200, "The version")
        .to(version),
    ]
}

/// A script to write.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewScript)]
struct NewScriptInput {
    /// What it is for.
    glue_type: GlueType,
    /// The text, up to 60,000 bytes.
    #[serde(default)]
    #[schema(max_length = 60_000)]
    source: String,
    /// What its author says of it.
    #[serde(default)]
    #[schema(max_length = 128)]
    remark: String,
    /// When it was written, epoch ms, for versions from elsewhere; now at the latest, which is the default.
    #[serde(default)]
    updated_at: Option<i64>,
}

/// The script of a task, or a version of it.
#[derive(Serialize, ToSchema)]
struct Script {
    #[serde(flatten)]
    head: ScriptHead,
    /// The text.
    source: String,
    /// Of the task; increases with every change of it.
    revision: i64,
}

/// A version of a script.
#[derive(Serialize, ToSchema)]
#[schema(as = ScriptVersion)]
struct ScriptHead {
    /// Number of the version, from 1; 0 where there is none.
    version: i64,
    /// What it is for.
    glue_type: GlueType,
    /// What its author said of it.
    remark: String,
    /// Who wrote it.
    author: String,
    /// When, epoch ms; executors know the version by it.
    updated_at: i64,
}

/// Versions of a script.
#[derive(Serialize, ToSchema)]
struct ScriptVersions {
    /// The newest first, 30 at most.
    items: Vec<ScriptHead>,
}

/// A script that was written.
#[derive(Serialize, ToSchema)]
struct ChangedScript {
    /// The script.
    script: Script,
    /// Logs of runs that are still running.
    running: Vec<String>,
    /// Logs of runs whose executor could not be asked; they may still start.
    unreachable: Vec<String>,
}

impl From<ScriptVersion> for ScriptHead {
    fn from(from: ScriptVersion) -> Self {
        let ScriptVersion { version, glue_type, remark, author, updated_at } = from;
        Self { version, glue_type, remark, author, updated_at }
    }
}

async fn show(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let task = find(&api, &caller, Permission::ScriptsRead, parse_id("id", &id)?).await?;
    let script = Current::of(&api, &task).await?.shown(task.revision);
    Ok(HttpResponse::Ok().insert_header(etag(task.revision)).json(script))
}

async fn write(
    api: web::Data<Api>,
    caller: Caller,
    id: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let NewScriptInput { glue_type, source, remark, updated_at } = body::json(payload).await?;
    let now = api.engine.clock.now_ms();
    let wrong = check_script(glue_type, &source, &remark);
    if !wrong.is_empty() {
        return Err(Problem::fields(wrong));
    }
    let before = find(&api, &caller, Permission::ScriptsEdit, parse_id("id", &id)?).await?;
    refuse_stale(if_match(&request)?, before.revision)?;
    let mut changes = Changes::of(&api, &caller);
    let (task_id, spec, activity) = (before.id, before.spec.clone(), before.activity.clone());
    let wanted = Wanted { glue_type, source, remark, updated_at: updated_at.map_or(now, |at| at.clamp(0, now)) };
    let Some(edit) = wanted.edit(&api, &caller, &before).await? else {
        let script = Current::of(&api, &before).await?.shown(before.revision);
        let answer = ChangedScript { script, running: Vec::new(), unreachable: Vec::new() };
        return Ok(HttpResponse::Ok().insert_header(etag(before.revision)).json(answer));
    };
    changes.edit(Action::PutScript, before, spec, activity).await?;
    edit.add_to(&mut changes);
    let not_revoked = changes.make().await?.into_iter().next().unwrap_or_default();
    let task = find(&api, &caller, Permission::ScriptsEdit, task_id).await?;
    let NotRevoked { running, unreachable, .. } = not_revoked;
    let script = Current::of(&api, &task).await?.shown(task.revision);
    let answer = ChangedScript { script, running, unreachable };
    Ok(HttpResponse::Ok().insert_header(etag(task.revision)).json(answer))
}

async fn versions(api: web::Data<Api>, caller: Caller, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let task = find(&api, &caller, Permission::ScriptsRead, parse_id("id", &id)?).await?;
    let items = api.store.script_versions(task.owner.tenant_id, task.id).await?;
    Ok(HttpResponse::Ok().json(ScriptVersions { items: items.into_iter().map(ScriptHead::from).collect() }))
}

async fn version(
    api: web::Data<Api>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, Problem> {
    let (id, number) = path.into_inner();
    let task = find(&api, &caller, Permission::ScriptsRead, parse_id("id", &id)?).await?;
    let kept = api.store.script_versions(task.owner.tenant_id, task.id).await?;
    let gone = || Refusal::not_found("version", &number);
    let head = kept.into_iter().find(|kept| kept.version.to_string() == number).ok_or_else(gone)?;
    let source = api.store.script_source(task.owner.tenant_id, task.id, head.version).await?.ok_or_else(gone)?;
    Ok(HttpResponse::Ok().json(Script { head: head.into(), source, revision: task.revision }))
}

/// What a task is now.
struct Current {
    head: Option<ScriptVersion>,
    source: String,
}

impl Current {
    async fn of(api: &Api, task: &TaskView) -> Result<Self, Problem> {
        if task.script == 0 {
            return Ok(Self { head: None, source: String::new() });
        }
        let kept = api.store.script_versions(task.owner.tenant_id, task.id).await?;
        let head = kept.into_iter().find(|kept| kept.version == task.script);
        let source = api.store.script_source(task.owner.tenant_id, task.id, task.script).await?;
        // Written again since the task was read, more than thirty times, or deleted with it.
        let (Some(head), Some(source)) = (head, source) else {
            return Err(Refusal::changed("task", &task.spec.name).into());
        };
        Ok(Self { head: Some(head), source })
    }

    fn glue_type(&self) -> GlueType {
        self.head.as_ref().map_or(GlueType::Bean, |head| head.glue_type)
    }

    fn shown(self, revision: i64) -> Script {
        let none = || ScriptHead {
            version: 0,
            glue_type: GlueType::Bean,
            remark: String::new(),
            author: String::new(),
            updated_at: 0,
        };
        Script { head: self.head.map_or_else(none, ScriptHead::from), source: self.source, revision }
    }
}

/// A script that somebody wants a task to be; it is checked.
pub struct Wanted {
    /// What it is for; [`GlueType::Bean`] is none.
    pub glue_type: GlueType,
    /// The text.
    pub source: String,
    /// What its author says of it.
    pub remark: String,
    /// When it was written, epoch ms.
    pub updated_at: i64,
}

/// What is to be written of a script, and what the audit keeps of that: no text, which may hold secrets.
pub struct WantedEdit {
    edit: ScriptEdit,
    before: Option<Value>,
    after: Option<Value>,
}

impl Wanted {
    /// What there is to write where the caller may; none if the task is that already.
    pub async fn edit(self, api: &Api, caller: &Caller, task: &TaskView) -> Result<Option<WantedEdit>, Problem> {
        let current = Current::of(api, task).await?;
        if (current.glue_type(), &current.source) == (self.glue_type, &self.source) {
            return Ok(None);
        }
        let before = current.head.map(|head| kept(head.glue_type, &current.source, &head.remark));
        self.edit_of(api, caller, (task.id, task.owner), before).await.map(Some)
    }

    /// The same of a task that is being made.
    pub async fn edit_of_new(
        self,
        api: &Api,
        caller: &Caller,
        task: (TaskId, Owner),
    ) -> Result<Option<WantedEdit>, Problem> {
        if !self.glue_type.is_script() {
            return Ok(None);
        }
        self.edit_of(api, caller, task, None).await.map(Some)
    }

    async fn edit_of(
        self,
        api: &Api,
        caller: &Caller,
        (task_id, owner): (TaskId, Owner),
        before: Option<Value>,
    ) -> Result<WantedEdit, Problem> {
        if !caller.access.holds(Permission::ScriptsEdit, owner.tenant_id, owner.app_id) {
            return Err(Problem::forbidden(Permission::ScriptsEdit));
        }
        if self.glue_type.is_script() {
            refuse_app(api, owner).await?;
        }
        let Self { glue_type, source, remark, updated_at } = self;
        let after = glue_type.is_script().then(|| kept(glue_type, &source, &remark));
        let author: String = caller.actor.name.chars().take(AUTHOR_CHARS_MAX).collect();
        let new = NewScript { glue_type, source, remark, author, updated_at };
        let new = if glue_type.is_script() { vec![new] } else { Vec::new() };
        Ok(WantedEdit { edit: ScriptEdit { task_id, tenant_id: owner.tenant_id, new }, before, after })
    }
}

impl WantedEdit {
    /// Adds it to the changes, whose last one is of the same task.
    pub fn add_to(self, changes: &mut Changes<'_>) {
        changes.write_script(self.edit, self.before, self.after);
    }
}

/// Refuses scripts where the app does not allow them, or has no executors that run any.
async fn refuse_app(api: &Api, owner: Owner) -> Result<(), Problem> {
    let filter = AppFilter { id: Some(owner.app_id), limit: 1, ..AppFilter::default() };
    let app = api.store.list_apps(&AccessScope::tenant(owner.tenant_id), &filter).await?.into_iter().next();
    let app = app.ok_or_else(|| Refusal::not_found("app", owner.app_id))?;
    if !app.scripts {
        return Err(Refusal::ScriptsNotAllowed { app: app.name }.into());
    }
    if !api.store.has_token(owner, api.engine.clock.now_ms()).await? {
        return Err(Refusal::NoPlainExecutors { app: app.name }.into());
    }
    Ok(())
}

/// What the audit keeps of a script.
fn kept(glue_type: GlueType, source: &str, remark: &str) -> Value {
    let (bytes, sha256) = (source.len(), sha256_hex(source.as_bytes()));
    json!({ "glue_type": glue_type.word(), "bytes": bytes, "sha256": sha256, "remark": remark })
}
