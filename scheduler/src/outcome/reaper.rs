//! Runs whose owner is gone. No state is a trap: a row QUEUED for a dead node goes back to all
//! nodes; a row DISPATCHED to an executor that does not have it goes to another.
//!
//! An attempt counts as dead only when it certainly is:
//! - its executor, alive, says (in a snapshot taken after the acceptance window) that it does not
//!   have it: it was never accepted;
//! - its executor has been silent past the offline time-out and the run was not due before that:
//!   the executor no longer starts it (its own lease has run out);
//! - its executor left, was replaced at its address, its machine says that nothing listens
//!   there, or it has been silent so long that it has stopped what it ran (`abandon_after`).

use super::marks::Marks;
use super::refusals::Refusals;
use super::rounds::{Rounds, WATCH_MS};
use crate::cluster::{Clock, Membership, Registry, RuleBook, SettledContact, View};
use crate::dispatch::{Canceller, EndedRuns, Presence, TaskCache, Transport};
use crate::domain::clock_step::AHEAD_MAX_MS;
use crate::domain::missed::reason_to_return;
use crate::domain::{ExecutorId, LogId, NodeId, Reason, Run, Status, Transition};
use crate::metrics::METRICS;
use crate::queue::returned_to_all;
use crate::store::{
    BATCH_MAX, ClaimStore, ClusterStore, DispatchStore, DispatchedRun, DueRange, ExecutorEnd, ExecutorStore,
    FROM_THE_FIRST, OutcomeStore, PlanStore, Result, Suspect, Suspects,
};
use carillon_protocol::RunKey;
use futures_util::future::join_all;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Distances of the reaper, ms.
#[derive(Debug, Clone, Copy)]
pub struct ReaperSettings {
    /// How long after the mark an executor may accept a dispatch.
    pub accept_window_ms: i64,
    /// Executors silent for longer are offline and start nothing more.
    pub offline_after_ms: i64,
    /// Executors silent for longer have stopped what they ran.
    pub abandon_after_ms: i64,
    /// A plain executor silent for longer counts as lost with what it ran: it has no lease that would end it.
    pub plain_lost_after_ms: i64,
    /// How long after its last heartbeat that was committed a node that has lost its database may tell an executor to go on.
    pub kept_going_ms: i64,
    /// What no node has claimed so long after its due time was missed.
    pub misfire_after_ms: i64,
    /// Runs in memory at once; the round goes on behind them: long runs that are well hide no lost ones. As many of the older
    /// runs that go on are looked at in a round; the next round goes on behind them.
    pub page_rows: u64,
}

impl ReaperSettings {
    /// How long after its last heartbeat that was committed an executor may start what it holds, ms.
    fn lease_ms(&self) -> i64 {
        self.offline_after_ms + self.kept_going_ms
    }

    /// Rows of a sweep in a round.
    fn sweep_rows(&self) -> u64 {
        self.page_rows.min(BATCH_MAX as u64)
    }
}

/// Clocks of executors are estimates: margin when two of them are compared, ms.
const MARGIN_MS: i64 = 500;

/// A run that should have started this long ago and has no result is looked at, ms.
const QUIET_MS: i64 = 2_000;

/// Runs that a node looks at in one go.
pub const PAGE_ROWS: u64 = 20_000;

/// Runs that should have started within this time are looked at in each round, ms.
const FRESH_MS: i64 = 10_000;

/// The reaper of one node.
pub struct Reaper<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    registry: Arc<Registry>,
    rules: Arc<RuleBook>,
    transport: Arc<dyn Transport>,
    canceller: Arc<Canceller<S>>,
    tasks: Arc<TaskCache<S>>,
    ended: Arc<EndedRuns>,
    rounds: Rounds,
    marks: Marks,
    refusals: Refusals,
    settings: ReaperSettings,
}

/// The parts that a reaper works with.
pub struct ReaperParts<S: ?Sized> {
    /// The database.
    pub store: Arc<S>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// This node.
    pub membership: Arc<Membership>,
    /// Online executors.
    pub registry: Arc<Registry>,
    /// What is held.
    pub rules: Arc<RuleBook>,
    /// The way to them.
    pub transport: Arc<dyn Transport>,
    /// Stops runs.
    pub canceller: Arc<Canceller<S>>,
    /// Definitions.
    pub tasks: Arc<TaskCache<S>>,
    /// Told of runs that end here.
    pub ended: Arc<EndedRuns>,
}

