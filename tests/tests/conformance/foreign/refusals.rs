//! What cannot be read says what, where, and how to mend it, and never the password.

use super::{ZONE, a_hundred_jobs};
use carillon::store::StoreErrorKind;
use carillon::store::foreign::ForeignDatabase;
use carillon_tests::foreign::{HORACE_TABLES, Release, XxlJob};
use carillon_tests::{Database, Kind, port};

const PASSWORD: &str = "S3cret:of/the@source";
const ESCAPED: &str = "S3cret%3Aof%2Fthe%40source";

async fn told(url: &str) -> (StoreErrorKind, String) {
    let error = ForeignDatabase::connect(url).await.unwrap_err();
    let told = format!("{error} {error:?}");
    for secret in [PASSWORD, ESCAPED, "S3cret"] {
        assert!(!told.contains(secret), "{told}");
    }
    (error.kind(), error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_address_is_told_without_its_password() {
    let database = Database::empty(Kind::MariaDb).await;
    let url = database.as_user("carillon", ESCAPED).url;
    let (kind, wrong) = told(&url).await;
    assert_eq!(kind, StoreErrorKind::Invalid);
    assert!(wrong.contains("carillon@127.0.0.1:") && wrong.contains("mend the user or the password"), "{wrong}");
    let (kind, nothing) = told(&format!("mysql://root:{ESCAPED}@127.0.0.1:{}/xxl_job", port::free())).await;
    assert_eq!(kind, StoreErrorKind::Unavailable);
    assert!(nothing.contains("start the database there, or mend the address"), "{nothing}");
    let (_, unescaped) = told(&format!("mysql://root:{PASSWORD}@127.0.0.1/xxl_job")).await;
    assert!(unescaped.contains("percent-encoded"), "{unescaped}");
    let (kind, none) = told(&format!("{}_x", database.url)).await;
    assert_eq!(kind, StoreErrorKind::Invalid);
    assert!(none.contains("mend the name of the database"), "{none}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_database_is_told_apart() {
    let database = Database::empty(Kind::MariaDb).await;
    let (kind, empty) = told(&database.url).await;
    assert_eq!(kind, StoreErrorKind::Invalid);
    assert!(empty.contains("it has no table `xxl_job_info`"), "{empty}");
    let source = XxlJob::new(Release::V2_5_0, ZONE).await;
    source.database.execute("ALTER TABLE xxl_job_info DROP COLUMN author").await;
    let (_, cut) = told(&source.database.url).await;
    assert!(cut.contains("columns of xxl-job are missing: xxl_job_info.author"), "{cut}");
    source.database.execute("ALTER TABLE xxl_job_info CHANGE job_desc name VARCHAR(255)").await;
    assert!(told(&source.database.url).await.1.contains("not released yet"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_one_is_not_read_as_the_other() {
    let (source, _) = a_hundred_jobs(Release::V2_5_0).await;
    let mut xxl_job = ForeignDatabase::connect(&source.database.url).await.unwrap();
    assert!(xxl_job.snapshot().await.unwrap().horace(ZONE).await.is_err());
    let database = Database::empty(Kind::MariaDb).await;
    for statement in HORACE_TABLES {
        database.execute(statement).await;
    }
    let mut horace = ForeignDatabase::connect(&database.url).await.unwrap();
    assert!(horace.snapshot().await.unwrap().xxl_job(ZONE).await.is_err());
    assert!(horace.begin_switch(&[1]).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_read_is_told_what_is_needed() {
    let (source, _) = a_hundred_jobs(Release::V2_5_0).await;
    let name = source.database.url.rsplit('/').next().unwrap();
    let user = format!("blind_{name}");
    source.database.execute(&format!("CREATE USER '{user}'@'%' IDENTIFIED BY '{PASSWORD}'")).await;
    let (_, nothing) = told(&source.database.as_user(&user, ESCAPED).url).await;
    assert!(nothing.contains(&format!("GRANT SELECT ON `{name}`.*")), "{nothing}");
    source.database.execute(&format!("GRANT SELECT ON `{name}`.xxl_job_info TO '{user}'@'%'")).await;
    let (_, part) = told(&source.database.as_user(&user, ESCAPED).url).await;
    assert!(part.contains("xxl_job_group.id") && part.contains("may not read all of them"), "{part}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_for_debugging_has_the_password() {
    let (source, _) = a_hundred_jobs(Release::V2_5_0).await;
    let mut database = ForeignDatabase::connect(&source.database.url).await.unwrap();
    assert!(!format!("{database:?}").contains("carillon:carillon"));
    let snapshot = database.snapshot().await.unwrap();
    let shown = format!("{snapshot:?}");
    assert!(shown.contains("carillon@127.0.0.1:") && !shown.contains("carillon:"), "{shown}");
}
