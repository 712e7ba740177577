//! Single timeouts with a sleeping worker in between. Each wake-up counts, because no other one
//! comes soon.
//!
//! Another thread keeps the shards busy without making a timeout due. Callers and the worker
//! therefore find shards locked, and callers have to leave requests.

use crate::counts::Counts;
use crate::ledger::MAX_WAIT;
use crate::progress::announce;
use crate::support::random::{Draw, Rng, part};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use timer_core::{Driver, Timeout, Timer, WheelKind};
use timer_executor::Task;

const FAR: Duration = Duration::from_secs(3_600);

/// Lets one thread and then three threads wait `amount` times for a timeout that is due before all
/// others.
///
/// A single thread gets no help from the wake-ups of others. Three threads meet at the shards. If
/// `loses` is set, the executor gives every task to a thread that drops it, so each timeout needs
/// two wake-ups.
pub(crate) fn wake_ups(seed: u64, amount: usize, wheel: WheelKind, driven: bool, loses: bool) -> Counts {
    let mut random = Rng::with_seed(seed);
    let mut counts = wait(&mut random, 1, amount, wheel, driven, loses);
    counts += wait(&mut random, 3, amount, wheel, driven, loses);
    Counts { rounds: 1, ..counts }
}

fn wait(random: &mut Rng, waiters: usize, amount: usize, wheel: WheelKind, driven: bool, loses: bool) -> Counts {
    let tick = Duration::from_micros(random.pick(&[1, 20, 200]));
    announce(format!("wake-ups: {waiters} waiters, {wheel:?}, tick {tick:?}, driven {driven}, loses {loses}"));
    let mut builder = Timer::builder().wheel(wheel).tick_duration(tick);
    if loses {
        let (lose, lost) = channel::<Task>();
        std::thread::spawn(move || lost.into_iter().for_each(drop));
        builder = builder.executor(move |task| lose.send(task).unwrap_or_default());
    }
    if !driven {
        let timer = builder.build().unwrap();
        threads(&timer, random, waiters, amount);
        assert_eq!(timer.stop().unwrap().len(), waiters);
        return Counts::from_stats(&timer.stats(), waiters as u64);
    }
    let (timer, driver) = builder.build_driven().unwrap();
    let (end, ended) = channel();
    let looping = std::thread::spawn(move || turns(driver, &ended, waiters));
    threads(&timer, random, waiters, amount);
    drop(end);
    looping.thread().unpark();
    looping.join().unwrap();
    assert_eq!(timer.pending_timeouts(), 0);
    Counts::from_stats(&timer.stats(), waiters as u64)
}

fn turns(mut driver: Driver, ended: &Receiver<()>, waiters: usize) {
    let me = std::thread::current();
    driver.set_waker(move || me.unpark());
    while ended.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
        match driver.turn().next {
            None => std::thread::park(),
            Some(next) => std::thread::park_timeout(next.saturating_duration_since(Instant::now())),
        }
    }
    assert_eq!(driver.stop().len(), waiters);
}

fn threads(timer: &Timer, random: &mut Rng, waiters: usize, amount: usize) {
    let (over, (show, shown)) = (AtomicBool::new(false), channel::<Timeout>());
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..waiters)
            .map(|n| {
                let (mut random, show) = (part(random.u64(..), n), show.clone());
                scope.spawn(move || {
                    // A far timeout is always pending in the shard of this thread.
                    show.send(timer.new_timeout(FAR, |_| ()).unwrap()).unwrap();
                    drop(show);
                    for _ in 0..amount {
                        wait_once(timer, &mut random);
                    }
                })
            })
            .collect();
        drop(show);
        let busy = scope.spawn(|| keep_busy(&shown.into_iter().collect::<Vec<_>>(), &over));
        let waited: Vec<_> = waiters.into_iter().map(|waiter| waiter.join()).collect();
        over.store(true, Ordering::Release);
        busy.join().unwrap();
        waited.into_iter().for_each(|waited| waited.unwrap());
    });
}

/// Moves far timeouts away and back. The moves back use their shards.
fn keep_busy(far: &[Timeout], over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        for timeout in far {
            assert!(timeout.reset(2 * FAR) && timeout.reset(FAR));
        }
    }
}

fn wait_once(timer: &Timer, random: &mut Rng) {
    let (sender, receiver) = channel();
    let delay = if random.one_in(3) { Duration::ZERO } else { random.micros(300) };
    let then = Instant::now() + delay;
    let tell = |sender: &Sender<Instant>| {
        let sender = sender.clone();
        move |_: &Timeout| sender.send(Instant::now()).unwrap_or_default()
    };
    let mut expected = 1;
    match random.usize(..5) {
        0 => drop(timer.new_timeout(delay, tell(&sender)).unwrap()),
        1 => drop(timer.new_timeout_at(then, tell(&sender)).unwrap()),
        2 => assert!(timer.new_timeout(FAR, tell(&sender)).unwrap().reset(delay)),
        3 => {
            // Each is due before the one scheduled before it.
            expected = 3;
            for n in (0..3).rev() {
                drop(timer.new_timeout(delay + n * Duration::from_micros(400), tell(&sender)).unwrap());
            }
        }
        _ => {
            let periodic = timer.schedule_at_fixed_rate(delay, FAR, tell(&sender)).unwrap();
            // The first run is soon, and the reset makes the second one soon.
            let first = receiver.recv_timeout(MAX_WAIT).expect("the first run");
            let moved = Instant::now();
            assert!(first >= then && periodic.reset(delay));
            let second = receiver.recv_timeout(MAX_WAIT).expect("the second run");
            assert!(second >= moved + delay && periodic.cancel());
            expected = 0;
        }
    }
    for _ in 0..expected {
        assert!(receiver.recv_timeout(MAX_WAIT).expect("a wake-up was missed") >= then);
    }
    (0..random.usize(..200)).for_each(|_| std::hint::spin_loop());
}
