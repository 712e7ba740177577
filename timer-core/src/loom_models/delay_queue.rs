//! Models of the leader and the followers of a shared delay queue. All waits are without a limit,
//! so an item that no consumer takes is a deadlock.

use super::engine;
use crate::delay_queue::SharedDelayQueue;
use crate::handle::Timer;
use crate::sync::has_failed;
use loom::thread;
use std::time::Duration;

/// A queue in a model. It is leaked if the model panics, because its end would call the checker.
struct Queue(Option<SharedDelayQueue<u32>>);

impl Queue {
    fn new() -> Self {
        Self(Some(SharedDelayQueue::new(&Timer { engine: (*engine()).clone() })))
    }

    fn get(&self) -> &SharedDelayQueue<u32> {
        self.0.as_ref().expect("there until dropped")
    }

    fn consumer(&self) -> thread::JoinHandle<Option<u32>> {
        let queue = Queue(self.0.clone());
        thread::spawn(move || queue.get().take().map(|item| item.into_inner()))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if has_failed() {
            std::mem::forget(self.0.take());
        }
    }
}

fn two_items_for_two_consumers() {
    let queue = Queue::new();
    let consumers = [queue.consumer(), queue.consumer()];
    queue.get().insert(1, Duration::ZERO);
    queue.get().insert(2, Duration::ZERO);
    let mut taken = consumers.map(|consumer| consumer.join().unwrap().expect("not closed"));
    taken.sort_unstable();
    assert_eq!(taken, [1, 2]);
}

model!(check, two_items_for_two_consumers,
    a_leader_that_names_no_successor ["deadlock"] Skip "delay_queue/shared.rs" "successor.unpark()",
    a_producer_that_does_not_wake_the_leader ["deadlock"] Skip "delay_queue/shared.rs" "leader.unpark()",
);

fn close_with_waiting_consumers() {
    let queue = Queue::new();
    let consumers = [queue.consumer(), queue.consumer()];
    queue.get().insert(1, Duration::ZERO);
    queue.get().close();
    let taken = consumers.map(|consumer| consumer.join().unwrap());
    assert!(taken.iter().flatten().count() == 1, "a due item is handed out");
}

model!(check, close_with_waiting_consumers,
    a_close_that_wakes_none ["deadlock"] Skip "delay_queue/shared.rs" "parker.unpark()",
);
