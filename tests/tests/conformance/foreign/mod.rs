//! Databases of other schedulers: what is read of them, what becomes of it, and how jobs are switched over. On MariaDB, which
//! stands for MySQL.

mod horace;
mod quartz;
mod reading;
mod refusals;
mod switching;

use carillon::domain::xxljob::{ForeignXxlJob, ImportOptions, Releases};
use carillon::store::foreign::ForeignDatabase;
use carillon_tests::foreign::{Release, XxlJob, glue_of, groups, jobs, users};
use chrono_tz::Tz;

/// Zone of the other scheduler.
const ZONE: Tz = Tz::Asia__Shanghai;

/// An xxl-job with a hundred jobs, and what it should be read as.
async fn a_hundred_jobs(release: Release) -> (XxlJob, ForeignXxlJob) {
    let source = XxlJob::new(release, ZONE).await;
    let rows = rows(release);
    source.insert_groups(&rows.groups).await;
    source.insert_jobs(&rows.jobs).await;
    source.insert_glue(&rows.glue).await;
    source.insert_users(&rows.users).await;
    (source, rows)
}

fn rows(release: Release) -> ForeignXxlJob {
    let jobs = jobs(7, release);
    let releases = match release {
        Release::V2_2_0 => Releases::V2_2,
        Release::V2_5_0 => Releases::V2_3,
        Release::V3_3_2 => Releases::V3_2,
        Release::V3_4_2 => Releases::V3_4,
    };
    ForeignXxlJob { releases, groups: groups(), glue: glue_of(&jobs), jobs, users: users() }
}

async fn connect(source: &XxlJob) -> ForeignDatabase {
    ForeignDatabase::connect(&source.database.url).await.unwrap()
}

fn options() -> ImportOptions {
    ImportOptions {
        source: "old".to_owned(),
        tenant: "shop".to_owned(),
        zone: ZONE,
        groups: Vec::new(),
        with_scripts: false,
    }
}
