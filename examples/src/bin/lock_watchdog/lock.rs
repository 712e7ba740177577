//! A lock in Redis, that is, a key with a lease. A watchdog renews the lease as long as its holder
//! lives.
//!
//! The value of the key is the holder's token. Renewal and release are scripts, because nothing may
//! happen between the check of the token and the next step. Connections are not shared with other
//! uses, so a call waits for at most one other call.

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

/// A client that takes locks.
pub(crate) struct Locker {
    connection: Arc<Mutex<Connection>>,
    timer: Timer,
    lease: Duration,
}

/// A held lock. It ends with [`unlock`](Self::unlock) or with the process.
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
    /// Connects to Redis. The timer renews the leases, so its executor must be able to block on a
    /// slow answer.
    pub(crate) fn connect(client: &Client, timer: &Timer, lease: Duration) -> RedisResult<Self> {
        let connection = client.get_connection_with_timeout(lease)?;
        // An answer that takes longer than a lease is of no use.
        connection.set_read_timeout(Some(lease))?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), timer: timer.clone(), lease })
    }

    /// Takes the lock unless it is held.
    pub(crate) fn try_lock(&self, name: &str) -> RedisResult<Option<Guard>> {
        let connection = self.connection.clone();
        let lease = self.lease;
        let key = Key { connection, name: name.to_owned(), token: token(), lease };
        let mut set = cmd("SET");
        set.arg(&key.name).arg(&key.token).arg("NX").arg("PX").arg(millis(lease));
        let taken: Option<String> = set.query(&mut key.connection.lock())?;
        Ok(match taken {
            Some(_) => Some(self.watch(key).map_err(|reason| std::io::Error::other(reason.to_string()))?),
            None => None,
        })
    }

    /// Returns the remaining lease of a lock, or zero if it is not held.
    pub(crate) fn left(&self, name: &str) -> RedisResult<Duration> {
        let millis: i64 = cmd("PTTL").arg(name).query(&mut self.connection.lock())?;
        Ok(Duration::from_millis(millis.try_into().unwrap_or(0)))
    }

    /// Starts the watchdog. A third of the lease leaves two more attempts if a renewal fails.
    fn watch(&self, key: Key) -> Result<Guard, RejectReason> {
        let renewals = Arc::new(AtomicU32::new(0));
        let renewed = renewals.clone();
        let held = key.clone();
        let third = key.lease / 3;
        let watchdog = move |watchdog: &Timeout| match held.run(RENEW) {
            Ok(true) => {
                // ORDERING: Relaxed, because this is only a count.
                renewed.fetch_add(1, Ordering::Relaxed);
            }
            // The lock is lost, and `unlock` will report it.
            Ok(false) => _ = watchdog.cancel(),
            Err(error) => eprintln!("lock_watchdog: {}: {error}; trying again in {third:?}", held.name),
        };
        let watchdog = self.timer.schedule_at_fixed_rate(third, third, watchdog);
        Ok(Guard { key, watchdog: watchdog.map_err(|rejected| rejected.reason)?, renewals })
    }
}

impl Guard {
    /// Unlocks. Returns `false` if the lock was lost before.
    ///
    /// A renewal in progress does no harm, because it finds the key gone or with another token.
    pub(crate) fn unlock(self) -> RedisResult<bool> {
        self.watchdog.cancel();
        self.key.run(RELEASE)
    }

    /// Returns the number of renewals of the lease.
    pub(crate) fn renewals(&self) -> u32 {
        // ORDERING: Relaxed, because this is only a count.
        self.renewals.load(Ordering::Relaxed)
    }
}

impl Key {
    /// Runs a script. Returns `true` if the key had this token.
    fn run(&self, script: &str) -> RedisResult<bool> {
        let mut eval = cmd("EVAL");
        eval.arg(script).arg(1).arg(&self.name).arg(&self.token).arg(millis(self.lease));
        eval.query(&mut self.connection.lock())
    }
}

fn millis(lease: Duration) -> u64 {
    u64::try_from(lease.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a token that is unique to this process, this instant and this call.
fn token() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // ORDERING: Relaxed, because the counts only have to differ.
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{call}", std::process::id(), since.as_nanos())
}
