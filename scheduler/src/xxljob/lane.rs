//! What goes to one address: its runs, and the connections that they leave over. Lanes know nothing of each other, so an
//! executor that is slow or silent delays its own runs alone.
//!
//! A connection has one request at a time: peers differ in what they make of two. Runs that find no free connection wait,
//! the earliest first, and follow as replies come.

use super::connection::{Connection, ConnectionId, LaneId, Opened, Rest, Tasks, Wrote};
use super::held::{Held, Now, RunsByDue, over};
use super::names::Ends;
use super::reply::Reply;
use crate::cluster::Clock;
use crate::dispatch::Uncarried;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Connections to one address that are opened at a time: its queue of those may be short (128 by Netty's and aiohttp's
/// default), and what overflows it is tried again only after a second.
const OPENING_MAX: usize = 32;

/// An address that takes no connection, or is silent, is left alone for so long, µs.
const PAUSE_US: i64 = 1_000_000;

/// While the connections of all addresses are used up, those that wait for longer than this are closed, µs.
const IDLE_SCARCE_US: i64 = 5_000_000;

/// A connection that was opened ahead and not used is closed after this, µs: it is not known how long its peer keeps it.
/// (Node's HTTP server: 5 s.)
const IDLE_UNUSED_US: i64 = 4_000_000;

/// What lanes share.
pub struct Means {
    /// Cluster time.
    pub clock: Arc<dyn Clock>,
    /// Where connections are opened and read.
    pub tasks: Tasks,
    /// Connections of all addresses, beyond the first of each.
    pub places: Arc<Semaphore>,
    /// At most, to one address.
    pub connections_per_address: usize,
    /// A connection that is not open by then is not opened.
    pub connect_timeout: Duration,
    /// A reply that is not there by then is not waited for, µs.
    pub reply_timeout_us: i64,
}

impl Means {
    /// Now.
    pub fn now(&self) -> Now {
        Now { cluster_us: self.clock.now_us(), local_us: self.clock.local_us() }
    }
}

/// One address.
pub struct Lane {
    id: LaneId,
    ends: Ends,
    runs: RunsByDue,
    connections: HashMap<ConnectionId, Line>,
    /// Connections without a request; the last one was used last.
    free: Vec<ConnectionId>,
    /// Connections that are being opened.
    opening: usize,
    /// When the last reply came, by `Clock::local_us`.
    replied_us: i64,
    /// Until then no connection is opened, by `Clock::local_us`.
    paused_until_us: i64,
    /// Why.
    paused_for: Uncarried,
}

/// A connection and what is going over it.
struct Line {
    connection: Connection,
    sent: Option<Sent>,
    /// Since when it has no request, by `Clock::local_us`.
    free_us: i64,
    /// For how long it may have none, µs.
    idle_us: i64,
    /// Whether a reply has come over it.
    has_served: bool,
}

/// A run whose reply has not come.
struct Sent {
    held: Held,
    /// By `Clock::local_us`.
    sent_us: i64,
}

impl Lane {
    /// Without connections.
    pub fn new(id: LaneId, ends: Ends) -> Self {
        Self {
            id,
            ends,
            runs: RunsByDue::default(),
            connections: HashMap::new(),
            free: Vec::new(),
            opening: 0,
            replied_us: i64::MIN,
            paused_until_us: i64::MIN,
            paused_for: Uncarried::NotDelivered("no connection".to_owned()),
        }
    }

    /// Holds a run until it is due. True if it is the only one of its millisecond.
    pub fn hold(&mut self, held: Held) -> bool {
        self.runs.push(held)
    }

    /// Runs that were sent and have no reply yet.
    pub fn sent(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    /// Whether nothing is held, open or remembered.
    pub fn is_over(&self, now: Now) -> bool {
        let is_empty = self.runs.is_empty() && self.connections.is_empty() && self.opening == 0;
        is_empty && now.local_us >= self.paused_until_us
    }

    /// Whether something is held, awaited or being opened.
    pub fn is_busy(&self) -> bool {
        !self.runs.is_empty() || self.sent() > 0 || self.opening > 0
    }

    /// Gives back what was not sent.
    pub fn give_back(&mut self, why: &Uncarried) {
        for held in self.runs.take_all() {
            held.answer(Err(why.clone()));
        }
    }

    /// Sends what is due, as far as connections are free, at most `runs_max`. Returns how many left.
    pub fn send_due(&mut self, runs_max: usize, means: &mut Means) -> usize {
        if self.runs.is_empty() {
            return 0;
        }
        let local_us = means.clock.local_us();
        let mut count = 0;
        while count < runs_max
            && let Some(id) = self.free.last().copied()
        {
            let now = Now { cluster_us: means.clock.now_us(), local_us };
            let Some(held) = self.runs.pop_due(now.cluster_us.div_euclid(1_000)) else { break };
            if held.is_over(now) {
                held.answer(Err(over()));
            } else if held.hold.send(now.cluster_us) {
                self.free.pop();
                self.send(id, held, now, means);
            } else {
                held.answer(Err(Uncarried::NotDelivered("it was withdrawn".to_owned())));
            }
            count += 1;
        }
        count
    }

    fn send(&mut self, id: ConnectionId, held: Held, now: Now, means: &mut Means) {
        let Some(line) = self.connections.get_mut(&id) else {
            held.hold.was_not_sent();
            return self.runs.put_back(held);
        };
        match line.connection.write(&held.bytes) {
            Wrote::All => {}
            Wrote::Part(written) => {
                line.connection.write_rest(self.id, held.bytes.clone(), written, &mut means.tasks);
            }
            Wrote::Nothing(error) => return self.not_sent(id, held, &error, now),
        }
        line.sent = Some(Sent { held, sent_us: now.local_us });
    }

    /// Not a byte was taken, so nobody can have processed it: it goes over another connection.
    fn not_sent(&mut self, id: ConnectionId, held: Held, error: &std::io::Error, now: Now) {
        held.hold.was_not_sent();
        self.runs.put_back(held);
        self.close(id, &format!("a new connection ended: {error}"), now);
    }

    /// Closes a connection without a request. One that has served nothing is no better than one that was not opened.
    fn close(&mut self, id: ConnectionId, why: &str, now: Now) {
        self.free.retain(|free| *free != id);
        if self.connections.remove(&id).is_some_and(|line| !line.has_served) {
            self.pause(Uncarried::NotDelivered(why.to_owned()), now);
        }
    }

    fn pause(&mut self, why: Uncarried, now: Now) {
        self.paused_until_us = now.local_us.saturating_add(PAUSE_US);
        self.paused_for = why;
    }

    /// Opens as many connections as there are runs for; without a connection and the prospect of one, gives them back. To be
    /// called when runs have come or connections have gone.
    pub fn settle(&mut self, now: Now, means: &mut Means) {
        let wanted = means.connections_per_address.min(self.runs.len() + self.sent());
        while self.opening < OPENING_MAX
            && self.connections.len() + self.opening < wanted
            && now.local_us >= self.paused_until_us
        {
            // Executors that hold many connections and do not answer leave one for each of the others.
            let is_first = self.connections.is_empty() && self.opening == 0;
            let place = if is_first { None } else { Arc::clone(&means.places).try_acquire_owned().ok() };
            if !is_first && place.is_none() {
                break;
            }
            means.tasks.open(self.id, Arc::clone(&self.ends), place, means.connect_timeout);
            self.opening += 1;
        }
        if self.connections.is_empty() && self.opening == 0 && !self.runs.is_empty() {
            let why = self.paused_for.clone();
            self.give_back(&why);
        }
    }

    /// A connection was opened, or was not.
    pub fn opened(&mut self, opened: Result<Opened, Uncarried>, now: Now, means: &mut Means) {
        self.opening -= 1;
        match opened {
            Ok(opened) => {
                let connection = means.tasks.serve(self.id, opened);
                let id = connection.id();
                let (free_us, idle_us) = (now.local_us, IDLE_UNUSED_US);
                let line = Line { connection, sent: None, free_us, idle_us, has_served: false };
                self.connections.insert(id, line);
                self.free.push(id);
            }
            Err(why) => self.pause(why, now),
        }
    }

    /// A reply has come, or the connection has ended.
    pub fn replied(&mut self, id: ConnectionId, reply: Result<Reply, String>, now: Now) {
        let Some(line) = self.connections.get_mut(&id) else { return };
        let Some(sent) = line.sent.take() else {
            // Nobody has asked: it has ended, or cannot be trusted.
            let why = reply.err().unwrap_or_else(|| "the executor said something unasked".to_owned());
            return self.close(id, &why, now);
        };
        line.has_served |= reply.is_ok();
        // One whose request is still being written cannot take the next.
        let idle = reply.as_ref().ok().and_then(|reply| reply.idle).filter(|_| line.connection.is_writable());
        match idle {
            Some(idle) => {
                (line.free_us, line.idle_us) = (now.local_us, idle.as_micros() as i64);
                self.free.push(id);
            }
            None => drop(self.connections.remove(&id)),
        }
        if reply.is_ok() {
            self.replied_us = now.local_us;
        }
        sent.held.answer(reply.map_err(Uncarried::Unknown).and_then(body));
    }

    /// A task has written more of a request.
    pub fn written(&mut self, id: ConnectionId, rest: Rest, now: Now) {
        let Some(line) = self.connections.get_mut(&id) else { return };
        let Some(error) = &rest.error else { return line.connection.take_back(rest) };
        let Some(Sent { held, .. }) = line.sent.take() else { return };
        if rest.written == 0 {
            return self.not_sent(id, held, error, now);
        }
        self.connections.remove(&id);
        held.answer(Err(Uncarried::Unknown(format!("only a part of the request was sent: {error}"))));
    }

    /// Ends what has taken too long: replies, connections without a request, and runs that were not sent.
    pub fn sweep(&mut self, now: Now, means: &Means) {
        let is_late =
            |line: &Line| line.sent.as_ref().is_some_and(|sent| now.local_us - sent.sent_us >= means.reply_timeout_us);
        let timeout = Duration::from_micros(means.reply_timeout_us as u64);
        let late: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, line)| is_late(line)).map(|(id, _)| *id).collect();
        for id in late {
            let Some(Sent { held, sent_us }) = self.connections.remove(&id).and_then(|line| line.sent) else {
                continue;
            };
            held.answer(Err(Uncarried::Unknown(format!("no reply within {timeout:?}"))));
            if self.replied_us < sent_us {
                // It has answered nothing since: what waits for it had better go elsewhere.
                self.pause(Uncarried::NotDelivered(format!("the executor has been silent for {timeout:?}")), now);
                let why = self.paused_for.clone();
                self.give_back(&why);
            }
        }
        let is_scarce = means.places.available_permits() == 0;
        let idle_us = |line: &Line| if is_scarce { line.idle_us.min(IDLE_SCARCE_US) } else { line.idle_us };
        let connections = &mut self.connections;
        self.free.retain(|id| {
            let is_kept = connections.get(id).is_some_and(|line| now.local_us - line.free_us < idle_us(line));
            is_kept || connections.remove(id).is_none()
        });
        for held in self.runs.take_over(now) {
            held.answer(Err(over()));
        }
    }
}

/// The body of a reply that says that the run was taken.
fn body(reply: Reply) -> Result<Bytes, Uncarried> {
    match reply.status {
        200..300 => Ok(reply.body),
        status => Err(Uncarried::Unknown(format!("the executor answers with HTTP status {status}"))),
    }
}

#[cfg(test)]
mod tests;
