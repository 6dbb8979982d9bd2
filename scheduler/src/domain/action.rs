//! The actions of people, nodes and executors: each once, with its target and what it makes stale. The audit, the
//! change feed, the operations of the API and the console's words all follow this list.

use super::change_feed::{ChangeKind, ChangeKinds};
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

macro_rules! actions {
    ($($name:ident $word:literal $target:literal [$($kind:ident),*])+) => {
        /// Something that changes what is there.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action {
            $(#[doc = concat!("`", $word, "`")] $name,)+
        }

        /// Every action: its word, what it is done to, and what it makes stale beside the audit.
        pub const ACTIONS: &[(Action, &str, &str, &[ChangeKind])] =
            &[$((Action::$name, $word, $target, &[$(ChangeKind::$kind),*]),)+];

        impl Action {
            /// Its word: in the audit, in paths of the API's document, in the console.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

actions! {
    SignIn "sign_in" "user" []
    FinishSingleSignOn "finish_single_sign_on" "user" []
    SignInElsewhere "sign_in_elsewhere" "user" []
    RedeemSignIn "redeem_sign_in" "user" []
    FinishClusterSignIn "finish_cluster_sign_in" "user" []
    SignOut "sign_out" "user" []
    ChangePassword "change_password" "user" [Users, Tokens]
    EndSession "end_session" "user" [Users]
    CreateMyToken "create_my_token" "token" [Tokens]
    RevokeMyToken "revoke_my_token" "token" [Tokens]
    CreateApp "create_app" "app" [Apps, Keys]
    EditApp "edit_app" "app" [Apps]
    DeleteApp "delete_app" "app" [Apps, Keys]
    PutDiscovery "put_discovery" "app" [Apps, Executors]
    AllowScripts "allow_scripts" "app" [Apps]
    RegisterHandlers "register_handlers" "app" [Apps]
    CreateKey "create_key" "key" [Keys]
    RotateKeys "rotate_keys" "key" [Keys]
    RevokeKey "revoke_key" "key" [Keys]
    RotateEncryption "rotate_encryption" "key" []
    PutCalendar "put_calendar" "calendar" [Calendars, Tasks]
    DeleteCalendar "delete_calendar" "calendar" [Calendars, Tasks]
    EditExecutor "edit_executor" "executor" [Executors]
    CreateRole "create_role" "role" [Roles, Users]
    EditRole "edit_role" "role" [Roles, Users]
    DeleteRole "delete_role" "role" [Roles, Users]
    CreateTask "create_task" "task" [Tasks, TaskLogs]
    ApplyTasks "apply_tasks" "task" [Tasks, TaskLogs]
    EditTask "edit_task" "task" [Tasks, TaskLogs]
    ReplaceTask "replace_task" "task" [Tasks, TaskLogs]
    DeleteTask "delete_task" "task" [Tasks, TaskLogs]
    PutScript "put_script" "task" [Tasks, TaskLogs]
    StartTask "start_task" "task" [Tasks, TaskLogs]
    StopTask "stop_task" "task" [Tasks, TaskLogs]
    PauseTask "pause_task" "task" [Tasks, TaskLogs]
    RunTask "run_task" "task" [TaskLogs]
    SkipFire "skip_fire" "task" [Tasks, TaskLogs]
    RestoreFire "restore_fire" "task" [Tasks, TaskLogs]
    SetOrigins "set_origins" "tenant" [Tasks]
    ImportRuns "import_runs" "tenant" [Tasks]
    CreateBackfill "create_backfill" "task" [Backfills, TaskLogs]
    CancelBackfill "cancel_backfill" "task" [Backfills, TaskLogs]
    CancelRun "cancel_run" "task_log" [TaskLogs]
    CreateTenant "create_tenant" "tenant" [Tenants, Quotas]
    EditTenant "edit_tenant" "tenant" [Tenants, Quotas]
    DeleteTenant "delete_tenant" "tenant" [Tenants, Quotas]
    EditQuotas "edit_quotas" "tenant" [Quotas]
    AddWindow "add_window" "maintenance_window" [Maintenance]
    DropWindow "drop_window" "maintenance_window" [Maintenance]
    RevokeToken "revoke_token" "token" [Tokens]
    CreateUser "create_user" "user" [Users, Tokens]
    EditUser "edit_user" "user" [Users, Tokens]
    DeleteUser "delete_user" "user" [Users, Tokens]
    ResetPassword "reset_password" "user" [Users, Tokens]
    EndUserSessions "end_user_sessions" "user" [Users, Tokens]
    CreateGrant "create_grant" "user" [Users, Tokens]
    DeleteGrant "delete_grant" "user" [Users, Tokens]
    ResumeCluster "resume_cluster" "cluster" [Tasks, TaskLogs, Backfills]
}

impl From<Action> for &'static str {
    fn from(action: Action) -> Self {
        action.as_str()
    }
}

impl Action {
    /// What has to be read again after it.
    #[must_use]
    pub fn changes(self) -> ChangeKinds {
        let known = ACTIONS.iter().find(|(action, ..)| *action == self);
        known.into_iter().flat_map(|(.., kinds)| kinds.iter().copied()).chain([ChangeKind::Audit]).collect()
    }

    /// What an entry of the audit makes stale. Of an action that only a newer node knows: whatever one on such a
    /// target may.
    #[must_use]
    pub fn changes_of(action: &str, target: &str) -> ChangeKinds {
        if let Some((action, ..)) = ACTIONS.iter().find(|(_, word, ..)| *word == action) {
            return action.changes();
        }
        let alike = ACTIONS.iter().filter(|(_, _, of, _)| *of == target);
        alike.flat_map(|(.., kinds)| kinds.iter().copied()).chain([ChangeKind::Audit]).collect()
    }
}

/// An action as the audit tells it. The list is not closed: a newer node may know more.
pub struct AuditAction;

impl PartialSchema for AuditAction {
    fn schema() -> RefOr<Schema> {
        let actions = ACTIONS.iter().map(|(action, word, target, _)| {
            let about = json!({ "target": target, "changes": action.changes().words() });
            ((*word).to_owned(), about)
        });
        let known = ExtensionsBuilder::new().add("x-actions", Value::Object(actions.collect())).build();
        ObjectBuilder::new().schema_type(Type::String).extensions(Some(known)).into()
    }
}

impl ToSchema for AuditAction {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_makes_stale_what_its_line_says_and_the_audit() {
        assert_eq!(Action::EditTask.changes().words(), ["tasks", "task_logs", "audit"]);
        assert_eq!(Action::changes_of("sign_in", "user").words(), ["audit"]);
        assert_eq!(Action::changes_of("edit_quotas", "tenant").words(), ["quotas", "audit"]);
    }

    #[test]
    fn an_action_of_a_newer_node_goes_by_its_target() {
        assert_eq!(Action::changes_of("paint", "app").words(), ["apps", "keys", "executors", "audit"]);
        assert_eq!(Action::changes_of("paint", "moon").words(), ["audit"]);
    }
}
