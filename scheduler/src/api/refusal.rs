//! Why a request is refused before any stored data is read.

use crate::domain::refusal::refusals;

refusals! {
    /// What is wrong with the request, or prevents the node from answering it.
    RequestRefusal

    InvalidFields "invalid_fields" { fields: String } 400
        "{fields}"
        "Correct each field that `errors` names."
    FileRefused "file_refused" { count: i64 } 400
        "fields in error: {count}; nothing was changed"
        "Correct each field that `errors` names, and send the whole file again."
    FileRefusedMany "file_refused_many" { count: i64, shown: i64 } 400
        "fields in error: {count}, of which the first {shown} are shown; nothing was changed"
        "Correct each field that `errors` names, and send the whole file again."
    WrongQuery "wrong_query" { detail: String } 400
        "query: {detail}"
        "Correct the parameter that the message names."
    WrongId "wrong_id" { parameter: String, given: String } 400
        "{parameter}: `{given}` is not an id"
        "Send an id as the API returned it: digits in a string."
    WrongCursor "wrong_cursor" { parameter: String } 400
        "{parameter}: use the `next` of the previous page"
        "Start again at the first page, and pass `next` unchanged."
    WrongWord "wrong_word" { parameter: String, given: String, allowed: String } 400
        "{parameter}: `{given}` is not one of {allowed}"
        "Send one of the listed words."
    WrongIfMatch "wrong_if_match" 400
        "If-Match: send the ETag that was read"
        "Send the value of the `ETag` header, or leave the header out."
    WrongEventId "wrong_event_id" { header: String } 400
        "{header}: send the id of an event of this stream"
        "Leave the header out to begin at the start."
    WrongReturnPath "wrong_return_path" 400
        "return_to: a path of this node is allowed, such as /tasks"
        "Send a path that begins with one slash."
    WrongRange "wrong_range" { most_days: i64 } 400
        "from, until: send epoch milliseconds; `until` must be later than `from`, by at most {most_days} days"
        "Ask for a shorter range."
    NotKeptThatLong "not_kept_that_long" 400
        "from: per-minute figures of a task are not kept that long (data.statistics_task_minutes_days); use steps of 1h"
        "Use steps of one hour."
    WrongBody "wrong_body" { detail: String } 400
        "the body does not have the expected form: {detail}"
        "Send the body that docs/openapi.json describes."
    BrokenBody "broken_body" { detail: String } 400
        "the body cannot be read: {detail}"
        "Send it again; check whether a proxy truncates bodies."
    NulInText "nul_in_text" 400
        "text must not contain the character NUL"
        "Remove the character: not every database can store it."
    SignOnWithoutCode "sign_on_without_code" 400
        "code: the provider must send it"
        "Start the single sign-on again; if the error persists, check the provider's configuration."

    Unauthenticated "unauthenticated" 401
        "sign in, or send `Authorization: Bearer <token>`"
        "Sign in, or send a valid API token."
    TokenExpired "token_expired" { expired_at: String } 401
        "the token expired at {expired_at}; create a new one"
        "Create a token that expires later, and give it to the program."
    WrongPassword "wrong_password" 401
        "the name or the password is wrong, or the account is disabled"
        "Try again, or ask an admin to reset the password."
    PermissionMissing "permission_missing" { permission: String } 403
        "this needs the permission `{permission}`; an admin can grant a role that has it"
        "Ask an admin for a role with this permission in the tenant or app concerned."
    BeyondOwn "beyond_own" { permissions: String } 403
        "you do not hold {permissions} there yourself"
        "Ask a user who holds these permissions."
    UserAboveCaller "user_above_caller" 403
        "the user has permissions that you do not have; only a user who has them can do this"
        "Ask a user who holds at least the same permissions."
    OwnAccount "own_account" 403
        "this is your own account; change it under /api/v1/account, with your password or by signing in"
        "Use your account page, or ask another admin."
    ManagedElsewhere "managed_elsewhere" 403
        "the account is managed by another tenant, or by the platform"
        "Ask an admin of the tenant that the account belongs to."
    SessionNeeded "session_needed" 403
        "a token cannot manage its owner's account; sign in"
        "Sign in with name and password, or by single sign-on."
    AccountNeeded "account_needed" 403
        "the configured token has no account; sign in as a user"
        "Sign in as a user, or use a user's token."
    NoAccount "no_account" { detail: String } 403
        "single sign-on: {detail}"
        "Ask an admin for an account, or for a role granted through one of the provider's groups."
    SignOnRefused "sign_on_refused" { detail: String } 403
        "{detail}"
        "Start the single sign-on again; if the error persists, ask the provider's operator."
    PasswordChangeRequired "password_change_required" 403
        "choose a new password first (PUT /api/v1/account/password)"
        "Choose a new password; nothing else is allowed until then."
    Forged "forged" { header: String } 403
        "send the session's token in the header {header}; GET /api/v1/session returns it"
        "In programs use an API token instead of a cookie; in pages send the header."
    ForeignSite "foreign_site" 403
        "the request comes from a page of another site"
        "Call the API from a program or from the node's own console."

    NoRoute "no_route" 404
        "there is no such route"
        "Check method and path against docs/openapi.json."
    NoSignOn "no_sign_on" 404
        "single sign-on is not configured (auth.oidc)"
        "Sign in with name and password, or ask the operator to configure single sign-on."
    NoClusterSignIn "no_cluster_sign_in" { cluster: String } 404
        "cluster `{cluster}` is none of those that sign people in here, or whose people sign in there (clusters, clusters.signs_in)"
        "Check the name; an operator can name the cluster in the settings of both."
    WrongMethod "wrong_method" { allowed: String } 405
        "this path supports only {allowed}"
        "Use one of the listed methods."
    TooSlow "too_slow" 408
        "the body did not arrive in time"
        "Send it again, over a faster connection."
    TooLarge "too_large" { most_bytes: i64 } 413
        "the body is larger than {most_bytes} bytes"
        "Send less in one request."
    NoJson "no_json" 415
        "send the body as `content-type: application/json`"
        "Set the `content-type` header."
    TooManyRequests "too_many_requests" { seconds: i64 } 429
        "too many requests; wait {seconds} s"
        "Wait as long as `Retry-After` says."
    TooManySignIns "too_many_sign_ins" { seconds: i64 } 429
        "too many sign-in attempts; wait {seconds} s"
        "Wait as long as `Retry-After` says."
    TooManyStreams "too_many_streams" { detail: String } 429
        "{detail}"
        "Close a stream, or ask another node."
    TooManyWaiting "too_many_waiting" { most: i64 } 429
        "{most} requests are waiting for runs at this node, which is the limit"
        "Wait as long as `Retry-After` says, or ask another node."
    ForecastBusy "forecast_busy" 429
        "the node is busy with other forecasts"
        "Wait as long as `Retry-After` says."
    Internal "internal" 500
        "internal error; see the node's log"
        "Look at the node's log; report the error unless the installation causes it."
    DatabaseAway "database_away" 503
        "the database cannot be reached right now; try again"
        "Look whether a change was made, and try again; if the error persists, check the database and the node's log."
    DatabaseReadOnly "database_read_only" 503
        "the database is read-only; make it writable"
        "Make the database writable for the node's user."
    ChangeTooLate "change_too_late" { seconds: i64 } 503
        "the change could not begin within {seconds} s, and was not made; try again"
        "Try again; if the error persists, check the database and the node's log."
    NodeStops "node_stops" { detail: String } 503
        "{detail}"
        "Ask another node."
    SignOnAway "sign_on_away" 503
        "single sign-on is unavailable right now; the node's log says why"
        "Try again later; the node's log shows what the provider answered."
}
