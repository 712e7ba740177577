//! A package whose own races loom explores: `RUSTFLAGS="--cfg loom" cargo test --test loom`.
//!
//! A model has no timer, because loom does not know its threads. It calls the code that a timeout
//! would run.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use timer_core::Timer;

/// A request that ends once, by its reply or by its timeout.
#[derive(Default)]
struct Request {
    has_ended: AtomicBool,
}

impl Request {
    fn end(&self) -> bool {
        !self.has_ended.swap(true, Ordering::AcqRel)
    }
}

#[test]
fn a_reply_races_with_a_timeout() {
    loom::model(|| {
        let request = Arc::new(Request::default());
        let late = request.clone();
        let timeout = thread::spawn(move || late.end());
        let replied = request.end();
        assert_ne!(replied, timeout.join().unwrap());
    });
}

#[test]
fn the_timer_is_the_same_outside_of_models() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    timer.new_timeout(std::time::Duration::from_secs(1), |_| ()).unwrap();
    assert_eq!(driver.advance(std::time::Duration::from_secs(1)), 1);
}
