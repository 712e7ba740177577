use super::state::{Cancel, Due};
use super::*;
use crate::deadline::{Deadline, END_OF_TIME};
use crate::sync::OnceLock;
use std::sync::Arc;

const SHARD: ShardId = ShardId { index: 3, generation: 7 };

fn entry(of: &Arc<()>) -> (Timeout, Timeout) {
    let captured = of.clone();
    Timeout::new(SHARD, Deadline::up(5), Closure(move |_: &Timeout| drop(captured)))
}

#[test]
fn the_last_of_two_references_frees_the_entry() {
    let task = Arc::new(());
    let (user, wheel) = entry(&task);
    assert!(user == wheel && user.shard_id() == SHARD && !user.is_last());
    let Due::Won(owned) = user.expire(5) else { panic!("due") };
    assert!(owned.run().is_none());
    assert_eq!(Arc::strong_count(&task), 1);
    drop(wheel);
    assert!(user.is_last());
}

// Guards against moka-rs/moka#524, in which a cancelled entry was freed while the wheel still had
// it.
#[test]
fn the_wheels_reference_is_handed_over() {
    let task = Arc::new(());
    let (user, wheel) = entry(&task);
    let other = user.clone();
    let (cancel, owned) = user.decide_cancel();
    assert_eq!(cancel, Cancel::WasWaiting);
    std::mem::forget(wheel);
    user.take_over();
    owned.unwrap().cancelled();
    assert_eq!(Arc::strong_count(&task), 1);
    assert!(!user.is_last());
    drop(user);
    assert!(other.is_last());
}

// The thread of the user is preempted after it has loaded `refs`.
#[test]
fn a_reference_published_by_a_run_is_alive_after_the_users_is_dropped() {
    let task = |_: &Timeout| {};
    let (user, wheel) = Timeout::new(SHARD, Deadline::up(5), Periodic { task, period: Period::Rate(10) });
    // ORDERING: as in `is_last`, the first half of a drop.
    let refs = user.header().refs.load(Ordering::Acquire);
    // A run publishes a reference, and another thread cancels by it.
    let published = wheel.clone();
    let (cancel, right) = published.decide_cancel();
    assert_eq!(cancel, Cancel::WasWaiting);
    std::mem::forget(wheel);
    published.take_over();
    assert_ne!(user.remaining_refs(refs), 1, "the other thread still uses the entry");
    drop(user);
    right.unwrap().cancelled();
    assert!(published.is_last());
}

#[test]
fn a_job_comes_back_only_with_its_own_type() {
    // The static keeps the capture of the leaked job reachable, so that no checker reports it.
    static TASK: OnceLock<Arc<()>> = OnceLock::new();
    let (user, wheel) = entry(TASK.get_or_init(|| Arc::new(())));
    let (_, owned) = user.decide_cancel();
    assert!(owned.unwrap().into_job::<Hooked<Never>>().is_none(), "a job of another type is leaked");
    drop((user, wheel));
    let period = Period::Delay(1);
    let (user, _wheel) = Timeout::new(SHARD, Deadline::NEVER, Periodic { task: |_: &Timeout| {}, period });
    let Due::Later(_) = user.expire(END_OF_TIME) else { panic!("never due") };
}

struct Never;

impl TimerTask for Never {
    fn run(self, _: &Timeout) {}
}

#[test]
fn a_periodic_job_comes_back_until_it_is_cancelled() {
    let captured = Arc::new(());
    let inside = captured.clone();
    let task = move |_: &Timeout| assert_eq!(Arc::strong_count(&inside), 2);
    let (user, _wheel) = Timeout::new(SHARD, Deadline::up(5), Periodic { task, period: Period::Rate(10) });
    for due in [5, 15] {
        let Due::Won(owned) = user.expire(due) else { panic!("due") };
        let (owned, _) = owned.run().unwrap();
        assert_eq!(owned.rearm(Deadline::up(due + 10)).ok(), Some(Deadline::up(due + 10)));
    }
    let Due::Won(owned) = user.expire(25) else { panic!("due") };
    let (cancel, nothing) = user.decide_cancel();
    assert!(cancel == Cancel::WasRunning && nothing.is_none());
    let (owned, _) = owned.run().unwrap();
    owned.rearm(Deadline::up(35)).err().unwrap().cancelled();
    assert_eq!(Arc::strong_count(&captured), 1);
}

mod futures {
    use crate::Timer;
    use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    static ASKED: AtomicUsize = AtomicUsize::new(0);

    /// A waker that cannot be cloned.
    fn bad() -> Waker {
        fn ask(_: *const ()) {
            ASKED.fetch_add(1, Ordering::SeqCst);
        }
        static TABLE: RawWakerVTable = RawWakerVTable::new(|_| panic!("a bad clone"), ask, ask, |_| {});
        // SAFETY: the functions touch nothing but a static, from any thread.
        unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &TABLE)) }
    }

    #[test]
    fn a_panicking_clone_asks_for_another_poll() {
        let (timer, mut driver) = Timer::builder().build_manual().unwrap();
        let mut sleep = pin!(timer.sleep(Duration::from_secs(1)));
        let waker = bad();
        for asked in 1..=2 {
            assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
            assert_eq!((ASKED.load(Ordering::SeqCst), timer.stats().task_panics), (asked, asked as u64));
        }
        assert_eq!(timer.stats().scheduled, 0);
        assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        assert_eq!(sleep.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert_eq!((ASKED.load(Ordering::SeqCst), timer.stats().task_panics), (3, 3), "the former one stays");
        assert_eq!(driver.advance(Duration::from_secs(1)), 1);
        assert_eq!(sleep.poll(&mut Context::from_waker(&waker)), Poll::Ready(()));
    }
}
