//! A process: what runs in it stands still while it is frozen, and is gone when it is killed.

use carillon_simulation::Gate;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use tokio::task::{AbortHandle, JoinHandle};

/// A running process.
pub struct Process {
    gate: Arc<Gate>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Process {
    /// One in which nothing runs yet.
    pub fn new(gate: Arc<Gate>) -> Self {
        Self { gate, tasks: Mutex::default() }
    }

    /// Runs `work` in it.
    pub fn spawn<A: Send + 'static>(&self, work: impl Future<Output = A> + Send + 'static) -> JoinHandle<A> {
        let mut tasks = self.tasks.lock().unwrap();
        tasks.retain(|task| !task.is_finished());
        let handle = tokio::spawn(self.confine(work));
        tasks.push(handle.abort_handle());
        handle
    }

    /// The same work, which does not go on while the process stands still. Whoever runs it ends it.
    pub fn confine<W: Future>(&self, work: W) -> Confined<W> {
        Confined { gate: self.gate.clone(), thaw: None, work: Box::pin(work) }
    }

    /// Ends all that runs in it, at once.
    pub fn kill(&self) {
        for task in self.tasks.lock().unwrap().drain(..) {
            task.abort();
        }
    }
}

/// Work of a process.
pub struct Confined<W> {
    gate: Arc<Gate>,
    thaw: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    work: Pin<Box<W>>,
}

impl<W: Future> Future for Confined<W> {
    type Output = W::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<W::Output> {
        if self.thaw.is_none() && self.gate.is_frozen() {
            let gate = self.gate.clone();
            self.thaw = Some(Box::pin(async move { gate.thawed().await }));
        }
        if let Some(thaw) = &mut self.thaw {
            ready!(thaw.as_mut().poll(context));
            self.thaw = None;
        }
        self.work.as_mut().poll(context)
    }
}
