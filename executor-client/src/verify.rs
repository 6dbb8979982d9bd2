//! Who may talk to this executor: every check of a request's signature.
//!
//! Only requests that pass all checks get signed replies. A signature over a refusal would let an
//! attacker on the path replay a request, have the replay refused, and pass that refusal off as the
//! reply to the original, which was accepted.

use crate::clock::ClusterClock;
use crate::node::Identity;
use crate::sync::lock;
use carillon_protocol::Code;
use carillon_protocol::exchange::Answer;
use carillon_protocol::sign::{
    self, NONCE_CHARS, NonceMemory, NonceVerdict, RequestParts, SignMethod, TIMESTAMP_WINDOW_MS, header,
};
use hyper::HeaderMap;
use std::sync::{Arc, Mutex};

/// Nonces remembered at most: both sides of the window at 1,000 requests a second, 12 MB.
const NONCES_MAX: usize = 600_000;

/// Why a request is refused: a code and a text that reveals nothing.
pub(crate) type Refusal = (Code, &'static str);

/// Checks requests against this executor's identity.
#[derive(Debug)]
pub(crate) struct Verifier {
    identity: Identity,
    clock: Arc<ClusterClock>,
    nonces: Mutex<NonceMemory>,
}

/// The signed headers of a request that may go on to its body.
#[derive(Debug)]
pub(crate) struct Claims {
    timestamp: i64,
    nonce: String,
    method: SignMethod,
    sign: String,
}

impl Verifier {
    pub(crate) fn new(identity: Identity, clock: Arc<ClusterClock>) -> Self {
        Self { identity, clock, nonces: Mutex::new(NonceMemory::new(NONCES_MAX)) }
    }

    /// Everything that can be checked without the body.
    pub(crate) fn check_headers(&self, headers: &HeaderMap) -> Result<Claims, Refusal> {
        let tenant = one(headers, header::TENANT)?;
        let app = one(headers, header::APP)?;
        let key = one(headers, header::KEY)?;
        let timestamp = one(headers, header::TIMESTAMP)?;
        let nonce = one(headers, header::NONCE)?;
        let method = one(headers, header::SIGN_METHOD)?;
        let sign = one(headers, header::SIGN)?;
        let ours = &self.identity;
        if tenant != ours.tenant || app != ours.app || key != ours.key.id {
            return Err((Code::UnknownKey, "not a key of this executor's tenant and app"));
        }
        // The stronger method is always accepted, the weaker only if it was chosen.
        let method = SignMethod::parse(method)
            .filter(|method| *method == SignMethod::HmacSha256 || *method == ours.method)
            .ok_or((Code::SignMethod, "not a sign method of this executor"))?;
        // The nonce is part of the signed text: it must not contain anything that could end its field.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !NONCE_CHARS.contains(&nonce.len()) || !nonce.chars().all(plain) {
            return Err((Code::BadRequest, "the nonce is not 16 to 64 plain characters"));
        }
        let Ok(timestamp) = timestamp.parse::<i64>() else {
            return Err((Code::BadRequest, "the timestamp is not a number"));
        };
        self.check_window(timestamp)?;
        Ok(Claims { timestamp, nonce: nonce.to_owned(), method, sign: sign.to_owned() })
    }

    fn check_window(&self, timestamp: i64) -> Result<(), Refusal> {
        let apart = timestamp.saturating_sub(self.clock.signing_ms());
        if apart.unsigned_abs() > TIMESTAMP_WINDOW_MS as u64 {
            return Err((Code::ClockSkew, "the timestamp is too far from the cluster clock"));
        }
        Ok(())
    }

    /// The signature itself, and that it is seen for the first time.
    pub(crate) fn check_body(
        &self,
        claims: &Claims,
        (method, path, query): (&str, &str, &str),
        body: &[u8],
    ) -> Result<(), Refusal> {
        let ours = &self.identity;
        let expected = RequestParts {
            method,
            path,
            query,
            tenant: &ours.tenant,
            app: &ours.app,
            key: &ours.key.id,
            timestamp: claims.timestamp,
            nonce: &claims.nonce,
        }
        .sign(claims.method, &ours.key.secret, body);
        if !sign::matches(&expected, &claims.sign) {
            return Err((Code::WrongSignature, "the signature does not match"));
        }
        // Checked again: the body may have been slow, and nonces of old requests are forgotten.
        self.check_window(claims.timestamp)?;
        // Last, so that only the holder of the key can fill the memory.
        match lock(&self.nonces).admit(&claims.nonce, claims.timestamp, self.clock.signing_ms()) {
            NonceVerdict::New => Ok(()),
            NonceVerdict::Repeated => Err((Code::Replayed, "the nonce was seen before")),
            NonceVerdict::Full => Err((Code::TooMany, "too many requests lately")),
        }
    }

    /// The signed answer to a request, by the method of the request.
    pub(crate) fn sign(&self, claims: &Claims, status: u16, body: Vec<u8>) -> Answer {
        Answer::signed(status, body, claims.method, &self.identity.key.secret, &claims.nonce)
    }
}

/// The value of a header that must be there exactly once.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (Some(Ok(value)), None) => Ok(value),
        (None, _) => Err((Code::Unsigned, "a signature header is missing")),
        _ => Err((Code::Unsigned, "a signature header is given twice or is not text")),
    }
}
