//! What is read is what is there, of each release, and belongs to one instant.

use super::{ZONE, a_hundred_jobs, connect, options, rows};
use carillon::domain::import::{Fate, ForeignKind};
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::TaskFile;
use carillon::domain::xxljob::{COLUMNS, ForeignJob, ForeignLog, TABLES, document, job_of, spec_of};
use carillon::store::foreign::{FOREIGN_PAGE_MAX, ForeignDatabase, LOG_TEXT_CHARS_MAX};
use carillon_tests::Database;
use carillon_tests::foreign::{Release, XxlJob};
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_of_a_hundred_jobs_is_read() {
    for release in Release::ALL {
        let (source, expected) = a_hundred_jobs(release).await;
        let mut database = connect(&source).await;
        assert_eq!(database.kind(), ForeignKind::XxlJob);
        let mut snapshot = database.snapshot().await.unwrap();
        let read = snapshot.xxl_job(ZONE).await.unwrap();
        snapshot.end().await.unwrap();
        database.close().await;
        assert_eq!(read.jobs.len(), 100);
        for (read, expected) in read.jobs.iter().zip(&expected.jobs) {
            assert_eq!(read, expected, "{release:?}");
        }
        assert_eq!(read, expected, "{release:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_look_makes_the_same_document() {
    let (source, _) = a_hundred_jobs(Release::V2_5_0).await;
    let mut documents = Vec::new();
    for _ in 0..2 {
        let mut database = connect(&source).await;
        let read = database.snapshot().await.unwrap().xxl_job(ZONE).await.unwrap();
        documents.push(document(&read, &options()).unwrap());
    }
    assert_eq!(documents[0], documents[1]);
}

/// The columns that scripts see are those of the other scheduler, but for what the report names.
#[test]
fn a_hundred_tasks_show_themselves_as_the_jobs_that_they_were() {
    for release in Release::ALL {
        let rows = rows(release);
        let document = document(&rows, &options()).unwrap();
        let file = TaskFile::read(&document.task_file(), &TaskSpec::default(), "");
        assert_eq!(file.refused, [], "{release:?}");
        assert_eq!(file.entries.len(), 100);
        for job in &rows.jobs {
            let (spec, uncarried) = spec_of(job, ZONE);
            let left: BTreeSet<&str> = uncarried.iter().map(|one| one.field.as_str()).collect();
            let known = ["add_time", "update_time", "trigger_last_time", "alarm_email", "glue_type"];
            assert!(left.iter().all(|field| known.contains(field)), "{left:?}");
            let extra = carillon::domain::xxljob::TaskExtra { glue_type: job.glue_type.clone(), ..Default::default() };
            let shown = job_of(&spec, &extra);
            let columns = |job: &ForeignJob| {
                (
                    (job.job_desc.clone(), job.executor_handler.clone(), job.executor_param.clone()),
                    (job.executor_route_strategy.clone(), job.executor_block_strategy.clone()),
                    (job.executor_timeout, job.executor_fail_retry_count),
                )
            };
            assert_eq!(columns(&shown), columns(job));
            match &job.job_cron {
                Some(_) => assert_eq!(shown.job_cron, job.job_cron),
                None => assert_eq!(
                    (&shown.schedule_type, &shown.schedule_conf, &shown.misfire_strategy),
                    (&job.schedule_type, &job.schedule_conf, &job.misfire_strategy)
                ),
            }
        }
    }
}

pub async fn columns_of(database: &Database) -> BTreeSet<(String, String)> {
    let columns = "SELECT CAST(TABLE_NAME AS CHAR), CAST(COLUMN_NAME AS CHAR) FROM information_schema.COLUMNS \
                   WHERE TABLE_SCHEMA = DATABASE()";
    let columns = database.query(columns, |row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?))).await;
    columns.into_iter().collect()
}

/// The list of columns, which the documentation is made of, knows each column of each release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_column_of_a_release_is_unknown() {
    let known: BTreeSet<(String, String)> =
        COLUMNS.iter().map(|column| (column.table.to_owned(), column.name.to_owned())).collect();
    let listed = |table: &str| TABLES.iter().any(|(name, says)| *name == table && !says.is_empty());
    let mut seen = BTreeSet::new();
    for release in Release::ALL {
        let columns = columns_of(&XxlJob::new(release, ZONE).await.database).await;
        for (table, column) in &columns {
            let is_known = known.contains(&(table.clone(), column.clone())) || listed(table);
            assert!(is_known, "{release:?}: {table}.{column}");
        }
        seen.extend(columns);
    }
    assert!(known.is_subset(&seen), "{:?} is in no release", known.difference(&seen).collect::<Vec<_>>());
}

