//! Every column of xxl-job, and what becomes of it. The table of `docs/migrating-from-xxl-job.md` is made of this list, and a
//! test changes each column and looks whether the list is right.

use crate::domain::import::{Column, Effect, Fate};

/// The tables of xxl-job, in the order of the documentation, and what is not read of them as a whole.
pub const TABLES: [(&str, &str); 8] = [
    ("xxl_job_info", ""),
    ("xxl_job_group", ""),
    ("xxl_job_logglue", ""),
    ("xxl_job_user", ""),
    (
        "xxl_job_log",
        "Runs of the last days come over with `--runs DAYS`: when they fired and ended, how, and what was said of it. No task needs them.",
    ),
    ("xxl_job_registry", "Executors announce themselves here as they did there."),
    ("xxl_job_log_report", "Statistics are made of the runs."),
    ("xxl_job_lock", "The switch takes its row, so that nothing fires twice. Nothing is read."),
];

const NOTHING: Fate = Fate::Left(Effect::Nothing);
const DIFFERS: Fate = Fate::Left(Effect::Differs);
const INFO: &str = "xxl_job_info";
const GROUP: &str = "xxl_job_group";
const GLUE: &str = "xxl_job_logglue";
const USER: &str = "xxl_job_user";
const CRON: &[&str] = &["schedule", "cron", "dst_gap", "dst_overlap"];

