//! Follows the sources of apps: this node those in its share.

use super::announcer::Announcer;
use super::answers::Instances;
use super::nacos::Nacos;
use super::named::{Refused, named};
use crate::auth::{AddressRule, KeyRing};
use crate::domain::AppId;
use crate::engine::Engine;
use crate::metrics::METRICS;
use crate::store::{BATCH_MAX, DiscoveryStore, ExecutorSource, PlainExecutorStore, Result, SigningKey, SqlStore};
use futures_util::StreamExt;
use futures_util::stream;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Between two looks at Nacos: an instance that comes or goes there does so here within a second.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// After an answer that did not come Nacos is asked again this much later, twice as long after each further one …
const AWAY_FIRST: Duration = Duration::from_secs(1);
/// … up to this.
const AWAY_MAX: Duration = Duration::from_secs(15);

/// What is announced is compared again after this long, whoever is named: others announce and withdraw, too.
const SETTLED_FOR: Duration = Duration::from_secs(30);

/// Apps that are looked at at once.
const APPS_AT_ONCE: usize = 16;

/// Addresses that are nobody's, of an app at a time, of which the log tells one by one.
const REFUSED_LINES_MAX: usize = 10;

/// Why Nacos was not read, as it is kept, characters.
const PROBLEM_CHARS_MAX: usize = 500;

/// Follows the sources of apps' executors.
pub struct Discovery {
    parts: DiscoveryParts,
    announcer: Announcer,
    following: Mutex<BTreeMap<AppId, Following>>,
    /// Sources may have changed since they were read.
    is_stale: AtomicBool,
    wake: Arc<Notify>,
}

/// What it works with.
pub struct DiscoveryParts {
    /// This node's engine.
    pub engine: Arc<Engine<SqlStore>>,
    /// Where sources stand.
    pub sources: Arc<dyn DiscoveryStore>,
    /// Where executors are announced.
    pub plain_store: Arc<dyn PlainExecutorStore>,
    /// Tokens of apps.
    pub keys: Arc<KeyRing>,
    /// Addresses allowed for executors.
    pub addresses: AddressRule,
    /// Nacos.
    pub nacos: Nacos,
}

/// One app's source, and how far this node has followed it.
struct Following {
    source: ExecutorSource,
    /// Whom Nacos named last; none before it has answered this node.
    found: Option<Instances>,
    /// Answers in a row that did not come.
    failures: u32,
    ask_at: Instant,
    /// When what is announced was the same as who is named, and by which token.
    settled: Option<(Instant, Option<String>)>,
    /// Addresses that are nobody's, and of which that was said.
    refused: Refused,
}

impl Following {
    fn new(source: ExecutorSource) -> Self {
        let (ask_at, refused) = (Instant::now(), Refused::new());
        Self { source, found: None, failures: 0, ask_at, settled: None, refused }
    }

    /// Forgets what it knows: another node follows it, and notes how it goes.
    fn leave(&mut self) {
        (self.found, self.failures, self.settled, self.source.since) = (None, 0, None, 0);
    }

    /// Whether what is announced by that token need not be compared.
    fn is_settled(&self, key_id: Option<&String>) -> bool {
        let Some((at, by)) = &self.settled else { return false };
        by.as_ref() == key_id && (at.elapsed() < SETTLED_FOR || self.source.spec.is_empty())
    }
}

impl Discovery {
    /// Over its parts.
    pub fn new(parts: DiscoveryParts) -> Self {
        let announcer = Announcer {
            engine: Arc::clone(&parts.engine),
            plain_store: Arc::clone(&parts.plain_store),
            sources: Arc::clone(&parts.sources),
        };
        let is_stale = AtomicBool::new(true);
        Self { parts, announcer, following: Mutex::default(), is_stale, wake: Arc::default() }
    }

    /// Sources of apps may have changed: the next round reads them.
    pub fn changed(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
    }

    /// Told when the next round is due at once.
    pub fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    /// One round. Where no app has a token, or none has a source, nobody is asked anything.
    pub async fn tick(&self) -> Result<()> {
        // Rounds come one after the other: nobody else looks for it meanwhile.
        let mut following = std::mem::take(&mut *self.following());
        let done = self.round(&mut following).await;
        *self.following() = following;
        done
    }

