//! The life of a connection with one request and one reply.

use super::deadline;
use super::limits::Limits;
use super::reply::Reply;
use super::request::{NoRequest, Request};
use super::site::Site;
use super::stage::Stage;
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// Serves a client. Apart from the time in the collectors, it returns at the latest when the
/// client's time is over or its socket is shut down.
pub(super) fn exchange(stream: &TcpStream, site: &Site, limits: Limits, stage: &Stage) {
    let reply = match Request::read(stream, Instant::now() + limits.request) {
        Ok(request) => {
            if !stage.enter_collectors() {
                return;
            }
            let reply = site.reply(&request);
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
