//! Why a request is refused before anybody looks at what is there.

use crate::domain::refusal::refusals;

refusals! {
    /// What is wrong with the request, or keeps the node from answering it.
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
        "{parameter}: `{given}` is no id"
        "Send an id as the API has shown it: digits in a string."
    WrongCursor "wrong_cursor" { parameter: String } 400
        "{parameter}: use the `next` of the page before"
        "Start at the first page again, and pass on `next` as it is."
    WrongWord "wrong_word" { parameter: String, given: String, allowed: String } 400
        "{parameter}: `{given}` is none of {allowed}"
        "Send one of the words that are named."
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
        "from, until: give epoch milliseconds, `until` later, by {most_days} days at most"
        "Ask for a shorter range."
    NotKeptThatLong "not_kept_that_long" 400
        "from: figures of a task by the minute are not kept that long (data.statistics_task_minutes_days); ask in steps of 1h"
        "Ask in steps of an hour."
    WrongBody "wrong_body" { detail: String } 400
        "the body is not as expected: {detail}"
        "Send the body that docs/openapi.json describes."
    BrokenBody "broken_body" { detail: String } 400
        "the body cannot be read: {detail}"
        "Send it again; look for a proxy that cuts bodies off."
    NulInText "nul_in_text" 400
        "text must not contain the character NUL"
        "Take the character out: not every database can store it."
    SignOnWithoutCode "sign_on_without_code" 400
        "code: the provider must send it"
        "Begin the single sign-on again; when it stays so, look at the provider's configuration."

    Unauthenticated "unauthenticated" 401
        "sign in, or send `Authorization: Bearer <token>`"
        "Sign in, or send a valid API token."
    TokenExpired "token_expired" { expired_at: String } 401
        "the token expired at {expired_at}; make another one"
        "Make another token, with a later end, and give it to the program."
    WrongPassword "wrong_password" 401
        "the name or the password is wrong, or the account is disabled"
        "Try again, or ask an admin to reset the password."
    PermissionMissing "permission_missing" { permission: String } 403
        "this needs the permission `{permission}`; an admin can grant a role that has it"
        "Ask an admin for a role with the permission, for the tenant or app that is concerned."
    BeyondOwn "beyond_own" { permissions: String } 403
        "you do not hold {permissions} there yourself"
        "Ask somebody who holds these permissions."
    UserAboveCaller "user_above_caller" 403
        "the user may do what you may not; somebody who may has to do this"
        "Ask somebody who holds at least the user's permissions."
    ManagedElsewhere "managed_elsewhere" 403
        "the account is managed by another tenant, or by the platform"
        "Ask an admin of the tenant that the account belongs to."
    SessionNeeded "session_needed" 403
        "a token does nothing to its owner's account; sign in"
        "Sign in with name and password, or by single sign-on."
    AccountNeeded "account_needed" 403
        "the configured token is nobody's account; sign in as a user"
        "Sign in as a user, or use a user's token."
    NoAccount "no_account" { detail: String } 403
        "single sign-on: {detail}"
        "Ask an admin for an account, or for a role that a group of the provider grants."
    SignOnRefused "sign_on_refused" { detail: String } 403
        "{detail}"
        "Begin the single sign-on again; when it stays so, ask who runs the provider."
    PasswordChangeRequired "password_change_required" 403
        "choose another password first (PUT /api/v1/account/password)"
        "Choose another password; nothing else is allowed before."
    Forged "forged" { header: String } 403
        "send the session's token in the header {header}; GET /api/v1/session tells it"
        "Programs use an API token instead of a cookie; pages send the header."
    ForeignSite "foreign_site" 403
        "the request comes from a page of another site"
        "Call the API from a program or from the node's own console."

    NoRoute "no_route" 404
        "there is no such route"
        "Compare method and path with docs/openapi.json."
    NoSignOn "no_sign_on" 404
        "there is no single sign-on here (auth.oidc)"
        "Sign in with name and password, or have single sign-on configured."
    WrongMethod "wrong_method" { allowed: String } 405
        "this path has only {allowed}"
        "Use one of the methods that are named."
    TooSlow "too_slow" 408
        "the body did not arrive in time"
        "Send it again, over a faster connection."
    TooLarge "too_large" { most_bytes: i64 } 413
        "the body is larger than {most_bytes} bytes"
        "Send less at once."
    NoJson "no_json" 415
        "send the body as `content-type: application/json`"
        "Set the header."
    TooManyRequests "too_many_requests" { seconds: i64 } 429
        "too many requests; wait {seconds} s"
        "Wait as long as `Retry-After` says."
    TooManySignIns "too_many_sign_ins" { seconds: i64 } 429
        "too many tries to sign in; wait {seconds} s"
        "Wait as long as `Retry-After` says."
    TooManyStreams "too_many_streams" { detail: String } 429
        "{detail}"
        "Close a stream, or ask another node."
    TooManyWaiting "too_many_waiting" { most: i64 } 429
        "{most} requests wait for runs at this node, which is the most"
        "Wait as long as `Retry-After` says, or ask another node."
    ForecastBusy "forecast_busy" 429
        "other forecasts are being made"
        "Wait as long as `Retry-After` says."
    Internal "internal" 500
        "internal fault; the node's log says more"
        "Look at the node's log; report it when it is no fault of the installation."
    DatabaseAway "database_away" 503
        "the database cannot be reached right now; try again"
        "Try again; when it stays so, look at the database and at the node's log."
    DatabaseReadOnly "database_read_only" 503
        "the database is read-only; make it writable"
        "Make the database writable for the node's user."
    NodeStops "node_stops" { detail: String } 503
        "{detail}"
        "Ask another node."
    SignOnAway "sign_on_away" 503
        "single sign-on does not work right now; the node's log says why"
        "Try again later; the node's log says what the provider answered."
}
