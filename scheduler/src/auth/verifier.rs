//! Signatures of executors: who sent a request, that it came for the first time, and how often the
//! holders of one key may ask. What can be judged without the body is judged first.

use super::keys::KeyRing;
use super::throttle::{Meter, Rate};
use crate::store::SigningKey;
use carillon_protocol::Code;
use carillon_protocol::sign::{
    self, NONCE_CHARS, NONCE_KEPT_MS, NonceMemory, NonceVerdict, RequestParts, SignMethod, TIMESTAMP_WINDOW_MS,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Kinds of messages with a rate of their own.
const LANES: usize = 2;

/// Seconds whose requests may come at once.
const BURST_S: u32 = 2;

/// Interval between two rounds of forgetting keys that have not signed anything for long.
const CLEAN_INTERVAL: Duration = Duration::from_mins(1);

/// What is told to wait when no more nonces can be remembered: until some are forgotten.
const FULL_WAIT: Duration = Duration::from_secs(30);

/// Messages of one rate: however many results come, heartbeats have theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageClass {
    /// Registrations, heartbeats, farewells.
    Membership,
    /// Results.
    Results,
}

/// What a signature covers besides the body, as it came in.
#[derive(Debug, Clone, Copy)]
pub struct SignedHead<'a> {
    /// What is signed besides the body, as sent; what is missing is empty.
    pub parts: RequestParts<'a, &'a str>,
    /// `X-Carillon-Sign-Method`.
    pub sign_method: &'a str,
    /// `X-Carillon-Sign`.
    pub sign: &'a str,
}

/// What a head says that has nothing wrong with it, unproved.
#[derive(Debug, Clone)]
pub struct Claims {
    /// The key that it names.
    pub key: Arc<SigningKey>,
    /// When it was signed, by the caller's clock, ms.
    pub at: i64,
    method: SignMethod,
}

impl Claims {
    /// How far the caller's clock is from the cluster clock (`now`), where that is too far; both ms. It is
    /// refused once the request is proved: a refusal that contains the time must be signed, and only the
    /// holder of the key may get one signed.
    pub fn skew_ms(&self, now: i64) -> Option<i64> {
        let skew_ms = self.at.saturating_sub(now);
        (skew_ms.unsigned_abs() > TIMESTAMP_WINDOW_MS.unsigned_abs()).then_some(skew_ms)
    }
}

/// Why a request is refused: the class of fault, never the right signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Class of fault.
    pub code: Code,
    /// For people.
    pub message: String,
    /// Whether it is proved that the holder of the key asks: the refusal is then signed.
    pub is_proved: bool,
    /// How long to wait before the next try, where that helps.
    pub wait: Option<Duration>,
}

impl Refusal {
    /// An unsigned refusal: an attacker who replays or forges a request must not get a refusal that
    /// could be passed off as the reply to another.
    pub fn unproved(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_proved: false, wait: None }
    }
}

/// What is remembered of a key.
struct Usage {
    nonces: NonceMemory,
    meters: [Meter; LANES],
}

struct Usages {
    by_key: HashMap<String, Usage>,
    cleaned_at: Instant,
}

/// Checks signatures of executors.
pub struct Verifier {
    keys: Arc<KeyRing>,
    /// Of each lane of each key.
    rate: Rate,
    /// Remembered at most of each key: all that it may send while a nonce counts. With 10 to 21 bytes
    /// each, that is at most 15 kB for each request a second that its holders send without a pause.
    nonces_max: usize,
    /// By keys that have signed something in the last minutes; only their holders add to them.
    usages: Mutex<Usages>,
}

impl Verifier {
    /// Over the node's keys. The holders of each may send `per_second` messages of a lane, on average.
    pub fn new(keys: Arc<KeyRing>, per_second: u32) -> Self {
        let kept_s = (NONCE_KEPT_MS / 1_000) as usize + BURST_S as usize;
        Self {
            keys,
            rate: Rate::new(BURST_S * per_second, Duration::from_secs(1) / per_second.max(1)),
            nonces_max: LANES * kept_s * per_second as usize,
            usages: Mutex::new(Usages { by_key: HashMap::new(), cleaned_at: Instant::now() }),
        }
    }

