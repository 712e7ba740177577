//! The head of a request: method, path and accepted formats. Bodies are not read.

use super::deadline;
use super::limits::Limits;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Instant;

/// The parts of a request that the server uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path without the query.
    pub(super) path: String,
    /// All values of `Accept`, joined by commas.
    pub(super) accept: String,
    /// The hosts that the target and the header `Host` name.
    pub(super) hosts: Vec<String>,
}

/// The reason why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRequest {
    /// The client has hung up or has never sent anything.
    Gone,
    /// The client is to be refused with this status.
    Refused(u16),
}

impl Request {
    /// Reads the head of a request from the socket.
    pub(super) fn read(stream: &TcpStream, deadline: Instant) -> Result<Self, NoRequest> {
        let mut buffer = vec![0; Limits::HEAD];
        let mut filled = 0;
        while filled < buffer.len() {
            filled += match deadline::read(stream, &mut buffer[filled..], deadline) {
                Ok(0) => return Err(NoRequest::Gone),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::TimedOut && filled > 0 => return Err(NoRequest::Refused(408)),
                Err(_) => return Err(NoRequest::Gone),
            };
            if let Some(request) = Self::parse(&buffer[..filled])? {
                return Ok(request);
            }
        }
        Err(NoRequest::Refused(431))
    }

    /// Returns `None` if the head is incomplete.
    fn parse(bytes: &[u8]) -> Result<Option<Self>, NoRequest> {
        let mut headers = [httparse::EMPTY_HEADER; Limits::HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(bytes) {
            Ok(status) if status.is_partial() => return Ok(None),
            Ok(_) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(NoRequest::Refused(431)),
            Err(httparse::Error::Version) => return Err(NoRequest::Refused(505)),
            Err(_) => return Err(NoRequest::Refused(400)),
        }
        let values = |name: &str| -> Vec<String> {
            let headers = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
            headers.map(|header| String::from_utf8_lossy(header.value).into_owned()).collect()
        };
        let (host, path) = host_and_path(request.path.unwrap_or_default());
        Ok(Some(Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            accept: values("accept").join(","),
            hosts: values("host").into_iter().chain(host.map(str::to_owned)).collect(),
        }))
    }
}

/// Returns the host and the path of a target in either form, `/a?b` or `http://host/a?b`.
fn host_and_path(target: &str) -> (Option<&str>, &str) {
    let target = target.split(['?', '#']).next().unwrap_or(target);
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(host), if path.is_empty() { "/" } else { path })
        }
        _ => (None, target),
    }
}

#[cfg(test)]
mod tests {
    use super::{NoRequest, Request, host_and_path};

    #[test]
    fn parses_a_head_once_it_is_complete() {
        let head = b"GET http://b:1/metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\naccept: */*;q=0.1\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(Request::parse(&head[..end]), Ok(None), "{end}");
        }
        let request = Request::parse(head).unwrap().unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/metrics"));
        assert_eq!(request.accept, "text/plain,*/*;q=0.1");
        assert_eq!(request.hosts, ["a", "b:1"]);
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
            assert_eq!(host_and_path(target).1, "/metrics", "{target}");
        }
        assert_eq!(host_and_path("http://host"), (Some("host"), "/"));
        assert_eq!(host_and_path("http://host?from=/metrics"), (Some("host"), "/"));
        assert_eq!(host_and_path("*"), (None, "*"));
    }
}
