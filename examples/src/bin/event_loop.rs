//! An echo server in an `mio` loop with idle timeouts that the loop itself drives. The timer has no
//! thread.
//!
//! The poll waits for sockets and for the next timeout. Then the loop takes a turn of the timer,
//! which runs the due tasks on the loop's thread. On Linux the next timeout wakes the poll by a
//! timerfd, because the system prolongs the time-out of a poll by up to 100 ms. Elsewhere the poll
//! has a time-out. The loop's own timeouts need no wake-up, because the loop takes a turn before it
//! waits again. If another thread schedules a timeout that is due before the poll would return,
//! `on_wake` wakes the poll.
//!
//! Every line from a client moves its connection's timeout. A client that hangs up cancels it. A
//! client that falls silent is closed by it.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Stop};
use examples::ledger::Ledger;
use mio::net::{TcpListener, TcpStream};
#[cfg(target_os = "linux")]
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use timer_core::{Driver, Timeout, Timer};

const USAGE: &str = "\
An echo server in an mio loop that closes silent connections. Half of its clients hang up, half fall silent; another
thread schedules alarms on the server's timer at the same time.

Usage: event_loop [OPTIONS]

  --clients N           how many, 1..=400 [default: 100]
  --idle MILLIS         silence that closes a connection, 100..=60000 [default: 500]
  --alarms N            timeouts from the other thread, 1..=10000 [default: 40]
  -h, --help            print this
";

/// The number of lines that each client sends, one after each fifth of the idle time.
const LINES: usize = 4;
const LINE: &[u8] = b"are you there?\n";
const ALARM: Duration = Duration::from_millis(5);

const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);
const ALARM_CLOCK: Token = Token(2);
const FIRST_CLIENT: usize = 3;

#[derive(Clone, Copy)]
struct Options {
    clients: usize,
    idle: Duration,
    alarms: usize,
}

fn main() -> ExitCode {
    cli::main("event_loop", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options { clients: 100, idle: Duration::from_millis(500), alarms: 40 };
    while let Some(option) = args.option()? {
        match option {
            "--clients" => options.clients = args.count(1..=400)?,
            "--idle" => options.idle = args.millis(100..=60_000)?,
            "--alarms" => options.alarms = args.count(1..=10_000)?,
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let (timer, mut driver) = Timer::builder().name("event-loop").build_driven()?;
    let mut server = Server::bind(timer.clone(), options)?;
    let waker = Waker::new(server.poll.registry(), WAKER)?;
    // If waking the poll failed, the poll would still end at its time-out, and the alarm would be
    // late.
    driver.on_wake(move || _ = waker.wake());

    let clients = clients(server.listener.local_addr()?, options);
    let alarms = alarms(timer.clone(), server.due.clone(), options.alarms);
    server.serve(&mut driver)?;
    let early = clients.join().map_err(|_| "the clients' thread panicked")??;
    alarms.join().map_err(|_| "the alarms' thread panicked")?;

    let Options { clients, idle, alarms } = options;
    let Server { hung_up, silent, echoed, turns, woken, alarms_ran, latest, elsewhere, ledger, .. } = server;
    println!("{clients} connections: {hung_up} hung up, {silent} closed after {idle:?} of silence");
    println!("{echoed} lines echoed, each of which moved a timeout");
    println!("{alarms_ran} alarms from another thread, at most {latest:.1?} late, and {woken} wake-ups of the poll");
    println!("{turns} turns of the loop");
    let mut checks = Checks::default();
    checks.that(ledger.holds(), "every connection ended exactly once");
    checks.that(early == 0, "none was closed before its time");
    checks.that(echoed == clients * LINES, "every line was echoed");
    checks.that(alarms_ran == alarms && elsewhere == 0, "every alarm ran, on the loop's thread");
    checks.that(woken > 0, "an alarm wakes the poll");
    checks.that(timer.pending_timeouts() == 0, "pending: 0");
    Ok(checks)
}

/// A message from a timeout to the loop. The task runs on the loop's thread but must not own the
/// loop's data.
enum Due {
    Idle(Token),
    Alarm { late: Duration, on: thread::ThreadId },
}

/// Wakes the poll at an instant, to the nanosecond.
#[cfg(target_os = "linux")]
struct AlarmClock(OwnedFd);

#[cfg(target_os = "linux")]
impl AlarmClock {
    fn new(poll: &Poll) -> io::Result<Self> {
        let clock = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        poll.registry().register(&mut SourceFd(&clock.as_raw_fd()), ALARM_CLOCK, Interest::READABLE)?;
        Ok(Self(clock))
    }

    /// Sets the alarm to `at`, or turns it off. Returns no time-out, because the timerfd wakes the
    /// poll.
    fn set(&self, at: Option<Instant>) -> io::Result<Option<Duration>> {
        // A timerfd of zero is off, so a deadline that has passed is set to 1 ns from now.
        let wait = at.map(|at| at.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1)));
        let it_value = Timespec::try_from(wait.unwrap_or_default()).map_err(io::Error::other)?;
        timerfd_settime(
            &self.0,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: Timespec::default(), it_value },
        )?;
        Ok(None)
    }
}

