//! A lock in Redis that lasts while its holder works and becomes free when its holder dies.
//!
//! The lease is short, so that a lock is not blocked for long after its holder has died. The work
//! is long, so a watchdog renews the lease at every third of its time, like Redisson's. The
//! watchdog is a periodic timeout for each held lock. All of them are on one timer and run on a
//! pool, because a call to Redis may block.
//!
//! Alice works for several leases while Bob tries to get her lock. Then another process takes the
//! lock and is killed, and Bob gets the lock when that lease is over.
#![forbid(unsafe_code)]

mod lock;
mod server;

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Refused, Stop};
use lock::{Guard, Locker};
use redis::{Client, RedisResult};
use server::Server;
use timer_core::Timer;
use timer_executor::ThreadPoolExecutor;

const USAGE: &str = "\
A lock with a lease in Redis, renewed every third of its time until the work is done, and expired when its holder dies.
Starts its own redis-server, on a free port and in a folder that it removes.

Usage: lock_watchdog [OPTIONS]

  --lease MILLIS        how long a lock lasts that is not renewed, 300..=600000 [default: 1200]
  --work N              how many leases the work takes, 2..=1000 [default: 3]
  --redis URL           of a server that runs already, redis://HOST:PORT
  --role KIND           play | hold: take the lock of the server at --redis, say so, and keep it until standard input
                        ends or the process dies [default: play]
  -h, --help            print this
";

const LOCK: &str = "lock_watchdog:example";
const HELD: &str = "held";

struct Options {
    lease: Duration,
    work: u32,
    redis: Option<String>,
    hold: bool,
}

fn main() -> ExitCode {
    cli::main("lock_watchdog", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options { lease: Duration::from_millis(1200), work: 3, redis: None, hold: false };
    while let Some(option) = args.option()? {
        match option {
            "--lease" => options.lease = args.millis(300..=600_000)?,
            "--work" => options.work = u32::try_from(args.number(2..=1000)?).unwrap_or(u32::MAX),
            "--redis" => {
                let url = |given: &str| Client::open(given).is_ok().then(|| given.to_owned());
                options.redis = Some(args.value("redis://HOST:PORT", url)?);
            }
            "--role" => options.hold = args.choice(&[("play", false), ("hold", true)])?,
            _ => return Err(args.unknown(option)),
        }
    }
    if options.hold && options.redis.is_none() {
        return Err(Stop::Refused(Refused("--role hold without --redis; allowed: both".to_owned())));
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let own = if options.redis.is_none() { Some(Server::start()?) } else { None };
    let url = own.as_ref().map(|own| &own.url).or(options.redis.as_ref()).cloned().unwrap_or_default();
    let timer = Timer::builder().name("watchdog").executor(ThreadPoolExecutor::new(2)).build()?;
    let client = Client::open(url.as_str())?;
    let connect = || Locker::connect(&client, &timer, options.lease);
    let first = connect().map_err(|error| Refused(format!("--redis: {url}: {error}; allowed: a running server")))?;
    if options.hold {
        return hold(&first);
    }
    println!("{url}, a lease of {:?}, renewed every {:?}", options.lease, options.lease / 3);
    let mut checks = Checks::default();
    let work = options.lease * options.work;
    while_its_holder_works(&mut checks, &first, &connect()?, work)?;
    when_its_holder_dies(&mut checks, &first, &url, options.lease)?;
    checks.that(timer.pending_timeouts() == 0, "no watchdog is left behind");
    Ok(checks)
}

/// Shows that a lock outlives its lease for as long as the work takes.
fn while_its_holder_works(
    checks: &mut Checks,
    alice: &Locker,
    bob: &Locker,
    work: Duration,
) -> Result<(), Box<dyn Error>> {
    let held = alice.try_lock(LOCK)?.ok_or("the lock is held already, by another use of this server")?;
    let (kept, renewals, unlocked, mine) = thread::scope(|scope| {
        let bob = scope.spawn(|| wait_for(bob));
        thread::sleep(work);
        let renewals = held.renewals();
        let unlocked = Instant::now();
        let kept = held.unlock();
        (kept, renewals, unlocked, bob.join())
    });
    let mine = mine.map_err(|_| "Bob's thread panicked")??;
    let after = mine.at.checked_duration_since(unlocked);
    println!("Alice worked for {work:?}, and her lease was renewed {renewals} times");
    println!(
        "Bob tried {} times, and got the lock {:.1?} after she began to let go",
        mine.tries,
        after.unwrap_or_default()
    );
    checks.that(kept?, "the lock was hers to the end");
    checks.that(after.is_some(), "Bob did not get it before");
    checks.that(mine.held.unlock()?, "then it was his");
    Ok(())
}

/// Shows that nothing renews the lease of a dead process.
fn when_its_holder_dies(checks: &mut Checks, bob: &Locker, url: &str, lease: Duration) -> Result<(), Box<dyn Error>> {
    let mut other = Process::hold(url, lease)?;
    let held_for = lease * 2;
    thread::sleep(held_for);
    let refused = bob.try_lock(LOCK)?.is_none();
    let killed = Instant::now();
    let left = bob.left(LOCK)?;
    other.0.kill()?;
    let mine = wait_for(bob)?;
    let after = mine.at - killed;
    println!("another process held it for {held_for:?} and was killed, with {left:.2?} of its lease left");
    println!("Bob got the lock {after:.2?} after that");
    checks.that(refused, "while it lived, the lock was its own");
    // Redis counts in whole milliseconds.
    checks.that(after + Duration::from_millis(2) >= left, "the lease of the dead was kept");
    checks.that(after < lease * 2, "and not renewed");
    checks.that(mine.held.unlock()?, "then it was Bob's");
    Ok(())
}

/// A lock that Bob had to wait for.
struct AcquiredLock {
    held: Guard,
    at: Instant,
    tries: u32,
}

/// Tries to take the lock until it is free.
fn wait_for(locker: &Locker) -> RedisResult<AcquiredLock> {
    let mut tries = 0;
    loop {
        tries += 1;
        if let Some(held) = locker.try_lock(LOCK)? {
            return Ok(AcquiredLock { held, at: Instant::now(), tries });
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Implements `--role hold`.
fn hold(locker: &Locker) -> Result<Checks, Box<dyn Error>> {
    let held = locker.try_lock(LOCK)?.ok_or("the lock is held already")?;
    println!("{HELD}");
    io::stdin().read_to_end(&mut Vec::new())?;
    let mut checks = Checks::default();
    checks.that(held.unlock()?, "the lock was held to the end");
    Ok(checks)
}

/// Another process of this program that holds the lock. It ends when its standard input closes, at
/// the latest with this process.
struct Process(Child);

impl Process {
    fn hold(url: &str, lease: Duration) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--role", "hold", "--redis", url, "--lease", &lease.as_millis().to_string()]);
        let mut process = Self(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        if let Some(out) = &mut process.0.stdout {
            BufReader::new(out).read_line(&mut line)?;
        }
        if line.trim_end() == HELD { Ok(process) } else { Err("the other process did not get the lock".into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have been killed already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
