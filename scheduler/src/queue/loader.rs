//! Fills the queue: this node's share of the runs that are due soon, and those due so soon that the
//! first node to see them should take them.

use super::RunQueue;
use super::fair_queue::Admission;
use super::missed::MissedRuns;
use super::page::{Heavy, Page};
use crate::cluster::{Clock, LoadWatch, Membership, RuleBook};
use crate::domain::missed::reason_to_return;
use crate::domain::{Reason, Run, Status, Transition};
use crate::metrics::METRICS;
use crate::store::{BATCH_MAX, ClaimStore, DispatchStore, DueRange, LeftOut, PlanStore, Result, Share};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

/// Distances of the loader, ms.
#[derive(Debug, Clone, Copy)]
pub struct LoaderSettings {
    /// How long before its due time a run is dispatched.
    pub lead_ms: i64,
    /// Between two full loads.
    pub interval_ms: i64,
}

/// What is due within the lead plus this is claimed by any node, ms.
const URGENT_MS: i64 = 1_500;

/// A row still queued this long after its due time is checked again, ms.
const OVERDUE_MS: i64 = 2_000;

/// Rows looked at for that; the earliest come first.
const OVERDUE_MAX: u64 = 10;

/// Among so many that nodes or executors have: what runs for long lies before them. The next full load goes on behind.
const LOOK_MAX: u64 = 2_000;

/// When all of those are known here and only late, more may lie behind them: the whole queue is
/// compared at every so many full loads.
const COMPARE_EVERY: u32 = 6;

/// While one tenant's rows fill the pages of what is due almost at once, the others' are read after
/// every so many.
const OTHERS_EVERY: usize = 2;

/// While missed runs are being ended, what is due later is claimed before them, except at every so many loads: there are
/// runs among them that go on.
const MISSED_FIRST_EVERY: u32 = 8;

/// Pages in a row of which nothing could be claimed end a load; the next one goes on.
const REFUSED_MAX: usize = 3;

/// What a load claims.
#[derive(Debug, Clone, Copy)]
struct Range {
    share: Option<Share>,
    /// How long before their due time, ms.
    ahead_ms: i64,
    missed: Missed,
    /// Pages in a row of which nothing could be claimed.
    refused: usize,
}

impl Range {
    /// Whether it gets nothing any more, after this page.
    fn gets_nothing(&mut self, page: &Page) -> bool {
        self.refused = if page.is_refused() { self.refused + 1 } else { 0 };
        self.refused == REFUSED_MAX
    }
}

/// How a load meets missed runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missed {
    /// It has not met any.
    Unknown,
    /// Those that remain are to be claimed.
    Ended,
    /// They are left to a later load.
    Later,
}

/// What a loader works with.
pub struct LoaderParts<S: ?Sized> {
    /// The database.
    pub store: Arc<S>,
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// This node.
    pub membership: Arc<Membership>,
    /// What is held.
    pub rules: Arc<RuleBook>,
    /// What it fills.
    pub queue: Arc<RunQueue>,
    /// Hears how late the node claims.
    pub watch: Arc<LoadWatch>,
}

/// The loader of one node.
pub struct Loader<S: ?Sized> {
    store: Arc<S>,
    clock: Arc<dyn Clock>,
    membership: Arc<Membership>,
    rules: Arc<RuleBook>,
    queue: Arc<RunQueue>,
    settings: LoaderSettings,
    /// An earlier claim ended in an error: rows may be this node's without being in the queue.
    unsure: AtomicBool,
    /// An earlier process of this node's name may have left rows behind.
    inherits: AtomicBool,
    /// What the database says is queued here is none of this process's.
    forgotten: AtomicBool,
    /// Full loads in a row at which everything looked at was late.
    late_loads: AtomicU32,
    /// Up to where it has looked for lost rows, ms.
    looked_until: AtomicI64,
    missed: MissedRuns<S>,
    watch: Arc<LoadWatch>,
    /// Loads in a row that left missed runs to a later one.
    missed_later: AtomicU32,
    /// Two claims at once could be of the same rows, and each take them for its own. Held for a
    /// page: what is due almost at once does not wait for a long load.
    one_at_a_time: tokio::sync::Mutex<()>,
}

