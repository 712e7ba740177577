//! Settings of the server that [`TimerMetrics::serve_with`](crate::TimerMetrics::serve_with)
//! starts.

#[cfg(feature = "durable")]
use super::actions::Actions;
use super::live::Live;
use super::site::Site;
#[cfg(feature = "durable")]
use crate::durable::DurableMetrics;
use crate::timer_metrics::TimerMetrics;
use prometheus_client::registry::Registry;
use std::io;
use std::sync::Arc;

/// Settings of a server, such as a prefix for the names of its metrics.
///
/// # Examples
///
/// ```
/// use timer_metrics::{ServeOptions, TimerMetrics};
///
/// let timer = timer_core::Timer::new();
/// let options = ServeOptions::new().prefix("shop").label("region", "eu-west");
/// let server = TimerMetrics::from_iter([&timer]).serve_with(0, options)?;
/// // A scrape has: shop_timer_pending_timeouts{region="eu-west",timer="timer"} 0
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "these settings do nothing until they are passed to `serve_with`"]
pub struct ServeOptions {
    prefix: Option<String>,
    labels: Vec<(String, String)>,
    hosts: Vec<String>,
    #[cfg(feature = "durable")]
    durable: DurableMetrics,
    #[cfg(feature = "durable")]
    has_actions: bool,
}

impl ServeOptions {
    /// Creates the default settings, without a prefix and without labels.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{ServeOptions, TimerMetrics};
    /// let server = TimerMetrics::new().serve_with(0, ServeOptions::new())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a prefix. It is written before each name with a `_` between them. A prefix consists of
    /// ASCII letters, digits, `_` and `:`, and does not begin with a digit.
    ///
    /// The dashboard and the alerts of this crate expect the names without a prefix.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{ServeOptions, TimerMetrics};
    /// let server = TimerMetrics::new().serve_with(0, ServeOptions::new().prefix("shop"))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Adds a label with a constant value to every metric. The live page shows it as well. A name
    /// consists of ASCII letters, digits and `_`, does not begin with a digit or with `__`, occurs
    /// once, and is none of `timer`, `topic`, `cause` and `le`, which the metrics have already. The
    /// value may be any text.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{ServeOptions, TimerMetrics};
    /// let options = ServeOptions::new().label("region", "eu-west").label("shard", "7");
    /// let server = TimerMetrics::new().serve_with(0, options)?;
    ///
    /// let taken = ServeOptions::new().label("timer", "x");
    /// assert!(TimerMetrics::new().serve_with(0, taken).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// Adds a name under which a server on a loopback address is asked, for example by a proxy that
    /// passes on the `Host` of its client. Without it such a server answers requests for
    /// `localhost` and for addresses alone, so that no page of another site reads the figures
    /// through the user's browser (DNS rebinding). A server on another address answers under any
    /// name.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_metrics::{ServeOptions, TimerMetrics};
    /// let options = ServeOptions::new().host("metrics.example");
    /// let server = TimerMetrics::new().serve_with(0, options)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// Adds durable timers to the metrics and to the live page. A later call replaces an earlier
    /// one.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    /// use timer_metrics::{DurableMetrics, ServeOptions, TimerMetrics};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let durable = DurableMetrics::new();
    /// durable.watch(&timer);
    /// let server = TimerMetrics::new().serve_with(0, ServeOptions::new().durable(&durable))?;
    /// println!("open http://{}", server.local_addr());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "durable")]
    #[cfg_attr(docsrs, doc(cfg(feature = "durable")))]
    pub fn durable(mut self, metrics: &DurableMetrics) -> Self {
        self.durable = metrics.clone();
        self
    }

