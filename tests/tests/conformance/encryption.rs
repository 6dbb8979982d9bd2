//! Secrets at rest: the databases only, since the model has none.

use crate::fixture::{World, connect};
use carillon::domain::Owner;
use carillon::store::{EncryptionKeys, EncryptionRotation, KeyStore, KeyWords, SqlStore};
use carillon_protocol::sign::Key;
use carillon_tests::{Database, Kind};
use futures_util::future::join_all;
use secrecy::SecretString;
use std::collections::BTreeMap;

databases!(
    a_rotation_encrypts_everything_and_what_comes_after_it,
    nothing_is_changed_without_the_key,
    keys_that_are_made_meanwhile_are_encrypted_under_the_new_one,
    a_secret_belongs_to_its_row,
);

const K1: &str = "k1:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const K2: &str = "k2:AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

fn with(store: &SqlStore, keys: &[&str]) -> SqlStore {
    let keys: Vec<SecretString> = keys.iter().map(|key| SecretString::from(*key)).collect();
    store.clone().with_encryption(EncryptionKeys::parse(&keys).unwrap())
}

async fn make(store: &SqlStore, owner: Owner, id: &str, now: i64) -> Result<(), String> {
    let key = Key { id: id.to_owned(), secret: format!("secret of {id}") };
    let words = KeyWords { is_token: false, note: "", created_by: "ada" };
    store.create_key(owner, &key, words, now).await.map_err(|error| error.to_string())
}

/// The secrets that it can read, by their keys; how many it cannot.
async fn read(store: &SqlStore) -> (BTreeMap<String, String>, usize) {
    let (keys, unreadable) = store.signing_keys().await.unwrap();
    (keys.into_iter().map(|key| (key.key.id, key.key.secret)).collect(), unreadable.len())
}

fn database(world: &World) -> &Database {
    world.database.as_ref().expect("not over the model")
}

/// What is stored, key by key.
async fn stored(world: &World) -> Vec<String> {
    database(world).query("SELECT secret FROM app_key ORDER BY id", |row| row.try_get_by_index(0)).await
}

fn are_under(stored: &[String], key: &str) -> bool {
    stored.iter().all(|secret| secret.starts_with(&format!("enc:{key}:")))
}

async fn a_rotation_encrypts_everything_and_what_comes_after_it(world: World, plain: SqlStore) {
    make(&plain, world.owner, "a", world.now).await.unwrap();
    make(&plain, world.owner, "revoked", world.now).await.unwrap();
    plain.revoke_key(world.owner, "revoked", world.now).await.unwrap();
    let before = read(&plain).await;
    assert_eq!((before.0["a"].as_str(), before.1), ("secret of a", 0));
    let one = with(&plain, &[K1]);
    assert_eq!(one.check_encryption().await.unwrap(), None, "there are secrets already: not by itself");
    make(&one, world.owner, "b", world.now).await.unwrap();
    assert!(stored(&world).await.contains(&"secret of b".to_owned()), "not before every node has the key");

    let count = stored(&world).await.len();
    let rotated = EncryptionRotation { key: "k1".to_owned(), encrypted: count };
    assert_eq!(one.rotate_encryption().await.unwrap(), rotated);
    assert!(are_under(&stored(&world).await, "k1"), "revoked ones, too");
    assert_eq!(one.check_encryption().await.unwrap().as_deref(), Some("k1"));
    make(&one, world.owner, "c", world.now).await.unwrap();
    let again = EncryptionRotation { key: "k1".to_owned(), encrypted: 0 };
    assert_eq!(one.rotate_encryption().await.unwrap(), again, "a repetition changes nothing");

    let both = with(&plain, &[K2, K1]);
    make(&both, world.owner, "d", world.now).await.unwrap();
    assert!(are_under(&stored(&world).await, "k1"), "until the rotation");
    assert_eq!(
        both.rotate_encryption().await.unwrap(),
        EncryptionRotation { key: "k2".to_owned(), encrypted: count + 2 }
    );
    assert!(are_under(&stored(&world).await, "k2"));
    let (secrets, unreadable) = read(&with(&plain, &[K2])).await;
    assert_eq!(unreadable, 0);
    assert_eq!(
        ["a", "b", "c", "d"].map(|id| secrets[id].clone()),
        ["a", "b", "c", "d"].map(|id| format!("secret of {id}"))
    );
    assert_eq!(secrets.len(), before.0.len() + 3, "the first key of the app among them");
}

async fn nothing_is_changed_without_the_key(world: World, plain: SqlStore) {
    with(&plain, &[K1]).rotate_encryption().await.unwrap();
    let before = stored(&world).await;
    for keys in [&[][..], &[K2]] {
        let store = with(&plain, keys);
        let refused = store.check_encryption().await.unwrap_err().to_string();
        assert!(refused.contains("encryption.keys lacks the key `k1`"), "{refused}");
        assert!(make(&store, world.owner, "x", world.now).await.unwrap_err().contains("`k1`"));
        assert_eq!(read(&store).await, (BTreeMap::new(), before.len()));
        assert!(store.rotate_encryption().await.is_err());
    }
    let wrong = K2.replace("k2", "k1");
    let refused = with(&plain, &[&wrong]).check_encryption().await.unwrap_err().to_string();
    assert!(refused.contains("cannot be decrypted"), "{refused}");
    assert_eq!(stored(&world).await, before);
    assert_eq!(with(&plain, &[K1]).check_encryption().await.unwrap().as_deref(), Some("k1"));
}

async fn keys_that_are_made_meanwhile_are_encrypted_under_the_new_one(world: World, plain: SqlStore) {
    let both = with(&plain, &[K2, K1]);
    both.check_encryption().await.unwrap();
    let ids: Vec<String> = (0..8).map(|number| format!("key {number}")).collect();
    let made = join_all(ids.iter().map(|id| make(&both, world.owner, id, world.now)));
    let (made, rotated) = tokio::join!(made, both.rotate_encryption());
    rotated.unwrap();
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    assert!(are_under(&stored(&world).await, "k2"));
    assert_eq!(read(&both).await.1, 0);
}

/// Who can write to the table cannot give an app the secret of another.
async fn a_secret_belongs_to_its_row(world: World, plain: SqlStore) {
    let store = with(&plain, &[K1]);
    make(&store, world.owner, "a", world.now).await.unwrap();
    make(&store, world.owner, "b", world.now).await.unwrap();
    store.rotate_encryption().await.unwrap();
    let of_a: Vec<String> =
        database(&world).query("SELECT secret FROM app_key WHERE id = 'a'", |row| row.try_get_by_index(0)).await;
    database(&world).execute(&format!("UPDATE app_key SET secret = '{}' WHERE id = 'b'", of_a[0])).await;
    let (secrets, unreadable) = read(&store).await;
    assert!(secrets.contains_key("a") && !secrets.contains_key("b"));
    assert_eq!(unreadable, 1);
}

/// Without a step of anybody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_database_is_encrypted_from_the_start() {
    let database = Database::fresh(Kind::Sqlite).await;
    let store = with(&connect(&database.url).await, &[K1, K2]);
    assert_eq!(store.check_encryption().await.unwrap().as_deref(), Some("k1"));
    assert_eq!(store.check_encryption().await.unwrap().as_deref(), Some("k1"));
}
