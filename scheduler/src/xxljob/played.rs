//! An executor that a test plays, over real sockets, and a clock that stands until the test moves it.

use super::address::Address;
use crate::cluster::Clock;
use std::collections::{HashMap, HashSet, VecDeque};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What a test waits for comes by then.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Waits for what must come.
pub async fn comes<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(WAIT_MAX, what).await.expect("it comes")
}

/// An epoch at which no time is 0.
pub const EPOCH_MS: i64 = 1_000_000;

/// Both clocks, which stand.
pub struct StandingClock {
    cluster_us: AtomicI64,
    local_us: AtomicI64,
    /// Reading it is a panic on the sender's thread.
    pub is_broken: AtomicBool,
}

impl Default for StandingClock {
    fn default() -> Self {
        let us = || AtomicI64::new(EPOCH_MS * 1_000);
        Self { cluster_us: us(), local_us: us(), is_broken: AtomicBool::new(false) }
    }
}

impl StandingClock {
    /// So much time passes.
    pub fn passes(&self, us: i64) {
        self.local_us.fetch_add(us, Ordering::SeqCst);
        self.cluster_us.fetch_add(us, Ordering::SeqCst);
    }

    /// The cluster clock is set by so much.
    pub fn is_set(&self, us: i64) {
        self.cluster_us.fetch_add(us, Ordering::SeqCst);
    }
}

impl Clock for StandingClock {
    fn now_us(&self) -> i64 {
        let is_sender = std::thread::current().name() == Some("plain-sender");
        assert!(!(is_sender && self.is_broken.load(Ordering::SeqCst)), "the test breaks the sender's thread");
        self.cluster_us.load(Ordering::SeqCst)
    }

    fn local_us(&self) -> i64 {
        self.local_us.load(Ordering::SeqCst)
    }
}

enum Seen {
    Opened(OwnedWriteHalf),
    Came(usize, String),
    Closed(usize),
}

/// An executor; its connections are numbered from 0.
pub struct Played {
    pub address: Address,
    seen: mpsc::UnboundedReceiver<Seen>,
    writers: HashMap<usize, OwnedWriteHalf>,
    came: VecDeque<(usize, String)>,
    closed: HashSet<usize>,
    /// Connections so far.
    pub opened: usize,
}

impl Played {
    pub async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            for number in 0.. {
                let (reader, writer) = listener.accept().await.unwrap().0.into_split();
                let _ = tell.send(Seen::Opened(writer));
                tokio::spawn(read(number, reader, tell.clone()));
            }
        });
        Self { address, seen, writers: HashMap::new(), came: VecDeque::new(), closed: HashSet::new(), opened: 0 }
    }

    /// An address where nothing listens.
    pub async fn nobody() -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Address::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap()
    }

    fn note(&mut self, seen: Seen) {
        match seen {
            Seen::Opened(writer) => {
                self.writers.insert(self.opened, writer);
                self.opened += 1;
            }
            Seen::Came(number, body) => self.came.push_back((number, body)),
            Seen::Closed(number) => {
                self.closed.insert(number);
            }
        }
    }

    async fn look(&mut self) {
        let seen = comes(self.seen.recv()).await.unwrap();
        self.note(seen);
    }

    /// The next request: its connection and its body.
    pub async fn request(&mut self) -> (usize, String) {
        while self.came.is_empty() {
            self.look().await;
        }
        self.came.pop_front().unwrap()
    }

    /// Whether there is a request now.
    pub fn has_request(&mut self) -> bool {
        while let Ok(seen) = self.seen.try_recv() {
            self.note(seen);
        }
        !self.came.is_empty()
    }

    /// Writes `text` to a connection.
    pub async fn says(&self, number: usize, text: &str) {
        let (writer, mut rest) = (&self.writers[&number], text.as_bytes());
        while !rest.is_empty() {
            writer.writable().await.unwrap();
            match writer.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }

    /// Answers a request with that body.
    pub async fn replies(&self, number: usize, body: &str) {
        self.says(number, &format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    }

    /// Closes a connection from this side.
    pub fn closes(&mut self, number: usize) {
        self.writers.remove(&number);
    }

    /// Waits until the other side has closed it.
    pub async fn is_closed(&mut self, number: usize) {
        while !self.closed.contains(&number) {
            self.look().await;
        }
    }
}

async fn read(number: usize, reader: OwnedReadHalf, tell: mpsc::UnboundedSender<Seen>) {
    let mut text = String::new();
    while let Some(more) = more_of(reader.as_ref()).await {
        text.push_str(&more);
        while let Some(body) = first_body(&text) {
            let _ = tell.send(Seen::Came(number, body.to_owned()));
            text.clear();
        }
    }
    let _ = tell.send(Seen::Closed(number));
}

/// What comes next; `None` at the end.
pub async fn more_of(stream: &TcpStream) -> Option<String> {
    let mut bytes = vec![0; 65_536];
    loop {
        stream.readable().await.ok()?;
        match stream.try_read(&mut bytes) {
            Ok(0) => return None,
            Ok(count) => return Some(String::from_utf8(bytes[..count].to_vec()).unwrap()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// The body of the one request in `text`, once it is whole.
fn first_body(text: &str) -> Option<&str> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length: usize = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse().unwrap();
    assert!(head.starts_with("POST /run HTTP/1.1\r\nHost: 127.0.0.1:"), "{head}");
    assert!(body.len() <= length, "one request at a time on each connection");
    (body.len() == length).then_some(body)
}
