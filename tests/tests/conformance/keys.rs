//! Keys of executors: the databases only, since the model has none.

use crate::fixture::World;
use carillon::auth::KeyRing;
use carillon::domain::access::TenantScope;
use carillon::domain::audit::{Actor, AuditNote, Target};
use carillon::domain::{AccessScope, Action, AppId, Owner, TenantId, UserId};
use carillon::store::{AppFilter, AppView, KeyStore, KeyUse, KeyView, KeyWords, SqlStore, StoreErrorKind};
use carillon_protocol::sign::{Key, SignMethod};
use futures_util::future::join_all;
use std::collections::BTreeSet;

databases!(
    rotating_ends_what_was_before_and_nothing_sooner_is_prolonged,
    revoking_ends_a_key_of_the_app_at_once,
    an_app_has_so_many_valid_keys_and_no_more,
    another_tenants_keys_cannot_be_touched,
    the_last_use_only_grows,
    an_app_demands_a_sign_method,
    a_key_is_found_within_reach,
    valid_keys_come_first_page_by_page,
    a_look_finds_what_was_changed_and_reads_no_other_tenants_keys,
);

const WORDS: KeyWords<'static> = KeyWords { is_token: false, note: "of the batch cluster", created_by: "ada" };

fn key(id: &str) -> Key {
    Key { id: id.to_owned(), secret: format!("secret of {id}").repeat(4) }
}

async fn valid(store: &SqlStore) -> BTreeSet<String> {
    store.signing_keys().await.unwrap().0.into_iter().map(|key| key.key.id).collect()
}

fn ids(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(ToString::to_string).collect()
}

async fn view(store: &SqlStore, id: &str) -> KeyView {
    store.key(&AccessScope::All, id).await.unwrap().1
}

async fn rotating_ends_what_was_before_and_nothing_sooner_is_prolonged(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let first = store.keys(owner, world.now, None, 50).await.unwrap().remove(0);
    assert_eq!((first.expires_at, first.revoked_at, first.last_used_at), (0, 0, 0));
    store.rotate_key(owner, &key("second"), WORDS, 60_000, now).await.unwrap();
    store.rotate_key(owner, &key("third"), WORDS, 3_600_000, now + 1).await.unwrap();
    let ends = [view(&store, &first.id).await.expires_at, view(&store, "second").await.expires_at];
    assert_eq!(ends, [now + 60_000, now + 3_600_001], "the sooner end stays");
    assert_eq!(valid(&store).await, ids(&[&first.id, "second", "third"]), "all are valid while they overlap");
    let third = view(&store, "third").await;
    let expected = KeyView {
        id: "third".to_owned(),
        note: WORDS.note.to_owned(),
        created_by: WORDS.created_by.to_owned(),
        created_at: now + 1,
        expires_at: 0,
        revoked_at: 0,
        last_used_at: 0,
        kind: String::new(),
    };
    assert_eq!(third, expected);
    assert_eq!(store.keys(owner, world.now, None, 50).await.unwrap()[0], third, "the newest first");
    store.rotate_key(owner, &key("fourth"), WORDS, 0, now + 2).await.unwrap();
    let now_valid = store.signing_keys().await.unwrap().0;
    let now_valid: Vec<_> = now_valid.into_iter().filter(|key| key.is_valid(now + 2)).collect();
    assert_eq!(now_valid.len(), 1, "without an overlap the others end at once: {now_valid:?}");
    assert_eq!((now_valid[0].key.id.as_str(), now_valid[0].key.secret == key("fourth").secret), ("fourth", true));
}

async fn revoking_ends_a_key_of_the_app_at_once(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let first = store.keys(owner, world.now, None, 50).await.unwrap().remove(0).id;
    store.create_key(owner, &key("second"), WORDS, now).await.unwrap();
    store.revoke_key(owner, &first, now + 5).await.unwrap();
    assert_eq!(valid(&store).await, ids(&["second"]));
    store.revoke_key(owner, &first, now + 9).await.unwrap();
    assert_eq!(view(&store, &first).await.revoked_at, now + 5, "the first time counts");
    store.rotate_key(owner, &key("third"), WORDS, 60_000, now).await.unwrap();
    assert_eq!(view(&store, &first).await.expires_at, 0, "what was revoked before is left alone");
    let missing = store.revoke_key(owner, "nobody's", now).await.unwrap_err();
    assert_eq!(missing.kind(), StoreErrorKind::NotFound);
    assert_eq!(store.key(&AccessScope::All, "nobody's").await.unwrap_err().kind(), StoreErrorKind::NotFound);
}

