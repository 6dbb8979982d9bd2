//! What unauthenticated callers can send to an executor, as functions of raw bytes: `fuzz/` feeds them
//! millions of inputs, the tests below some thousands. A panic is a bug.

use crate::clock::ClusterClock;
use crate::node::Identity;
use crate::verify::{Refusal, Verifier};
use carillon_protocol::sign::{Key, RequestParts, SignMethod, header};
use carillon_protocol::{Cancel, Code, Dispatch, HeartbeatAck, Probe, Registered, Reply, ResultsAck, Unregistered};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

const NONCE: &str = "0123456789abcdef";

const HEADERS: [&str; 7] =
    [header::TENANT, header::APP, header::KEY, header::TIMESTAMP, header::NONCE, header::SIGN_METHOD, header::SIGN];

fn check(verifier: &Verifier, headers: &HeaderMap, request: (&str, &str, &str), body: &[u8]) -> Result<(), Refusal> {
    let claims = verifier.check_headers(headers)?;
    verifier.check_body(&claims, request, body)
}

/// Headers, path, query and body, one per line: refused as they are; admitted once when correctly
/// signed, and never with another byte.
#[allow(clippy::missing_panics_doc)] // a panic is what the fuzzer looks for
pub fn signature(data: &[u8]) {
    let clock = Arc::new(ClusterClock::new());
    let identity = Identity {
        tenant: "retail".to_owned(),
        app: "orders".to_owned(),
        key: Key { id: "ck_1".to_owned(), secret: "a secret that no one guesses".to_owned() },
        method: SignMethod::Md5,
    };
    let verifier = Verifier::new(identity.clone(), Arc::clone(&clock));
    let mut lines = data.splitn(10, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for name in HEADERS {
        if let Ok(value) = HeaderValue::from_bytes(line()) {
            headers.append(name, value);
        }
    }
    let [path, query] = [line(), line()].map(|text| String::from_utf8_lossy(text).into_owned());
    let body = line();
    assert!(check(&verifier, &headers, ("POST", &path, &query), body).is_err(), "a forgery is admitted");

    let timestamp = clock.signing_ms();
    let parts = RequestParts {
        method: "POST",
        path: &path,
        query: &query,
        tenant: &identity.tenant,
        app: &identity.app,
        key: &identity.key.id,
        timestamp,
        nonce: NONCE,
    };
    for method in [SignMethod::HmacSha256, SignMethod::Md5] {
        let verifier = Verifier::new(identity.clone(), Arc::clone(&clock));
        let sign = parts.sign(method, &identity.key.secret, body);
        let timestamp = timestamp.to_string();
        let values = ["retail", "orders", "ck_1", &timestamp, NONCE, method.as_str(), &sign];
        let headers: HeaderMap = HEADERS
            .into_iter()
            .zip(values)
            .filter_map(|(name, value)| Some((name.parse().ok()?, HeaderValue::from_str(value).ok()?)))
            .collect();
        let more = |text: &str| format!("{text}&secret=x");
        let other_body = [body, b"x"].concat();
        for (request, body) in [
            (("POST", more(&path), query.clone()), body),
            (("POST", path.clone(), more(&query)), body),
            (("POST", path.clone(), query.clone()), other_body.as_slice()),
            (("GET", path.clone(), query.clone()), body),
        ] {
            let (verb, path, query) = &request;
            let code = check(&verifier, &headers, (verb, path, query), body).map_err(|(code, _)| code);
            assert_eq!(code, Err(Code::WrongSignature), "another request is admitted");
        }
        let honest = || check(&verifier, &headers, ("POST", &path, &query), body).map_err(|(code, _)| code);
        assert_eq!(honest(), Ok(()), "an honest request is refused");
        assert_eq!(honest(), Err(Code::Replayed), "a request is admitted twice");
    }
}

/// Every message and every reply of a node.
pub fn executor_messages(data: &[u8]) {
    parsed::<Dispatch>(data);
    parsed::<Cancel>(data);
    parsed::<Probe>(data);
    parsed::<Reply<Registered>>(data);
    parsed::<Reply<HeartbeatAck>>(data);
    parsed::<Reply<Unregistered>>(data);
    parsed::<Reply<ResultsAck>>(data);
}

/// A message must survive a round trip.
fn parsed<M: DeserializeOwned + Serialize>(data: &[u8]) {
    let Ok(message) = serde_json::from_slice::<M>(data) else { return };
    let text = serde_json::to_vec(&message).unwrap_or_default();
    assert!(serde_json::from_slice::<M>(&text).is_ok(), "what was read cannot be written and read again");
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
        proptest!(cases(4_000), |(data in inputs("executor_messages"))| super::executor_messages(&data));
    }
}
