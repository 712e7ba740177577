//! The cases of proptest.

use super::model::run;
use super::ops::SLOTS;
use super::strategies::{op, uptime};
use proptest::prelude::*;
use timer_core::wheel::{HashedWheel, HierarchicalWheel};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hierarchical_wheel_does_what_a_sorted_map_does(uptime in uptime(), removals: bool, ops in prop::collection::vec(op(), 0..250)) {
        run(HierarchicalWheel::new(), uptime, removals, &ops);
    }

    #[test]
    fn hashed_wheel_does_what_a_sorted_map_does(
        slots in prop::sample::select(&SLOTS[..]),
        uptime in uptime(),
        removals: bool,
        ops in prop::collection::vec(op(), 0..250),
    ) {
        run(HashedWheel::new(slots), uptime, removals, &ops);
    }
}
