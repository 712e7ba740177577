//! Thousands of connections with heartbeats on one timer. A connection sends a heartbeat after an
//! interval of silence. After three intervals it closes and connects again, as in Dubbo.
//!
//! Each connection has two timeouts. A periodic one sends a heartbeat, and the other one closes the
//! connection. Each message moves both, at about the cost of two clock readings, so on a connection
//! that talks neither runs. Both tasks make calls that do not block, so they run on the timer's own
//! thread. When a connection closes, a third heartbeat is due and the first two were not answered.
//!
//! The peers are a thread at the other end of real sockets. A third of them talk, a third only
//! answer, and a third answer twice and then fall silent with the connection open, like after a cut
//! cable. On the second connection these answer.
#![forbid(unsafe_code)]

mod connection;
mod peers;

use std::collections::HashSet;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use connection::{Connection, Peer, drain};
use examples::cli::{self, Args, Checks, Refused, Stop};
use examples::ledger::Ledger;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use peers::Peers;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use timer_core::{RejectReason, Timeout, Timer};

const USAGE: &str = "\
Connections that send a heartbeat after each interval of silence, all on one timer. After three intervals they close
and connect again. A third of the peers talk, a third only answer heartbeats, and a third fall silent.

Usage: heartbeat [OPTIONS]

  --connections N       how many, 1..=20000; each takes up to four file descriptors [default: 2000]
  --interval MILLIS     silence after which a heartbeat is sent, 50..=60000 [default: 500]
  -h, --help            print this
";

/// The number of silent intervals after which a connection closes.
const MISSES: u32 = 3;
/// The number of descriptors for standard input and output, the polls and the libraries.
const OTHER_DESCRIPTORS: u64 = 64;

/// One of our ends, with its timeouts.
struct TimedConnection {
    connection: Arc<Connection>,
    beat: Timeout,
    close: Timeout,
}

impl TimedConnection {
    fn new(
        connection: Connection,
        interval: Duration,
        timer: &Timer,
        ledger: &Arc<Ledger>,
    ) -> Result<Self, RejectReason> {
        let connection = Arc::new(connection);
        let beating = connection.clone();
        let beat = timer.schedule_with_fixed_delay(interval, interval, move |_| beating.beat())?;
        let closing = connection.clone();
        let beats = beat.clone();
        let ledger = ledger.clone();
        let close = timer.new_timeout(interval * MISSES, move |_| {
            beats.cancel();
            closing.close();
            ledger.end(closing.number);
        })?;
        Ok(Self { connection, beat, close })
    }

    /// Moves both timeouts after a message. The next heartbeat is due in one interval and the end
    /// in three.
    fn heard(&self, interval: Duration) {
        self.connection.heard();
        self.beat.reset(interval);
        self.close.reset(interval * MISSES);
    }
}

#[derive(Clone, Copy)]
struct Options {
    connections: usize,
    interval: Duration,
}

