//! A thousand live at any time, and none for long; and timeouts that are moved and moved again: the
//! heap stands still.

use crate::heap::*;
use crate::support::*;
use std::collections::VecDeque;
use timer_core::{Timeout, WheelKind};

const LIVE: usize = 1_000;

/// Which of the live ones goes next.
#[derive(Clone, Copy, Debug)]
enum Order {
    Oldest,
    Newest,
    Any,
}

impl Order {
    fn take(self, live: &mut VecDeque<Timeout>, random: &mut Rng) -> Timeout {
        match self {
            Order::Oldest => live.pop_front(),
            Order::Newest => live.pop_back(),
            Order::Any => live.swap_remove_back(random.usize(..live.len())),
        }
        .unwrap()
    }
}

/// How much the peak of later traffic may exceed that of earlier traffic, in bytes: where it has
/// not been before, a bucket takes room for four entries of 24 bytes, which counts among the
/// tables; a thousand live need no more arrays than before.
const STILL: usize = NOISE;

/// The live ones lie in two buckets or three, in ever other shares: each array may have room for
/// all while it is being left.
const SHARES: usize = 2 * 24 * LIVE;

/// A thousand live, however many went: an entry of 64 bytes each and 24 in an array that is a
/// quarter full at the least.
const MOST: usize = TABLES + NOISE + LIVE * (64 + 4 * 24) + SHARES;

#[test]
fn a_thousand_that_come_and_go() {
    let _alone = alone();
    let times = if cfg!(debug_assertions) { 30_000 } else { 1_000_000 };
    for wheel in BOTH {
        for order in [Order::Oldest, Order::Newest, Order::Any] {
            let (timer, mut driver) = manual(wheel);
            let mut random = Rng::with_seed(times as u64);
            let mut live = VecDeque::with_capacity(2 * LIVE);
            let mut traffic = |times: usize| {
                let mark = Mark::set();
                for n in 0..times {
                    // The first may stay: where the newest goes first they are the live ones.
                    let delay = if live.len() < LIVE { HOUR } else { 30 * SECOND };
                    live.push_back(schedule(&timer, delay + random.duration(SECOND)));
                    if live.len() > LIVE {
                        assert!(order.take(&mut live, &mut random).cancel());
                    }
                    if n % 20 == 0 {
                        driver.advance(MILLI);
                    }
                }
                mark
            };
            let first = traffic(times);
            let peak = first.peak();
            traffic(times);
            let then = first.peak();
            println!("{LIVE} live, {order:?} first, {wheel:?}: {peak} bytes, {} left", first.grown());
            at_most("  and later", then, peak + STILL + SHARES);
            at_most("  in all", then, MOST);
        }
    }
}

#[test]
fn idle_timeouts_that_are_reset_a_million_times() {
    let _alone = alone();
    for wheel in BOTH {
        idle(wheel);
    }
}

fn idle(wheel: WheelKind) {
    let (timer, mut driver) = manual(wheel);
    let idle = many(&timer, 10, 30 * SECOND, NANO);
    let mut resets = |times: usize| {
        for n in 0..times {
            // Nearly always later, which the wheel learns when the old deadline comes; now and then
            // earlier.
            let delay = if n % 8 == 0 { 20 * SECOND } else { 30 * SECOND };
            assert!(idle.iter().all(|timeout| timeout.reset(delay)));
            assert_eq!(driver.advance(10 * MILLI), 0);
        }
    };
    let times = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    // Once round, so that every bucket on the way has its room.
    resets(times);
    let mark = Mark::set();
    resets(times);
    println!("{wheel:?}: peak {}, left {}", mark.peak(), mark.grown());
    assert_eq!(timer.pending_timeouts(), idle.len());
    at_most("idle, peak", mark.peak(), STILL);
}
