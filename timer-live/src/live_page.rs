//! The settings of a live page, of which it becomes a server or a site.

use crate::page::Figures;
use crate::server::{ListenAddr, Server};
use crate::site::{Documents, Site};
use std::io;
use std::sync::Arc;
#[cfg(feature = "durable")]
use timer_metrics::DurableMetrics;
use timer_metrics::TimerMetrics;
use timer_metrics::prometheus_client::registry::Registry;

/// The labels that the metrics have already.
const TAKEN: [&str; 4] = ["timer", "topic", "cause", "le"];

/// A live page of timers with their metrics, and its settings. [`serve`](Self::serve) starts a
/// server for it. [`site`](Self::site) makes it a part of a server that exists already.
///
/// # Examples
///
/// ```
/// use timer_live::LivePage;
/// use timer_metrics::TimerMetrics;
///
/// let timer = timer_core::Timer::new();
/// let page = LivePage::new(&TimerMetrics::from_iter([&timer])).prefix("shop").label("region", "eu-west");
/// let server = page.serve(0)?;
/// println!("open http://{}", server.local_addr());
/// // A scrape has: shop_timer_pending_timeouts{region="eu-west",timer="timer"} 0
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a page does nothing until it is served"]
pub struct LivePage {
    metrics: TimerMetrics,
    registry: Option<Arc<Registry>>,
    prefix: Option<String>,
    labels: Vec<(String, String)>,
    hosts: Vec<String>,
    #[cfg(feature = "durable")]
    durable: DurableMetrics,
    has_actions: bool,
}

