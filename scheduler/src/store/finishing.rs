//! Work that is finished even if its caller stops waiting.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

/// Awaits `work`. If this future is dropped before, by a time-out or because a client has gone, `work` goes on in a task of
/// its own until it has ended, or `bound` has passed since it began, and its output is dropped there. The bound is for a server
/// that is gone without a word: the connection's pool closes what is then dropped midway.
///
/// A statement that is dropped midway leaves its pooled connection in a state that the driver does not know: after a
/// `BEGIN` that the server carries out all the same, the connection is within a transaction that no one ends, and later
/// statements on it are acknowledged but never committed (sqlx 0.9 counts a transaction when `BEGIN` was answered). After a
/// `PREPARE`, the driver for MySQL waits for an answer that does not come, and the pool lacks the connection meanwhile.
pub(super) async fn finishing<F>(bound: Duration, work: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    let mut work = Unfinished { work: Some(Box::pin(work)), until: Instant::now() + bound };
    let output = poll_fn(|context| match &mut work.work {
        Some(work) => work.as_mut().poll(context),
        None => Poll::Pending,
    })
    .await;
    work.work = None;
    output
}

struct Unfinished<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    work: Option<Pin<Box<F>>>,
    until: Instant,
}

impl<F> Drop for Unfinished<F>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            let until = self.until;
            runtime.spawn(async move { drop(timeout_at(until, work).await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    #[tokio::test]
    async fn work_goes_on_when_its_caller_has_gone() {
        let (go, wait) = oneshot::channel::<()>();
        let (said, done) = oneshot::channel();
        let work = finishing(Duration::from_mins(1), async move {
            wait.await.unwrap();
            said.send(7).unwrap();
        });
        assert!(timeout(Duration::from_millis(5), work).await.is_err());
        go.send(()).unwrap();
        assert_eq!(done.await, Ok(7));
    }

    #[tokio::test]
    async fn its_output_is_the_works() {
        assert_eq!(finishing(Duration::ZERO, async { 7 }).await, 7);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_never_ends_is_dropped() {
        let (held, gone) = oneshot::channel::<()>();
        let work = finishing(Duration::from_secs(1), async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        assert!(timeout(Duration::from_millis(5), work).await.is_err());
        assert!(gone.await.is_err());
    }
}
