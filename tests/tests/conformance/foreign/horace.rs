//! A horace cron-job is read as it is.

use super::ZONE;
use super::reading::columns_of;
use carillon::domain::horace::{COLUMNS, HoraceOptions, document};
use carillon::domain::import::ForeignKind;
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::TaskFile;
use carillon::store::foreign::ForeignDatabase;
use carillon_tests::foreign::{horace_rows, insert_horace};
use carillon_tests::{Database, Kind};
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_read_and_becomes_tasks() {
    let database = Database::empty(Kind::MariaDb).await;
    let expected = horace_rows();
    insert_horace(&database, &expected, ZONE).await;
    let mut source = ForeignDatabase::connect(&database.url).await.unwrap();
    assert_eq!(source.kind(), ForeignKind::Horace);
    let read = source.snapshot().await.unwrap().horace(ZONE).await.unwrap();
    assert_eq!(read, expected);
    let options = HoraceOptions { source: "old".to_owned(), zone: ZONE, tenants: Vec::new() };
    let document = document(&read, &options).unwrap();
    let file = TaskFile::read(&document.task_file(), &TaskSpec::default(), "");
    assert_eq!((file.refused, file.entries.len(), document.apps.len(), document.tenants.len()), (vec![], 100, 6, 3));
    let known: BTreeSet<(&str, &str)> = COLUMNS.iter().map(|column| (column.table, column.name)).collect();
    for (table, column) in columns_of(&database).await {
        assert!(known.contains(&(table.as_str(), column.as_str())), "{table}.{column}");
    }
}
