//! The executors that are online, as this node last read them, and what those that beat here
//! said they hold.
//!
//! A look reads what heartbeats, registrations and farewells have left since the last one, and of executors whose description
//! has changed the description. Everything is read again now and then: a commit may come later than its time.

use crate::domain::clock_step::AHEAD_MAX_MS;
use crate::domain::executor::Pulse;
use crate::domain::routing::{Executors, Fleet};
use crate::domain::{AppId, Executor, ExecutorId, TenantId};
use crate::store::{ExecutorStore, Result};
use carillon_protocol::{EXECUTOR_RUNS_MAX, RunKey};
use dashmap::DashMap;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// A look reads again what is at most so much older than the newest that is known, ms: commits are not in the order of
/// their times. What comes later still is found with the executor's next heartbeat.
const OVERLAP_MS: i64 = 500;

/// Everything is read again after this long, ms: a farewell whose commit came late has no next heartbeat.
const READ_ALL_MS: i64 = 30_000;

/// How long it is known when an executor went: longer than anyone waits for what it ran.
const GONE_KEPT: Duration = Duration::from_hours(24);

/// Runs that executors of one app name at most, all together: a node keeps what each of them has named until its next
/// heartbeat.
pub const APP_RUNS_MAX: usize = 10 * EXECUTOR_RUNS_MAX;

/// Room for runs that an executor names, for as long as they are kept; none for none.
#[derive(Debug, Default)]
pub struct Room {
    _permit: Option<OwnedSemaphorePermit>,
}

/// What an executor said it holds.
#[derive(Debug)]
pub struct Snapshot {
    /// When it was taken, by the executor's estimate of the cluster clock, ms.
    pub taken_at: i64,
    /// When it came here, ms.
    pub received_at: i64,
    /// How often the database's clock had been set by then, as far as was known here.
    pub times_set: u64,
    /// Held, running, or ended without an acknowledgement.
    pub runs: HashSet<RunKey>,
    /// Those of them that it was told to drop. It may not have heard it.
    pub cancelled: HashSet<RunKey>,
    /// Before this instant its runs may have been given away; a list taken before it may lack some of them. ms, 0 for never.
    pub doubted_until: i64,
    /// For `runs`.
    pub room: Room,
}

/// Who is online, as it was read.
pub struct Seen {
    reading: u64,
    times: Times,
    what: What,
}

enum What {
    All(Vec<Executor>),
    Changes { pulses: Vec<Pulse>, described: Vec<Executor> },
}

/// What heartbeats are compared with, ms.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// At or after this instant they are of the living.
    alive_since: i64,
    now: i64,
}

type App = (TenantId, AppId);

/// An executor that could not be reached is left out of routing for this long, ms.
const AVOID_MS: i64 = 5_000;

/// Online executors. Reads never wait for the database.
#[derive(Default)]
pub struct Registry {
    fleets: DashMap<App, Fleet>,
    by_id: DashMap<ExecutorId, Arc<Executor>>,
    snapshots: DashMap<ExecutorId, Snapshot>,
    /// Room that is left for what executors of an app name.
    rooms: DashMap<AppId, Arc<Semaphore>>,
    /// When executors went that were online here, by this machine's own clock.
    gone: DashMap<ExecutorId, Instant>,
    /// Heartbeats from the future, and since when, by this machine's own clock, each has stood there.
    ahead: DashMap<ExecutorId, (i64, Instant)>,
    /// Executors that could not be reached, and when (ms) that was seen.
    avoided: DashMap<ExecutorId, i64>,
    /// Fleets without those.
    trusted: DashMap<App, Trusted>,
    /// Apps with an executor that has come since the last look at what waits for one.
    come: Mutex<HashSet<App>>,
    readings: AtomicU64,
    shapes: AtomicU64,
    departures: AtomicU64,
    /// Plain executors online.
    plain: AtomicUsize,
    read: Mutex<ReadSoFar>,
}

/// Whether it was seen within [`AVOID_MS`], and not by a clock that was set back since; both in ms.
fn is_lately(seen_at: i64, now: i64) -> bool {
    (seen_at..seen_at.saturating_add(AVOID_MS)).contains(&now)
}

/// A fleet without executors that are avoided.
struct Trusted {
    whole: Executors,
    whole_shape: u64,
    without: BTreeSet<ExecutorId>,
    fleet: Fleet,
}

