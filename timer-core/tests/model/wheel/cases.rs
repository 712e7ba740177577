//! The cases of which proptest chooses the bytes.

use super::bytes::Case;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_hierarchical_wheel_matches_a_sorted_map(data in prop::collection::vec(any::<u8>(), 0..900)) {
        Case::hierarchical(&data).unwrap().run_hierarchical();
    }

    #[test]
    fn a_hashed_wheel_matches_a_sorted_map(data in prop::collection::vec(any::<u8>(), 0..900)) {
        Case::hashed(&data).unwrap().run_hashed();
    }
}
