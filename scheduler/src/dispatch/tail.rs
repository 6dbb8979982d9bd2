//! Following the output of a run: page after page as it is written, until the attempt has ended.
//! The executor is polled; what is sent to the client is bounded in time and size,
//! and so is the number of clients that a node serves.

use super::output::{EndSource, OutputReader, OutputStatus, Reading, Wanted};
use crate::auth::Recheck;
use crate::domain::{Run, TenantId, UserId};
use crate::store::{ExecutorStore, Result};
use carillon_protocol::OUTPUT_PAGE_BYTES;
use futures_util::Stream;
use futures_util::future::BoxFuture;
use futures_util::stream::unfold;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Tails of a node at once …
const TAILS_MAX: usize = 64;

/// … of these about one tenant's runs, so that there is room for others …
const TAILS_OF_TENANT_MAX: usize = 32;

/// … and for one user, over all their tokens and sessions.
const TAILS_OF_USER_MAX: usize = 8;

/// A tail ends after this long; a client that wants more starts another where this one ended.
const TAIL_MAX: Duration = Duration::from_mins(5);

/// A tail ends after so many bytes, which no executor keeps of one run by default.
const TAIL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Polling interval: after text, and the longest when there is none.
const LOOK: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));

/// Keep-alive interval, so that a connection without a client is detected; and the interval between two looks at whether
/// the caller may still read.
const QUIET: Duration = Duration::from_secs(10);

/// Reads the row of the run that is followed; `None` when there is none any more.
pub type RunSource = Box<dyn Fn() -> BoxFuture<'static, Result<Option<Run>>> + Send + Sync>;

/// The tails of a node: how many there are, and when they must end.
#[derive(Debug, Default)]
pub struct Tails {
    slots: Mutex<Slots>,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct Slots {
    taken: HashMap<u64, Taken>,
    last: u64,
}

#[derive(Debug)]
struct Taken {
    since: Instant,
    by: TailClient,
}

/// Who follows what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TailClient {
    /// The user's id; 0 is the configured token.
    pub user_id: UserId,
    /// Whose run it is.
    pub tenant_id: TenantId,
}

/// Why no further tail is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTailSlot {
    /// The caller has too many.
    #[error(
        "you already follow {TAILS_OF_USER_MAX} outputs at this node, which is the limit; close one, or wait until one ends"
    )]
    User,
    /// Of the tenant's runs too many are followed.
    #[error(
        "{TAILS_OF_TENANT_MAX} outputs of this tenant are followed at this node, which is the limit; try again later, or at another node"
    )]
    Tenant,
    /// There are too many.
    #[error("{TAILS_MAX} outputs are followed at this node, which is the limit; try again later, or at another node")]
    Node,
    /// The node stops.
    #[error("this node stops; follow the output at another")]
    Stops,
}

/// A slot among the tails of a node; free again when this is dropped.
#[derive(Debug)]
pub struct TailSlot {
    tails: Arc<Tails>,
    number: u64,
}

impl Tails {
    /// A slot for one more.
    ///
    /// # Errors
    /// There are as many as may be, or the node stops.
    pub fn enter(self: &Arc<Self>, by: TailClient) -> std::result::Result<TailSlot, NoTailSlot> {
        let mut slots = self.lock();
        // A client that reads nothing keeps its connection, but not its slot.
        slots.taken.retain(|_, taken| taken.since.elapsed() < TAIL_MAX + QUIET);
        if self.closing.is_cancelled() {
            return Err(NoTailSlot::Stops);
        }
        if slots.count(|_| true) >= TAILS_MAX {
            return Err(NoTailSlot::Node);
        }
        if slots.count(|other| other.user_id == by.user_id) >= TAILS_OF_USER_MAX {
            return Err(NoTailSlot::User);
        }
        if slots.count(|other| other.tenant_id == by.tenant_id) >= TAILS_OF_TENANT_MAX {
            return Err(NoTailSlot::Tenant);
        }
        slots.last += 1;
        let number = slots.last;
        slots.taken.insert(number, Taken { since: Instant::now(), by });
        Ok(TailSlot { tails: Arc::clone(self), number })
    }