/// A queue whose node has it no more.
#[derive(Debug, Clone, Copy)]
enum LeftBehind<'a> {
    /// Of nodes other than these.
    ByOthers(&'a [NodeId]),
    /// What that node claimed before this instant, ms.
    ByEarlierProcess(NodeId, i64),
}

impl<S: ClaimStore + ClusterStore + DispatchStore + OutcomeStore + PlanStore + ExecutorStore + 'static> Reaper<S> {
    /// Over the node's parts.
    pub fn new(parts: ReaperParts<S>, settings: ReaperSettings) -> Self {
        let ReaperParts { store, clock, membership, registry, rules, transport, canceller, tasks, ended } = parts;
        Self {
            store,
            clock,
            membership,
            registry,
            rules,
            transport,
            canceller,
            tasks,
            ended,
            rounds: Rounds::default(),
            marks: Marks::new(settings.lease_ms()),
            refusals: Refusals::default(),
            settings,
        }
    }

    /// One round; returns how many runs it moved. Costs what may have been lost: what asks for all that executors have is
    /// asked while nodes or executors have just come or gone, and now and then.
    pub async fn tick(&self) -> Result<usize> {
        let view = self.membership.view();
        let looks = self.rounds.begin(&view.joined, self.registry.departures(), self.clock.now_ms());
        let is_settled = self.membership.is_settled();
        self.marks.forget(self.clock.now_ms());
        self.refusals.forget(self.local_ms());
        let mut moved = 0;
        if let Some(until) = looks.of_nodes.filter(|_| is_settled) {
            moved += self.return_queues_of_the_dead(&view, until).await?;
        }
        if let Some(until) = looks.of_executors.filter(|_| is_settled) {
            moved += self.end_of_executors(until).await?;
        }
        moved += self.never_accepted(&view.live, looks.of_nodes).await?;
        let stops = if self.canceller.is_open() { Some(i64::MAX) } else { looks.of_nodes };
        if let Some(until) = stops {
            moved += self.canceller.repeat_stops(until, self.settings.sweep_rows()).await?;
        }
        if let Some(until) = looks.of_nodes {
            self.settle_open_parents(until).await?;
        }
        self.rounds.end(is_settled);
        Ok(moved)
    }

    /// Ends parents whose settling was lost: of so many in a round; the next one goes on behind them. Most go on, and are well.
    async fn settle_open_parents(&self, until: i64) -> Result<()> {
        let (now, limit) = (self.clock.now_ms(), self.settings.sweep_rows());
        let page = self.store.open_parents(now - QUIET_MS, until, self.rounds.parents_after(), limit).await?;
        self.rounds.parents_done(page.last().copied().filter(|_| page.len() as u64 >= limit));
        let parents: Vec<LogId> = page.into_iter().map(|(_, id)| id).collect();
        self.store.settle_parents(&parents, now).await?;
        self.ended.note(parents);
        Ok(())
    }

    async fn return_queues_of_the_dead(&self, view: &View, until: i64) -> Result<usize> {
        let joined = joined_lately(&view.joined, self.clock.now_ms());
        let mut moved = self.return_queue(LeftBehind::ByOthers(&view.live), until).await?;
        for (node, at) in joined {
            moved += self.return_queue(LeftBehind::ByEarlierProcess(node, at), until).await?;
        }
        if moved > 0 {
            METRICS.reclaimed.add(moved as u64);
            tracing::warn!(runs = moved, "returned runs queued for dead nodes");
        }
        Ok(moved)
    }

    async fn return_queue(&self, queue: LeftBehind<'_>, until: i64) -> Result<usize> {
        let (mut due, mut moved) = (DueRange::until(until), 0);
        loop {
            let mut runs = match queue {
                LeftBehind::ByOthers(live) => self.store.queued_of_others(live, due, BATCH_MAX as u64).await?,
                LeftBehind::ByEarlierProcess(node, at) => {
                    self.store.queued_before(node, at, due, BATCH_MAX as u64).await?
                }
            };
            let (now, misfire_after_ms) = (self.clock.now_ms(), self.settings.misfire_after_ms);
            let attended_since = self.membership.attended_since(misfire_after_ms);
            for run in &mut runs {
                run.reason = reason_to_return(run, now, attended_since, misfire_after_ms);
            }
            let changes: Vec<Transition> = runs.iter().map(returned_to_all).collect();
            let now = self.store.change(&changes).await?.len();
            moved += now;
            if runs.len() < BATCH_MAX || now == 0 {
                return Ok(moved);
            }
            if now == runs.len() {
                due = due.from_last_of(&runs);
            }
        }
    }

    /// Runs that their executor, alive and heard here, does not have: those that should have begun of late in each round,
    /// older ones in turn. Of those that are not due yet what nodes other than `live` dispatched, as far as it looks for such.
    async fn never_accepted(&self, live: &[NodeId], of_nodes: Option<i64>) -> Result<usize> {
        let now = self.clock.now_ms();
        let executors = self.registry.heard_since(now - self.settings.offline_after_ms);
        if executors.is_empty() {
            return Ok(0);
        }
        let (fresh_from, due_before) = (now - FRESH_MS, now - QUIET_MS);
        let until = of_nodes.unwrap_or(due_before);
        let fresh = Suspects {
            executors,
            except: Vec::new(),
            due_before,
            or_not_by: live.to_vec(),
            until,
            after: (fresh_from, LogId::NONE),
            limit: self.settings.page_rows,
        };
        let from = self.rounds.old_from();
        let end = self.store.held_after(from, fresh_from, self.settings.page_rows).await?;
        // All of one instant: the next part begins behind it.
        let until = end.map_or(fresh_from, |end| end + 1);
        let old = Suspects { after: (from, LogId::NONE), until, ..fresh.clone() };
        let mut moved = self.denied(fresh).await?;
        moved += self.denied(old).await?;
        self.rounds.old_done(end.map(|end| end + 1));
        Ok(moved)
    }

    /// Of these runs those that their executors deny to have.
    async fn denied(&self, mut suspects: Suspects) -> Result<usize> {
        let mut moved = 0;
        while let Some(page) = self.next_page(&mut suspects).await? {
            let denied: Vec<Suspect> = page.into_iter().filter(|suspect| self.is_denied(suspect)).collect();
            if denied.is_empty() {
                continue;
            }
            // They may be dispatched by a clock that was set since it was read here last.
            self.clock.observe(&*self.store).await?;
            let denied = denied.into_iter().filter(|suspect| self.is_denied(suspect)).collect();
            let lost = self.unchanged(denied).await?;
            moved +=
                self.decide(lost.into_iter().map(|dispatched| (dispatched, Reason::Undelivered)).collect()).await?;
        }
        Ok(moved)
    }

    fn is_denied(&self, suspect: &Suspect) -> bool {
        let (run, after) = (RunKey(suspect.log.0, suspect.attempt), self.accepted_by(suspect));
        self.registry.denies(suspect.executor_id, run, after, self.clock.times_set())
    }

    /// The suspects behind those of the last call; `None` when there are no more.
    async fn next_page(&self, suspects: &mut Suspects) -> Result<Option<Vec<Suspect>>> {
        if suspects.limit == 0 {
            return Ok(None);
        }
        let page = self.store.suspects(suspects).await?;
        match page.last() {
            Some(last) if page.len() as u64 >= suspects.limit => suspects.after = (last.due_time, last.log),
            _ => suspects.limit = 0,
        }
        Ok(Some(page).filter(|page| !page.is_empty()))
    }

    /// The runs of these suspects, as far as nothing has happened to them since they were read: what has been judged of
    /// them was judged by what was so then.
    async fn unchanged(&self, suspects: Vec<Suspect>) -> Result<Vec<DispatchedRun>> {
        let versions: HashMap<LogId, i64> = suspects.iter().map(|suspect| (suspect.log, suspect.version)).collect();
        let ids: Vec<LogId> = suspects.iter().map(|suspect| suspect.log).collect();
        let mut found = Vec::new();
        for batch in ids.chunks(BATCH_MAX) {
            let rows = self.store.runs(None, batch).await?;
            found.extend(rows.into_iter().filter(|row| versions.get(&row.run.id) == Some(&row.run.version)));
        }
        Ok(found)
    }

    /// Runs of executors that are no longer online.
    async fn end_of_executors(&self, until: i64) -> Result<usize> {
        let mut suspects = Suspects {
            executors: Vec::new(),
            except: self.registry.ids(),
            due_before: i64::MAX,
            or_not_by: Vec::new(),
            until,
            after: FROM_THE_FIRST,
            limit: self.settings.page_rows,
        };
        let (mut moved, mut found) = (0, 0);
        while let Some(page) = self.next_page(&mut suspects).await? {
            found += page.len();
            moved += self.end_of_their_executors(page).await?;
        }
        self.rounds.orphans_left(found > moved);
        Ok(moved)
    }

    async fn end_of_their_executors(&self, suspects: Vec<Suspect>) -> Result<usize> {
        let ids: HashSet<ExecutorId> = suspects.iter().map(|suspect| suspect.executor_id).collect();
        let ends = self.store.executor_ends(&ids.into_iter().collect::<Vec<_>>()).await?;
        // All at once: a judgement must not grow old while others are made.
        let judged = ends.into_iter().map(async |end| (end.id, self.fate(end).await));
        let fates: HashMap<ExecutorId, Fate> = join_all(judged).await.into_iter().collect();
        let now = self.clock.now_ms();
        let fate = |suspect: &Suspect| {
            // An executor whose row retention has taken is long dead.
            let fate = fates.get(&suspect.executor_id).unwrap_or(&Fate::DEAD);
            // Its sender may still be repeating the dispatch.
            (now > self.accepted_by(suspect)).then(|| fate.of(suspect))?
        };
        let reasons: HashMap<LogId, Reason> =
            suspects.iter().filter_map(|suspect| Some((suspect.log, fate(suspect)?))).collect();
        let lost = suspects.into_iter().filter(|suspect| reasons.contains_key(&suspect.log)).collect();
        let lost = self.unchanged(lost).await?.into_iter();
        let lost = lost.filter_map(|dispatched| Some((reasons.get(&dispatched.run.id).copied()?, dispatched)));
        self.decide(lost.map(|(reason, dispatched)| (dispatched, reason)).collect()).await
    }

    /// After this instant no executor accepts what was dispatched so, ms.
    fn accepted_by(&self, suspect: &Suspect) -> i64 {
        self.marks.known_since(suspect, (self.clock.now_ms(), self.clock.times_set()))
            + self.settings.accept_window_ms
            + MARGIN_MS
    }

    async fn fate(&self, end: ExecutorEnd) -> Fate {
        // A plain one that has left gets nothing more, and may let what it has come to its end.
        if end.gone_at > 0 && !end.plain {
            return Fate { starts_nothing_after: Some(end.gone_at.max(self.done_before())), dead: true };
        }
        // The clock may have been read, and found to be set, since the round began.
        let Some(SettledContact { now, since }) = self.membership.settled_contact() else { return Fate::UNKNOWN };
        // While the database was away no heartbeat could be committed, and executors went on. Nor may what a clock wrote that was
        // set back for a moment make one silent for longer than it has been missing here.
        let missing = self.registry.missing_for(end.id).and_then(|missing| i64::try_from(missing.as_millis()).ok());
        let online_until = missing.map_or(i64::MIN, |missing_ms| now - missing_ms - self.membership.offline_after_ms());
        // One from the future is from before the clock was set back, and so from before the present contact.
        let heartbeat_at = Some(end.heartbeat_at).filter(|at| *at <= now + AHEAD_MAX_MS).unwrap_or(i64::MIN);
        let last_heard = heartbeat_at.max(since).max(online_until);
        let silent_ms = now - last_heard;
        if silent_ms <= self.settings.offline_after_ms {
            return Fate::UNKNOWN;
        }
        if end.plain {
            let dead = silent_ms > self.settings.plain_lost_after_ms || self.is_plain_gone(&end).await;
            // Without a lease it starts what it has got for as long as it lives.
            return if dead {
                Fate { starts_nothing_after: Some(now.max(self.done_before())), dead }
            } else {
                Fate::UNKNOWN
            };
        }
        let abandoned_ms = self.settings.abandon_after_ms + self.settings.kept_going_ms + MARGIN_MS;
        let dead = silent_ms > abandoned_ms || self.is_seen_gone(&end).await;
        // Of a process that is gone nothing that is due from now on has started.
        let lease_ends = if dead { now } else { last_heard + self.settings.lease_ms() };
        Fate { starts_nothing_after: Some(lease_ends.max(self.done_before())), dead }
    }

    /// What was due or dispatched by then, ms, may have been started before the clock was set back, whatever time it is now.
    /// Executors go by what it said before for as long as they have their lease.
    fn done_before(&self) -> i64 {
        self.membership.lived_until() + self.settings.lease_ms()
    }

    async fn is_plain_gone(&self, end: &ExecutorEnd) -> bool {
        if self.transport.probe(end).await == Presence::NotListening {
            return self.refusals.note(end.id, self.local_ms());
        }
        self.refusals.end(end.id);
        false
    }

    fn local_ms(&self) -> i64 {
        self.clock.local_us().div_euclid(1_000)
    }

    /// Whether somebody else answers in its place. A proxy or a balancer at its address answers for whom it pleases.
    async fn is_seen_gone(&self, end: &ExecutorEnd) -> bool {
        end.own_address
            && match self.transport.probe(end).await {
                Presence::NotListening => true,
                Presence::Instance(instance) => instance != end.instance,
                Presence::Unknown => false,
            }
    }

    async fn decide(&self, mut lost: Vec<(DispatchedRun, Reason)>) -> Result<usize> {
        // What became of it may have been written before the database was restored.
        let held_until = self.rules.held_until(self.clock.now_ms()).unwrap_or(i64::MIN);
        lost.retain(|(dispatched, _)| dispatched.run.due_time > held_until);
        if lost.is_empty() {
            return Ok(0);
        }
        let runs: Vec<Run> = lost.iter().map(|(dispatched, _)| dispatched.run.clone()).collect();
        let tasks = self.tasks.of(&runs).await?;
        // Their policy is not known: a node of a later release decides.
        lost.retain(|(dispatched, _)| !tasks.is_unreadable(dispatched.run.task_id));
        if lost.is_empty() {
            return Ok(0);
        }
        let now = self.clock.now_ms();
        // What a change of its task revoked, and never started, may go on under the new definition.
        let (revoked, lost): (Vec<_>, Vec<_>) = lost
            .into_iter()
            .partition(|(dispatched, reason)| dispatched.stopping.is_revocation() && *reason == Reason::ExecutorGone);
        let revoked: Vec<Run> = revoked.into_iter().map(|(dispatched, _)| dispatched.run).collect();
        let mut moved: HashSet<LogId> = self.canceller.settle_unstarted(&revoked).await?.into_iter().collect();
        let rules = self.rules.now();
        let changes: Vec<Transition> = lost
            .iter()
            .map(|(dispatched, reason)| {
                let run = &dispatched.run;
                if rules.skips(run.due_time) {
                    return Transition { finished_at: now, ..Transition::of(run, Status::Cancelled, Reason::Restored) };
                }
                // What was to be stopped has ended, or never started: that is no failure.
                if dispatched.is_stopping() {
                    return Transition {
                        finished_at: now,
                        ..Transition::of(run, Status::Cancelled, dispatched.stopping)
                    };
                }
                match tasks.get(run.task_id) {
                    None => {
                        Transition { finished_at: now, ..Transition::of(run, Status::Cancelled, Reason::TaskDeleted) }
                    }
                    Some(task) => Transition::after_failure(task, run, *reason, now),
                }
            })
            .collect();
        for batch in changes.chunks(BATCH_MAX) {
            moved.extend(self.store.change(batch).await?);
        }
        self.ended.note(moved.iter().copied());
        METRICS.runs_lost.add(moved.len() as u64);
        tracing::warn!(runs = moved.len(), "lost runs decided");
        let parents: HashSet<LogId> = lost
            .iter()
            .filter(|(dispatched, _)| !dispatched.run.parent_id.is_none() && moved.contains(&dispatched.run.id))
            .map(|(dispatched, _)| dispatched.run.parent_id)
            .collect();
        let parents: Vec<LogId> = parents.into_iter().collect();
        self.store.settle_parents(&parents, now).await?;
        self.ended.note(parents);
        Ok(moved.len())
    }
}

