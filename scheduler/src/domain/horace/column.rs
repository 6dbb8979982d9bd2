//! Every column of horace cron-job that an import meets, and what becomes of it.

use crate::domain::import::{Column, Effect, Fate};

const NOTHING: Fate = Fate::Left(Effect::Nothing);
const DIFFERS: Fate = Fate::Left(Effect::Differs);
const TENANT: &str = "t_tenant";
const APP: &str = "t_app";
const TASK: &str = "t_task";
const USER: &str = "t_user";
const MEMBER: &str = "t_user_tenant";

/// Every column of the tables that are read by an import. Runs, executors, locks, pages and statistics are not read.
#[rustfmt::skip] // a table
pub const COLUMNS: &[Column] = &[
    Column::new(TENANT, "id", "", Fate::Kept("tenant"), "Joins the tables."),
    Column::new(TENANT, "name", "", Fate::Kept("description"), "The beginning of the tenant's description."),
    Column::new(TENANT, "tenant", "", Fate::Kept("name"), "The name of the tenant, of a-z A-Z 0-9 - _ . only."),
    Column::new(TENANT, "remark", "", Fate::Kept("description"), "The rest of the description."),
    Column::new(TENANT, "create_time", "", Fate::Unread, "The history begins with the import."),
    Column::new(TENANT, "modify_time", "", Fate::Unread, "The same."),
    Column::new(APP, "id", "", Fate::Kept("app"), "Joins the tables."),
    Column::new(APP, "tenant_id", "", Fate::Kept("tenant"), "The tenant."),
    Column::new(APP, "app_name", "", Fate::Kept("name"), "The name of the app, of a-z A-Z 0-9 - _ . only."),
    Column::new(APP, "app_desc", "", Fate::Kept("description"), "The description of the app."),
    Column::new(APP, "state", "", NOTHING, "2: no task of it is started."),
    Column::new(APP, "create_time", "", Fate::Unread, "The history begins with the import."),
    Column::new(APP, "modify_time", "", Fate::Unread, "The same."),
    Column::new(TASK, "id", "", Fate::Kept("origin"), "The identity of the task, as `source#id`."),
    Column::new(TASK, "tenant_id", "", Fate::Unread, "That of its app."),
    Column::new(TASK, "app_id", "", Fate::Kept("app"), "The app."),
    Column::new(TASK, "app_name", "", Fate::Unread, "That of its app."),
    Column::new(TASK, "app_desc", "", Fate::Unread, "That of its app."),
    Column::new(TASK, "name", "", Fate::Task(&["name", "description"]),
        "The name, without `/`, followed by ` #id` where it is taken; the description begins with it where the name is another."),
    Column::new(TASK, "owner", "", Fate::Task(&["description"]), "The end of the description."),
    Column::new(TASK, "cron", "", Fate::Task(&["schedule", "cron"]),
        "The expression, in the zone that `--time-zone` names. Times that a clock change skips or repeats are as docs/cron.md has them."),
    Column::new(TASK, "tag", "", Fate::Task(&["tags_any"]),
        "An executor needs one of them. None, and `common` alone, is no condition; runs do not go to executors with the tag `common` \
         for want of others."),
    Column::new(TASK, "run_state", "", Fate::Kept("starts"), "1: the switch starts the task; the import starts nothing."),
    Column::new(TASK, "method", "", Fate::Task(&["handler"]),
        "The handler, of 128 characters at most; of a longer one packages are left out from the left."),
    Column::new(TASK, "router_strategy", "", Fate::Task(&["routing"]), "1: `random`, 2: `sharding`; shards count from 0 here, from 1 there."),
    Column::new(TASK, "expired_strategy", "", Fate::Task(&["expired_strategy", "misfire_strategy"]),
        "1: `discard`, and missed fires are skipped; 2: `execute`, and the last missed fire runs on behalf of all of them."),
    Column::new(TASK, "expired_time", "", Fate::Task(&["expire_after_ms"]), "Up to thirty days; 0 with `discard` is 1."),
    Column::new(TASK, "failure_strategy", "", Fate::Task(&["failure_strategy"]), "1: `retry`, 2: `discard`."),
    Column::new(TASK, "max_retry_count", "", Fate::Task(&["max_retries"]), "Up to 1,000."),
    Column::new(TASK, "failure_retry_interval", "", Fate::Task(&["retry_interval_ms"]), "Up to thirty days."),
    Column::new(TASK, "timeout", "", Fate::Task(&["timeout_ms"]), "Up to thirty days; it counts from the start of a run, not from its fire."),
    Column::new(TASK, "task_params", "", Fate::Task(&["params"]), "The parameters."),
    Column::new(TASK, "remark", "", Fate::Task(&["description"]), "The description."),
    Column::new(TASK, "create_time", "", NOTHING, "The history of a task begins with the import."),
    Column::new(TASK, "modify_time", "", Fate::Unread, "The same."),
    Column::new(USER, "id", "", Fate::Unread, "Users are known by their names."),
    Column::new(USER, "username", "", Fate::Kept("name"), "The name to sign in with; one that is not allowed here is named in the report."),
    Column::new(USER, "password", "", Fate::Unread, "Never read: an MD5 without salt. Users get a new one."),
    Column::new(USER, "nickname", "", Fate::Kept("display_name"), "The name for people."),
    Column::new(USER, "email", "", Fate::Unread, "Accounts have no addresses."),
    Column::new(USER, "state", "", Fate::Kept("disabled"), "1: the account is disabled."),
    Column::new(USER, "phone", "", Fate::Unread, "Accounts have no numbers."),
    Column::new(USER, "avatar", "", Fate::Unread, "Accounts have no pictures."),
    Column::new(USER, "address", "", Fate::Unread, "Accounts have no addresses."),
    Column::new(USER, "signature", "", Fate::Unread, "Accounts have no mottos."),
    Column::new(USER, "create_time", "", Fate::Unread, "The history begins with the import."),
    Column::new(USER, "modify_time", "", Fate::Unread, "The same."),
    Column::new(MEMBER, "id", "", Fate::Unread, "Joins nothing."),
    Column::new(MEMBER, "user_id", "", Fate::Kept("grants"), "The user."),
    Column::new(MEMBER, "tenant_id", "", Fate::Kept("grants"), "The tenant that the user sees."),
    Column::new(MEMBER, "create_time", "", Fate::Unread, "The history begins with the import."),
    Column::new(MEMBER, "modify_time", "", Fate::Unread, "The same."),
    Column::new("t_user_role", "role_id", "", DIFFERS, "Roles are lists of pages there: a user who sees a tenant may see, change and run its tasks."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_column_is_named_once() {
        let mut seen = BTreeSet::new();
        for column in COLUMNS {
            assert!(seen.insert((column.table, column.name)), "{}.{} stands twice", column.table, column.name);
            assert!(column.says.ends_with('.'), "{}", column.name);
        }
    }
}
