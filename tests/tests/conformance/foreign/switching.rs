//! Jobs are taken over from an xxl-job, and given back, while its scanner works.

use super::{ZONE, connect};
use carillon::domain::xxljob::{ForeignGroup, ForeignJob};
use carillon::store::foreign::RunningJob;
use carillon_tests::foreign::{Release, XxlJob};
use sea_orm::ConnectionTrait as _;
use std::time::Duration;

const NEXT: i64 = 1_767_225_600_000;

/// Two groups with jobs: 1 and 2 run in group 1, 3 is stopped there, 4 runs in group 2.
async fn source() -> XxlJob {
    let source = XxlJob::new(Release::V2_5_0, ZONE).await;
    let group = |id| ForeignGroup { id, app_name: format!("app-{id}"), ..ForeignGroup::default() };
    source.insert_groups(&[group(1), group(2)]).await;
    let job = |id: i64, job_group, trigger_status| ForeignJob {
        id,
        job_group,
        trigger_status,
        trigger_next_time: NEXT + id,
        trigger_last_time: 1,
        schedule_type: Some("CRON".to_owned()),
        misfire_strategy: Some("DO_NOTHING".to_owned()),
        ..ForeignJob::default()
    };
    source.insert_jobs(&[job(1, 1, 1), job(2, 1, 1), job(3, 1, 0), job(4, 2, 1)]).await;
    source
}

/// Status and next fire of each job.
async fn jobs(source: &XxlJob) -> Vec<(i64, i64)> {
    let sql = "SELECT CAST(trigger_status AS SIGNED), trigger_next_time FROM xxl_job_info ORDER BY id";
    source.database.query(sql, |row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?))).await
}

fn running(id: i64) -> RunningJob {
    RunningJob { id, next_fire_at: NEXT + id }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_of_a_group_are_taken_over_and_given_back() {
    let source = source().await;
    let mut database = connect(&source).await;
    let switch = database.begin_switch(&[1]).await.unwrap();
    assert_eq!(switch.jobs(), [running(1), running(2)]);
    switch.take_over(&[1, 2]).await.unwrap();
    assert_eq!(jobs(&source).await, [(0, NEXT + 1), (0, NEXT + 2), (0, NEXT + 3), (1, NEXT + 4)]);
    // 1 is given back with another instant; 4 runs, and stays as it is.
    let switch = database.begin_switch(&[1, 2]).await.unwrap();
    assert_eq!(switch.jobs(), [running(4)]);
    let later = RunningJob { id: 1, next_fire_at: NEXT + 60_000 };
    switch.give_back(&[later, RunningJob { id: 4, next_fire_at: 9 }]).await.unwrap();
    assert_eq!(jobs(&source).await, [(1, NEXT + 60_000), (0, NEXT + 2), (0, NEXT + 3), (1, NEXT + 4)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_that_is_left_or_dropped_changes_nothing() {
    let source = source().await;
    let before = jobs(&source).await;
    let mut database = connect(&source).await;
    database.begin_switch(&[1]).await.unwrap().leave().await.unwrap();
    drop(database.begin_switch(&[1]).await.unwrap());
    drop(database);
    assert_eq!(jobs(&source).await, before);
    // And the scanner goes on.
    let mut other = connect(&source).await;
    other.begin_switch(&[1]).await.unwrap().take_over(&[1]).await.unwrap();
}

/// A scan that is under way moves the next fire before the switch reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_is_under_way_ends_first() {
    let source = source().await;
    let (scanner, writer) = (source.database.connect().await, source.database.connect().await);
    scanner.execute_unprepared("SET autocommit = 0").await.unwrap();
    let lock = "SELECT * FROM xxl_job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE";
    scanner.execute_unprepared(lock).await.unwrap();
    let mut database = connect(&source).await;
    let switching = tokio::spawn(async move {
        let switch = database.begin_switch(&[1]).await.unwrap();
        let jobs = switch.jobs().to_vec();
        switch.take_over(&[1, 2]).await.unwrap();
        jobs
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!switching.is_finished(), "the scanner holds the lock");
    // It writes over other connections, one commit for each job.
    writer.execute_unprepared("UPDATE xxl_job_info SET trigger_next_time = 77 WHERE id = 1").await.unwrap();
    scanner.execute_unprepared("COMMIT").await.unwrap();
    let seen = switching.await.unwrap();
    assert_eq!(seen, [RunningJob { id: 1, next_fire_at: 77 }, running(2)]);
    // The next scan finds them stopped.
    scanner.execute_unprepared(lock).await.unwrap();
    assert_eq!(jobs(&source).await[..2], [(0, 77), (0, NEXT + 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_row_of_the_lock_nothing_is_switched() {
    let source = source().await;
    source.database.execute("DELETE FROM xxl_job_lock").await;
    let mut database = connect(&source).await;
    let told = database.begin_switch(&[1]).await.unwrap_err().to_string();
    assert!(told.contains("no row `schedule_lock`"), "{told}");
    let none = database.begin_switch(&[]).await.unwrap_err().to_string();
    assert!(none.contains("no row `schedule_lock`"), "{none}");
}
