//! Why the stored state does not allow a request.

use super::refusals;

refusals! {
    /// The stored state does not allow the request.
    Refusal

    TooMuchAsked "too_much_asked" { most_points: i64, most_rows: i64 } 400
        "that is more than {most_points} points or {most_rows} minutes or hours of tenants; use a shorter range or larger steps"
        "Use a shorter range or larger steps."
    NotFound "not_found" { kind: String, name: String } 404
        "there is no {kind} `{name}`"
        "Correct the name or id. Objects of other tenants look absent to callers who may not see them."
    NotFoundIn "not_found_in" { kind: String, name: String, of_kind: String, of: String } 404
        "{of_kind} `{of}` has no {kind} `{name}`"
        "Correct the name or id, or create it there."
    NameTaken "name_taken" { kind: String, name: String } 409
        "there is already a {kind} `{name}`"
        "Choose another name, or edit the existing one."
    ChangedMeanwhile "changed_meanwhile" { kind: String, name: String } 409
        "{kind} `{name}` has changed in the meantime; read it again"
        "Read it again, and apply the change to the current version."
    StaleRevision "stale_revision" { given: i64, current: i64 } 409
        "revision {given} is not current ({current} is): it has changed in the meantime; read it again"
        "Read it again, and apply the change to the current version."
    DeletedMeanwhile "deleted_meanwhile" { kind: String } 409
        "the {kind} has been deleted in the meantime"
        "Nothing is left to do."
    StillHas "still_has" { what: String } 409
        "it still has {what}; delete them first"
        "Delete them, then repeat the request."
    StillHasTasks "still_has_tasks" { tasks: String } 409
        "it still has tasks ({tasks}); delete them first"
        "Delete the tasks, then repeat the request."
    CalendarInUse "calendar_in_use" { tasks: String } 409
        "tasks use it ({tasks}); change them first"
        "Change the tasks to another calendar or none, then repeat the request."
    RoleGranted "role_granted" { users: String } 409
        "it is granted to {users}; revoke it first"
        "Delete those grants, then repeat the request."
    BuiltIn "built_in" 409
        "built-in roles cannot be changed; create your own"
        "Create a role with the permissions you need."
    LastAdmin "last_admin" 409
        "no platform admin with a password would be left; add another one first"
        "Add another platform admin with a password first."
    SingleSignOn "single_sign_on" 409
        "the user signs in by single sign-on; a password would bypass it"
        "Change the password at the provider."
    TooManyTokens "too_many_tokens" { most: i64 } 409
        "a user may have at most {most} tokens; revoke one first"
        "Revoke an unused token."
    TooManyKeys "too_many_keys" { most: i64 } 409
        "the app has {most} valid keys; revoke unused ones first"
        "Revoke a key that no executor uses."
    TokenTaken "token_taken" 409
        "this token is in use elsewhere; choose another one"
        "Choose another token, or have one made."
    ScriptsNotAllowed "scripts_not_allowed" { app: String } 409
        "app `{app}` does not allow scripts; somebody with scripts.allow has to allow them first"
        "Have them allowed (PUT /api/v1/apps/{id}/scripts), or make a handler of the script."
    NoPlainExecutors "no_plain_executors" { app: String } 409
        "app `{app}` has no token: only executors of xxl-job run scripts"
        "Create a token for executors of xxl-job, or make a handler of the script."
    TooManySkips "too_many_skips" { most: i64 } 409
        "the task already has {most} cancelled future fires; stop or edit it instead"
        "Pause or edit the task, or add a calendar."
    NoSession "no_session" 409
        "this login is not a session; revoke the token instead"
        "Revoke the token (DELETE /api/v1/account/tokens/{id})."
    RunEnded "run_ended" { status: String } 409
        "the run has ended ({status})"
        "Nothing is left to cancel."
    RunStarted "run_started" { id: String } 409
        "the run has started; stop it with POST /task-logs/{id}/cancel"
        "Cancel the run instead of the fire."
    KeepsChanging "keeps_changing" 409
        "the run keeps changing; try again"
        "Try again."
    FireIsPast "fire_is_past" 409
        "the task no longer writes a run for this instant"
        "Choose a later fire."
    FollowsByItself "follows_by_itself" 409
        "after a cancelled run of a fixed delay the next run follows by itself"
        "Nothing needs to be done."
    NotCancelled "not_cancelled" 409
        "only a future fire that was cancelled before an executor had it can be restored"
        "Look at the run: it was not cancelled, or its instant has passed."
    NothingHeld "nothing_held" 409
        "nothing is held: no silence of the cluster waits for a decision"
        "Nothing is left to decide; `GET /api/v1/cluster/silences` lists what is held."
    Outdated "outdated" 409
        "a newer message of this kind has already been received"
        "Send the current state."
    Conflict "conflict" { detail: String } 409
        "{detail}"
        "The message says what is in the way."
}

/// The tenant has no app of that name.
pub fn no_app(tenant: &str, name: &str) -> Refusal {
    let (kind, of_kind) = ("app".to_owned(), "tenant".to_owned());
    Refusal::NotFoundIn { kind, name: name.to_owned(), of_kind, of: tenant.to_owned() }
}

impl Refusal {
    /// There is no `kind` of that name or id.
    #[allow(clippy::needless_pass_by_value)] // names and ids alike
    pub fn not_found(kind: &str, name: impl ToString) -> Self {
        Self::NotFound { kind: kind.to_owned(), name: name.to_string() }
    }

    /// Another caller changed it first.
    #[allow(clippy::needless_pass_by_value)] // names and ids alike
    pub fn changed(kind: &str, name: impl ToString) -> Self {
        Self::ChangedMeanwhile { kind: kind.to_owned(), name: name.to_string() }
    }
}
