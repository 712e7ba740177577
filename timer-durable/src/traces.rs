//! Spans of OpenTelemetry for calls and attempts.
//!
//! They follow the [conventions for messaging][conventions]. A call has the span `schedule TOPIC`,
//! whose context is kept with the timeout as its `traceparent`. The first attempt has the span
//! `process TOPIC` in the same trace. Each later attempt has a trace of its own with a link to the
//! call, so that neither retries over days nor a periodic timeout make one trace that never ends.
//!
//! The tracer is the global one of the crate `opentelemetry`, and so is the context of a call. A
//! tracer that panics costs a span and nothing else.
//!
//! [conventions]: https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/

use crate::TimeoutId;
use crate::time::Micros;
use opentelemetry::global::{self, BoxedSpan};
use opentelemetry::trace::{
    Link, Span, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TraceFlags, TraceState,
};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use std::fmt::Display;
use std::mem::take;
use std::sync::LazyLock;
use timer_executor::panics;

/// The span of a call that schedules a timeout.
pub(crate) struct CallSpan(Option<BoxedSpan>);

impl CallSpan {
    /// Starts a span, and notes its context. A call that names another trace has no span.
    pub(crate) fn start(topic: &str, traceparent: &mut Option<String>) -> Self {
        if traceparent.is_some() {
            return Self(None);
        }
        Self(contained(|| {
            let span = start(call(topic, "send"), &Context::current());
            *traceparent = write(span.span_context());
            Some(span)
        }))
    }

    pub(crate) fn end(mut self, answer: Result<TimeoutId, &impl Display>) {
        let Some(mut span) = self.0.take() else { return };
        contained(|| {
            match answer {
                Ok(timeout) => span.set_attribute(id(timeout)),
                Err(error) => {
                    span.set_attribute(KeyValue::new("error.type", "_OTHER"));
                    span.set_status(Status::error(error.to_string()));
                }
            }
            drop(span);
        });
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        contained(|| drop(self.0.take()));
    }
}

/// Returns the trace of a timeout that is made here and written later, by a transaction or the end
/// of an attempt.
pub(crate) fn created(topic: &str) -> Option<String> {
    contained(|| write(start(call(topic, "create"), &Context::current()).span_context()))
}

/// The context of a caller whose function runs on another thread.
pub(crate) struct Current(Context);

impl Current {
    pub(crate) fn of_caller() -> Self {
        Self(Context::current())
    }

    /// Runs a function of the user, whose spans are children of the current one.
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        let _guard = self.0.clone().attach();
        run()
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        // It may be the last one of its span.
        contained(|| drop(take(&mut self.0)));
    }
}

/// The span of an attempt.
pub(crate) struct AttemptSpan {
    context: Current,
    is_open: bool,
}

impl AttemptSpan {
    /// Starts the span of an attempt that has begun `lag` after its due time.
    pub(crate) fn start(timeout: TimeoutId, topic: &str, attempt: u32, lag: Micros, traceparent: Option<&str>) -> Self {
        let attributes = [
            KeyValue::new("messaging.operation.name", "process"),
            KeyValue::new("messaging.operation.type", "process"),
            id(timeout),
            KeyValue::new("timer_durable.attempt", i64::from(attempt)),
            KeyValue::new("timer_durable.lag", lag as f64 / 1e6),
        ];
        let mut span = builder(format!("process {topic}"), SpanKind::Consumer, topic, attributes);
        let mut parent = Context::new();
        match traceparent.and_then(read) {
            Some(call) if attempt == 1 => parent = parent.with_remote_span_context(call),
            Some(call) => span = span.with_links(vec![Link::with_context(call)]),
            None => {}
        }
        let context = Current(contained(|| Context::new().with_span(start(span, &parent))));
        Self { context, is_open: true }
    }

