//! A way to a database server whose answers can be held up.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// `MariaDB`'s command to execute what was prepared, in the fifth byte of a request.
const EXECUTE: u8 = 0x17;

/// A request of `MariaDB`: its length, number and command, and the text.
const ROLLBACK: &[u8] = b"\x09\0\0\0\x03ROLLBACK";

/// Listens for connections to one server, for as long as the test's runtime lives.
#[derive(Debug)]
pub struct Proxy {
    /// The database's address by this way.
    pub url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Answers to requests with this text are held.
    held: Mutex<Option<&'static str>>,
    /// Requests with this text are held.
    held_before: Mutex<Option<&'static str>>,
    /// How many of them came.
    waiting: watch::Sender<usize>,
    /// Whether what is held may pass.
    passes: watch::Sender<bool>,
    /// A connection stops before a request with this text.
    frozen_before: Mutex<Option<&'static str>>,
    /// How many have.
    frozen: watch::Sender<usize>,
    /// After so many further statements of a transaction it is lost.
    lost_after: Mutex<Option<usize>>,
}

/// What both directions of one connection know.
#[derive(Debug, Default)]
struct Connection {
    /// The next answer is held.
    is_held: AtomicBool,
    /// The next answer is to a request of the proxy's own.
    is_own: AtomicBool,
}

impl Proxy {
    /// A way to the server of this database.
    pub async fn to(url: &str) -> Self {
        let target =
            url.split('@').nth(1).and_then(|rest| rest.split('/').next()).expect("a server's address").to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("listen");
        let here = listener.local_addr().expect("an address").to_string();
        let shared = Arc::new(Shared {
            held: Mutex::default(),
            held_before: Mutex::default(),
            waiting: watch::Sender::new(0),
            passes: watch::Sender::new(true),
            frozen_before: Mutex::default(),
            frozen: watch::Sender::new(0),
            lost_after: Mutex::default(),
        });
        let proxy = Self { url: url.replace(&target, &here), shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&target).await else { continue };
                let connection = Arc::new(Connection::default());
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(ask(from_client, to_server, Arc::clone(&shared), Arc::clone(&connection)));
                tokio::spawn(answer(from_server, to_client, Arc::clone(&shared), connection));
            }
        });
        proxy
    }

    /// From now on, a connection that asks something with `text` in it gets no answer until [`Proxy::release`].
    pub fn hold_answers_to(&self, text: &'static str) {
        self.shared.passes.send_replace(false);
        *self.shared.held.lock().unwrap() = Some(text);
    }

    /// From now on, what a connection asks from the first request with `text` in it on never arrives, and the connection
    /// stays open: as of a process that is stopped, or a machine that vanishes.
    pub fn freeze_before(&self, text: &'static str) {
        *self.shared.frozen_before.lock().unwrap() = Some(text);
    }

    /// Connections that have stopped so stay as they are; no further one stops.
    pub fn freeze_no_more(&self) {
        *self.shared.frozen_before.lock().unwrap() = None;
    }

    /// Waits until a connection has stopped so.
    ///
    /// # Panics
    /// When the proxy has ended.
    pub async fn frozen(&self) {
        self.shared.frozen.subscribe().wait_for(|count| *count > 0).await.expect("the proxy lives");
    }

    /// From now on, a request with `text` in it arrives only after [`Proxy::release`].
    pub fn hold_before(&self, text: &'static str) {
        self.shared.passes.send_replace(false);
        *self.shared.held_before.lock().unwrap() = Some(text);
    }

    /// Waits until such a request has come.
    ///
    /// # Panics
    /// When the proxy has ended.
    pub async fn held(&self) {
        self.shared.waiting.subscribe().wait_for(|count| *count > 0).await.expect("the proxy lives");
    }

    /// Once, after `statements` further statements of transactions, the server loses a transaction and does not say so: just
    /// before it executes the next one, which it has prepared (`MariaDB`).
    ///
    /// # Panics
    /// Never.
    pub fn lose_transaction_after(&self, statements: usize) {
        *self.shared.lost_after.lock().unwrap() = Some(statements);
    }

    /// Whether that has not happened yet. If not, it will not.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn lose_no_more(&self) -> bool {
        self.shared.lost_after.lock().unwrap().take().is_some()
    }

    /// Lets everything pass.
    pub fn release(&self) {
        *self.shared.held.lock().unwrap() = None;
        *self.shared.held_before.lock().unwrap() = None;
        self.shared.passes.send_replace(true);
    }
}

/// Whether these words stand in a request: COMMIT does not stand in READ COMMITTED.
fn has_words(request: &[u8], words: &[u8]) -> bool {
    let mut places = request.windows(words.len()).enumerate().filter(|(_, part)| *part == words);
    places.any(|(at, _)| !request.get(at + words.len()).is_some_and(u8::is_ascii_alphabetic))
}

impl Shared {
    /// Whether the transaction is to be lost before this request.
    fn loses_before(&self, request: &[u8]) -> bool {
        let mut after = self.lost_after.lock().unwrap();
        if request.get(4) != Some(&EXECUTE) {
            return false;
        }
        match *after {
            Some(0) => after.take().is_some(),
            Some(more) => {
                *after = Some(more - 1);
                false
            }
            None => false,
        }
    }
}

async fn ask(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: Arc<Shared>, connection: Arc<Connection>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut passes = shared.passes.subscribe();
    let mut is_in_transaction = false;
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let has = |text: &str| has_words(&buffer[..read], text.as_bytes());
        let (held, frozen_before) = (*shared.held.lock().unwrap(), *shared.frozen_before.lock().unwrap());
        if frozen_before.is_some_and(has) {
            shared.frozen.send_modify(|count| *count += 1);
            return std::future::pending().await;
        }
        let held_before = *shared.held_before.lock().unwrap();
        if held_before.is_some_and(has) {
            shared.waiting.send_modify(|count| *count += 1);
            if passes.wait_for(|passes| *passes).await.is_err() {
                return;
            }
        }
        if held.is_some_and(has) {
            connection.is_held.store(true, Ordering::SeqCst);
        }
        is_in_transaction = has("BEGIN") || (is_in_transaction && !has("COMMIT") && !has("ROLLBACK"));
        if is_in_transaction && shared.loses_before(&buffer[..read]) {
            connection.is_own.store(true, Ordering::SeqCst);
            if to.write_all(ROLLBACK).await.is_err() {
                return;
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

async fn answer(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: Arc<Shared>, connection: Arc<Connection>) {
    let mut buffer = vec![0; 64 * 1024];
    let mut passes = shared.passes.subscribe();
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if connection.is_held.swap(false, Ordering::SeqCst) && passes.wait_for(|passes| *passes).await.is_err() {
            return;
        }
        // Its length is in its first three bytes; the header has four.
        let own = if connection.is_own.swap(false, Ordering::SeqCst) { 4 + usize::from(buffer[0]) } else { 0 };
        if to.write_all(&buffer[own..read]).await.is_err() {
            return;
        }
    }
}
