//! The other ends of the connections, a thread of peers that talk, answer or fall silent.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::HEARTBEAT;
use crate::connection::drain;

/// The number of heartbeats that a peer answers before it falls silent.
const ANSWERS: u32 = 2;
const TALK: &[u8] = b".";

/// The behavior of a peer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Peer {
    Talks,
    Answers,
    Silent,
}

impl Peer {
    pub(crate) fn of(number: usize) -> Self {
        [Self::Silent, Self::Answers, Self::Talks][number % 3]
    }

    pub(crate) fn among(self, all: usize) -> usize {
        (0..all).filter(|number| Self::of(*number) == self).count()
    }
}

/// The other ends, each with the number of heartbeats that it has received.
pub(crate) struct Peers(pub(crate) Vec<(TcpStream, u32)>);

impl Peers {
    /// Answers and talks until all connections are closed.
    pub(crate) fn serve(mut self, interval: Duration) -> io::Result<()> {
        let mut poll = Poll::new()?;
        for (number, (stream, _)) in self.0.iter_mut().enumerate() {
            poll.registry().register(stream, Token(number), Interest::READABLE)?;
        }
        let (mut events, mut closed) = (Events::with_capacity(1024), 0);
        let mut talk = Instant::now();
        while closed < self.0.len() {
            if talk <= Instant::now() {
                talk += interval / 2;
                let talking = self.0.iter().enumerate().filter(|(number, _)| Peer::of(*number) == Peer::Talks);
                // A write fails, here and below, only if the connection is closed.
                talking.for_each(|(_, (stream, _))| _ = (&mut &*stream).write(TALK));
            }
            if let Err(error) = poll.poll(&mut events, Some(talk.saturating_duration_since(Instant::now())))
                && error.kind() != io::ErrorKind::Interrupted
            {
                return Err(error);
            }
            for event in &events {
                let number = event.token().0;
                let (stream, got) = &mut self.0[number];
                let open = drain(stream, |bytes| *got += bytes);
                if !open {
                    // Otherwise its end might be reported again.
                    poll.registry().deregister(stream)?;
                    closed += 1;
                } else if Peer::of(number) != Peer::Silent || *got <= ANSWERS {
                    _ = stream.write(HEARTBEAT);
                }
            }
        }
        Ok(())
    }
}
