//! A way to a server on which everything can happen that happens on networks: it is cut, reset, slow, it stops without
//! closing anything; and, where it understands the database's protocol, all that at a chosen statement.

use super::connection::Connection;
use super::loss::Loss;
use super::speech::{Message, Speech};
use super::trap::Trap;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Is told what happens: on which way, on which of its connections, and what.
pub type Tell = Arc<dyn Fn(&str, u64, &str) + Send + Sync>;

/// Leads connections to one server, for as long as the runtime lives.
pub struct Way {
    /// Where it listens on 127.0.0.1; 0: it gets its connections from a [`Fork`](super::Fork).
    pub port: u16,
    shared: Arc<Shared>,
}

/// How everything passes at present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flow {
    /// Nothing does, in either direction, and nothing is closed.
    is_frozen: bool,
    /// Each piece takes so much longer.
    delay: Duration,
}

/// What becomes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Lives,
    /// Nothing passes any more, and it is never closed: a machine at one end is gone.
    Lost,
    /// Both ends see its end.
    Closed,
    /// Both ends see an error.
    Reset,
}

pub(super) struct Shared {
    name: String,
    pub(super) target: SocketAddr,
    pub(super) speech: Speech,
    tell: Tell,
    flow: watch::Sender<Flow>,
    connections: Mutex<HashMap<u64, watch::Sender<Fate>>>,
    next: AtomicU64,
    traps: Mutex<Vec<Trap>>,
    pub(super) loss: Loss,
    /// How many traps have held something back.
    pub(super) sprung: watch::Sender<usize>,
    /// How many traps have made it vanish.
    pub(super) vanished: watch::Sender<usize>,
    /// Counts up when everything that traps hold may go on.
    pub(super) released: watch::Sender<usize>,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("name", &self.shared.name).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Way {
    /// A way to `target`, listening at `port` (0: a free one).
    ///
    /// # Errors
    /// The port is taken.
    pub async fn open(name: &str, port: u16, target: SocketAddr, speech: Speech, tell: Tell) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let way = Self { port: listener.local_addr()?.port(), ..Self::behind_a_fork(name, target, speech, tell) };
        let shared = Arc::clone(&way.shared);
        tokio::spawn(async move {
            loop {
                // An error belongs to one connection that is gone already.
                if let Ok((client, _)) = listener.accept().await {
                    shared.accept(client);
                }
            }
        });
        Ok(way)
    }

