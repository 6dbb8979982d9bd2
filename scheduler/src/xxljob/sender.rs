//! Holds runs for plain executors and sends each on its instant, on a thread of its own.

use super::address::Address;
use super::held::Held;
use super::lane::Means;
use super::names::Names;
use super::request::{self, REQUEST_BYTES_MAX};
use super::run_door::{HELD_MS_MAX, Hold, PreparedRun, RunDoor};
use super::turns::{Order, Turns};
use crate::auth::AddressRule;
use crate::cluster::Clock;
use crate::dispatch::Uncarried;
use async_trait::async_trait;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Requests that are held or await a reply, bytes together.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Runs that are held or await a reply.
const RUNS_MAX: usize = 20_000;

/// What each of them counts for at least, bytes.
const RUN_BYTES_MIN: usize = BYTES_MAX / RUNS_MAX;

const _: () = assert!(REQUEST_BYTES_MAX <= BYTES_MAX);

/// What can be set of a sender.
#[derive(Debug, Clone)]
pub struct SenderSettings {
    /// Connections to one address at most, 1 to 1,024. So many runs leave for it on one instant; others follow as it answers.
    pub connections_per_address: usize,
    /// Connections to all addresses at most, beyond the first of each, 0 to 60,000. Each takes a file descriptor.
    pub connections: usize,
    /// A connection that is not open by then is given up, 100 ms to 10 s.
    pub connect_timeout: Duration,
    /// A reply that is not there by then is not waited for, 100 ms to 60 s, counted from the request.
    pub reply_timeout: Duration,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            connections_per_address: 256,
            connections: 1_024,
            connect_timeout: Duration::from_secs(1),
            reply_timeout: Duration::from_secs(3),
        }
    }
}

/// The door of production: hands runs to the thread that holds them.
pub struct Sender {
    orders: mpsc::UnboundedSender<Order>,
    clock: Arc<dyn Clock>,
    names: Names,
    /// Bounds the orders as well.
    room: Arc<Semaphore>,
}

/// The thread of a [`Sender`].
pub struct SenderThread {
    orders: mpsc::UnboundedSender<Order>,
    thread: std::thread::JoinHandle<()>,
}

impl Sender {
    /// Starts the thread. `addresses` says where something may be sent.
    ///
    /// # Errors
    /// When the system gives no thread, or none that waits for sockets.
    pub fn start(
        settings: &SenderSettings,
        addresses: AddressRule,
        clock: Arc<dyn Clock>,
    ) -> io::Result<(Self, SenderThread)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let (orders, taken) = mpsc::unbounded_channel();
        let (settings, its_clock) = (settings.clone(), Arc::clone(&clock));
        let thread = std::thread::Builder::new().name("plain-sender".to_owned()).spawn(move || {
            let turns = Turns::new(taken, |tasks| Means {
                clock: its_clock,
                tasks,
                places: Arc::new(Semaphore::new(settings.connections)),
                connections_per_address: settings.connections_per_address,
                connect_timeout: settings.connect_timeout,
                reply_timeout_us: i64::try_from(settings.reply_timeout.as_micros()).unwrap_or(i64::MAX),
            });
            runtime.block_on(turns.run());
        })?;
        let names = Names::new(addresses, Arc::clone(&clock));
        let room = Arc::new(Semaphore::new(BYTES_MAX));
        Ok((Self { orders: orders.clone(), clock, names, room }, SenderThread { orders, thread }))
    }

    /// The run as the thread holds it.
    fn prepare(&self, to: &Address, run: PreparedRun) -> Result<(Held, Answered), String> {
        let PreparedRun { due_ms, accept_until_ms, request, hold } = run;
        let now_us = self.clock.now_us();
        if due_ms > now_us.div_euclid(1_000) + HELD_MS_MAX {
            return Err(format!("it is due in more than {HELD_MS_MAX} ms"));
        }
        let wait_us = accept_until_ms.saturating_mul(1_000).saturating_sub(now_us);
        let give_back_us = self.clock.local_us().saturating_add(wait_us);
        let bytes = request::bytes(to, &request)?;
        let size = bytes.len().max(RUN_BYTES_MIN) as u32;
        let room = Arc::clone(&self.room).try_acquire_many_owned(size).map_err(|_| "this node holds too many runs")?;
        let (answer, answered) = oneshot::channel();
        Ok((Held { due_ms, accept_until_ms, give_back_us, bytes, hold, answer, room }, answered))
    }
}

type Answered = oneshot::Receiver<Result<Bytes, Uncarried>>;

/// Nobody waits any more: what was not sent is not.
struct Waiting(Hold);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.withdraw();
    }
}

#[async_trait]
impl RunDoor for Sender {
    async fn run(&self, to: &Address, run: PreparedRun) -> Result<Bytes, Uncarried> {
        if to.is_tls() {
            return Err(Uncarried::NotDelivered(format!(
                "{to}: executors over TLS are not supported yet; register http://"
            )));
        }
        let waiting = Waiting(run.hold.clone());
        let ends = self.names.ends(to).await.map_err(Uncarried::NotDelivered)?;
        let (held, answered) = self.prepare(to, run).map_err(Uncarried::NotDelivered)?;
        let gone = |_| Uncarried::NotDelivered("this node is stopping".to_owned());
        self.orders.send(Order::Hold(ends, held)).map_err(gone)?;
        match answered.await {
            Ok(outcome) => outcome,
            // The thread has panicked, or ended with this on its way to it.
            Err(_) if waiting.0.withdraw() => {
                Err(Uncarried::NotDelivered("nothing sends runs here any more".to_owned()))
            }
            Err(_) => Err(Uncarried::Unknown("nothing reads replies here any more".to_owned())),
        }
    }
}

impl SenderThread {
    /// Whether the thread has ended (it only does when it is stopped, or by a fault).
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Gives back what was not sent, and waits for the replies to what was, at most for their time-out. Runs that come later
    /// are not delivered.
    pub async fn stop(self) {
        // It fails only where the thread has ended already.
        let _ = self.orders.send(Order::Stop);
        if !matches!(tokio::task::spawn_blocking(move || self.thread.join()).await, Ok(Ok(()))) {
            tracing::error!("the thread that sends runs to plain executors panicked");
        }
    }
}

#[cfg(test)]
mod tests;