impl<S: ClaimStore + DispatchStore + PlanStore + ?Sized> Loader<S> {
    /// Over the node's parts. The first tick returns what an earlier process of this node's name left behind to all nodes:
    /// should that process still live, its copies lose at the version.
    pub fn new(parts: LoaderParts<S>, missed: MissedRuns<S>, settings: LoaderSettings) -> Self {
        let LoaderParts { store, clock, membership, rules, queue, watch } = parts;
        Self {
            store,
            clock,
            membership,
            rules,
            queue,
            settings,
            unsure: AtomicBool::new(false),
            inherits: AtomicBool::new(true),
            forgotten: AtomicBool::new(false),
            late_loads: AtomicU32::new(0),
            looked_until: AtomicI64::new(i64::MIN),
            missed,
            watch,
            missed_later: AtomicU32::new(0),
            one_at_a_time: tokio::sync::Mutex::default(),
        }
    }

    /// Claims this node's share of what is due within the lead and two load intervals.
    pub async fn load(&self) -> Result<usize> {
        let now = self.clock.now_ms();
        self.look_for_lost_rows(now).await?;
        let ahead_ms = self.settings.lead_ms + 2 * self.settings.interval_ms;
        self.fill(Some(self.membership.view().share), ahead_ms).await
    }

    /// Claims whatever is due almost at once, of any share: what others gave back, lost or are
    /// too busy for, and what was just written.
    pub async fn load_urgent(&self) -> Result<usize> {
        self.fill(None, self.settings.lead_ms + URGENT_MS).await
    }

    /// The database was restored: what it says is queued here was so long ago, and is for the next process to judge.
    pub fn forget(&self) {
        self.forgotten.store(true, Ordering::Relaxed);
    }

    /// Gives everything that the database says is queued here back to all nodes, for a graceful
    /// stop. Can be repeated after an error.
    pub async fn give_back(&self) -> Result<usize> {
        if self.forgotten.load(Ordering::Relaxed) {
            drop(self.queue.drain());
            return Ok(0);
        }
        let (waits, now) = (self.queue.blocked.reasons(), self.clock.now_ms());
        let reason = |run: &Run| match waits.get(&run.id) {
            Some(reason) => *reason,
            // Its turn had not come, although it was claimed in time: the next node must not take it for missed.
            None => reason_to_return(run, now, i64::MIN, self.missed.misfire_after_ms()),
        };
        let returned = self.return_rows(&reason).await?;
        drop(self.queue.drain());
        Ok(returned)
    }

    /// Returns all that the database says is queued here, with the reason that `reason` names where a row has none.
    async fn return_rows(&self, reason: &(dyn Fn(&Run) -> Reason + Sync)) -> Result<usize> {
        let (mut due, mut returned) = (DueRange::ALL, 0);
        loop {
            let mut runs = self.store.queued_of(self.membership.id(), due, BATCH_MAX as u64).await?;
            if runs.is_empty() {
                return Ok(returned);
            }
            for run in runs.iter_mut().filter(|run| run.reason == Reason::None) {
                run.reason = reason(run);
            }
            let changes: Vec<Transition> = runs.iter().map(returned_to_all).collect();
            let moved = self.store.change(&changes).await?.len();
            returned += moved;
            if moved == 0 {
                // Another changes them at this moment; what is left then is found like any lost row.
                return Ok(returned);
            }
            if moved == runs.len() {
                due = due.from_last_of(&runs);
            }
        }
    }

    async fn return_inherited(&self) -> Result<()> {
        if !self.inherits.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let (now, misfire_after_ms) = (self.clock.now_ms(), self.missed.misfire_after_ms());
        let attended_since = self.membership.attended_since(misfire_after_ms);
        let reason = |run: &Run| reason_to_return(run, now, attended_since, misfire_after_ms);
        let returned = self.return_rows(&reason).await;
        let returned = returned.inspect_err(|_| self.inherits.store(true, Ordering::Relaxed))?;
        if returned > 0 {
            tracing::info!(runs = returned, "returned runs that an earlier process of this name had queued");
        }
        Ok(())
    }

