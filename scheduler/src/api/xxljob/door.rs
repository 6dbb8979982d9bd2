//! The door of plain executors: they say where they are, and how their runs ended. Its key is a token of an app; while an app
//! has none, nobody comes in. Refused is answered as clients expect: with HTTP 200 and a code in the body.

use super::super::body::BodyError;
use super::super::executor_messages::NAME_CHARS_MAX;
use super::super::wire_limits::{Unread, WireLimits};
use super::ends::Told;
use super::unseen::{UnseenNumbers, first_may_come};
use crate::auth::{AddressRule, KeyRing, Throttle, is_node_at};
use crate::dispatch::TaskCache;
use crate::domain::xxljob::wire::{Callback, Envelope, Registration};
use crate::domain::xxljob::{Library, Number};
use crate::domain::{ExecutorId, IdSource, LogId, Owner, Run};
use crate::engine::Engine;
use crate::store::{
    AnnouncedBy, Announcement, BATCH_MAX, DispatchedRun, JobNumberStore, KeyStore, PlainExecutorStore, SigningKey,
    Store, StoreError,
};
use crate::workers::RunEndSignal;
use crate::xxljob::SentRuns;
use actix_web::web::Bytes;
use carillon_protocol::{BODY_BYTES_MAX, RunKey, RunResult, Verdict};
use futures_util::Stream;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// An executor that has not registered for so long is gone, ms; they do so every 30 s.
const ANNOUNCED_FOR_MS: i64 = 90_000;

/// Refused requests of one address at once, and one more each …
const REFUSED_BURST: u32 = 100;
/// … interval. Further ones are refused without a look.
const REFUSED_EVERY: Duration = Duration::from_secs(1);

/// Which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainMessage {
    /// An executor is at an address.
    Registry,
    /// It leaves.
    Remove,
    /// Runs have ended.
    Callback,
}

/// Who sends a message.
#[derive(Debug, Clone, Copy)]
pub struct PlainCaller<'a> {
    /// Its token.
    pub token: &'a str,
    /// What it calls with.
    pub agent: &'a str,
    /// Where it calls from, without a port.
    pub address: &'a str,
}

/// What the door works with.
pub struct PlainDoorParts<S: Store + ?Sized> {
    /// The engine.
    pub engine: Arc<Engine<S>>,
    /// Tokens.
    pub keys: Arc<KeyRing>,
    /// Where they are read.
    pub key_store: Arc<dyn KeyStore>,
    /// Where executors are announced.
    pub plain_store: Arc<dyn PlainExecutorStore>,
    /// Where attempts are numbered.
    pub numbers: Arc<dyn JobNumberStore>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// Definitions.
    pub tasks: TaskCache<S>,
    /// What has been sent from here.
    pub sent: SentRuns,
    /// Told when runs have ended.
    pub ended: Arc<RunEndSignal>,
}

/// The door of one node.
pub struct PlainDoor<S: Store + ?Sized> {
    parts: PlainDoorParts<S>,
    refused: Throttle,
    limits: WireLimits,
    unseen: UnseenNumbers,
}

/// Results that cannot be written are tried for so long before their executor is left without an answer.
const TAKEN_WITHIN: Duration = Duration::from_millis(2_500);

/// Between two tries.
const TAKEN_AGAIN: Duration = Duration::from_millis(200);

/// Why a message is not taken.
enum Refused {
    /// For people, and in some cases for clients that look for the text.
    For(String),
    /// It may be taken later.
    Later,
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a message of a plain executor failed");
        if error.is_temporary() { Self::Later } else { Self::For("internal error; see the node's log".to_owned()) }
    }
}