/// Every column of the tables that are read by an import.
#[rustfmt::skip] // a table
pub const COLUMNS: &[Column] = &[
    Column::new(INFO, "id", "", Fate::Kept("origin"), "The identity of the task, as `source#id`, and its number for executors and scripts (up to 1,000,000,000, unless another task has it)."),
    Column::new(INFO, "job_group", "", Fate::Kept("app"), "The app."),
    Column::new(INFO, "job_cron", "2.2.0", Fate::Task(CRON), "As `schedule_conf` of the type `CRON`; empty is no schedule."),
    Column::new(INFO, "job_desc", "", Fate::Task(&["name", "description"]),
        "The name, without `/` and of 128 characters at most, followed by ` #id` where it is taken; the whole text is the \
         description where the name is another."),
    Column::new(INFO, "add_time", "", NOTHING, "The history of a task begins with the import."),
    Column::new(INFO, "update_time", "", NOTHING, "The same."),
    Column::new(INFO, "author", "", Fate::Kept("author"), "Kept for portals and scripts, which read it (`jobinfo/list`)."),
    Column::new(INFO, "alarm_email", "", DIFFERS, "Kept for portals and scripts, which read it. No mail is sent: alarm on the metrics, or on failed runs."),
    Column::new(INFO, "schedule_type", "from 2.3.0", Fate::Task(&["schedule"]),
        "`NONE`: `none`, `CRON`: `cron`, `FIX_RATE`: `fixed_rate`; another one is no schedule, and the task is not started."),
    Column::new(INFO, "schedule_conf", "from 2.3.0", Fate::Task(&["cron", "interval_ms", "dst_gap", "dst_overlap"]),
        "The expression, in the zone that `--time-zone` names, with `dst_gap = skip` and `dst_overlap = second` as Quartz has it; or \
         seconds, counted from the switch. What Quartz accepts and half ignores (docs/cron.md) is refused: the task is not started."),
    Column::new(INFO, "misfire_strategy", "from 2.3.0", Fate::Task(&["misfire_strategy"]),
        "`DO_NOTHING`: `skip`, `FIRE_ONCE_NOW`: `fire_once`; 2.2.0 does nothing. A fire counts as missed from 30 s on, not from 5 s."),
    Column::new(INFO, "executor_route_strategy", "", Fate::Task(&["routing"]),
        "The same ten strategies, `SHARDING_BROADCAST` is `sharding`. Those that count begin anew, and `consistent_hash` goes by our id: \
         a task may go to another executor, once."),
    Column::new(INFO, "executor_handler", "", Fate::Task(&["handler"]),
        "The handler, of 128 characters at most. The handler of a script is its kind (`GLUE_SHELL`)."),
    Column::new(INFO, "executor_param", "", Fate::Task(&["params"]), "Up to 16,384 bytes; with more the task is not started."),
    Column::new(INFO, "executor_block_strategy", "", Fate::Task(&["block_strategy"]),
        "`SERIAL_EXECUTION`: `serial`, `DISCARD_LATER`: `discard_later`, `COVER_EARLY`: `cover_early`, each on one executor \
         (`block_scope = executor`), as there."),
    Column::new(INFO, "executor_timeout", "", Fate::Task(&["timeout_ms"]), "Seconds become milliseconds, up to thirty days."),
    Column::new(INFO, "executor_fail_retry_count", "", Fate::Task(&["max_retries"]),
        "Up to 1,000; the next attempt comes after 10 s, not after up to 10 s. A run without any executor waits for one for ten \
         minutes (`no_executor_timeout_ms`) before it fails."),
    Column::new(INFO, "glue_type", "", Fate::Kept("glue"), "With `--with-scripts` the task is a script; without it, a task of a kind other than `BEAN` is not started."),
    Column::new(INFO, "glue_source", "", Fate::Kept("glue"), "The version that runs, up to 60,000 bytes; without `--with-scripts` in the document of the import only (`--dry-run --output json`)."),
    Column::new(INFO, "glue_remark", "", Fate::Kept("glue"), "With its version."),
    Column::new(INFO, "glue_updatetime", "", Fate::Kept("glue"), "With its version."),
    Column::new(INFO, "child_jobid", "", Fate::Task(&["parents", "parent_rule"]),
        "`parents` of each child, `on = success`, with `parent_rule = any`. A child that is stopped runs there all the same, so it is \
         started here, with its schedule at rest. Links that close a cycle, or lead to a job that is not imported, are named in the report."),
    Column::new(INFO, "trigger_status", "", Fate::Kept("starts"), "Whether the switch starts the task; the import starts nothing."),
    Column::new(INFO, "trigger_last_time", "", NOTHING, "The history of a task begins with the import."),
    Column::new(INFO, "trigger_next_time", "", Fate::Unread, "The switch reads it: the task begins with exactly this fire."),
    Column::new(GROUP, "id", "", Fate::Kept("number"), "The number of the app for portals and scripts (`jobGroup`), unless another app has it."),
    Column::new(GROUP, "app_name", "", Fate::Kept("name"),
        "The name of the app. Groups of one name are one app, unless their addresses were entered."),
    Column::new(GROUP, "title", "", Fate::Kept("description"), "The description of the app."),
    Column::new(GROUP, "address_type", "", Fate::Kept("addresses"), "Whether a person entered the addresses."),
    Column::new(GROUP, "address_list", "", Fate::Kept("addresses"), "In the document and the report: executors announce themselves here."),
    Column::new(GROUP, "update_time", "from 2.3.0", Fate::Unread, "Made anew."),
    Column::new(GLUE, "id", "", Fate::Kept("glue"), "The order of the versions."),
    Column::new(GLUE, "job_id", "", Fate::Kept("glue"), "Whose version it is."),
    Column::new(GLUE, "glue_type", "", Fate::Unread, "A job's kind never changes."),
    Column::new(GLUE, "glue_source", "", Fate::Kept("glue"), "A version; the newest thirty are kept."),
    Column::new(GLUE, "glue_remark", "", Fate::Kept("glue"), "With its version."),
    Column::new(GLUE, "add_time", "", Fate::Kept("glue"), "With its version."),
    Column::new(GLUE, "update_time", "", Fate::Unread, "The same as `add_time`."),
    Column::new(USER, "id", "", Fate::Unread, "Users are known by their names."),
    Column::new(USER, "username", "", Fate::Kept("name"), "The name to sign in with; one that is not allowed here is named in the report."),
    Column::new(USER, "password", "", Fate::Unread, "Never read: an MD5 or SHA-256 without salt. Users get a new one."),
    Column::new(USER, "token", "from 3.2.0", Fate::Unread, "Never read."),
    Column::new(USER, "role", "", Fate::Kept("grants"), "1: everything in the tenant; 0: the tasks of some apps."),
    Column::new(USER, "permission", "", Fate::Kept("grants"), "The apps of the groups that are imported."),
];

#[cfg(test)]
mod tests;
