//! What those who hold keys may use of a node that all share.

use super::body::{self, BodyError};
use crate::auth::Throttle;
use crate::domain::AppId;
use actix_web::web::Bytes;
use carillon_protocol::BODY_BYTES_MAX;
use futures_util::Stream;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Executors of one app that may be online at once: every node keeps all of them.
const ONLINE_MAX: usize = 2_000;

/// Registrations of one app that a node takes at once; after them one each …
const REGISTRATIONS_BURST: u32 = 4_000;
/// … interval. Each may leave a row that is kept for days.
const REGISTRATIONS_EVERY: Duration = Duration::from_millis(500);

/// A body up to this size is verified however many requests of its address and key were refused, and however much else is
/// being read: a heartbeat with some thousands of runs. Its signature costs less than reading its head.
pub const ALWAYS_VERIFIED_BYTES: usize = 64 * 1024;

/// Bytes of larger bodies that a node reads and works on at once, of all callers together.
const BODIES_BYTES_MAX: usize = 8 * BODY_BYTES_MAX;

/// Why an executor's body was not read.
pub enum Unread {
    /// Too much is being read at once.
    Busy,
    /// For a reason of its own.
    Body(BodyError),
}

impl From<BodyError> for Unread {
    fn from(error: BodyError) -> Self {
        Self::Body(error)
    }
}

/// Counts what executors use of a node.
pub struct WireLimits {
    registrations: Throttle,
    /// KiB of bodies that may still be read.
    bodies: Arc<Semaphore>,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            registrations: Throttle::new(REGISTRATIONS_BURST, REGISTRATIONS_EVERY),
            bodies: Arc::new(Semaphore::new(BODIES_BYTES_MAX / 1_024)),
        }
    }
}

impl WireLimits {
    /// Whether the app, which has so many executors online, may register one more, or one that takes the place of one of
    /// them; otherwise why not.
    pub fn check_registration(&self, app: AppId, (online, takes_a_place): (usize, bool)) -> Result<(), String> {
        if self.registrations.admit(&app.to_string()).is_err() {
            return Err("executors of the app register too often".to_owned());
        }
        if online >= ONLINE_MAX && !takes_a_place {
            return Err(format!("the app has {ONLINE_MAX} executors online, the most that it may have"));
        }
        Ok(())
    }

    /// Reads at most `limit` bytes. What is returned beside a large body is its share of what may be read at once: it is
    /// to be kept as long as the body.
    pub async fn read<P, E>(&self, payload: P, limit: usize) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Unread>
    where
        P: Stream<Item = Result<Bytes, E>> + Unpin,
        E: Display,
    {
        let mut share: Option<OwnedSemaphorePermit> = None;
        // As it arrives, so that no one takes a share by announcing a body.
        let take = |length: usize| -> Result<(), Unread> {
            if length <= ALWAYS_VERIFIED_BYTES {
                return Ok(());
            }
            let has = share.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let more = u32::try_from(length.div_ceil(1_024).saturating_sub(has)).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.bodies).try_acquire_many_owned(more).map_err(|_| Unread::Busy)?;
            match &mut share {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
            Ok(())
        };
        let body = body::read_counting(payload, limit, take).await?;
        Ok((body, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::FromRequest as _;
    use actix_web::test::TestRequest;
    use actix_web::web::Payload;

    async fn payload(bytes: usize) -> Payload {
        let (request, mut payload) = TestRequest::post().set_payload(vec![b' '; bytes]).to_http_parts();
        Payload::from_request(&request, &mut payload).await.unwrap()
    }

    #[actix_web::test]
    async fn large_bodies_share_what_may_be_read_at_once() {
        let limits = WireLimits::default();
        let mut kept = Vec::new();
        while kept.len() < BODIES_BYTES_MAX / BODY_BYTES_MAX {
            kept.push(limits.read(payload(BODY_BYTES_MAX).await, BODY_BYTES_MAX).await.ok().expect("there is room"));
        }
        let one_more = limits.read(payload(ALWAYS_VERIFIED_BYTES + 1).await, BODY_BYTES_MAX).await;
        assert!(matches!(one_more, Err(Unread::Busy)));
        assert!(
            limits.read(payload(ALWAYS_VERIFIED_BYTES).await, BODY_BYTES_MAX).await.is_ok(),
            "small ones always pass"
        );
        kept.pop();
        assert!(limits.read(payload(ALWAYS_VERIFIED_BYTES + 1).await, BODY_BYTES_MAX).await.is_ok());
        let too_large = limits.read(payload(BODY_BYTES_MAX + 1).await, BODY_BYTES_MAX).await;
        assert!(matches!(too_large, Err(Unread::Body(BodyError::TooLarge))));
    }

    #[test]
    fn an_app_registers_only_so_many_and_so_often() {
        let limits = WireLimits::default();
        let check = |app: i64, online: usize, takes_a_place: bool| {
            limits.check_registration(AppId(app), (online, takes_a_place)).err().unwrap_or_default()
        };
        assert_eq!(check(1, ONLINE_MAX - 1, false), "");
        assert!(check(1, ONLINE_MAX, false).contains("2000 executors online"));
        assert_eq!(check(1, ONLINE_MAX, true), "", "that is there already");
        while check(1, 0, false).is_empty() {}
        assert_eq!(check(2, 0, false), "", "another app");
    }
}
