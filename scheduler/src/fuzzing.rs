//! What unauthenticated callers can send to a node, as functions of raw bytes: `fuzz/` feeds them
//! millions of inputs, the tests below some thousands. A panic is a bug.

use crate::api::check_registration;
use crate::auth::{AddressRule, KeyRing, MessageClass, SignedHead, Verifier};
use crate::domain::task::TaskSpec;
use crate::domain::xxljob::wire::{Callback, Registration, Reply};
use crate::domain::xxljob::{Number, number, said};
use crate::domain::{AppId, Owner, TenantId};
use crate::store::SigningKey;
use carillon_protocol::sign::{Key, RequestParts, SignMethod};
use carillon_protocol::{BlockStrategy, Code, Heartbeat, Register, Results, RunStatus, TEXT_BYTES_MAX, Unregister};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// When everything happens, cluster ms.
const NOW: i64 = 1_767_225_600_000;

const NONCE: &str = "0123456789abcdef";

fn key() -> SigningKey {
    SigningKey {
        key: Key { id: "ck_1".to_owned(), secret: "a secret that no one guesses".to_owned() },
        owner: Owner { tenant_id: TenantId(1), app_id: AppId(2) },
        tenant: "retail".to_owned(),
        app: "orders".to_owned(),
        expires_at: 0,
        demanded: None,
        is_token: false,
    }
}

fn verifier() -> Verifier {
    let ring = KeyRing::default();
    ring.take(1, vec![key()]);
    Verifier::new(Arc::new(ring), 1_000)
}

fn check(verifier: &Verifier, head: &SignedHead<'_>, body: &[u8]) -> Result<(), Code> {
    let claims = verifier.check_head(head, NOW).map_err(|refusal| refusal.code)?;
    verifier.check_body(head, &claims, body, MessageClass::Results, NOW).map_err(|refusal| refusal.code)
}

/// Headers, path, query and body, one per line: refused as they are; admitted once when correctly
/// signed, and never with another byte.
#[allow(clippy::missing_panics_doc)] // a panic is what the fuzzer looks for
pub fn signature(data: &[u8]) {
    let mut lines = data.splitn(10, |byte| *byte == b'\n');
    let mut line = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let [tenant, app, key_id, timestamp, nonce, method, sign, path, query, body] = std::array::from_fn(|_| line());
    let parts = RequestParts {
        method: "POST",
        path: &path,
        query: &query,
        tenant: &tenant,
        app: &app,
        key: &key_id,
        timestamp: timestamp.as_str(),
        nonce: &nonce,
    };
    let forged = SignedHead { parts, sign_method: &method, sign: &sign };
    let body = body.as_bytes();
    assert!(check(&verifier(), &forged, body).is_err(), "a forgery is admitted");

    let (key, now) = (key(), NOW.to_string());
    let parts = RequestParts {
        tenant: &key.tenant,
        app: &key.app,
        key: &key.key.id,
        timestamp: now.as_str(),
        nonce: NONCE,
        ..parts
    };
    for method in [SignMethod::HmacSha256, SignMethod::Md5] {
        let verifier = self::verifier();
        let sign = parts.sign(method, &key.key.secret, body);
        let honest = SignedHead { parts, sign_method: method.as_str(), sign: &sign };
        let changed = |parts| SignedHead { parts, ..honest };
        let more = |text: &str| format!("{text}&secret=x");
        let (other_path, other_query, other_body) = (more(&path), more(&query), [body, b"x"].concat());
        for (other, body) in [
            (changed(RequestParts { path: &other_path, ..parts }), body),
            (changed(RequestParts { query: &other_query, ..parts }), body),
            (honest, other_body.as_slice()),
            (changed(RequestParts { method: "GET", ..parts }), body),
        ] {
            assert_eq!(check(&verifier, &other, body), Err(Code::WrongSignature), "another request is admitted");
        }
        assert_eq!(check(&verifier, &honest, body), Ok(()), "an honest request is refused");
        assert_eq!(check(&verifier, &honest, body), Err(Code::Replayed), "a request is admitted twice");
    }
}

/// Every message of an executor, and what is done with it before the database is asked.
pub fn node_messages(data: &[u8]) {
    let anywhere = ["0.0.0.0/0", "::/0"].map(str::parse).into_iter().flatten().collect::<Vec<_>>();
    let addresses = AddressRule::new(&anywhere);
    if let Some(message) = parsed::<Register>(data) {
        // Whatever it says.
        let _ = check_registration(&message, &addresses);
        for handler in message.handlers {
            if let Ok(spec) = TaskSpec::default().patched(handler.policies) {
                let _ = spec.check();
            }
        }
    }
    parsed::<Heartbeat>(data);
    parsed::<Unregister>(data);
    parsed::<Results>(data);
    let text = String::from_utf8_lossy(data);
    let _ = (addresses.check(&text), addresses.check_with_path(&text));
}

/// Every message and answer of an executor of xxl-job.
#[allow(clippy::missing_panics_doc)] // a panic is what the fuzzer looks for
pub fn plain_messages(data: &[u8]) {
    for item in Callback::read(data).map(|callback| callback.items).unwrap_or_default() {
        assert!(item.message.len() <= TEXT_BYTES_MAX, "a text is not cut");
        assert!(said::ended(item.code, &item.message) != RunStatus::Other, "an end that no node knows");
        match Number::read(item.number, NOW) {
            Some(Number::First(log)) => assert_eq!(number::of_first(log), item.number, "another log"),
            Some(Number::Later(number)) => assert_eq!(number, item.number, "another attempt"),
            None => {}
        }
    }
    // Whatever they say.
    let _ = Registration::read(data);
    if let Ok(reply) = Reply::read(data) {
        let _ = said::refusal(BlockStrategy::DiscardLater, &reply.msg);
        let _ = (said::load(&reply), said::kill(&reply), said::logged(&reply));
    }
}

/// The message, which must survive being written.
fn parsed<M: DeserializeOwned + Serialize>(data: &[u8]) -> Option<M> {
    let message: M = serde_json::from_slice(data).ok()?;
    let text = serde_json::to_vec(&message).unwrap_or_default();
    assert!(serde_json::from_slice::<M>(&text).is_ok(), "what was read cannot be written and read again");
    Some(message)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use std::path::Path;

    /// The seeds of a target, as they are and with some bytes changed, and any bytes at all.
    fn inputs(target: &str) -> impl Strategy<Value = Vec<u8>> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(target);
        let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let seeds: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
        let changed = (select(seeds), vec((any::<Index>(), any::<u8>()), 0..6)).prop_map(|(mut seed, changes)| {
            for (at, byte) in changes {
                let at = at.index(seed.len());
                seed[at] = byte;
            }
            seed
        });
        prop_oneof![3 => changed, 1 => vec(any::<u8>(), 0..600)]
    }

    fn cases(count: u32) -> ProptestConfig {
        ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(count) }
    }

    #[test]
    fn signatures_withstand_bytes() {
        proptest!(cases(4_000), |(data in inputs("signature"))| super::signature(&data));
    }

    #[test]
    fn messages_withstand_bytes() {
        proptest!(cases(4_000), |(data in inputs("node_messages"))| super::node_messages(&data));
    }

    #[test]
    fn messages_of_xxl_job_withstand_bytes() {
        proptest!(cases(4_000), |(data in inputs("plain_messages"))| super::plain_messages(&data));
    }
}
