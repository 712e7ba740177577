//! The head of a request: what is asked for, and in which format. Bodies are not read.

use super::deadline;
use super::limits::Limits;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Instant;

/// A request, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Without query.
    pub(super) path: String,
    /// All values of `Accept`, with commas between them.
    pub(super) accept: String,
}

/// Why there is no request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoRequest {
    /// The client has gone, or never said anything.
    Gone,
    /// To be told the client, by this status.
    Refused(u16),
}

impl Request {
    /// Reads a head from the socket.
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

    /// `None` if there is more to come.
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
        let accepts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
        let accepts: Vec<_> = accepts.map(|header| String::from_utf8_lossy(header.value)).collect();
        Ok(Some(Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: path(request.path.unwrap_or_default()).to_owned(),
            accept: accepts.join(","),
        }))
    }
}

/// The path of a target in either form, `/a?b` and `http://host/a?b`.
fn path(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::{NoRequest, Request, path};

    #[test]
    fn a_head_in_pieces_is_read_when_it_is_whole() {
        let head = b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\naccept: */*;q=0.1\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(Request::parse(&head[..end]), Ok(None), "{end}");
        }
        let request = Request::parse(head).unwrap().unwrap();
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/metrics"));
        assert_eq!(request.accept, "text/plain,*/*;q=0.1");
    }

    #[test]
    fn nonsense_is_refused() {
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
    fn both_forms_of_a_target_have_a_path() {
        for target in
            ["/metrics", "/metrics?a=http://b/c", "http://host:1/metrics", "http://host/metrics#x", "/metrics?"]
        {
            assert_eq!(path(target), "/metrics", "{target}");
        }
        assert_eq!(path("http://host"), "/");
        assert_eq!(path("*"), "*");
    }
}