impl<S: Store + 'static> PlainDoor<S> {
    /// Opens it.
    pub fn new(parts: PlainDoorParts<S>) -> Self {
        let refused = Throttle::new(REFUSED_BURST, REFUSED_EVERY);
        Self { parts, refused, limits: WireLimits::default(), unseen: UnseenNumbers::default() }
    }

    /// Checks the token, reads the body, works. No answer means that the connection is to be cut: some clients take a refusal of how a run ended for its failure, and none takes a broken connection for one at
    /// once.
    pub async fn answer<P, E>(&self, message: PlainMessage, caller: PlainCaller<'_>, payload: P) -> Option<Envelope>
    where
        P: Stream<Item = Result<Bytes, E>> + Unpin,
        E: Display,
    {
        let address = caller.address;
        match self.handle(message, caller, payload).await {
            Ok(()) => Some(Envelope::ok()),
            Err(Refused::Later) => (message != PlainMessage::Callback)
                .then(|| Envelope::failed("the database cannot be reached right now; try again")),
            Err(Refused::For(text)) => {
                if self.refused.admit_address(address).is_ok() {
                    tracing::warn!(?message, address, why = text, "message of a plain executor refused");
                }
                Some(Envelope::failed(text))
            }
        }
    }

    async fn handle<P, E>(&self, message: PlainMessage, caller: PlainCaller<'_>, payload: P) -> Result<(), Refused>
    where
        P: Stream<Item = Result<Bytes, E>> + Unpin,
        E: Display,
    {
        let keys = self.keys_of(caller.token).await;
        if keys.is_empty() {
            // As xxl-job says it: clients look for it.
            return Err(Refused::For("The access token is wrong.".to_owned()));
        }
        if self.refused.would_admit(&crate::auth::network_of(caller.address)).is_err() {
            return Err(Refused::For(
                "too many refused requests came from this address; the node's log says why".to_owned(),
            ));
        }
        let (body, _turn) = self.limits.read(payload, BODY_BYTES_MAX).await.map_err(|unread| {
            Refused::For(match unread {
                Unread::Busy => "this node reads as many large bodies as it may".to_owned(),
                Unread::Body(BodyError::TooLarge) => format!("the body is larger than {BODY_BYTES_MAX} bytes"),
                Unread::Body(BodyError::TooSlow) => "the body did not arrive in time".to_owned(),
                Unread::Body(BodyError::Broken(detail)) => detail,
            })
        })?;
        match message {
            PlainMessage::Registry => self.register(&keys, caller.agent, &body).await,
            PlainMessage::Remove => self.remove(&keys, &body).await,
            PlainMessage::Callback => {
                let until = Instant::now() + TAKEN_WITHIN;
                loop {
                    match self.callback(&keys, caller.agent, &body).await {
                        Err(Refused::Later) if Instant::now() < until => tokio::time::sleep(TAKEN_AGAIN).await,
                        done => return done,
                    }
                }
            }
        }
    }

    /// The keys of that token.
    async fn keys_of(&self, token: &str) -> Vec<Arc<SigningKey>> {
        if token.is_empty() {
            return Vec::new();
        }
        let find = |keys: &KeyRing| Some(keys.tokens(token, self.now_ms())).filter(|found| !found.is_empty());
        self.parts.keys.find_soon(&*self.parts.key_store, find).await.unwrap_or_default()
    }

    fn now_ms(&self) -> i64 {
        self.parts.engine.clock.now_ms()
    }

    /// The key for an app, and the address as it is known here.
    fn place<'a>(&self, keys: &'a [Arc<SigningKey>], body: &[u8]) -> Result<(&'a SigningKey, String), Refused> {
        let Registration { app, address } =
            Registration::read(body).map_err(|error| Refused::For(error.to_string()))?;
        let mut of_app = keys.iter().filter(|key| key.app == app);
        let key = of_app.next().ok_or_else(|| Refused::For(format!("the token is of no app `{app}`")))?;
        if of_app.next().is_some_and(|other| other.owner != key.owner) {
            return Err(Refused::For(format!("two tenants have this token for an app `{app}`; give each its own")));
        }
        let address = address.trim_end_matches('/').to_owned();
        if address.len() > NAME_CHARS_MAX {
            return Err(Refused::For(format!("the address must have at most {NAME_CHARS_MAX} characters")));
        }
        self.parts.addresses.check_with_path(&address).map_err(Refused::For)?;
        Ok((key, address))
    }

    async fn register(&self, keys: &[Arc<SigningKey>], agent: &str, body: &[u8]) -> Result<(), Refused> {
        let (key, address) = self.place(keys, body)?;
        let (engine, owner) = (&self.parts.engine, key.owner);
        let crowd = engine.registry.crowd(owner.tenant_id, owner.app_id, &address);
        self.limits.check_registration(owner.app_id, crowd).map_err(Refused::For)?;
        if !crowd.1 && engine.store.nodes().await?.iter().any(|node| is_node_at(&node.address, &address)) {
            return Err(Refused::For(format!("address `{address}` is refused: a node of this cluster listens there")));
        }
        let now = self.now_ms();
        let announcement = Announcement {
            owner,
            key_id: &key.key.id,
            address: &address,
            version: agent,
            by: AnnouncedBy::Registry,
            until: now + ANNOUNCED_FOR_MS,
            tags: None,
        };
        let before: ExecutorId = engine.ids.next(now);
        let new_id = || engine.ids.next(now);
        let id = self.parts.plain_store.announce(&announcement, &new_id, now).await?;
        self.parts.keys.used(key, now);
        let since = engine.executors_alive_since();
        let app = (owner.tenant_id, owner.app_id);
        engine.registry.refresh_one(&*engine.store, id, (app, Some(&address)), since).await?;
        if id > before && IdSource::made_by(id) == engine.ids.node() {
            tracing::info!(executor = id.0, app = key.app, address, "plain executor registered");
        }
        Ok(())
    }

    async fn remove(&self, keys: &[Arc<SigningKey>], body: &[u8]) -> Result<(), Refused> {
        let (key, address) = self.place(keys, body)?;
        let (engine, owner) = (&self.parts.engine, key.owner);
        if let Some(id) = self.parts.plain_store.withdraw(owner, &address, self.now_ms()).await? {
            let app = (owner.tenant_id, owner.app_id);
            engine.registry.refresh_one(&*engine.store, id, (app, None), engine.executors_alive_since()).await?;
            tracing::info!(executor = id.0, app = key.app, address, "plain executor left");
        }
        Ok(())
    }

    async fn callback(&self, keys: &[Arc<SigningKey>], agent: &str, body: &[u8]) -> Result<(), Refused> {
        let callback = Callback::read(body).map_err(|error| Refused::For(error.to_string()))?;
        let (mut open, mut foreign) = (0, callback.unreadable);
        for items in callback.items.chunks(BATCH_MAX) {
            let numbers: Vec<i64> = items.iter().map(|item| item.number).collect();
            let attempts = self.attempts(&numbers).await?;
            let ids: Vec<LogId> = attempts.values().map(|key| LogId(key.0)).collect();
            let rows = self.parts.engine.store.runs(None, &ids).await?;
            let rows: HashMap<LogId, DispatchedRun> = rows.into_iter().map(|row| (row.run.id, row)).collect();
            let mut told = Vec::with_capacity(items.len());
            for item in items {
                let key = attempts.get(&item.number).copied();
                match key.and_then(|key| Some((key, rows.get(&LogId(key.0))?))) {
                    Some((key, row)) if keys.iter().any(|own| own.owner == row.run.owner()) => {
                        let (library, sent_at) = (Library::of(agent), self.parts.sent.sent_at(key));
                        told.push(Told { key, row, item, library, sent_at });
                    }
                    None if self.may_come(keys, item.number) => open += 1,
                    _ => foreign += 1,
                }
            }
            let results = self.results(&told).await?;
            for ((owner, executor_id), results) in results {
                open += self.apply(owner, executor_id, &results).await?;
            }
        }
        if open > 0 {
            tracing::info!(results = open, "results of plain executors cannot be taken in yet");
            return Err(Refused::Later);
        }
        if foreign > 0 {
            // Answered as done: an executor would repeat them for ever.
            tracing::warn!(
                results = foreign,
                "results of runs that are not known to this token's apps; nothing changed"
            );
        }
        Ok(())
    }

    /// Whether the attempt of that number, of which this node sees nothing, may still appear to it.
    fn may_come(&self, keys: &[Arc<SigningKey>], number: i64) -> bool {
        let now = self.now_ms();
        match Number::read(number, now) {
            Some(Number::First(log)) => first_may_come(log, now),
            Some(Number::Later(number)) => keys.first().is_some_and(|key| self.unseen.may_come(key.owner, number, now)),
            None => false,
        }
    }

    /// Commits results; answers how many must be sent again.
    async fn apply(&self, owner: Owner, executor_id: ExecutorId, results: &[RunResult]) -> Result<usize, Refused> {
        let verdicts = self.parts.engine.ingestion.apply(owner, executor_id, results).await?;
        for (result, verdict) in results.iter().zip(&verdicts) {
            if *verdict != Verdict::Again {
                self.parts.sent.end(RunKey(result.log, result.attempt));
            }
        }
        self.parts.ended.notify(&self.parts.engine);
        Ok(verdicts.iter().filter(|verdict| **verdict == Verdict::Again).count())
    }

    /// Which attempts these numbers name.
    async fn attempts(&self, numbers: &[i64]) -> Result<HashMap<i64, RunKey>, Refused> {
        let now = self.now_ms();
        let (mut attempts, mut later) = (HashMap::with_capacity(numbers.len()), Vec::new());
        for number in numbers {
            match Number::read(*number, now) {
                Some(Number::First(log)) => drop(attempts.insert(*number, RunKey(log.0, 1))),
                Some(Number::Later(number)) => later.push(number),
                None => {}
            }
        }
        if !later.is_empty() {
            let found = self.parts.numbers.numbered_attempts(&later).await?;
            attempts
                .extend(found.into_iter().map(|(number, attempt)| (number, RunKey(attempt.log.0, attempt.attempt))));
        }
        Ok(attempts)
    }

    /// What they say, by whom they are.
    async fn results(&self, told: &[Told<'_>]) -> Result<BTreeMap<(Owner, ExecutorId), Vec<RunResult>>, Refused> {
        // Of most of them the task need not be known.
        let unclear = told.iter().filter(|told| told.needs_task());
        let runs: Vec<Run> = unclear.map(|told| told.row.run.clone()).collect();
        let tasks = self.parts.tasks.of(&runs).await?;
        let now = self.now_ms();
        let mut results: BTreeMap<(Owner, ExecutorId), Vec<RunResult>> = BTreeMap::new();
        for one in told {
            let run = &one.row.run;
            let result = one.result(tasks.get(run.task_id).map(|task| &task.spec), now);
            results.entry((run.owner(), run.executor_id)).or_default().push(result);
        }
        Ok(results)
    }
}