    fn following(&self) -> MutexGuard<'_, BTreeMap<AppId, Following>> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn round(&self, following: &mut BTreeMap<AppId, Following>) -> Result<()> {
        let has_any = self.parts.keys.has_tokens() || !following.is_empty();
        if has_any && self.is_stale.swap(false, Ordering::SeqCst) {
            match self.sources().await {
                Ok(sources) => take(following, sources),
                Err(error) => {
                    self.changed();
                    return Err(error);
                }
            }
        }
        let share = self.parts.engine.membership.view().share;
        let mut mine = Vec::new();
        for one in following.values_mut() {
            if share.has(one.source.owner.app_id.0) {
                mine.push(one);
            } else {
                one.leave();
            }
        }
        // What is known is done before anyone is asked: a Nacos that hangs holds up nobody at a fixed address.
        let mut rounds = Vec::with_capacity(mine.len());
        for one in &mut mine {
            rounds.push(self.settle(one));
        }
        let settled = all(rounds).await;
        let mut rounds = Vec::with_capacity(mine.len());
        for one in mine {
            rounds.push(self.follow(one));
        }
        settled.and(all(rounds).await)
    }

    async fn sources(&self) -> Result<Vec<ExecutorSource>> {
        let mut all = Vec::new();
        let mut after = AppId::NONE;
        loop {
            let page = self.parts.sources.sources(after, BATCH_MAX as u64).await?;
            let is_last = page.len() < BATCH_MAX;
            after = page.last().map_or(after, |source| source.owner.app_id);
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// The app's token, if its door is open.
    fn key_of(&self, one: &Following) -> Option<Arc<SigningKey>> {
        self.parts.keys.token_of(one.source.owner, self.parts.engine.clock.now_ms())
    }

    async fn follow(&self, one: &mut Following) -> Result<()> {
        if one.source.spec.nacos.is_some() && Instant::now() >= one.ask_at && self.key_of(one).is_some() {
            self.ask(one).await?;
            self.settle(one).await?;
        }
        Ok(())
    }

    /// Asks Nacos. What cannot be read changes nothing.
    async fn ask(&self, one: &mut Following) -> Result<()> {
        let Some(service) = &one.source.spec.nacos else { return Ok(()) };
        match self.parts.nacos.instances(service).await {
            Ok(found) => {
                METRICS.nacos_answers.add(0, 1);
                one.failures = 0;
                if one.found.as_ref() != Some(&found) {
                    (one.found, one.settled) = (Some(found), None);
                }
                self.note(one, "").await
            }
            Err(why) => {
                METRICS.nacos_answers.add(1, 1);
                let wait = AWAY_FIRST * 2u32.saturating_pow(one.failures.min(8));
                (one.failures, one.ask_at) = (one.failures.saturating_add(1), Instant::now() + wait.min(AWAY_MAX));
                self.note(one, &why).await
            }
        }
    }

    /// Says once that Nacos went away, and once that it is back; people see it with the app's source, by the reason of now.
    async fn note(&self, one: &mut Following, why: &str) -> Result<()> {
        let source = &one.source;
        let problem: String = why.chars().take(PROBLEM_CHARS_MAX).collect();
        let is_turn = source.since == 0 || source.problem.is_empty() != problem.is_empty();
        if !is_turn && source.problem == problem {
            return Ok(());
        }
        let (app, now) = (source.owner.app_id.0, self.parts.engine.clock.now_ms());
        self.parts.sources.note_source(source.owner, source.revision, &problem, now).await?;
        if is_turn && problem.is_empty() {
            tracing::info!(app, "Nacos says where the app's executors are");
        } else if is_turn {
            tracing::warn!(
                app,
                why = problem,
                "Nacos does not say where the app's executors are; they stay as they were"
            );
        }
        one.source.since = if is_turn { now } else { source.since };
        one.source.problem = problem;
        Ok(())
    }

    /// Announces and withdraws, where that may be due.
    async fn settle(&self, one: &mut Following) -> Result<()> {
        let key = self.key_of(one);
        let key_id = key.as_ref().map(|key| key.key.id.clone());
        if !one.is_settled(key_id.as_ref()) {
            self.announce(one, key.as_deref()).await?;
            one.settled = Some((Instant::now(), key_id));
        }
        Ok(())
    }

    /// An app without a token has closed its door: nobody is announced there.
    async fn announce(&self, one: &mut Following, key: Option<&SigningKey>) -> Result<()> {
        let (owner, spec) = (one.source.owner, &one.source.spec);
        let Some(key) = key else { return self.announcer.withdraw_all(owner).await };
        let is_nacos_known = one.found.is_some() || spec.nacos.is_none();
        let named = named(spec, one.found.as_ref(), &self.parts.addresses);
        let refused = self.announcer.settle(owner, key, named, is_nacos_known).await?;
        let new: Vec<_> = refused.iter().filter(|(address, _)| !one.refused.contains_key(*address)).collect();
        for (address, why) in new.iter().take(REFUSED_LINES_MAX) {
            tracing::warn!(app = owner.app_id.0, address, why, "no executor can be at an address that is named");
        }
        if new.len() > REFUSED_LINES_MAX {
            let more = new.len() - REFUSED_LINES_MAX;
            tracing::warn!(app = owner.app_id.0, more, "nor at further addresses that are named");
        }
        one.refused = refused;
        Ok(())
    }
}

/// Does all of it, some at the same time. One that fails holds up no other; the first failure is answered.
async fn all(rounds: Vec<impl Future<Output = Result<()>>>) -> Result<()> {
    let mut rounds = stream::iter(rounds).buffer_unordered(APPS_AT_ONCE);
    let mut done = Ok(());
    while let Some(one) = rounds.next().await {
        done = done.and(one);
    }
    done
}

/// Goes on with sources that are as they were, and begins with the others.
fn take(following: &mut BTreeMap<AppId, Following>, sources: Vec<ExecutorSource>) {
    let mut known = std::mem::take(following);
    for source in sources {
        let app = source.owner.app_id;
        let same = known.remove(&app).filter(|one| one.source.revision == source.revision);
        following.insert(app, same.unwrap_or_else(|| Following::new(source)));
    }
}
