//! What happened, in order: printed when a simulation fails, compared when it is repeated.

use super::SimTime;
use std::sync::{Arc, Mutex};

/// An event and the runs that it is about.
#[derive(Debug, Clone)]
struct Event {
    at_ms: i64,
    text: String,
}

/// The events of one simulation.
#[derive(Debug)]
pub struct Trace {
    time: Arc<SimTime>,
    events: Mutex<Vec<Event>>,
}

impl Trace {
    /// Empty.
    #[must_use]
    pub fn new(time: Arc<SimTime>) -> Arc<Self> {
        Arc::new(Self { time, events: Mutex::default() })
    }

    /// Adds an event, now.
    pub fn add(&self, text: impl Into<String>) {
        self.events.lock().unwrap().push(Event { at_ms: self.time.elapsed_ms(), text: text.into() });
    }

    /// The events whose text holds `part`, the last `max` of them.
    #[must_use]
    pub fn about(&self, part: &str, max: usize) -> Vec<String> {
        let events = self.events.lock().unwrap();
        let found: Vec<&Event> = events.iter().filter(|event| event.text.contains(part)).collect();
        found[found.len().saturating_sub(max)..].iter().map(|event| line(event)).collect()
    }

    /// Every event; those of one instant in the order of their text, because the engine's own
    /// order within an instant is not its promise.
    #[must_use]
    pub fn sorted(&self) -> Vec<String> {
        let mut events = self.events.lock().unwrap().clone();
        events.sort_by(|a, b| (a.at_ms, &a.text).cmp(&(b.at_ms, &b.text)));
        events.iter().map(line).collect()
    }
}

fn line(event: &Event) -> String {
    format!("{:>9.3} s  {}", event.at_ms as f64 / 1_000.0, event.text)
}
