//! The life of a connection with one request and one reply.

use super::deadline;
use super::limits::Limits;
use super::stage::Stage;
use crate::http::{NoRequest, Reply, Request};
use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// Serves a client. Apart from the time in `answer`, it returns at the latest when the client's
/// time is over or its socket is shut down.
pub(super) fn exchange(stream: &TcpStream, answer: impl FnOnce(&Request) -> Reply, limits: Limits, stage: &Stage) {
    let reply = match read(stream, Instant::now() + limits.request) {
        Ok(request) => {
            if !stage.enter_collectors() {
                return;
            }
            let reply = answer(&request);
            stage.leave_collectors();
            reply
        }
        Err(NoRequest::Refused(status)) => Reply::error(status),
        Err(NoRequest::Gone) => return,
    };
    // The reply is abandoned if the client does not read it in time.
    if deadline::write(stream, reply.into_message().as_slice(), Instant::now() + limits.reply).is_ok() {
        say_goodbye(stream, Instant::now() + limits.goodbye);
    }
}

/// Reads the head of a request.
fn read(stream: &TcpStream, deadline: Instant) -> Result<Request, NoRequest> {
    let mut buffer = vec![0; Limits::HEAD];
    let mut filled = 0;
    while filled < buffer.len() {
        filled += match deadline::read(stream, &mut buffer[filled..], deadline) {
            Ok(0) => return Err(NoRequest::Gone),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::TimedOut && filled > 0 => return Err(NoRequest::Refused(408)),
            Err(_) => return Err(NoRequest::Gone),
        };
        if let Some(request) = Request::parse(&buffer[..filled])? {
            return Ok(request);
        }
    }
    Err(NoRequest::Refused(431))
}

/// Waits for the client to hang up. Some systems discard the reply if the socket is closed with
/// unread data.
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
