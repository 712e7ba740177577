//! The reply to a request.

use std::borrow::Cow;
use std::iter;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// The headers of a reply that is true for a moment.
pub(crate) const NO_STORE: &str = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n";

/// A reply of a [`Site`](crate::Site), for any HTTP server.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    content_type: &'static str,
    /// Further header lines, each with its line end.
    headers: &'static str,
    body: Cow<'static, [u8]>,
    /// Set for a reply to `HEAD`, with the same head and no body.
    head_only: bool,
}

impl Reply {
    /// Returns the status, such as 200.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let site = LivePage::new(&TimerMetrics::new()).site()?;
    /// assert_eq!(site.respond("POST", "/metrics", "").status(), 405);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the names and values of the headers, which begin with `Content-Type`. They contain
    /// neither a length nor anything about the connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let reply = LivePage::new(&TimerMetrics::new()).site()?.respond("GET", "/healthz", "");
    /// assert_eq!(reply.headers().next(), Some(("Content-Type", "text/plain; charset=utf-8")));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
        let others = self.headers.split("\r\n").filter_map(|line| line.split_once(": "));
        iter::once(("Content-Type", self.content_type)).chain(others)
    }

    /// Returns the body as text, which is empty in a reply to `HEAD`. Protobuf is not text, so take
    /// the [bytes](Self::into_bytes) of a reply that may have it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let site = LivePage::new(&TimerMetrics::new()).site()?;
    /// assert!(site.respond("GET", "/", "").into_body().starts_with("<!doctype html>"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_body(self) -> Cow<'static, str> {
        match self.into_bytes() {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
                .into(),
        }
    }

    /// Returns the body, which is empty in a reply to `HEAD`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::LivePage;
    /// # use timer_metrics::TimerMetrics;
    /// let site = LivePage::new(&TimerMetrics::new()).site()?;
    /// assert_eq!(site.respond("GET", "/metrics", "*/*").into_bytes(), &b""[..]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_bytes(self) -> Cow<'static, [u8]> {
        if self.head_only { Cow::Borrowed(&[]) } else { self.body }
    }

    pub(crate) fn ok(content_type: &'static str, headers: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { status: 200, content_type, headers, body: body.into(), head_only: false }
    }

    pub(crate) fn error(status: u16) -> Self {
        let hint = match status {
            403 => ": on a loopback address, `Host` is localhost, an address or a name given to LivePage::host",
            404 => ": the metrics are at /metrics",
            _ => "",
        };
        let headers = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        Self::text(status, headers, format!("{status} {}{hint}\n", reason(status)))
    }

    pub(crate) fn text(status: u16, headers: &'static str, text: impl Into<String>) -> Self {
        Self { status, ..Self::ok(TEXT, headers, text.into().into_bytes()) }
    }

    pub(crate) fn head_only(self, head_only: bool) -> Self {
        Self { head_only, ..self }
    }

    pub(crate) fn into_message(self) -> Vec<u8> {
        let Self { status, content_type, headers, body, head_only } = self;
        let head = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{headers}\
             Connection: close\r\n\r\n",
            reason(status),
            body.len(),
        );
        let mut bytes = head.into_bytes();
        if !head_only {
            bytes.extend_from_slice(&body);
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
        409 => "Conflict",
        503 => "Service Unavailable",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