/// The nodes whose processes have joined lately, each with the instant (ms) before which an earlier process of its name claimed
/// what is queued for it: one that dies again and again before its first load is alive by its number all the time. Not after
/// the database's clock was set back behind that: then the living one claims before it joined, too.
fn joined_lately(joined: &[(NodeId, i64)], now: i64) -> Vec<(NodeId, i64)> {
    let lately = joined.iter().filter(|(_, at)| (now - WATCH_MS..=now).contains(at));
    lately.map(|(node, at)| (*node, at - MARGIN_MS)).collect()
}

/// What can be said of an executor that is not online.
struct Fate {
    /// It starts nothing that is due after this instant, ms.
    starts_nothing_after: Option<i64>,
    /// What it started has ended.
    dead: bool,
}

impl Fate {
    const DEAD: Self = Self { starts_nothing_after: Some(i64::MIN), dead: true };
    /// It may live, and do anything.
    const UNKNOWN: Self = Self { starts_nothing_after: None, dead: false };

    fn of(&self, suspect: &Suspect) -> Option<Reason> {
        let after = self.starts_nothing_after?;
        // Dispatched or due after the end: it certainly never started.
        if after > i64::MIN && (suspect.due_time > after || (self.dead && suspect.dispatched_at > after)) {
            return Some(Reason::ExecutorGone);
        }
        self.dead.then_some(Reason::OutcomeUnknown)
    }
}
