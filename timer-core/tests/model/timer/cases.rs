//! The cases of which proptest chooses the bytes, and one that it does not find.

use super::bytes::Case;
use super::executors::Mode;
use super::ops::{Kind, Op, Spawn, Target, When};
use super::run::{End, Setup, run};
use proptest::prelude::*;
use std::time::Duration;
use timer_core::{MissedTickBehavior, WheelKind};

/// The number of cases, unless the environment sets another. Nothing is written to the source tree.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 250;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_timer_matches_the_model(data in prop::collection::vec(any::<u8>(), 0..500)) {
        Case::new(&data).unwrap().run();
    }
}

#[test]
fn a_hook_may_panic_while_its_canceller_unwinds() {
    let spawn = |kind, delay, panics| Spawn {
        kind,
        when: When::In(Duration::from_secs(delay)),
        run: Vec::new(),
        end: Vec::new(),
        panics,
        hook_panics: true,
        runs: 1,
    };
    let cancel = Op::CancelAll(vec![Target::Waiting(0)]);
    let canceller = Spawn { end: vec![cancel.clone(), cancel], ..spawn(Kind::Once, 1, true) };
    let hooked = || Op::Schedule(spawn(Kind::Task, 9, false));
    let setup = Setup {
        wheel: WheelKind::Hierarchical,
        mode: Mode::Immediate,
        uptime: Duration::ZERO,
        bound: None,
        missed_runs: MissedTickBehavior::Skip,
        end: End::StopAndRun,
    };
    run(&setup, &[hooked(), hooked(), Op::Schedule(canceller), Op::Advance(Duration::from_secs(5))]);
}
