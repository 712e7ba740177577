//! Traces from a call to its handler, with an exporter in memory, which all tests of this program
//! share. A test looks for its own traces. The exporter blocks on a future when a span ends, so no
//! span ends inside of `block_on`.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

#[allow(dead_code, reason = "other tests use more of it")]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt;
use opentelemetry::global;
use opentelemetry::trace::{Span as _, SpanContext, SpanKind, Status, TraceContextExt, TraceId, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, Span, SpanData, SpanProcessor};
use timer_durable::{Done, Due, DurableTimer, DurableTimerBuilder, Later, MemoryStore, Retry, Schedule, Topic};

const SECOND: Duration = Duration::from_secs(1);
const CLOSE: Topic<String> = Topic::new("order.close");
const ARCHIVE: Topic<String> = Topic::new("order.archive");

/// Runs a request in a span of its own. Returns its context.
fn request<R>(run: impl FnOnce() -> R) -> (SpanContext, R) {
    let context = Context::new().with_span(global::tracer("test").start_with_context("request", &Context::new()));
    let _guard = context.clone().attach();
    let result = run();
    (context.span().span_context().clone(), result)
}

fn exporter() -> &'static InMemorySpanExporter {
    static EXPORTER: OnceLock<InMemorySpanExporter> = OnceLock::new();
    EXPORTER.get_or_init(|| {
        let exporter = InMemorySpanExporter::default();
        let builder = SdkTracerProvider::builder().with_simple_exporter(exporter.clone());
        global::set_tracer_provider(builder.with_span_processor(Panicking).build());
        exporter
    })
}

/// Panics at the start or at the end of the spans of a topic with this name.
#[derive(Debug)]
struct Panicking;

impl SpanProcessor for Panicking {
    fn on_start(&self, span: &mut Span, _: &Context) {
        let name = span.exported_data().map(|span| span.name).unwrap_or_default();
        assert!(!name.ends_with("start panics"));
    }

