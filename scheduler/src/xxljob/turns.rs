//! The thread that holds runs and sends them. It alone owns lanes and connections, so nothing is locked.
//!
//! Each turn sends what is due, before anything else; then it takes what has come: runs to hold, replies, connections. A
//! bucket is thus written whole before a reply to it is read.

use super::connection::{Event, LaneId, News, Tasks};
use super::held::{Held, Now};
use super::lane::{Lane, Means};
use super::names::Ends;
use crate::dispatch::Uncarried;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Addresses with a lane. More are refused.
const LANES_MAX: usize = 20_000;

/// Runs that leave a lane before the next lane has its turn.
const TURN_RUNS: usize = 16;

/// Events that are taken before it is looked again what is due.
const TURN_EVENTS: usize = 32;

/// Runs to hold that are taken before it is looked again what is due.
const TURN_ORDERS: usize = 256;

/// After runs have come, others are gathered for so long: each wake costs as much as a run.
const GATHER: Duration = Duration::from_millis(2);

/// The runtime's timer counts whole milliseconds and may be two of them late. So the thread itself sleeps the last of the way
/// to an instant, µs.
const COARSE_US: i64 = 2_500;

/// While replies are awaited it looks for them so often on that way, µs.
const FINE_US: i64 = 300;

/// The longest sleep while a run waits for its instant, µs: the cluster clock may be set meanwhile.
const SLEEP_US_MAX: i64 = 50_000;

/// How often time-outs are looked for while something is held or awaited, and while connections are kept, µs.
const SWEEP_US: i64 = 100_000;
const SWEEP_IDLE_US: i64 = 1_000_000;

/// The longest sleep with nothing to do, µs.
const IDLE_US: i64 = 60_000_000;

/// What the thread is told.
pub enum Order {
    /// Holds a run for the executor there.
    Hold(Ends, Held),
    /// Gives back what was not sent, waits for replies, and ends.
    Stop,
}

/// The thread's state.
pub struct Turns {
    means: Means,
    orders: mpsc::UnboundedReceiver<Order>,
    events: mpsc::Receiver<Event>,
    lanes: HashMap<LaneId, Lane>,
    by_ends: HashMap<Ends, LaneId>,
    last: LaneId,
    /// Which lanes have runs due at a millisecond, cluster time.
    agenda: BTreeMap<i64, Vec<LaneId>>,
    /// Orders are taken from then on.
    orders_from: Instant,
    /// When time-outs are looked for next, by `Clock::local_us`.
    sweep_at_us: i64,
    is_stopping: bool,
}

/// How the thread sleeps.
enum Pause {
    /// Until then, or until something comes.
    Coarse(Duration),
    /// So long, whatever comes, and not longer.
    Fine(Duration),
}

impl Pause {
    async fn over(self) {
        match self {
            Self::Coarse(pause) => tokio::time::sleep(pause).await,
            Self::Fine(pause) => {
                std::thread::sleep(pause);
                // The runtime looks what has come meanwhile.
                tokio::task::yield_now().await;
            }
        }
    }
}

fn micros(us: i64) -> Duration {
    Duration::from_micros(us.max(0) as u64)
}

fn stopping() -> Uncarried {
    Uncarried::NotDelivered("this node is stopping".to_owned())
}

impl Turns {
    /// With nothing to do. Whoever drops the other end of `orders` stops it, too.
    pub fn new(orders: mpsc::UnboundedReceiver<Order>, make: impl FnOnce(Tasks) -> Means) -> Self {
        let (tasks, events) = Tasks::new();
        let means = make(tasks);
        let now_us = means.clock.local_us();
        Self {
            means,
            orders,
            events,
            lanes: HashMap::new(),
            by_ends: HashMap::new(),
            last: LaneId(0),
            agenda: BTreeMap::new(),
            orders_from: Instant::now(),
            sweep_at_us: now_us,
            is_stopping: false,
        }
    }

    /// Turns until it is stopped. A panic in one of its tasks is its own.
    pub async fn run(mut self) {
        let mut events = Vec::with_capacity(TURN_EVENTS);
        loop {
            self.release();
            self.sweep();
            if self.is_stopping && !self.is_awaiting() {
                return;
            }
            let pause = self.pause();
            let takes_orders = !self.is_stopping && Instant::now() >= self.orders_from;
            tokio::select! {
                biased;
                panic = self.means.tasks.panicked() => std::panic::resume_unwind(panic),
                order = self.orders.recv(), if takes_orders => self.take_orders(order),
                _ = self.events.recv_many(&mut events, TURN_EVENTS) => {}
                () = pause.over() => {}
            }
            if !events.is_empty() {
                let now = self.means.now();
                events.drain(..).for_each(|event| self.take_event(event, now));
            }
        }
    }

