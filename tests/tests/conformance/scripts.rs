//! Scripts of tasks, and the versions before them.

use crate::fixture::{World, edit_to};
use carillon::domain::xxljob::{GlueType, Script};
use carillon::domain::{TaskId, TenantId};
use carillon::store::{Beside, NewScript, ScriptEdit, ScriptStore as _, SqlStore, TaskView};

databases!(
    a_script_is_written_with_the_change_of_its_task,
    the_newest_thirty_are_kept,
    scripts_of_many_tasks_are_read_at_once,
    whoever_was_overtaken_writes_no_script,
);

fn new(source: &str, updated_at: i64) -> NewScript {
    NewScript {
        glue_type: GlueType::GlueShell,
        source: source.to_owned(),
        remark: source.chars().take(20).collect(),
        author: "ann".to_owned(),
        updated_at,
    }
}

async fn write(world: &World, store: &SqlStore, before: &TaskView, new: Vec<NewScript>) -> carillon::store::Result<()> {
    let edit = ScriptEdit { task_id: before.id, tenant_id: before.owner.tenant_id, new };
    let beside = Beside { scripts: vec![edit], ..Beside::default() };
    let change = edit_to(before, |_| {});
    store.noting_beside(Vec::new(), beside).change_task(&change, world.now).await.map(drop)
}

async fn sent(store: &SqlStore, tenant_id: TenantId, task: TaskId, version: i64) -> Option<Script> {
    store.scripts(&[(task, version, tenant_id)]).await.unwrap().remove(&(task, version))
}

async fn a_script_is_written_with_the_change_of_its_task(world: World, store: SqlStore) {
    let tenant_id = world.owner.tenant_id;
    let task = world.stopped(&World::every_second("report")).await;
    assert_eq!(task.script, 0);
    // As long as one may be, of letters of three bytes.
    let longest = "\u{4e2d}".repeat(20_000);
    write(&world, &store, &task, vec![new(&longest, 1_000)]).await.unwrap();
    let after = world.task(task.id).await;
    assert_eq!((after.script, after.revision), (1, task.revision + 1));
    let script = Script { glue_type: GlueType::GlueShell, source: longest.clone(), updated_at: 1_000 };
    assert_eq!(sent(&store, tenant_id, task.id, 1).await, Some(script));
    // Later than the one before, whatever the clock says.
    write(&world, &store, &after, vec![new("b", 900), new("c", 5_000)]).await.unwrap();
    let versions = store.script_versions(tenant_id, task.id).await.unwrap();
    let told: Vec<(i64, &str, &str, i64)> =
        versions.iter().map(|one| (one.version, one.remark.as_str(), one.author.as_str(), one.updated_at)).collect();
    assert_eq!(told[..2], [(3, "c", "ann", 5_000), (2, "b", "ann", 1_001)]);
    assert_eq!(world.task(task.id).await.script, 3);
    assert_eq!(store.script_source(tenant_id, task.id, 2).await.unwrap().as_deref(), Some("b"));
    // Another tenant's task is none.
    let other = TenantId(tenant_id.0 + 1);
    assert_eq!(sent(&store, other, task.id, 3).await, None);
    assert!(store.script_versions(other, task.id).await.unwrap().is_empty());
    assert_eq!(store.script_source(other, task.id, 3).await.unwrap(), None);
    // No script any more: its versions stay, and the next one goes on from them.
    write(&world, &store, &world.task(task.id).await, Vec::new()).await.unwrap();
    assert_eq!(world.task(task.id).await.script, 0);
    write(&world, &store, &world.task(task.id).await, vec![new("d", 6_000)]).await.unwrap();
    assert_eq!(world.task(task.id).await.script, 4);
    store.delete_task(&world.task(task.id).await, world.now).await.unwrap();
    assert!(store.script_versions(tenant_id, task.id).await.unwrap().is_empty());
}

async fn the_newest_thirty_are_kept(world: World, store: SqlStore) {
    let tenant_id = world.owner.tenant_id;
    let task = world.stopped(&World::every_second("report")).await;
    let numbers = async || -> Vec<i64> {
        let versions = store.script_versions(tenant_id, task.id).await.unwrap();
        versions.iter().map(|one| one.version).collect()
    };
    for version in 1..=31 {
        write(&world, &store, &world.task(task.id).await, vec![new("x", version)]).await.unwrap();
    }
    assert_eq!(numbers().await, (2..=31).rev().collect::<Vec<_>>());
    assert_eq!(sent(&store, tenant_id, task.id, 1).await, None);
    // Many at once.
    let many = (1..=40).map(|at| new(&at.to_string(), 100 + at)).collect();
    write(&world, &store, &world.task(task.id).await, many).await.unwrap();
    assert_eq!(numbers().await, (32..=61).rev().collect::<Vec<_>>());
    let last = world.task(task.id).await.script;
    assert_eq!(sent(&store, tenant_id, task.id, last).await.unwrap().source, "40");
}

async fn scripts_of_many_tasks_are_read_at_once(world: World, store: SqlStore) {
    let tenant_id = world.owner.tenant_id;
    let mut wanted = Vec::new();
    for name in ["a", "b", "c"] {
        let task = world.stopped(&World::every_second(name)).await;
        write(&world, &store, &task, vec![new(name, 1), new(&format!("{name} again"), 2)]).await.unwrap();
        wanted.extend([(task.id, 1, tenant_id), (task.id, 2, tenant_id), (task.id, 3, tenant_id)]);
    }
    let mut found: Vec<String> =
        store.scripts(&wanted).await.unwrap().into_values().map(|script| script.source).collect();
    found.sort();
    assert_eq!(found, ["a", "a again", "b", "b again", "c", "c again"]);
    assert!(store.scripts(&[]).await.unwrap().is_empty());
}

async fn whoever_was_overtaken_writes_no_script(world: World, store: SqlStore) {
    let task = world.stopped(&World::every_second("report")).await;
    write(&world, &store, &task, vec![new("first", 1)]).await.unwrap();
    assert!(write(&world, &store, &task, vec![new("late", 2)]).await.is_err());
    let versions = store.script_versions(world.owner.tenant_id, task.id).await.unwrap();
    assert_eq!((versions.len(), world.task(task.id).await.script), (1, 1));
}
