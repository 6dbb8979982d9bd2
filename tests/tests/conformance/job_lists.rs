//! Apps and tasks by their numbers, as portals and scripts that know xxl-job's admin list them.

use crate::fixture::{World, edit_to};
use carillon::domain::task::{ParentLink, ParentOutcome, TaskSpec};
use carillon::domain::{AccessScope, AppId, Owner, TenantId};
use carillon::store::{Beside, GroupFilter, JobFilter, JobView, JobWords, SqlStore};
use std::collections::BTreeSet;

databases!(
    apps_are_numbered_within_their_tenant,
    apps_that_are_numbered_at_once_differ,
    tasks_are_listed_by_their_numbers,
    words_are_written_with_the_change,
    children_within_reach_are_named,
);

const PAGE: GroupFilter = GroupFilter { number: None, name: None, title: None, offset: 0, limit: 10 };

async fn page(store: &SqlStore, scope: &AccessScope, filter: GroupFilter) -> (u64, Vec<(i32, String)>) {
    let (total, groups) = store.job_groups(scope, &filter).await.unwrap();
    (total, groups.into_iter().map(|group| (group.number, group.name)).collect())
}

async fn another_app(world: &World, tenant: &str, app: &str) -> Owner {
    world.admin.make_app([world.number(), world.number()], tenant, app).await
}

async fn apps_are_numbered_within_their_tenant(world: World, store: SqlStore) {
    let home = AccessScope::tenant(world.owner.tenant_id);
    let (_, first) = page(&store, &home, PAGE).await;
    assert_eq!(first.len(), 1);
    let mine = first[0].clone();
    assert_eq!(mine.0, 1);
    let other = another_app(&world, "elsewhere", "stock").await;
    let elsewhere = AccessScope::tenant(other.tenant_id);
    assert_eq!(
        page(&store, &elsewhere, PAGE).await,
        (1, vec![(1, "stock".to_owned())]),
        "each tenant counts by itself"
    );
    let by_number = |number| GroupFilter { number: Some(number), ..PAGE };
    assert_eq!(page(&store, &home, by_number(1)).await, (1, vec![mine.clone()]));
    assert_eq!(page(&store, &home, by_number(2)).await, (0, Vec::new()));
    let named = |name: &str| GroupFilter { name: Some(name.to_owned()), ..PAGE };
    assert_eq!(page(&store, &home, named(&mine.1[1..])).await.0, 1);
    assert_eq!(page(&store, &home, named("%")).await.0, 0, "no wildcard");
    let titled = GroupFilter { title: Some(mine.1.to_uppercase()), ..PAGE };
    assert_eq!(page(&store, &home, titled).await.0, 1, "the name, where there is no description");
    assert_eq!(page(&store, &home, GroupFilter { offset: 1, ..PAGE }).await, (1, Vec::new()));
    assert_eq!(page(&store, &AccessScope::Of(Vec::new()), PAGE).await, (0, Vec::new()));
    assert_eq!(store.group_numbers(world.owner.tenant_id).await.unwrap(), [(world.owner.app_id, 1)].into());
}

async fn apps_that_are_numbered_at_once_differ(world: World, store: SqlStore) {
    let owner = another_app(&world, "elsewhere", "a").await;
    for name in ["b", "c", "d", "e"] {
        assert_eq!(another_app(&world, "elsewhere", name).await.tenant_id, owner.tenant_id);
    }
    let scope = AccessScope::tenant(owner.tenant_id);
    let (one, other) = tokio::join!(page(&store, &scope, PAGE), page(&store, &scope, PAGE));
    let numbers: BTreeSet<i32> = one.1.iter().map(|(number, _)| *number).collect();
    assert_eq!((numbers.len(), one.0), (5, 5));
    assert_eq!(one, other);
}

async fn listed(store: &SqlStore, scope: &AccessScope, filter: JobFilter) -> (u64, Vec<(i32, String)>) {
    let (total, jobs) = store.jobs(scope, &JobFilter { limit: 10, ..filter }).await.unwrap();
    (total, jobs.into_iter().map(|job| (job.number, job.task.spec.name)).collect())
}

