//! Rows of xxl-job as they are read, over all its releases.

use serde::{Deserialize, Serialize};

/// A row of `xxl_job_info`. Texts that are null are empty. The names in JSON are those that xxl-job's own answers and forms
/// have; its times are left out there, because releases write them differently.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ForeignJob {
    /// Id, from 1.
    pub id: i64,
    /// Id of its group, from 1.
    pub job_group: i64,
    /// Cron expression; only in 2.2.0, which has nothing else.
    pub job_cron: Option<String>,
    /// What people call it.
    pub job_desc: String,
    /// When it was made, epoch ms.
    #[serde(skip)]
    pub add_time: Option<i64>,
    /// When it was changed, epoch ms.
    #[serde(skip)]
    pub update_time: Option<i64>,
    /// Who is responsible.
    pub author: String,
    /// Where alarms go, with commas between them.
    pub alarm_email: String,
    /// `NONE`, `CRON`, `FIX_RATE`; not in 2.2.0.
    pub schedule_type: Option<String>,
    /// The cron expression, or whole seconds; not in 2.2.0.
    pub schedule_conf: Option<String>,
    /// `DO_NOTHING`, `FIRE_ONCE_NOW`; not in 2.2.0, which does nothing.
    pub misfire_strategy: Option<String>,
    /// Which executor takes a run.
    pub executor_route_strategy: String,
    /// Name of the handler; empty for scripts.
    pub executor_handler: String,
    /// Parameters.
    pub executor_param: String,
    /// What happens while an earlier run goes on.
    pub executor_block_strategy: String,
    /// Longest run, s; 0 is no bound.
    pub executor_timeout: i64,
    /// Retries.
    pub executor_fail_retry_count: i64,
    /// `BEAN`, or the kind of script.
    pub glue_type: String,
    /// The script. Readers cut what is longer than
    /// [`GLUE_BYTES_MAX`](crate::domain::import::GLUE_BYTES_MAX) to one character more than that.
    pub glue_source: String,
    /// What the script's author said of it.
    pub glue_remark: String,
    /// When the script was saved, epoch ms.
    #[serde(skip)]
    pub glue_updatetime: Option<i64>,
    /// Ids of the jobs that follow a success, with commas between them.
    #[serde(rename = "childJobId")]
    pub child_jobid: String,
    /// 1: it runs by its schedule; 0: it does not.
    pub trigger_status: i64,
    /// Its last fire, epoch ms; 0 is none.
    pub trigger_last_time: i64,
    /// Its next fire, the first that was not taken yet, epoch ms; 0 is none.
    pub trigger_next_time: i64,
}

/// A row of `xxl_job_group`: executors that share a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignGroup {
    /// Id, from 1.
    pub id: i64,
    /// What executors announce.
    pub app_name: String,
    /// For people.
    pub title: String,
    /// 0: executors announce themselves; 1: a person entered the addresses.
    pub address_type: i64,
    /// Addresses, with commas between them.
    pub address_list: String,
}

/// A row of `xxl_job_logglue`: an earlier version of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignGlue {
    /// Id; later versions have larger ones.
    pub id: i64,
    /// Id of the job.
    pub job_id: i64,
    /// Kind of script.
    pub glue_type: String,
    /// The script, cut as in [`ForeignJob::glue_source`].
    pub glue_source: String,
    /// What its author said of it.
    pub glue_remark: String,
    /// When it was saved, epoch ms.
    pub add_time: Option<i64>,
}

/// A row of `xxl_job_user`, without password and token, which are never read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignUser {
    /// Id, from 1.
    pub id: i64,
    /// Name to sign in with.
    pub username: String,
    /// 1: everything; 0: the groups of `permission`.
    pub role: i64,
    /// Ids of groups, with commas between them.
    pub permission: String,
}

/// A row of `xxl_job_log`: one run. Long texts are cut by readers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignLog {
    /// Id; later runs have larger ones.
    pub id: i64,
    /// Id of the group.
    pub job_group: i64,
    /// Id of the job.
    pub job_id: i64,
    /// Address of the executor.
    pub executor_address: String,
    /// Handler.
    pub executor_handler: String,
    /// Parameters.
    pub executor_param: String,
    /// `index/total` of a shard.
    pub executor_sharding_param: String,
    /// Retries that were left.
    pub executor_fail_retry_count: i64,
    /// When it was sent, epoch ms.
    pub trigger_time: Option<i64>,
    /// 200: it was sent; 0: not yet; else it was not.
    pub trigger_code: i64,
    /// How it was sent.
    pub trigger_msg: String,
    /// When it ended, epoch ms.
    pub handle_time: Option<i64>,
    /// 200: it succeeded; 0: it has not ended; 502: it took too long; else it failed.
    pub handle_code: i64,
    /// What the executor said of it.
    pub handle_msg: String,
    /// 0: undecided, 1: no alarm needed, 2: an alarm was sent, 3: it could not be sent.
    pub alarm_status: i64,
}

/// Which releases have a schema like the one that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Releases {
    /// A cron expression is all that a schedule can be.
    V2_2,
    /// Kinds of schedules.
    V2_3,
    /// Users have tokens.
    V3_2,
    /// Parameters without a bound.
    V3_4,
}

impl Releases {
    /// From the first to the last.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::V2_2 => "2.2.0",
            Self::V2_3 => "2.3.0 to 3.1.1",
            Self::V3_2 => "3.2.0 to 3.3.2",
            Self::V3_4 => "3.4.0 to 3.4.2",
        }
    }
}

/// Everything that an import takes of an xxl-job, each list by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignXxlJob {
    /// What its schema is that of.
    pub releases: Releases,
    /// Groups.
    pub groups: Vec<ForeignGroup>,
    /// Jobs.
    pub jobs: Vec<ForeignJob>,
    /// Earlier versions of scripts.
    pub glue: Vec<ForeignGlue>,
    /// Users.
    pub users: Vec<ForeignUser>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_is_read_as_scripts_write_it() {
        let body = json!({
            "jobGroup": 2, "jobDesc": "d", "executorRouteStrategy": "FIRST", "jobCron": "0/5 * * * * ? *", "glueType": "BEAN",
            "executorHandler": "h", "executorBlockStrategy": "SERIAL_EXECUTION", "childJobId": "3", "executorTimeout": 0,
            "executorFailRetryCount": 1, "author": "a", "alarmEmail": "", "executorParam": "", "addTime": "2018-11-03", "x": 1,
        });
        let job: ForeignJob = serde_json::from_value(body).unwrap();
        let expected = ForeignJob {
            job_group: 2,
            job_desc: "d".to_owned(),
            executor_route_strategy: "FIRST".to_owned(),
            job_cron: Some("0/5 * * * * ? *".to_owned()),
            glue_type: "BEAN".to_owned(),
            executor_handler: "h".to_owned(),
            executor_block_strategy: "SERIAL_EXECUTION".to_owned(),
            child_jobid: "3".to_owned(),
            executor_fail_retry_count: 1,
            author: "a".to_owned(),
            ..ForeignJob::default()
        };
        assert_eq!(job, expected);
        let written = serde_json::to_value(&job).unwrap();
        assert_eq!((&written["childJobId"], &written["triggerNextTime"]), (&json!("3"), &json!(0)));
    }
}
