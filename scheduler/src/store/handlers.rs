//! Handlers that executors register: each makes a stopped task, once. Those whose tasks do not fit
//! into the tenant's quota are left out, told once, and asked for again with each registration.

use super::dialect::Kind;
use super::quotas::TaskRoom;
use super::sql_store::Transaction;
use super::tasks::IfThere;
use super::values::{list, to_json};
use super::{Activity, NewTask, Result, Signer, SqlStore, audited_task};
use crate::domain::audit::{Actor, AuditNote, Target};
use crate::domain::task::TaskSpec;
use crate::domain::{Action, Owner, TaskId, UserId};
use carillon_protocol::{HandlerInfo, Register};
use serde_json::json;
use std::collections::HashSet;

const ACTION: &str = "register an executor";

/// Handlers that were left out and stand in one entry of the audit by name, at most; how many there
/// are stands beside.
const NAMED_MAX: usize = 50;

/// Handlers of one app that are remembered as left out, at most.
const LEFT_OUT_MAX: usize = 2_000;

/// A registration under way.
pub(super) struct Registering<'a> {
    /// By whom.
    pub signer: &'a Signer<'a>,
    /// What it says.
    pub register: &'a Register,
    /// Whether it says anything new.
    pub has_change: bool,
    /// Names new rows.
    pub new_id: &'a (dyn Fn() -> i64 + Sync),
    /// ms.
    pub now: i64,
}

/// What became of a registration's handlers.
#[derive(Debug, Default)]
pub(super) struct Handled {
    /// Those without a task, because it does not fit into the quota.
    pub left_out: Vec<String>,
    /// What the audit is to say.
    pub notes: Vec<AuditNote>,
}

impl SqlStore {
    /// A handler seen for the first time makes a stopped task; one seen before does not, even if
    /// its task was deleted since. One that was left out is seen again with each registration.
    pub(super) async fn register_handlers(&self, tx: &Transaction<'_>, of: &Registering<'_>) -> Result<Handled> {
        let owner = of.signer.owner;
        let mut new = self.new_handlers(tx, of).await?;
        if new.is_empty() {
            return Ok(Handled::default());
        }
        let quota = self.task_room(tx, owner.tenant_id).await?;
        // Read while no one else makes tasks of the tenant, so that one registration alone tells.
        let told = self.known_handlers(tx, owner, true).await?;
        let mut left_out = Vec::new();
        if let Some(TaskRoom { most, used, .. }) = &quota {
            let has_task = self.names_of_tasks(tx, owner, &new).await?;
            let mut room = most - used;
            new.retain(|handler| {
                let fits = has_task.contains(&handler.name) || room > 0;
                if !fits {
                    left_out.push(handler.name.clone());
                } else if !has_task.contains(&handler.name) {
                    room -= 1;
                }
                fits
            });
        }
        let mut notes = self.make_tasks(tx, of, &new, &told).await?;
        // Neither rows nor the audit grow with names that someone makes up.
        let room = LEFT_OUT_MAX.saturating_sub(told.len());
        let untold = left_out.iter().map(String::as_str).filter(|name| !told.contains(*name));
        let untold: Vec<&str> = untold.take(room).collect();
        if let Some(quota) = quota.filter(|_| !untold.is_empty()) {
            notes.push(self.leave_out(tx, of, &quota, &untold).await?);
        }
        Ok(Handled { left_out, notes })
    }

    /// Handlers of a registration that may need a task, each once.
    async fn new_handlers<'a>(&self, tx: &Transaction<'_>, of: &Registering<'a>) -> Result<Vec<&'a HandlerInfo>> {
        let known = self.known_handlers(tx, of.signer.owner, !of.has_change).await?;
        let mut seen = HashSet::new();
        // Without a change only those are new that were left out before.
        let is_new = |name: &str| known.contains(name) != of.has_change;
        let handlers = of.register.handlers.iter();
        Ok(handlers.filter(|handler| is_new(&handler.name) && seen.insert(handler.name.as_str())).collect())
    }

    /// Handlers of an app that have been seen: those that were left out, or the others.
    async fn known_handlers(&self, tx: &Transaction<'_>, owner: Owner, left_out: bool) -> Result<HashSet<String>> {
        let known = sql!("SELECT name FROM handler WHERE tenant_id = {1} AND app_id = {2} AND left_out = {3}");
        let values = [owner.tenant_id.into(), owner.app_id.into(), i32::from(left_out).into()];
        Ok(tx.query(&known, values).await?.into_iter().collect())
    }

    /// Makes their tasks, where there are none of the same name; answers what the audit is to say.
    async fn make_tasks(
        &self,
        tx: &Transaction<'_>,
        of: &Registering<'_>,
        handlers: &[&HandlerInfo],
        told: &HashSet<String>,
    ) -> Result<Vec<AuditNote>> {
        let owner = of.signer.owner;
        let no_longer = sql!("UPDATE handler SET left_out = 0 WHERE tenant_id = {1} AND app_id = {2} AND name = {3}");
        let mut tasks = Vec::with_capacity(handlers.len());
        for handler in handlers {
            let name = handler.name.as_str();
            if told.contains(name) {
                tx.execute(&no_longer, [owner.tenant_id.into(), owner.app_id.into(), name.into()]).await?;
            } else {
                self.know_handler(tx, of, name, false).await?;
            }
            let spec = defaults_of(handler);
            let task = NewTask { id: (of.new_id)().into(), owner, spec, activity: Activity::default() };
            self.insert_task(tx, &task, of.now, IfThere::Leave).await?;
            tasks.push(task);
        }
        let made = self.made(tx, &tasks).await?;
        let made = tasks.iter().filter(|task| made.contains(&task.id));
        Ok(made
            .map(|task| {
                let after = audited_task(&task.spec, &task.activity);
                note(of, Action::CreateTask, Target::task(task.id, &task.spec.name), after)
            })
            .collect())
    }

