//! Thousands of connections with heartbeats on one timer. A connection sends a heartbeat after an
//! interval of silence and closes after three, which is Dubbo's rule.
//!
//! Each connection has two timeouts. A periodic one sends a heartbeat, and the other one closes the
//! connection. Each message moves both, at about the cost of two clock readings, so on a connection
//! that talks neither runs. Both tasks make calls that do not block, so they run on the timer's own
//! thread. When a connection closes, a third heartbeat is due and the first two were not answered.
//!
//! The peers are a thread at the other end of real sockets. A third of them talk, a third only
//! answer, and a third answer twice and then fall silent with the connection open, like after a cut
//! cable.
#![forbid(unsafe_code)]

mod connection;
mod peers;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use connection::{Connection, drain};
use examples::cli::{self, Args, Checks, Refused, Stop};
use examples::ledger::Ledger;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use peers::{Peer, Peers};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use timer_core::{RejectReason, Timeout, Timer};

const USAGE: &str = "\
Connections that send a heartbeat after each interval of silence and close after three intervals, all on one timer.
A third of the peers talk, a third only answer heartbeats, and a third fall silent.

Usage: heartbeat [OPTIONS]

  --connections N       how many, 1..=20000; each takes two file descriptors [default: 2000]
  --interval MILLIS     silence after which a heartbeat is sent, 50..=60000 [default: 500]
  -h, --help            print this
";

/// The number of silent intervals after which a connection closes.
const MISSES: u32 = 3;
const HEARTBEAT: &[u8] = b"?";
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
        let (closing, beats, ledger) = (connection.clone(), beat.clone(), ledger.clone());
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
    make_room(all)?;
    let timer = Timer::builder().name("heartbeat").build()?;
    let ledger = Arc::new(Ledger::new(all));
    let (mut ours, peers) = connect(all)?;
    let peers = thread::spawn(move || peers.serve(interval));

    let mut poll = Poll::new()?;
    let mut connections = Vec::with_capacity(all);
    for (number, stream) in ours.iter_mut().enumerate() {
        poll.registry().register(stream, Token(number), Interest::READABLE)?;
    }
    for (number, stream) in ours.into_iter().enumerate() {
        connections.push(TimedConnection::new(Connection::new(number, stream), interval, &timer, &ledger)?);
    }
    let lost = listen(&mut poll, &connections, interval)?;

    let mut open = 0;
    for TimedConnection { connection, beat, close } in &connections {
        beat.cancel();
        if close.cancel() {
            ledger.end(connection.number);
            open += usize::from(Peer::of(connection.number) != Peer::Silent);
            // A connection that its peer has reset cannot be shut down, and need not be.
            _ = connection.stream.shutdown(Shutdown::Both);
        }
    }
    peers.join().map_err(|_| "the peers' thread panicked")??;
    // The task that closed the last connection may not have returned, so `stop` waits for it.
    let left = timer.stop()?.len() + timer.pending_timeouts();

    let silent = Peer::Silent.among(all);
    let ours = || connections.iter().map(|timed| &timed.connection);
    let sum = |peer| ours().filter(|c| Peer::of(c.number) == peer).map(|c| c.sent()).sum::<u32>();
    println!("{all} connections on one timer, a heartbeat after {interval:?} of silence");
    println!("{:>8} talk: {} heartbeats sent", Peer::Talks.among(all), sum(Peer::Talks));
    println!("{:>8} only answer: {} heartbeats sent", Peer::Answers.among(all), sum(Peer::Answers));
    println!("{silent:>8} fell silent: {} heartbeats sent", sum(Peer::Silent));
    let silences: Vec<Duration> = ours().filter_map(|c| *c.closed_after.lock()).collect();
    let (least, most) = (silences.iter().min().copied(), silences.iter().max().copied());
    println!(
        "{:>8} closed, after {:.2?} to {:.2?} of silence",
        silences.len(),
        least.unwrap_or_default(),
        most.unwrap_or_default()
    );

    let mut checks = Checks::default();
    checks.that(ledger.holds(), "every connection ended exactly once");
    checks.that(silences.len() == silent && lost == 0, "every silent one was closed, by its timeout");
    checks.that(open == all - silent, "the others are open to the end");
    checks.that(least.is_none_or(|least| least >= interval * MISSES), "none was closed too early");
    checks.that(left == 0, "pending: 0");
    Ok(checks)
}

/// Reads the messages of the peers until every silent one is closed. Returns how many other
/// connections ended.
fn listen(poll: &mut Poll, connections: &[TimedConnection], interval: Duration) -> io::Result<usize> {
    // The end of a stream may be reported more than once.
    let mut ended = vec![false; connections.len()];
    let (mut closed, mut lost) = (0, 0);
    let mut events = Events::with_capacity(1024);
    while closed < Peer::Silent.among(connections.len()) {
        if let Err(error) = poll.poll(&mut events, None)
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Err(error);
        }
        for event in &events {
            let Token(number) = event.token();
            let timed = &connections[number];
            match drain(&timed.connection.stream, |_| {}) {
                true => timed.heard(interval),
                // Shutting a socket down also ends reading from it, so this thread sees the close
                // here.
                false if ended[number] => {}
                false => {
                    ended[number] = true;
                    closed += 1;
                    lost += usize::from(timed.connection.closed_after.lock().is_none());
                }
            }
        }
    }
    Ok(lost)
}

/// Connects both ends of `all` connections.
fn connect(all: usize) -> io::Result<(Vec<TcpStream>, Peers)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (mut ours, mut peers) = (Vec::with_capacity(all), Vec::with_capacity(all));
    for _ in 0..all {
        let near = std::net::TcpStream::connect(listener.local_addr()?)?;
        let (far, _) = listener.accept()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        ours.push(TcpStream::from_std(near));
        peers.push((TcpStream::from_std(far), 0));
    }
    Ok((ours, Peers(peers)))
}

/// Raises the limit of open files as far as the system permits.
fn make_room(connections: usize) -> Result<(), Box<dyn Error>> {
    let needed = 2 * connections as u64 + OTHER_DESCRIPTORS;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < needed) {
        let most = limit.maximum.unwrap_or_default().saturating_sub(OTHER_DESCRIPTORS) / 2;
        return Err(
            Refused(format!("--connections: {connections} given; allowed: up to {most} by `ulimit -Hn`")).into()
        );
    }
    if limit.current.is_some_and(|now| now < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit })?;
    }
    Ok(())
}
