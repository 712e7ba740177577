//! Both wheels against a sorted map, after every operation.
//!
//! Guards, among others: deadlines on the boundaries of levels and rounds, uptimes just below each power of two, jumps
//! of any length, overdue insertions, keys of values that are gone.
//!
//! The fuzz targets `wheel_hashed` and `wheel_hierarchical` make their cases of bytes instead; see `bytes`.

mod model;
mod ops;
mod strategies;

use model::run;
use ops::SLOTS;
use proptest::prelude::*;
use strategies::{op, uptime};
use timer_core::wheel::{HashedWheel, HierarchicalWheel};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

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
