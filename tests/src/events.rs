//! Server-sent events, as a browser reads them.

use crate::wait::sample;
use serde_json::Value;
use std::time::Duration;

/// Longest wait for the next event.
const PATIENCE: Duration = Duration::from_mins(1);

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its kind; `message` when it has no name.
    pub kind: String,
    /// As sent, to go on after it.
    pub id: Option<String>,
    /// What it carries.
    pub data: Value,
}

/// A stream of events with a listener. When it is dropped, the listener is gone.
#[derive(Debug)]
pub struct Events {
    reply: reqwest::Response,
    buffer: Vec<u8>,
}

impl Events {
    /// Listens to a reply.
    #[must_use]
    pub fn of(reply: reqwest::Response) -> Self {
        Self { reply, buffer: Vec::new() }
    }

    /// The next event; `None` when the stream has ended. Comments are passed over.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.buffer.windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let block = String::from_utf8(block).expect("events are UTF-8");
                if let Some(event) = read(&block) {
                    return Some(event);
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.reply.chunk()).await;
            let chunk = chunk.unwrap_or_else(|_| panic!("no event within {PATIENCE:?}"));
            self.buffer.extend_from_slice(&chunk.expect("the stream is cut")?);
        }
    }

    /// All events up to the end of the stream.
    pub async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        assert!(self.buffer.is_empty(), "half an event after {}", sample(&events));
        events
    }
}

fn read(block: &str) -> Option<Event> {
    let field =
        |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned);
    let data = field("data")?;
    let data = serde_json::from_str(&data).unwrap_or_else(|error| panic!("{data}: {error}"));
    Some(Event { kind: field("event").unwrap_or_else(|| "message".to_owned()), id: field("id"), data })
}
