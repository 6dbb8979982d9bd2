//! Sessions and tokens: how many there can be, and when they go.

use crate::fixture::World;
use carillon::domain::AccessScope;
use carillon::domain::access::{PLATFORM, PermissionSet};
use carillon::domain::{TokenId, UserId};
use carillon::store::{HousekeepingStore, SessionView, SqlStore, StoreErrorKind, TokenView, UserRow};

databases!(ended_sessions_and_tokens_go_in_bounded_batches, ended_tokens_leave_room_for_others);

async fn make_user(world: &World, store: &SqlStore) -> UserId {
    let user = UserRow {
        id: world.id(),
        name: "ann".to_owned(),
        display_name: String::new(),
        tenant_id: PLATFORM,
        password_hash: String::new(),
        must_change: false,
        disabled: false,
        subject: String::new(),
    };
    store.create_user(&user, &[], world.now).await.unwrap();
    user.id
}

fn token(world: &World, user_id: UserId, expires_at: i64) -> TokenView {
    TokenView {
        id: world.id(),
        user_id,
        user: String::new(),
        name: "ci".to_owned(),
        tenant_id: PLATFORM,
        permissions: PermissionSet::all(),
        created_at: world.now,
        expires_at,
        used_at: 0,
    }
}

async fn ended_sessions_and_tokens_go_in_bounded_batches(world: World, store: SqlStore) {
    let user_id = make_user(&world, &store).await;
    for at in 0..12 {
        let session = SessionView {
            hash: format!("session {at}"),
            user_id,
            number: at,
            created_at: world.now - 100,
            used_at: world.now - 100,
            expires_at: world.now - 6 + at,
            address: String::new(),
            agent: String::new(),
        };
        store.create_session(&session).await.unwrap();
        let token = token(&world, user_id, [0, world.now - 10, world.now + 10][at as usize % 3]);
        store.create_token(&token, &format!("token {at}")).await.unwrap();
        if at == 0 {
            store.revoke_token(user_id, token.id, world.now - 1).await.unwrap();
        }
    }
    // Seven sessions are over at this instant; four tokens, and one is revoked.
    assert_eq!(store.purge_access(world.now, 3).await.unwrap(), 6);
    assert_eq!(store.purge_access(world.now, 3).await.unwrap(), 5);
    assert_eq!(store.purge_access(world.now, 3).await.unwrap(), 1);
    assert_eq!(store.purge_access(world.now, 3).await.unwrap(), 0);
    assert_eq!(store.sessions_of(user_id, world.now - 1_000, None, 100).await.unwrap().len(), 5);
    assert_eq!(store.list_tokens(&AccessScope::All, Some(user_id), TokenId(0), 100).await.unwrap().len(), 7);
}

async fn ended_tokens_leave_room_for_others(world: World, store: SqlStore) {
    let user_id = make_user(&world, &store).await;
    for at in 0..150 {
        let ended = token(&world, user_id, world.now - 1);
        store.create_token(&ended, &format!("ended {at}")).await.unwrap();
    }
    for at in 0..100 {
        let valid = token(&world, user_id, [0, world.now + 10][at % 2]);
        store.create_token(&valid, &format!("valid {at}")).await.unwrap();
    }
    let over = store.create_token(&token(&world, user_id, 0), "one more").await.unwrap_err();
    assert_eq!(over.kind(), StoreErrorKind::Conflict, "{over}");
    let nobodys = store.create_token(&token(&world, UserId(user_id.0 + 1), 0), "nobody's").await.unwrap_err();
    assert_eq!(nobodys.kind(), StoreErrorKind::NotFound, "{nobodys}");
}
