//! Which scheduler, and which of its releases, a database is of: by its columns.

use super::address::Address;
use super::asking::ask;
use super::failure::{failed, unfit};
use crate::domain::import::ForeignKind;
use crate::domain::xxljob::Releases;
use crate::store::error::Result;
use sea_orm::SqlxError;
use sea_orm::sqlx::Row as _;
use sea_orm::sqlx::mysql::{MySqlConnection, MySqlRow};
use std::collections::BTreeMap;

const ACTION: &str = "look at the other scheduler's tables";

/// The columns of the tables that are known.
const COLUMNS: &str = "SELECT CAST(LOWER(TABLE_NAME) AS CHAR) AS `place`, CAST(LOWER(COLUMN_NAME) AS CHAR) AS `name`, \
                       CAST(LOWER(DATA_TYPE) AS CHAR) AS `kind` FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() \
                       AND TABLE_NAME IN ('xxl_job_info', 'xxl_job_group', 'xxl_job_logglue', 'xxl_job_user', 't_tenant', \
                       't_app', 't_task', 't_user', 't_user_tenant')";

/// Columns of a database by `table.column`, in small letters, with their types.
pub type Columns = BTreeMap<(String, String), String>;

/// What a database is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// xxl-job.
    XxlJob(Releases),
    /// horace cron-job.
    Horace,
}

/// What every release of xxl-job from 2.2.0 to 3.4.2 has, of what is read.
#[rustfmt::skip] // a table
const XXL_JOB: [(&str, &[&str]); 4] = [
    ("xxl_job_info", &[
        "id", "job_group", "job_desc", "add_time", "update_time", "author", "alarm_email", "executor_route_strategy",
        "executor_handler", "executor_param", "executor_block_strategy", "executor_timeout", "executor_fail_retry_count",
        "glue_type", "glue_source", "glue_remark", "glue_updatetime", "child_jobid", "trigger_status", "trigger_last_time",
        "trigger_next_time",
    ]),
    ("xxl_job_group", &["id", "app_name", "title", "address_type", "address_list"]),
    ("xxl_job_logglue", &["id", "job_id", "glue_type", "glue_source", "glue_remark", "add_time"]),
    ("xxl_job_user", &["id", "username", "role", "permission"]),
];

/// What horace cron-job has, of what is read.
#[rustfmt::skip] // a table
const HORACE: [(&str, &[&str]); 5] = [
    ("t_tenant", &["id", "name", "tenant", "remark"]),
    ("t_app", &["id", "tenant_id", "app_name", "app_desc", "state"]),
    ("t_task", &[
        "id", "tenant_id", "app_id", "name", "owner", "cron", "tag", "run_state", "method", "router_strategy", "expired_strategy",
        "expired_time", "failure_strategy", "max_retry_count", "failure_retry_interval", "timeout", "task_params", "remark",
        "create_time",
    ]),
    ("t_user", &["id", "username", "nickname", "state"]),
    ("t_user_tenant", &["id", "user_id", "tenant_id"]),
];

fn column(row: &MySqlRow) -> std::result::Result<((String, String), String), SqlxError> {
    Ok(((row.try_get("place")?, row.try_get("name")?), row.try_get("kind")?))
}

impl Schema {
    /// Which scheduler.
    pub fn kind(self) -> ForeignKind {
        match self {
            Self::XxlJob(_) => ForeignKind::XxlJob,
            Self::Horace => ForeignKind::Horace,
        }
    }

    /// Looks at the database of a connection.
    pub async fn read(connection: &mut MySqlConnection, address: &Address) -> Result<Self> {
        let rows = ask(connection, address, ACTION, COLUMNS.to_owned(), &[]).await?;
        let columns = rows.iter().map(column).collect::<std::result::Result<Columns, SqlxError>>();
        let columns = columns.map_err(|error| failed(ACTION, address, error))?;
        Self::of(&columns).map_err(|why| unfit(ACTION, address, &why))
    }

    /// What a database with these columns is of.
    ///
    /// # Errors
    /// A sentence on what is there instead, and what to do.
    fn of(columns: &Columns) -> std::result::Result<Self, String> {
        let has = |table: &str, column: &str| columns.contains_key(&(table.to_owned(), column.to_owned()));
        if has("xxl_job_info", "id") {
            if has("xxl_job_info", "name") && !has("xxl_job_info", "job_desc") {
                let known = "releases from 2.2.0 to 3.4.2 can be imported";
                return Err(format!("these are the tables of an xxl-job that was not released yet (3.5.0); {known}"));
            }
            refuse_missing("xxl-job", &XXL_JOB, has)?;
            return xxl_job(columns, has).map(Self::XxlJob);
        }
        if has("t_task", "id") && has("t_tenant", "id") {
            refuse_missing("horace cron-job", &HORACE, has)?;
            return Ok(Self::Horace);
        }
        let why = "it has no table `xxl_job_info` (xxl-job) and no tables `t_tenant` and `t_task` (horace cron-job)";
        Err(format!(
            "{why}, or the user may not read them; name the right database in the address, or GRANT SELECT on it"
        ))
    }
}

