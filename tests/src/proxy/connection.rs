//! One connection through a way.

use super::loss::{ROLLBACK, is_within};
use super::speech::{Conversation, Message};
use super::trap::{Action, Place};
use super::way::{Fate, Shared};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;

const BUFFER_BYTES: usize = 64 * 1024;

/// What happens to a message, and what tells that it may go on.
type Suffering = (Action, watch::Receiver<usize>);

pub(super) struct Connection {
    id: u64,
    shared: Arc<Shared>,
    fate: watch::Receiver<Fate>,
    conversation: Mutex<Conversation>,
    /// What happens to the next answer.
    awaiting: Mutex<Option<Suffering>>,
    /// The next answer is to a request of the way's own.
    is_own: AtomicBool,
}

impl Connection {
    pub(super) fn new(id: u64, shared: Arc<Shared>, fate: watch::Receiver<Fate>) -> Self {
        let conversation = Mutex::new(Conversation::new(shared.speech));
        Self { id, shared, fate, conversation, awaiting: Mutex::default(), is_own: AtomicBool::new(false) }
    }

    /// Until it ends or is lost.
    pub(super) async fn serve(self, mut client: TcpStream) {
        let mut fate = self.fate.clone();
        let decided = async {
            match fate.wait_for(|fate| *fate != Fate::Lives).await {
                Ok(fate) => *fate,
                Err(_) => Fate::Closed,
            }
        };
        let mut server = None;
        let fate = tokio::select! {
            fate = decided => fate,
            fate = self.talk(&mut client, &mut server) => fate,
        };
        match fate {
            // Both ends stay open: the sockets are kept.
            Fate::Lost => std::future::pending().await,
            Fate::Reset => {
                for end in [Some(client), server].into_iter().flatten() {
                    // One that is closed already needs no error.
                    let _ = end.set_zero_linger();
                }
            }
            Fate::Lives | Fate::Closed => {}
        }
    }

    async fn talk(&self, client: &mut TcpStream, server: &mut Option<TcpStream>) -> Fate {
        self.shared.pass().await;
        let Ok(stream) = TcpStream::connect(self.shared.target).await else { return Fate::Reset };
        let server = server.insert(stream);
        for end in [&*client, &*server] {
            // What passes is small and urgent.
            let _ = end.set_nodelay(true);
        }
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        let ended = tokio::select! {
            ended = self.requests(from_client, to_server) => ended,
            ended = self.answers(from_server, to_client) => ended,
        };
        ended.unwrap_or(Fate::Reset)
    }

    async fn requests(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<Fate> {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut is_in_transaction = false;
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return Ok(Fate::Closed);
            }
            self.shared.pass().await;
            let messages = self.conversation.lock().unwrap().asked(&buffer[..read]);
            for message in messages {
                if let Some(fate) = self.tread(&message).await {
                    return Ok(fate);
                }
                is_in_transaction = is_within(is_in_transaction, &message);
                if is_in_transaction && self.shared.loss.comes_before(&message) {
                    self.is_own.store(true, Ordering::SeqCst);
                    to.write_all(ROLLBACK).await?;
                }
                to.write_all(&message.bytes).await?;
            }
        }
    }

    async fn answers(&self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<Fate> {
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return Ok(Fate::Closed);
            }
            self.conversation.lock().unwrap().answered(&buffer[..read]);
            let suffering = self.awaiting.lock().unwrap().take();
            if let Some(suffering) = suffering
                && let Some(fate) = self.suffer(suffering).await
            {
                return Ok(fate);
            }
            self.shared.pass().await;
            // Its length is in its first three bytes; the header has four.
            let own = if self.is_own.swap(false, Ordering::SeqCst) { 4 + usize::from(buffer[0]) } else { 0 };
            to.write_all(&buffer[own..read]).await?;
        }
    }

    /// A message comes by a place where a trap may be.
    async fn tread(&self, message: &Message) -> Option<Fate> {
        let (trap, released) = self.shared.trap_for(message)?;
        self.shared.tell(self.id, &format!("{:?} {:?}: {:?}", trap.place, trap.point, trap.action));
        if trap.place == Place::After {
            *self.awaiting.lock().unwrap() = Some((trap.action, released));
            return None;
        }
        self.suffer((trap.action, released)).await
    }

    async fn suffer(&self, (action, mut released): Suffering) -> Option<Fate> {
        self.shared.sprung.send_modify(|count| *count += 1);
        match action {
            Action::Hold(time) => {
                // The way outlives its connections; either way it goes on.
                let _ = tokio::time::timeout(time, released.changed()).await;
                None
            }
            Action::Cut => Some(Fate::Closed),
            Action::Reset => Some(Fate::Reset),
            Action::Lose => Some(Fate::Lost),
            Action::Vanish => {
                self.shared.vanish();
                self.shared.vanished.send_modify(|count| *count += 1);
                Some(Fate::Lost)
            }
        }
    }
}
