//! The span of a run: events inside it belong to the run's output. Without the feature `layer`
//! there is no span, and this type is empty.

/// The span of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunSpan {
    #[cfg(feature = "layer")]
    pub(super) span: tracing::Span,
}

#[cfg(feature = "layer")]
impl RunSpan {
    /// Calls `work` inside of it.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.in_scope(work)
    }

    /// A future that is inside the span whenever it is polled, and when it is dropped.
    pub(crate) fn carry<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        tracing::Instrument::instrument(future, self.span)
    }
}

#[cfg(not(feature = "layer"))]
#[allow(clippy::unused_self)] // the same to its users, with the feature and without
impl RunSpan {
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(crate) fn carry<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        future
    }
}
