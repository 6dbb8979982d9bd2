//! What stands in for plain executors: towards the engine it is the way to them, towards them an admin of xxl-job.

use super::log_pages::Cursor;
use super::reports::{Report, Reports};
use super::run_door::{Hold, PreparedRun, RunDoor};
use super::sent_runs::{SentRun, SentRuns};
use super::stops::Stops;
use super::{Address, JobNumbers, Scripts};
use crate::auth::{AddressRule, KeyRing};
use crate::cluster::Clock;
use crate::dispatch::{Carrier, Presence, SendError, TaskCache, Transport, Uncarried};
use crate::domain::choice::Enumerated as _;
use crate::domain::xxljob::said::{self, Load, Logged, Said};
use crate::domain::xxljob::wire::{
    BEAT_BODY, BEAT_PATH, Block, IDLE_BEAT_PATH, JobBody, LOG_PATH, LogBody, RUN_PATH, Reply, RunBody, TOKEN_HEADER,
    bytes, timeout_s,
};
use crate::domain::xxljob::{GlueType, Library, Script};
use crate::domain::{Executor, IdSource, Owner, TaskId};
use crate::store::{ExecutorEnd, KeyStore, OutcomeStore, PlanStore};
use async_trait::async_trait;
use carillon_protocol::exchange::Request;
use carillon_protocol::{
    Cancel, CancelAck, CancelOutcome, Code, Dispatch, DispatchAck, DispatchItem, DispatchOutcome, OutputPage,
    OutputState, Probe, ProbeAck, ReadOutput, RunKey, RunResult, RunStatus,
};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// A short answer, bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A page of a log, bytes.
const LOG_BYTES_MAX: usize = 8 * 1024 * 1024;

/// An executor that does not answer by then is passed over by routings that ask first.
const ASK_MAX: Duration = Duration::from_millis(500);

/// Stands in for plain executors.
pub struct StandIn {
    pub(super) parts: StandInParts,
    pub(super) stops: Stops,
}

/// The version that a run is has been left behind by thirty others, or its task is deleted.
struct ScriptGone;

/// What it works with.
pub struct StandInParts {
    /// Sends runs on their instant.
    pub door: Arc<dyn RunDoor>,
    /// Carries everything else.
    pub carrier: Arc<dyn Carrier>,
    /// Tokens.
    pub keys: Arc<KeyRing>,
    /// Where they are read.
    pub key_store: Arc<dyn KeyStore>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// How executors know tasks and attempts.
    pub numbers: JobNumbers,
    /// What runs are that call no handler.
    pub scripts: Scripts,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// What has been sent.
    pub sent: SentRuns,
    /// What it has to say of runs.
    pub reports: Arc<Reports>,
    /// Rows of runs.
    pub rows: Arc<dyn OutcomeStore>,
    /// Definitions.
    pub tasks: TaskCache<dyn PlanStore>,
}

impl StandIn {
    /// Over its parts.
    pub fn new(parts: StandInParts) -> Self {
        Self { parts, stops: Stops::default() }
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.parts.clock.now_ms()
    }

    /// The token that the executor announced itself with; without it nothing is sent there.
    async fn token(&self, owner: Owner, key_id: &str) -> Result<String, SendError> {
        let find = |keys: &KeyRing| keys.find_token(key_id, self.now_ms()).filter(|key| key.owner == owner);
        let found = self.parts.keys.find_soon(&*self.parts.key_store, find).await;
        found.map(|key| key.key.secret.clone()).ok_or_else(|| {
            SendError::NotDelivered(format!("its token {key_id} has ended; it must register with a valid one"))
        })
    }

    /// Sends something other than a run, and reads the reply.
    pub(super) async fn call(
        &self,
        (owner, key_id, address): Place<'_>,
        path: &str,
        body: Vec<u8>,
        bytes_max: usize,
    ) -> Result<Reply, SendError> {
        self.parts.addresses.check_with_path(address).map_err(SendError::NotDelivered)?;
        let token = self.token(owner, key_id).await?;
        let request = Request { path: path.to_owned(), headers: vec![(TOKEN_HEADER, token)], body: body.into() };
        let answer = self.parts.carrier.carry(address, request, bytes_max).await?;
        Reply::read(&answer.body).map_err(|error| {
            SendError::Unknown(format!("its reply (status {}) cannot be read: {error}", answer.status))
        })
    }