#[cfg(not(target_os = "linux"))]
struct AlarmClock;

#[cfg(not(target_os = "linux"))]
impl AlarmClock {
    fn new(_: &Poll) -> io::Result<Self> {
        Ok(Self)
    }

    /// Returns the time-out of the poll. mio rounds it up to the system's resolution, so the loop
    /// does not spin.
    fn set(&self, at: Option<Instant>) -> io::Result<Option<Duration>> {
        Ok(at.map(|at| at.saturating_duration_since(Instant::now())))
    }
}

struct Server {
    options: Options,
    timer: Timer,
    poll: Poll,
    alarm_clock: AlarmClock,
    listener: TcpListener,
    connections: HashMap<Token, Connection>,
    accepted: usize,
    due: Sender<Due>,
    inbox: Receiver<Due>,
    ledger: Ledger,
    hung_up: usize,
    silent: usize,
    echoed: usize,
    turns: usize,
    woken: usize,
    alarms_ran: usize,
    latest: Duration,
    elsewhere: usize,
}

struct Connection {
    stream: TcpStream,
    idle: Timeout,
}

impl Server {
    fn bind(timer: Timer, options: Options) -> io::Result<Self> {
        let poll = Poll::new()?;
        let alarm_clock = AlarmClock::new(&poll)?;
        let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let (due, inbox) = mpsc::channel();
        Ok(Self {
            options,
            timer,
            poll,
            alarm_clock,
            listener,
            connections: HashMap::new(),
            accepted: 0,
            due,
            inbox,
            ledger: Ledger::new(options.clients),
            hung_up: 0,
            silent: 0,
            echoed: 0,
            turns: 0,
            woken: 0,
            alarms_ran: 0,
            latest: Duration::ZERO,
            elsewhere: 0,
        })
    }

    /// Runs the loop: take a turn, handle the due events, wait for sockets or the next timeout.
    fn serve(&mut self, driver: &mut Driver) -> Result<(), Box<dyn Error>> {
        let mut events = Events::with_capacity(256);
        loop {
            let turn = driver.turn();
            self.turns += 1;
            self.became_due();
            if self.hung_up + self.silent == self.options.clients && self.alarms_ran == self.options.alarms {
                return Ok(());
            }
            let wait = self.alarm_clock.set(turn.next_deadline)?;
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            for event in &events {
                match event.token() {
                    WAKER => self.woken += 1,
                    // The turn sets the clock again, which clears the event.
                    ALARM_CLOCK => {}
                    LISTENER => self.accept()?,
                    client => self.read(client),
                }
            }
        }
    }

