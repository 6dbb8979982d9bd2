//! Changes of definitions, whoever asks for them: the caller's rights to them, their notes in the audit, one transaction.

use super::input::{gone, refuse_past};
use crate::api::Api;
use crate::api::parents::Parents;
use crate::api::problem::Problem;
use crate::auth::Caller;
use crate::definitions::{NotRevoked, change_of};
use crate::domain::audit::{AuditNote, Target};
use crate::domain::task::TaskSpec;
use crate::domain::{Action, Owner, Permission, Reason, TaskId};
use crate::store::{Activity, Beside, JobWords, NewTask, ScriptEdit, TaskChange, TaskView, audited_task};
use serde_json::{Value, json};

/// New definitions and changes of others that are made together, or not at all.
pub struct Changes<'a> {
    api: &'a Api,
    caller: &'a Caller,
    new: Vec<NewTask>,
    changed: Vec<TaskChange>,
    notes: Vec<AuditNote>,
    beside: Beside,
}

impl<'a> Changes<'a> {
    /// None yet.
    pub fn of(api: &'a Api, caller: &'a Caller) -> Self {
        Self { api, caller, new: Vec::new(), changed: Vec::new(), notes: Vec::new(), beside: Beside::default() }
    }

    /// A new task in an app (tenant, name) where the caller may create tasks; its definition is checked.
    pub async fn create(
        &mut self,
        id: TaskId,
        place: (&str, &str),
        spec: TaskSpec,
        activity: Activity,
    ) -> Result<Owner, Problem> {
        let needs = Permission::TasksCreate;
        let owner = self.api.owner(self.caller, needs, place.0, place.1).await?;
        self.refuse_state(owner, &Activity::default(), &activity)?;
        self.refuse_parents(needs, place, None, &spec).await?;
        let after = audited_task(&spec, &activity);
        let target = Target::task(id, &spec.name);
        let note = self.api.note(self.caller, Action::CreateTask, owner.tenant_id, target, (None, after));
        self.notes.push(note);
        self.new.push(NewTask { id, owner, spec, activity });
        Ok(owner)
    }

    /// Another definition, or state, of a task that the caller may edit; the definition is checked.
    pub async fn edit(
        &mut self,
        action: Action,
        before: TaskView,
        spec: TaskSpec,
        activity: Activity,
    ) -> Result<(), Problem> {
        self.refuse_state(before.owner, &before.activity, &activity)?;
        let place = (before.tenant.as_str(), before.app.as_str());
        self.refuse_parents(Permission::TasksEdit, place, Some(&before.spec), &spec).await?;
        let note = (audited_task(&before.spec, &before.activity), audited_task(&spec, &activity));
        let target = Target::task(before.id, &spec.name);
        self.notes.push(self.api.note(self.caller, action, before.owner.tenant_id, target, note));
        self.changed.push(change_of(before, spec, activity));
        Ok(())
    }

    /// What is kept beside the definition that was added last, before and after.
    pub fn keep(&mut self, before: &JobWords, after: JobWords) {
        if let Some(note) = self.notes.last_mut() {
            note.before = with_words(note.before.take(), before);
            note.after = with_words(note.after.take(), &after);
        }
        if *before != after {
            self.beside.words.push(after);
        }
    }

    /// What becomes of the script of the task that was added last; `before` and `after` are what the audit keeps of it.
    pub fn write_script(&mut self, edit: ScriptEdit, before: Option<Value>, after: Option<Value>) {
        if let Some(note) = self.notes.last_mut() {
            note.before = with_field(note.before.take(), "script", before.unwrap_or_default());
            note.after = with_field(note.after.take(), "script", after.unwrap_or_default());
        }
        // Runs by hand of a task that is stopped go on, as at every edit.
        if let Some(change) = self.changed.last_mut().filter(|change| change.before.id == edit.task_id) {
            change.reason = Reason::TaskEdited;
        }
        self.beside.scripts.push(edit);
    }

    /// Makes them; answers what could not be revoked of each changed task, in their order.
    pub async fn make(self) -> Result<Vec<NotRevoked>, Problem> {
        let definitions = self.api.definitions.noting_beside(self.notes, self.beside);
        Ok(definitions.apply(&self.new, &self.changed).await?)
    }

    async fn refuse_parents(
        &self,
        defines: Permission,
        place: (&str, &str),
        before: Option<&TaskSpec>,
        spec: &TaskSpec,
    ) -> Result<(), Problem> {
        let refused = Parents::new(self.api, self.caller, defines).refused(place, before, spec).await?;
        if refused.is_empty() { Ok(()) } else { Err(Problem::fields(refused)) }
    }

    /// Callers who may create or edit a task, but not start or stop it, must not do so through an edit.
    fn refuse_state(&self, owner: Owner, before: &Activity, after: &Activity) -> Result<(), Problem> {
        let needed = match after {
            after if after == before => return Ok(()),
            Activity { pause_note: Some(_), .. } => Permission::TasksPause,
            Activity { started: true, .. } => Permission::TasksStart,
            Activity { .. } => Permission::TasksStop,
        };
        if self.caller.access.holds(needed, owner.tenant_id, owner.app_id) {
            return Ok(());
        }
        Err(Problem::forbidden(needed))
    }
}

/// What the audit keeps of a task, with the words beside its definition.
fn with_words(task: Option<String>, JobWords { author, alarm_email, .. }: &JobWords) -> Option<String> {
    with_field(task, "xxl_job", json!({ "author": author, "alarm_email": alarm_email }))
}

fn with_field(task: Option<String>, name: &str, value: Value) -> Option<String> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(&task?) else { return None };
    fields.insert(name.to_owned(), value);
    Some(Value::Object(fields).to_string())
}

/// Changes one task; answers it as it is then, and what could not be revoked.
pub async fn change(
    api: &Api,
    caller: &Caller,
    action: Action,
    before: TaskView,
    spec: TaskSpec,
    activity: Activity,
) -> Result<(TaskView, NotRevoked), Problem> {
    let id = before.id;
    let mut changes = Changes::of(api, caller);
    changes.edit(action, before, spec, activity).await?;
    let not_revoked = changes.make().await?;
    let task = api.definitions.find(id).await?.ok_or_else(|| gone(id))?;
    Ok((task, not_revoked.into_iter().next().unwrap_or_default()))
}

/// Starts a task; one that is started is left alone.
pub async fn start(api: &Api, caller: &Caller, before: TaskView) -> Result<(TaskView, NotRevoked), Problem> {
    if before.activity.started {
        return Ok((before, NotRevoked::default()));
    }
    refuse_past(&before.spec, &Activity::of(true), api.engine.clock.now_ms())?;
    let spec = before.spec.clone();
    change(api, caller, Action::StartTask, before, spec, Activity::of(true)).await
}

/// Stops a task.
pub async fn stop(api: &Api, caller: &Caller, before: TaskView) -> Result<(TaskView, NotRevoked), Problem> {
    let spec = before.spec.clone();
    change(api, caller, Action::StopTask, before, spec, Activity::of(false)).await
}

/// Deletes a task; answers what could not be revoked.
pub async fn delete(api: &Api, caller: &Caller, before: &TaskView) -> Result<NotRevoked, Problem> {
    let was = audited_task(&before.spec, &before.activity);
    let target = Target::task(before.id, &before.spec.name);
    let note = api.note(caller, Action::DeleteTask, before.owner.tenant_id, target, (was, None));
    Ok(api.definitions.noting(vec![note]).delete(before).await?)
}