    async fn know_handler(&self, tx: &Transaction<'_>, of: &Registering<'_>, name: &str, left_out: bool) -> Result<()> {
        let Owner { tenant_id, app_id } = of.signer.owner;
        let insert = sql!(|d| format!(
            "INSERT INTO handler (id, tenant_id, app_id, name, created_at, left_out) VALUES \
                 ({{1}}, {{2}}, {{3}}, {{4}}, {{5}}, {{6}}) {}",
            d.or_ignore("handler", "tenant_id, app_id, name")
        ));
        let id = (of.new_id)();
        let values =
            [id.into(), tenant_id.into(), app_id.into(), name.into(), of.now.into(), i32::from(left_out).into()];
        tx.execute(&insert, values).await.map(drop)
    }

    /// Which of these tasks are there: one of the same name may have been faster.
    async fn made(&self, tx: &Transaction<'_>, tasks: &[NewTask]) -> Result<HashSet<TaskId>> {
        let sql = sql!(|d| format!("SELECT t.id FROM {} task t ON t.id = v.n_id", d.batch(1, &[("id", Kind::Big)])));
        let ids = list(ACTION, tasks.iter().map(|task| task.id))?;
        Ok(tx.query(&sql, [ids.into()]).await?.into_iter().collect())
    }

    /// Which of these handlers' names an app has tasks of.
    async fn names_of_tasks(
        &self,
        tx: &Transaction<'_>,
        Owner { tenant_id, app_id }: Owner,
        handlers: &[&HandlerInfo],
    ) -> Result<HashSet<String>> {
        let sql = sql!(|d| format!(
            "SELECT t.name FROM {} task t ON t.tenant_id = {{2}} AND t.app_id = {{3}} AND t.name = v.n_name",
            d.batch(1, &[("name", Kind::Text)])
        ));
        let names: Vec<[&str; 1]> = handlers.iter().map(|handler| [handler.name.as_str()]).collect();
        let names = to_json(ACTION, &names)?;
        let found = tx.query(&sql, [names.into(), tenant_id.into(), app_id.into()]);
        Ok(found.await?.into_iter().collect())
    }

    /// Notes that these handlers have no task, and says so to the node's and to the tenant's people.
    async fn leave_out(
        &self,
        tx: &Transaction<'_>,
        of: &Registering<'_>,
        quota: &TaskRoom,
        handlers: &[&str],
    ) -> Result<AuditNote> {
        let app_id = of.signer.owner.app_id;
        for name in handlers {
            self.know_handler(tx, of, name, true).await?;
        }
        let TaskRoom { tenant, most, used } = quota;
        tracing::warn!(
            tenant,
            app = app_id.0,
            handlers = handlers.join(", "),
            "no tasks made for new handlers: the tenant has as many as it may (its quota max_tasks); each registration \
             asks again"
        );
        let app = sql!("SELECT name FROM app WHERE id = {1}");
        let app: Vec<String> = tx.query(&app, [app_id.into()]).await?;
        let target = Target { kind: "app", id: app_id.to_string(), name: app.into_iter().next().unwrap_or_default() };
        let after = json!({
            "left_out": handlers.iter().take(NAMED_MAX).collect::<Vec<_>>(),
            "count": handlers.len(),
            "why": format!(
                "no tasks were made for these handlers: `{tenant}` may have {most} tasks (its quota max_tasks) and has \
                 {used}; each registration asks again"
            ),
        });
        Ok(note(of, Action::RegisterHandlers, target, Some(after.to_string())))
    }
}

/// What the audit says of something that a registration brings about.
fn note(of: &Registering<'_>, action: Action, target: Target, after: Option<String>) -> AuditNote {
    let Signer { owner, key_id, .. } = *of.signer;
    let actor =
        Actor { kind: "executor", id: UserId::NONE, name: key_id.to_owned(), address: of.register.address.clone() };
    AuditNote { id: (of.new_id)(), tenant_id: owner.tenant_id, at: of.now, actor, action, target, before: None, after }
}

/// The definition that a handler's own defaults make. What this node cannot read, or must not
/// allow, keeps no executor out: it is left at the product's default.
fn defaults_of(handler: &HandlerInfo) -> TaskSpec {
    let plain = TaskSpec {
        name: handler.name.clone(),
        handler: handler.name.clone(),
        description: handler.description.clone(),
        ..TaskSpec::default()
    };
    let mut wanted = handler.policies.clone();
    for (field, value) in [("cron", &handler.cron), ("time_zone", &handler.time_zone)] {
        if let Some(value) = value {
            wanted.insert(field.to_owned(), value.clone().into());
        }
    }
    if handler.timeout_ms != 0 {
        wanted.insert("timeout_ms".to_owned(), handler.timeout_ms.into());
    }
    for fixed in ["name", "handler", "parents"] {
        wanted.remove(fixed);
    }
    let refused = match plain.patched(wanted) {
        Ok(spec) => match spec.check() {
            errors if errors.is_empty() => return spec,
            errors => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        },
        Err(error) => error.to_string(),
    };
    tracing::warn!(handler = handler.name, refused, "defaults of a handler refused; its task has the product's");
    plain
}
