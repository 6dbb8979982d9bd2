//! Requests that wait for a run to end.

use super::problem::Problem;
use super::state::Api;
use crate::domain::FieldError;
use crate::store::LogView;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest wait of one request, ms.
const WAIT_MS_MAX: i64 = 60_000;

/// Polling interval: a run that ends on another node gives no signal here.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A request polls no more often than this, however many runs end.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// How long a request wants to wait; `None` when it does not.
pub fn wanted(wait_ms: Option<i64>) -> Result<Option<Duration>, FieldError> {
    let wrong = || FieldError::range("wait_ms", 0, WAIT_MS_MAX);
    let read = |ms: i64| u64::try_from(ms).ok().filter(|_| ms <= WAIT_MS_MAX).map(Duration::from_millis);
    wait_ms.map(|ms| read(ms).ok_or_else(wrong)).transpose()
}

/// The log that `look` reads, once the run has ended; or its current state after `wait`, or when the node stops.
pub async fn until_ended(
    api: &Api,
    wait: Duration,
    look: impl AsyncFn() -> Result<LogView, Problem>,
) -> Result<LogView, Problem> {
    let deadline = Instant::now() + wait;
    loop {
        // Subscribed before reading, so that an end in between is not missed.
        let ended = api.ended.any();
        tokio::pin!(ended);
        ended.as_mut().enable();
        let log = look().await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if log.dispatched.run.status.is_terminal() || left.is_zero() || api.stop.is_cancelled() {
            return Ok(log);
        }
        tokio::select! {
            () = ended => sleep(LOOK_PAUSE.min(left)).await,
            () = sleep(LOOK_EVERY.min(left)) => {}
            () = api.stop.cancelled() => {}
        }
    }
}
