//! A thousand live timeouts of which none lives long, and timeouts that are moved again and again.
//! The heap does not grow.

use crate::heap::*;
use crate::support::*;
use std::collections::VecDeque;
use timer_core::{Timeout, WheelKind};

const LIVE: usize = 1_000;

/// The timeout among the live ones that is cancelled next.
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

/// Bytes by which the peak of later traffic may exceed that of earlier traffic. A bucket used for
/// the first time takes room for four entries of 24 bytes, which count as tables. A thousand live
/// timeouts need no more arrays than before.
const MAX_GROWTH: usize = NOISE;

/// Bytes for the live timeouts' changing shares of two or three buckets. An array that is being
/// left may have room for all of them.
const SHARES: usize = 2 * 24 * LIVE;

/// Bytes for a thousand live timeouts. Each has an entry of at most 64 bytes, and 24 bytes in an
/// array that is at least a quarter full. A wheel of a thousand timeouts has far smaller tables
/// than [`TABLES`], which leaves room for captures of 256 bytes.
const MAX_HEAP: usize = TABLES + NOISE + LIVE * (64 + 4 * 24) + SHARES;

#[test]
fn a_thousand_live_timeouts_keep_the_heap_constant() {
    let _alone = exclusive();
    let times = if cfg!(debug_assertions) { 10_000 } else { 1_000_000 };
    for wheel in DEFAULT_WHEELS {
        for order in [Order::Oldest, Order::Newest, Order::Any] {
            let (timer, mut driver) = manual(wheel);
            let mut random = Rng::with_seed(times as u64);
            let mut live = VecDeque::with_capacity(2 * LIVE);
            let mut traffic = |times: usize| {
                let mark = Mark::set();
                for n in 0..times {
                    // The first timeouts stay if the newest is cancelled first.
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
            assert_at_most("  and later", then, peak + MAX_GROWTH + SHARES);
            assert_at_most("  in all", then, MAX_HEAP);
        }
    }
}

#[test]
fn idle_timeouts_keep_the_heap_constant() {
    let _alone = exclusive();
    for wheel in DEFAULT_WHEELS {
        idle(wheel);
    }
}

fn idle(wheel: WheelKind) {
    let (timer, mut driver) = manual(wheel);
    let idle = schedule_many(&timer, 10, 30 * SECOND, NANO);
    let mut resets = |times: usize| {
        for n in 0..times {
            // Most resets are to later, which the wheel notices at the old deadline. Some are to
            // earlier.
            let delay = if n % 8 == 0 { 20 * SECOND } else { 30 * SECOND };
            assert!(idle.iter().all(|timeout| timeout.reset(delay)));
            assert_eq!(driver.advance(10 * MILLI), 0);
        }
    };
    let times = if cfg!(debug_assertions) { 5_000 } else { 1_000_000 };
    // One round gives every bucket on the way its room.
    resets(times);
    let mark = Mark::set();
    resets(times);
    println!("{wheel:?}: peak {}, left {}", mark.peak(), mark.grown());
    assert_eq!(timer.pending_timeouts(), idle.len());
    assert_at_most("idle, peak", mark.peak(), MAX_GROWTH);
}
