//! Parents in other apps. Callers who may define tasks there as they do here may make them parents; others
//! must be able to see the task, and its runs where their output is passed on.

use super::Api;
use super::problem::Problem;
use crate::auth::Caller;
use crate::domain::task::TaskSpec;
use crate::domain::{FieldError, FieldRefusal, Permission};
use crate::store::StoreErrorKind;
use std::collections::HashMap;

/// Which permissions the caller has shown to hold in which app.
type Shown = HashMap<(String, String, Permission), bool>;

/// Checks the parents in the definitions of one request.
pub struct Parents<'a> {
    api: &'a Api,
    caller: &'a Caller,
    /// The permission by which the caller defines tasks.
    defines: Permission,
    shown: Shown,
}

impl<'a> Parents<'a> {
    /// For this caller, who may define tasks by the permission `defines`.
    pub fn new(api: &'a Api, caller: &'a Caller, defines: Permission) -> Self {
        Self { api, caller, defines, shown: Shown::new() }
    }

    /// Parents that the caller may not use: treated as absent. Existing links stay.
    pub async fn refused(
        &mut self,
        place: (&str, &str),
        before: Option<&TaskSpec>,
        spec: &TaskSpec,
    ) -> Result<Vec<FieldError>, Problem> {
        let hidden = self.hidden(place, before, spec).await?;
        let refusal = |at: usize| {
            let field = format!("parents[{at}].task");
            FieldError::new(field, FieldRefusal::no_such("task", &spec.parents[at].task))
        };
        Ok(hidden.into_iter().map(refusal).collect())
    }

    /// The places of these parents in the definition.
    pub async fn hidden(
        &mut self,
        (tenant, app): (&str, &str),
        before: Option<&TaskSpec>,
        spec: &TaskSpec,
    ) -> Result<Vec<usize>, Problem> {
        let mut hidden = Vec::new();
        let heard = before.is_some_and(|before| before.parent_output);
        for (at, link) in spec.parents.iter().enumerate() {
            let Some((of, _)) = link.task.split_once('/').filter(|(of, _)| *of != app) else { continue };
            let named = before.is_some_and(|before| before.parents.iter().any(|parent| parent.task == link.task));
            let listens = spec.parent_output && !(named && heard);
            if (named && !listens) || self.holds(self.defines, tenant, of).await? {
                continue;
            }
            let sees = self.holds(Permission::TasksRead, tenant, of).await?;
            if !sees || (listens && !self.holds(Permission::TaskLogsRead, tenant, of).await?) {
                hidden.push(at);
            }
        }
        Ok(hidden)
    }

    async fn holds(&mut self, permission: Permission, tenant: &str, app: &str) -> Result<bool, Problem> {
        let key = (tenant.to_owned(), app.to_owned(), permission);
        if let Some(known) = self.shown.get(&key) {
            return Ok(*known);
        }
        let holds = match self.api.store.owner(&self.caller.access_scope(permission), tenant, app).await {
            Ok(_) => true,
            Err(error) if error.kind() == StoreErrorKind::NotFound => false,
            Err(error) => return Err(error.into()),
        };
        self.shown.insert(key, holds);
        Ok(holds)
    }
}