/// A user who may read no secret can make an import.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_not_read() {
    let (source, expected) = a_hundred_jobs(Release::V3_4_2).await;
    let database = &source.database;
    let name = database.url.rsplit('/').next().unwrap();
    let user = format!("reader_{name}");
    let secret = |table: &str, column: &str| {
        COLUMNS.iter().any(|of| of.table == table && of.name == column && of.fate == Fate::Unread)
            && ["password", "token"].contains(&column)
    };
    database.execute(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY 'reader'")).await;
    for (table, column) in columns_of(database).await {
        if !secret(&table, &column) {
            database.execute(&format!("GRANT SELECT (`{column}`) ON `{name}`.`{table}` TO '{user}'@'%'")).await;
        }
    }
    let mut reader = ForeignDatabase::connect(&database.as_user(&user, "reader").url).await.unwrap();
    let read = reader.snapshot().await.unwrap().xxl_job(ZONE).await.unwrap();
    assert_eq!((read.jobs, read.users), (expected.jobs, expected.users));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_read_was_there_at_one_instant() {
    let (source, expected) = a_hundred_jobs(Release::V2_5_0).await;
    let mut database = connect(&source).await;
    let mut snapshot = database.snapshot().await.unwrap();
    source.database.execute("UPDATE xxl_job_info SET job_desc = 'edited meanwhile'").await;
    source.database.execute("DELETE FROM xxl_job_group").await;
    assert_eq!(snapshot.xxl_job(ZONE).await.unwrap(), expected);
    snapshot.end().await.unwrap();
    let later = database.snapshot().await.unwrap().xxl_job(ZONE).await.unwrap();
    assert!(later.groups.is_empty() && later.jobs.iter().all(|job| job.job_desc == "edited meanwhile"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_rows_than_a_page_are_read() {
    let source = XxlJob::new(Release::V3_3_2, ZONE).await;
    let count = i64::from(FOREIGN_PAGE_MAX) * 2 + 1;
    let numbers = format!("SELECT seq, 1, CONCAT('job ', seq), 'NONE', 'BEAN', seq FROM seq_1_to_{count}");
    let columns = "id, job_group, job_desc, schedule_type, glue_type, trigger_last_time";
    source.database.execute(&format!("INSERT INTO xxl_job_info ({columns}) {numbers}")).await;
    let mut database = connect(&source).await;
    let jobs = database.snapshot().await.unwrap().xxl_job(ZONE).await.unwrap().jobs;
    let ids: Vec<i64> = jobs.iter().map(|job| job.id).collect();
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    // A whole number of pages ends with an empty one.
    source.database.execute(&format!("DELETE FROM xxl_job_info WHERE id = {count}")).await;
    let jobs = database.snapshot().await.unwrap().xxl_job(ZONE).await.unwrap().jobs;
    assert_eq!(jobs.len() as i64, count - 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_read_in_pages() {
    let source = XxlJob::new(Release::V2_5_0, ZONE).await;
    let log = |id: i64| ForeignLog {
        id,
        job_group: 1,
        job_id: 7,
        executor_address: "http://10.0.0.1:9999/".to_owned(),
        executor_handler: "h".to_owned(),
        executor_sharding_param: "0/2".to_owned(),
        trigger_time: Some(1_767_225_600_000 + id * 1_000),
        trigger_code: 200,
        trigger_msg: "<br>行".to_owned(),
        handle_code: 500,
        handle_msg: "x".repeat(LOG_TEXT_CHARS_MAX + id as usize),
        ..ForeignLog::default()
    };
    let logs: Vec<ForeignLog> = (1..=5).map(|id| log(id * 10)).collect();
    source.insert_logs(&logs).await;
    let mut database = connect(&source).await;
    let mut snapshot = database.snapshot().await.unwrap();
    let (mut read, mut after) = (Vec::new(), 0);
    loop {
        let page = snapshot.xxl_job_logs(after, 2, ZONE).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = last.id;
        read.extend(page);
    }
    let cut = |log: ForeignLog| ForeignLog { handle_msg: "x".repeat(LOG_TEXT_CHARS_MAX), ..log };
    assert_eq!(read, logs.into_iter().map(cut).collect::<Vec<_>>());
}