async fn tasks_are_listed_by_their_numbers(world: World, store: SqlStore) {
    let home = AccessScope::tenant(world.owner.tenant_id);
    let spec =
        |name: &str, description: &str| TaskSpec { description: description.to_owned(), ..World::every_second(name) };
    world.stopped(&spec("first", "")).await;
    world.started(&spec("second", "what is 100% called so")).await;
    world.stopped(&spec("third", "")).await;
    let rows = |numbers: &[i32]| {
        let names = ["first", "second", "third"];
        numbers.iter().map(|number| (*number, names[*number as usize - 1].to_owned())).collect::<Vec<_>>()
    };
    let all = JobFilter::default;
    assert_eq!(listed(&store, &home, all()).await, (3, rows(&[3, 2, 1])), "the latest first");
    for (filter, expected) in [
        (JobFilter { numbers: vec![1, 3, 9], ..all() }, rows(&[3, 1])),
        (JobFilter { group: Some(1), ..all() }, rows(&[3, 2, 1])),
        (JobFilter { group: Some(2), ..all() }, Vec::new()),
        (JobFilter { started: Some(true), ..all() }, rows(&[2])),
        (JobFilter { started: Some(false), ..all() }, rows(&[3, 1])),
        (JobFilter { text: Some("IR".to_owned()), ..all() }, rows(&[3, 1])),
        (JobFilter { text: Some("100% CALLED".to_owned()), ..all() }, rows(&[2])),
        (JobFilter { handler: Some("AND".to_owned()), ..all() }, rows(&[3, 2, 1])),
        (JobFilter { handler: Some("_".to_owned()), ..all() }, Vec::new()),
        (JobFilter { author: Some("ann".to_owned()), ..all() }, Vec::new()),
    ] {
        assert_eq!(listed(&store, &home, filter.clone()).await.1, expected, "{filter:?}");
    }
    let (total, jobs) = store.jobs(&home, &JobFilter { offset: 1, limit: 1, ..all() }).await.unwrap();
    assert_eq!((total, jobs.len(), jobs[0].number, jobs[0].group), (3, 1, 2, 1));
    for scope in [AccessScope::tenant(TenantId(world.owner.tenant_id.0 + 1)), AccessScope::Of(Vec::new())] {
        assert_eq!(listed(&store, &scope, all()).await, (0, Vec::new()));
    }
}

async fn only(store: &SqlStore, scope: &AccessScope, number: i32) -> JobView {
    let filter = JobFilter { numbers: vec![number], limit: 1, ..JobFilter::default() };
    store.jobs(scope, &filter).await.unwrap().1.remove(0)
}

async fn words_are_written_with_the_change(world: World, store: SqlStore) {
    let home = AccessScope::tenant(world.owner.tenant_id);
    let task = world.stopped(&World::every_second("first")).await;
    let words = |author: &str| JobWords {
        task_id: task.id,
        tenant_id: world.owner.tenant_id,
        author: author.to_owned(),
        alarm_email: format!("{author}@example.com"),
    };
    let said_by = |author: &str| Beside { words: vec![words(author)], ..Beside::default() };
    let said = async || {
        let job = only(&store, &home, 1).await;
        (job.author, job.alarm_email)
    };
    assert_eq!(said().await, (String::new(), String::new()));
    for author in ["ann", "bob"] {
        let change = edit_to(&world.task(task.id).await, |spec| author.clone_into(&mut spec.params));
        store.noting_beside(Vec::new(), said_by(author)).change_task(&change, world.now).await.unwrap();
        assert_eq!(said().await, (author.to_owned(), format!("{author}@example.com")));
    }
    // What is not changed is not said either.
    let outdated = edit_to(&task, |spec| spec.params.push('x'));
    let refused = store.noting_beside(Vec::new(), said_by("eve")).change_task(&outdated, world.now).await;
    assert!(refused.is_err());
    assert_eq!(said().await.0, "bob");
    let author = JobFilter { author: Some("BO".to_owned()), limit: 1, ..JobFilter::default() };
    assert_eq!(store.jobs(&home, &author).await.unwrap().0, 1);
    store.delete_task(&world.task(task.id).await, world.now).await.unwrap();
    assert_eq!(world.database.as_ref().unwrap().number("SELECT COUNT(*) FROM xxljob_words").await, 0);
}

async fn children_within_reach_are_named(world: World, store: SqlStore) {
    let home = AccessScope::tenant(world.owner.tenant_id);
    world.stopped(&World::every_second("parent")).await;
    for (name, on) in
        [("first", ParentOutcome::Success), ("second", ParentOutcome::Failure), ("third", ParentOutcome::Success)]
    {
        let parents = vec![ParentLink { task: "parent".to_owned(), on }];
        world.stopped(&TaskSpec { parents, ..World::every_second(name) }).await;
    }
    assert_eq!(only(&store, &home, 1).await.children, [2, 4]);
    assert!(only(&store, &home, 2).await.children.is_empty());
    assert_eq!(only(&store, &home, 2).await.task.spec.parents.len(), 1);
    let scope = AccessScope::Of(vec![carillon::domain::access::TenantScope {
        tenant_id: world.owner.tenant_id,
        apps: vec![AppId(world.owner.app_id.0)],
    }]);
    assert_eq!(only(&store, &scope, 1).await.children, [2, 4]);
}
