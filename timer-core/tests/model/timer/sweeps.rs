//! All boundaries one by one, of which the random cases test some: uptimes just below each power of
//! two, and timeouts a whole rotation of a level away, which have hidden nearer ones in other
//! wheels.

use super::edges::{TOP, UNITS, nanos};
use super::slot::{END_OF_TIME, NEVER, up};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{ManualDriver, Timeout, Timer, WheelKind};

const WHEELS: [WheelKind; 5] = [
    WheelKind::Hierarchical,
    WheelKind::Hashed { ticks_per_wheel: 1 },
    WheelKind::Hashed { ticks_per_wheel: 2 },
    WheelKind::Hashed { ticks_per_wheel: 8 },
    WheelKind::Hashed { ticks_per_wheel: 512 },
];

/// A timer with an uptime, whose timeouts record their numbers.
struct Aged {
    timer: Timer,
    driver: ManualDriver,
    epoch: Instant,
    /// The epoch in nanoseconds of the system's clock.
    began: u128,
    /// Numbers and deadlines of waiting timeouts.
    waiting: Vec<(usize, u128)>,
    ran: Arc<Mutex<Vec<usize>>>,
    next: usize,
}

impl Aged {
    fn new(wheel: WheelKind, uptime: Duration) -> Self {
        let (timer, mut driver) = Timer::builder().wheel(wheel).build_manual().unwrap();
        let (epoch, began) = (driver.now(), driver.origin().into());
        assert_eq!(driver.advance(uptime), 0);
        Self { timer, driver, epoch, began, waiting: Vec::new(), ran: Arc::default(), next: 0 }
    }

    fn now(&self) -> u128 {
        self.began + self.driver.elapsed().as_nanos()
    }

    fn schedule(&mut self, delay: Duration) -> Timeout {
        let (id, ran) = (self.next, self.ran.clone());
        self.next += 1;
        let handle = self.timer.new_timeout(delay, move |_| ran.lock().unwrap().push(id)).unwrap();
        let deadline = self.began + (handle.deadline() - self.epoch).as_nanos();
        assert_eq!(deadline, up(self.now() + delay.as_nanos()));
        self.waiting.push((id, deadline));
        handle
    }

    /// Moves time to `until` and returns a description of any fault.
    fn advance_to(&mut self, until: u128) -> Result<(), String> {
        let moved = self.driver.advance(nanos(until.saturating_sub(self.now())));
        let mut due: Vec<_> = self.waiting.extract_if(.., |(_, deadline)| *deadline <= until).collect();
        due.sort_unstable_by_key(|(id, deadline)| (*deadline, *id));
        let ran = std::mem::take(&mut *self.ran.lock().unwrap());
        let deadline = |id: &usize| due.iter().find(|due| due.0 == *id).map(|due| due.1);
        let order: Vec<_> = ran.iter().map(deadline).collect();
        let expected: Vec<_> = due.iter().map(|due| Some(due.1)).collect();
        if order == expected && moved == due.len() {
            return Ok(());
        }
        Err(format!("by {until} the tasks {ran:?} ran with the deadlines {order:?}, but {due:?} were due"))
    }

    /// Moves from one expiry to the next until nothing waits.
    fn run_dry(&mut self) -> Result<(), String> {
        while let Some(earliest) = self.waiting.iter().map(|waiting| waiting.1).min() {
            let next = self.driver.next_expiry().map(|next| self.now() + next.as_nanos());
            if next != Some(earliest) {
                return Err(format!("next expiry {next:?}, but {earliest} is the earliest"));
            }
            self.advance_to(earliest)?;
        }
        assert_eq!((self.driver.next_expiry(), self.timer.pending_timeouts()), (None, 0));
        Ok(())
    }
}

/// Returns every uptime just below 2^k of a unit.
fn uptimes_below_powers() -> impl Iterator<Item = Duration> {
    UNITS.into_iter().flat_map(|unit| {
        let within = (0..=TOP).filter(move |k| u128::from(unit) << k < END_OF_TIME / 2);
        within.map(move |k| nanos(u128::from(unit) << k).saturating_sub(Duration::from_nanos(k.into())))
    })
}

