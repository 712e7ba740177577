//! Callers beside lock holders that the scheduler preempts for long. Two threads of nice 19
//! schedule and cancel at full speed, a third thread burns the rest of the only CPU, and one caller
//! of normal priority makes a pair each millisecond.

use super::super::Stop;
use super::super::histogram::Histogram;
use super::super::out::Out;
use super::book::{Book, Mark};
use super::{calls, lags};
use crate::peers::TICK;
use crate::peers::storming::Storming;
use crate::scheduling::lower_priority;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HOLDERS: usize = 2;
const FAR: Duration = Duration::from_secs(1);
const DELAY: Duration = Duration::from_millis(5);
const PERIOD: Duration = Duration::from_millis(1);

/// The state that the threads share.
#[derive(Default)]
struct Common {
    over: AtomicBool,
    at_work: AtomicUsize,
    calls: Histogram,
}

impl Common {
    fn is_over(&self) -> bool {
        // ORDERING: Relaxed, because the flag guards no other data.
        self.over.load(Ordering::Relaxed)
    }

    /// Starts a thread. Nothing joins it, so that a thread that hangs ends with the process.
    fn start(self: &Arc<Self>, body: impl FnOnce(&Self) + Send + 'static) {
        // ORDERING: Relaxed, because spawning the thread orders the increment before its decrement.
        self.at_work.fetch_add(1, Ordering::Relaxed);
        let common = self.clone();
        thread::spawn(move || {
            body(&common);
            // ORDERING: Release, pairs with the Acquire in `have_ended_within`.
            common.at_work.fetch_sub(1, Ordering::Release);
        });
    }

    fn have_ended_within(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        // ORDERING: Acquire, pairs with the Release at the end of each thread.
        while self.at_work.load(Ordering::Acquire) > 0 {
            if begin.elapsed() > limit {
                return false;
            }
            thread::sleep(PERIOD);
        }
        true
    }
}

pub(super) fn run<P: Storming>(span: Duration, limit: Duration, out: &Out) -> Result<(), Stop> {
    const PARAMS: &str = "P=1,nice=19";
    let (peer, common) = (P::build(TICK), Arc::<Common>::default());
    let book = Book::leak(span + limit, 0);
    for _ in 0..HOLDERS {
        let peer = peer.clone();
        common.start(move |common| use_at_full_speed(peer, book, common));
    }
    common.start(|common| {
        while !common.is_over() {
            spin_loop();
        }
    });
    let calling = peer.clone();
    common.start(move |common| call(calling, book, span, common));
    thread::sleep(span);
    let begin = Instant::now();
    // The caller ends the other threads when it is done, unless it hangs.
    while !common.is_over() && begin.elapsed() < limit {
        thread::sleep(PERIOD);
    }
    // ORDERING: Relaxed, because the flag guards no other data.
    common.over.store(true, Ordering::Relaxed);
    calls(&Histogram::sum([&common.calls]), "", PARAMS, out);
    if P::FIRES {
        lags(&book.lags(), PARAMS, out);
    }
    if !common.have_ended_within(limit) {
        out.unavailable(PARAMS, "us-max", &format!("a call did not return within {limit:?}"));
        std::mem::forget(peer);
        return Err(Stop::Endless);
    }
    peer.stop();
    Ok(())
}

fn use_at_full_speed<P: Storming>(peer: P, book: &'static Book, common: &Common) {
    // If the system refuses the lower priority, the figures are better than they should be, never
    // worse.
    lower_priority();
    let context = peer.clone();
    context.on_thread(|| {
        let mut peer = peer;
        let work = P::work(Mark { book, due: 0, place: u32::MAX, is_kept: false, is_timed: false });
        while !common.is_over() {
            let handle = peer.schedule::<Mark>(FAR, &work);
            peer.cancel(handle);
        }
    });
}

fn call<P: Storming>(peer: P, book: &'static Book, span: Duration, common: &Common) {
    let context = peer.clone();
    context.on_thread(|| {
        let (mut peer, begin) = (peer, Instant::now());
        // A peer may cancel a timeout when its handle is dropped.
        let mut held = Vec::with_capacity((span.as_millis() / 10) as usize + 1);
        for pair in 0_u64.. {
            if begin.elapsed() >= span || common.is_over() {
                break;
            }
            let (start, is_kept) = (book.now(), pair % 10 == 0);
            let due = start + DELAY.as_nanos() as u64;
            let work = P::work(Mark { book, due, place: u32::MAX, is_kept, is_timed: is_kept });
            let start = book.now();
            let handle = peer.schedule::<Mark>(DELAY, &work);
            common.calls.add_alone(book.now() - start);
            if is_kept {
                held.push(handle);
            } else {
                let start = book.now();
                peer.cancel(handle);
                common.calls.add_alone(book.now() - start);
            }
            thread::sleep(PERIOD);
        }
        // ORDERING: Relaxed, because the flag guards no other data.
        common.over.store(true, Ordering::Relaxed);
    });
}
