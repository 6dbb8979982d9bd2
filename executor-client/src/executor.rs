//! The executor: its parts, the threads they run on, and their supervision.
//!
//! Handlers run on the caller's tokio runtime. Everything else runs on threads of its own, so
//! a handler that blocks a worker delays other handlers but never a heartbeat:
//!
//! | thread | does |
//! | --- | --- |
//! | `carillon-control` | server, heartbeat, sending results, drain |
//! | `carillon-timer` | waits for due times |
//! | `carillon-journal` | writes results to disk |
//! | `carillon-output` | writes log output of runs to disk |

use crate::RunError;
use crate::assembled::{Assembled, PartEnded, report};
use crate::drain;
use crate::journal::Journal;
use crate::member::Member;
use crate::output;
use crate::pending_results::Recorder;
use crate::server::serve;
use crate::slot::{panic_message, start_slots};
use std::future::Future;
use std::net::TcpListener;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// An executor that is ready to run.
pub struct Executor {
    assembled: Assembled,
    listener: TcpListener,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor")
            .field("instance", &self.assembled.member.instance)
            .field("port", &self.port())
            .finish_non_exhaustive()
    }
}

impl Executor {
    pub(crate) fn new(assembled: Assembled, listener: TcpListener) -> Self {
        Self { assembled, listener }
    }

    /// The port that the executor listens on.
    pub fn port(&self) -> u16 {
        self.assembled.member.settings.port
    }

    /// Runs until the process gets SIGTERM or SIGINT, then drains.
    ///
    /// # Errors
    /// As [`Executor::run_until`].
    pub async fn run(self) -> Result<(), RunError> {
        let signal = shutdown_signal().map_err(|source| RunError::Setup { action: "listen for signals", source })?;
        self.run_until(signal).await
    }

    /// Runs until `shutdown` resolves, then drains: refuses new runs, gives back runs that have
    /// not started, waits for running ones (at most the drain time-out), delivers the results and
    /// unregisters. Must be called on a tokio runtime with time enabled; handlers run there.
    ///
    /// Dropping the future drains as well, in the background.
    ///
    /// # Errors
    /// When threads cannot be started, or when a part of the executor stops unexpectedly.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let handlers = Handle::current();
        let drain = CancellationToken::new();
        let (ended, mut end) = oneshot::channel();
        let control = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|source| RunError::Setup { action: "build the control runtime", source })?;
        let begin_drain = drain.clone();
        std::thread::Builder::new()
            .name("carillon-control".to_owned())
            .spawn(move || {
                let result = control.block_on(self.control(handlers, drain));
                // Connections that a node keeps open are cut here.
                control.shutdown_background();
                // The caller may have dropped its future; then no one receives the result.
                let _ = ended.send(result);
            })
            .map_err(|source| RunError::Setup { action: "start the control thread", source })?;
        let _drain_when_dropped = begin_drain.clone().drop_guard();
        let control_gone = |_| Err(RunError::PartStopped { part: "control", reason: "panicked".to_owned() });
        tokio::select! {
            biased;
            () = shutdown => begin_drain.cancel(),
            result = &mut end => return result.unwrap_or_else(control_gone),
        }
        end.await.unwrap_or_else(control_gone)
    }

    /// The control thread: starts the threads and every part, waits for the end, drains.
    async fn control(self, handlers: Handle, drain: CancellationToken) -> Result<(), RunError> {
        let Self { assembled: Assembled { member, server, journal }, listener } = self;
        let (ended, ends) = mpsc::unbounded_channel();
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|source| RunError::Setup { action: "use the listening socket", source })?;
        let threads = start_threads(&member, journal, handlers, &ended)?;
        let have_ended = || threads.iter().all(JoinHandle::is_finished);
        Assembled::supervise(member, &Handle::current(), serve(server, listener), (ended, ends), drain, have_ended)
            .await
    }
}

/// Starts the timer, the journal and the output threads; if one cannot be started, all are stopped.
fn start_threads(
    member: &Arc<Member>,
    journal: Journal,
    handlers: Handle,
    ended: &mpsc::UnboundedSender<PartEnded>,
) -> Result<Vec<JoinHandle<()>>, RunError> {
    let timing = Arc::clone(&member.runs);
    let timer = watched_thread("carillon-timer", ended, move || {
        timing.timer.run(&timing.clock, |due, now_us| {
            timing.release(due, now_us, |slots| start_slots(&timing, &handlers, slots))
        });
    });
    let (runs, pending_results) = (Arc::clone(&member.runs), Arc::clone(&member.pending_results));
    let acknowledged_at = Arc::clone(&member.acknowledged_at);
    let recorder = Recorder { journal, runs, pending_results, acknowledged_at };
    let recorder = watched_thread("carillon-journal", ended, move || recorder.run());
    let outputs = Arc::clone(&member.runs.outputs);
    let writer = watched_thread("carillon-output", ended, move || output::write(&outputs));
    let threads: Result<Vec<_>, _> = [timer, recorder, writer].into_iter().collect();
    if threads.is_err() {
        drain::tell_threads_to_stop(member);
    }
    threads
}

/// A thread whose panic ends the executor.
fn watched_thread(
    part: &'static str,
    ended: &mpsc::UnboundedSender<PartEnded>,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, RunError> {
    let ended = ended.clone();
    std::thread::Builder::new()
        .name(part.to_owned())
        .spawn(move || {
            if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(body)) {
                report(&ended, part, panic_message(&*panic));
            }
        })
        .map_err(|source| RunError::Setup { action: "start a thread", source })
}

#[cfg(unix)]
fn shutdown_signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("signal.sigterm"),
            _ = interrupt.recv() => tracing::info!("signal.sigint"),
        }
    })
}

#[cfg(not(unix))]
fn shutdown_signal() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::error!(%error, "signal.not_available");
            std::future::pending::<()>().await;
        }
    })
}