    async fn send(&self, to: &Executor, item: &DispatchItem, script: i64) -> Result<DispatchOutcome, SendError> {
        if self.now_ms() >= item.accept_until {
            return Ok(DispatchOutcome::TooLate);
        }
        let Some(block) = Block::of(item.block_strategy) else { return Ok(DispatchOutcome::Other) };
        let owner = to.owner();
        let key = RunKey(item.log, item.attempt);
        if self.parts.sent.find(key).is_some() {
            // It may have arrived: a second message would be a second run. Whether it has, its callback says, or asking.
            return Ok(DispatchOutcome::Duplicate);
        }
        if Library::of(&to.version).shares_handlers()
            && let Some(meets) = self.meets(to, item).await?
        {
            return self.refused(to, item, meets.said(item.block_strategy), meets.to_string());
        }
        let address = Address::parse(&to.address).map_err(SendError::NotDelivered)?;
        let token = self.token(owner, &to.key_id).await?;
        let unnumbered =
            |error: crate::store::StoreError| SendError::NotDelivered(format!("it has no number yet: {error}"));
        let job_id = self.parts.numbers.of_task(owner, TaskId(item.task)).await.map_err(unnumbered)?;
        let log_id = self.parts.numbers.of_attempt(owner, key, self.now_ms()).await.map_err(unnumbered)?;
        let Ok(script) = self.script(owner, item, script).await? else { return Ok(DispatchOutcome::Other) };
        // Until it is answered.
        let _room = match &script {
            Some(script) => self.parts.scripts.room(script).await,
            None => None,
        };
        let hold = Hold::default();
        let run = SentRun { executor_id: to.id, hold: hold.clone() };
        if !self.parts.sent.begin(key, run, self.parts.clock.now_us()) {
            return Ok(DispatchOutcome::Duplicate);
        }
        let script = script.as_deref();
        let glue_type = script.map_or(GlueType::Bean, |script| script.glue_type).word();
        let body = RunBody {
            job_id,
            executor_handler: &item.handler,
            executor_params: &item.params,
            executor_block_strategy: block,
            executor_timeout: timeout_s(item.timeout_ms),
            log_id,
            log_date_time: IdSource::made_at(item.log),
            glue_type: &glue_type,
            glue_source: script.map_or("", |script| &script.source),
            glue_updatetime: script.map_or(0, |script| script.updated_at),
            broadcast_index: item.shard_index,
            broadcast_total: item.shard_total,
        };
        let headers = vec![(TOKEN_HEADER, token)];
        let request = Request { path: RUN_PATH.to_owned(), headers, body: bytes(&body).into() };
        let run = PreparedRun { due_ms: item.due_time, accept_until_ms: item.accept_until, request, hold };
        match self.parts.door.run(&address, run).await {
            Ok(reply) => self.read(to, item, &reply),
            Err(Uncarried::Unknown(detail)) => Err(SendError::Unknown(detail)),
            Err(Uncarried::NotListening(detail) | Uncarried::NotDelivered(detail)) => {
                self.parts.sent.end(key);
                Err(SendError::NotDelivered(detail))
            }
        }
    }

    /// The script that a run is; none if it is a call of a handler. No executor can be sent one that is no longer there.
    async fn script(
        &self,
        owner: Owner,
        item: &DispatchItem,
        version: i64,
    ) -> Result<Result<Option<Arc<Script>>, ScriptGone>, SendError> {
        if version == 0 {
            return Ok(Ok(None));
        }
        let found = self.parts.scripts.of(owner, TaskId(item.task), version).await;
        let found = found.map_err(|error| SendError::NotDelivered(format!("its script cannot be read: {error}")))?;
        if found.is_none() {
            tracing::warn!(log = item.log, task = item.task, version, "the script of a run is no longer there");
        }
        Ok(found.map(Some).ok_or(ScriptGone))
    }

