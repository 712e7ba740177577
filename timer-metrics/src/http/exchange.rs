//! One connection: a request, its reply, goodbye.

use super::accept::Format;
use super::deadline;
use super::limits::Limits;
use super::plain_text;
use super::request::{NoRequest, Request};
use super::stage::Stage;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::net::{Shutdown, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Serves a client. Whatever the client does, this returns when its time is over or its socket is shut down.
pub(super) fn exchange(stream: &TcpStream, registry: &Registry, limits: Limits, stage: &Stage) {
    let reply = match Request::read(stream, Instant::now() + limits.request) {
        Ok(request) => {
            if !stage.enter_collectors() {
                return;
            }
            let reply = Reply::to(&request, registry);
            stage.leave_collectors();
            reply
        }
        Err(NoRequest::Refused(status)) => Reply::error(status),
        Err(NoRequest::Gone) => return,
    };
    // A client that does not take its reply has itself to blame.
    if deadline::write(stream, reply.into_bytes().as_slice(), Instant::now() + limits.reply).is_ok() {
        say_goodbye(stream, Instant::now() + limits.goodbye);
    }
}

/// Waits for the client to hang up. Closing while something is unread would make some systems take the reply back.
fn say_goodbye(stream: &TcpStream, deadline: Instant) {
    let mut rest = Limits::REST;
    let mut buffer = [0; 1024];
    if stream.shutdown(Shutdown::Write).is_ok() {
        while let Ok(read @ 1..) = deadline::read(stream, &mut buffer, deadline) {
            rest = rest.saturating_sub(read);
            if rest == 0 {
                return;
            }
        }
    }
}

struct Reply {
    status: u16,
    content_type: &'static str,
    body: String,
    /// A reply to `HEAD`: all but the body.
    head_only: bool,
}

impl Reply {
    fn to(request: &Request, registry: &Registry) -> Self {
        let head_only = request.method == "HEAD";
        // `OPTIONS *` asks of the server as a whole, and all that there is to ask of is this one path.
        let asks_of_all = request.method == "OPTIONS" && request.path == "*";
        if request.path != "/metrics" && !asks_of_all {
            return Self { head_only, ..Self::error(404) };
        }
        if request.method != "GET" && !head_only {
            return Self::error(405);
        }
        let format = Format::wanted(&request.accept);
        match scrape(registry, format) {
            Some(body) => Self { status: 200, content_type: format.content_type(), body, head_only },
            None => Self { head_only, ..Self::error(500) },
        }
    }

    fn error(status: u16) -> Self {
        let hint = if status == 404 { ": the metrics are at /metrics" } else { "" };
        let body = format!("{status} {}{hint}\n", reason(status));
        Self { status, content_type: "text/plain; charset=utf-8", body, head_only: false }
    }

    fn into_bytes(self) -> Vec<u8> {
        let Self { status, content_type, body, head_only } = self;
        let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nVary: Accept\r\n{allow}\
             Connection: close\r\n\r\n",
            reason(status),
            body.len(),
        );
        let mut bytes = head.into_bytes();
        if !head_only {
            bytes.extend(body.into_bytes());
        }
        bytes
    }
}

/// `None` if a collector fails: half a scrape would be taken for a whole one.
fn scrape(registry: &Registry, format: Format) -> Option<String> {
    let mut text = String::new();
    let encoded = catch_unwind(AssertUnwindSafe(|| encode(&mut text, registry)));
    matches!(encoded, Ok(Ok(()))).then(|| match format {
        Format::OpenMetrics => text,
        Format::Plain => plain_text::from_openmetrics(&text),
    })
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
