//! A horace cron-job is read as it is.

use super::ZONE;
use super::reading::columns_of;
use carillon::domain::horace::{
    COLUMNS, ForeignApp, ForeignHorace, ForeignMember, ForeignTask, ForeignTenant, ForeignUser, HoraceOptions, document,
};
use carillon::domain::import::ForeignKind;
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::TaskFile;
use carillon::store::foreign::ForeignDatabase;
use carillon_tests::foreign::{CRONS, Dice, insert_horace};
use carillon_tests::{Database, Kind};
use std::collections::BTreeSet;

/// Snowflake-like ids, which do not fit 53 bits.
const ID: i64 = 5_982_332_211_972_542_543;

fn rows() -> ForeignHorace {
    let mut dice = Dice::new(7);
    let tenants = ["shop", "门店", "eu.stores"].iter().zip(ID..).map(|(word, id)| ForeignTenant {
        id,
        name: format!("The {word}"),
        tenant: (*word).to_owned(),
        remark: "for a test".to_owned(),
    });
    let apps = (0..6).map(|at| ForeignApp {
        id: ID + 10 + at,
        tenant_id: ID + at % 3,
        app_name: format!("app-{}", at / 3),
        app_desc: "应用".to_owned(),
        state: 1 + i64::from(at == 5),
    });
    let tasks = (0..100).map(|at| ForeignTask {
        id: ID + 100 + at,
        tenant_id: ID + at % 3,
        app_id: ID + 10 + at % 6,
        name: dice.one_of(&["close", "任务 a/b", "sync"]).to_owned(),
        owner: dice.one_of(&["", "ann"]).to_owned(),
        cron: dice.one_of(CRONS).to_owned(),
        tag: dice.one_of(&["", "common", "gpu", "common,eu"]).to_owned(),
        run_state: 1 + dice.below(3),
        method: format!("shop.tasks.Task{at}.handle"),
        router_strategy: 1 + dice.below(2),
        expired_strategy: 1 + dice.below(2),
        expired_time: dice.one_of(&[0, 60_000]),
        failure_strategy: 1 + dice.below(2),
        max_retry_count: dice.below(6),
        failure_retry_interval: dice.one_of(&[1_000, 60_000]),
        timeout: dice.one_of(&[600_000, 3_600_000]),
        task_params: dice.one_of(&["", "{\"a\": 1}"]).to_owned(),
        remark: dice.one_of(&["", "nightly"]).to_owned(),
        create_time: Some(1_767_225_600_123 + at),
    });
    let tasks = tasks.collect();
    let user = |id, username: &str, state| ForeignUser {
        id,
        username: username.to_owned(),
        nickname: "昵称".to_owned(),
        state,
    };
    ForeignHorace {
        tenants: tenants.collect(),
        apps: apps.collect(),
        tasks,
        users: vec![user(ID, "admin", 0), user(ID + 1, "ann", 1)],
        members: vec![
            ForeignMember { user_id: ID, tenant_id: ID },
            ForeignMember { user_id: ID + 1, tenant_id: ID + 1 },
        ],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_read_and_becomes_tasks() {
    let database = Database::empty(Kind::MariaDb).await;
    let expected = rows();
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
