//! One stream: the hints for its caller, and when it ends.

use super::streams::{Change, STREAM_MAX, StreamSlot};
use crate::auth::Recheck;
use crate::domain::change_feed::{ChangeKinds, ChangeScope, Subscription};
use futures_util::Stream;
use futures_util::stream::unfold;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Interval of keep-alive events.
const HELLO: Duration = Duration::from_secs(10);

/// Interval of checks whether the caller may still listen.
const RECHECK: Duration = Duration::from_secs(15);

/// What a stream says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LiveEvent {
    /// It lives.
    Hello,
    /// Something has changed.
    Changed {
        /// Name of the tenant; `None`: what belongs to none, or perhaps to each.
        tenant: Option<Arc<str>>,
        /// Of what kinds.
        kinds: ChangeKinds,
    },
    /// The last word.
    End(LiveEnd),
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveEnd {
    /// It has lasted as long as one may.
    TimeUp,
    /// Its session or token has ended, or what its caller may look at has changed.
    AccessChanged,
    /// The node stops.
    NodeStops,
}

impl LiveEnd {
    /// The word in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TimeUp => "time_up",
            Self::AccessChanged => "access_changed",
            Self::NodeStops => "node_stops",
        }
    }
}

struct Live {
    slot: StreamSlot,
    subscription: Subscription,
    recheck: Recheck,
    hello: Interval,
    rechecks: Interval,
    until: Instant,
    has_begun: bool,
    is_over: bool,
}

/// The hints about this place for a caller with this access, in portions.
pub fn follow(slot: StreamSlot, subscription: Subscription, recheck: Recheck) -> impl Stream<Item = Vec<LiveEvent>> {
    let now = Instant::now();
    let every = |period| {
        let mut interval = tokio::time::interval_at(now + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    };
    let live = Live {
        slot,
        subscription,
        recheck,
        hello: every(HELLO),
        rechecks: every(RECHECK),
        until: now + STREAM_MAX,
        has_begun: false,
        is_over: false,
    };
    unfold(live, |mut live| async move {
        if live.is_over {
            return None;
        }
        let events = live.next().await;
        live.is_over = matches!(events.last(), Some(LiveEvent::End(_)));
        Some((events, live))
    })
}

impl Live {
    async fn next(&mut self) -> Vec<LiveEvent> {
        let stop = self.slot.streams.stop.clone();
        if !self.has_begun {
            self.has_begun = true;
            tokio::select! {
                () = stop.cancelled() => return end(LiveEnd::NodeStops),
                () = self.slot.covered() => return vec![LiveEvent::Hello],
            }
        }
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return end(LiveEnd::NodeStops),
                () = tokio::time::sleep_until(self.until) => return end(LiveEnd::TimeUp),
                _ = self.rechecks.tick() => {
                    if !(self.recheck)().await {
                        return end(LiveEnd::AccessChanged);
                    }
                }
                _ = self.hello.tick() => return vec![LiveEvent::Hello],
                round = self.slot.rounds.recv() => {
                    let events = match round {
                        Ok(round) => self.heard(&round),
                        Err(RecvError::Lagged(_)) => self.heard(&[anything()]),
                        Err(RecvError::Closed) => return end(LiveEnd::NodeStops),
                    };
                    if !events.is_empty() {
                        return events;
                    }
                }
            }
        }
    }

    fn heard(&self, changes: &[Change]) -> Vec<LiveEvent> {
        let event = |change: &Change| {
            let kinds = self.subscription.of_these(change.scope, change.kinds);
            (!kinds.is_empty()).then(|| LiveEvent::Changed { tenant: change.tenant.clone(), kinds })
        };
        changes.iter().filter_map(event).collect()
    }
}

/// The hint for a client that has missed something.
fn anything() -> Change {
    Change { scope: ChangeScope::Everywhere, tenant: None, kinds: ChangeKinds::all() }
}

fn end(why: LiveEnd) -> Vec<LiveEvent> {
    vec![LiveEvent::End(why)]
}

#[cfg(test)]
mod tests {
    use super::super::streams::Streams;
    use super::*;
    use crate::domain::access::{Access, Grant, PermissionSet};
    use crate::domain::change_feed::ChangeKind;
    use crate::domain::{TenantId, UserId};
    use futures_util::StreamExt as _;
    use std::pin::pin;
    use tokio_util::sync::CancellationToken;

    fn viewer() -> Subscription {
        let permissions = PermissionSet::parse(["tasks.read", "task_logs.read"]).unwrap();
        Subscription::of(&Access::new(vec![Grant { permissions, tenant_id: TenantId(1), apps: Vec::new() }]), None)
    }

    fn change(tenant: TenantId, kind: ChangeKind) -> Change {
        Change {
            scope: ChangeScope::Tenant(tenant),
            tenant: Some(format!("t{tenant}").into()),
            kinds: [kind].into_iter().collect(),
        }
    }

    fn words(event: &LiveEvent) -> (Option<&str>, Vec<&'static str>) {
        match event {
            LiveEvent::Changed { tenant, kinds } => (tenant.as_deref(), kinds.words()),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_tells_what_its_caller_may_see_and_then_ends() {
        let streams = Arc::new(Streams::new(CancellationToken::new()));
        let slot = streams.enter(UserId(1), &viewer()).unwrap();
        streams.cover(1, viewer().watched_tenants());
        let mut live = pin!(follow(slot, viewer(), Box::new(|| Box::pin(async { true }))));
        assert_eq!(live.next().await.unwrap(), [LiveEvent::Hello]);
        streams.tell(vec![change(TenantId(2), ChangeKind::Tasks), change(TenantId(1), ChangeKind::Users)]);
        streams.tell(vec![change(TenantId(2), ChangeKind::Tasks), change(TenantId(1), ChangeKind::Tasks)]);
        let told = live.next().await.unwrap();
        assert_eq!(told.iter().map(words).collect::<Vec<_>>(), [(Some("t1"), vec!["tasks"])]);
        // It takes nothing for a while.
        for _ in 0..100 {
            streams.tell(vec![change(TenantId(1), ChangeKind::TaskLogs)]);
        }
        let told = live.next().await.unwrap();
        assert_eq!(told.iter().map(words).collect::<Vec<_>>(), [(None, vec!["tasks", "task_logs"])], "what was missed");
        streams.stop.cancel();
        let mut last = live.next().await.unwrap();
        assert_eq!(last.pop(), Some(LiveEvent::End(LiveEnd::NodeStops)), "before all that is left");
        assert_eq!(live.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_lives_an_hour_and_no_longer_than_its_callers_rights() {
        let streams = Arc::new(Streams::new(CancellationToken::new()));
        let begun = Instant::now();
        let slot = streams.enter(UserId(1), &viewer()).unwrap();
        let live = follow(slot, viewer(), Box::new(|| Box::pin(async { true })));
        let events: Vec<LiveEvent> = live.flat_map(futures_util::stream::iter).collect().await;
        assert_eq!(events.last(), Some(&LiveEvent::End(LiveEnd::TimeUp)));
        assert_eq!(begun.elapsed(), STREAM_MAX);
        assert!((355..=361).contains(&events.len()), "{} hellos", events.len());
        let begun = Instant::now();
        let slot = streams.enter(UserId(1), &viewer()).unwrap();
        let live = follow(slot, viewer(), Box::new(|| Box::pin(async { false })));
        let events: Vec<LiveEvent> = live.flat_map(futures_util::stream::iter).collect().await;
        assert_eq!(events.last(), Some(&LiveEvent::End(LiveEnd::AccessChanged)));
        assert_eq!(begun.elapsed(), RECHECK);
    }
}
