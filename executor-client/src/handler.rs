//! Handlers: named async functions behind one object-safe trait.

use crate::output::span::RunSpan;
use crate::run::{Handler, HandlerFuture, Run};
use crate::{Output, TaskContext, TaskError};
use carillon_protocol::HandlerInfo;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

impl<F, Fut> Handler for F
where
    F: Fn(TaskContext) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
{
    fn call(&self, run: &Arc<Run>, started_at_us: i64, span: &RunSpan) -> HandlerFuture {
        Box::pin(self(TaskContext::new(Arc::clone(run), started_at_us, span.clone())))
    }
}

/// A handler that takes its parameters as a value.
pub(crate) struct Typed<P, F> {
    function: F,
    // `fn() -> P`: the handler holds no `P`, so it need not be `Send` or `Sync`.
    params: PhantomData<fn() -> P>,
}

impl<P, F> Typed<P, F> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, params: PhantomData }
    }
}

impl<P, F, Fut> Handler for Typed<P, F>
where
    P: DeserializeOwned,
    F: Fn(TaskContext, P) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Output, TaskError>> + Send + 'static,
{
    fn call(&self, run: &Arc<Run>, started_at_us: i64, span: &RunSpan) -> HandlerFuture {
        let context = TaskContext::new(Arc::clone(run), started_at_us, span.clone());
        match context.params_as::<P>() {
            Ok(params) => Box::pin((self.function)(context, params)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// Every handler of an executor, by name.
#[derive(Clone, Default)]
pub(crate) struct Handlers {
    pub(crate) infos: Vec<HandlerInfo>,
    pub(crate) by_name: HashMap<String, Arc<dyn Handler>>,
    /// Names that were given twice; the builder refuses them.
    pub(crate) duplicates: Vec<String>,
}

impl Handlers {
    pub(crate) fn add(&mut self, info: HandlerInfo, handler: Arc<dyn Handler>) {
        if self.by_name.insert(info.name.clone(), handler).is_some() {
            self.duplicates.push(info.name);
        } else {
            self.infos.push(info);
        }
    }
}