    /// Runs a part of the handler.
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        self.context.during(run)
    }

    /// Ends the span, with the reason if the attempt has failed.
    pub(crate) fn end(mut self, failure: Option<&str>) {
        self.finish(failure);
    }

    fn finish(&mut self, failure: Option<&str>) {
        self.is_open = false;
        contained(|| {
            let span = self.context.0.span();
            if let Some(failure) = failure {
                span.set_attribute(KeyValue::new("error.type", "_OTHER"));
                span.set_status(Status::error(failure.to_owned()));
            }
            span.end();
        });
    }
}

impl Drop for AttemptSpan {
    fn drop(&mut self) {
        if self.is_open {
            self.finish(Some("the handler was dropped"));
        }
    }
}

/// Runs code of the tracer and of its processors, which may panic.
fn contained<R: Default>(run: impl FnOnce() -> R) -> R {
    let mut result = R::default();
    panics::contain("a tracer panicked", || result = run());
    result
}

fn id(id: TimeoutId) -> KeyValue {
    KeyValue::new("messaging.message.id", id.to_string())
}

fn call(topic: &str, kind: &'static str) -> SpanBuilder {
    let attributes =
        [KeyValue::new("messaging.operation.name", "schedule"), KeyValue::new("messaging.operation.type", kind)];
    builder(format!("schedule {topic}"), SpanKind::Producer, topic, attributes)
}

fn builder(name: String, kind: SpanKind, topic: &str, attributes: impl IntoIterator<Item = KeyValue>) -> SpanBuilder {
    let common = [
        KeyValue::new("messaging.system", "timer_durable"),
        KeyValue::new("messaging.destination.name", topic.to_owned()),
    ];
    SpanBuilder::from_name(name).with_kind(kind).with_attributes(common.into_iter().chain(attributes))
}

fn start(span: SpanBuilder, parent: &Context) -> BoxedSpan {
    static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
        InstrumentationScope::builder("timer-durable").with_version(env!("CARGO_PKG_VERSION")).build()
    });
    span.start_with_context(&global::tracer_with_scope(SCOPE.clone()), parent)
}

/// Returns a `traceparent`, or `None` if nothing is traced.
fn write(context: &SpanContext) -> Option<String> {
    let flags = context.trace_flags().to_u8();
    context.is_valid().then(|| format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id()))
}

/// Reads a `traceparent`. Another program may have written any text.
fn read(traceparent: &str) -> Option<SpanContext> {
    let mut parts = traceparent.split('-');
    let is_hex = |part: &&str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut part = |length| parts.next().filter(|part| part.len() == length).filter(is_hex);
    let version = part(2)?;
    let trace = part(32)?;
    let span = part(16)?;
    let flags = part(2)?;
    let trace = u128::from_str_radix(trace, 16).ok()?;
    let span = u64::from_str_radix(span, 16).ok()?;
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let context = SpanContext::new(trace.into(), span.into(), flags, true, TraceState::NONE);
    // Only a later version may have further fields.
    let is_known = if version == "00" { parts.next().is_none() } else { version != "ff" };
    (is_known && context.is_valid()).then_some(context)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_traceparent_is_read_as_the_w3c_writes_it() {
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let span = "b7ad6b7169203331";
        for valid in
            [format!("00-{trace}-{span}-01"), format!("01-{trace}-{span}-00-more"), format!("cc-{trace}-{span}-01-")]
        {
            assert!(read(&valid).is_some_and(|context| context.span_id().to_string() == span), "{valid}");
        }
        let zeros = "0".repeat(32);
        for invalid in [
            String::new(),
            "-".repeat(255),
            "\0".to_owned(),
            format!("ff-{trace}-{span}-01"),
            format!("zz-{trace}-{span}-01"),
            format!("00-{trace}-{span}"),
            format!("00-{trace}-{span}-+1"),
            format!("00-{trace}-{span}-01-more"),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-+{}-{span}-01", &trace[1..]),
            format!("00-{zeros}-{span}-01"),
            format!("00-{trace}-{}-01", &zeros[..16]),
            format!("00-{trace}-ää{}-01", &span[4..]),
        ] {
            assert!(read(&invalid).is_none(), "{invalid}");
        }
    }
}
