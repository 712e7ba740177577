//! The cases that proptest generates.

use super::executors::Mode;
use super::ops::{Kind, Op, Spawn, Target, When};
use super::run::{End, Setup, run};
use super::strategies;
use proptest::prelude::*;
use std::time::Duration;
use timer_core::{MissedTickBehavior, WheelKind};

/// The number of cases for each wheel, unless the environment sets another. Nothing is written to
/// the source tree.
fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 100;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_hierarchical_timer_matches_the_model(setup in strategies::hierarchical(), ops in strategies::program()) {
        run(&setup, &ops);
    }

    #[test]
    fn a_hashed_timer_matches_the_model(setup in strategies::hashed(), ops in strategies::program()) {
        run(&setup, &ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases.div_ceil(4), ..config() })]

    #[test]
    fn years_match_the_model(
        setup in prop_oneof![strategies::hierarchical(), strategies::hashed()],
        ops in strategies::years(),
    ) {
        run(&setup, &ops);
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
