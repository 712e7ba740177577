//! A lock in Redis: a key with a lease, which a watchdog renews for as long as its holder lives.
//!
//! The key's value is its holder's token. Renewal and release are scripts, since nothing may happen
//! between the look at the token and what follows. Connections are not shared with other uses, so a
//! call waits for one other call at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use redis::{Client, Connection, RedisResult, cmd};
use timer_core::{RejectReason, Timeout, Timer};

const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0";
const RELEASE: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('del', KEYS[1])
end
return 0";

/// One who takes locks.
pub(crate) struct Locker {
    connection: Arc<Mutex<Connection>>,
    timer: Timer,
    lease: Duration,
}

/// A lock that is held. It ends by [`unlock`](Self::unlock), or by the death of the process.
pub(crate) struct Guard {
    key: Key,
    watchdog: Timeout,
    renewals: Arc<AtomicU32>,
}

#[derive(Clone)]
struct Key {
    connection: Arc<Mutex<Connection>>,
    name: String,
    token: String,
    lease: Duration,
}

impl Locker {
    /// Connects. The timer renews the leases; its executor must be one that a slow answer may block.
    pub(crate) fn connect(client: &Client, timer: &Timer, lease: Duration) -> RedisResult<Self> {
        let connection = client.get_connection_with_timeout(lease)?;
        // An answer that takes longer than two renewals is no use.
        connection.set_read_timeout(Some(lease))?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), timer: timer.clone(), lease })
    }

    /// Takes the lock, unless it is held.
    pub(crate) fn try_lock(&self, name: &str) -> RedisResult<Option<Guard>> {
        let (connection, lease) = (self.connection.clone(), self.lease);
        let key = Key { connection, name: name.to_owned(), token: token(), lease };
        let mut set = cmd("SET");
        set.arg(&key.name).arg(&key.token).arg("NX").arg("PX").arg(millis(lease));
        let taken: Option<String> = set.query(&mut key.connection.lock())?;
        Ok(match taken {
            Some(_) => Some(self.watch(key).map_err(|reason| std::io::Error::other(reason.to_string()))?),
            None => None,
        })
    }

    /// How long the lease of a lock still lasts; zero if it is not held.
    pub(crate) fn left(&self, name: &str) -> RedisResult<Duration> {
        let millis: i64 = cmd("PTTL").arg(name).query(&mut self.connection.lock())?;
        Ok(Duration::from_millis(millis.try_into().unwrap_or(0)))
    }

    /// A third of the lease leaves two more tries when a renewal fails.
    fn watch(&self, key: Key) -> Result<Guard, RejectReason> {
        let renewals = Arc::new(AtomicU32::new(0));
        let (renewed, held, third) = (renewals.clone(), key.clone(), key.lease / 3);
        let watchdog = move |watchdog: &Timeout| match held.run(RENEW) {
            Ok(true) => {
                // ORDERING: Relaxed: a count to look at, on which nothing hangs.
                renewed.fetch_add(1, Ordering::Relaxed);
            }
            // The lock is lost. `unlock` will say so.
            Ok(false) => _ = watchdog.cancel(),
            Err(error) => eprintln!("lock_watchdog: {}: {error}; trying again in {third:?}", held.name),
        };
        let watchdog = self.timer.schedule_at_fixed_rate(third, third, watchdog);
        Ok(Guard { key, watchdog: watchdog.map_err(|rejected| rejected.reason)?, renewals })
    }
}

impl Guard {
    /// Unlocks. `false` if the lock was lost before.
    ///
    /// A renewal that is under way does no harm: it finds the key gone, or with a token that is not its own.
    pub(crate) fn unlock(self) -> RedisResult<bool> {
        self.watchdog.cancel();
        self.key.run(RELEASE)
    }

    /// How often the lease was renewed.
    pub(crate) fn renewals(&self) -> u32 {
        // ORDERING: Relaxed, as above.
        self.renewals.load(Ordering::Relaxed)
    }
}

impl Key {
    /// Whether the key was ours and the script did its work.
    fn run(&self, script: &str) -> RedisResult<bool> {
        let mut eval = cmd("EVAL");
        eval.arg(script).arg(1).arg(&self.name).arg(&self.token).arg(millis(self.lease));
        eval.query(&mut self.connection.lock())
    }
}

fn millis(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
}

/// Unlike any other: of this process, of this instant, of this call.
fn token() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // ORDERING: Relaxed: the counts only have to differ.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{call}", std::process::id(), since.as_nanos())
}
