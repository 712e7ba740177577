//! Tasks in madsim: `RUSTFLAGS="--cfg madsim" cargo test --test madsim`.
#![cfg(madsim)]

use std::time::Duration;

use madsim::runtime::Runtime;
use madsim::time::Instant;
use timer_core::{ManualDriver, Timer, time};

/// Moves a manual timer with the time of the simulation.
async fn follow(mut driver: ManualDriver) {
    let begin = Instant::now() - driver.elapsed();
    loop {
        madsim::time::sleep(Duration::from_millis(1)).await;
        driver.advance(begin.elapsed() - driver.elapsed());
    }
}

#[test]
fn tasks_of_madsim_share_a_manual_timer() {
    let (timer, driver) = Timer::builder().build_manual().unwrap();
    let _entered = time::enter(timer);
    Runtime::with_seed_and_config(7, madsim::Config::default()).block_on(async {
        madsim::task::spawn(follow(driver));
        let begin = Instant::now();
        time::sleep(Duration::from_secs(5)).await;
        let took = begin.elapsed();
        assert!(took >= Duration::from_secs(5) && took < Duration::from_millis(5_010), "{took:?}");
    });
}
