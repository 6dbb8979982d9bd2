//! Handlers that stay inside until the test lets them out, and notice when they meet.

use carillon_executor::{ExecutorBuilder, Output, TaskContext};
use carillon_protocol::{BlockStrategy, DispatchItem};
use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Default)]
struct Inner {
    /// (task, log) of the runs inside.
    inside: Vec<(i64, i64)>,
    /// Pairs of logs of one task that were inside at the same time.
    met: Vec<(i64, i64)>,
    entered: Vec<i64>,
    left: Vec<i64>,
    let_out: HashSet<i64>,
    open: bool,
}

#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<Inner>, Condvar)>);

/// Leaves when dropped.
struct Inside(Gate, i64, i64);

impl Drop for Inside {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.inside.retain(|inside| *inside != (self.1, self.2));
        inner.left.push(self.2);
    }
}

impl Gate {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.0.lock().unwrap()
    }

    fn enter(&self, ctx: &TaskContext) -> Inside {
        let (task, log) = (ctx.task(), ctx.log());
        let mut inner = self.inner();
        let met: Vec<_> = inner.inside.iter().filter(|other| other.0 == task).map(|other| (other.1, log)).collect();
        inner.met.extend(met);
        inner.inside.push((task, log));
        inner.entered.push(log);
        Inside(self.clone(), task, log)
    }

    fn lets_out(inner: &Inner, log: i64) -> bool {
        inner.open || inner.let_out.contains(&log)
    }

    /// Lets one run end.
    pub fn let_out(&self, log: i64) {
        self.inner().let_out.insert(log);
        self.0.1.notify_all();
    }

    /// Lets every run end, also those to come.
    pub fn open(&self) {
        self.inner().open = true;
        self.0.1.notify_all();
    }

    /// Runs in the order in which they came in.
    pub fn entered(&self) -> Vec<i64> {
        self.inner().entered.clone()
    }

    pub fn has_entered(&self, log: i64) -> bool {
        self.inner().entered.contains(&log)
    }

    pub fn has_left(&self, log: i64) -> bool {
        self.inner().left.contains(&log)
    }

    /// Pairs of runs of one task that were inside together.
    pub fn met(&self) -> Vec<(i64, i64)> {
        self.inner().met.clone()
    }

    /// Adds the handlers `waits`, which is gone when it is dropped; `blocks`, whose thread goes
    /// on whatever it is told; and `leaves`, which returns before its thread does.
    pub fn handlers(&self, builder: ExecutorBuilder) -> ExecutorBuilder {
        let (waits, blocks, leaves) = (self.clone(), self.clone(), self.clone());
        builder
            .handler("waits", move |ctx: TaskContext| {
                let gate = waits.clone();
                async move {
                    let _inside = gate.enter(&ctx);
                    while !Self::lets_out(&gate.inner(), ctx.log()) {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    Ok(Output::none())
                }
            })
            .handler("blocks", move |ctx: TaskContext| {
                let gate = blocks.clone();
                async move {
                    let inside = gate.clone();
                    let context = ctx.clone();
                    ctx.spawn_blocking(move || inside.block(&context)).await?;
                    Ok(Output::text("let out"))
                }
            })
            .handler("leaves", move |ctx: TaskContext| {
                let gate = leaves.clone();
                async move {
                    let context = ctx.clone();
                    drop(ctx.spawn_blocking(move || gate.block(&context)));
                    Ok(Output::text("left"))
                }
            })
    }

    fn block(&self, ctx: &TaskContext) {
        let _inside = self.enter(ctx);
        drop(self.0.1.wait_while(self.inner(), |inner| !Self::lets_out(inner, ctx.log())).unwrap());
    }
}

/// A run of task 1.
pub fn run(log: i64, handler: &str, strategy: BlockStrategy, due_ms: i64) -> DispatchItem {
    DispatchItem { block_strategy: strategy, ..crate::client::item(log, handler, due_ms) }
}
