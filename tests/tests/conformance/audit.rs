//! Searching the audit: whatever the filters and the reach, paging through finds each entry once,
//! newest first, and no other; and no page takes longer because what it looks for is rare.

use crate::fixture::World;
use carillon::domain::Action;
use carillon::domain::access::PLATFORM;
use carillon::domain::access::TenantScope;
use carillon::domain::audit::{Actor, AuditEntry, AuditNote, Chain, Target};
use carillon::domain::{AccessScope, AppId, IdSource, NodeId, TenantId, UserId};
use carillon::store::{AuditFilter, NewTask, SqlStore};
use std::collections::BTreeSet;

databases!(
    every_filter_finds_its_entries_page_by_page,
    rare_rows_are_found_step_by_step,
    chains_are_listed_with_those_of_tenants_that_are_no_more
);

const MINUTE: i64 = 60_000;

/// Entries of two tenants (and a deleted one) and of the platform, a minute apart.
fn notes(world: &World) -> Vec<AuditNote> {
    let ids = IdSource::new(NodeId(7));
    let note = |number: i64| {
        let at = world.now + number * MINUTE;
        AuditNote {
            id: ids.next(at),
            tenant_id: [PLATFORM, world.owner.tenant_id, TenantId(77), TenantId(78)][(number % 4) as usize],
            at,
            actor: Actor { kind: "user", id: UserId(number % 3), name: "ann".to_owned(), address: String::new() },
            action: [Action::EditTask, Action::CreateUser, Action::StopTask][(number / 4 % 3) as usize],
            target: Target {
                kind: ["task", "user"][(number / 2 % 2) as usize],
                id: (number % 5).to_string(),
                name: "x".to_owned(),
            },
            before: None,
            after: Some(number.to_string()),
        }
    };
    (0..90).map(note).collect()
}

async fn write(store: &SqlStore, world: &World, notes: Vec<AuditNote>) {
    // With a change, as ever.
    let spec = World::every_second(&format!("task-{}", world.number()));
    let task: NewTask = carillon_simulation::store::admin::new_task(world.id(), world.owner, spec);
    store.noting(notes).create_task(&task, world.now).await.unwrap();
}

async fn pages(store: &SqlStore, access_scope: &AccessScope, filter: &AuditFilter) -> Vec<AuditEntry> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = store.search_audit(access_scope, &AuditFilter { before, ..filter.clone() }).await.unwrap();
        assert!(page.entries.len() as u64 <= filter.limit);
        found.extend(page.entries);
        before = page.next;
        if before.is_none() {
            return found;
        }
    }
}

fn fits(entry: &AuditNote, access_scope: &AccessScope, filter: &AuditFilter) -> bool {
    access_scope.has(entry.tenant_id, AppId::NONE)
        && filter.tenant_id.is_none_or(|id| id == entry.tenant_id)
        && filter.target_id.as_ref().is_none_or(|id| *id == entry.target.id)
        && filter.target_kind.as_ref().is_none_or(|kind| kind == entry.target.kind)
        && filter.actor_id.is_none_or(|id| id == entry.actor.id)
        && filter.action.as_ref().is_none_or(|action| action == entry.action.as_str())
        && filter.from.is_none_or(|from| entry.at >= from)
        && filter.until.is_none_or(|until| entry.at < until)
}

async fn every_filter_finds_its_entries_page_by_page(world: World, store: SqlStore) {
    let all = notes(&world);
    write(&store, &world, all.clone()).await;
    let home = world.owner.tenant_id;
    let place = |tenant_id: TenantId, apps: &[AppId]| TenantScope { tenant_id, apps: apps.to_vec() };
    let reaches = [
        AccessScope::All,
        AccessScope::tenant(home),
        AccessScope::Of(vec![place(home, &[]), place(TenantId(77), &[])]),
        AccessScope::Of(vec![place(home, &[world.owner.app_id]), place(TenantId(77), &[])]),
        AccessScope::Of(vec![place(home, &[world.owner.app_id])]),
        AccessScope::Of(Vec::new()),
    ];
    let plain = AuditFilter { limit: 7, ..AuditFilter::default() };
    let at = |number: i64| Some(world.now + number * MINUTE);
    let mut filters = vec![
        plain.clone(),
        AuditFilter { target_kind: Some("user".to_owned()), ..plain.clone() },
        AuditFilter { action: Some("stop_task".to_owned()), ..plain.clone() },
        AuditFilter { action: Some("nothing".to_owned()), ..plain.clone() },
        AuditFilter { from: at(20), ..plain.clone() },
        AuditFilter { until: at(70), ..plain.clone() },
        AuditFilter { from: at(20), until: at(70), action: Some("edit_task".to_owned()), ..plain.clone() },
        AuditFilter { from: Some(i64::MAX), until: Some(i64::MIN), ..plain.clone() },
    ];
    let narrower: Vec<AuditFilter> = filters
        .iter()
        .flat_map(|filter| {
            [
                AuditFilter { tenant_id: Some(home), ..filter.clone() },
                AuditFilter { tenant_id: Some(TenantId(78)), ..filter.clone() },
                AuditFilter { target_id: Some("3".to_owned()), ..filter.clone() },
                AuditFilter { actor_id: Some(UserId(2)), ..filter.clone() },
                AuditFilter {
                    actor_id: Some(UserId(2)),
                    tenant_id: Some(TenantId::NONE),
                    target_id: Some("1".to_owned()),
                    ..filter.clone()
                },
            ]
        })
        .collect();
    filters.extend(narrower);
    for filter in &filters {
        for access_scope in &reaches {
            let wanted: Vec<i64> =
                all.iter().rev().filter(|note| fits(note, access_scope, filter)).map(|note| note.id).collect();
            let found: Vec<i64> = pages(&store, access_scope, filter).await.iter().map(|entry| entry.id).collect();
            assert_eq!(found, wanted, "{filter:?} {access_scope:?}");
        }
    }
}

