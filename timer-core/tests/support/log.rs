//! The events that timers trace, sorted by the timer's name. Listeners run on the tracing thread.

use std::fmt;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, Once};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// A traced event.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) level: Level,
    pub(crate) timer: String,
    pub(crate) message: String,
    /// All fields but the message, each as `name=value`.
    pub(crate) fields: String,
}

type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

static LISTENERS: Mutex<Vec<(String, Listener)>> = Mutex::new(Vec::new());

/// Calls `listener` with every event of the timer `timer`, from inside the subscriber, on the
/// thread that traces.
pub(crate) fn listen(timer: &str, listener: impl Fn(&Event) + Send + Sync + 'static) {
    static ONCE: Once = Once::new();
    LISTENERS.lock().unwrap().push((timer.to_owned(), Arc::new(listener)));
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Listening).unwrap();
        // Otherwise events that another thread traced first in the meantime would stay disabled.
        tracing::callsite::rebuild_interest_cache();
    });
}

/// Removes the listeners of the timer `timer`.
pub(crate) fn forget(timer: &str) {
    let gone: Vec<_> = LISTENERS.lock().unwrap().extract_if(.., |(name, _)| name == timer).collect();
    drop(gone);
}

/// Returns a channel of the warnings and errors of the timer `timer`.
pub(crate) fn complaints(timer: &str) -> Receiver<Event> {
    let (sender, receiver) = channel();
    listen(timer, move |event| {
        if event.level <= Level::WARN {
            let _ = sender.send(event.clone());
        }
    });
    receiver
}

struct Listening;

impl Subscriber for Listening {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut seen = Fields::default();
        event.record(&mut seen);
        let Fields { timer, message, fields } = seen;
        let event = Event { level: *event.metadata().level(), timer, message, fields };
        let listeners: Vec<Listener> = {
            let all = LISTENERS.lock().unwrap();
            all.iter().filter(|(timer, _)| *timer == event.timer).map(|(_, listener)| listener.clone()).collect()
        };
        listeners.iter().for_each(|listener| listener(&event));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields {
    timer: String,
    message: String,
    fields: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "timer" => self.timer = format!("{value:?}"),
            "message" => self.message = format!("{value:?}"),
            name => self.fields.push_str(&format!("{name}={value:?} ")),
        }
    }
}