    /// Checks all that needs no body, at `now` (cluster ms). No refusal is proved.
    pub fn check_head(&self, head: &SignedHead<'_>, now: i64) -> Result<Claims, Refusal> {
        let RequestParts { tenant, app, key, timestamp, nonce, .. } = head.parts;
        let fields = [tenant, app, key, timestamp, nonce, head.sign_method, head.sign];
        if fields.iter().any(|field| field.is_empty()) {
            let message = "the request is not signed: an X-Carillon-* header is missing";
            return Err(Refusal::unproved(Code::Unsigned, message));
        }
        let at: i64 = timestamp
            .parse()
            .map_err(|_| Refusal::unproved(Code::BadRequest, "X-Carillon-Timestamp must be epoch milliseconds"))?;
        let method = SignMethod::parse(head.sign_method)
            .ok_or_else(|| Refusal::unproved(Code::SignMethod, "X-Carillon-Sign-Method must be MD5 or HMAC-SHA256"))?;
        // The nonce is part of the signed text: it must not contain anything that could end its field.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !NONCE_CHARS.contains(&nonce.len()) || !nonce.chars().all(plain) {
            return Err(Refusal::unproved(Code::BadRequest, "X-Carillon-Nonce must have 16 to 64 plain characters"));
        }
        // A key of another tenant or app, or one that has ended, is as good as none.
        let key = self.keys.find(key, now).filter(|key| key.tenant == tenant && key.app == app);
        let key = key.ok_or_else(no_key)?;
        if let Some(demanded) = key.demanded.filter(|demanded| *demanded != method) {
            let (demanded, method) = (demanded.as_str(), method.as_str());
            let message =
                format!("this app requires signatures by {demanded}, not {method}: set its executors' sign method");
            return Err(Refusal::unproved(Code::SignMethod, message));
        }
        Ok(Claims { key, at, method })
    }

    /// Checks the signature of a head that [`check_head`](Self::check_head) took, and that it comes for
    /// the first time, and not too often; `now` (cluster ms) is when the body was there. The nonce is
    /// spent only by a request with a valid signature, so that no one else can spend it.
    pub fn check_body(
        &self,
        head: &SignedHead<'_>,
        claims: &Claims,
        body: &[u8],
        message_class: MessageClass,
        now: i64,
    ) -> Result<(), Refusal> {
        let Claims { key, at, method } = claims;
        // It may have ended while the body came.
        self.keys.find(&key.key.id, now).ok_or_else(no_key)?;
        if !sign::matches(&head.parts.sign(*method, &key.key.secret, body), head.sign) {
            let message = "the signature does not match; check the key's secret";
            return Err(Refusal::unproved(Code::WrongSignature, message));
        }
        let proved = |code, message| Refusal { code, message, is_proved: true, wait: None };
        if let Some(skew_ms) = claims.skew_ms(now) {
            let message =
                format!("the timestamp is {skew_ms} ms from the cluster clock; allowed are {TIMESTAMP_WINDOW_MS}");
            return Err(proved(Code::ClockSkew, message));
        }
        self.admit(&key.key.id, head.parts.nonce, *at, message_class, now).map_err(|wait| {
            if wait.is_none() {
                return Refusal::unproved(Code::Replayed, "the nonce was used before");
            }
            let message = "too many requests are signed with this key (executors.requests_per_second)";
            Refusal { wait, ..proved(Code::TooMany, message.to_owned()) }
        })?;
        self.keys.used(key, now);
        Ok(())
    }

    /// Spends the nonce, or says for how long there is no room; `None`: it was spent before.
    fn admit(
        &self,
        key_id: &str,
        nonce: &str,
        at: i64,
        message_class: MessageClass,
        now: i64,
    ) -> Result<(), Option<Duration>> {
        let mut usages = self.usages.lock().unwrap_or_else(PoisonError::into_inner);
        let instant = Instant::now();
        usages.clean(instant, now);
        let usage = usages.of(key_id, instant, self.nonces_max);
        // Before the rate: what was admitted and comes again is never told that it should come again.
        if usage.nonces.knows(nonce, at) {
            return Err(None);
        }
        usage.meters[message_class as usize].admit(&self.rate, instant).map_err(Some)?;
        match usage.nonces.admit(nonce, at, now) {
            NonceVerdict::New => Ok(()),
            NonceVerdict::Repeated => Err(None),
            NonceVerdict::Full => Err(Some(FULL_WAIT)),
        }
    }
}