    /// Ends all of them: the node stops.
    pub fn close(&self) {
        self.closing.cancel();
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    fn count(&self, is_meant: impl Fn(&TailClient) -> bool) -> usize {
        self.taken.values().filter(|taken| is_meant(&taken.by)).count()
    }
}

impl Drop for TailSlot {
    fn drop(&mut self) {
        self.tails.lock().taken.remove(&self.number);
    }
}

/// What a tail says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TailEvent {
    /// Text, or another standing than before.
    Page(Reading),
    /// Nothing new.
    Quiet,
    /// The last word.
    End(TailEnd),
}

/// Why a tail ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailEnd {
    /// Nothing more will come.
    Complete,
    /// The run's row is gone.
    RunGone,
    /// It has lasted as long as one may; go on where it ended.
    TimeUp,
    /// It has said as much as one may; go on where it ended.
    TooMuch,
    /// The session or token has ended, or the caller's access has changed.
    AccessChanged,
    /// The node stops; go on at another.
    NodeStops,
}

impl TailEnd {
    /// The word in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::RunGone => "run_gone",
            Self::TimeUp => "time_up",
            Self::TooMuch => "too_much",
            Self::AccessChanged => "access_changed",
            Self::NodeStops => "node_stops",
        }
    }
}

struct Tail<S: ?Sized> {
    reader: Arc<OutputReader<S>>,
    source: RunSource,
    may_read: Recheck,
    allowed_at: Instant,
    slot: TailSlot,
    /// As last read.
    run: Run,
    attempt: i32,
    from: u64,
    began: Instant,
    said: u64,
    status: Option<OutputStatus>,
    end_source: EndSource,
    /// Before the next look.
    pause: Option<Duration>,
    is_complete: bool,
    is_over: bool,
}

/// Follows an attempt of `run` from byte `from` on; of `attempt`, or of the latest one.
pub fn follow<S: ExecutorStore + ?Sized + 'static>(
    reader: Arc<OutputReader<S>>,
    slot: TailSlot,
    run: Run,
    source: RunSource,
    may_read: Recheck,
    (attempt, from): (Option<i32>, u64),
) -> impl Stream<Item = TailEvent> {
    let tail = Tail {
        reader,
        source,
        may_read,
        allowed_at: Instant::now(),
        slot,
        attempt: attempt.unwrap_or(run.attempt).max(1),
        run,
        from,
        began: Instant::now(),
        said: 0,
        status: None,
        end_source: EndSource::Executor,
        pause: None,
        is_complete: false,
        is_over: false,
    };
    unfold(tail, |mut tail| async move {
        if tail.is_over {
            return None;
        }
        let event = tail.next().await;
        tail.is_over = matches!(event, TailEvent::End(_));
        Some((event, tail))
    })
}

impl<S: ExecutorStore + ?Sized> Tail<S> {
    async fn next(&mut self) -> TailEvent {
        let begin = Instant::now();
        loop {
            if let Some(end) = self.end().await {
                return TailEvent::End(end);
            }
            match self.look().await {
                Ok(Some(reading)) => {
                    if let Some(event) = self.take(reading) {
                        return event;
                    }
                }
                Ok(None) => return TailEvent::End(TailEnd::RunGone),
                // The database is away: what the executor says can wait until it is back.
                Err(error) => {
                    tracing::debug!(%error, log = self.run.id.0, "the row of a followed run could not be read");
                    self.wait_longer();
                }
            }
            if begin.elapsed() >= QUIET {
                return TailEvent::Quiet;
            }
        }
    }

    /// Whether it must end; waits until it is time for the next look if not.
    async fn end(&mut self) -> Option<TailEnd> {
        if self.is_complete {
            return Some(TailEnd::Complete);
        }
        if self.said >= TAIL_BYTES_MAX {
            return Some(TailEnd::TooMuch);
        }
        let pause = self.pause.unwrap_or_default();
        if tokio::time::timeout(pause, self.slot.tails.closing.cancelled()).await.is_ok() {
            return Some(TailEnd::NodeStops);
        }
        if self.allowed_at.elapsed() >= QUIET {
            if !(self.may_read)().await {
                return Some(TailEnd::AccessChanged);
            }
            self.allowed_at = Instant::now();
        }
        (self.began.elapsed() >= TAIL_MAX).then_some(TailEnd::TimeUp)
    }

