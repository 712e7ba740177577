//! The reply to a request.

use std::borrow::Cow;

pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// A reply to a request.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    content_type: &'static str,
    /// Further header lines, each with its line end.
    headers: &'static str,
    body: Cow<'static, str>,
    /// Set for a reply to `HEAD`, with the same head and no body.
    head_only: bool,
}

impl Reply {
    pub(super) fn ok(content_type: &'static str, headers: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self { status: 200, content_type, headers, body: body.into(), head_only: false }
    }

    pub(super) fn error(status: u16) -> Self {
        let hint = match status {
            403 => ": on a loopback address, `Host` is localhost, an address or a name given to ServeOptions::host",
            404 => ": the metrics are at /metrics",
            _ => "",
        };
        let headers = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let body = format!("{status} {}{hint}\n", reason(status)).into();
        Self { status, content_type: TEXT, headers, body, head_only: false }
    }

    pub(super) fn head_only(self, head_only: bool) -> Self {
        Self { head_only, ..self }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let Self { status, content_type, headers, body, head_only } = self;
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{headers}\
             Connection: close\r\n\r\n",
            reason(status),
            body.len(),
        );
        let mut bytes = head.into_bytes();
        if !head_only {
            bytes.extend(body.as_bytes());
        }
        bytes
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