/// More than one page may look at: who asks goes on where it ended.
async fn rare_rows_are_found_step_by_step(world: World, store: SqlStore) {
    const MANY: i64 = 21_000;
    const LOOKED_AT_MAX: i64 = 20_000;
    let ids = IdSource::new(NodeId(7));
    let note = |number: i64| AuditNote {
        id: ids.next(world.now + number),
        tenant_id: world.owner.tenant_id,
        at: world.now + number,
        actor: Actor { kind: "user", id: UserId(1), name: "ann".to_owned(), address: String::new() },
        action: if number == 0 { Action::DeleteTask } else { Action::EditTask },
        target: Target { kind: "task", id: "1".to_owned(), name: String::new() },
        before: None,
        after: None,
    };
    let all: Vec<AuditNote> = (0..MANY).map(note).collect();
    for part in all.chunks(3_000) {
        write(&store, &world, part.to_vec()).await;
    }
    let rare =
        AuditFilter { action: Some(Action::DeleteTask.as_str().to_owned()), limit: 10, ..AuditFilter::default() };
    for access_scope in [AccessScope::All, AccessScope::tenant(world.owner.tenant_id)] {
        let first = store.search_audit(&access_scope, &rare).await.unwrap();
        let next = first.next.expect("there is more to look at");
        let looked_at = all.iter().filter(|note| note.id >= next).count() as i64;
        assert!(first.entries.is_empty() && (1..=LOOKED_AT_MAX).contains(&looked_at), "{looked_at}");
        assert_eq!(pages(&store, &access_scope, &rare).await.len(), 1);
    }
    // Where it is said when, nothing else is looked at.
    let then = AuditFilter { until: Some(world.now + 5), from: Some(world.now - MINUTE), ..rare };
    assert_eq!(pages(&store, &AccessScope::All, &then).await.len(), 1);
}

async fn chains_are_listed_with_those_of_tenants_that_are_no_more(world: World, store: SqlStore) {
    write(&store, &world, notes(&world)).await;
    let home = world.owner.tenant_id;
    let mut listed = Vec::new();
    loop {
        let after = listed.last().map_or(TenantId(-1), |chain: &carillon::store::ChainView| chain.tenant_id);
        let page = store.audit_chains(&AccessScope::All, after, 2).await.unwrap();
        if page.is_empty() {
            break;
        }
        listed.extend(page);
    }
    let ids: BTreeSet<TenantId> = listed.iter().map(|chain| chain.tenant_id).collect();
    assert_eq!((ids, listed.len()), (BTreeSet::from([PLATFORM, home, TenantId(77), TenantId(78)]), 4), "{listed:?}");
    for chain in &listed {
        let entries = store.audit_chain(chain.tenant_id, 0, 100).await.unwrap();
        let mut followed = Chain::default();
        entries.iter().try_for_each(|entry| followed.take(entry)).unwrap();
        assert_eq!((&followed, chain.tenant.is_some()), (&chain.end, chain.tenant_id == home));
    }
    let own = store.audit_chains(&AccessScope::tenant(home), TenantId(-1), 10).await.unwrap();
    assert_eq!(own.iter().map(|chain| chain.tenant_id).collect::<Vec<_>>(), [home]);
    assert!(store.audit_chains(&AccessScope::Of(Vec::new()), TenantId(-1), 10).await.unwrap().is_empty());
}
