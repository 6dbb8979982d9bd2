//! An xxl-job's database: tables of three releases, and rows in them.

use super::{Row, insert, local, text_or_null};
use crate::database::Database;
use crate::server::Kind;
use carillon::domain::xxljob::{ForeignGlue, ForeignGroup, ForeignJob, ForeignLog, ForeignUser};
use chrono_tz::Tz;

/// Releases whose tables differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// 2.2.0: cron expressions only.
    V2_2_0,
    /// 2.5.0: kinds of schedules.
    V2_5_0,
    /// 3.3.2: users with tokens.
    V3_3_2,
    /// 3.4.2: texts without bounds.
    V3_4_2,
}

impl Release {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::V2_2_0, Self::V2_5_0, Self::V3_3_2, Self::V3_4_2];

    /// The statements that make its tables.
    fn tables(self) -> Vec<String> {
        let is_old = self == Self::V2_2_0;
        let is_3 = matches!(self, Self::V3_3_2 | Self::V3_4_2);
        let is_new = self == Self::V3_4_2;
        let if_ = |holds: bool, yes: &'static str, no: &'static str| if holds { yes } else { no };
        let schedule = if_(
            is_old,
            "job_cron VARCHAR(128) NOT NULL",
            "schedule_type VARCHAR(50) NOT NULL DEFAULT 'NONE', schedule_conf VARCHAR(128), \
             misfire_strategy VARCHAR(50) NOT NULL DEFAULT 'DO_NOTHING'",
        );
        let param = if_(is_new, "TEXT", "VARCHAR(512)");
        let key = "INT NOT NULL AUTO_INCREMENT PRIMARY KEY";
        let big_key = "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY";
        vec![
            format!(
                "CREATE TABLE xxl_job_group (id {key}, app_name VARCHAR(64) NOT NULL, title VARCHAR({}) NOT NULL, \
                 address_type TINYINT NOT NULL DEFAULT 0, address_list {}{})",
                if_(is_new, "64", "12"),
                if_(is_old, "VARCHAR(512)", "TEXT"),
                if_(is_old, "", ", update_time DATETIME"),
            ),
            format!(
                "CREATE TABLE xxl_job_info (id {key}, job_group INT NOT NULL, job_desc VARCHAR(255) NOT NULL, add_time DATETIME, \
                 update_time DATETIME, author VARCHAR(64), alarm_email VARCHAR(255), {schedule}, \
                 executor_route_strategy VARCHAR(50), executor_handler VARCHAR(255), executor_param {param}, \
                 executor_block_strategy VARCHAR(50), executor_timeout INT NOT NULL DEFAULT 0, \
                 executor_fail_retry_count INT NOT NULL DEFAULT 0, glue_type VARCHAR(50) NOT NULL, glue_source MEDIUMTEXT, \
                 glue_remark VARCHAR(128), glue_updatetime DATETIME, child_jobid VARCHAR(255), \
                 trigger_status TINYINT NOT NULL DEFAULT 0, trigger_last_time BIGINT NOT NULL DEFAULT 0, \
                 trigger_next_time BIGINT NOT NULL DEFAULT 0)"
            ),
            format!(
                "CREATE TABLE xxl_job_logglue (id {key}, job_id INT NOT NULL, glue_type VARCHAR(50), glue_source MEDIUMTEXT, \
                 glue_remark VARCHAR(128) NOT NULL, add_time DATETIME, update_time DATETIME)"
            ),
            format!(
                "CREATE TABLE xxl_job_user (id {key}, username VARCHAR(50) NOT NULL UNIQUE, password VARCHAR({}) NOT NULL, \
                 {}role TINYINT NOT NULL, permission VARCHAR(255))",
                if_(is_3, "100", "50"),
                if_(is_3, "token VARCHAR(100), ", ""),
            ),
            format!(
                "CREATE TABLE xxl_job_log (id {big_key}, job_group INT NOT NULL, job_id INT NOT NULL, \
                 executor_address VARCHAR(255), executor_handler VARCHAR(255), executor_param {param}, \
                 executor_sharding_param VARCHAR(20), executor_fail_retry_count INT NOT NULL DEFAULT 0, trigger_time DATETIME, \
                 trigger_code INT NOT NULL, trigger_msg TEXT, handle_time DATETIME, handle_code INT NOT NULL, handle_msg TEXT, \
                 alarm_status TINYINT NOT NULL DEFAULT 0)"
            ),
            "CREATE TABLE xxl_job_lock (lock_name VARCHAR(50) NOT NULL PRIMARY KEY)".to_owned(),
            "INSERT INTO xxl_job_lock VALUES ('schedule_lock')".to_owned(),
        ]
    }
}

/// An xxl-job's database.
#[derive(Debug, Clone)]
pub struct XxlJob {
    /// Where it is.
    pub database: Database,
    /// Whose tables it has.
    pub release: Release,
    /// Zone of its times.
    pub zone: Tz,
}

