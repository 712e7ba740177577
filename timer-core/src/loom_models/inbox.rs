//! Models of requests, which callers leave when the lock of a shard is held. The inbox has room for
//! one request.

use super::{assert_sound, beside, check, engine, new, set_time, turn, turn_at, turn_out};
use crate::deadline::{Deadline, NO_TICK};
use crate::engine::Engine;
use crate::entry::Timeout;
use crate::shard::{Slots, VisitOutcome, VisitStep};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::worker;
use loom::sync::{Condvar, Mutex as LoomMutex};
use loom::thread;

/// Two callers meet at one shard. If the lock holder overlooks a request, the worker serves it in
/// time.
fn two_callers() {
    let engine = engine();
    let other = beside(&engine, move |engine| new(&engine, 5).1);
    let mine = new(&engine, 7).1;
    let theirs = other.join().unwrap();
    assert!(engine.next() <= 5, "stranded");
    let mut dispatcher = engine.dispatcher();
    assert_eq!(turn_at(&mut dispatcher, 5), 1);
    assert_eq!(turn_at(&mut dispatcher, 10), 1);
    assert_eq!((mine.ran(), theirs.ran(), engine.next(), engine.stats().scheduled), (1, 1, NO_TICK, 2));
    assert_sound(&engine);
}

model!(check, two_callers,
    a_request_does_not_lower_due ["stranded"] Skip "shard/inbox.rs" "self.due.store(due",
);

/// One caller links its entry, one leaves a request, and one waits at the gate.
fn three_callers_and_room_for_one() {
    let engine = engine();
    let others = [5, 6].map(|nanos| beside(&engine, move |engine| new(&engine, nanos).1));
    let mine = new(&engine, 7).1;
    let theirs = others.map(|other| other.join().unwrap());
    assert!(engine.next() <= 5, "stranded");
    let mut dispatcher = engine.dispatcher();
    let _ = turn_out(&mut dispatcher);
    assert_eq!((mine.ran(), theirs[0].ran(), theirs[1].ran()), (1, 1, 1));
    assert_sound(&engine);
}

model!(check_heavy, three_callers_and_room_for_one,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// Two callers push requests during a turn. `next` or `due` announces every request that the turn
/// does not serve.
fn a_turn_and_two_callers() {
    let engine = engine();
    set_time(&engine, 10);
    let mut dispatcher = engine.dispatcher();
    let first = new(&engine, 5).1;
    let other = beside(&engine, move |engine| new(&engine, 5).1);
    let worker = thread::spawn(move || {
        let _ = turn(&mut dispatcher);
        dispatcher
    });
    let mine = new(&engine, 5).1;
    let theirs = other.join().unwrap();
    let mut dispatcher = worker.join().unwrap();
    let _ = turn_out(&mut dispatcher);
    assert_eq!((first.ran(), mine.ran(), theirs.ran()), (1, 1, 1), "`due` was lost");
    assert_sound(&engine);
}

model!(check_heavy, a_turn_and_two_callers,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// A copy of the protocol that raises `due` after it has unlocked the queue.
#[test]
#[should_panic(expected = "`due` was lost")]
fn negative_due_raised_with_the_queue_unlocked() {
    check(|| {
        let queue = Arc::new(Mutex::new(1));
        let due = Arc::new(AtomicU64::new(5));
        let caller = {
            let queue = queue.clone();
            let due = due.clone();
            thread::spawn(move || {
                let mut requests = queue.lock();
                *requests += 1;
                due.store(5, Ordering::Relaxed);
            })
        };
        let taken = std::mem::take(&mut *queue.lock());
        assert!(taken >= 1);
        due.store(NO_TICK, Ordering::Relaxed);
        caller.join().unwrap();
        assert!(*queue.lock() == 0 || due.load(Ordering::Relaxed) == 5, "`due` was lost");
    });
}

/// The worker has reserved the lock of a shard, and the holder rings the worker.
fn a_reserved_shard() {
    let engine = engine();
    let (timeout, _) = new(&engine, 5);
    let other = beside(&engine, move |engine| drop(new(&engine, 50)));
    let shard = engine.shards()[0];
    let mut slots = Slots::default();
    if shard.visit(VisitStep::TryFirst, 5, &mut slots, &engine.context) == VisitOutcome::Held {
        let _ = shard.visit(VisitStep::First, 5, &mut slots, &engine.context);
    }
    assert_eq!(slots.take_all().map(|(_, linked)| drop(linked.into_timeout())).count(), 1);
    other.join().unwrap();
    assert!(timeout.cancel());
}

model!(check_at 3, a_reserved_shard,
    the_worker_that_reserved_is_not_rung ["deadlock"] Skip "sync/lock.rs" "notify_all()",
);

/// A request arrives while the lock holder serves another one.
fn a_second_request_while_the_first_is_read() {
    let engine = engine();
    let other = beside(&engine, move |engine| [new(&engine, 6).1, new(&engine, 5).1]);
    let mine = new(&engine, 7).1;
    let theirs = other.join().unwrap();
    assert!(engine.next() <= 5, "stranded");
    let _ = turn_out(&mut engine.dispatcher());
    assert_eq!((mine.ran(), theirs[0].ran(), theirs[1].ran()), (1, 1, 1));
    assert_sound(&engine);
}

model!(check_at 3, a_second_request_while_the_first_is_read,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);

/// An event for which a model waits.
#[derive(Default)]
struct Bell(LoomMutex<u32>, Condvar);

impl Bell {
    fn ring(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_one();
    }

    fn wait_for(&self, rings: u32) {
        let mut rung = self.0.lock().unwrap();
        while *rung < rings {
            rung = self.1.wait(rung).unwrap();
        }
    }
}

/// Schedules a timeout that is due.
fn schedule_due(engine: &Arc<Engine>, bell: &Arc<Bell>) {
    let bell = bell.clone();
    let due = Deadline::down(engine.context.now());
    let scheduled = engine.schedule(crate::entry::Closure(move |_: &Timeout| bell.ring()), |_| due);
    drop(scheduled.unwrap_or_else(|_| panic!("refused")));
}

/// Runs the worker beside `callers` callers. A lost request or a lost wake-up is a deadlock.
fn the_worker_and(callers: u32) {
    let engine = engine();
    let bell = Arc::new(Bell::default());
    let worker = beside(&engine, move |engine| worker::run((*engine).clone()));
    let others: Vec<_> = (1..callers)
        .map(|_| {
            let engine = engine.clone();
            let bell = bell.clone();
            thread::spawn(move || schedule_due(&engine, &bell))
        })
        .collect();
    schedule_due(&engine, &bell);
    others.into_iter().for_each(|other| other.join().unwrap());
    bell.wait_for(callers);
    drop(engine.stop());
    worker.join().unwrap();
    assert_eq!((engine.pending(), engine.stats().expired), (0, callers.into()));
    assert_sound(&engine);
}

fn the_worker_and_a_caller() {
    the_worker_and(1);
}

model!(check, the_worker_and_a_caller,
    the_worker_is_not_woken ["deadlock"] Skip "alarm.rs" "|until| Some(sooner(until))",
);

fn the_worker_and_two_callers() {
    the_worker_and(2);
}

model!(check_heaviest, the_worker_and_two_callers,
    locking_in_two_steps Split "sync/lock.rs" "self.word.compare_exchange(old, new",
);
