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

use crate::clock::ClusterClock;
use crate::drain;
use crate::journal::{Journal, Pending};
use crate::lease::Lease;
use crate::member::Member;
use crate::node::{Identity, Node, Nodes};
use crate::output::{self, Limits, Outputs};
use crate::pending_results::{self, PendingResults};
use crate::runs::Runs;
use crate::sender::{SENDERS, send_results};
use crate::server::{Server, serve};
use crate::settings::Settings;
use crate::slot::{panic_message, start_slots};
use crate::verify::Verifier;
use crate::{BuildError, RunError};
use carillon_protocol::sign;
use rustls::ClientConfig;
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
    member: Arc<Member>,
    server: Arc<Server>,
    listener: TcpListener,
    journal: Journal,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor")
            .field("instance", &self.member.instance)
            .field("port", &self.port())
            .finish_non_exhaustive()
    }
}

/// A part that has ended without being asked to.
struct PartEnded {
    part: &'static str,
    reason: String,
}

impl Executor {
    pub(crate) fn assemble(
        settings: Settings,
        (nodes, tls): (Vec<Node>, ClientConfig),
        identity: Identity,
        listener: TcpListener,
        (journal, pending, journal_bytes_max): (Journal, Pending, usize),
        output: Limits,
    ) -> Result<Self, BuildError> {
        let environment = |reason: String| BuildError::Environment(reason);
        let instance = sign::random_hex::<16>().map_err(|e| environment(e.to_string()))?;
        let clock = Arc::new(ClusterClock::new());
        let nodes =
            Nodes::new(nodes, tls, identity.clone(), Arc::clone(&clock)).map_err(|e| environment(e.to_string()))?;
        let outputs = Arc::new(Outputs::new(output, journal.output(), Arc::clone(&clock)));
        let runs = Arc::new(Runs::new(Arc::clone(&clock), Arc::new(Lease::new()), outputs, &settings));
        let pending_results = Arc::new(PendingResults::new(pending, journal_bytes_max));
        runs.restore(pending_results.keys().into_iter());
        let member = Arc::new(Member::new(Arc::new(nodes), runs, pending_results, Arc::new(settings), instance));
        let server = Arc::new(Server { member: Arc::clone(&member), verifier: Verifier::new(identity, clock) });
        Ok(Self { member, server, listener, journal })
    }

    /// The port that the executor listens on.
    pub fn port(&self) -> u16 {
        self.member.settings.port
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
            () = shutdown => begin_drain.cancel(),
            result = &mut end => return result.unwrap_or_else(control_gone),
        }
        end.await.unwrap_or_else(control_gone)
    }

    /// The control thread: starts every part, waits for the end, drains.
    async fn control(self, handlers: Handle, drain: CancellationToken) -> Result<(), RunError> {
        let Self { member, server, listener, journal } = self;
        let (ended, mut ends) = mpsc::unbounded_channel();
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|source| RunError::Setup { action: "use the listening socket", source })?;
        let threads = start_threads(&member, journal, handlers, &ended)?;
        let mut tasks = vec![watched("server", &ended, serve(server, listener))];
        for _ in 0..SENDERS {
            let member = Arc::clone(&member);
            tasks.push(watched("sender", &ended, async move {
                send_results(&member).await;
            }));
        }
        let watching = Arc::clone(&member);
        tasks.push(watched("contact", &ended, async move {
            watching.watch_contact().await;
        }));
        let beating = Arc::clone(&member);
        let heartbeat = watched("heartbeat", &ended, async move { beating.run().await });

        let broken = tokio::select! {
            () = drain.cancelled() => None,
            end = ends.recv() => end,
        };
        if let Some(PartEnded { part, reason }) = &broken {
            tracing::error!(part, reason, "executor.part_stopped: draining");
        }
        drain::drain(&member, &heartbeat).await;
        for task in tasks {
            task.abort();
        }
        drain::stop_threads(&member, threads).await;
        match broken.or_else(|| ends.try_recv().ok()) {
            Some(PartEnded { part, reason }) => Err(RunError::PartStopped { part, reason }),
            None => Ok(()),
        }
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
    let recorder = watched_thread("carillon-journal", ended, move || {
        pending_results::record(journal, &runs, &pending_results);
    });
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

/// A task of the control runtime that is not supposed to end before it is aborted.
fn watched(
    part: &'static str,
    ended: &mpsc::UnboundedSender<PartEnded>,
    body: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::AbortHandle {
    let ended = ended.clone();
    let task = tokio::spawn(body);
    let abort = task.abort_handle();
    tokio::spawn(async move {
        match task.await {
            Ok(()) => report(&ended, part, "returned".to_owned()),
            Err(error) if error.is_panic() => {
                report(&ended, part, panic_message(&*error.into_panic()));
            }
            // Aborted by the shutdown.
            Err(_) => {}
        }
    });
    abort
}

fn report(ended: &mpsc::UnboundedSender<PartEnded>, part: &'static str, reason: String) {
    // Sending fails only when the executor has already ended.
    let _ = ended.send(PartEnded { part, reason });
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