impl XxlJob {
    /// One without rows, but for the lock's.
    pub async fn new(release: Release, zone: Tz) -> Self {
        let database = Database::empty(Kind::MariaDb).await;
        for statement in release.tables() {
            database.execute(&statement).await;
        }
        Self { database, release, zone }
    }

    /// Inserts groups.
    pub async fn insert_groups(&self, groups: &[ForeignGroup]) {
        let row = |group: &ForeignGroup| -> Row {
            vec![
                ("id", group.id.into()),
                ("app_name", group.app_name.as_str().into()),
                ("title", group.title.as_str().into()),
                ("address_type", group.address_type.into()),
                ("address_list", text_or_null(&group.address_list)),
            ]
        };
        insert(&self.database, "xxl_job_group", groups.iter().map(row)).await;
    }

    /// Inserts jobs. Those of a release that has no kinds of schedules have a `job_cron`.
    pub async fn insert_jobs(&self, jobs: &[ForeignJob]) {
        insert(&self.database, "xxl_job_info", jobs.iter().map(|job| self.row(job))).await;
    }

    fn row(&self, job: &ForeignJob) -> Row {
        let mut row: Row = vec![
            ("id", job.id.into()),
            ("job_group", job.job_group.into()),
            ("job_desc", job.job_desc.as_str().into()),
            ("add_time", local(job.add_time, self.zone)),
            ("update_time", local(job.update_time, self.zone)),
            ("author", text_or_null(&job.author)),
            ("alarm_email", text_or_null(&job.alarm_email)),
            ("executor_route_strategy", text_or_null(&job.executor_route_strategy)),
            ("executor_handler", text_or_null(&job.executor_handler)),
            ("executor_param", text_or_null(&job.executor_param)),
            ("executor_block_strategy", text_or_null(&job.executor_block_strategy)),
            ("executor_timeout", job.executor_timeout.into()),
            ("executor_fail_retry_count", job.executor_fail_retry_count.into()),
            ("glue_type", job.glue_type.as_str().into()),
            ("glue_source", text_or_null(&job.glue_source)),
            ("glue_remark", text_or_null(&job.glue_remark)),
            ("glue_updatetime", local(job.glue_updatetime, self.zone)),
            ("child_jobid", text_or_null(&job.child_jobid)),
            ("trigger_status", job.trigger_status.into()),
            ("trigger_last_time", job.trigger_last_time.into()),
            ("trigger_next_time", job.trigger_next_time.into()),
        ];
        let more = [
            ("job_cron", &job.job_cron),
            ("schedule_type", &job.schedule_type),
            ("schedule_conf", &job.schedule_conf),
            ("misfire_strategy", &job.misfire_strategy),
        ];
        row.extend(more.into_iter().filter_map(|(name, value)| Some((name, value.clone()?.into()))));
        row
    }

    /// Inserts versions of scripts.
    pub async fn insert_glue(&self, versions: &[ForeignGlue]) {
        let row = |version: &ForeignGlue| -> Row {
            vec![
                ("id", version.id.into()),
                ("job_id", version.job_id.into()),
                ("glue_type", version.glue_type.as_str().into()),
                ("glue_source", version.glue_source.as_str().into()),
                ("glue_remark", version.glue_remark.as_str().into()),
                ("add_time", local(version.add_time, self.zone)),
            ]
        };
        insert(&self.database, "xxl_job_logglue", versions.iter().map(row)).await;
    }

    /// Inserts users, each with a password.
    pub async fn insert_users(&self, users: &[ForeignUser]) {
        let row = |user: &ForeignUser| -> Row {
            vec![
                ("id", user.id.into()),
                ("username", user.username.as_str().into()),
                ("password", "the hash of a password".into()),
                ("role", user.role.into()),
                ("permission", text_or_null(&user.permission)),
            ]
        };
        insert(&self.database, "xxl_job_user", users.iter().map(row)).await;
    }

    /// Inserts runs.
    pub async fn insert_logs(&self, logs: &[ForeignLog]) {
        let row = |log: &ForeignLog| -> Row {
            vec![
                ("id", log.id.into()),
                ("job_group", log.job_group.into()),
                ("job_id", log.job_id.into()),
                ("executor_address", text_or_null(&log.executor_address)),
                ("executor_handler", text_or_null(&log.executor_handler)),
                ("executor_param", text_or_null(&log.executor_param)),
                ("executor_sharding_param", text_or_null(&log.executor_sharding_param)),
                ("executor_fail_retry_count", log.executor_fail_retry_count.into()),
                ("trigger_time", local(log.trigger_time, self.zone)),
                ("trigger_code", log.trigger_code.into()),
                ("trigger_msg", text_or_null(&log.trigger_msg)),
                ("handle_time", local(log.handle_time, self.zone)),
                ("handle_code", log.handle_code.into()),
                ("handle_msg", text_or_null(&log.handle_msg)),
                ("alarm_status", log.alarm_status.into()),
            ]
        };
        insert(&self.database, "xxl_job_log", logs.iter().map(row)).await;
    }
}
