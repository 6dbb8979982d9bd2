//! Takes jobs over from an xxl-job, and gives them back, so that no fire is lost and none comes twice.
//!
//! Its scanner, on whichever of its nodes, holds the row `schedule_lock` while it takes fires and moves `trigger_next_time`. Who
//! holds that row knows: no scan is under way, and the `trigger_next_time` of a job is its first fire that was not taken.

use super::asking::{ask, run};
use super::connection::ForeignDatabase;
use super::failure::{failed, unfit};
use super::xxljob::releases;
use crate::store::error::Result;
use sea_orm::SqlxError;
use sea_orm::sqlx::Row as _;
use sea_orm::sqlx::mysql::MySqlRow;

const ACTION: &str = "switch jobs of the xxl-job";

/// The server ends a switch that is left alone for longer: the other scheduler stands still meanwhile. Seconds; MariaDB only.
const LEFT_ALONE_MAX: u32 = 5;

/// Jobs of one statement at most.
const JOBS_MAX: usize = 1_000;

/// A job that its own scheduler runs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningJob {
    /// Its id.
    pub id: i64,
    /// Its first fire that was not taken yet, epoch ms; 0 is none.
    pub next_fire_at: i64,
}

/// Holds the other scheduler still, so it has to end soon. One that is dropped changes nothing, and holds it until the connection
/// is dropped, too, or used again.
#[derive(Debug)]
pub struct Switch<'a> {
    database: &'a mut ForeignDatabase,
    jobs: Vec<RunningJob>,
}

impl ForeignDatabase {
    /// Waits until the scanner rests, keeps it from going on, and reads which jobs of these groups run by themselves.
    ///
    /// # Errors
    /// It is no xxl-job, the user may not write, the row `schedule_lock` is missing, or the scanner does not rest.
    pub async fn begin_switch(&mut self, groups: &[i64]) -> Result<Switch<'_>> {
        releases(self)?;
        let Self { connection, address, .. } = &mut *self;
        let limit = format!("SET SESSION autocommit = 1 /*M!100300 , idle_transaction_timeout = {LEFT_ALONE_MAX} */");
        let committed = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
        // Whatever was begun before and not ended comes to nothing.
        for text in ["ROLLBACK", limit.as_str(), committed, "START TRANSACTION"] {
            run(connection, address, ACTION, text.to_owned()).await?;
        }
        let lock = "SELECT 1 AS `held` FROM `xxl_job_lock` WHERE `lock_name` = 'schedule_lock' FOR UPDATE";
        if ask(connection, address, ACTION, lock.to_owned(), &[]).await?.is_empty() {
            let why = "`xxl_job_lock` has no row `schedule_lock`, so its nodes do not wait for each other, nor for a switch; \
                       INSERT it, and restart them";
            run(connection, address, ACTION, "ROLLBACK".to_owned()).await?;
            return Err(unfit(ACTION, address, why));
        }
        let mut jobs = Vec::new();
        for groups in groups.chunks(JOBS_MAX) {
            let text = format!(
                "SELECT CAST(`id` AS SIGNED) AS `id`, CAST(`trigger_next_time` AS SIGNED) AS `next` FROM `xxl_job_info` \
                 WHERE `trigger_status` = 1 AND `job_group` IN ({}) ORDER BY `id`",
                places(groups.len())
            );
            let rows = ask(connection, address, ACTION, text, groups).await?;
            let read = rows.iter().map(running).collect::<std::result::Result<Vec<_>, SqlxError>>();
            jobs.extend(read.map_err(|error| failed(ACTION, address, error))?);
        }
        Ok(Switch { database: self, jobs })
    }
}

fn running(row: &MySqlRow) -> std::result::Result<RunningJob, SqlxError> {
    Ok(RunningJob { id: row.try_get("id")?, next_fire_at: row.try_get("next")? })
}

/// `?, ?, …`
fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

impl Switch<'_> {
    /// The jobs of the groups that run by themselves, by id within each thousand of groups.
    #[must_use]
    pub fn jobs(&self) -> &[RunningJob] {
        &self.jobs
    }

    /// Takes these jobs over: their scheduler fires them no more. Their next fires stay in their rows, so a switch whose end is
    /// unknown can be looked at again. Fires that were taken before, within the last 5 s, still run there.
    ///
    /// # Errors
    /// The server does not answer: the jobs may have been taken over, or not.
    pub async fn take_over(self, jobs: &[i64]) -> Result<()> {
        let ForeignDatabase { connection, address, .. } = &mut *self.database;
        for jobs in jobs.chunks(JOBS_MAX) {
            let places = places(jobs.len());
            let text = format!("UPDATE `xxl_job_info` SET `trigger_status` = 0 WHERE `id` IN ({places})");
            ask(connection, address, ACTION, text, jobs).await?;
        }
        run(connection, address, ACTION, "COMMIT".to_owned()).await
    }

    /// Gives these jobs back: their scheduler fires them from `next_fire_at` on. Jobs that it runs already stay as they are.
    ///
    /// # Errors
    /// The server does not answer: the jobs may have been given back, or not.
    pub async fn give_back(self, jobs: &[RunningJob]) -> Result<()> {
        let ForeignDatabase { connection, address, .. } = &mut *self.database;
        for job in jobs {
            let text = "UPDATE `xxl_job_info` SET `trigger_status` = 1, `trigger_last_time` = 0, `trigger_next_time` = ? \
                        WHERE `id` = ? AND `trigger_status` = 0";
            ask(connection, address, ACTION, text.to_owned(), &[job.next_fire_at, job.id]).await?;
        }
        run(connection, address, ACTION, "COMMIT".to_owned()).await
    }

    /// Changes nothing.
    ///
    /// # Errors
    /// The server does not answer; it changes nothing either way.
    pub async fn leave(self) -> Result<()> {
        let ForeignDatabase { connection, address, .. } = &mut *self.database;
        run(connection, address, ACTION, "ROLLBACK".to_owned()).await
    }
}
