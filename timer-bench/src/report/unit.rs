//! The grain of each unit, below which differences mean nothing, and the units that hardly vary.

/// Returns the grain of `unit`. Two figures that differ by less are equal, and a figure below it is
/// negligible.
pub fn grain(unit: &str) -> f64 {
    const GRAINS: &[(&str, f64)] = &[
        ("%-", 0.1),
        ("B-", 1.0),
        ("MiB-", 0.25),
        ("cpu-ms/s", 0.5),
        ("cpu-ns-", 10.0),
        ("cpu-ns/", 0.5),
        ("cpu-s", 0.002),
        ("cpu-us-", 2.0),
        ("early", 1.0),
        ("handed-back", 1.0),
        ("instructions", 1.0),
        ("locked-instructions", 0.02),
        ("ms-drain", 2.0),
        ("ms-", 0.1),
        ("ns-", 5.0),
        ("ns/", 0.3),
        ("of-the-floor", 0.02),
        ("overdue", 1.0),
        ("switches/", 0.5),
        ("unaccounted", 1.0),
        ("us-", 2.0),
        ("wake-ups/s", 0.5),
    ];
    GRAINS.iter().find(|(start, _)| unit.starts_with(start)).map_or(0.0, |(_, grain)| *grain)
}

/// Returns `true` if figures of `unit` vary by less than 5 % from round to round, so that one round
/// can be judged.
pub fn is_steady(unit: &str) -> bool {
    ["B-", "instructions", "locked-instructions"].iter().any(|start| unit.starts_with(start))
}

/// Returns the ratio of `theirs` to `ours`, or `None` if one of them is negligible.
pub fn ratio(theirs: f64, ours: f64, unit: &str) -> Option<f64> {
    let grain = grain(unit);
    (theirs >= grain && ours >= grain && ours > 0.0).then(|| theirs / ours)
}

#[cfg(test)]
mod tests {
    use super::{grain, ratio};

    #[test]
    fn negligible_figures_have_no_ratio() {
        assert_eq!(ratio(150.0, 50.0, "ns/schedule"), Some(3.0));
        assert_eq!(ratio(35.0, 0.001, "ms-drain"), None);
        assert_eq!(ratio(0.0, 50.0, "ns/schedule"), None);
        assert_eq!(ratio(-600.0, 50.0, "us-p50"), None);
        assert_eq!(ratio(1.0, 0.0, "unheard-of"), None);
    }

    #[test]
    fn the_longer_prefix_wins() {
        assert!(grain("ms-drain") > grain("ms-late"));
        assert!(grain("cpu-ms/s") > grain("cpu-s"));
        assert!(grain("cpu-ns-p50") > grain("cpu-ns/pair"));
    }
}