    fn became_due(&mut self) {
        for due in self.inbox.try_iter() {
            match due {
                Due::Idle(client) => {
                    self.connections.remove(&client);
                    self.ledger.end(client.0 - FIRST_CLIENT);
                    self.silent += 1;
                }
                Due::Alarm { late, on } => {
                    self.alarms_ran += 1;
                    self.latest = self.latest.max(late);
                    self.elsewhere += usize::from(on != thread::current().id());
                }
            }
        }
    }

    fn accept(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let client = Token(FIRST_CLIENT + self.accepted);
            self.accepted += 1;
            self.poll.registry().register(&mut stream, client, Interest::READABLE)?;
            let due = self.due.clone();
            // The inbox outlives all connections.
            let idle = self.timer.new_timeout(self.options.idle, move |_| _ = due.send(Due::Idle(client)))?;
            self.connections.insert(client, Connection { stream, idle });
        }
    }

    fn read(&mut self, client: Token) {
        // The timeout may have closed the connection during this turn.
        let Some(connection) = self.connections.get_mut(&client) else { return };
        let (bytes, open) = connection.echo();
        self.echoed += bytes / LINE.len();
        if open {
            connection.idle.reset(self.options.idle);
        } else if connection.idle.cancel() {
            self.connections.remove(&client);
            self.ledger.end(client.0 - FIRST_CLIENT);
            self.hung_up += 1;
        }
    }
}

impl Connection {
    /// Reads all available bytes and sends them back. Returns their number, and whether more may
    /// come. The few bytes of this example fit the socket's buffer. A real server has to keep the
    /// rest.
    fn echo(&mut self) -> (usize, bool) {
        let mut buffer = [0; 1024];
        let mut bytes = 0;
        loop {
            match self.stream.read(&mut buffer) {
                Ok(read) if read > 0 && self.stream.write_all(&buffer[..read]).is_ok() => bytes += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return (bytes, true),
                Ok(_) | Err(_) => return (bytes, false),
            }
        }
    }
}

/// Starts a thread with all clients, which send in time. Then every second client hangs up, and the
/// others wait to be closed. Returns the number of clients that were closed too early.
fn clients(server: SocketAddr, options: Options) -> JoinHandle<io::Result<usize>> {
    thread::spawn(move || {
        let connect = |_| Ok((std::net::TcpStream::connect(server)?, Instant::now()));
        let mut clients = (0..options.clients).map(connect).collect::<io::Result<Vec<_>>>()?;
        for _ in 0..LINES {
            thread::sleep(options.idle / 5);
            for (stream, spoke) in &mut clients {
                *spoke = Instant::now();
                stream.write_all(LINE)?;
                stream.read_exact(&mut [0; LINE.len()])?;
            }
        }
        let mut early = 0;
        for (number, (stream, _)) in clients.iter().enumerate() {
            if number % 2 == 0 {
                stream.shutdown(Shutdown::Both)?;
            }
        }
        for (stream, spoke) in clients.iter_mut().skip(1).step_by(2) {
            let end = stream.read(&mut [0; 1])?;
            early += usize::from(end != 0 || spoke.elapsed() < options.idle);
        }
        Ok(early)
    })
}

/// Starts a thread that schedules one alarm after the other on the loop's timer, mostly while the
/// loop waits.
fn alarms(timer: Timer, due: Sender<Due>, alarms: usize) -> JoinHandle<()> {
    thread::spawn(move || {
        let (ran, wait) = mpsc::channel();
        for _ in 0..alarms {
            thread::sleep(ALARM);
            let due = due.clone();
            let ran = ran.clone();
            let alarm = move |alarm: &Timeout| {
                let late = alarm.deadline().elapsed();
                _ = due.send(Due::Alarm { late, on: thread::current().id() });
                _ = ran.send(());
            };
            // The timer refuses only after the loop has ended.
            if timer.new_timeout(ALARM, alarm).is_err() || wait.recv().is_err() {
                return;
            }
        }
    })
}