    /// Whatever went wrong: a row of this node's that should have gone out by now, is still queued
    /// and is not in the queue comes into it again. One that is in it is late for another reason:
    /// its tenant has its share under way.
    async fn look_for_lost_rows(&self, now: i64) -> Result<()> {
        let (from, overdue) = (self.looked_until.load(Ordering::Relaxed), now - OVERDUE_MS - 1);
        let end = self.store.held_after(from, overdue, LOOK_MAX).await?;
        // All of one instant: the next part begins behind it.
        let part = DueRange { after: from.saturating_sub(1), until: end.unwrap_or(overdue) };
        let late = self.store.queued_of(self.membership.id(), part, OVERDUE_MAX).await?;
        self.looked_until.store(end.map_or(i64::MIN, |end| end + 1), Ordering::Relaxed);
        let lost = late.iter().any(|run| !self.queue.holds(run));
        let all_late = late.len() as u64 >= OVERDUE_MAX;
        let loads = self.late_loads.fetch_add(u32::from(all_late), Ordering::Relaxed) + u32::from(all_late);
        if lost || loads >= COMPARE_EVERY {
            self.unsure.store(true, Ordering::Relaxed);
        }
        let is_whole = from == i64::MIN && end.is_none();
        if loads >= COMPARE_EVERY || (is_whole && !all_late) {
            self.late_loads.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Claims page by page until no more is due within `ahead_ms`, or fits. A burst takes many pages
    /// and seconds: what others have to do meanwhile comes in with it.
    async fn fill(&self, share: Option<Share>, ahead_ms: i64) -> Result<usize> {
        {
            let _alone = self.one_at_a_time.lock().await;
            self.return_inherited().await?;
            self.adopt().await?;
        }
        let mut loaded = 0;
        let mut range = Range { share, ahead_ms, missed: Missed::Unknown, refused: 0 };
        for pages in 1.. {
            let page = self.page(range, None).await?;
            loaded += page.claimed;
            if range.gets_nothing(&page) {
                break;
            }
            if page.has_missed {
                range.missed = self.end_missed(share).await?;
                continue;
            }
            if !page.is_full() {
                break;
            }
            // A share holds what is due later; what is due almost at once, of all shares, is
            // where one tenant must not stand before the others.
            let others_wait = share.is_none() && !page.heavy.is_empty();
            if others_wait && (page.is_stuck() || pages % OTHERS_EVERY == 1) {
                loaded += self.fill_others(page.heavy.clone(), Range { refused: 0, ..range }).await?;
            }
            if page.is_stuck() {
                break;
            }
        }
        Ok(loaded)
    }

    /// Claims what lies behind the rows of heavy tenants.
    async fn fill_others(&self, mut heavy: Heavy, mut range: Range) -> Result<usize> {
        let mut loaded = 0;
        loop {
            let page = self.page(range, Some(&heavy.left_out())).await?;
            loaded += page.claimed;
            if range.gets_nothing(&page) {
                return Ok(loaded);
            }
            if page.has_missed {
                range.missed = self.end_missed(range.share).await?;
                continue;
            }
            let more_left_out = heavy.join(&page.heavy) && heavy.fits();
            if !page.is_full() || (page.is_stuck() && !more_left_out) {
                return Ok(loaded);
            }
        }
    }

    /// Ends missed runs that are not to run: of this node's share first, which no other node looks at.
    async fn end_missed(&self, share: Option<Share>) -> Result<Missed> {
        let own = self.membership.view().share;
        let is_done = self.missed.end(Some(own)).await?
            && (share == Some(own) || own.total == 1 || self.missed.end(None).await?);
        let later = if is_done { 0 } else { self.missed_later.load(Ordering::Relaxed) + 1 };
        self.missed_later.store(later, Ordering::Relaxed);
        Ok(if later % MISSED_FIRST_EVERY == 0 { Missed::Ended } else { Missed::Later })
    }

    /// Claims one page of what may come in.
    async fn page(&self, range: Range, besides: Option<&LeftOut>) -> Result<Page> {
        let _alone = self.one_at_a_time.lock().await;
        let now = self.clock.now_ms();
        let held = self.rules.held_until(now).unwrap_or(i64::MIN);
        let after = if range.missed == Missed::Later { held.max(self.missed.due_before(now)) } else { held };
        let due = DueRange { after, until: now + range.ahead_ms };
        let limit = self.queue.room().min(BATCH_MAX);
        if limit == 0 {
            return Ok(Page { limit: 1, ..Page::default() });
        }
        let mut rows = match besides {
            Some(left_out) => self.store.claimable_besides(left_out, due, limit as u64).await?,
            None => self.store.claimable(range.share, due, limit as u64).await?,
        };
        let found = rows.len();
        rows.truncate(limit);
        if range.missed == Missed::Unknown && self.missed.is_among(&rows, now) {
            self.tell_late(&rows, now);
            return Ok(Page { has_missed: true, limit, found, ..Page::default() });
        }
        let Admission { admitted, refused } = self.queue.admit(rows);
        if range.missed != Missed::Later {
            self.tell_late(&admitted, now);
        }
        let heavy = if found < limit { Heavy::default() } else { Heavy::of(&admitted, &refused) };
        let tried = admitted.len();
        let claimed = self.store.claim(self.membership.id(), admitted, self.clock.now_ms()).await;
        let claimed = claimed.inspect_err(|_| self.unsure.store(true, Ordering::Relaxed))?;
        METRICS.claims_won.add(claimed.len() as u64);
        METRICS.claims_lost.add(tried.saturating_sub(claimed.len()) as u64);
        let page =
            Page { tried, claimed: claimed.len(), refused: refused.len(), limit, found, heavy, has_missed: false };
        self.queue.push(claimed);
        Ok(page)
    }

    /// Tells how late the earliest of these runs is, which are to be claimed now: those that have waited in the database for
    /// nothing but a node.
    fn tell_late(&self, runs: &[Run], now: i64) {
        let waited = runs.iter().filter(|run| run.attempt == 0 && run.reason == Reason::None);
        self.watch.claiming(waited.map(|run| now - run.due_time).max().unwrap_or(0));
    }

    /// After an error whose effect is unknown: every row that the database says is queued here comes in, unless it is
    /// in the queue or under way, or was when the rows were read.
    async fn adopt(&self) -> Result<()> {
        // Taken down before the rows are read: a doubt that arises meanwhile stays.
        if !self.unsure.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let mut known = self.queue.versions();
        let limit = (self.queue.room() + known.len()) as u64;
        let mine = self.store.queued_of(self.membership.id(), DueRange::ALL, limit.max(1)).await;
        let mine = mine.inspect_err(|_| self.unsure.store(true, Ordering::Relaxed))?;
        if mine.len() as u64 >= limit.max(1) {
            // There may be more behind them.
            self.unsure.store(true, Ordering::Relaxed);
        }
        // Twice: what left the queue meanwhile may have been dispatched since, and what came in is not missing.
        for (id, version) in self.queue.versions() {
            known.entry(id).and_modify(|known| *known = version.max(*known)).or_insert(version);
        }
        let is_missing = |run: &Run| known.get(&run.id).is_none_or(|version| *version < run.version);
        let missing: Vec<Run> = mine.into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            tracing::info!(runs = missing.len(), "took over runs queued for this node");
        }
        self.queue.push(missing);
        Ok(())
    }
}

/// The step with which a queued run goes back to all nodes.
pub(crate) fn returned_to_all(run: &Run) -> Transition {
    let to = if run.attempt > 0 { Status::Retry } else { Status::Init };
    // That it waited stays known: it was not missed.
    Transition::of(run, to, run.reason)
}

#[cfg(test)]
mod tests;