async fn an_app_has_so_many_valid_keys_and_no_more(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let made = (0..14).map(async |number| store.create_key(owner, &key(&format!("k{number}")), WORDS, now).await);
    let refused: Vec<_> = join_all(made).await.into_iter().filter_map(Result::err).collect();
    assert!(refused.iter().all(|error| error.kind() == StoreErrorKind::Conflict), "{refused:?}");
    assert_eq!((valid(&store).await.len(), refused.len()), (10, 5), "at once or one by one");
    let rotated = store.rotate_key(owner, &key("r"), WORDS, 60_000, now).await.unwrap_err();
    assert_eq!(rotated.kind(), StoreErrorKind::Conflict);
    assert!(
        store.keys(owner, world.now, None, 50).await.unwrap().iter().all(|key| key.expires_at == 0),
        "nothing of it was done"
    );
    let one = valid(&store).await.pop_first().unwrap();
    store.revoke_key(owner, &one, now).await.unwrap();
    store.rotate_key(owner, &key("r"), WORDS, 60_000, now).await.unwrap();
    // After the overlap there is room again.
    store.create_key(owner, &key("later"), WORDS, now + 60_001).await.unwrap();
}

async fn another_tenants_keys_cannot_be_touched(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let first = store.keys(owner, world.now, None, 50).await.unwrap().remove(0);
    let theirs = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let scopes = [
        theirs,
        Owner { app_id: owner.app_id, ..theirs },
        Owner { tenant_id: owner.tenant_id, ..theirs },
        Owner { app_id: AppId(owner.app_id.0 + 999), ..owner },
    ];
    for stranger in scopes {
        assert!(
            store.keys(stranger, world.now, None, 50).await.unwrap().iter().all(|key| key.id != first.id),
            "{stranger:?}"
        );
        assert_eq!(store.revoke_key(stranger, &first.id, now).await.unwrap_err().kind(), StoreErrorKind::NotFound);
        let used = KeyUse { id: first.id.clone(), owner: stranger, at: now };
        store.note_key_uses(&[used]).await.unwrap();
    }
    for nowhere in &scopes[1..] {
        let new = [
            store.create_key(*nowhere, &key("x"), WORDS, now).await,
            store.rotate_key(*nowhere, &key("x"), WORDS, 0, now).await,
        ];
        assert!(new.into_iter().all(|done| done.unwrap_err().kind() == StoreErrorKind::NotFound), "{nowhere:?}");
    }
    store.rotate_key(theirs, &key("theirs"), WORDS, 0, now).await.unwrap();
    assert_eq!(store.keys(owner, world.now, None, 50).await.unwrap(), [first], "ours is as it was");
}

async fn the_last_use_only_grows(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let first = store.keys(owner, world.now, None, 50).await.unwrap().remove(0).id;
    store.create_key(owner, &key("second"), WORDS, now).await.unwrap();
    let used = |id: &str, at| KeyUse { id: id.to_owned(), owner, at };
    store.note_key_uses(&[used(&first, now + 10), used("second", now + 20), used("gone", now)]).await.unwrap();
    store.note_key_uses(&[used(&first, now + 5), used("second", now + 30)]).await.unwrap();
    let last = [view(&store, &first).await.last_used_at, view(&store, "second").await.last_used_at];
    assert_eq!(last, [now + 10, now + 30]);
    store.note_key_uses(&[]).await.unwrap();
}

async fn an_app_demands_a_sign_method(world: World, store: SqlStore) {
    let app = async || {
        let filter = AppFilter { id: Some(world.owner.app_id), limit: 1, ..AppFilter::default() };
        store.list_apps(&AccessScope::All, &filter).await.unwrap().remove(0)
    };
    assert_eq!(app().await.sign_method, None);
    for method in [Some(SignMethod::Md5), Some(SignMethod::HmacSha256), None] {
        let before = app().await;
        store.edit_app(&before, &AppView { sign_method: method, ..before.clone() }).await.unwrap();
        assert_eq!(app().await.sign_method, method);
        assert_eq!(store.signing_keys().await.unwrap().0[0].demanded, method);
    }
}

