//! Why a field is refused.

use super::refusals;

refusals! {
    /// What is wrong with one field.
    FieldRefusal

    Required "required" 400
        "is required"
        "Send the field."
    RequiredFor "required_for" { other: String, value: String } 400
        "is required for `{other}: {value}`"
        "Send the field, or change the value of the field that requires it."
    UnknownField "unknown_field" 400
        "there is no such field; docs/tasks.md lists the fields of a task, docs/openapi.json all fields"
        "Leave the field out, or correct its name."
    UnknownFieldNear "unknown_field_near" { nearest: String } 400
        "there is no such field; did you mean `{nearest}`?"
        "Correct the name of the field."
    FileVersionRequired "file_version_required" { known: i64 } 400
        "is required: `version = {known}`"
        "State the version of the file format."
    FileVersionUnknown "file_version_unknown" { given: String, known: i64 } 400
        "{given} is not supported; {known} is"
        "Write the file in the supported format, or use a newer node."
    TooManyInFile "too_many_in_file" { given: i64, most: i64 } 400
        "{given} tasks; at most {most} are allowed in one file: split it"
        "Split the file."
    TenantMissing "tenant_missing" { name: String, tasks: i64 } 400
        "there is no tenant `{name}`; create it first (tasks of the file that name it: {tasks})"
        "Create the tenant, or correct its name."
    AppMissing "app_missing" { tenant: String, name: String, tasks: i64 } 400
        "tenant `{tenant}` has no app `{name}`; create it first (tasks of the file that name it: {tasks})"
        "Create the app, or correct its name."
    OfAnEntry "of_an_entry" 400
        "is a field of a task: it belongs in an entry of `task`"
        "Move the field into the entries it is meant for."
    TwiceInFile "twice_in_file" { first: String } 400
        "is already in the file, as {first}"
        "Remove one of the two entries."
    WrongType "wrong_type" { given: String, allowed: String } 400
        "{allowed} is allowed, not {given}"
        "Send a value of the named type."
    WrongChoice "wrong_choice" { given: String, allowed: String } 400
        "{given} is not allowed; {allowed} is"
        "Send one of the listed values."
    Unreadable "unreadable" { detail: String } 400
        "{detail}"
        "Correct the value; the message says what could not be read."
    OutOfRange "out_of_range" { least: i64, most: i64 } 400
        "{least} to {most} are allowed"
        "Send a number within the range."
    SpanOutOfRange "span_out_of_range" { least_ms: i64, most_ms: i64 } 400
        "{least_ms} to {most_ms} ms are allowed"
        "Send a number of milliseconds within the range."
    BoundOutOfRange "bound_out_of_range" { most: i64 } 400
        "0 (no bound) to {most} are allowed"
        "Send a number within the range; 0 means no bound."
    InstantOutOfRange "instant_out_of_range" 400
        "0 (none) to the end of 2199 is allowed"
        "Send an instant in epoch milliseconds."
    WrongName "wrong_name" { most: i64 } 400
        "1 to {most} printable characters are allowed"
        "Choose a name of this length, without line breaks or other control characters."
    WrongLength "wrong_length" { least: i64, most: i64 } 400
        "{least} to {most} characters are allowed"
        "Send a text of this length."
    WeakToken "weak_token" { least: i64, most: i64 } 400
        "must have {least} to {most} printable ASCII characters, and be no token that is published anywhere"
        "Leave it out to have one made, or choose one that nobody can guess."
    TooLong "too_long" { most: i64 } 400
        "at most {most} characters are allowed"
        "Shorten the text."
    TooManyBytes "too_many_bytes" { most: i64 } 400
        "at most {most} bytes are allowed"
        "Shorten the text; pass large data by reference."
    TooMany "too_many" { most: i64 } 400
        "at most {most} are allowed"
        "Remove some."
    Nul "nul" 400
        "the character NUL is not allowed"
        "Remove the character: not every database can store it."
    NotWith "not_with" { other: String } 400
        "not allowed together with `{other}`"
        "Send only one of the two."
    Slash "slash" 400
        "`/` is not allowed: it separates app and task in `parents`"
        "Choose a name without a slash."
    WrongTags "wrong_tags" { most: i64, most_characters: i64 } 400
        "at most {most} tags of 1 to {most_characters} printable characters are allowed"
        "Use fewer or shorter tags."
    ParentTwice "parent_twice" 400
        "each parent is allowed only once"
        "Remove the second link."
    WrongParent "wrong_parent" 400
        "`task`, or `app/task` for another app, is allowed"
        "Write the parent's name, prefixed with its app if it belongs to another app."
    FollowsItself "follows_itself" { way: String } 400
        "a task cannot follow itself: {way}"
        "Remove one of the links of the cycle."
    NoSuch "no_such" { kind: String, name: String } 400
        "there is no {kind} `{name}`"
        "Correct the name, or create what it names first."
    NoSuchInTenant "no_such_in_tenant" { kind: String, name: String, tenant: String } 400
        "tenant `{tenant}` has no {kind} `{name}`"
        "Correct the name, or create what it names first."
    ClusterUnnamed "cluster_unnamed" 400
        "this cluster has no name, so it cannot be one of those that are named"
        "Set `cluster.name` on every node, or leave the field out."
    NoTaskInFile "no_task_in_file" { name: String } 400
        "there is no task `{name}`, and none in the file"
        "Correct the parent's name, or add its task to the file."
    QuotaOfTasks "quota_of_tasks" { tenant: String, most: i64, used: i64, wanted: i64 } 400
        "`{tenant}` may have {most} tasks (its quota max_tasks) and has {used}; {wanted} more would exceed it, so nothing is created"
        "Delete unneeded tasks, or ask for a higher quota."
    WrongTimeZone "wrong_time_zone" { given: String } 400
        "`{given}` is not an IANA time zone; Asia/Shanghai and UTC are"
        "Use a name from the IANA time zone database."
    WrongTimeZoneNear "wrong_time_zone_near" { given: String, nearest: String } 400
        "`{given}` is not an IANA time zone; did you mean `{nearest}`?"
        "Use the suggested name, or another one from the IANA time zone database."
    NotAfter "not_after" { other: String } 400
        "an instant after `{other}` is allowed"
        "Send a later instant."
    InThePast "in_the_past" 400
        "lies in the past; start a manual run instead"
        "Send an instant in the future, or start a manual run."
    NeedsCron "needs_cron" 400
        "only `skip` is allowed without a cron schedule"
        "Leave the field at its default, or use a cron schedule."
    NeedsCronOrRate "needs_cron_or_rate" 400
        "only 0 is allowed without a cron or fixed-rate schedule"
        "Leave the field at 0, or use a cron or fixed-rate schedule."

    CronFiveFields "cron_five_fields" { expression: String } 400
        "a crontab line has five fields, a cron expression here starts with seconds; write `{expression}`"
        "Use the suggested expression."
    CronTooFewFields "cron_too_few_fields" { part: String, column: i64, allowed: String, given: i64 } 400
        "{part} (column {column}): an expression has 6 or 7 fields, this one ends after {given}; allowed: {allowed}"
        "Write second, minute, hour, day of month, month and day of week; a year may follow."
    CronTooManyFields "cron_too_many_fields" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): an expression has 6 or 7 fields, this is one more; allowed: {allowed}"
        "Remove the fields after the year."
    CronUnexpected "cron_unexpected" { part: String, column: i64, allowed: String, given: String } 400
        "{part} (column {column}): unexpected {given}; allowed: {allowed}"
        "Correct the character at that column."
    CronMissing "cron_missing" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): something is missing here; allowed: {allowed}"
        "Complete the field at that column."
    CronOutOfRange "cron_out_of_range" { part: String, column: i64, allowed: String, given: i64, least: i64, most: i64 } 400
        "{part} (column {column}): {given} is not between {least} and {most}; allowed: {allowed}"
        "Write a value within the field's range."
    CronStep "cron_step" { part: String, column: i64, allowed: String, given: i64, most: i64 } 400
        "{part} (column {column}): the step {given} is not between 1 and {most}; allowed: {allowed}"
        "Write a step within the field's range."
    CronYearsReversed "cron_years_reversed" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): the range of years ends before it starts; allowed: {allowed}"
        "Write the earlier year first."
    CronUnknownName "cron_unknown_name" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): unknown name; allowed: {allowed}"
        "Use the three English letters of a month or a weekday."
    CronMixedRange "cron_mixed_range" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): a range goes from number to number or from name to name; allowed: {allowed}"
        "Write both ends as numbers, or both as names."
    CronStepAfterName "cron_step_after_name" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): a step cannot follow a name, write numbers; allowed: {allowed}"
        "Write numbers instead of names."
    CronNotAlone "cron_not_alone" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): L, W, # and ? stand alone, not in a list, a range or with a step; allowed: {allowed}"
        "Leave only the special character, or use several tasks."
    CronBothDays "cron_both_days" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): day of month and day of week cannot both be given, one of them must be ?; allowed: {allowed}"
        "Write `?` for one of the two."
    CronNoDays "cron_no_days" { part: String, column: i64, allowed: String } 400
        "{part} (column {column}): day of month is ? already, so this cannot be ? too; allowed: {allowed}"
        "Write `?` for one of the two only."
    CronNever "cron_never" 400
        "names no day that exists, such as 31 February: it would never fire"
        "Choose a day that occurs in one of the months."

    WrongLine "wrong_line" { most: i64 } 400
        "at most {most} printable characters are allowed"
        "Shorten the text to one line within this length."
    WrongPlainName "wrong_plain_name" 400
        "1 to 64 characters out of a-z A-Z 0-9 - _ . are allowed, a letter or digit first"
        "Choose such a name: it appears in URLs and headers."
    WrongUserName "wrong_user_name" 400
        "1 to 64 characters out of a-z A-Z 0-9 - _ . @ are allowed, a letter or digit first"
        "Choose such a name."
    BuiltInName "built_in_name" 400
        "this is the name of a built-in role"
        "Choose another name."
    RetentionOutOfRange "retention_out_of_range" { most: i64 } 400
        "0 (the node's default) to {most} are allowed"
        "Send a number of days within the range; 0 means the node's default."
    CannotMove "cannot_move" 400
        "a task cannot move to another; create it there"
        "Create the task in the other app, and delete this one."
    OfAnotherTask "of_another_task" 400
        "belongs to another task"
        "Send a task back to the path it was read from."
    TenantNeeded "tenant_needed" 400
        "name the tenant whose admins manage the account"
        "Send `tenant`; only platform admins create accounts without one."
    AppsNeedTenant "apps_need_tenant" 400
        "name their tenant, too"
        "Send `tenant` along with `apps`."
    OtherTenant "other_tenant" 400
        "it belongs to another tenant"
        "Use a role of the tenant, or of the platform."
    PermissionsNeeded "permissions_needed" 400
        "at least one is needed; docs/permissions.md lists them"
        "List the permissions that the token should have."
    WrongExpiry "wrong_expiry" { years: i64 } 400
        "must be in the future, by at most {years} years"
        "Send a later or an earlier expiry in epoch milliseconds."
    WrongEnd "wrong_end" { days: i64 } 400
        "an instant after `starts_at` and now, at most {days} days later, is allowed"
        "Send an end within that range, in epoch milliseconds."
    TooFarAhead "too_far_ahead" { days: i64 } 400
        "now to {days} days from now is allowed"
        "Send an earlier instant."
    NotToCome "not_to_come" 400
        "must be in the future"
        "Send a later instant."
    NotPast "not_past" 400
        "must be in the past; future fires come by themselves"
        "Send an earlier instant."
    WrongSpan "wrong_span" { other: String, days: i64 } 400
        "an instant before `{other}`, by at most {days} days, is allowed"
        "Send a shorter range; split a long one."
    NothingToFill "nothing_to_fill" 400
        "only a task with a cron or fixed-rate schedule has fires to fill in"
        "Start manual runs instead."
    NoSchedule "no_schedule" 400
        "the task has no schedule, so it has no upcoming fires"
        "Give the task a schedule first."
    FixedDelayAhead "fixed_delay_ahead" 400
        "each fire of a fixed delay follows the end of the previous run: its time is not known in advance, and without it no further fire would follow; cancel the run once it is written, or pause the task"
        "Cancel the run once its log exists, or pause the task."
    RateNotStarted "rate_not_started" 400
        "a fixed rate counts from the start of the task, which is not started"
        "Start the task first."
    NoFire "no_fire" 400
        "the task's schedule has no fire at this instant, and none after it"
        "Ask for the task's next fires (GET /api/v1/tasks/{id}/preview)."
    NoFireNext "no_fire_next" { next: String } 400
        "the task's schedule has no fire at this instant; the next one is at {next}"
        "Send an instant at which the task fires."
    MaxFiresUsed "max_fires_used" 400
        "the task will have reached its max_fires by then"
        "Raise `max_fires`, or choose an earlier fire."
    NotThePassword "not_the_password" 400
        "this is not the current password"
        "Enter the current password."
    SamePassword "same_password" 400
        "the new password must differ from the current one"
        "Choose another password."
    PasswordHasName "password_has_name" 400
        "it must not contain the user's name"
        "Choose another password."
    PasswordGuessable "password_guessable" 400
        "it is too easy to guess; several random words make a good password"
        "Choose several random words."

    TooManyGiven "too_many_given" { given: i64, most: i64 } 400
        "{given} are too many; at most {most} are allowed"
        "Remove some, or split them between two calendars."
    WrongWeekday "wrong_weekday" { given: String } 400
        "`{given}` is not a day of the week; allowed: mon, tue, wed, thu, fri, sat, sun"
        "Write one of the seven words."
    WrongDay "wrong_day" { given: String } 400
        "`{given}` is not a day; allowed: one day from 1970-01-01 to 2199-12-31, such as 2026-10-01, or a day of every year, such as 10-01"
        "Write the day as year-month-day, or as month-day."
    WrongHours "wrong_hours" { given: String } 400
        "`{given}` is not a range of hours; allowed: 22:00-06:00, from 00:00 to 24:00 in minutes, with two different ends"
        "Write two times of day with a hyphen between."
    WholeDay "whole_day" { given: String } 400
        "`{given}` excludes the whole day; leave at least one minute"
        "Stop the task instead, or exclude the days."
    MoreWrong "more_wrong" { count: i64 } 400
        "{count} more entries are wrong"
        "Correct the listed entries first."
    NoDayLeft "no_day_left" 400
        "no working day is left between 1970 and 2199; leave at least one"
        "Exclude fewer days."
    NoMinuteLeft "no_minute_left" 400
        "no minute of the day is left; leave at least one"
        "Exclude fewer hours."
}

impl FieldRefusal {
    /// There is no `kind` (tenant, app, task, calendar) of that name.
    #[allow(clippy::needless_pass_by_value)] // names and ids alike
    pub fn no_such(kind: &str, name: impl ToString) -> Self {
        Self::NoSuch { kind: kind.to_owned(), name: name.to_string() }
    }

    /// Not allowed together with another field.
    pub fn not_with(other: &str) -> Self {
        Self::NotWith { other: other.to_owned() }
    }

    /// A value of another type than `allowed`.
    pub fn wrong_type(given: &impl ToString, allowed: &str) -> Self {
        Self::WrongType { given: given.to_string().chars().take(40).collect(), allowed: allowed.to_owned() }
    }
}
