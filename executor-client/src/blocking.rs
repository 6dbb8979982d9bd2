//! The blocking parts of a run: closures on threads of their own, which go on even after the
//! handler's future is gone.

use crate::TaskError;
use crate::run::Run;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::JoinHandle;

/// Counts a part out, even when it panics or never starts.
struct Part(Arc<Run>);

impl Drop for Part {
    fn drop(&mut self) {
        self.0.parts.leave();
    }
}

/// A handle to the result of a closure on a thread of its own; see
/// [`TaskContext::spawn_blocking`](crate::TaskContext::spawn_blocking).
///
/// Dropping it does not end the closure, and the run goes on until the closure has returned.
#[derive(Debug)]
pub struct BlockingPart<T> {
    run: Arc<Run>,
    /// `None` when the run had ended before.
    work: Option<JoinHandle<Option<T>>>,
}

impl<T: Send + 'static> BlockingPart<T> {
    pub(crate) fn spawn(run: &Arc<Run>, work: impl FnOnce() -> T + Send + 'static) -> Self {
        if !run.parts.enter() {
            return Self { run: Arc::clone(run), work: None };
        }
        let part = Part(Arc::clone(run));
        let work = tokio::task::spawn_blocking(move || {
            // Told to stop while it waited for a thread.
            let output = (!part.0.is_stopped()).then(work);
            drop(part);
            output
        });
        Self { run: Arc::clone(run), work: Some(work) }
    }
}

impl<T> Future for BlockingPart<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(Err(TaskError::fatal("the run has ended; it accepts no more work")));
        };
        Poll::Ready(match ready!(Pin::new(work).poll(context)) {
            Ok(Some(output)) => Ok(output),
            Ok(None) => Err(TaskError::failed("the run was told to stop before its blocking part started")),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(TaskError::failed("the blocking part did not start: the run or its runtime has ended")),
            },
        })
    }
}

impl<T> Drop for BlockingPart<T> {
    fn drop(&mut self) {
        // Keeps a part that still waits for a thread from starting.
        if let Some(work) = self.work.take_if(|_| self.run.is_stopped()) {
            work.abort();
        }
    }
}
