//! An executor's parts, put together over its surroundings, and their supervision. Production and the
//! simulation differ in what the parts run on, not in what they do.

use crate::clock::ClusterClock;
use crate::drain;
use crate::journal::{Journal, Pending};
use crate::lease::Lease;
use crate::member::Member;
use crate::node::{Identity, Node, Nodes};
use crate::output::{Limits, Outputs};
use crate::pending_results::PendingResults;
use crate::runs::Runs;
use crate::sender::{SENDERS, send_results};
use crate::server::Server;
use crate::settings::Settings;
use crate::slot::panic_message;
use crate::spawn::Spawn;
use crate::surroundings::Surroundings;
use crate::verify::Verifier;
use crate::{BuildError, RunError};
use futures_util::FutureExt as _;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// An executor's parts.
pub(crate) struct Assembled {
    pub(crate) member: Arc<Member>,
    pub(crate) server: Arc<Server>,
    pub(crate) journal: Journal,
}

/// A part that has ended without being asked to.
pub(crate) struct PartEnded {
    part: &'static str,
    reason: String,
}

/// Both ends of what the parts report to.
pub(crate) type Ends = (UnboundedSender<PartEnded>, UnboundedReceiver<PartEnded>);

impl Assembled {
    pub(crate) fn new(
        settings: Settings,
        (nodes, identity): (Vec<Node>, Identity),
        (journal, pending): (Journal, Pending),
        output: Limits,
        surroundings: Surroundings,
    ) -> Result<Self, BuildError> {
        let Surroundings { time, random, carrier, .. } = surroundings;
        let instance = random.hex().map_err(|e| BuildError::Environment(e.to_string()))?;
        let clock = Arc::new(ClusterClock::over(time));
        let nodes = Nodes::new(nodes, carrier, identity.clone(), Arc::clone(&clock), random);
        let outputs = Arc::new(Outputs::new(output, journal.output(), Arc::clone(&clock)));
        let runs = Arc::new(Runs::new(Arc::clone(&clock), Arc::new(Lease::new()), outputs, &settings));
        let pending_results = Arc::new(PendingResults::new(pending, settings.journal_bytes_max));
        runs.restore(pending_results.keys().into_iter());
        let member = Member::new(
            Arc::new(nodes),
            runs,
            pending_results,
            Arc::new(settings),
            instance,
            journal.acknowledged.at(),
        );
        let member = Arc::new(member);
        let server = Arc::new(Server { member: Arc::clone(&member), verifier: Verifier::new(identity, clock) });
        Ok(Self { member, server, journal })
    }

    /// Starts every part that is a task, waits for the end, drains. `have_ended`: whether the timer, the
    /// recorder and what else runs beside the tasks have, once they were told to.
    pub(crate) async fn supervise(
        member: Arc<Member>,
        spawn: &impl Spawn,
        serving: impl Future<Output = ()> + Send + 'static,
        (ended, mut ends): Ends,
        drain: CancellationToken,
        have_ended: impl Fn() -> bool,
    ) -> Result<(), RunError> {
        let mut tasks = vec![watched(spawn, "server", &ended, serving)];
        for _ in 0..SENDERS {
            let member = Arc::clone(&member);
            tasks.push(watched(spawn, "sender", &ended, async move {
                send_results(&member).await;
            }));
        }
        let watching = Arc::clone(&member);
        tasks.push(watched(spawn, "contact", &ended, async move {
            watching.watch_contact().await;
        }));
        let beating = Arc::clone(&member);
        let heartbeat = watched(spawn, "heartbeat", &ended, async move { beating.run().await });

        let broken = tokio::select! {
            biased;
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
        drain::stop_threads(&member, have_ended).await;
        match broken.or_else(|| ends.try_recv().ok()) {
            Some(PartEnded { part, reason }) => Err(RunError::PartStopped { part, reason }),
            None => Ok(()),
        }
    }
}

/// A task that is not supposed to end before it is aborted.
pub(crate) fn watched(
    spawn: &impl Spawn,
    part: &'static str,
    ended: &UnboundedSender<PartEnded>,
    body: impl Future<Output = ()> + Send + 'static,
) -> AbortHandle {
    let ended = ended.clone();
    spawn.spawn(async move {
        let reason = match AssertUnwindSafe(body).catch_unwind().await {
            Ok(()) => "returned".to_owned(),
            Err(panic) => panic_message(&*panic),
        };
        report(&ended, part, reason);
    })
}

pub(crate) fn report(ended: &UnboundedSender<PartEnded>, part: &'static str, reason: String) {
    // Sending fails only when the executor has already ended.
    let _ = ended.send(PartEnded { part, reason });
}
