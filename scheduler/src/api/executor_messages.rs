//! What a node does for each message of an executor, once it is proved whose it is.

use super::wire_limits::WireLimits;
use crate::auth::AddressRule;
use crate::cluster::APP_RUNS_MAX;
use crate::domain::task_log::Status;
use crate::domain::{ExecutorId, LogId, Owner, Reason, Run, Transition};
use crate::engine::Engine;
use crate::store::{DispatchedRun, Registration, Signer, Store, StoreError, StoreErrorKind};
use crate::workers::RunEndSignal;
use carillon_protocol::{
    Code, EXECUTOR_RUNS_MAX, ExecutorSettings, Heartbeat, HeartbeatAck, RESULT_ITEMS_MAX, Register, Registered,
    Results, ResultsAck, RunKey, Unregister, Unregistered,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Handlers, tags and characters of a name that one executor may have.
const HANDLERS_MAX: usize = 2_000;
const TAGS_MAX: usize = 64;
pub(super) const NAME_CHARS_MAX: usize = 128;

/// A heartbeat that is not committed by then is answered `StoreUnavailable`: executors wait for
/// no more than a few seconds, and the answer keeps them going. It is committed all the same, and the next answer says so.
const HEARTBEAT_COMMIT_MAX: Duration = Duration::from_millis(1_500);

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorMessage {
    /// [`Register`].
    Register,
    /// [`Heartbeat`].
    Heartbeat,
    /// [`Unregister`].
    Unregister,
    /// [`Results`].
    Results,
}

impl ExecutorMessage {
    /// All of them, with the end of their path.
    pub const ALL: [(&'static str, Self); 4] = [
        ("/executors/register", Self::Register),
        ("/executors/heartbeat", Self::Heartbeat),
        ("/executors/unregister", Self::Unregister),
        ("/results", Self::Results),
    ];
}

/// A refusal of an operation: code and text, and data where the caller needs some anyway.
pub(crate) struct Refused {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Refused {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        if error.kind() == StoreErrorKind::Outdated {
            return Self::new(Code::Replayed, error.to_string());
        }
        tracing::error!(%error, "executor request failed");
        if error.kind() == StoreErrorKind::Conflict {
            return Self::new(Code::Conflict, error.to_string());
        }
        if error.is_temporary() {
            Self::new(Code::StoreUnavailable, "the database cannot be reached right now")
        } else {
            Self::new(Code::Internal, "internal error; see the node's log")
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Refused>;

/// Carries out what executors ask.
pub struct ExecutorMessages<S: Store + ?Sized> {
    /// The engine.
    pub engine: Arc<Engine<S>>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// What executors receive at registration.
    pub settings: ExecutorSettings,
    /// Told when runs have ended.
    pub ended: Arc<RunEndSignal>,
    /// Wakes the urgent loader.
    pub wake: Arc<Notify>,
}

impl<S: Store + 'static> ExecutorMessages<S> {
    /// Reads the message and answers it.
    pub(super) async fn handle(
        &self,
        message: ExecutorMessage,
        signer: &Signer<'_>,
        body: &[u8],
        limits: &WireLimits,
    ) -> Outcome<Value> {
        match message {
            ExecutorMessage::Register => written(&self.register(signer, &read(body)?, limits).await?),
            ExecutorMessage::Heartbeat => written(&self.heartbeat(signer, read(body)?).await?),
            ExecutorMessage::Unregister => written(&self.unregister(signer, read(body)?).await?),
            ExecutorMessage::Results => written(&self.results(signer.owner, read(body)?).await?),
        }
    }

    async fn register(&self, signer: &Signer<'_>, message: &Register, limits: &WireLimits) -> Outcome<Registered> {
        let engine = &self.engine;
        check_registration(message, &self.addresses)?;
        let crowd = engine.registry.crowd(signer.owner.tenant_id, signer.owner.app_id, &message.address);
        let refused = |text: String| Refused::new(Code::TooMany, text);
        limits.check_registration(signer.owner.app_id, crowd).map_err(refused)?;
        let since = engine.executors_alive_since();
        let Registration { executor_id, left_out } = engine.executors.register(signer, message, since).await?;
        let cluster_time_us = engine.clock.now_us();
        Ok(Registered { executor_id: executor_id.0, cluster_time_us, settings: self.settings, left_out })
    }

    async fn heartbeat(&self, signer: &Signer<'_>, message: Heartbeat) -> Outcome<HeartbeatAck> {
        let engine = &self.engine;
        let runs = check_runs([&message.held, &message.running, &message.unacknowledged])?;
        let Some(room) = engine.registry.room(signer.owner.app_id, runs) else {
            let detail = format!("executors of the app name more than {APP_RUNS_MAX} runs, the most that a node keeps");
            return Err(Refused::new(Code::TooMany, detail));
        };
        let (executor_id, instance) = (ExecutorId(message.executor_id), message.instance.clone());
        let ack = |cancel, written_us| HeartbeatAck { cluster_time_us: engine.clock.now_us(), cancel, written_us };
        // The reply keeps the executor's clock going while the database is away. A node that has been
        // cut off for long must not do so: the other nodes may have given the executor's runs away.
        let with_time = |refused: Refused| {
            let code = if engine.membership.in_touch() { refused.code } else { Code::Internal };
            let written_us = engine.executors.written_us(signer.owner, executor_id, &instance);
            Refused { code, data: serde_json::to_value(ack(Vec::new(), written_us)).ok(), ..refused }
        };
        let commit = tokio::time::timeout(HEARTBEAT_COMMIT_MAX, engine.executors.heartbeat(signer, message, room));
        let known = match commit.await {
            Ok(done) => done.map_err(|error| with_time(Refused::from(error)))?,
            Err(_) => return Err(with_time(Refused::new(Code::StoreUnavailable, "the database does not answer"))),
        };
        match known {
            Some(cancel) => Ok(ack(cancel, None)),
            None => Err(Refused::new(Code::RegisterAgain, "this executor is not known (any more)")),
        }
    }

    async fn unregister(&self, signer: &Signer<'_>, message: Unregister) -> Outcome<Unregistered> {
        let engine = &self.engine;
        check_runs([&message.held, &message.running])?;
        // Removed from routing first, so that it gets no new runs while its runs are returned.
        let left = message.running.is_empty();
        let since = engine.executors_alive_since();
        engine.executors.retire(signer, ExecutorId(message.executor_id), left, since).await?;
        let returned = self.give_back(signer.owner, ExecutorId(message.executor_id), &message.held).await?;
        self.wake.notify_one();
        Ok(Unregistered { returned })
    }

    async fn results(&self, owner: Owner, message: Results) -> Outcome<ResultsAck> {
        if message.results.len() > RESULT_ITEMS_MAX {
            return Err(Refused::new(Code::BadRequest, format!("at most {RESULT_ITEMS_MAX} results at a time")));
        }
        let verdicts = self.engine.ingestion.apply(owner, ExecutorId(message.executor_id), &message.results).await?;
        self.ended.notify(&self.engine);
        Ok(ResultsAck { verdicts })
    }

    /// Returns runs that were never started to all nodes, with their due times.
    async fn give_back(&self, owner: Owner, executor_id: ExecutorId, held: &[RunKey]) -> Outcome<u64> {
        let now = self.engine.clock.now_ms();
        let mut returned = 0;
        for batch in held.chunks(crate::store::BATCH_MAX) {
            let keys: HashSet<RunKey> = batch.iter().copied().collect();
            let ids: Vec<LogId> = batch.iter().map(|key| LogId(key.0)).collect();
            let rows = self.engine.store.runs(Some(owner), &ids).await?;
            let current = |run: &Run, executor: ExecutorId| {
                run.status == Status::Dispatched
                    && executor == executor_id
                    && keys.contains(&RunKey(run.id.0, run.attempt))
            };
            let held = rows.iter().filter(|row| current(&row.run, row.run.executor_id));
            let (revoked, held): (Vec<&DispatchedRun>, Vec<&DispatchedRun>) =
                held.partition(|row| row.stopping.is_revocation());
            let changes: Vec<Transition> = held
                .into_iter()
                .map(|row| {
                    if row.is_stopping() {
                        // A run that was to be stopped has never started.
                        let change = Transition::of(&row.run, Status::Cancelled, row.stopping);
                        return Transition { finished_at: now, ..change };
                    }
                    Transition::of(&row.run, Status::Retry, Reason::GivenBack)
                })
                .collect();
            returned += self.engine.store.change(&changes).await?.len() as u64;
            let revoked: Vec<Run> = revoked.into_iter().map(|row| row.run.clone()).collect();
            returned += self.engine.canceller.settle_unstarted(&revoked).await?.len() as u64;
        }
        Ok(returned)
    }
}

pub(crate) fn check_registration(message: &Register, addresses: &AddressRule) -> Outcome<()> {
    let refuse = |detail: String| Err(Refused::new(Code::BadRequest, detail));
    if let Err(detail) = addresses.check(&message.address) {
        return refuse(detail);
    }
    let fits = |name: &str| !name.is_empty() && name.chars().count() <= NAME_CHARS_MAX && !name.contains('\0');
    if !fits(&message.instance) || message.address.len() > NAME_CHARS_MAX || message.host_name.len() > NAME_CHARS_MAX {
        return refuse(format!("instance, address and host_name must have 1 to {NAME_CHARS_MAX} characters"));
    }
    if message.version.chars().count() > NAME_CHARS_MAX {
        return refuse(format!("version must have at most {NAME_CHARS_MAX} characters"));
    }
    if [&message.address, &message.host_name, &message.version].iter().any(|text| text.contains('\0')) {
        return refuse("address, host_name and version must not have a NUL character".to_owned());
    }
    if message.handlers.len() > HANDLERS_MAX || message.tags.len() > TAGS_MAX {
        return refuse(format!("at most {HANDLERS_MAX} handlers and {TAGS_MAX} tags"));
    }
    let bad = message.handlers.iter().map(|handler| &handler.name).chain(&message.tags).find(|name| !fits(name));
    if let Some(name) = bad {
        return refuse(format!("handler or tag `{name}` must have 1 to {NAME_CHARS_MAX} characters"));
    }
    if message.description.chars().count() > 1_000 {
        return refuse("description must have at most 1000 characters".to_owned());
    }
    Ok(())
}

/// How many runs a message names. A node keeps what each executor names until its next heartbeat: that must have a bound.
fn check_runs<const N: usize>(lists: [&[RunKey]; N]) -> Outcome<usize> {
    let count: usize = lists.iter().map(|list| list.len()).sum();
    if count > EXECUTOR_RUNS_MAX {
        return Err(Refused::new(
            Code::BadRequest,
            format!("{count} runs; at most {EXECUTOR_RUNS_MAX} in one message"),
        ));
    }
    Ok(count)
}

fn read<Q: DeserializeOwned>(body: &[u8]) -> Outcome<Q> {
    let unreadable = |error| format!("the body does not have the expected form: {error}");
    serde_json::from_slice(body).map_err(|error| Refused::new(Code::BadRequest, unreadable(error)))
}

fn written<A: Serialize>(answer: &A) -> Outcome<Value> {
    serde_json::to_value(answer).map_err(|_| Refused::new(Code::Internal, "the reply cannot be written"))
}