    /// A way to `target` that does not listen itself.
    #[must_use]
    pub fn behind_a_fork(name: &str, target: SocketAddr, speech: Speech, tell: Tell) -> Self {
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            target,
            speech,
            tell,
            flow: watch::Sender::new(Flow::default()),
            connections: Mutex::default(),
            next: AtomicU64::new(1),
            traps: Mutex::default(),
            loss: Loss::default(),
            sprung: watch::Sender::new(0),
            vanished: watch::Sender::new(0),
            released: watch::Sender::new(0),
        });
        Self { port: 0, shared }
    }

    /// Leads this connection to the server.
    pub(super) fn take(&self, client: TcpStream) {
        self.shared.accept(client);
    }

    /// From now on nothing passes in either direction, and nothing is closed, until [`Way::thaw`].
    pub fn freeze(&self) {
        self.shared.freeze(true);
    }

    /// Lets pass what [`Way::freeze`] kept; what is lost stays lost.
    pub fn thaw(&self) {
        self.shared.freeze(false);
    }

    /// Each piece takes `delay` longer.
    pub fn slow(&self, delay: Duration) {
        self.shared.tell(0, &format!("slower by {} ms", delay.as_millis()));
        self.shared.flow.send_modify(|flow| flow.delay = delay);
    }

    /// Closes every connection; with `by_error` both ends get an error instead of an end.
    pub fn cut(&self, by_error: bool) {
        self.shared.decide_all(if by_error { Fate::Reset } else { Fate::Closed });
    }

    /// The machine at one end is gone: every connection is lost, and new ones get no answer until [`Way::thaw`].
    pub fn vanish(&self) {
        self.shared.vanish();
    }

    /// Sets a trap.
    pub fn set(&self, trap: Trap) {
        self.shared.tell(0, &format!("trap set: {trap:?}"));
        self.shared.traps.lock().unwrap().push(trap);
    }

    /// Once, after `statements` further statements of transactions, the server loses a transaction and does not say so.
    pub(super) fn lose_transaction_after(&self, statements: usize) {
        self.shared.loss.set(statements);
    }

    /// Whether that has not happened yet. If not, it will not.
    pub(super) fn lose_no_more(&self) -> bool {
        self.shared.loss.unset()
    }

    /// Takes all traps away; what they hold stays held.
    pub fn unset(&self) {
        self.shared.traps.lock().unwrap().clear();
    }

    /// Takes all traps away, and lets go what they hold.
    pub fn release(&self) {
        self.unset();
        self.shared.released.send_modify(|times| *times += 1);
    }

    /// Waits until a trap has held something back.
    ///
    /// # Panics
    /// When the way has ended.
    pub async fn sprung(&self) {
        self.shared.sprung.subscribe().wait_for(|count| *count > 0).await.expect("the way lives");
    }

    /// How often traps have held something back.
    #[must_use]
    pub fn times_sprung(&self) -> usize {
        *self.shared.sprung.borrow()
    }

    /// Waits until traps have made it vanish more than `before` times; how often now.
    ///
    /// # Panics
    /// When the way has ended.
    pub async fn vanished(&self, before: usize) -> usize {
        *self.shared.vanished.subscribe().wait_for(|count| *count > before).await.expect("the way lives")
    }

    /// How often traps have made it vanish.
    #[must_use]
    pub fn times_vanished(&self) -> usize {
        *self.shared.vanished.borrow()
    }
}

impl Shared {
    pub(super) fn tell(&self, connection: u64, what: &str) {
        (self.tell)(&self.name, connection, what);
    }

    fn freeze(&self, is_frozen: bool) {
        self.tell(0, if is_frozen { "frozen" } else { "thawed" });
        self.flow.send_modify(|flow| flow.is_frozen = is_frozen);
    }

    pub(super) fn vanish(&self) {
        self.freeze(true);
        self.decide_all(Fate::Lost);
    }

    fn decide_all(&self, fate: Fate) {
        let connections = self.connections.lock().unwrap();
        self.tell(0, &format!("{} connections: {fate:?}", connections.len()));
        for connection in connections.values() {
            connection.send_if_modified(|now| {
                let is_open = *now == Fate::Lives;
                if is_open {
                    *now = fate;
                }
                is_open
            });
        }
    }

    fn accept(self: &Arc<Self>, client: TcpStream) {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let fate = watch::Sender::new(Fate::Lives);
        let connection = Connection::new(id, Arc::clone(self), fate.subscribe());
        self.connections.lock().unwrap().insert(id, fate);
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            connection.serve(client).await;
            shared.connections.lock().unwrap().remove(&id);
        });
    }

    /// Waits while nothing passes, and for as long as everything takes longer.
    pub(super) async fn pass(&self) {
        let mut flow = self.flow.subscribe();
        let delay = match flow.wait_for(|flow| !flow.is_frozen).await {
            Ok(flow) => flow.delay,
            Err(_) => return,
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
            // It may have stopped meanwhile; then it goes on with what it had.
            let _ = flow.wait_for(|flow| !flow.is_frozen).await;
        }
    }

    /// The trap that this message walks into, if one is set there, and what tells of its release.
    pub(super) fn trap_for(&self, message: &Message) -> Option<(Trap, watch::Receiver<usize>)> {
        let mut traps = self.traps.lock().unwrap();
        let at = traps.iter().position(|trap| message.is_at(trap.point))?;
        let trap = traps[at].clone();
        traps[at].times = traps[at].times.saturating_sub(1);
        if traps[at].times == 0 {
            traps.remove(at);
        }
        // While no trap can be taken away: a release from now on is not missed.
        Some((trap, self.released.subscribe()))
    }
}
