//! The documents of the server: its paths, and the reply to a request for each of them.

use super::accept::Format;
use super::hosts;
use super::live::{Live, PAGE};
use super::reply::{HTML, JSON, Reply};
use super::request::Request;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Instant;
use timer_core::executor::panics;

/// The page may run the script that it contains and ask this server, and nothing else.
const PAGE_HEADERS: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";
pub(super) const NO_STORE: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";
const METRICS_HEADERS: &str = "Vary: Accept\r\n";

/// The registry of a server, and the timers of its live page if there is one.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) registry: Arc<Registry>,
    pub(super) live: Option<Live>,
    /// The names under which the site is known, if it answers under these alone.
    pub(super) names: Option<Vec<String>>,
}

impl Site {
    /// Returns the reply to `request`, which may be an action.
    pub(super) fn answer(&self, request: &Request) -> Reply {
        #[cfg(feature = "durable")]
        if let Some(actions) = self.live.as_ref().and_then(Live::actions) {
            let reply = contained(|| actions.reply(request)).unwrap_or_else(|| Some(Reply::error(500)));
            if let Some(reply) = reply {
                return reply.head_only(request.method() == "HEAD");
            }
        }
        self.respond(request.method(), request.path(), Format::wanted(&request.accept()))
    }

    /// Returns the document for `path`, without a query. Calls user code, namely the collectors of
    /// the registry.
    pub(super) fn respond(&self, method: &str, path: &str, format: Format) -> Reply {
        let head_only = method == "HEAD";
        let is_readable = method == "GET" || head_only;
        // `OPTIONS *` asks about the server as a whole.
        let asks_about_all = method == "OPTIONS" && path == "*";
        let reply = match (path, &self.live) {
            ("/metrics", _) if is_readable => self.metrics(format),
            ("/", Some(_)) if is_readable => Reply::ok(HTML, PAGE_HEADERS, PAGE.as_bytes()),
            ("/stats.json", Some(live)) if is_readable => stats(live),
            ("/healthz", Some(live)) if is_readable => health(live),
            ("/metrics", _) | ("/" | "/stats.json" | "/healthz", Some(_)) => Reply::error(405),
            _ if asks_about_all => Reply::error(405),
            _ => Reply::error(404),
        };
        reply.head_only(head_only)
    }

    /// Drops the parts of the live page's history that are too old to be used.
    pub(super) fn age(&self) {
        if let Some(live) = &self.live {
            live.age(Instant::now());
        }
    }

    /// Returns the reply to `request`, or an error if it names a host that is not allowed.
    pub(super) fn reply(&self, request: &Request) -> Reply {
        let is_known = |host: &str| self.names.as_ref().is_none_or(|names| hosts::is_allowed(host, names));
        if request.hosts().all(is_known) {
            self.answer(request)
        } else {
            Reply::error(403).head_only(request.method() == "HEAD")
        }
    }

    /// Returns the reply to a scrape. If a collector fails, the reply has status 500 and no
    /// metrics, because Prometheus would take a partial text for a complete one.
    fn metrics(&self, format: Format) -> Reply {
        match contained(|| format.encode(&self.registry)) {
            Some(Some(body)) => Reply::ok(format.content_type(), METRICS_HEADERS, body),
            _ => Reply::error(500),
        }
    }
}

/// Returns the reply with the figures. A panic is contained, because a snapshot may drop the last
/// handle of a timer, and with it tasks that panic.
fn stats(live: &Live) -> Reply {
    contained(|| live.stats()).map_or_else(|| Reply::error(500), |text| Reply::ok(JSON, NO_STORE, text.into_bytes()))
}

/// Returns the reply to a probe. The status is 503 if the lease of a durable timer is too old.
fn health(live: &Live) -> Reply {
    contained(|| live.health()).map_or_else(
        || Reply::error(500),
        |(is_healthy, text)| Reply::text(if is_healthy { 200 } else { 503 }, NO_STORE, text),
    )
}

/// Calls user code. Returns `None` if it panics.
fn contained<T>(call: impl FnOnce() -> T) -> Option<T> {
    panics::catch(call).ok()
}
