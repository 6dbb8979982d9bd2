//! Opens the span of a run.

use super::span::RunSpan;
use crate::run::Run;
use std::sync::Arc;

#[cfg(feature = "layer")]
pub(crate) fn span_of(run: &Arc<Run>) -> RunSpan {
    RunSpan { span: super::layer::span_of(run) }
}

#[cfg(not(feature = "layer"))]
pub(crate) fn span_of(_: &Arc<Run>) -> RunSpan {
    RunSpan {}
}