async fn a_key_is_found_within_reach(world: World, store: SqlStore) {
    let owner = world.owner;
    let id = store.keys(owner, world.now, None, 50).await.unwrap().remove(0).id;
    let of = |tenant_id, apps: &[AppId]| AccessScope::Of(vec![TenantScope { tenant_id, apps: apps.to_vec() }]);
    for access_scope in [AccessScope::All, of(owner.tenant_id, &[]), of(owner.tenant_id, &[owner.app_id])] {
        assert_eq!(store.key(&access_scope, &id).await.unwrap().0, owner, "{access_scope:?}");
    }
    for access_scope in [
        AccessScope::Of(Vec::new()),
        of(owner.tenant_id, &[AppId(owner.app_id.0 + 1)]),
        of(TenantId(owner.tenant_id.0 + 1), &[]),
    ] {
        let missing = store.key(&access_scope, &id).await.unwrap_err();
        assert_eq!(missing.kind(), StoreErrorKind::NotFound, "{access_scope:?}");
    }
}

/// What is valid is never hidden by what is not, however much of it there is; page by page nothing
/// comes twice and nothing is left out.
async fn valid_keys_come_first_page_by_page(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let first = store.keys(owner, now, None, 50).await.unwrap().remove(0).id;
    for number in 0..120 {
        let id = format!("k{number:03}");
        // Many of one instant.
        store.create_key(owner, &key(&id), WORDS, now + number / 7).await.unwrap();
        store.revoke_key(owner, &id, now + number).await.unwrap();
    }
    store.rotate_key(owner, &key("new"), WORDS, 1_000, now + 500).await.unwrap();
    for (at, expected) in [(now + 600, &["new", first.as_str()][..]), (now + 5_000, &["new"])] {
        let all = store.keys(owner, at, None, 500).await.unwrap();
        assert_eq!(all.len(), 122);
        let valid: Vec<&str> = all.iter().filter(|key| key.is_valid(at)).map(|key| key.id.as_str()).collect();
        assert_eq!(valid, expected);
        assert!(all.is_sorted_by_key(|key| std::cmp::Reverse(key.cursor(at))), "{all:?}");
        for limit in [1, 2, 3, 50] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = store.keys(owner, at, after.as_ref(), limit).await.unwrap();
                assert!(page.len() as u64 <= limit);
                let Some(last) = page.last() else { break };
                after = Some(last.cursor(at));
                found.extend(page);
            }
            assert_eq!(found, all, "{limit} at a time");
        }
    }
}

/// Without a change a look is one small question; after one it reads the keys of the tenant that was changed.
async fn a_look_finds_what_was_changed_and_reads_no_other_tenants_keys(world: World, store: SqlStore) {
    let (owner, now) = (world.owner, world.now);
    let stranger = world.admin.make_app([world.id(), world.id()], "other", "orders").await;
    let first = store.keys(owner, now, None, 50).await.unwrap().remove(0).id;
    store.create_key(stranger, &key("theirs"), WORDS, now).await.unwrap();
    let (ring, at) = (KeyRing::default(), now + 10);
    let note = |tenant_id| AuditNote {
        id: world.number(),
        tenant_id,
        at: now,
        actor: Actor { kind: "user", id: UserId(1), name: "ann".to_owned(), address: String::new() },
        action: Action::RevokeKey,
        target: Target { kind: "key", id: first.clone(), name: "x".to_owned() },
        before: None,
        after: None,
    };
    let asked = async |looks: usize| {
        let before = store.statements_sent();
        for _ in 0..looks {
            ring.look(&store).await.unwrap();
        }
        store.statements_sent() - before
    };
    assert_eq!(asked(1).await, 3);
    assert!(ring.find(&first, at).is_some() && ring.find("theirs", at).is_some());
    assert_eq!(asked(10).await, 10, "nothing was changed");

    // Behind the audit's back, so that it shows what is read.
    store.revoke_key(stranger, "theirs", now).await.unwrap();
    store.noting(vec![note(owner.tenant_id)]).revoke_key(owner, &first, now).await.unwrap();
    asked(1).await;
    assert!(ring.find(&first, at).is_none(), "revoked");
    assert!(ring.find("theirs", at).is_some(), "not read again");
    store.noting(vec![note(stranger.tenant_id)]).create_key(stranger, &key("new"), WORDS, now).await.unwrap();
    asked(1).await;
    assert!(ring.find("theirs", at).is_none() && ring.find("new", at).is_some());
    store.create_key(owner, &key("unsaid"), WORDS, now).await.unwrap();
    asked(1).await;
    assert!(ring.find("unsaid", at).is_none());
    store.noting(vec![note(TenantId::NONE)]).create_key(owner, &key("said"), WORDS, now).await.unwrap();
    asked(1).await;
    assert!(ring.find("unsaid", at).is_some(), "the platform's chain speaks of all");
}