fn main() -> ExitCode {
    cli::main("heartbeat", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options { connections: 2000, interval: Duration::from_millis(500) };
    while let Some(option) = args.option()? {
        match option {
            "--connections" => options.connections = args.count(1..=20_000)?,
            "--interval" => options.interval = args.millis(50..=60_000)?,
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let Options { connections: all, interval } = options;
    let silent = Peer::Silent.among(all);
    make_room(all)?;
    let timer = Timer::builder().name("heartbeat").build()?;
    let ledger = Arc::new(Ledger::new(all + silent));
    let (ours, peers) = connect(all)?;
    let address = peers.listener.local_addr()?;
    let peers = thread::spawn(move || peers.serve(interval));

    let mut client = Client { poll: Poll::new()?, connections: Vec::with_capacity(all), timer, ledger, interval };
    for (number, stream) in ours.into_iter().enumerate() {
        client.add(Peer::of(number), stream)?;
    }
    let lost = client.listen(silent, address)?;

    let Client { connections, timer, ledger, .. } = client;
    let mut open = 0;
    for TimedConnection { connection, beat, close } in &connections {
        beat.cancel();
        if close.cancel() {
            ledger.end(connection.number);
            open += 1;
            // A connection that its peer has reset cannot be shut down, and need not be.
            _ = connection.stream.shutdown(Shutdown::Both);
        }
    }
    peers.join().map_err(|_| "the peers' thread panicked")??;
    // The task that closed the last connection may not have returned, so `stop` waits for it.
    let left = timer.stop()?.len() + timer.pending_timeouts();

    let ours = || connections.iter().map(|timed| &timed.connection);
    let sum = |peer| ours().filter(|c| c.peer == peer).map(|c| c.sent()).sum::<u32>();
    println!("{all} connections on one timer, a heartbeat after {interval:?} of silence");
    println!("{:>8} talk: {} heartbeats sent", Peer::Talks.among(all), sum(Peer::Talks));
    println!("{:>8} only answer: {} heartbeats sent", Peer::Answers.among(all), sum(Peer::Answers));
    println!("{silent:>8} fell silent: {} heartbeats sent", sum(Peer::Silent));
    let silences: Vec<Duration> = ours().filter_map(|c| *c.closed_after.lock()).collect();
    let least = silences.iter().min().copied();
    let most = silences.iter().max().copied();
    println!(
        "{:>8} closed, after {:.2?} to {:.2?} of silence",
        silences.len(),
        least.unwrap_or_default(),
        most.unwrap_or_default()
    );
    println!("{:>8} connected again", connections.len() - all);

    let mut checks = Checks::default();
    checks.that(ledger.holds(), "every connection ended exactly once");
    checks.that(silences.len() == silent && lost == 0, "every silent one was closed, by its timeout");
    checks.that(open == all, "the others and the second connections are open to the end");
    checks.that(least.is_none_or(|least| least >= interval * MISSES), "none was closed too early");
    checks.that(left == 0, "pending: 0");
    Ok(checks)
}

/// Our ends and the timer that keeps them alive.
struct Client {
    poll: Poll,
    connections: Vec<TimedConnection>,
    timer: Timer,
    ledger: Arc<Ledger>,
    interval: Duration,
}

impl Client {
    fn add(&mut self, peer: Peer, mut stream: TcpStream) -> Result<(), Box<dyn Error>> {
        let number = self.connections.len();
        self.poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
        let connection = Connection::new(number, peer, stream);
        self.connections.push(TimedConnection::new(connection, self.interval, &self.timer, &self.ledger)?);
        Ok(())
    }

    /// Reads the messages of the peers, and connects again to each silent one that was closed.
    /// Returns when the second connections have been heard. Returns how many other connections
    /// ended.
    fn listen(&mut self, silent: usize, address: SocketAddr) -> Result<usize, Box<dyn Error>> {
        // The end of a stream may be reported more than once.
        let mut ended = HashSet::new();
        let mut heard = HashSet::new();
        let mut lost = 0;
        let mut events = Events::with_capacity(1024);
        while heard.len() < silent && lost == 0 {
            if let Err(error) = self.poll.poll(&mut events, None)
                && error.kind() != io::ErrorKind::Interrupted
            {
                return Err(error.into());
            }
            for event in &events {
                let Token(number) = event.token();
                let TimedConnection { connection, .. } = &self.connections[number];
                let mut bytes = 0;
                // Shutting a socket down also ends reading from it, so this thread sees the close
                // here.
                if !drain(&connection.stream, |more| bytes += more) {
                    if ended.insert(number) {
                        let was_silent = connection.closed_after.lock().is_some();
                        match was_silent {
                            true => self.add(Peer::Again, TcpStream::connect(address)?)?,
                            false => lost += 1,
                        }
                    }
                } else if bytes > 0 {
                    self.connections[number].heard(self.interval);
                    if self.connections[number].connection.peer == Peer::Again {
                        heard.insert(number);
                    }
                }
            }
        }
        Ok(lost)
    }
}

/// Connects both ends of `all` connections.
fn connect(all: usize) -> io::Result<(Vec<TcpStream>, Peers)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut ours = Vec::with_capacity(all);
    let mut ends = Vec::with_capacity(all);
    for number in 0..all {
        let near = std::net::TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        ours.push(TcpStream::from_std(near));
        ends.push((TcpStream::from_std(far), Peer::of(number), 0));
    }
    listener.set_nonblocking(true)?;
    Ok((ours, Peers { listener: TcpListener::from_std(listener), ends }))
}

/// Raises the limit of open files as far as the system permits.
fn make_room(connections: usize) -> Result<(), Box<dyn Error>> {
    let needed = 4 * connections as u64 + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < needed) {
        let most = limit.maximum.unwrap_or_default().saturating_sub(OTHER_DESCRIPTORS) / 4;
        return Err(
            Refused(format!("--connections: {connections} given; allowed: up to {most} by `ulimit -Hn`")).into()
        );
    }
    if limit.current.is_some_and(|now| now < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit })?;
    }
    Ok(())
}
