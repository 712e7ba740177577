//! A request: method, target and headers. Bodies are not read.

/// The greatest number of headers.
const MAX_HEADERS: usize = 64;

/// A request to a [`Site`](crate::Site), taken over from any HTTP server.
///
/// # Examples
///
/// ```
/// use timer_live::{LivePage, Request};
/// use timer_metrics::TimerMetrics;
///
/// let site = LivePage::new(&TimerMetrics::new()).site()?;
/// let request = Request::new("GET", "/metrics").header("Accept", "application/openmetrics-text");
/// assert_eq!(site.respond_to(&request).into_bytes(), &b"# EOF\n"[..]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
}

/// The reason why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoRequest {
    /// The client has hung up or has never sent anything.
    Gone,
    /// The client is to be refused with this status.
    Refused(u16),
}

impl Request {
    /// Creates a request without headers. `target` is relative to the site and begins with `/`. It
    /// may have a query.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::Request;
    /// let request = Request::new("GET", "/stats.json");
    /// ```
    pub fn new(method: impl Into<String>, target: impl Into<String>) -> Self {
        Self { method: method.into(), target: target.into(), headers: Vec::new() }
    }

    /// Adds a header. A site reads `Accept`, `Host`, `Origin` and `Timer-Action`, and ignores all
    /// others. With HTTP/2, pass the authority of the request as `Host`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use timer_live::Request;
    /// let request = Request::new("GET", "/metrics").header("Accept", "text/plain");
    /// ```
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    pub(crate) fn is_head(&self) -> bool {
        self.method == "HEAD"
    }

    /// Returns the path without the query.
    pub(crate) fn path(&self) -> &str {
        split(&self.target).1
    }

    /// Returns a parameter of the query, decoded.
    #[cfg(feature = "durable")]
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let mut pairs = split(&self.target).2.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| decoded(value))
    }

    /// Returns all values of `Accept`, joined by commas.
    pub(crate) fn accept(&self) -> String {
        self.values("accept").collect::<Vec<_>>().join(",")
    }

    /// Returns the hosts that the target and the header `Host` name.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.values("host").chain(split(&self.target).0)
    }

    pub(crate) fn values(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name));
        headers.map(|(_, value)| value.as_str())
    }

    /// Returns `None` if the head is incomplete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>, NoRequest> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(status) if status.is_partial() => return Ok(None),
            Ok(_) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(NoRequest::Refused(431)),
            Err(httparse::Error::Version) => return Err(NoRequest::Refused(505)),
            Err(_) => return Err(NoRequest::Refused(400)),
        }
        let headers = request.headers.iter().map(|header| {
            let value = String::from_utf8_lossy(header.value).into_owned();
            (header.name.to_owned(), value)
        });
        Ok(Some(Self {
            headers: headers.collect(),
            ..Self::new(request.method.unwrap_or_default(), request.path.unwrap_or_default())
        }))
    }
}

/// Returns the host, the path and the query of a target in either form, `/a?b` or `http://host/a?b`.
fn split(target: &str) -> (Option<&str>, &str, &str) {
    let target = target.split('#').next().unwrap_or(target);
    let (target, query) = target.split_once('?').unwrap_or((target, ""));
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(host), if path.is_empty() { "/" } else { path }, query)
        }
        _ => (None, target, query),
    }
}

/// Decodes a part of a query. An invalid escape stays as it is.
#[cfg(feature = "durable")]
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = if byte.is_some() { &after[2..] } else { after };
        bytes.push(byte.unwrap_or(if *first == b'+' { b' ' } else { *first }));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{NoRequest, Request, split};

    #[test]
    fn parses_a_head_once_it_is_complete() {
        let head = b"GET http://b:1/metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\naccept: */*;q=0.1\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(Request::parse(&head[..end]), Ok(None), "{end}");
        }
        let request = Request::parse(head).unwrap().unwrap();
        assert_eq!((request.method(), request.path()), ("GET", "/metrics"));
        assert_eq!(request.accept(), "text/plain,*/*;q=0.1");
        assert_eq!(request.hosts().collect::<Vec<_>>(), ["a", "b:1"]);
    }

    #[test]
    fn refuses_malformed_requests() {
        let refused = |bytes: &[u8]| match Request::parse(bytes) {
            Err(NoRequest::Refused(status)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400);
        assert_eq!(refused(b"GET / HTTP/2.0\r\n\r\n"), 505);
        assert_eq!(refused(b"GET / HTTP/1.1\r\n: empty\r\n\r\n"), 400);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(100));
        assert_eq!(refused(many.as_bytes()), 431);
    }

    #[test]
    fn finds_the_path_in_both_forms_of_a_target() {
        for target in
            ["/metrics", "/metrics?a=http://b/c", "http://host:1/metrics", "http://host/metrics#x", "/metrics?"]
        {
            assert_eq!(split(target).1, "/metrics", "{target}");
        }
        assert_eq!(split("http://host"), (Some("host"), "/", ""));
        assert_eq!(split("http://host?from=/metrics"), (Some("host"), "/", "from=/metrics"));
        assert_eq!(split("*"), (None, "*", ""));
    }

    #[cfg(feature = "durable")]
    #[test]
    fn parameters_are_decoded() {
        let request = Request::new("POST", "/a?topic=a+b%2Fc%C3%A4&key=%&key=2&x=%4&y=%zz&z=%ff#?key=3");
        let found = ["topic", "key", "x", "y", "z", "none"].map(|name| request.parameter(name));
        let expected = ["a b/cä", "%", "%4", "%zz", "\u{fffd}"].map(|text| Some(text.to_owned()));
        assert_eq!(found[..5], expected);
        assert_eq!(found[5], None);
    }
}