    /// Lets the users of the page act on the durable timers. By default the page is read-only, and
    /// the paths below do not exist (status 404).
    ///
    /// | request | effect |
    /// |---|---|
    /// | `GET /timeouts.json?timer=T` | lists the 20 earliest timeouts and 20 dead letters |
    /// | `POST /actions/cancel?timer=T&id=ID` | cancels a pending timeout |
    /// | `POST /actions/run?timer=T&id=ID` | makes a pending timeout due now |
    /// | `POST /actions/requeue?timer=T&id=ID` | makes a dead letter pending again and due now |
    /// | `POST /actions/pause?timer=T&topic=NAME` | pauses a topic on all nodes |
    /// | `POST /actions/resume?timer=T&topic=NAME` | resumes it |
    ///
    /// `topic` and the beginning of a `key` narrow the list down. An action answers with a line of
    /// text. Its status is 200 if it was done, 404 if the timer or the timeout is gone, 409 if an
    /// attempt has begun, 503 if the store failed, and 400 if a parameter is wrong. These requests
    /// wait for the store, so an async server answers them on a thread that may block.
    ///
    /// # Security
    ///
    /// The page has no login. Everybody who reaches it can act, so do not serve it with actions on
    /// an address that others reach. Mount it in a server with a login instead, by
    /// [`TimerMetrics::site`](crate::TimerMetrics::site).
    ///
    /// A page of another site in the same browser cannot act. An action needs the header
    /// `Timer-Action` (with any value), which no form can send, and which a script of another site
    /// may not send. `Origin`, if present, names the same host and port as `Host`, or a name given
    /// to [`host`](Self::host). `Host` is `localhost`, an address or such a name, on every address
    /// and also for a mounted site. Otherwise the status is 403. A program acts like this:
    ///
    /// ```sh
    /// curl -X POST -H 'Timer-Action: 1' 'http://localhost:9184/actions/pause?timer=orders&topic=order.close'
    /// ```
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    /// use timer_metrics::{DurableMetrics, Request, ServeOptions, TimerMetrics};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let durable = DurableMetrics::new();
    /// durable.watch(&timer);
    /// let site = TimerMetrics::new().site(ServeOptions::new().durable(&durable).actions(true))?;
    ///
    /// let pause = Request::new("POST", "/actions/pause?timer=orders&topic=order.close");
    /// let reply = site.respond_to(&pause.header("Host", "localhost").header("Timer-Action", "1"));
    /// assert_eq!(reply.into_body(), "paused\n");
    /// assert_eq!(timer.paused_topics()?, ["order.close"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "durable")]
    #[cfg_attr(docsrs, doc(cfg(feature = "durable")))]
    pub fn actions(mut self, are_allowed: bool) -> Self {
        self.has_actions = are_allowed;
        self
    }

    /// Returns the documents of a server with these settings. Fails with `InvalidInput` if the
    /// prefix or the name of a label is not allowed.
    pub(super) fn into_site(self, metrics: &TimerMetrics) -> io::Result<Site> {
        let Self {
            prefix,
            labels,
            hosts,
            #[cfg(feature = "durable")]
            durable,
            #[cfg(feature = "durable")]
            has_actions,
        } = self;
        if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_name(prefix, "_:")) {
            return invalid(format!(
                "the prefix `{prefix}` is not allowed: use ASCII letters, digits, `_` and `:`, and do not begin with a digit"
            ));
        }
        for (index, (name, _)) in labels.iter().enumerate() {
            if !is_name(name, "_")
                || name.starts_with("__")
                || ["timer", "topic", "cause", "le"].contains(&name.as_str())
            {
                return invalid(format!(
                    "the label name `{name}` is not allowed: use ASCII letters, digits and `_`, do not begin with a digit or \
                     `__`, and use none of `timer`, `topic`, `cause` and `le`"
                ));
            }
            if labels[..index].iter().any(|(earlier, _)| earlier == name) {
                return invalid(format!("the label name `{name}` is given twice: each name is allowed once"));
            }
        }
        let constant = labels.iter().cloned().map(|(name, value)| (name.into(), value.into()));
        let mut registry = match prefix {
            Some(prefix) => Registry::with_prefix_and_labels(prefix, constant),
            None => Registry::with_labels(constant),
        };
        metrics.register(&mut registry);
        #[cfg(feature = "durable")]
        durable.register(&mut registry);
        #[cfg(feature = "durable")]
        let actions = has_actions.then(|| Actions { metrics: durable.clone(), names: hosts.clone() });
        let live = Live::new(
            metrics.clone(),
            #[cfg(feature = "durable")]
            durable,
            #[cfg(feature = "durable")]
            actions,
            labels,
        );
        Ok(Site { registry: Arc::new(registry), live: Some(live), names: Some(hosts) })
    }
}

fn is_name(text: &str, others: &str) -> bool {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || others.contains(character);
    text.chars().all(is_allowed) && text.starts_with(|first: char| !first.is_ascii_digit())
}

fn invalid<T>(message: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