    fn on_end(&self, span: SpanData) {
        assert!(!span.name.ends_with("end panics"));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Returns the finished spans of a trace, and of those that have a link to it, in their order.
fn spans_of(trace: TraceId) -> Vec<SpanData> {
    let is_of = |span: &SpanData| {
        span.span_context.trace_id() == trace || span.links.iter().any(|link| link.span_context.trace_id() == trace)
    };
    let mut spans = exporter().get_finished_spans().unwrap();
    spans.retain(is_of);
    spans.sort_by_key(|span| span.start_time);
    spans
}

fn names(spans: &[SpanData]) -> Vec<&str> {
    spans.iter().map(|span| &*span.name).collect()
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute: &&KeyValue| attribute.key.as_str() == name)?;
    Some(found.value.to_string())
}

/// The handler fails once, and schedules a follow-up from a span of its own when it succeeds.
fn builder() -> DurableTimerBuilder {
    let close = |due: &Due<String>| {
        if due.attempt() == 1 {
            return Err(Retry::new("the shop is closed"));
        }
        global::tracer("test").start("in the handler").end();
        Ok(Done::then(ARCHIVE, Schedule::after(SECOND), due.payload()))
    };
    DurableTimer::builder().topic(CLOSE, close).topic(ARCHIVE, |_: &Due<String>| Ok(()))
}

#[test]
fn a_trace_leads_from_the_request_to_the_handler_over_a_restart() {
    exporter();
    let store = MemoryStore::new();
    let (timer, driver) = builder().build_manual(store.clone()).unwrap();
    let (request, id) = request(|| timer.new_timeout(CLOSE, 60 * SECOND, "17").wait().unwrap());
    driver.crash();
    drop(timer);
    let (timer, mut driver) = builder().build_manual(store.clone()).unwrap();
    assert!(driver.advance(3600 * SECOND) >= 3);
    drop(timer);

    let spans = spans_of(request.trace_id());
    assert_eq!(names(&spans), ["request", "schedule order.close", "process order.close", "process order.close"]);
    let [_, schedule, first, second] = &spans[..] else { unreachable!() };
    assert_eq!(schedule.parent_span_id, request.span_id());
    assert_eq!((&schedule.span_kind, &first.span_kind), (&SpanKind::Producer, &SpanKind::Consumer));
    for span in &spans[1..] {
        assert_eq!(attribute(span, "messaging.message.id"), Some(id.to_string()), "{}", span.name);
        assert_eq!(attribute(span, "messaging.destination.name").as_deref(), Some("order.close"), "{}", span.name);
    }
    let call = &schedule.span_context;
    assert_eq!((first.span_context.trace_id(), first.parent_span_id), (call.trace_id(), call.span_id()));
    assert_eq!(first.status, Status::error("the shop is closed"));
    assert_ne!(second.span_context.trace_id(), call.trace_id(), "a retry has a trace of its own");
    assert_eq!(second.links[0].span_context.span_id(), call.span_id());
    assert_eq!((attribute(second, "timer_durable.attempt").as_deref(), &second.status), (Some("2"), &Status::Unset));

    let spans = spans_of(second.span_context.trace_id());
    let expected = ["process order.close", "in the handler", "schedule order.archive", "process order.archive"];
    assert_eq!(names(&spans), expected, "what a handler does belongs to its attempt");
    assert!(spans[1..3].iter().all(|span| span.parent_span_id == second.span_context.span_id()));
    assert_eq!(spans[3].parent_span_id, spans[2].span_context.span_id());
}

#[test]
fn each_kind_of_call_has_a_span() {
    exporter();
    let handler = |due: Due<String>| async move {
        futures::future::ready(()).await;
        global::tracer("test").start("in the future").end();
        if due.payload() == "later" { Err(Later::after(SECOND)) } else { Ok(()) }
    };
    let builder = DurableTimer::builder().spawn(|future| future.now_or_never().unwrap()).topic_async(CLOSE, handler);
    let (timer, mut driver) = builder.build_manual(MemoryStore::new()).unwrap();
    let soon = || Schedule::after(SECOND);
    let call = |schedule| timer.schedule(CLOSE, schedule, "17");
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (request, ()) = request(|| {
        call(soon()).now_or_never().unwrap().unwrap();
        timer.schedule_many([CLOSE.with(soon(), "17"), CLOSE.with(soon(), "17")]).wait().unwrap();
        timer.transaction(|tx| Ok(tx.new_timeout(CLOSE, SECOND, "later")?)).wait().unwrap();
        call(soon().traceparent(given)).wait().unwrap();
        call(soon().traceparent("no trace at all")).wait().unwrap();
        call(soon().traceparent("7".repeat(256))).wait().unwrap_err();
    });
    assert_eq!(driver.advance(SECOND), 6);
    let spans = spans_of(request.trace_id());
    let count = |name| names(&spans).into_iter().filter(|span| *span == name).count();
    assert_eq!([count("schedule order.close"), count("process order.close"), count("in the future")], [4, 4, 4]);
    assert!(spans.iter().all(|span| span.status == Status::Unset), "a postponed attempt has not failed");
    let spans = spans_of(TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").unwrap());
    assert_eq!(names(&spans), ["process order.close", "in the future"]);
    assert_eq!(spans[0].parent_span_id.to_string(), "b7ad6b7169203331");
}

#[test]
fn work_on_the_thread_of_the_keeper_belongs_to_its_caller() {
    exporter();
    let timer = DurableTimer::builder().topic_elsewhere(CLOSE).open(MemoryStore::new()).wait().unwrap();
    let work = || timer.transaction(|tx| Ok(tx.new_timeout(CLOSE, SECOND, "17")?)).wait().unwrap();
    let (request, _) = request(work);
    assert_eq!(names(&spans_of(request.trace_id())), ["request", "schedule order.close"]);
}

#[test]
fn a_tracer_that_panics_costs_spans_only() {
    exporter();
    for (name, is_async) in
        [("start panics", false), ("start panics", true), ("end panics", false), ("end panics", true)]
    {
        let topic: Topic<String> = Topic::new(name);
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let run = move || {
            // ORDERING: Relaxed, the handler runs on the thread that reads it.
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<(), Retry>(())
        };
        let builder = DurableTimer::builder().spawn(|future| future.now_or_never().unwrap());
        let builder = match is_async {
            true => builder.topic_async(topic, move |_: Due<String>| futures::future::ready(run())),
            false => builder.topic(topic, move |_: &Due<String>| run()),
        };
        let (timer, mut driver) = builder.build_manual(MemoryStore::new()).unwrap();
        let soon = || Schedule::after(SECOND);
        timer.schedule(topic, soon(), "17").wait().unwrap();
        drop(timer.schedule(topic, soon(), "17"));
        timer.schedule_many([topic.with(soon(), "17"), topic.with(soon(), "17")]).wait().unwrap();
        timer.transaction(move |tx| Ok(tx.new_timeout(topic, SECOND, "17")?)).wait().unwrap();
        // ORDERING: Relaxed, as above.
        assert_eq!((driver.advance(3600 * SECOND), runs.load(Ordering::Relaxed)), (5, 5), "{name}, {is_async}");
    }
}

#[test]
fn the_keeper_outlives_a_span_that_it_drops_last() {
    exporter();
    let timer = DurableTimer::builder().topic_elsewhere(CLOSE).open(MemoryStore::new()).wait().unwrap();
    let context = Context::new().with_span(global::tracer("test").start_with_context("end panics", &Context::new()));
    let (reached, wait) = std::sync::mpsc::channel();
    let (go, going) = std::sync::mpsc::channel::<()>();
    let work = move |_: &mut timer_durable::Transaction<'_>| {
        reached.send(()).unwrap();
        Ok(going.recv()?)
    };
    let future = {
        let _guard = context.clone().attach();
        timer.transaction(work)
    };
    wait.recv().unwrap();
    drop((future, context));
    go.send(()).unwrap();
    timer.new_timeout(CLOSE, SECOND, "17").wait().unwrap();
}

#[test]
fn the_span_of_a_handler_that_is_dropped_has_failed() {
    exporter();
    let builder = DurableTimer::builder().spawn(drop).topic_async(CLOSE, |_: Due<String>| async { Ok(()) });
    let (timer, mut driver) = builder.build_manual(MemoryStore::new()).unwrap();
    let (request, _) = request(|| timer.new_timeout(CLOSE, SECOND, "17").wait().unwrap());
    driver.advance(SECOND);
    let spans = spans_of(request.trace_id());
    assert_eq!(names(&spans), ["request", "schedule order.close", "process order.close"]);
    assert_eq!(spans[2].status, Status::error("the handler was dropped"));
}
