//! The cases that proptest generates.

use super::model::run;
use super::ops::SLOTS;
use super::strategies::{op, uptime};
use proptest::prelude::*;
use timer_core::wheel::{HashedWheel, HierarchicalWheel};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hierarchical_wheel_matches_a_sorted_map(uptime in uptime(), removals: bool, ops in prop::collection::vec(op(), 0..250)) {
        run(HierarchicalWheel::new(), uptime, removals, &ops);
    }

    #[test]
    fn a_hashed_wheel_matches_a_sorted_map(
        slots in prop::sample::select(&SLOTS[..]),
        uptime in uptime(),
        removals: bool,
        ops in prop::collection::vec(op(), 0..250),
    ) {
        run(HashedWheel::new(slots), uptime, removals, &ops);
    }
}