fn refuse_missing(
    of: &str,
    tables: &[(&str, &[&str])],
    has: impl Fn(&str, &str) -> bool,
) -> std::result::Result<(), String> {
    let all = tables.iter().flat_map(|(table, columns)| columns.iter().map(move |column| (*table, *column)));
    let missing: Vec<String> =
        all.filter(|(table, column)| !has(table, column)).map(|(table, column)| format!("{table}.{column}")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let known = "its tables have been changed, the user may not read all of them, or the release is not known";
    Err(format!("columns of {of} are missing: {}; {known}", missing.join(", ")))
}

fn xxl_job(columns: &Columns, has: impl Fn(&str, &str) -> bool) -> std::result::Result<Releases, String> {
    let schedules = ["schedule_type", "schedule_conf", "misfire_strategy"];
    if !schedules.iter().all(|column| has("xxl_job_info", column)) {
        if has("xxl_job_info", "job_cron") {
            return Ok(Releases::V2_2);
        }
        let why = "`xxl_job_info` has neither `job_cron` nor `schedule_type`, `schedule_conf` and `misfire_strategy`";
        return Err(format!("{why}: it is of no release from 2.2.0 to 3.4.2"));
    }
    if !has("xxl_job_user", "token") {
        return Ok(Releases::V2_3);
    }
    let param = ("xxl_job_info".to_owned(), "executor_param".to_owned());
    let is_bounded = columns.get(&param).is_some_and(|kind| kind == "varchar");
    Ok(if is_bounded { Releases::V3_2 } else { Releases::V3_4 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(tables: &[(&str, &[&str])], more: &[(&str, &str, &str)]) -> Columns {
        let all =
            tables.iter().flat_map(|(table, columns)| columns.iter().map(move |column| (*table, *column, "varchar")));
        all.chain(more.iter().copied())
            .map(|(table, column, kind)| ((table.into(), column.into()), kind.into()))
            .collect()
    }

    const KINDS: [(&str, &str, &str); 3] = [
        ("xxl_job_info", "schedule_type", "varchar"),
        ("xxl_job_info", "schedule_conf", "varchar"),
        ("xxl_job_info", "misfire_strategy", "varchar"),
    ];

    #[test]
    fn releases_are_told_by_their_columns() {
        let of = |more: &[(&str, &str, &str)]| Schema::of(&columns(&XXL_JOB, more));
        assert_eq!(of(&[("xxl_job_info", "job_cron", "varchar")]), Ok(Schema::XxlJob(Releases::V2_2)));
        assert_eq!(of(&KINDS), Ok(Schema::XxlJob(Releases::V2_3)));
        let token = ("xxl_job_user", "token", "varchar");
        let text = ("xxl_job_info", "executor_param", "text");
        assert_eq!(of(&[&KINDS[..], &[token]].concat()), Ok(Schema::XxlJob(Releases::V3_2)));
        assert_eq!(of(&[&KINDS[..], &[token, text]].concat()), Ok(Schema::XxlJob(Releases::V3_4)));
        assert_eq!(Schema::of(&columns(&HORACE, &[])), Ok(Schema::Horace));
    }

    #[test]
    fn what_is_something_else_is_told() {
        let told = |columns: &Columns| Schema::of(columns).unwrap_err();
        assert!(told(&Columns::new()).starts_with("it has no table `xxl_job_info`"));
        assert!(told(&columns(&XXL_JOB, &[])).contains("neither `job_cron` nor"));
        let mut cut = columns(&XXL_JOB, &KINDS);
        cut.remove(&("xxl_job_info".to_owned(), "author".to_owned()));
        cut.remove(&("xxl_job_user".to_owned(), "role".to_owned()));
        assert!(told(&cut).starts_with("columns of xxl-job are missing: xxl_job_info.author, xxl_job_user.role; "));
        cut.remove(&("xxl_job_info".to_owned(), "job_desc".to_owned()));
        cut.insert(("xxl_job_info".to_owned(), "name".to_owned()), "varchar".to_owned());
        assert!(told(&cut).contains("not released yet"));
    }
}
