//! Tasks that cancel or move timeouts which are due with them.

use crate::support::*;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_core::Timeout;

type Seats = Arc<Mutex<Vec<Timeout>>>;

// Guards against B58, in which siblings that had been taken out to be run could not be cancelled.
#[test]
fn a_task_cancels_timeouts_due_with_it() {
    const ALL: usize = 7;
    for wheel in WHEELS {
        for victims in [vec![1], vec![3], vec![6], vec![1, 2, 3, 4, 5, 6], vec![6, 5, 1], vec![0]] {
            let (timer, mut driver) = manual(wheel);
            let (runs, seats) = (Runs::default(), Seats::default());
            let (inner, others, chosen) = (runs.clone(), seats.clone(), victims.clone());
            let first = accepted(timer.new_timeout(SECOND, move |_| {
                inner.lock().unwrap().push(0);
                for victim in chosen {
                    // A running task cannot cancel itself.
                    assert_eq!(others.lock().unwrap()[victim].cancel(), victim != 0);
                }
            }));
            seats.lock().unwrap().push(first);
            for id in 1..ALL {
                seats.lock().unwrap().push(record(&timer, SECOND, &runs, id as u32));
            }
            driver.advance(SECOND);
            let left = (0..ALL).filter(|id| *id == 0 || !victims.contains(id)).map(|id| id as u32);
            assert_eq!(take_runs(&runs), left.collect::<Vec<_>>(), "{victims:?}, {wheel:?}");
        }
    }
}

// Guards against B58 for moves.
#[test]
fn a_task_moves_timeouts_due_with_it() {
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let (runs, seats) = (Runs::default(), Seats::default());
        let others = seats.clone();
        accepted(timer.new_timeout(SECOND, move |_| {
            for (sibling, id) in others.lock().unwrap().iter().zip(0..) {
                assert!(sibling.reset(id * SECOND));
            }
        }));
        let siblings = (0..4).map(|id| record(&timer, SECOND, &runs, id));
        seats.lock().unwrap().extend(siblings);
        assert_eq!(driver.advance(SECOND), 2);
        assert_eq!(driver.advance(3 * SECOND), 3);
        assert_eq!(take_runs(&runs), [0, 1, 2, 3], "{wheel:?}");
    }
}

// Guards against B58 and B70. A timeout that was taken out is cancelled while another value has its
// place in the wheel.
#[test]
fn a_cancel_spares_the_new_value_in_the_slot() {
    for (wheel, round) in
        WHEELS.into_iter().flat_map(|wheel| [(wheel, Duration::ZERO), (wheel, 64 * NANO), (wheel, HOUR)])
    {
        let (timer, mut driver) = manual(wheel);
        let siblings = Arc::new(Mutex::new(Vec::new()));
        let (inner, all) = (timer.clone(), siblings.clone());
        let first = move |_: &Timeout| {
            (0..8).for_each(|_| drop(accepted(inner.new_timeout(round, |_| {}))));
            assert!(all.lock().unwrap().iter().skip(1).all(Timeout::cancel));
        };
        siblings.lock().unwrap().push(accepted(timer.new_timeout(round, first)));
        for _ in 0..7 {
            siblings.lock().unwrap().push(accepted(timer.new_timeout(round, |_| {})));
        }
        assert_eq!(driver.advance(round) + driver.advance(round), 1 + 8, "{wheel:?}, {round:?}");
        assert_eq!((timer.stats().cancelled, timer.pending_timeouts()), (7, 0));
    }
}
