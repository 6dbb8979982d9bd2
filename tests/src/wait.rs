//! Waiting for a condition, never for a time that "should be enough".

use std::fmt::{Debug, Write as _};
use std::future::Future;
use std::time::{Duration, Instant};

/// Between two looks at a condition.
const POLL: Duration = Duration::from_millis(50);

/// Polls `condition` until it gives a value; panics with `what` after `seconds`.
pub async fn await_until<T, F, W>(what: &str, seconds: u64, mut condition: F) -> T
where
    F: FnMut() -> W,
    W: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(value) = condition().await {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out after {seconds} s waiting until {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// Lets real time pass because the scenario is about that time (an outage, a stretch of fires).
/// Never used to wait for something to have happened.
pub async fn pass(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

/// `Some` when `condition` holds, for [`await_until`].
#[must_use]
pub fn when(condition: bool) -> Option<()> {
    condition.then_some(())
}

/// The first few of `items`, one per line, for messages of failed checks.
pub fn sample<T: Debug>(items: &[T]) -> String {
    let mut text = format!("{} in all", items.len());
    for item in items.iter().take(8) {
        write!(text, "\n  {item:?}").expect("writing to a String cannot fail");
    }
    text
}