    /// Sends what is due.
    fn release(&mut self) {
        let now_ms = self.means.clock.now_ms();
        let mut due = Vec::new();
        while let Some(bucket) = self.agenda.first_entry().filter(|bucket| *bucket.key() <= now_ms) {
            due.extend(bucket.remove());
        }
        if due.is_empty() {
            return;
        }
        // In turns, so that none waits for all runs of another.
        let mut open = due.clone();
        while !open.is_empty() {
            open.retain(|id| {
                let lane = self.lanes.get_mut(id);
                lane.is_some_and(|lane| lane.send_due(TURN_RUNS, &mut self.means) == TURN_RUNS)
            });
        }
        let now = self.means.now();
        for id in due {
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.settle(now, &mut self.means);
            }
        }
    }

    /// Whether a reply is awaited.
    fn is_awaiting(&self) -> bool {
        self.lanes.values().any(|lane| lane.sent() > 0)
    }

    /// How long nothing has to be done.
    fn pause(&self) -> Pause {
        let now = self.means.now();
        let mut pause_us = if self.lanes.is_empty() { IDLE_US } else { self.sweep_at_us - now.local_us };
        let gathers = self.orders_from.saturating_duration_since(Instant::now());
        if !gathers.is_zero() {
            pause_us = pause_us.min(gathers.as_micros() as i64);
        }
        if let Some(&due_ms) = self.agenda.keys().next() {
            let left_us = due_ms.saturating_mul(1_000).saturating_sub(now.cluster_us);
            if left_us <= COARSE_US {
                return Pause::Fine(micros(if self.is_awaiting() { left_us.min(FINE_US) } else { left_us }));
            }
            pause_us = pause_us.min(left_us - COARSE_US).min(SLEEP_US_MAX);
        }
        Pause::Coarse(micros(pause_us))
    }

    fn take_orders(&mut self, first: Option<Order>) {
        let Some(order) = first else { return self.stop() };
        self.take_order(order);
        for _ in 1..TURN_ORDERS {
            // If there will be no more, `recv` says so next time.
            let Ok(order) = self.orders.try_recv() else {
                self.orders_from = Instant::now() + GATHER;
                return;
            };
            self.take_order(order);
        }
    }

    fn take_order(&mut self, order: Order) {
        match order {
            Order::Hold(ends, held) => self.hold(ends, held),
            Order::Stop => self.stop(),
        }
    }

    fn hold(&mut self, ends: Ends, held: Held) {
        let id = match self.by_ends.get(&ends) {
            Some(id) => *id,
            None if self.lanes.len() >= LANES_MAX => {
                return held.answer(Err(Uncarried::NotDelivered("too many addresses at a time".to_owned())));
            }
            None => {
                self.last.0 += 1;
                self.lanes.insert(self.last, Lane::new(self.last, ends.clone()));
                self.by_ends.insert(ends, self.last);
                self.last
            }
        };
        let (due_ms, now) = (held.due_ms, self.means.now());
        self.sweep_at_us = self.sweep_at_us.min(now.local_us + SWEEP_US);
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        if lane.hold(held) {
            self.agenda.entry(due_ms).or_default().push(id);
        }
        lane.settle(now, &mut self.means);
    }

    fn take_event(&mut self, event: Event, now: Now) {
        let Some(lane) = self.lanes.get_mut(&event.lane) else { return };
        match event.news {
            News::Opened(opened) => lane.opened(opened, now, &mut self.means),
            News::Replied(id, reply) => lane.replied(id, reply, now),
            News::Written(id, rest) => lane.written(id, rest, now),
        }
        // What has waited for a free connection.
        lane.send_due(TURN_RUNS, &mut self.means);
        lane.settle(now, &mut self.means);
    }

    /// Ends what has taken too long.
    fn sweep(&mut self) {
        let now = self.means.now();
        if now.local_us < self.sweep_at_us {
            return;
        }
        for lane in self.lanes.values_mut() {
            lane.sweep(now, &self.means);
            // What was due once already, before the cluster clock was set back.
            lane.send_due(TURN_RUNS, &mut self.means);
            lane.settle(now, &mut self.means);
        }
        self.lanes.retain(|_, lane| !lane.is_over(now));
        self.by_ends.retain(|_, id| self.lanes.contains_key(id));
        let is_busy = self.lanes.values().any(Lane::is_busy);
        self.sweep_at_us = now.local_us + if is_busy { SWEEP_US } else { SWEEP_IDLE_US };
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        self.orders.close();
        while let Ok(order) = self.orders.try_recv() {
            if let Order::Hold(_, held) = order {
                held.answer(Err(stopping()));
            }
        }
        for lane in self.lanes.values_mut() {
            lane.give_back(&stopping());
        }
    }
}