    /// What a reply to `/run` means.
    fn read(&self, to: &Executor, item: &DispatchItem, reply: &[u8]) -> Result<DispatchOutcome, SendError> {
        let reply =
            Reply::read(reply).map_err(|error| SendError::Unknown(format!("its reply cannot be read: {error}")))?;
        if reply.is_ok() {
            return Ok(DispatchOutcome::Accepted);
        }
        let refused = said::refusal(item.block_strategy, &reply.msg);
        if refused == Said::Queued {
            return Ok(DispatchOutcome::Duplicate);
        }
        self.refused(to, item, refused, reply.msg)
    }

    /// What becomes of a run that the executor does not take.
    fn refused(
        &self,
        to: &Executor,
        item: &DispatchItem,
        refused: Said,
        text: String,
    ) -> Result<DispatchOutcome, SendError> {
        let key = RunKey(item.log, item.attempt);
        let started_at = self.parts.sent.sent_at(key).unwrap_or(0);
        self.parts.sent.end(key);
        tracing::debug!(log = item.log, executor = to.id.0, ?refused, text, "run refused");
        match refused {
            Said::HandlerMissing => Ok(DispatchOutcome::HandlerMissing),
            Said::Busy => Ok(DispatchOutcome::Busy),
            Said::Blocked => {
                let result = RunResult {
                    log: item.log,
                    attempt: item.attempt,
                    status: RunStatus::Blocked,
                    message: text,
                    output: String::new(),
                    started_at,
                    finished_at: self.now_ms(),
                    due_time: item.due_time,
                };
                self.parts.reports.say(Report { owner: to.owner(), executor_id: to.id, result });
                Ok(DispatchOutcome::Accepted)
            }
            Said::WrongToken => Err(SendError::Refused(Code::Forbidden, "it has another access token".to_owned())),
            Said::Queued | Said::Other => Ok(DispatchOutcome::Other),
        }
    }

    /// Takes back what has not left; else has the run's task killed there, if it is the one that goes on.
    async fn stop(&self, to: &Executor, key: RunKey, wish: (bool, bool)) -> CancelOutcome {
        let (unstarted_only, again) = wish;
        let sent = self.parts.sent.find(key).filter(|run| run.executor_id == to.id);
        if let Some(run) = &sent
            && run.hold.withdraw()
        {
            self.parts.sent.end(key);
            return CancelOutcome::Dropped;
        }
        if unstarted_only {
            return CancelOutcome::Running;
        }
        // It is told again until it has ended.
        self.kill(to, key, again).await.unwrap_or_else(|error| {
            tracing::debug!(log = key.0, executor = to.id.0, %error, "a run of a plain executor not stopped yet");
            CancelOutcome::Stopping
        })
    }

    async fn is_busy(&self, to: &Executor, task: i64) -> Result<bool, SendError> {
        match self.load(place_of(to), TaskId(task)).await {
            Load::Busy => Ok(true),
            Load::Idle => Ok(false),
            Load::Unknown => Err(SendError::Unknown("it does not say whether it is busy".to_owned())),
        }
    }
}

/// Where an executor is, as messages to it are addressed.
pub(super) fn place_of(executor: &Executor) -> Place<'_> {
    (executor.owner(), &executor.key_id, &executor.address)
}

#[async_trait]
impl Transport for StandIn {
    async fn dispatch(&self, to: &Executor, message: &Dispatch, scripts: &[i64]) -> Result<DispatchAck, SendError> {
        let items = message.items.iter().zip(scripts);
        let sent = join_all(items.map(|(item, script)| self.send(to, item, *script))).await;
        let outcomes: Result<Vec<DispatchOutcome>, SendError> = sent.into_iter().collect();
        Ok(DispatchAck { outcomes: outcomes? })
    }

    async fn cancel(&self, to: &Executor, message: &Cancel, again: bool) -> Result<CancelAck, SendError> {
        let wish = (message.unstarted_only, again);
        let outcomes = join_all(message.runs.iter().map(|key| self.stop(to, *key, wish))).await;
        Ok(CancelAck { outcomes })
    }