fn no_key() -> Refusal {
    let message = "no valid key of this tenant and app; see the app's keys: it may have been revoked";
    Refusal::unproved(Code::UnknownKey, message)
}

impl Usages {
    fn of(&mut self, key_id: &str, now: Instant, nonces_max: usize) -> &mut Usage {
        self.by_key
            .entry(key_id.to_owned())
            .or_insert_with(|| Usage { nonces: NonceMemory::new(nonces_max), meters: [Meter::new(now); LANES] })
    }

    fn clean(&mut self, instant: Instant, now: i64) {
        if instant.duration_since(self.cleaned_at) < CLEAN_INTERVAL {
            return;
        }
        self.cleaned_at = instant;
        self.by_key.retain(|_, usage| {
            usage.nonces.forget_old(now);
            !usage.nonces.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{AppId, Owner, TenantId};
    use carillon_protocol::sign::Key;

    const NOW: i64 = 1_767_225_600_000;

    fn key(id: &str) -> SigningKey {
        SigningKey {
            key: Key { id: id.to_owned(), secret: format!("the secret of {id}") },
            owner: Owner { tenant_id: TenantId(1), app_id: AppId(2) },
            tenant: id.to_owned(),
            app: "orders".to_owned(),
            expires_at: 0,
            demanded: None,
            is_token: false,
        }
    }

    fn verifier(per_second: u32) -> Verifier {
        let ring = KeyRing::default();
        ring.take(1, vec![key("greedy"), key("quiet")]);
        Verifier::new(Arc::new(ring), per_second)
    }

    /// What becomes of a request of that key; its nonce is made of a number.
    fn send(
        verifier: &Verifier,
        id: &str,
        number: usize,
        message_class: MessageClass,
        now: i64,
    ) -> Result<(), Refusal> {
        send_slowly(verifier, id, (number, now), message_class, (now, now))
    }

    /// The same, signed at one time, with a head at the next and a body at the last.
    fn send_slowly(
        verifier: &Verifier,
        id: &str,
        (number, at): (usize, i64),
        message_class: MessageClass,
        (head_at, body_at): (i64, i64),
    ) -> Result<(), Refusal> {
        let key = key(id);
        let nonce = format!("{number:032}");
        let timestamp = at.to_string();
        let parts = RequestParts {
            method: "POST",
            path: "/openapi/results",
            query: "",
            tenant: &key.tenant,
            app: &key.app,
            key: id,
            timestamp: timestamp.as_str(),
            nonce: &nonce,
        };
        let sign = parts.sign(SignMethod::HmacSha256, &key.key.secret, b"{}");
        let head = SignedHead { parts, sign_method: "HMAC-SHA256", sign: &sign };
        let claims = verifier.check_head(&head, head_at)?;
        verifier.check_body(&head, &claims, b"{}", message_class, body_at)
    }

    fn code(outcome: Result<(), Refusal>) -> Option<Code> {
        outcome.err().map(|refusal| refusal.code)
    }

    #[test]
    fn a_key_over_its_rate_blocks_no_other_key() {
        // One a second, two at once.
        let verifier = verifier(1);
        let refused: Vec<Refusal> =
            (0..50).filter_map(|number| send(&verifier, "greedy", number, MessageClass::Results, NOW).err()).collect();
        assert!(refused.len() >= 40, "{} of 50", refused.len());
        for refusal in &refused {
            assert_eq!((refusal.code, refusal.is_proved), (Code::TooMany, true));
            assert!(refusal.wait.is_some_and(|wait| wait <= Duration::from_secs(1)), "{refusal:?}");
        }
        assert_eq!(
            send(&verifier, "greedy", 100, MessageClass::Membership, NOW),
            Ok(()),
            "its heartbeats have their own rate"
        );
        assert_eq!(send(&verifier, "quiet", 0, MessageClass::Results, NOW), Ok(()), "the same nonce of another key");
        assert_eq!(
            code(send(&verifier, "greedy", 0, MessageClass::Results, NOW)),
            Some(Code::Replayed),
            "not `too many`"
        );
    }

    #[test]
    fn a_key_with_too_many_nonces_blocks_no_other_key() {
        let verifier = Verifier { nonces_max: 100, ..verifier(10_000) };
        for number in 0..100 {
            assert_eq!(send(&verifier, "greedy", number, MessageClass::Results, NOW), Ok(()));
        }
        assert_eq!(code(send(&verifier, "greedy", 100, MessageClass::Results, NOW)), Some(Code::TooMany));
        assert_eq!(
            code(send(&verifier, "greedy", 7, MessageClass::Results, NOW)),
            Some(Code::Replayed),
            "nothing is forgotten"
        );
        for number in 0..100 {
            assert_eq!(send(&verifier, "quiet", number, MessageClass::Results, NOW), Ok(()));
        }
        let later = NOW + NONCE_KEPT_MS + 1;
        assert_eq!(send(&verifier, "greedy", 7, MessageClass::Results, later), Ok(()), "there is room again");
    }

    #[test]
    fn a_key_at_its_full_rate_does_not_fill_its_memory() {
        let per_second = 2;
        let verifier = verifier(per_second);
        let mut admitted = 0;
        for second in 0..2 * NONCE_KEPT_MS / 1_000 {
            let mut usages = verifier.usages.lock().unwrap();
            let now = NOW + second * 1_000;
            let usage = usages.of("quiet", Instant::now(), verifier.nonces_max);
            for number in 0..LANES * per_second as usize {
                admitted += 1;
                let verdict = usage.nonces.admit(&format!("{second}-{number}"), now, now);
                assert_eq!(verdict, NonceVerdict::New, "after {admitted}");
            }
        }
    }

    #[test]
    fn a_body_that_is_slow_is_judged_when_it_is_there() {
        let verifier = verifier(10);
        let claim = |at: i64| {
            let key = Arc::new(key("quiet"));
            let claims = Claims { key, at, method: SignMethod::HmacSha256 };
            claims.skew_ms(NOW)
        };
        assert_eq!(claim(NOW - TIMESTAMP_WINDOW_MS), None);
        assert_eq!(claim(NOW - TIMESTAMP_WINDOW_MS - 1), Some(-TIMESTAMP_WINDOW_MS - 1));
        assert_eq!(claim(NOW + TIMESTAMP_WINDOW_MS + 1), Some(TIMESTAMP_WINDOW_MS + 1));
        let slow = |body_at| send_slowly(&verifier, "quiet", (0, NOW), MessageClass::Results, (NOW, body_at));
        assert_eq!(code(slow(NOW + TIMESTAMP_WINDOW_MS + 1)), Some(Code::ClockSkew), "too old by then");
        let ends = SigningKey { expires_at: NOW + 2, ..key("quiet") };
        verifier.keys.take(2, vec![ends]);
        assert_eq!(code(slow(NOW + 2)), Some(Code::UnknownKey), "the key has ended by then");
        assert_eq!(slow(NOW + 1), Ok(()));
    }

    #[test]
    fn unused_keys_are_forgotten() {
        let verifier = verifier(10);
        for id in ["greedy", "quiet"] {
            assert_eq!(send(&verifier, id, 0, MessageClass::Results, NOW), Ok(()));
        }
        let mut usages = verifier.usages.lock().unwrap();
        let soon = usages.cleaned_at + CLEAN_INTERVAL;
        usages.clean(soon, NOW + NONCE_KEPT_MS - 60_000);
        assert_eq!(usages.by_key.len(), 2);
        usages.clean(soon + CLEAN_INTERVAL, NOW + NONCE_KEPT_MS + 1);
        assert!(usages.by_key.is_empty());
    }
}
