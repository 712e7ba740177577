//! The whole timer on virtual time against a model: a list of timeouts that is searched from end to end.
//!
//! After every operation, those of tasks included, all that can be seen of the timer is compared: what has run and in
//! which order, at which instant, the state and deadline of every handle, every count, and when it says it is due next.
//! The model and the timer take the same steps; see `world` for who calls whom.
//!
//! `PROPTEST_CASES` sets the number of cases. The fuzz target `timer_virtual` makes its cases of bytes instead; see `bytes`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod compare;
mod edges;
mod executors;
mod faults;
mod guard;
mod model;
mod ops;
mod run;
mod slot;
mod strategies;
mod sweeps;
mod time;
mod world;

use proptest::prelude::*;
use run::run;

/// So many cases for each wheel, unless the environment says otherwise. Nothing is written to the source tree.
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
    fn a_timer_on_a_hierarchical_wheel_does_what_the_model_does(setup in strategies::hierarchical(), ops in strategies::program()) {
        run(&setup, &ops);
    }

    #[test]
    fn a_timer_on_a_hashed_wheel_does_what_the_model_does(setup in strategies::hashed(), ops in strategies::program()) {
        run(&setup, &ops);
    }
}