    async fn ask(&self, to: &Executor, message: &Probe) -> Result<ProbeAck, SendError> {
        let asked = async {
            let mut busy = Vec::new();
            if message.tasks.is_empty() {
                self.call(place_of(to), BEAT_PATH, BEAT_BODY.to_vec(), ANSWER_BYTES_MAX).await?;
            }
            for (task, is_busy) in
                message.tasks.iter().zip(join_all(message.tasks.iter().map(|task| self.is_busy(to, *task))).await)
            {
                if is_busy? {
                    busy.push(*task);
                }
            }
            Ok(ProbeAck { held: 0, running: busy.len(), capacity: u32::MAX, busy })
        };
        match tokio::time::timeout(ASK_MAX, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(SendError::Unknown(format!("no answer within {ASK_MAX:?}"))),
        }
    }

    async fn read_output(&self, to: &Executor, message: &ReadOutput) -> Result<OutputPage, SendError> {
        let cursor = Cursor::read(message.from);
        let key = RunKey(message.log, message.attempt);
        let number = self.parts.numbers.of_attempt(to.owner(), key, self.now_ms()).await;
        let log_id = number.map_err(|error| SendError::NotDelivered(error.to_string()))?;
        let log_date_tim = IdSource::made_at(message.log);
        let from_line_num = cursor.line - 1 + Library::of(&to.version).first_line();
        let body = bytes(&LogBody { log_date_tim, log_id, from_line_num });
        let reply = self.call(place_of(to), LOG_PATH, body, LOG_BYTES_MAX).await?;
        match said::logged(&reply) {
            Logged::Page(page) => Ok(cursor.page(page, message.limit as usize)),
            Logged::Nothing | Logged::NotKept => Ok(cursor.nothing(OutputState::Unknown)),
            Logged::Unknown => Err(SendError::Unknown(format!("it answered {} {}", reply.code, reply.msg))),
        }
    }

    async fn probe(&self, silent: &ExecutorEnd) -> Presence {
        let place = (silent.owner, silent.key_id.as_str(), silent.address.as_str());
        if self.parts.addresses.check_with_path(place.2).is_err() {
            return Presence::Unknown;
        }
        let request = Request { path: BEAT_PATH.to_owned(), headers: Vec::new(), body: BEAT_BODY.into() };
        match self.parts.carrier.carry(place.2, request, ANSWER_BYTES_MAX).await {
            Err(Uncarried::NotListening(_)) => Presence::NotListening,
            _ => Presence::Unknown,
        }
    }
}

/// Whose an executor is, its token's id, and where it listens.
pub(super) type Place<'a> = (Owner, &'a str, &'a str);

impl StandIn {
    /// What the executor says of its work on a task.
    pub(super) async fn load(&self, place: Place<'_>, task: TaskId) -> Load {
        let Ok(job_id) = self.parts.numbers.of_task(place.0, task).await else { return Load::Unknown };
        let asked = self.call(place, IDLE_BEAT_PATH, bytes(&JobBody { job_id }), ANSWER_BYTES_MAX).await;
        asked.map_or(Load::Unknown, |reply| said::load(&reply))
    }

    /// Whether the executor says that it has no log of a run: then it has not started.
    pub(super) async fn has_no_log(&self, place: Place<'_>, owner: Owner, key: RunKey) -> bool {
        let Ok(log_id) = self.parts.numbers.of_attempt(owner, key, self.now_ms()).await else { return false };
        let body = LogBody { log_date_tim: IdSource::made_at(key.0), log_id, from_line_num: 1 };
        let asked = self.call(place, LOG_PATH, bytes(&body), LOG_BYTES_MAX).await;
        asked.is_ok_and(|reply| said::logged(&reply) == Logged::Nothing)
    }

    /// Whether a process that speaks the protocol answers there.
    pub(super) async fn is_there(&self, place: Place<'_>) -> bool {
        self.call(place, BEAT_PATH, BEAT_BODY.to_vec(), ANSWER_BYTES_MAX).await.is_ok()
    }
}