fn sweep(wheels: &[WheelKind], check: impl Fn(WheelKind, Duration) -> Result<(), String>) {
    for wheel in wheels {
        for uptime in uptimes_below_powers() {
            if let Err(fault) = check(*wheel, uptime) {
                panic!("{wheel:?} at an uptime of {uptime:?}: {fault}");
            }
        }
    }
}

/// Returns delays at each of the 64 slots of the level that `uptime` ends, and at other whole
/// rotations.
fn rotations(uptime: Duration) -> impl Iterator<Item = u128> {
    let level = uptime.as_nanos().max(1).ilog2().div_ceil(6).max(1);
    let slot = 1u128 << (6 * (level - 1));
    let residues = (0..64).map(move |residue| 64 * slot + residue * slot);
    let whole =
        (1..=10).flat_map(|level| [-1, 0, 1].map(|beside| (1u128 << (6 * level)).saturating_add_signed(beside)));
    residues.chain(whole).filter(move |far| far + uptime.as_nanos() < END_OF_TIME / 2)
}

// Guards against tokio-rs/tokio#8334 and glommio/glommio#44, in which an entry a rotation away was
// in the current slot and hid nearer ones.
#[test]
fn near_timeouts_run_before_those_a_rotation_away() {
    sweep(&WHEELS, |wheel, uptime| {
        let mut aged = Aged::new(wheel, uptime);
        for far in rotations(uptime) {
            drop(aged.schedule(nanos(far)));
        }
        for near in 1..=70 {
            drop(aged.schedule(nanos(near)));
        }
        aged.advance_to(aged.now() + 35)?;
        aged.run_dry()
    });
}

// Guards against tokio-rs/tokio#849, in which wake-ups were lost after a reset to an earlier
// deadline and after a removal.
#[test]
fn a_timeout_moved_near_from_a_rotation_away_runs() {
    sweep(&[WHEELS[0], WHEELS[3], WHEELS[4]], |wheel, uptime| {
        let mut aged = Aged::new(wheel, uptime);
        let far: Vec<_> = rotations(uptime).collect();
        let handles: Vec<_> = far.iter().map(|far| aged.schedule(nanos(*far))).collect();
        for (at, handle) in handles.iter().enumerate() {
            match at % 3 {
                0 => {
                    assert!(handle.reset(nanos(at as u128 + 1)));
                    aged.waiting[at].1 = up(aged.now() + at as u128 + 1);
                }
                1 => {
                    assert!(handle.cancel());
                    aged.waiting[at].1 = u128::MAX;
                }
                _ => {}
            }
        }
        aged.waiting.retain(|waiting| waiting.1 != u128::MAX);
        // One jump shows that the removed timeout leaves no trace.
        let last = aged.waiting.iter().map(|waiting| waiting.1).max();
        aged.advance_to(last.unwrap_or_default())?;
        aged.run_dry()
    });
}

// Guards against twitter/rpc-perf#180 and netty/netty#7760, in which far timeouts wrapped, ran
// early or got lost.
#[test]
fn a_lone_timeout_runs_in_time_from_every_uptime() {
    sweep(&[WHEELS[0], WHEELS[4]], |wheel, uptime| {
        for k in 0..=68 {
            let mut aged = Aged::new(wheel, uptime);
            drop(aged.schedule(nanos((1 << k) - k % 2)));
            let Some(&(_, deadline)) = aged.waiting.first() else { continue };
            if deadline == NEVER {
                assert_eq!(
                    (aged.driver.advance(Duration::MAX), aged.now()),
                    (0, END_OF_TIME),
                    "a timeout that never comes ran"
                );
                continue;
            }
            aged.advance_to(deadline - 1)?;
            aged.run_dry()?;
        }
        Ok(())
    });
}
