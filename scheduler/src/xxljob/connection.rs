//! Connections to executors. Requests are written by whoever holds the connection, at once; what has to wait (opening,
//! reading, the rest of a long request) is done by tasks, which tell what came of it as [`Event`]s.

use super::names::Ends;
use super::reply::{Reply, ReplyReader};
use crate::dispatch::Uncarried;
use bytes::Bytes;
use futures_util::FutureExt;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::{AbortHandle, JoinSet};

/// Read at a time, bytes. Most replies are shorter, and then one call of the system reads them.
const READ_BYTES: usize = 4 * 1024;

/// Events that wait; tasks wait before they tell more.
const EVENTS_MAX: usize = 4_096;

/// Names an address's lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaneId(pub u64);

/// Names a connection, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId(pub u64);

/// What came of a task.
#[derive(Debug)]
pub struct Event {
    /// Whose.
    pub lane: LaneId,
    /// What.
    pub news: News,
}

/// What came of a task.
#[derive(Debug)]
pub enum News {
    /// A connection is open, or was not.
    Opened(Result<Opened, Uncarried>),
    /// A reply has come, or what there is of it, or the connection has ended.
    Replied(ConnectionId, Result<Reply, String>),
    /// The rest of a request was written, or some of it.
    Written(ConnectionId, Rest),
}

/// A connection that nothing was sent over yet.
#[derive(Debug)]
pub struct Opened {
    stream: TcpStream,
    /// Its place among the connections of all addresses, if it takes one.
    place: Option<OwnedSemaphorePermit>,
}

/// How far the rest of a request came.
#[derive(Debug)]
pub struct Rest {
    /// Of the whole request, bytes.
    pub written: usize,
    /// What kept more from being written.
    pub error: Option<io::Error>,
    writer: OwnedWriteHalf,
}

/// The tasks of all connections.
pub struct Tasks {
    set: JoinSet<()>,
    events: mpsc::Sender<Event>,
    last: ConnectionId,
}

impl Tasks {
    /// None yet, and where they tell what came of them.
    pub fn new() -> (Self, mpsc::Receiver<Event>) {
        let (events, told) = mpsc::channel(EVENTS_MAX);
        (Self { set: JoinSet::new(), events, last: ConnectionId(0) }, told)
    }

    /// Opens a connection.
    pub fn open(&mut self, lane: LaneId, ends: Ends, place: Option<OwnedSemaphorePermit>, timeout: Duration) {
        let events = self.events.clone();
        self.set.spawn(async move {
            let opened = connect(&ends, timeout).await.map(|stream| Opened { stream, place });
            tell(&events, lane, News::Opened(opened)).await;
        });
    }

    /// Begins to read from it.
    pub fn serve(&mut self, lane: LaneId, opened: Opened) -> Connection {
        self.last.0 += 1;
        let (id, events) = (self.last, self.events.clone());
        let (mut half, writer) = opened.stream.into_split();
        let reader = self.set.spawn(async move {
            let mut reader = ReplyReader::default();
            loop {
                let reply = next_reply(&mut half, &mut reader).await;
                let is_over = reply.is_err();
                if !tell(&events, lane, News::Replied(id, reply)).await || is_over {
                    return;
                }
            }
        });
        Connection { id, writer: Some(writer), _reader: Task(reader), rest: None, _place: opened.place }
    }

    /// Waits for the end of a task that panicked, for ever if there are none.
    pub async fn panicked(&mut self) -> Box<dyn std::any::Any + Send> {
        loop {
            match self.set.join_next().await {
                Some(Err(error)) if error.is_panic() => return error.into_panic(),
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// False if nobody listens any more.
async fn tell(events: &mpsc::Sender<Event>, lane: LaneId, news: News) -> bool {
    events.send(Event { lane, news }).await.is_ok()
}

async fn connect(ends: &Ends, timeout: Duration) -> Result<TcpStream, Uncarried> {
    let opening = TcpStream::connect(&ends[..]);
    let opened = tokio::time::timeout(timeout, opening).await;
    match opened.map(|opened| opened.and_then(|stream| stream.set_nodelay(true).map(|()| stream))) {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => {
            let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
            let text = format!("no connection: {error}");
            Err(if is_refused { Uncarried::NotListening(text) } else { Uncarried::NotDelivered(text) })
        }
        Err(_) => Err(Uncarried::NotDelivered(format!("no connection within {timeout:?}"))),
    }
}

async fn next_reply(half: &mut OwnedReadHalf, reader: &mut ReplyReader) -> Result<Reply, String> {
    loop {
        if let Some(mut reply) = reader.take()? {
            // Some close without having said so. If that is known already, no run is sent into it.
            let is_closed = half.ready(Interest::READABLE).now_or_never();
            reply.idle = reply.idle.filter(|_| !is_closed.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed)));
            return Ok(reply);
        }
        match std::future::poll_fn(|context| read_more(half, reader, context)).await {
            Ok(true) => {}
            Ok(false) => return reader.end(),
            Err(error) => return Err(format!("the connection broke before the reply was there: {error}")),
        }
    }
}

/// Reads what is there. False at the end.
fn read_more(half: &mut OwnedReadHalf, reader: &mut ReplyReader, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
    // Here and not in the task: a thousand idle connections need no thousand buffers.
    let mut space = [const { MaybeUninit::uninit() }; READ_BYTES];
    let mut space = ReadBuf::uninit(&mut space);
    ready!(Pin::new(half).poll_read(context, &mut space))?;
    reader.push(space.filled());
    Poll::Ready(Ok(!space.filled().is_empty()))
}

/// A task that ends with its connection.
#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An open connection; dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    /// Not here while a task writes the rest of a request.
    writer: Option<OwnedWriteHalf>,
    _reader: Task,
    rest: Option<Task>,
    _place: Option<OwnedSemaphorePermit>,
}

/// How much of a request the kernel has taken.
#[derive(Debug)]
pub enum Wrote {
    /// All of it.
    All,
    /// So many bytes; the others have to wait.
    Part(usize),
    /// None: the connection has ended.
    Nothing(io::Error),
}

impl Connection {
    /// Its name.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Writes as much of `bytes` as the kernel takes at once.
    pub fn write(&self, bytes: &[u8]) -> Wrote {
        let Some(writer) = &self.writer else { return Wrote::Part(0) };
        match writer.try_write(bytes) {
            Ok(written) if written == bytes.len() => Wrote::All,
            Ok(written) => Wrote::Part(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Wrote::Part(0),
            Err(error) => Wrote::Nothing(error),
        }
    }

    /// Has a task write what of `bytes` comes after the first `written`.
    pub fn write_rest(&mut self, lane: LaneId, bytes: Bytes, mut written: usize, tasks: &mut Tasks) {
        let Some(writer) = self.writer.take() else { return };
        let (id, events) = (self.id, tasks.events.clone());
        let rest = tasks.set.spawn(async move {
            let error = loop {
                match writer.try_write(&bytes[written..]) {
                    Ok(more) => written += more,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if let Err(error) = writer.writable().await {
                            break Some(error);
                        }
                    }
                    Err(error) => break Some(error),
                }
                if written == bytes.len() {
                    break None;
                }
            };
            tell(&events, lane, News::Written(id, Rest { written, error, writer })).await;
        });
        self.rest = Some(Task(rest));
    }

    /// The rest was written.
    pub fn take_back(&mut self, rest: Rest) {
        self.writer = Some(rest.writer);
        self.rest = None;
    }

    /// Whether all of the last request was written, as far as is known.
    pub fn is_writable(&self) -> bool {
        self.writer.is_some()
    }
}
