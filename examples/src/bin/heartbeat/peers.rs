//! The other ends of the connections, a thread of peers that talk, answer or fall silent, and that
//! accepts those who connect again.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use crate::connection::{HEARTBEAT, Peer, drain};

/// The number of heartbeats that a peer answers before it falls silent.
const ANSWERS: u32 = 2;
const TALK: &[u8] = b".";

/// The other ends, each with the number of heartbeats that it has received.
pub(crate) struct Peers {
    pub(crate) listener: TcpListener,
    pub(crate) ends: Vec<(TcpStream, Peer, u32)>,
}

impl Peers {
    /// Answers, talks and accepts until all connections are closed, also the second ones.
    pub(crate) fn serve(mut self, interval: Duration) -> io::Result<()> {
        const LISTENER: Token = Token(usize::MAX);
        let mut poll = Poll::new()?;
        poll.registry().register(&mut self.listener, LISTENER, Interest::READABLE)?;
        for (number, (stream, ..)) in self.ends.iter_mut().enumerate() {
            poll.registry().register(stream, Token(number), Interest::READABLE)?;
        }
        let all = self.ends.len() + Peer::Silent.among(self.ends.len());
        let mut events = Events::with_capacity(1024);
        let mut closed = 0;
        let mut talk = Instant::now();
        while closed < all {
            if talk <= Instant::now() {
                talk += interval / 2;
                // A write fails, here and below, only if the connection is closed.
                let talking = self.ends.iter().filter(|(_, peer, _)| *peer == Peer::Talks);
                talking.for_each(|(stream, ..)| _ = (&mut &*stream).write(TALK));
            }
            if let Err(error) = poll.poll(&mut events, Some(talk.saturating_duration_since(Instant::now())))
                && error.kind() != io::ErrorKind::Interrupted
            {
                return Err(error);
            }
            for event in &events {
                if event.token() == LISTENER {
                    self.accept(&poll)?;
                    continue;
                }
                let (stream, peer, got) = &mut self.ends[event.token().0];
                let open = drain(stream, |bytes| *got += bytes);
                if !open {
                    // Otherwise its end might be reported again.
                    poll.registry().deregister(stream)?;
                    closed += 1;
                } else if *peer != Peer::Silent || *got <= ANSWERS {
                    _ = stream.write(HEARTBEAT);
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self, poll: &Poll) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    poll.registry().register(&mut stream, Token(self.ends.len()), Interest::READABLE)?;
                    self.ends.push((stream, Peer::Again, 0));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}
