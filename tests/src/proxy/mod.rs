//! Ways to servers on which everything can happen that happens on networks.
//!
//! A [`Way`] is cut, reset or slow, it stops without closing anything, and where it understands the database's protocol, it
//! does all that at a chosen statement. A [`Fork`] leads connections to ways by who made them. A [`Proxy`] is a way to a database for tests that wait for one statement.

mod connection;
mod fork;
mod loss;
mod speech;
mod trap;
mod way;

pub use fork::{Choose, Fork};
pub use speech::Speech;
pub use trap::{Action, Place, Point, Trap};
pub use way::{Tell, Way};

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_hours(1);

/// Listens for connections to one database server, for as long as the test's runtime lives.
#[derive(Debug)]
pub struct Proxy {
    /// The database's address by this way.
    pub url: String,
    way: Way,
}

impl Proxy {
    /// A way to the server of this database.
    ///
    /// # Panics
    /// When the address has no port of this machine.
    pub async fn to(url: &str) -> Self {
        let server = url.split('@').nth(1).and_then(|rest| rest.split('/').next()).expect("a server's address");
        let speech = if url.starts_with("postgres") { Speech::Postgres } else { Speech::MySql };
        let target: SocketAddr = server.parse().expect("a number and a port");
        let way = Way::open("proxy", 0, target, speech, Arc::new(|_, _, _| ())).await.expect("listen");
        let here = format!("127.0.0.1:{}", way.port);
        Self { url: url.replace(server, &here), way }
    }

    /// From now on, a connection that asks something with these words in it gets no answer until [`Proxy::release`].
    pub fn hold_answers_to(&self, words: &'static str) {
        self.set(words, Place::After, Action::Hold(FOR_EVER));
    }

    /// From now on, what a connection asks from the first request with these words in it on never arrives, and the connection
    /// stays open: as of a process that is stopped, or a machine that vanishes.
    pub fn freeze_before(&self, words: &'static str) {
        self.set(words, Place::Before, Action::Lose);
    }

    /// Connections that have stopped so stay as they are; no further one stops.
    pub fn freeze_no_more(&self) {
        self.way.unset();
    }

    /// From now on, a request with these words in it arrives only after [`Proxy::release`].
    pub fn hold_before(&self, words: &'static str) {
        self.set(words, Place::Before, Action::Hold(FOR_EVER));
    }

    /// Once, after `statements` further statements of transactions, the server loses a transaction and does not say so: just
    /// before it executes the next one, which it has prepared (`MariaDB`).
    pub fn lose_transaction_after(&self, statements: usize) {
        self.way.lose_transaction_after(statements);
    }

    /// Whether that has not happened yet. If not, it will not.
    #[must_use]
    pub fn lose_no_more(&self) -> bool {
        self.way.lose_no_more()
    }

    /// Each piece takes `delay` longer.
    pub fn slow(&self, delay: Duration) {
        self.way.slow(delay);
    }

    fn set(&self, words: &'static str, place: Place, action: Action) {
        self.way.set(Trap { point: Point::Words(words), place, action, times: usize::MAX });
    }

    /// Waits until a connection has stopped so.
    pub async fn frozen(&self) {
        self.way.sprung().await;
    }

    /// Waits until a request has come that is held.
    pub async fn held(&self) {
        self.way.sprung().await;
    }

    /// Lets everything pass.
    pub fn release(&self) {
        self.way.release();
    }
}
