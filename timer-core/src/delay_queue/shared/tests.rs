//! The line of followers.

use super::*;
use std::sync::mpsc::channel;
use std::thread;

// The consumers that meet in a collection share its steps.
#[test]
fn a_crowd_that_is_collected_leaves_the_lock_to_others() {
    const ITEMS: u32 = 20_000;
    let queue = SharedDelayQueue::new(&Timer::new());
    let patience = Instant::now() + Duration::from_secs(60);
    let mut was_seen = false;
    while !was_seen {
        assert!(Instant::now() < patience, "no thread had the lock during a collection");
        let deadline = Instant::now();
        (0..ITEMS).for_each(|item| _ = queue.insert_at(item, deadline));
        let consumers = [0, 1].map(|_| {
            let queue = queue.clone();
            thread::spawn(move || queue.try_take().map(Expired::into_inner))
        });
        while !consumers.iter().all(thread::JoinHandle::is_finished) {
            was_seen |= queue.shared.state.lock().items.is_collecting();
        }
        let mut taken = consumers.map(|consumer| consumer.join().unwrap());
        taken.sort_unstable();
        assert_eq!(taken, [Some(0), Some(1)]);
        assert_eq!(queue.try_take().map(Expired::into_inner), Some(2));
        assert_eq!(queue.drain().count(), ITEMS as usize - 3);
    }
}

// A wake-up of a thread that has left would be lost, and with it the item.
#[test]
fn a_follower_whose_limit_passes_leaves_the_line() {
    const FAR: Duration = Duration::from_secs(3600);
    let queue = SharedDelayQueue::new(&Timer::new());
    let await_line = |len| {
        let patience = Instant::now() + Duration::from_secs(60);
        while queue.shared.state.lock().followers.len() != len {
            assert!(Instant::now() < patience, "no line of {len}");
            thread::yield_now();
        }
    };
    let (sender, taken) = channel();
    let consume = |limit: Option<Duration>| {
        let queue = queue.clone();
        let sender = sender.clone();
        let take = move || limit.map_or_else(|| queue.take(), |limit| queue.take_timeout(limit));
        thread::spawn(move || sender.send(take().map(Expired::into_inner)).unwrap())
    };
    consume(None);
    while queue.shared.state.lock().leader.is_none() {
        thread::yield_now();
    }
    // Long enough that the other follower comes while this one waits.
    consume(Some(Duration::from_secs(1)));
    await_line(1);
    consume(None);
    await_line(2);
    assert_eq!(taken.recv_timeout(FAR), Ok(None), "the limit of the first follower");
    for item in [1, 2] {
        queue.insert(item, Duration::ZERO);
        assert_eq!(taken.recv_timeout(Duration::from_secs(60)), Ok(Some(item)));
    }
}
