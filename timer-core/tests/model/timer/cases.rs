//! The cases that proptest generates.

use super::run::run;
use super::strategies;
use proptest::prelude::*;

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