impl LivePage {
    /// Creates a page of the timers of this set. Timers that are watched later are shown as well.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let metrics = TimerMetrics::new();
    /// let server = LivePage::new(&metrics).serve(0)?;
    /// metrics.watch(&timer_core::Timer::new());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(metrics: &TimerMetrics) -> Self {
        Self {
            metrics: metrics.clone(),
            registry: None,
            prefix: None,
            labels: Vec::new(),
            hosts: Vec::new(),
            #[cfg(feature = "durable")]
            durable: DurableMetrics::new(),
            has_actions: false,
        }
    }

    /// Serves a registry of your program under `/metrics`. By default that is a registry with the
    /// timers of the page and nothing else, so register them in yours. The prefix and the labels of
    /// the metrics are then those of your registry.
    ///
    /// Pass a [`Registry`], or an `Arc` of one that is also used elsewhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_live::LivePage;
    /// use timer_metrics::TimerMetrics;
    /// use timer_metrics::prometheus_client::registry::Registry;
    ///
    /// let metrics = TimerMetrics::new();
    /// let mut registry = Registry::default();
    /// metrics.register(&mut registry);
    /// let server = LivePage::new(&metrics).registry(registry).serve(0)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn registry(mut self, registry: impl Into<Arc<Registry>>) -> Self {
        self.registry = Some(registry.into());
        self
    }

    /// Sets a prefix. It is written before each name with a `_` between them. A prefix consists of
    /// ASCII letters, digits, `_` and `:`, and does not begin with a digit.
    ///
    /// The dashboard and the alerts of timer-metrics expect the names without a prefix.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let server = LivePage::new(&TimerMetrics::new()).prefix("shop").serve(0)?;
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
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let page = LivePage::new(&TimerMetrics::new()).label("region", "eu-west").label("shard", "7");
    /// let server = page.serve(0)?;
    ///
    /// let taken = LivePage::new(&TimerMetrics::new()).label("timer", "x");
    /// assert!(taken.serve(0).is_err());
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
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let server = LivePage::new(&TimerMetrics::new()).host("metrics.example").serve(0)?;
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
    /// use timer_live::LivePage;
    /// use timer_metrics::{DurableMetrics, TimerMetrics};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let durable = DurableMetrics::new();
    /// durable.watch(&timer);
    /// let server = LivePage::new(&TimerMetrics::new()).durable(&durable).serve(0)?;
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
    /// | `POST /actions/requeue-without-key?timer=T&id=ID` | the same, as a timeout without a key |
    /// | `POST /actions/purge?timer=T&id=ID` | deletes a dead letter |
    /// | `POST /actions/requeue-all?timer=T` | requeues all dead letters |
    /// | `POST /actions/purge-all?timer=T` | deletes all dead letters |
    /// | `POST /actions/pause?timer=T&topic=NAME` | pauses a topic on all nodes |
    /// | `POST /actions/resume?timer=T&topic=NAME` | resumes it |
    ///
    /// `topic` and the beginning of a `key` narrow down the list, and the actions on all dead
    /// letters. An action answers with a line of text. Its status is 200 if it was done, 404 if the
    /// timer or the timeout is gone, 409 if an attempt has begun or the key is taken, 503 if the
    /// store failed, and 400 if a parameter is wrong. These requests wait for the store, so an
    /// async server answers them on a thread that may block.
    ///
    /// # Security
    ///
    /// The page has no login. Everybody who reaches it can act, so do not serve it with actions on
    /// an address that others reach. Mount it in a server with a login instead, by
    /// [`site`](Self::site).
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
    /// use timer_live::{LivePage, Request};
    /// use timer_metrics::{DurableMetrics, TimerMetrics};
    ///
    /// let (timer, _driver) = DurableTimer::builder().name("orders").build_manual(MemoryStore::new())?;
    /// let durable = DurableMetrics::new();
    /// durable.watch(&timer);
    /// let site = LivePage::new(&TimerMetrics::new()).durable(&durable).actions(true).site()?;
    ///
    /// let pause = Request::new("POST", "/actions/pause?timer=orders&topic=order.close");
    /// let reply = site.respond_to(&pause.header("Host", "localhost").header("Timer-Action", "1"));
    /// assert_eq!(reply.into_body(), "paused\n");
    /// assert_eq!(timer.paused_topics().wait()?, ["order.close"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "durable")]
    #[cfg_attr(docsrs, doc(cfg(feature = "durable")))]
    pub fn actions(mut self, are_allowed: bool) -> Self {
        self.has_actions = are_allowed;
        self
    }

    /// Returns the documents of the page, without a socket.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the prefix or the name of a label is not allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let site = LivePage::new(&TimerMetrics::new()).site()?;
    /// assert_eq!(site.respond("GET", "/metrics", "").status(), 200);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn site(mut self) -> io::Result<Site> {
        self.check()?;
        let registry = self.registry.take().unwrap_or_else(|| Arc::new(self.own_registry()));
        let figures = Figures::new(
            self.metrics,
            #[cfg(feature = "durable")]
            self.durable,
            self.labels,
        );
        Ok(Site::new(Documents { registry, figures, hosts: self.hosts, has_actions: self.has_actions }))
    }

    /// Serves the page under `/` and the metrics under `/metrics` of `addr`. A port alone means the
    /// loopback address, so other machines have no access by default ([`ListenAddr`]). Port 0 takes
    /// a free port, which [`Server::local_addr`] returns.
    ///
    /// # Errors
    ///
    /// Returns the error of the system, with the address, if the address is taken or not allowed,
    /// and an error if the system gives no thread. Returns `InvalidInput` if the prefix or the name
    /// of a label is not allowed.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_live::LivePage;
    /// use timer_metrics::TimerMetrics;
    ///
    /// let timer = timer_core::Timer::new();
    /// let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0)?;
    /// println!("open http://{}", server.local_addr());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn serve(self, addr: impl Into<ListenAddr>) -> io::Result<Server> {
        Server::start(addr.into(), self.site()?)
    }

    /// Returns an error if a name would break the format of the metrics.
    fn check(&self) -> io::Result<()> {
        if let Some(prefix) = self.prefix.as_ref().filter(|prefix| !is_name(prefix, "_:")) {
            return invalid(format!(
                "the prefix `{prefix}` is not allowed: use ASCII letters, digits, `_` and `:`, and do not begin with a digit"
            ));
        }
        for (index, (name, _)) in self.labels.iter().enumerate() {
            if !is_name(name, "_") || name.starts_with("__") || TAKEN.contains(&name.as_str()) {
                return invalid(format!(
                    "the label name `{name}` is not allowed: use ASCII letters, digits and `_`, do not begin with a digit or \
                     `__`, and use none of `timer`, `topic`, `cause` and `le`"
                ));
            }
            if self.labels[..index].iter().any(|(earlier, _)| earlier == name) {
                return invalid(format!("the label name `{name}` is given twice: each name is allowed once"));
            }
        }
        Ok(())
    }

    /// Returns a registry with the timers of the page alone.
    fn own_registry(&self) -> Registry {
        let constant = self.labels.iter().cloned().map(|(name, value)| (name.into(), value.into()));
        let mut registry = match &self.prefix {
            Some(prefix) => Registry::with_prefix_and_labels(prefix, constant),
            None => Registry::with_labels(constant),
        };
        self.metrics.register(&mut registry);
        #[cfg(feature = "durable")]
        self.durable.register(&mut registry);
        registry
    }
}

fn is_name(text: &str, others: &str) -> bool {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || others.contains(character);
    text.chars().all(is_allowed) && text.starts_with(|first: char| !first.is_ascii_digit())
}

fn invalid<T>(message: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}