/// How far the database has been read.
#[derive(Debug, Default)]
struct ReadSoFar {
    /// Newest heartbeat that is known, ms, and not by a clock that was set back since.
    newest: i64,
    /// When everything was read last, ms; none before the first time.
    all_at: Option<i64>,
    /// Since when a heartbeat counted as alive then and later, ms.
    alive_since: i64,
    /// By executor, the number of the reading that said something of it last: what a slower, earlier one says of it
    /// is out of date.
    said_by: BTreeMap<ExecutorId, u64>,
}

impl Registry {
    /// Reads who is online at `now` (ms): a heartbeat at or after `alive_since` (ms). What is due goes to them once this
    /// is taken.
    pub async fn read(&self, store: &dyn ExecutorStore, alive_since: i64, now: i64) -> Result<Seen> {
        let (reading, times) = (self.begin(), Times { alive_since, now });
        let since = {
            let read = self.read_so_far();
            // The instant goes back after an outage: those count again that were too old before.
            let goes_on = read.all_at.is_some_and(|at| (at..at + READ_ALL_MS).contains(&now));
            let is_later = alive_since >= read.alive_since - OVERLAP_MS;
            (goes_on && is_later).then(|| alive_since.max(read.newest.min(now) - OVERLAP_MS))
        };
        let what = match since {
            None => {
                let mut online = store.executors(alive_since).await?;
                online.retain(|executor| self.goes_on(executor.id, executor.heartbeat_at, times));
                What::All(online)
            }
            Some(since) => {
                let mut pulses = store.pulses(since).await?;
                pulses.retain(|pulse| pulse.gone_at > 0 || self.goes_on(pulse.id, pulse.heartbeat_at, times));
                let unknown: Vec<ExecutorId> = pulses.iter().filter(|p| self.is_news(p)).map(|p| p.id).collect();
                What::Changes { described: store.executors_among(&unknown, alive_since).await?, pulses }
            }
        };
        Ok(Seen { reading, times, what })
    }

    /// Takes what was read.
    pub fn take(&self, Seen { reading, times, what }: Seen) {
        match what {
            What::All(online) => self.take_all(reading, online, times),
            What::Changes { pulses, described } => self.take_pulses(reading, &pulses, described, times),
        }
    }

    /// Reads one executor, and those of its app that were known at `address`: one process listens there.
    pub async fn refresh_one(
        &self,
        store: &dyn ExecutorStore,
        id: ExecutorId,
        (app, address): (App, Option<&str>),
        alive_since: i64,
    ) -> Result<()> {
        let reading = self.begin();
        let mut ids = BTreeSet::from([id]);
        if let (Some(address), Some(fleet)) = (address, self.fleets.get(&app)) {
            ids.extend(at_address(&fleet, address));
        }
        let ids: Vec<ExecutorId> = ids.into_iter().collect();
        let online = store.executors_among(&ids, alive_since).await?;
        let gone = ids.into_iter().filter(|id| online.iter().all(|executor| executor.id != *id)).collect();
        self.apply(reading, online, gone);
        Ok(())
    }

    /// Executors of one app that may be tried at `now` (ms). When every one is being avoided,
    /// all are: a wrong suspicion must not stop an app.
    pub fn fleet(&self, tenant_id: TenantId, app_id: AppId, now: i64) -> Option<Fleet> {
        let whole = self.fleets.get(&(tenant_id, app_id))?.clone();
        let avoided = self.avoided.iter().filter(|entry| is_lately(*entry.value(), now)).map(|entry| *entry.key());
        let without: BTreeSet<ExecutorId> = avoided.filter(|id| self.is_of(*id, whole.app())).collect();
        Some(if without.is_empty() || without.len() >= whole.executors().len() {
            whole
        } else {
            self.trusted(&whole, without)
        })
    }

    /// All executors of one app that are online, in the order of (address, id).
    pub fn online(&self, tenant_id: TenantId, app_id: AppId) -> Vec<Arc<Executor>> {
        self.fleets.get(&(tenant_id, app_id)).map(|fleet| fleet.executors().to_vec()).unwrap_or_default()
    }

    /// How many executors of one app are online, and whether one of them listens at `address`.
    pub fn crowd(&self, tenant_id: TenantId, app_id: AppId, address: &str) -> (usize, bool) {
        let fleet = self.fleets.get(&(tenant_id, app_id));
        fleet.map_or((0, false), |fleet| (fleet.executors().len(), at_address(&fleet, address).next().is_some()))
    }

