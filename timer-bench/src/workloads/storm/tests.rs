//! Every timeout that a storm has accepted ends exactly once: it runs, it is cancelled, or the stop
//! returns it and the test runs it.

#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use super::book::{Book, CANCELLED, RAN};
use super::callers::{Callers, Plan};
use crate::peers::storming::Storming;
use crate::peers::{Job, Peer, TICK, btree, ours};
use std::time::Duration;

const TIMERS: usize = 20_000;
const LIMIT: Duration = Duration::from_secs(30);

/// Returns the ends of the timeouts of a small storm and the number of unaccounted ones. The
/// callers pause, because the test checks the accounting and not the behavior under overload.
fn ends<P: Storming>() -> (Vec<u8>, Option<u64>) {
    let peer = P::build(TICK);
    let book = Book::leak(Duration::from_secs(60), TIMERS);
    let plan = Plan { threads: 3, cancelled: 90, pause: Duration::from_millis(1), each_has_a_place: TIMERS };
    let callers = Callers::ready(&peer, book, &plan);
    callers.go();
    assert!(callers.have_ended_within(LIMIT), "callers end when all places are taken");
    P::run_back(peer.stop_beside_callers());
    let unaccounted = callers.unaccounted(LIMIT);
    assert!(callers.calls().count() > 0 && callers.cpu_of_calls().count() > 0);
    (book.ends(), unaccounted)
}

fn is_one(end: &u8) -> bool {
    [RAN, CANCELLED].contains(end)
}

#[test]
fn every_accepted_timer_of_ours_ends_exactly_once() {
    for (ends, unaccounted) in [ends::<ours::Hierarchical>(), ends::<ours::Hashed>()] {
        assert_eq!(unaccounted, Some(0));
        assert_eq!(ends.iter().find(|end| !is_one(end)), None);
        let cancelled = ends.iter().filter(|end| **end == CANCELLED).count();
        assert!(cancelled > TIMERS / 2 && cancelled <= TIMERS * 9 / 10 + 3, "{cancelled}");
    }
}

#[test]
fn every_accepted_timer_of_the_tree_ends_exactly_once() {
    let (ends, unaccounted) = ends::<btree::BTree>();
    assert_eq!((unaccounted, ends.iter().all(is_one)), (Some(0), true));
}

/// A timer that loses one timeout in a hundred without reporting it.
#[derive(Clone)]
struct Lossy(ours::Hierarchical, u32);

impl Peer for Lossy {
    const NAME: &'static str = "lossy";
    type Handle = Option<<ours::Hierarchical as Peer>::Handle>;
    type Work<J: Job> = <ours::Hierarchical as Peer>::Work<J>;

    fn build(tick: Duration) -> Self {
        Self(Peer::build(tick), 0)
    }

    fn work<J: Job>(job: J) -> Self::Work<J> {
        ours::Hierarchical::work(job)
    }

    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Self::Handle {
        self.1 += 1;
        (!self.1.is_multiple_of(100)).then(|| self.0.schedule(delay, work))
    }

    fn cancel(&mut self, _: Self::Handle) {}

    fn reset(&mut self, _: &mut Self::Handle, _: Duration) {}

    fn pending(&self) -> Option<usize> {
        None
    }
}

impl Storming for Lossy {
    type Back = <ours::Hierarchical as Storming>::Back;

    fn try_schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Option<Self::Handle> {
        Some(self.schedule(delay, work))
    }

    fn try_cancel(&mut self, handle: Self::Handle) -> Option<bool> {
        handle.map_or(Some(false), |handle| self.0.try_cancel(handle))
    }

    fn stop_beside_callers(&self) -> Self::Back {
        self.0.stop_beside_callers()
    }

    fn run_back(back: Self::Back) {
        ours::Hierarchical::run_back(back);
    }
}

#[test]
fn a_lossy_timer_has_unaccounted_timeouts() {
    let peer = Lossy::build(TICK);
    let book = Book::leak(Duration::from_secs(60), 2_000);
    let callers = Callers::ready(
        &peer,
        book,
        &Plan { threads: 2, cancelled: 90, pause: Duration::ZERO, each_has_a_place: 2_000 },
    );
    callers.go();
    assert!(callers.have_ended_within(LIMIT));
    Lossy::run_back(peer.stop_beside_callers());
    assert!(callers.unaccounted(Duration::from_millis(50)).unwrap() >= 10);
    assert!(book.ends().contains(&0));
}
