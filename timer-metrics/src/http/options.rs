//! Settings of the server that [`TimerMetrics::serve_with`](crate::TimerMetrics::serve_with)
//! starts.

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
    /// once, and is none of `timer`, `cause` and `le`, which the metrics have already. The value
    /// may be any text.
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

    /// Returns the documents of a server with these settings. Fails with `InvalidInput` if the
    /// prefix or the name of a label is not allowed.
    pub(super) fn into_site(self, metrics: &TimerMetrics) -> io::Result<Site> {
        let Self {
            prefix,
            labels,
            hosts,
            #[cfg(feature = "durable")]
            durable,
        } = self;
        if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_name(prefix, "_:")) {
            return invalid(format!(
                "the prefix `{prefix}` is not allowed: use ASCII letters, digits, `_` and `:`, and do not begin with a digit"
            ));
        }
        for (index, (name, _)) in labels.iter().enumerate() {
            if !is_name(name, "_") || name.starts_with("__") || ["timer", "cause", "le"].contains(&name.as_str()) {
                return invalid(format!(
                    "the label name `{name}` is not allowed: use ASCII letters, digits and `_`, do not begin with a digit or \
                     `__`, and use none of `timer`, `cause` and `le`"
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
        let live = Live::new(
            metrics.clone(),
            #[cfg(feature = "durable")]
            durable,
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
