//! One accepted run, from its arrival to its end.

use crate::clock::ClusterClock;
use crate::output::span::RunSpan;
use crate::output::{Level, Outlet, Outputs};
use crate::parts::Parts;
use crate::ready::Ticket;
use crate::{Output, TaskError};
use carillon_protocol::{BlockStrategy, DispatchItem, RunKey};
use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// A handler's future.
pub(crate) type HandlerFuture = Pin<Box<dyn Future<Output = Result<Output, TaskError>> + Send>>;

/// A handler that can be called for any run.
pub(crate) trait Handler: Send + Sync {
    /// `started_at_us`: cluster clock, epoch µs. `span`: that of the run, which the call is made in.
    fn call(&self, run: &Arc<Run>, started_at_us: i64, span: &RunSpan) -> HandlerFuture;
}

/// Why a running handler is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The run was cancelled.
    Cancelled,
    /// Contact was lost for too long, or the shutdown could not wait any longer.
    Abandoned,
    /// Its time-out has passed.
    TimedOut,
    /// A later run of the task, with this log, replaces it.
    Covered(i64),
}

/// One accepted run, from its arrival to its end. Everything it needs is allocated on arrival, so
/// that starting it allocates only the handler's future.
pub(crate) struct Run {
    pub(crate) item: DispatchItem,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) clock: Arc<ClusterClock>,
    pub(crate) parts: Parts,
    pub(crate) cancel: CancellationToken,
    /// 0 until stopped, then which was the first [`Stop`].
    stop: AtomicU8,
    /// The first log that replaced it.
    covered_by: OnceLock<i64>,
    outputs: Arc<Outputs>,
    outlet: Outlet,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("item", &self.item).finish_non_exhaustive()
    }
}

impl Run {
    pub(crate) fn new(
        item: DispatchItem,
        handler: Arc<dyn Handler>,
        clock: Arc<ClusterClock>,
        outputs: Arc<Outputs>,
    ) -> Self {
        Self {
            item,
            handler,
            clock,
            parts: Parts::default(),
            cancel: CancellationToken::new(),
            stop: AtomicU8::new(0),
            covered_by: OnceLock::new(),
            outputs,
            outlet: Outlet::default(),
        }
    }

    pub(crate) fn key(&self) -> RunKey {
        RunKey(self.item.log, self.item.attempt)
    }

    pub(crate) fn ticket(&self) -> Ticket {
        Ticket {
            due_ms: self.item.due_time,
            key: self.key(),
            task: self.item.task,
            priority: self.item.priority,
            exclusive: self.is_exclusive(),
            limited: self.item.wait_timeout_ms > 0,
        }
    }

    /// Whether it may not start beside another run of its task.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.item.block_strategy != BlockStrategy::Concurrent
    }

    /// When it may start, cluster µs.
    pub(crate) fn due_us(&self) -> i64 {
        self.item.due_time.saturating_mul(1_000)
    }

    /// When it may no longer start if its wait is limited, cluster ms.
    pub(crate) fn give_up_ms(&self) -> i64 {
        self.item.due_time.saturating_add(self.item.wait_timeout_ms)
    }

    /// Tells the handler and its blocking parts to stop. The first reason counts; returns whether
    /// it was this one.
    pub(crate) fn stop(&self, why: Stop) -> bool {
        let number = match why {
            Stop::Cancelled => 1,
            Stop::Abandoned => 2,
            Stop::TimedOut => 3,
            Stop::Covered(log) => {
                self.covered_by.get_or_init(|| log);
                4
            }
        };
        let first = self.stop.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire).is_ok();
        self.cancel.cancel();
        first
    }

    /// Adds a line to its output.
    pub(crate) fn log(&self, level: Level, text: &dyn Display) {
        self.outputs.log(&self.outlet, self.key(), level, text);
    }

    /// Nothing more is logged for it.
    pub(crate) fn end_output(&self) {
        self.outputs.end(&self.outlet);
    }

    /// Tells the blocking parts to stop after the handler has panicked.
    pub(crate) fn signal(&self) {
        self.cancel.cancel();
    }

    /// Whether anything has told it to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Resolves when [`Run::stop`] was called.
    pub(crate) async fn stopped(&self) -> Stop {
        self.cancel.cancelled().await;
        self.stop_reason().unwrap_or(Stop::Abandoned)
    }

    /// Why [`Run::stop`] was called, if it was.
    pub(crate) fn stop_reason(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Stop::Cancelled),
            2 => Some(Stop::Abandoned),
            3 => Some(Stop::TimedOut),
            _ => Some(Stop::Covered(self.covered_by.get().copied().unwrap_or_default())),
        }
    }
}
