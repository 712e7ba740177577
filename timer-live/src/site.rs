//! The documents of a live page: its paths, and the reply to a request for each of them.

use crate::http::{Format, HTML, JSON, NO_STORE, Reply, Request, hosts};
#[cfg(feature = "durable")]
use crate::page::Actions;
use crate::page::{Figures, PAGE};
use std::sync::Arc;
use timer_core::executor::panics;
use timer_metrics::prometheus_client::registry::Registry;

/// The page may run the script that it contains and ask this server, and nothing else.
const PAGE_HEADERS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";
const METRICS_HEADERS: &str = "Vary: Accept\r\n";

/// The documents of a [`Server`](crate::Server) without a socket, for an HTTP server that exists
/// already and has its own login. Clones share the history behind the rates of the live page.
///
/// Mount the site at a path that ends in `/`, because the live page asks for `stats.json` relative
/// to its own path. The server is responsible for the names under which it answers, so
/// [`LivePage::host`](crate::LivePage::host) only tells under which names actions are allowed.
///
/// # Examples
///
/// In axum, with `nest_service("/timers", ..)` or a fallback below it:
///
/// ```
/// use timer_live::{LivePage, Request};
/// use timer_metrics::TimerMetrics;
///
/// let timer = timer_core::Timer::new();
/// let site = LivePage::new(&TimerMetrics::from_iter([&timer])).site()?;
/// let handle = move |method: &str, target: &str, headers: &[(&str, &str)]| {
///     let request = Request::new(method, target);
///     let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
///     let reply = site.respond_to(&request);
///     let headers: Vec<(&str, &str)> = reply.headers().collect();
///     (reply.status(), headers, reply.into_bytes())
/// };
/// let (status, _, body) = handle("GET", "/metrics", &[("Host", "example.com")]);
/// assert!(status == 200 && body.starts_with(b"# HELP timer_pending_timeouts"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Site {
    documents: Arc<Documents>,
}

#[derive(Debug)]
pub(crate) struct Documents {
    pub(crate) registry: Arc<Registry>,
    pub(crate) figures: Figures,
    /// The names of the site besides addresses and `localhost`.
    pub(crate) hosts: Vec<String>,
    pub(crate) has_actions: bool,
}

impl Site {
    pub(crate) fn new(documents: Documents) -> Self {
        let site = Self { documents: Arc::new(documents) };
        // This takes the first sample. If the first request comes within a minute, it has rates.
        let _first = site.documents.figures.stats(false);
        site
    }

    /// Returns the reply to a request. The paths and the statuses are those of
    /// [`Server`](crate::Server).
    ///
    /// The call takes as long as the collectors, some microseconds per timer, and never blocks a
    /// worker. A panic of a collector is contained. Only an action on a durable timer and the list
    /// of its timeouts wait, for its store.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::{LivePage, Request};
    /// # use timer_metrics::TimerMetrics;
    /// let site = LivePage::new(&TimerMetrics::new()).site()?;
    /// assert_eq!(site.respond_to(&Request::new("GET", "/healthz")).into_bytes(), &b"ok\n"[..]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn respond_to(&self, request: &Request) -> Reply {
        contained(|| {
            #[cfg(feature = "durable")]
            if let Some(reply) = self.act(request) {
                return reply;
            }
            self.document(request.method(), request.path(), Format::wanted(&request.accept()))
        })
        .head_only(request.is_head())
    }

    /// Returns the reply to a request of which only `Accept` is known, or empty. `path` has no
    /// query. The same as [`respond_to`](Self::respond_to), except that every body is text and that
    /// no action is possible.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let site = LivePage::new(&TimerMetrics::new()).site()?;
    /// assert_eq!(site.respond("GET", "/healthz", "").into_body(), "ok\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn respond(&self, method: &str, path: &str, accept: &str) -> Reply {
        contained(|| self.document(method, path, Format::wanted_text(accept))).head_only(method == "HEAD")
    }

    /// Returns the reply to a request on a loopback address, which is an error if the request names
    /// an unknown host.
    pub(crate) fn respond_locally(&self, request: &Request) -> Reply {
        if request.hosts().all(|host| hosts::is_allowed(host, &self.documents.hosts)) {
            self.respond_to(request)
        } else {
            Reply::error(403).head_only(request.is_head())
        }
    }

    /// Drops the parts of the page's history that are too old to be used.
    pub(crate) fn age(&self) {
        self.documents.figures.age();
    }

    /// Returns the reply to a request for an action or for the list of timeouts, and `None` for any
    /// other request or if there are no actions.
    #[cfg(feature = "durable")]
    fn act(&self, request: &Request) -> Option<Reply> {
        let Documents { figures, hosts, .. } = self.documents.has_actions.then_some(&*self.documents)?;
        Actions { metrics: figures.durable(), hosts }.reply(request)
    }

    /// Returns the document for `path`, without a query. Calls user code, namely the collectors of
    /// the registry.
    fn document(&self, method: &str, path: &str, format: Format) -> Reply {
        let Documents { registry, figures, has_actions, .. } = &*self.documents;
        let is_readable = ["GET", "HEAD"].contains(&method);
        match path {
            // If a collector fails, the reply has no metrics, because Prometheus would take a
            // partial text for a complete one.
            "/metrics" if is_readable => match format.encode(registry) {
                Some(body) => Reply::ok(format.content_type(), METRICS_HEADERS, body),
                None => Reply::error(500),
            },
            "/" if is_readable => Reply::ok(HTML, PAGE_HEADERS, PAGE.as_bytes()),
            "/stats.json" if is_readable => Reply::ok(JSON, NO_STORE, figures.stats(*has_actions).into_bytes()),
            "/healthz" if is_readable => {
                let (is_healthy, text) = figures.health();
                Reply::text(if is_healthy { 200 } else { 503 }, NO_STORE, text)
            }
            "/metrics" | "/" | "/stats.json" | "/healthz" => Reply::error(405),
            // It asks about the server as a whole.
            "*" if method == "OPTIONS" => Reply::error(405),
            _ => Reply::error(404),
        }
    }
}

#[cfg(test)]
impl Site {
    pub(crate) fn only_sample_at(&self, at: std::time::Instant) {
        self.documents.figures.only_sample_at(at);
    }

    pub(crate) fn kept(&self) -> usize {
        self.documents.figures.kept()
    }
}

/// Makes a reply, whose status is 500 if user code panics. Reading a timer is user code too,
/// because it may drop the last handle, and with it tasks that panic.
fn contained(reply: impl FnOnce() -> Reply) -> Reply {
    panics::catch(reply).unwrap_or_else(|_| Reply::error(500))
}