    async fn look(&mut self) -> Result<Option<Reading>> {
        // An executor that says that the attempt runs, and will say when it has ended, needs no row beside it.
        if self.end_source == EndSource::Row
            || !matches!(self.status, None | Some(OutputStatus::Running | OutputStatus::Ended))
        {
            let Some(run) = (self.source)().await? else { return Ok(None) };
            self.run = run;
        }
        let wanted = Wanted { attempt: Some(self.attempt), from: self.from, limit: *OUTPUT_PAGE_BYTES.end() };
        self.reader.read(&self.run, wanted).await.map(Some)
    }

    /// What there is to say of a reading, if anything.
    fn take(&mut self, reading: Reading) -> Option<TailEvent> {
        self.from = reading.next;
        self.said += reading.text.len() as u64;
        self.is_complete = reading.is_final;
        if reading.text.is_empty() {
            self.wait_longer();
        } else {
            self.pause = (!reading.more).then_some(LOOK.0);
        }
        let is_change = !reading.text.is_empty() || self.status != Some(reading.status);
        self.status = Some(reading.status);
        self.end_source = reading.end_source;
        is_change.then_some(TailEvent::Page(reading))
    }

    fn wait_longer(&mut self) {
        self.pause = Some(self.pause.map_or(LOOK.0, |pause| (pause * 2).min(LOOK.1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(user_id: UserId, tenant_id: TenantId) -> TailClient {
        TailClient { user_id, tenant_id }
    }

    #[tokio::test(start_paused = true)]
    async fn places_are_bounded_and_come_back() {
        let tails = Arc::new(Tails::default());
        let others = |number: usize| by(UserId(number as i64), TenantId(number as i64));
        let mut slots: Vec<TailSlot> = (0..TAILS_MAX).map_while(|number| tails.enter(others(number)).ok()).collect();
        assert_eq!(slots.len(), TAILS_MAX);
        assert_eq!(tails.enter(others(TAILS_MAX)).err(), Some(NoTailSlot::Node));
        slots.pop();
        let last = tails.enter(others(TAILS_MAX)).expect("a place that has come back");
        // A client that reads nothing never learns that its time is up.
        tokio::time::advance(TAIL_MAX + QUIET * 2).await;
        assert!(tails.enter(others(0)).is_ok());
        drop((slots, last));
        tails.close();
        assert_eq!(tails.enter(others(0)).err(), Some(NoTailSlot::Stops));
    }

    #[test]
    fn no_user_and_no_tenant_takes_all_of_them() {
        let tails = Arc::new(Tails::default());
        let take = |user, count| -> Vec<TailSlot> {
            (0..count).map_while(|_| tails.enter(by(user, TenantId(1))).ok()).collect()
        };
        let mut of_ann = take(UserId(1), TAILS_MAX);
        assert_eq!(of_ann.len(), TAILS_OF_USER_MAX);
        assert_eq!(tails.enter(by(UserId(1), TenantId(2))).err(), Some(NoTailSlot::User), "in whichever tenant");
        let of_others: Vec<TailSlot> = (2..20).flat_map(|user| take(UserId(user), TAILS_OF_USER_MAX)).collect();
        assert_eq!(of_ann.len() + of_others.len(), TAILS_OF_TENANT_MAX);
        assert_eq!(tails.enter(by(UserId(20), TenantId(1))).err(), Some(NoTailSlot::Tenant));
        let elsewhere = tails.enter(by(UserId(20), TenantId(2))).expect("another tenant has room");
        of_ann.pop();
        let again = tails.enter(by(UserId(1), TenantId(1))).expect("her place has come back");
        drop((elsewhere, again));
    }
}
