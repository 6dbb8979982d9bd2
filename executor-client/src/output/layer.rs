//! The layer that adds `tracing` events to the output of the run they belong to.

use super::Level;
use crate::run::Run;
use std::cell::RefCell;
use std::fmt::{self, Debug, Display};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Span, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Name and target of a run's span.
const SPAN: &str = "run";
const TARGET: &str = "carillon_executor::run";

thread_local! {
    /// The run whose span is being created: passes it to the layer, which sees only names and numbers.
    static NEW: RefCell<Option<Weak<Run>>> = const { RefCell::new(None) };
}

/// Whether there is a layer: without one, runs need no span. A span costs a run about two µs, plus
/// the work of other layers.
static IS_HEARD: AtomicBool = AtomicBool::new(false);

/// The span of a run. Its level is ERROR, so that no level filter excludes it: filters of events
/// decide what is logged.
pub(super) fn span_of(run: &Arc<Run>) -> Span {
    if !IS_HEARD.load(Ordering::Relaxed) {
        return Span::none();
    }
    NEW.with_borrow_mut(|new| *new = Some(Arc::downgrade(run)));
    let span = tracing::error_span!(target: TARGET, SPAN, log = run.item.log, attempt = run.item.attempt);
    NEW.with_borrow_mut(Option::take);
    span
}

/// A `tracing` layer that adds events to the output of the run in whose span they happen: in the
/// handler itself, in [`TaskContext::spawn_blocking`](crate::TaskContext::spawn_blocking), and in
/// tasks that carry the span (`tracing::Instrument::in_current_span`). It takes events of `level`
/// and above; it can also be wrapped in a filter of its own.
///
/// ```
/// use tracing::level_filters::LevelFilter;
/// use tracing_subscriber::layer::SubscriberExt as _;
/// use tracing_subscriber::util::SubscriberInitExt as _;
///
/// tracing_subscriber::registry().with(carillon_executor::output_layer(LevelFilter::INFO)).init();
/// ```
///
/// One layer serves every executor of the process. It only listens: other layers get the same events
/// as without it. A global filter, however, must let the events and the span through: if it names
/// targets, it needs at least `carillon_executor=error`.
pub fn output_layer<S>(level: LevelFilter) -> impl Layer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    IS_HEARD.store(true, Ordering::Relaxed);
    OutputLayer.with_filter(level)
}

struct OutputLayer;

/// In the span's extensions: the run of the span. It does not keep the run alive.
struct RunOf(Weak<Run>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for OutputLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.name() == SPAN
            && metadata.target() == TARGET
            && let Some(run) = NEW.with_borrow(Clone::clone)
            && let Some(span) = context.span(id)
        {
            span.extensions_mut().replace(RunOf(run));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let run = context
            .event_scope(event)
            .and_then(|mut scope| scope.find_map(|span| span.extensions().get::<RunOf>().map(|run| run.0.clone())));
        // Gone when the run has ended and only its span is left.
        if let Some(run) = run.and_then(|run| run.upgrade()) {
            run.log(level(*event.metadata().level()), &Shown(event));
        }
    }
}

fn level(level: tracing::Level) -> Level {
    match level {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

/// An event as text: `target: message field=value …`.
struct Shown<'a>(&'a Event<'a>);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.0.metadata().target())?;
        let mut message = Fields { to: f, message: true, result: Ok(()) };
        self.0.record(&mut message);
        message.result?;
        let mut fields = Fields { to: f, message: false, result: Ok(()) };
        self.0.record(&mut fields);
        fields.result
    }
}

/// Writes the message alone, or all but the message.
struct Fields<'a, 'f> {
    to: &'a mut fmt::Formatter<'f>,
    message: bool,
    result: fmt::Result,
}

impl Visit for Fields<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let is_message = field.name() == "message";
        if self.result.is_err() || is_message != self.message {
            return;
        }
        self.result =
            if is_message { write!(self.to, " {value:?}") } else { write!(self.to, " {}={value:?}", field.name()) };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else {
            self.record_debug(field, &value);
        }
    }
}
