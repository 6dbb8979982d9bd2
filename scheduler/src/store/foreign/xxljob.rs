//! What an import reads of an xxl-job. Passwords and tokens of its users are not among it.

use super::connection::ForeignDatabase;
use super::failure::unfit;
use super::rows::{Holds, Read, Table, Values};
use super::schema::Schema;
use crate::domain::import::GLUE_BYTES_MAX;
use crate::domain::xxljob::{ForeignGlue, ForeignGroup, ForeignJob, ForeignLog, ForeignUser, ForeignXxlJob, Releases};
use crate::store::error::Result;
use chrono_tz::Tz;

/// Characters of a message of a run that are read.
pub const LOG_TEXT_CHARS_MAX: usize = 4_000;

const ACTION: &str = "read the xxl-job";

/// One more than a script may have shows that it is too large.
const GLUE: Holds = Holds::Cut(GLUE_BYTES_MAX + 1);

const MESSAGE: Holds = Holds::Cut(LOG_TEXT_CHARS_MAX);

/// Reads everything but runs.
pub async fn read(database: &mut ForeignDatabase, zone: Tz) -> Result<ForeignXxlJob> {
    let releases = releases(database)?;
    Ok(ForeignXxlJob {
        releases,
        groups: database.all(ACTION, &groups(), zone, group).await?,
        jobs: database.all(ACTION, &jobs(releases), zone, job).await?,
        glue: database.all(ACTION, &glue_versions(), zone, glue).await?,
        users: database.all(ACTION, &users(), zone, user).await?,
    })
}

/// Reads a page of runs.
pub async fn read_logs(database: &mut ForeignDatabase, after: i64, limit: u32, zone: Tz) -> Result<Vec<ForeignLog>> {
    releases(database)?;
    database.page(ACTION, &logs(), (after, limit), zone, log).await
}

/// Of an xxl-job, which it has to be.
pub fn releases(database: &ForeignDatabase) -> Result<Releases> {
    match database.schema {
        Schema::XxlJob(releases) => Ok(releases),
        Schema::Horace => Err(unfit(ACTION, &database.address, "these are the tables of a horace cron-job")),
    }
}

fn table(name: &'static str, numbers: &[&'static str], texts: &[&'static str], times: &[&'static str]) -> Table {
    let of = |names: &[&'static str], holds| names.iter().map(|name| (*name, holds)).collect::<Vec<_>>();
    Table { name, columns: [of(numbers, Holds::Number), of(texts, Holds::Text), of(times, Holds::Time)].concat() }
}

fn groups() -> Table {
    table("xxl_job_group", &["id", "address_type"], &["app_name", "title", "address_list"], &[])
}

fn group(row: &Values<'_>) -> Read<ForeignGroup> {
    Ok(ForeignGroup {
        id: row.number("id")?,
        app_name: row.text("app_name")?,
        title: row.text("title")?,
        address_type: row.number("address_type")?,
        address_list: row.text("address_list")?,
    })
}

#[rustfmt::skip] // a table
fn jobs(releases: Releases) -> Table {
    let mut jobs = table(
        "xxl_job_info",
        &["id", "job_group", "executor_timeout", "executor_fail_retry_count", "trigger_status", "trigger_last_time",
          "trigger_next_time"],
        &["job_desc", "author", "alarm_email", "executor_route_strategy", "executor_handler", "executor_param",
          "executor_block_strategy", "glue_type", "glue_remark", "child_jobid"],
        &["add_time", "update_time", "glue_updatetime"],
    );
    let schedule: &[&str] = match releases {
        Releases::V2_2 => &["job_cron"],
        Releases::V2_3 | Releases::V3_2 | Releases::V3_4 => &["schedule_type", "schedule_conf", "misfire_strategy"],
    };
    jobs.columns.extend(schedule.iter().map(|name| (*name, Holds::Text)));
    jobs.columns.push(("glue_source", GLUE));
    jobs
}

fn job(row: &Values<'_>) -> Read<ForeignJob> {
    Ok(ForeignJob {
        id: row.number("id")?,
        job_group: row.number("job_group")?,
        job_cron: row.given("job_cron")?,
        job_desc: row.text("job_desc")?,
        add_time: row.time("add_time")?,
        update_time: row.time("update_time")?,
        author: row.text("author")?,
        alarm_email: row.text("alarm_email")?,
        schedule_type: row.given("schedule_type")?,
        schedule_conf: row.given("schedule_conf")?,
        misfire_strategy: row.given("misfire_strategy")?,
        executor_route_strategy: row.text("executor_route_strategy")?,
        executor_handler: row.text("executor_handler")?,
        executor_param: row.text("executor_param")?,
        executor_block_strategy: row.text("executor_block_strategy")?,
        executor_timeout: row.number("executor_timeout")?,
        executor_fail_retry_count: row.number("executor_fail_retry_count")?,
        glue_type: row.text("glue_type")?,
        glue_source: row.text("glue_source")?,
        glue_remark: row.text("glue_remark")?,
        glue_updatetime: row.time("glue_updatetime")?,
        child_jobid: row.text("child_jobid")?,
        trigger_status: row.number("trigger_status")?,
        trigger_last_time: row.number("trigger_last_time")?,
        trigger_next_time: row.number("trigger_next_time")?,
    })
}

fn glue_versions() -> Table {
    let mut versions = table("xxl_job_logglue", &["id", "job_id"], &["glue_type", "glue_remark"], &["add_time"]);
    versions.columns.push(("glue_source", GLUE));
    versions
}

fn glue(row: &Values<'_>) -> Read<ForeignGlue> {
    Ok(ForeignGlue {
        id: row.number("id")?,
        job_id: row.number("job_id")?,
        glue_type: row.text("glue_type")?,
        glue_source: row.text("glue_source")?,
        glue_remark: row.text("glue_remark")?,
        add_time: row.time("add_time")?,
    })
}

fn users() -> Table {
    table("xxl_job_user", &["id", "role"], &["username", "permission"], &[])
}

fn user(row: &Values<'_>) -> Read<ForeignUser> {
    Ok(ForeignUser {
        id: row.number("id")?,
        username: row.text("username")?,
        role: row.number("role")?,
        permission: row.text("permission")?,
    })
}

#[rustfmt::skip] // a table
fn logs() -> Table {
    let mut logs = table(
        "xxl_job_log",
        &["id", "job_group", "job_id", "executor_fail_retry_count", "trigger_code", "handle_code", "alarm_status"],
        &["executor_address", "executor_handler", "executor_sharding_param"],
        &["trigger_time", "handle_time"],
    );
    logs.columns.extend(["executor_param", "trigger_msg", "handle_msg"].map(|name| (name, MESSAGE)));
    logs
}

fn log(row: &Values<'_>) -> Read<ForeignLog> {
    Ok(ForeignLog {
        id: row.number("id")?,
        job_group: row.number("job_group")?,
        job_id: row.number("job_id")?,
        executor_address: row.text("executor_address")?,
        executor_handler: row.text("executor_handler")?,
        executor_param: row.text("executor_param")?,
        executor_sharding_param: row.text("executor_sharding_param")?,
        executor_fail_retry_count: row.number("executor_fail_retry_count")?,
        trigger_time: row.time("trigger_time")?,
        trigger_code: row.number("trigger_code")?,
        trigger_msg: row.text("trigger_msg")?,
        handle_time: row.time("handle_time")?,
        handle_code: row.number("handle_code")?,
        handle_msg: row.text("handle_msg")?,
        alarm_status: row.number("alarm_status")?,
    })
}
