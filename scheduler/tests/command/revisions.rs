//! A plan applies to the revision it was made from: changes in between are not overwritten.

use carillon::definitions::change_of;
use carillon::domain::task::TaskSpec;
use carillon::domain::task::file::TaskFile;
use carillon::domain::{AccessScope, AppId, TaskId, TenantId};
use carillon::store::{
    Activity, AppView, DatabaseSettings, KeyWords, SqlStore, StoreErrorKind, TaskFilter, TenantView,
};
use carillon::task_files::{Planned, Step, changes_of, plan};
use carillon_protocol::sign::Key;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

async fn store(folder: &tempfile::TempDir) -> SqlStore {
    let settings = DatabaseSettings {
        url: format!("sqlite://{}?mode=rwc", folder.path().join("carillon.db").display()),
        max_connections: 2,
        connect_timeout: Duration::from_secs(10),
        statement_timeout: Duration::from_secs(10),
        migrate_at_start: true,
    };
    let store = SqlStore::connect(&settings).await.unwrap();
    store.migrate().await.unwrap();
    let text = str::to_owned;
    let tenant = TenantView {
        id: TenantId(1),
        name: text("retail"),
        description: String::new(),
        max_concurrent: 0,
        revision: 1,
        created_at: 1,
    };
    store.create_tenant(&tenant).await.unwrap();
    let key = Key { id: text("ck"), secret: text("secret") };
    let app = AppView {
        id: AppId(2),
        tenant_id: TenantId(1),
        tenant: text("retail"),
        name: text("orders"),
        description: String::new(),
        max_concurrent: 0,
        sign_method: None,
        scripts: false,
        revision: 1,
        created_at: 1,
    };
    store.create_app(&app, &key, KeyWords { is_token: false, note: "", created_by: "" }).await.unwrap();
    store
}

async fn steps(store: &SqlStore, tasks: Value) -> Vec<Step> {
    static IDS: AtomicI64 = AtomicI64::new(10);
    let Value::Object(file) = json!({ "version": 1, "tenant": "retail", "app": "orders", "task": tasks }) else {
        panic!("an object is needed")
    };
    let file = TaskFile::read(&file, &TaskSpec::default(), "");
    let new_id = || TaskId(IDS.fetch_add(1, Ordering::Relaxed));
    let draft = plan(store, &AccessScope::All, file, new_id, 1_000).await.unwrap();
    match draft.with_parents(store, &HashSet::new(), &AccessScope::All).await.unwrap() {
        Planned::Steps(steps) => steps,
        Planned::Refused(refused) => panic!("{refused:?}"),
    }
}

#[tokio::test]
async fn a_change_meanwhile_is_a_conflict_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = store(&folder).await;
    let (new, _) = changes_of(&steps(&store, json!([{ "name": "a", "handler": "h" }])).await);
    store.apply_tasks(&new, &[], 1_000).await.unwrap();

    let wanted = json!([{ "name": "b", "handler": "h" }, { "name": "a", "handler": "other", "started": true }]);
    let (new, changes) = changes_of(&steps(&store, wanted.clone()).await);
    assert_eq!((new.len(), changes.len()), (1, 1));

    let before = changes[0].before.clone();
    let spec = TaskSpec { description: "meanwhile".to_owned(), ..before.spec.clone() };
    store.change_task(&change_of(before, spec, Activity::default()), 2_000).await.unwrap();

    let error = store.apply_tasks(&new, &changes, 3_000).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Conflict, "{error}");
    let tasks = store.list_tasks(&AccessScope::All, &TaskFilter { limit: 10, ..TaskFilter::default() }).await.unwrap();
    let named: Vec<_> = tasks.iter().map(|task| (task.spec.name.as_str(), task.spec.handler.as_str())).collect();
    assert_eq!(named, [("a", "h")]);

    // The same for one that another caller created in the meantime.
    let (new, changes) = changes_of(&steps(&store, wanted).await);
    store.apply_tasks(&new, &[], 4_000).await.unwrap();
    let error = store.apply_tasks(&new, &changes, 5_000).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Duplicate, "{error}");
    let tasks = store.list_tasks(&AccessScope::All, &TaskFilter { limit: 10, ..TaskFilter::default() }).await.unwrap();
    assert_eq!(tasks.iter().filter(|task| task.spec.handler == "other").count(), 0);
    store.close().await;
}