    /// The executor, if it is online.
    pub fn find(&self, id: ExecutorId) -> Option<Arc<Executor>> {
        self.by_id.get(&id).map(|executor| Arc::clone(&executor))
    }

    /// Whether any executor that is online is plain.
    pub fn has_plain(&self) -> bool {
        self.plain.load(Ordering::Relaxed) > 0
    }

    /// Whether one of the app's executors is plain.
    pub fn is_plain(&self, app: App) -> bool {
        self.fleets.get(&app).is_some_and(|fleet| fleet.has_plain())
    }

    /// How many are online.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether none is online.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// How many executors have gone so far.
    pub fn departures(&self) -> u64 {
        self.departures.load(Ordering::Relaxed)
    }

    /// For how long an executor that was online here has been missing, by this machine's own clock. The times in the database
    /// may be by a clock that was set back for a moment.
    pub fn missing_for(&self, id: ExecutorId) -> Option<Duration> {
        self.gone.get(&id).map(|went_at| went_at.elapsed())
    }

    /// Ids of everyone online.
    pub fn ids(&self) -> Vec<ExecutorId> {
        self.by_id.iter().map(|entry| *entry.key()).collect()
    }

    /// Everyone online.
    pub fn everyone(&self) -> Vec<Arc<Executor>> {
        self.by_id.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// Leaves an executor out of routing for some seconds from `now` (ms) on, or until its next heartbeat.
    pub fn avoid(&self, id: ExecutorId, now: i64) {
        self.avoided.insert(id, now);
    }

    /// Whether routing leaves this executor out at `now` (ms) where there is another.
    pub fn is_avoided(&self, id: ExecutorId, now: i64) -> bool {
        self.avoided.get(&id).is_some_and(|seen_at| is_lately(*seen_at, now))
    }

    /// Apps (tenant, app) of which an executor has come, or takes what it did not take before, since
    /// this was asked last.
    pub fn take_come(&self) -> HashSet<App> {
        std::mem::take(&mut *self.come.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes what an executor said.
    pub fn heard(&self, id: ExecutorId, snapshot: Snapshot) {
        if self.avoided.remove(&id).is_some()
            && let Some(executor) = self.find(id)
        {
            self.note_come((executor.tenant_id, executor.app_id));
        }
        self.snapshots.insert(id, snapshot);
    }

    /// Room for so many runs that an executor of the app names, beside what all of them have named here last; none when that
    /// would be more than [`APP_RUNS_MAX`].
    pub fn room(&self, app: AppId, runs: usize) -> Option<Room> {
        if runs == 0 {
            return Some(Room::default());
        }
        let all = self.rooms.entry(app).or_insert_with(|| Arc::new(Semaphore::new(APP_RUNS_MAX))).clone();
        all.try_acquire_many_owned(u32::try_from(runs).ok()?).ok().map(|permit| Room { _permit: Some(permit) })
    }

    /// Whether the executor beat here since `since` (ms).
    pub fn heard_lately(&self, id: ExecutorId, since: i64) -> bool {
        self.snapshots.get(&id).is_some_and(|snapshot| snapshot.received_at >= since)
    }

    /// Until when (ms) runs of the executor may have been given away that none of its lists here has shown yet.
    pub fn doubted_until(&self, id: ExecutorId) -> i64 {
        self.snapshots.get(&id).map_or(0, |snapshot| snapshot.doubted_until)
    }

    /// Of these runs those that the executor was told to drop with its last heartbeat here.
    pub fn told_to_drop(&self, id: ExecutorId, runs: &[RunKey]) -> Vec<RunKey> {
        let snapshot = self.snapshots.get(&id);
        let told = |run: &&RunKey| snapshot.as_ref().is_some_and(|snapshot| snapshot.cancelled.contains(run));
        runs.iter().filter(told).copied().collect()
    }

    /// Executors that beat here since `since` (ms).
    pub fn heard_since(&self, since: i64) -> Vec<ExecutorId> {
        self.snapshots.iter().filter(|entry| entry.received_at >= since).map(|entry| *entry.key()).collect()
    }

    /// Whether the executor's last snapshot is newer than `after` (ms) and does not hold the run. The database's clock has been
    /// set so often by now: what came before the last time is not newer, whatever its time says.
    pub fn denies(&self, id: ExecutorId, run: RunKey, after: i64, times_set: u64) -> bool {
        let lacks = |list: &Snapshot| list.times_set == times_set && list.taken_at > after && !list.runs.contains(&run);
        self.snapshots.get(&id).is_some_and(|list| lacks(&list))
    }

    fn begin(&self) -> u64 {
        self.readings.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Whether this heartbeat is one of an executor that still beats: one from the future was written before the clock was set
    /// back, or by a server whose clock is ahead. Then it counts for as long as any, by this machine's own clock.
    fn goes_on(&self, id: ExecutorId, heartbeat_at: i64, Times { alive_since, now }: Times) -> bool {
        let is_ahead = heartbeat_at > now + AHEAD_MAX_MS;
        let stood_since = self.ahead.get(&id).filter(|seen| seen.0 == heartbeat_at).map(|seen| seen.1);
        let Some(since) = stood_since else {
            if is_ahead {
                self.ahead.insert(id, (heartbeat_at, Instant::now()));
            } else {
                self.ahead.remove(&id);
            }
            return true;
        };
        i64::try_from(since.elapsed().as_millis()).is_ok_and(|stood_ms| stood_ms <= now - alive_since)
    }

    /// Whether this speaks of an executor that is not known as it is now.
    fn is_news(&self, pulse: &Pulse) -> bool {
        pulse.gone_at == 0 && self.find(pulse.id).is_none_or(|known| known.described_at != pulse.described_at)
    }

    /// Everything, as it was read at once.
    fn take_all(&self, reading: u64, executors: Vec<Executor>, Times { alive_since, now }: Times) {
        let newest = executors.iter().map(|executor| executor.heartbeat_at).max();
        let ids: HashSet<ExecutorId> = executors.iter().map(|executor| executor.id).collect();
        let gone = self.ids().into_iter().filter(|id| !ids.contains(id)).collect();
        self.apply(reading, executors, gone);
        let mut read = self.read_so_far();
        // What slower readings could still say of those that have gone, they have said by now.
        read.said_by.retain(|id, said_by| *said_by >= reading || self.by_id.contains_key(id));
        *read = ReadSoFar {
            newest: newest.unwrap_or(alive_since).min(now),
            all_at: Some(now),
            alive_since,
            said_by: std::mem::take(&mut read.said_by),
        };
        drop(read);
        self.snapshots.retain(|id, _| self.by_id.contains_key(id));
        self.gone.retain(|_, went_at| went_at.elapsed() < GONE_KEPT);
        self.avoided.retain(|id, _| self.by_id.contains_key(id));
        self.ahead.retain(|_, (_, since)| since.elapsed() < GONE_KEPT);
    }

    /// What has changed since, and the descriptions of those that were not known so.
    fn take_pulses(&self, reading: u64, pulses: &[Pulse], mut online: Vec<Executor>, times: Times) {
        let Times { alive_since, now } = times;
        let described: HashSet<ExecutorId> = online.iter().map(|executor| executor.id).collect();
        let mut gone = HashSet::new();
        for pulse in pulses {
            if pulse.gone_at > 0 {
                gone.insert(pulse.id);
            } else if let Some(known) = self.find(pulse.id).filter(|_| !described.contains(&pulse.id)) {
                online.push(known.at_pulse(pulse));
            }
        }
        let heard: HashSet<ExecutorId> = pulses.iter().map(|pulse| pulse.id).collect();
        // All heartbeats from the future have been read.
        let is_out_of_time = |e: &Executor| e.heartbeat_at < alive_since || e.heartbeat_at > now + AHEAD_MAX_MS;
        let is_silent = |e: &Executor| is_out_of_time(e) && !heard.contains(&e.id);
        gone.extend(self.by_id.iter().filter(|entry| is_silent(entry.value())).map(|entry| *entry.key()));
        let newest = pulses.iter().map(|pulse| pulse.heartbeat_at).max();
        self.apply(reading, online, gone);
        let mut read = self.read_so_far();
        read.newest = read.newest.max(newest.unwrap_or(i64::MIN)).min(now);
        read.alive_since = alive_since;
    }

    /// Takes what one reading says of some executors, as far as no later one has said something of them.
    fn apply(&self, reading: u64, online: Vec<Executor>, gone: HashSet<ExecutorId>) {
        let mut read = self.read_so_far();
        let mut is_newer = |id: ExecutorId| {
            let said_by = read.said_by.entry(id).or_default();
            let is_newer = *said_by < reading;
            *said_by = reading.max(*said_by);
            is_newer
        };
        let mut changed: BTreeMap<App, Changed> = BTreeMap::new();
        for executor in online.into_iter().filter(|executor| is_newer(executor.id)) {
            let app = (executor.tenant_id, executor.app_id);
            let executor = Arc::new(executor);
            let before = self.by_id.insert(executor.id, Arc::clone(&executor));
            self.gone.remove(&executor.id);
            self.count_plain(before.as_ref().is_some_and(|before| before.plain), executor.plain);
            if before.as_ref().is_none_or(|before| executor.may_take_more_than(before)) {
                self.note_come(app);
            }
            let changed = changed.entry(app).or_default();
            changed.shape |= before.is_none_or(|before| !executor.routes_like(&before));
            changed.newer.push(executor);
        }
        for id in gone.into_iter().filter(|id| is_newer(*id)) {
            if let Some((_, executor)) = self.by_id.remove(&id) {
                self.departures.fetch_add(1, Ordering::Relaxed);
                self.gone.insert(id, Instant::now());
                self.count_plain(executor.plain, false);
                changed.entry((executor.tenant_id, executor.app_id)).or_default().left.insert(id);
            }
            self.snapshots.remove(&id);
            self.avoided.remove(&id);
        }
        for (app, changed) in changed {
            self.change(app, &changed);
        }
    }

    fn count_plain(&self, before: bool, now: bool) {
        match (before, now) {
            (false, true) => drop(self.plain.fetch_add(1, Ordering::Relaxed)),
            (true, false) => drop(self.plain.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
    }

    /// Puts the fleet of an app together anew.
    fn change(&self, app: App, Changed { newer, left, shape }: &Changed) {
        let before = self.fleets.get(&app).map(|fleet| fleet.clone());
        let fleet = match before {
            Some(before) if !shape && left.is_empty() => before.with(newer),
            before => {
                let replaced: HashSet<ExecutorId> = newer.iter().map(|executor| executor.id).collect();
                let stays = |e: &&Arc<Executor>| !left.contains(&e.id) && !replaced.contains(&e.id);
                let others = before.iter().flat_map(|fleet| fleet.executors().iter()).filter(stays);
                let shape = self.shapes.fetch_add(1, Ordering::Relaxed) + 1;
                Fleet::new(app, others.chain(newer).cloned().collect(), shape)
            }
        };
        if fleet.executors().is_empty() {
            self.fleets.remove(&app);
            self.trusted.remove(&app);
        } else {
            self.fleets.insert(app, fleet);
        }
    }

    /// The fleet without some of it; as long as it is the same without the same, it has the same shape.
    fn trusted(&self, whole: &Fleet, without: BTreeSet<ExecutorId>) -> Fleet {
        let app = whole.app();
        let known =
            self.trusted.get(&app).filter(|known| (known.whole_shape, &known.without) == (whole.shape(), &without));
        if let Some(known) = known.as_ref().filter(|known| whole.is(&known.whole)) {
            return known.fleet.clone();
        }
        let shape = known.as_ref().map(|known| known.fleet.shape());
        drop(known);
        let shape = shape.unwrap_or_else(|| self.shapes.fetch_add(1, Ordering::Relaxed) + 1);
        let others = whole.executors().iter().filter(|executor| !without.contains(&executor.id)).cloned();
        let fleet = Fleet::new(app, others.collect(), shape);
        let (whole_shape, whole) = (whole.shape(), Arc::clone(whole.executors()));
        self.trusted.insert(app, Trusted { whole, whole_shape, without, fleet: fleet.clone() });
        fleet
    }

    fn is_of(&self, id: ExecutorId, app: App) -> bool {
        self.by_id.get(&id).is_some_and(|executor| (executor.tenant_id, executor.app_id) == app)
    }

    fn note_come(&self, app: App) {
        self.come.lock().unwrap_or_else(PoisonError::into_inner).insert(app);
    }

    fn read_so_far(&self) -> MutexGuard<'_, ReadSoFar> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What has changed in the fleet of an app.
#[derive(Default)]
struct Changed {
    newer: Vec<Arc<Executor>>,
    left: BTreeSet<ExecutorId>,
    /// Whether routing sees a difference beside loads.
    shape: bool,
}

/// Executors of a fleet that listen at `address`.
fn at_address(fleet: &Fleet, address: &str) -> impl Iterator<Item = ExecutorId> {
    let executors = fleet.executors();
    let from = executors.partition_point(|executor| executor.address.as_str() < address);
    executors[from..].iter().take_while(move |executor| executor.address == address).map(|executor| executor.id)
}

#[cfg(test)]
mod tests;
